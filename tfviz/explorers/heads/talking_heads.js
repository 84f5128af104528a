// S_b = Σ_a J_a (P_l)_ab, W_b = softmax(S_b), U_c = Σ_b W_b (P_w)_bc, for one query and two heads.
const { words, scores } = tf.data;
const n = words.length;
const both = [0, 1];
// head 0 keeps its scores, and the values of head 1 meet the weights of head 1
const scoresOf = ({ score_01, score_11 }) => [
  [1, score_01],
  [0, score_11],
];
const weightsOf = ({ weight_00, weight_10 }) => [
  [weight_00, 0],
  [weight_10, 1],
];
const mixed = (rows, P) =>
  both.map((b) => rows[0].map((_, j) => tf.sum(both.map((a) => rows[a][j] * P[a][b]))));

function talk(state) {
  const S = mixed(scores, scoresOf(state));
  const W = S.map((row) => Array.from(tf.softmax(row)));
  const U = mixed(W, weightsOf(state));
  return { mixed_scores: S, weights: W, mixed_weights: U, sums: U.map(tf.sum) };
}
const entry = (x) => tf.fixed(x, 1);

export default tf.explorer({
  numbers: talk,
  setup(app) {
    const top = app.split("2fr 1fr");
    const before = app.matrix({ axes: ["head", "key"], tall: 110, into: top });
    const first = app.matrix({ axes: ["from", "to"], tall: 110, into: top });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.3, 180, 220), lead: true });
    const bottom = app.split("2fr 1fr");
    const after = app.matrix({ axes: ["head", "key"], tall: 110, into: bottom });
    const second = app.matrix({ axes: ["from", "to"], tall: 110, into: bottom });
    app.formula("𝐒 = 𝐉 {first:𝐏_l};   𝐖 = {softmax:softmax(𝐒)};   𝐔 = 𝐖 {second:𝐏_w}");
    app.knobsOf("score_01", "score_11");
    app.knobsOf("weight_00", "weight_10");
    const question = app.ask({
      name: "negated",
      question:
        "$𝐏_l$ gives head 1 the scores of head 0 times −1, and none of its own. Which word gets the most weight in head 1?",
      about: plane,
      ghost: {
        first: 1,
        at: (j) => [j + 0.2, 0.5],
        to: (x) => tf.clamp(Math.round(x - 0.2), 0, n - 1),
        by: [1, 0],
        label: "the word with the most weight in head 1",
      },
      format: (j) => `“${words[j]}”`,
      hides: ["head 1"],
      locks: ["score_01", "score_11"],
      truth: (numbers) => tf.best(numbers.weights[1]),
      then: { score_01: -1, score_11: 0 },
      because:
        "“red” has the lowest score in head 0, −1.5. Times −1, it becomes 1.5, the highest. Head 1 gives the most weight to what head 0 gives the least.",
    });

    return (state, numbers) => {
      const heads = { rows: 2, columns: n, signed: true, columnHeads: words, rowHeads: ["0", "1"] };
      before.show({
        title: "scores of one query, before $𝐏_l$",
        label: `Scores of head 0: ${scores[0].map(entry).join(", ")}; of head 1: ${scores[1].map(entry).join(", ")}`,
        values: scores,
        text: (i, j) => entry(scores[i][j]),
        most: 3,
        ...heads,
      });
      const mixture = (picture, P, title, term) => {
        picture.show({
          title,
          label: `${title}: ${P.map((row) => row.map(entry).join(", ")).join("; ")}`,
          rows: 2,
          columns: 2,
          signed: true,
          values: P,
          most: 1,
          text: (i, j) => entry(P[i][j]),
          rowHeads: ["0", "1"],
          columnHeads: ["0", "1"],
          marks: [{ cells: tf.range(4, (k) => [Math.floor(k / 2), k % 2]), term }],
        });
      };
      mixture(first, scoresOf(state), "$𝐏_l$, from head to head", "first");
      mixture(second, weightsOf(state), "$𝐏_w$, from head to head", "second");
      const W = numbers.weights;
      plane.show({
        title: "weights after $𝐏_l$ and the softmax: head 0 (left bars) and head 1 (right bars)",
        label: `Head 0 gives the most weight to ${words[tf.best(W[0])]}${question.open ? "" : `, head 1 to ${words[tf.best(W[1])]}`}`,
        x: { names: words },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
        marks: both.map((b) =>
          W[b].map((w, j) => ({
            shape: tf.box(j + (b ? 0.02 : -0.38), j + (b ? 0.38 : -0.02), 0, w),
            colour: b ? "attention" : "key",
            strength: 0.85,
            part: b ? "head 1" : undefined,
            term: "softmax",
          })),
        ),
        hover: false,
      });
      const U = numbers.mixed_weights;
      after.show({
        title: "weights that meet the values, after $𝐏_w$",
        label: `The weights of head 0 sum to ${entry(numbers.sums[0])}`,
        values: U,
        text: (i, j) => tf.fixed(U[i][j], 2),
        part: (i) => (i === 1 ? "head 1" : undefined),
        most: 1,
        ...heads,
      });
      app.read({
        "head 0 sums to": tf.fixed(numbers.sums[0], 2),
        "head 1 sums to": tf.fixed(numbers.sums[1], 2),
      });
      app.say(
        `Head 0 gives the most weight to “${words[tf.best(W[0])]}”${question.open ? "" : `, head 1 to “${words[tf.best(W[1])]}”`}; after $𝐏_w$ the weights of head 0 sum to ${tf.fixed(numbers.sums[0], 2)}.`,
      );
    };
  },
});
