// Sinkhorn's steps on five blocks, in logarithms as in the library: rows, columns, rows, …
const { R } = tf.data;
const n = R.length;
const turn = (X) => X[0].map((_, j) => X.map((row) => row[j]));
const logsum = (xs) => {
  const most = Math.max(...xs);
  return most + Math.log(tf.sum(xs.map((x) => Math.exp(x - most))));
};
const rows = (X) => X.map((row) => row.map((x) => x - logsum(row)));
const after = tf.keep((step, tau) => {
  let log = R.map((row) => row.map((x) => x / tau));
  if (step === 0) {
    const most = Math.max(...log.flat());
    log = log.map((row) => row.map((x) => x - most));
  }
  for (let s = 0; s < step; s++) log = s % 2 ? turn(rows(turn(log))) : rows(log);
  return log.map((row) => row.map(Math.exp));
}, 120);

export default tf.explorer({
  numbers({ step, tau }) {
    const P = after(step, tau);
    return { P, columns: turn(P).map(tf.sum), rows: P.map(tf.sum), most: P.map(tf.best) };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const axes = ["block u", "keys' block v"];
    const matrix = app.matrix({ axes, tall: 330, into: both, pick: (block) => app.set({ block }) });
    const sums = app.plane({ height: (width) => tf.clamp(width * 0.75, 220, 320), into: both });
    app.formula("𝐏 = exp(𝐑/τ),  then {rows:rows ÷ their sums}, {columns:columns ÷ their sums}, …");
    app.motion("step", { every: 600 });
    app.knobsOf("tau", "block");
    const question = app.ask({
      name: "place",
      question:
        "A softmax over each row lets blocks 2 and 3 both ask for block 3. If the columns must sum to one as well, which block of keys does block 2 get in the end?",
      chips: tf.range(n, (j) => `block ${j}`),
      truth: (numbers) => numbers.most[2],
      then: { step: 20, tau: 0.2, block: 2 },
      because:
        "Block 3 would lose more by giving way: block 2's second choice is nearly as good as its first.",
    });

    return (state, numbers) => {
      const { P, columns } = numbers;
      const turnOf =
        state.step === 0 ? "no normalisation yet" : state.step % 2 ? "rows" : "columns";
      matrix.show({
        title: state.step
          ? `P after ${state.step} step${state.step === 1 ? "" : "s"}; last step: ${turnOf}`
          : "exp(R/τ), scaled to at most 1",
        label: `Block ${state.block} is selected; arrow keys select another`,
        rows: n,
        values: P,
        most: 1,
        row: state.block,
        text: (i, j) => tf.fixed(P[i][j], 2),
        marks: [{ cells: tf.range(n, (j) => [state.block, j]), term: "rows" }],
      });
      sums.show({
        title: "sums of the columns: how much of each block of keys is given away",
        label: columns.map((x, j) => `block ${j}: ${tf.fixed(x, 2)}`).join(", "),
        x: { from: -0.6, to: n - 0.4, whole: true, label: "keys' block v" },
        y: { from: 0, to: 2.5, label: "sum" },
        marks: [
          { bars: columns, colour: "key", term: "columns", name: "sum" },
          { rule: { y: 1 }, colour: "muted" },
        ],
      });
      const off = Math.max(...[...columns, ...numbers.rows].map((x) => Math.abs(x - 1)));
      app.read({
        "largest error of a sum": tf.fixed(off, 3),
        "block u gets most of": `block ${numbers.most[state.block]}, ${tf.fixed(Math.max(...P[state.block]), 2)}`,
        "different first choices": `${new Set(numbers.most).size} of ${n}`,
      });
      const mostText = question.open ? "" : ` Block 2 gets most of block ${numbers.most[2]}.`;
      app.say(
        `After ${state.step} normalisation${state.step === 1 ? "" : "s"}, no sum is further from 1 than ${tf.fixed(off, 2)}.${mostText}`,
      );
    };
  },
});
