// M_ij = (1 + γ) P_ic + β_c with c = j mod B inside the blocks, else 0; all scores are equal.
const { L, liked } = tf.data;
const grid = (cell) => tf.range(L, (i) => tf.range(L, (j) => cell(i, j)));

function prior({ r, gamma, beta }) {
  const B = L / r;
  return grid((i, j) => {
    if (Math.floor(i / B) !== Math.floor(j / B)) return 0;
    const P = i - j === 1 ? liked : j - i === 1 ? -liked : 0;
    return (1 + gamma) * P + (j % B ? 0 : beta);
  });
}

const looks = (gamma) =>
  gamma > -1 ? "looks left" : gamma < -1 ? "looks right" : "prefers neither side";

export default tf.explorer({
  numbers(state) {
    const M = prior(state);
    return { M, weights: M.map((row) => Array.from(tf.softmax(row))) };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.36, 200, 240), lead: true });
    const maps = app.split("1fr 1fr");
    const pick = (i) => app.set({ i });
    const axes = ["query", "key"];
    const left = app.matrix({ axes, pick, tall: 250, into: maps });
    const right = app.matrix({ axes, pick, tall: 250, into: maps });
    app.formula("inside a block:  T  =  {gamma:(1 + γ)} · U  +  {beta:β};   outside:  0");
    app.knobsOf("r", "gamma", "beta", "i");
    const asked = { r: 2, gamma: 0, beta: 0, i: 4 };
    const share = (numbers) => 100 * numbers.weights[asked.i][asked.i - 1];
    const question = app.ask({
      name: "edge",
      question:
        "This task looks left: query 6 gives key 5 more than half of its weight. Query 4 is the first of the second block, and its left neighbour, key 3, is in the first. What share of its weight does query 4 give key 3?",
      about: plane,
      ghost: {
        first: 50,
        at: (y) => [asked.i - 1, y],
        to: (_, y) => tf.clamp(Math.round(y / 2) * 2, 0, 100),
        by: [0, 2],
        label: "the weight of key 3",
      },
      format: (y) => `${tf.fixed(y, 0)} %`,
      near: 5,
      hides: ["row", "left neighbour's weight"],
      guards: ["r", "gamma", "beta", "i"],
      truth: () => share({ weights: prior(asked).map((row) => Array.from(tf.softmax(row))) }),
      then: asked,
      because:
        "Key 3 gets as much as any other key whose score the prior leaves alone: between blocks it adds 0, which neither helps nor forbids.",
    });

    return (state, { M, weights }) => {
      const { i, r, gamma } = state;
      const B = L / r;
      const task = looks(gamma);
      plane.show({
        title: `weights of query ${i} (bars) and query 6 (dots), all contents equal`,
        label: `Weights of query ${i}; the task ${task}`,
        x: { from: -0.5, to: L - 0.5, whole: true, label: "key" },
        y: { from: 0, to: 100, ticks: [0, 50, 100], label: "% of the weight" },
        marks: [
          { rule: { x: Math.floor(i / B) * B - 0.5 }, colour: "muted", dash: "4 4" },
          {
            line: weights[6].map((a) => 100 * a),
            start: 0,
            colour: "muted",
            dash: "2 4",
            dots: true,
          },
          {
            bars: weights[i].map((a) => 100 * a),
            start: 0,
            colour: "attention",
            part: "row",
          },
        ],
      });
      const most = tf.percent(Math.max(...weights[i]), 0);
      const blocks = tf.range(r, (n) => ({
        from: [n * B, n * B],
        to: [(n + 1) * B - 1, (n + 1) * B - 1],
      }));
      const shared = { rows: L, columns: L, row: i };
      left.show({
        title: "the prior T of the task",
        label: `The prior in ${r === 1 ? "one block" : `${r} blocks`}; the task ${task}`,
        values: M,
        text: (a, b) => tf.short(M[a][b]),
        signed: true,
        most: 4,
        frames: blocks,
        ...shared,
      });
      // query 0 begins a block, too, and has the same weights
      const hidden = (a) => question.open && a % (L / asked.r) === 0;
      right.show({
        title: "weights",
        label: question.open
          ? "Weights of the other queries"
          : `Query ${i} gives at most ${most} to one key`,
        values: weights.map((row, a) => (hidden(a) ? row.map(() => 0) : row)),
        text: (a, b) => (hidden(a) ? "?" : tf.fixed(weights[a][b], 2).replace("0.", ".")),
        most: 1,
        ...shared,
      });
      const neighbour = i > 0 ? tf.percent(weights[i][i - 1], 0) : "none";
      app.read({
        "left neighbour's weight": neighbour,
        "the task": task,
        "numbers in U": String(L * B),
      });
      app.say(
        `With ${r === 1 ? "one block" : `${r} blocks`} and γ = ${tf.fixed(gamma, 0)}, the task ${task}${question.open ? "" : `; query ${i} gives at most ${most} of its weight to one key`}.`,
      );
    };
  },
});
