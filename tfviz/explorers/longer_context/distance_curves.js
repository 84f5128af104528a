// Distance curves: the score and the weight of equally good keys, by how far back they stand.
const { names: NAMES, edges, near, width, base, step, wave } = tf.data;
const { ramp, curve, hand } = tf.data; // (i, j, m), (i, j, alpha, beta), (k, m, d, base)
const HEADS = tf.declared.knobs.head.high;
const [HELD, LOUDEST] = [12, 4]; // where the dots stand, in places back
const hands = tf.keep((n) => tf.mean(tf.range(width / 2, (m) => hand(n, m, width, base))));
const bucket = (n) => edges.filter((first) => first <= n).length - 1;
const slope = (head) => 2 ** -head;

function scoresOf({ content: c, alpha, beta, head, length }) {
  const ways = [
    (n) => Math.max(c, 0) * curve(0, n, alpha, beta),
    (n) => c + ramp(0, n, slope(head)),
    (n) => c + wave * (hands(n) - 1),
    (n) => c - step * bucket(n),
    (n) => c * hands(n),
  ];
  return ways.map((way) => tf.range(length, way));
}

function numbers(state) {
  const scores = scoresOf(state);
  const weights = scores.map(tf.softmax);
  return { scores, weights, far: weights.map((w) => tf.sum(w.slice(near + 1))) };
}

const DASHES = ["", "", "8 3", "2 3", "10 3 2 3"];
const COLOURS = ["attention", "query", "ink", "ink", "key"];
const within = (ys, low, high) => ys.map((y) => (y < low || y > high ? Number.NaN : y));

export default tf.explorer({
  numbers,
  setup(app) {
    const both = app.split("1fr 1fr");
    const tall = (w) => tf.clamp(w * 0.75, 220, 300);
    const scores = app.plane({ height: tall, into: both, lead: true });
    const weights = app.plane({ height: tall, into: both });
    const pick = (row) => app.set({ head: row + 1 });
    const heads = app.matrix({ axes: ["head", "distance"], pick, tall: 170 });
    app.formula("{da:DA: max(c, 0) · f(αr; β)}   {alibi:ALiBi: c − m r}");
    const others = app.formula(
      "XL: c + wave(r)   T5: c + b[bucket(r)]   {rotary:rotary: c · wave(r)}",
    );
    for (const key of ["content", "alpha", "beta"])
      app.knob(key, { format: (x) => tf.fixed(x, 1) });
    app.knob("head", { format: (x) => `${x}: m = 1/${2 ** x}` });
    app.knob("length");
    app.knob("beside");
    const question = app.ask({
      name: "floor",
      question:
        "DA's curve is nearly 0 beyond distance 8, so the scores of the 55 keys out there are nearly 0. What share of the weight do these keys keep together?",
      number: {},
      unit: "%",
      near: 6,
      truth: (numbers) => 100 * numbers.far[0],
      then: { content: 4, alpha: -1, beta: -4, length: 64 },
      because:
        "A score of 0 is not a weight of 0: each of these keys counts as e⁰ = 1, and there are 55 of them.",
    });

    return (state, numbers) => {
      const bold = (m) => m < 2;
      const names = state.beside ? NAMES : NAMES.slice(0, 2);
      others.style.visibility = state.beside ? "" : "hidden";
      const lines = (all, low, high) =>
        all.slice(0, names.length).map((ys, m) => ({
          line: within(ys, low, high),
          name: NAMES[m],
          colour: COLOURS[m],
          dash: DASHES[m],
          wide: bold(m) ? 2.5 : 1.5,
          bold: bold(m),
          term: ["da", "alibi", "", "", "rotary"][m] || undefined,
        }));
      const at = Math.min(LOUDEST, state.length - 1);
      const dot = (way, distance) => [distance, tf.clamp(numbers.scores[way][distance], -6, 10)];
      // ALiBi's dot: content − m · HELD = y, solved for the slope m = 2^−head
      const slide = (_, y) => {
        const m = Math.max((state.content - y) / HELD, 2 ** -(HEADS + 1));
        return { head: app.snap("head", -Math.log2(m)) };
      };
      // DA's dot: content · f(α r; β) = y at r = `at`, solved for α
      const bend = (_, y) => {
        const e = 1 + Math.exp(state.beta);
        const f = tf.clamp(y / state.content, 1e-6, e * 0.999999);
        return { alpha: app.snap("alpha", (state.beta - Math.log(e / f - 1)) / at) };
      };
      const x = { from: 0, to: state.length - 1, label: "distance r", whole: true };
      scores.show({
        title: "score by distance: drag the dots up and down",
        label: `Scores ${at} places back: ${names.map((name, m) => `${name} ${tf.fixed(numbers.scores[m][at])}`).join(", ")}`,
        x,
        y: { from: -6, to: 10 },
        marks: [
          { rule: { y: 0 }, dash: "2 4" },
          ...lines(numbers.scores, -6, 10),
          {
            handle: dot(1, HELD),
            to: slide,
            knobY: "head",
            name: "slope",
            colour: "query",
            label: "slope of ALiBi",
            text: `m = 1/${2 ** state.head}`,
            shape: "down",
            term: "alibi",
          },
          state.content > 0 && {
            handle: dot(0, at),
            to: bend,
            knobY: "alpha",
            name: "preference",
            colour: "attention",
            label: "α of DA",
            text: `α = ${tf.fixed(state.alpha, 1)}`,
            shape: "down",
            term: "da",
          },
        ],
      });
      const shownWeights = question.open
        ? numbers.weights.map((w, m) => (m ? w : []))
        : numbers.weights;
      weights.show({
        title: "weight by distance (log): softmax of the scores",
        label: `Weights ${at} places back: ${names.map((name, m) => (m || !question.open ? `${name} ${tf.fixed(numbers.weights[m][at], 4)}` : "")).join(" ")}`,
        x,
        y: { log: true, from: 1e-5, to: 1 },
        marks: [{ rule: { x: near + 0.5 }, dash: "2 4" }, ...lines(shownWeights, 1e-5, 1)],
      });
      const columns = Math.min(state.length, 24);
      heads.show({
        title: "ALiBi's heads: weight of a key ÷ weight of the nearest",
        label: `Head ${state.head} of ${HEADS}, slope 1/${2 ** state.head}; arrow keys choose the head`,
        rows: HEADS,
        columns,
        row: state.head - 1,
        most: 1,
        values: (m, far) => Math.exp(ramp(0, far, slope(m + 1))),
        rowHeads: tf.range(HEADS, (m) => (m % 2 ? `1/${2 ** (m + 1)}` : "")),
      });
      const share = (m) => (question.open && m === 0 ? "?" : tf.percent(numbers.far[m], 1));
      app.read(Object.fromEntries(names.map((name, m) => [`${name}, beyond ${near}`, share(m)])));
      const most = state.content > 0 ? "" : " DA cannot tell the keys apart.";
      const da = question.open ? "" : `, DA ${share(0)}`;
      const rotary = state.beside ? `, rotary ${share(4)}` : "";
      app.say(
        `Content ${tf.fixed(state.content, 1)}: ALiBi's head ${state.head} leaves ${share(1)} of the weight beyond distance ${near}${rotary}${da}.${most}`,
      );
    };
  },
});
