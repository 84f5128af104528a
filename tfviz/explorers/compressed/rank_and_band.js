// A band of the map itself, and outside of it a matrix of rank r as two stored factors.
const { heads, text, ranks, diagonals } = tf.data;
const L = text.length;
const letters = [...text].map((x) => (x === " " ? "␣" : x));
const order = ["near", "far"];
const names = { near: "a head that looks at its neighbour", far: "a head that looks wider" };
const product = ({ left, right }) =>
  left.map((row) => right[0].map((_, j) => tf.sum(row.map((x, n) => x * right[n][j]))));
const fitted = (head, r, n) => {
  const { A, fits } = heads[order.indexOf(head)];
  const R = r ? product(fits[r][diagonals.indexOf(n)]) : A.map((row) => row.map(() => 0));
  return A.map((row, i) => row.map((x, j) => (2 * Math.abs(i - j) < n ? x : R[i][j])));
};
const missed = (A, other) => {
  const square = (of) => tf.sum(A.map((row, i) => tf.sum(row.map((x, j) => of(x, i, j) ** 2))));
  return Math.sqrt(square((x, i, j) => x - other[i][j]) / square((x) => x));
};
const surface = tf.keep((head) => {
  const { A } = heads[order.indexOf(head)];
  return ranks.map((r) => diagonals.map((n) => missed(A, fitted(head, r, n))));
}, 2);
const RANK = 4;
const BAND = 3;
const alone = surface("near")[ranks.indexOf(RANK)][0];

export default tf.explorer({
  numbers({ head, rank, diagonals: n }) {
    return {
      A: heads[order.indexOf(head)].A,
      fit: fitted(head, rank, n),
      missed: surface(head),
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const axes = ["query", "key"];
    const truth = app.matrix({ axes, tall: 280, into: both });
    const sum = app.matrix({ axes, tall: 280, into: both });
    const height = (width) => tf.clamp(width * 0.4, 190, 240);
    const plane = app.plane({ height, lead: true });
    app.formula("{true:𝐀} ≈ {low:𝐓} + {band:𝐃}");
    app.knobsOf("rank", "diagonals", "head");
    app.ask({
      name: "missed",
      question: `A matrix of rank ${RANK} alone misses ${tf.percent(alone, 0)} of this map. With a band of ${BAND} diagonals added, how much is missed? Set the line.`,
      about: plane,
      ghost: {
        first: 0.5,
        at: (y) => [BAND, y],
        to: (_, y) => tf.clamp(Math.round(20 * y) / 20, 0, 1),
        by: [0, 0.05],
        draw: (y) => ({ rule: { y }, colour: "key", dash: "6 4" }),
        label: `what rank ${RANK} and ${BAND} diagonals miss`,
      },
      format: (y) => tf.percent(y, 0),
      near: 0.06,
      hides: ["lines"],
      guards: ["rank", "diagonals", "head"],
      truth: () => surface("near")[ranks.indexOf(RANK)][diagonals.indexOf(BAND)],
      then: { rank: RANK, diagonals: BAND, head: "near" },
      because:
        "This head looks at the next character. A diagonal has full rank, so a matrix of low rank captures little of it, and a band captures all of it.",
    });

    return (state, numbers) => {
      const { A, fit } = numbers;
      const strongest = Math.max(...A.flat());
      const row = ranks.indexOf(state.rank);
      const error = numbers.missed[row][diagonals.indexOf(state.diagonals)];
      const percent = tf.percent(error, 0);
      const band = state.diagonals
        ? `${state.diagonals} diagonal${state.diagonals > 1 ? "s" : ""}`
        : "no band";
      const shared = { columnHeads: letters, rows: L, most: strongest, signed: true };
      truth.show({
        title: "the true map, L × L",
        label: `Weights of ${L} queries over ${L} keys, ${names[state.head]}`,
        values: A,
        ...shared,
      });
      sum.show({
        title: `rank ${state.rank} + ${band}`,
        label: `The sum of a matrix of rank ${state.rank} and ${band}`,
        values: fit,
        ...shared,
      });
      plane.show({
        title: "share of the map missed, by diagonals in the band",
        label: `Rank ${state.rank} and ${band} miss ${percent} of the map`,
        x: { label: "diagonals", from: 0, to: 9, ticks: diagonals },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1], format: (y) => tf.percent(y, 0) },
        marks: [
          ranks.map((r, at) => ({
            line: diagonals.map((n, c) => [n, numbers.missed[at][c]]),
            colour: at === row ? "attention" : "muted",
            wide: at === row ? 2.5 : 1,
            dots: true,
            name: `rank ${r}`,
            part: "lines",
          })),
          { points: ranks.map((_, at) => [0, numbers.missed[at][0]]), colour: "muted" },
          {
            handle: [state.diagonals, error],
            knob: "diagonals",
            text: `missed: ${percent}`,
            to: (x) => ({ diagonals: app.snap("diagonals", x) }),
          },
        ],
      });
      app.read({
        "missed of the map": percent,
        "numbers stored": `${tf.count(numbersOf(state))} (map: ${tf.count(L * L)})`,
      });
      app.say(`Rank ${state.rank} and ${band} miss ${percent} of the map of ${names[state.head]}.`);
    };
  },
});

// two factors of L numbers for each rank, and the entries of the diagonals
const numbersOf = ({ rank, diagonals: n }) => {
  const w = (n - 1) / 2;
  return 2 * L * rank + (n ? n * L - w * (w + 1) : 0);
};
