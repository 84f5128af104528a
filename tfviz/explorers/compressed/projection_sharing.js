// Every head of every layer has an E (left half) and an F (right half); cells of one matrix have the same shade.
const { ways } = tf.data;
const names = Object.keys(ways);
const ofCell = {
  none: (n, c, h) => 2 * h * n + c,
  headwise: (n, c, h) => 2 * n + Math.floor(c / h),
  "key-value": (n) => n,
  layerwise: () => 0,
};
const counts = (N, h) => [2 * N * h, 2 * N, N, 1];
const SHADES = [0.25, 0.75, 0.45, 1, 0.6]; // of matrices with neighbouring numbers

export default tf.explorer({
  numbers({ sharing, N, h }) {
    const cells = tf.range(N, (n) => tf.range(2 * h, (c) => ofCell[sharing](n, c, h)));
    return { cells, counts: counts(N, h) };
  },
  setup(app) {
    const matrix = app.matrix({
      axes: ["layer", "E of each head, then F of each head"],
      tall: 300,
    });
    const table = app.table({
      caption: "matrices in the whole model, and their parameters for k = 128 and L = 512",
      columns: ["how E and F are shared", "matrices", "parameters"],
    });
    app.knob("sharing", { as: "select" });
    app.knobsOf("N", "h");
    const question = app.ask({
      name: "headwise",
      question:
        "Twelve layers of twelve heads have 288 matrices: an E and an F for each head. Now all heads of a layer share the same E and the same F. How many matrices are left?",
      number: { hint: "Each layer keeps one E and one F." },
      unit: "matrices",
      near: 0,
      locks: ["sharing"],
      truth: (numbers) => numbers.counts[1],
      then: { sharing: "headwise", N: 12, h: 12 },
      because: "There is one E and one F in each of the twelve layers: 2 · 12 = 24.",
    });

    return (state, numbers) => {
      const { cells } = numbers;
      const count = numbers.counts[names.indexOf(state.sharing)];
      const few = state.N * state.h <= 24;
      matrix.show({
        title: `${ways[state.sharing]}: cells with the same number${few ? "" : " and shade"} share a matrix`,
        label: `${state.N} layers of ${state.h} heads; each row has an E and an F for each head`,
        rows: state.N,
        columns: 2 * state.h,
        values: (n, c) => SHADES[cells[n][c] % SHADES.length],
        most: 1,
        text: (n, c) => String(cells[n][c] + 1),
        rowHeads: tf.range(state.N, (n) => String(n + 1)),
        columnHeads: tf.range(2 * state.h, (c) => (c < state.h ? "E" : "F")),
      });
      table.show(
        names.map((name, n) => {
          const many = numbers.counts[n];
          const told = n === 1 && question.open ? "?" : tf.count(many);
          const all = n === 1 && question.open ? "?" : tf.count(many * 128 * 512);
          return {
            head: ways[name],
            cells: [told, all],
          };
        }),
      );
      app.read({
        "matrices now": tf.count(count),
        "times each matrix is used": tf.fixed((2 * state.N * state.h) / count, 0),
      });
      app.say(
        `${ways[state.sharing]}: ${tf.count(count)} ${count === 1 ? "matrix" : "matrices"} for ${state.N * state.h} heads.`,
      );
    };
  },
});
