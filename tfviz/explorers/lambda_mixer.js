// The model's letters, the neighbours' and their blend; the loss of all contexts against λ.
const { rows, near, shares, shown } = tf.data;
const SIZES = ["2,000", "8,000", "30,000", "120,000"];
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
    const question = app.ask({
      name: "grows",
      question:
        "The model stays as it is. Is the best λ of these 16 contexts larger or smaller with 120,000 keys than with 2,000?",
      chips: ["smaller", "the same", "larger"],
      truth: (numbers) => 1 + Math.sign(numbers.best[3] - numbers.best[0]),
      then: { size: 3 },
      because:
        "Of 120,000 contexts more fit, and say the letter that came. Now try the two stores between: is it larger with each step?",
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
        title: `after “${text.replaceAll("\n", "⏎")}” came “${letters[next]}”`,
        label: `The letter that came, ${letters[next]}: model ${tf.fixed(numbers.model[next], 2)}, neighbours ${tf.fixed(numbers.near[next], 2)}, blend ${tf.fixed(numbers.both[next], 2)}`,
        x: { label: "next letter", names },
        y: { from: 0, to: 1, label: "p" },
        // three bars a letter, side by side; their names stand at the upper right
        marks: parts.map(([name, ps, colour, term], m) => [
          { bars: ps, at: ps.map((_, i) => i + 0.28 * (m - 1)), wide: 0.26, colour, name, term },
          { text: name, colour, at: [ps.length - 0.6, 1], align: "end", dy: 6 + 15 * m },
        ]),
      });
      const [low, high] = [1, 3];
      const i = shares.findIndex((x) => x >= state.share - 1e-9);
      const at = tf.clamp(numbers.curve[i], low, high);
      lost.show({
        title: "loss on all 16 contexts, against λ",
        label: question.open
          ? "Loss against λ"
          : `Loss at λ = ${tf.fixed(state.share, 2)}: ${tf.fixed(numbers.curve[i], 2)} nats`,
        x: { from: 0, to: 1, label: "λ" },
        y: { from: low, to: high, label: "nats" },
        marks: !question.open && [
          { line: numbers.curve.map((y) => tf.clamp(y, low, high)), at: shares, wide: 2.5 },
          { rule: { x: numbers.best[state.size] }, dash: "3 3", name: "best" },
          { handle: [state.share, at], knob: "share", text: `λ = ${tf.fixed(state.share, 2)}` },
        ],
      });
      app.read({
        "letter that came": `${tf.fixed(numbers.nats, 2)} nats`,
        "model alone": `${tf.fixed(-Math.log(rows[state.place].p[next]), 2)} nats`,
        "best λ of this store": question.tell(tf.fixed(numbers.best[state.size], 2)),
      });
      app.say(
        `Context ${state.place}: ${letters[next]} came. The model gave it ${tf.fixed(numbers.model[next], 2)}, the neighbours ${tf.fixed(numbers.near[next], 2)}, the blend with λ = ${tf.fixed(state.share, 2)} ${tf.fixed(numbers.both[next], 2)}.`,
      );
    };
  },
});
