// The model's letters, the neighbours' and their blend; the loss of all contexts against λ.
const { rows, near, shares, shown } = tf.data;
const SIZES = ["2,000", "8,000", "30,000", "120,000"];
const [LOW, HIGH] = [1.8, 3]; // nats that are shown
// the letters of the k nearest, weighted by exp(−d² / T)
const neighbourLetters = tf.keep((place, size, k, temperature) => {
  const [d2, words] = [near[size].d2[place].slice(0, k), near[size].words[place]];
  const p = rows[place].p.map(() => 0);
  tf.softmax(d2.map((d) => -d / temperature)).forEach((w, i) => (p[words[i]] += w));
  return p;
});
const blend = (p, q, share) => share * q + (1 - share) * p;
const curve = tf.keep((size, k, temperature) =>
  shares.map((share) => {
    const nats = rows.map(({ p, next }, place) =>
      Math.log(blend(p[next], neighbourLetters(place, size, k, temperature)[next], share)),
    );
    return -tf.sum(nats) / rows.length;
  }),
);

export default tf.explorer({
  numbers({ place, share, size, k, temperature }) {
    const { p, next } = rows[place];
    const q = neighbourLetters(place, size, k, temperature);
    const both = p.map((x, i) => blend(x, q[i], share));
    const curves = SIZES.map((_, n) => curve(n, k, temperature));
    return {
      model: p.slice(0, shown),
      near: q.slice(0, shown),
      both: both.slice(0, shown),
      nats: -Math.log(both[next]),
      curve: curves[size],
      best: curves.map((c) => shares[c.indexOf(Math.min(...c))]),
    };
  },
  setup(app) {
    const three = app.plane({ height: (width) => tf.clamp(width * 0.34, 210, 260) });
    const lost = app.plane({ height: (width) => tf.clamp(width * 0.3, 200, 230) });
    app.formula("p = {near:λ p_kNN} + {model:(1 − λ) p_LM}");
    app.motion("place", { every: 1200 });
    app.knob("share", { format: (x) => tf.fixed(x, 2) });
    app.knob("size", { format: (n) => SIZES[n] });
    app.knobsOf("k", "temperature");
    const { k, temperature } = app.first;
    const last = SIZES.length - 1;
    const [few, many] = [0, last].map((size) => {
      const losses = curve(size, k, temperature);
      const unlikely = rows.filter(
        ({ next }, place) => neighbourLetters(place, size, k, temperature)[next] < 0.01,
      );
      return { best: shares[losses.indexOf(Math.min(...losses))], unlikely: unlikely.length };
    });
    app.ask({
      name: "larger-store",
      question: `With ${SIZES[0]} keys in the store, λ = ${tf.fixed(few.best)} is best for these ${rows.length} contexts. The model stays as it is, and the store grows to ${SIZES[last]} keys. Which λ is best then?`,
      about: lost,
      ghost: {
        first: 0.7,
        at: (share) => [share, LOW + 0.12 * (HIGH - LOW)],
        to: (share) => shares[tf.clamp(Math.round(20 * share), 0, shares.length - 1)],
        draw: (share) => ({ rule: { x: share }, colour: "ink", dash: "2 4" }),
        by: [0.05, 0],
        label: "the best λ",
      },
      format: (share) => `λ = ${tf.fixed(share)}`,
      near: 0.11,
      truth: (numbers) => numbers.best[last],
      then: { size: last, share: many.best, k, temperature },
      guards: ["size"],
      because: `With ${SIZES[0]} keys, the neighbours give the letter that came a probability below 1 % in ${few.unlikely} of the ${rows.length} contexts, and a large λ is costly there. With ${SIZES[last]} keys, they do so in ${many.unlikely}.`,
    });

    return (state, numbers) => {
      const { text, letters, next } = rows[state.place];
      const names = letters.slice(0, numbers.model.length);
      const parts = [
        ["model", numbers.model, "key", "model"],
        ["neighbours", numbers.near, "value", "near"],
        ["blend", numbers.both, "attention"],
      ];
      three.show({
        title: `“${text.replaceAll("\n", "⏎")}” was followed by “${letters[next]}”`,
        label: `The letter that came, ${letters[next]}: model ${tf.fixed(numbers.model[next], 2)}, neighbours ${tf.fixed(numbers.near[next], 2)}, blend ${tf.fixed(numbers.both[next], 2)}`,
        x: { label: "next letter", names },
        y: { from: 0, to: 1, label: "p" },
        // three bars a letter, side by side; their names stand at the upper right
        marks: parts.map(([name, ps, colour, term], m) => [
          { bars: ps, at: ps.map((_, i) => i + 0.28 * (m - 1)), wide: 0.26, colour, name, term },
          { text: name, colour, at: [ps.length - 0.6, 1], align: "end", dy: 6 + 15 * m },
        ]),
      });
      const i = shares.findIndex((x) => x >= state.share - 1e-9);
      const inside = (losses) => losses.map((nats) => tf.clamp(nats, LOW, HIGH));
      const [losses, smallest] = [numbers.curve, curve(0, state.k, state.temperature)].map(inside);
      const best = numbers.best[state.size];
      lost.show({
        title: "mean loss on all 16 contexts, against λ",
        label: `Mean loss at λ = ${tf.fixed(state.share)}: ${tf.fixed(numbers.curve[i])} nats`,
        x: { from: 0, to: 1, label: "λ" },
        y: { from: LOW, to: HIGH, label: "nats" },
        marks: [
          state.size > 0 && {
            line: smallest,
            at: shares,
            colour: "muted",
            dash: "7 4",
            name: `${SIZES[0]} keys`,
          },
          {
            line: losses,
            at: shares,
            colour: "attention",
            wide: 2.5,
            bold: true,
            name: `${SIZES[state.size]} keys`,
          },
          { rule: { x: best }, dash: "3 3" },
          { text: "best λ", at: [best, HIGH], align: "start", dx: 6, dy: 10 },
          { handle: [state.share, losses[i]], knob: "share", text: `λ = ${tf.fixed(state.share)}` },
        ],
      });
      app.read({
        "loss of the blend": `${tf.fixed(numbers.nats, 2)} nats`,
        "loss of the model": `${tf.fixed(-Math.log(rows[state.place].p[next]), 2)} nats`,
        "best λ for this store": tf.fixed(best),
      });
      const [byModel, byNeighbours, byBlend] = [numbers.model, numbers.near, numbers.both].map(
        (p) => tf.fixed(p[next]),
      );
      app.say(
        `Context ${state.place}: “${letters[next]}” came. The model gave it p = ${byModel}, the neighbours ${byNeighbours}, and their blend at λ = ${tf.fixed(state.share)} gives ${byBlend}.`,
      );
    };
  },
});
