// Every head of every layer has an E (upper dot) and an F (lower dot); wires lead from dots to the matrix they share.
const { ways } = tf.data;
const names = Object.keys(ways);
const ofCell = {
  none: (n, c, h) => 2 * h * n + c,
  headwise: (n, c, h) => 2 * n + Math.floor(c / h),
  "key-value": (n) => n,
  layerwise: () => 0,
};
const counts = (N, h) => [2 * N * h, 2 * N, N, 1];
const LANE = 0.2; // above and below the middle of a layer

// Wires and matrices for a way of sharing, in heads across and layers down.
function wiring(sharing, N, h) {
  const place = (n, c) => [c % h, (c < h ? LANE : -LANE) - n];
  if (sharing === "none") {
    const all = tf.range(2 * N * h, (k) => place(Math.floor(k / (2 * h)), k % (2 * h)));
    return {
      wires: all.map(([x, y]) => [
        [x, y],
        [x + 0.32, y],
      ]),
      ends: all.map(([x, y]) => [x + 0.32, y]),
    };
  }
  const lanes = tf.range(N, (n) => [LANE, -LANE].map((y) => y - n));
  const [join, end] = [h - 0.3, h + 0.4];
  const across = (y, x) => [
    [0, y],
    [x, y],
  ];
  if (sharing === "headwise") {
    const ends = lanes.flat().map((y) => [end, y]);
    return { wires: lanes.flat().map((y) => across(y, end)), ends };
  }
  const joined = lanes.flatMap(([e, f]) => [[...across(e, join), [join, f], [0, f]]]);
  const middles = tf.range(N, (n) => [
    [join, -n],
    [end, -n],
  ]);
  if (sharing === "key-value")
    return { wires: [...joined, ...middles], ends: middles.map(([, at]) => at) };
  const trunk = [
    [join, lanes[0][0]],
    [join, lanes[N - 1][1]],
  ];
  const middle = [
    [join, -(N - 1) / 2],
    [end, -(N - 1) / 2],
  ];
  return { wires: [...lanes.flat().map((y) => across(y, join)), trunk, middle], ends: [middle[1]] };
}

export default tf.explorer({
  numbers({ sharing, N, h }) {
    const cells = tf.range(N, (n) => tf.range(2 * h, (c) => ofCell[sharing](n, c, h)));
    return { cells, counts: counts(N, h) };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.55, 260, 340) });
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
      guards: ["sharing"],
      truth: (numbers) => numbers.counts[1],
      then: { sharing: "headwise", N: 12, h: 12 },
      because: "There is one E and one F in each of the twelve layers: 2 · 12 = 24.",
    });

    return (state, numbers) => {
      const count = numbers.counts[names.indexOf(state.sharing)];
      const { N, h } = state;
      const small = plane.width < 480;
      // half of a square, across and down: some pixels, in heads and in layers
      const half = small ? 3 : 5;
      const [across, down] = [
        (half * (h + 1.1)) / (plane.width - 80),
        Math.min(0.14, (half * N) / plane.height),
      ];
      const { wires, ends } = wiring(state.sharing, N, h);
      const dots = (y) => tf.range(N * h, (k) => [k % h, y - Math.floor(k / h)]);
      plane.show({
        title: `${ways[state.sharing]}: E (upper dot) and F of each head, wired to their matrix (square)`,
        label: `${N} layers of ${h} heads with an E and an F each, wired to ${tf.count(count)} ${count === 1 ? "matrix" : "matrices"}`,
        hover: false,
        x: { from: -0.5, to: h + 0.6, bare: true },
        y: { names: tf.range(N, (n) => `layer ${N - n}`), from: -0.5, to: N - 0.5 },
        marks: [
          wires.map((line) => ({
            line: line.map(([x, y]) => [x, y + N - 1]),
            colour: "attention",
            wide: 1.25,
          })),
          { points: dots(N - 1 + LANE), colour: "key", size: small ? 2 : 3, name: "E" },
          { points: dots(N - 1 - LANE), colour: "value", size: small ? 2 : 3, name: "F" },
          ends.map(([x, y]) => ({
            shape: tf.box(x - across, x + across, y + N - 1 - down, y + N - 1 + down),
            colour: "attention",
            strength: 1,
          })),
        ],
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
        `${ways[state.sharing]}: ${tf.count(count)} ${count === 1 ? "matrix" : "matrices"} for ${N * h} ${N * h === 1 ? "head" : "heads"}.`,
      );
    };
  },
});
