// S = Σ left_j k_jᵀ v_j, and the cosine of k_j S with v_j for each pair that was written.
const { keys, values, recent } = tf.data;
const most = values.length;
const width = values[0].length;
// (1 − g) g^(n − 1 − j), or 1 without a gate
const left = (half, n) => {
  const g = half && 0.5 ** (1 / half);
  return tf.range(n, (j) => (half ? (1 - g) * g ** (n - 1 - j) : 1));
};
const stateOf = (d, half, n) => {
  const share = left(half, n);
  return tf.range(d, (row) =>
    tf.range(width, (column) =>
      tf.sum(share.map((s, j) => s * keys[d][j][row] * values[j][column])),
    ),
  );
};
const readOf = tf.keep((d, half, n) => {
  const S = stateOf(d, half, n);
  return tf.range(n, (j) => {
    const found = tf.range(width, (column) =>
      tf.sum(keys[d][j].map((k, row) => k * S[row][column])),
    );
    return tf.dot(found, values[j]) / (tf.norm(found) * tf.norm(values[j]));
  });
}, 400);
const counts = tf.range(most, (k) => k + 1);

export default tf.explorer({
  numbers: ({ n, d, half }) => ({
    state: stateOf(d, half, n),
    read: readOf(d, half, n),
    all: counts.map((c) => tf.mean(readOf(d, half, c))),
    last: counts.map((c) => tf.mean(readOf(d, half, c).slice(-recent))),
  }),
  setup(app) {
    const both = app.split("2fr 3fr");
    const matrix = app.matrix({ axes: ["row of S", "column of S"], tall: 240, into: both });
    const bars = app.plane({ height: (w) => tf.clamp(w * 0.6, 200, 260), into: both });
    const curve = app.plane({ height: (w) => tf.clamp(w * 0.32, 190, 230), lead: true });
    app.formula(
      "{state:𝐒} ← g {state:𝐒} + (1 − g) {key:𝐤}ᵀ {value:𝐯};   key j reads  {key:𝐤_j} {state:𝐒}",
    );
    app.motion("n", { every: 500, verbs: ["back", "write"] });
    app.knob("d");
    app.knob("half", { format: (x) => (x ? `${x} pairs` : "no gate") });
    const question = app.ask({
      name: "overflow",
      question:
        "Keys have 8 numbers and are at right angles to each other as long as there is room. Four pairs have been written, and each key reads its value exactly. At how many pairs does reading first go wrong?",
      about: curve,
      ghost: {
        first: 16,
        at: (n) => [n, 0.5],
        to: (x) => tf.clamp(Math.round(x), 1, most),
        draw: (n) => ({ rule: { x: n }, colour: "attention", dash: "6 4" }),
        by: [1, 0],
        label: "the number of pairs at which reading first goes wrong",
      },
      format: (n) => `${n} pairs`,
      hides: ["all", "last"],
      guards: ["n", "d", "half"],
      truth: (numbers) => counts[numbers.all.findIndex((x) => x < 0.999)],
      then: { n: 9, d: 8, half: 0 },
      because:
        "Eight numbers have room for only eight directions at right angles. The ninth key overlaps with earlier ones, so it reads a part of their values, and they read a part of its value.",
    });

    return (state, numbers) => {
      const strongest = Math.max(...numbers.state.flat().map(Math.abs));
      matrix.show({
        title: `the state S, ${state.d} × ${width}`,
        label: `The state after ${state.n} pairs, ${state.d} rows of ${width} numbers`,
        rows: state.d,
        columns: width,
        values: numbers.state,
        signed: true,
        most: strongest,
        text: () => "",
      });
      const worst = Math.min(...numbers.read);
      bars.show({
        title: "cosine between what each key reads and its value; 1 is exact",
        label: `${state.n} keys read their values with cosines from ${tf.fixed(worst, 2)} to ${tf.fixed(Math.max(...numbers.read), 2)}`,
        x: { label: "pair, the newest last", from: 0.4, to: most + 0.6, ticks: [1, 8, 16, 24] },
        y: { from: -0.3, to: 1, ticks: [0, 0.5, 1] },
        marks: [
          { bars: numbers.read.map((x, j) => [j + 1, x]), colour: "value", term: "value" },
          { rule: { y: 0 }, colour: "muted" },
        ],
      });
      const now = numbers.all[state.n - 1];
      curve.show({
        title: "mean cosine of what is read with the value, by pairs written",
        label: question.open
          ? `${state.n} pairs are written, and all are read exactly`
          : `After ${state.n} pairs: ${tf.fixed(now, 2)} for all, ${tf.fixed(numbers.last[state.n - 1], 2)} for the last four`,
        x: { label: "pairs written, p", from: 1, to: most, ticks: [1, 4, 8, 12, 16, 20, 24] },
        y: { from: 0, to: 1.05, ticks: [0, 0.5, 1] },
        marks: [
          {
            line: counts.slice(0, state.n).map((c) => [c, numbers.all[c - 1]]),
            colour: "value",
            wide: 2.5,
            dots: true,
          },
          {
            line: counts.map((c) => [c, numbers.last[c - 1]]),
            colour: "key",
            dash: "5 4",
            name: "last four",
            part: "last",
            term: "key",
          },
          {
            line: counts.map((c) => [c, numbers.all[c - 1]]),
            colour: "value",
            wide: 2.5,
            dots: true,
            name: "all pairs",
            part: "all",
            term: "value",
          },
          {
            handle: [state.n, now],
            knob: "n",
            text: `${state.n} pairs`,
            to: (x) => ({ n: app.snap("n", x) }),
          },
        ],
      });
      app.read({
        "mean cosine, all pairs": tf.fixed(now, 2),
        "mean cosine, last four": tf.fixed(numbers.last[state.n - 1], 2),
        "share kept in each step": state.half ? tf.percent(0.5 ** (1 / state.half), 0) : "all",
        "numbers in the state": state.d * width,
      });
      app.say(
        `${state.n} pairs in a state of ${state.d} rows${state.half ? `, half-life ${state.half} pairs` : ", no gate"}: the worst key reads its value with a cosine of ${tf.fixed(worst, 2)}.`,
      );
    };
  },
});
