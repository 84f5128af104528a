// Σ_j (A_ij − T_ij)² of each row, and its floor: 0 where the key asked for is visible, else [asked] + 1/n.
const OWN = 3;
const shifts = { same: 0, next: 1, previous: -1 };
const keyOf = (pattern, i) => (pattern === "first" ? 0 : i + shifts[pattern]);
const sees = (causal, i, j) => !causal || j <= i;

export default tf.explorer({
  numbers({ pattern, causal, L, learned }) {
    const all = tf.range(L);
    const T = all.map((i) => all.map((j) => (keyOf(pattern, i) === j ? 1 : 0)));
    const rows = all.map((i) => {
      const seen = all.filter((j) => sees(causal, i, j));
      const start = tf.softmax(seen.map((j) => (j === i ? OWN : 0)));
      const asked = tf.sum(T[i]);
      const reached = seen.some((j) => T[i][j]);
      const best = (j) => (reached ? T[i][j] : 1 / seen.length);
      const A = all.map((j) =>
        seen.includes(j) ? (1 - learned) * start[seen.indexOf(j)] + learned * best(j) : 0,
      );
      const distance = tf.sum(all.map((j) => (A[j] - T[i][j]) ** 2));
      return { A, distance, floor: reached ? 0 : asked + 1 / seen.length };
    });
    return {
      T,
      A: rows.map((row) => row.A),
      rows: rows.map((row) => row.distance),
      floors: rows.map((row) => row.floor),
      loss: tf.sum(rows.map((row) => row.distance)) / L ** 2,
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.36, 200, 250), lead: true });
    const both = app.split("1fr 1fr", { keep: 2 });
    const axes = ["query", "key"];
    const target = app.matrix({ axes, tall: 220, into: both });
    const map = app.matrix({ axes, tall: 220, into: both });
    app.formula("loss of a row  =  Σⱼ ({map:A} − {target:T})²,   {floor:floor}: its least value");
    app.knob("pattern", { as: "select" });
    app.knob("causal");
    app.knobsOf("L", "learned");
    const question = app.ask({
      name: "floor",
      question:
        "Token 0 has no previous token, so its row of the target is empty. But its six weights must still sum to 1. If the head learns further, how low can the loss of row 0 get?",
      about: plane,
      ghost: {
        first: 0.5,
        at: (y) => [0, y],
        to: (_, y) => tf.clamp(Math.round(y * 24) / 24, 0, 1),
        by: ([x, y], [right, up]) => [x, y + (up || right) / 24],
        label: "least loss of row 0",
      },
      near: 0.05,
      format: (y) => tf.fixed(y, 2),
      hides: ["floor", "least loss of row 0"],
      guards: ["learned"],
      truth: (numbers) => numbers.floors[0],
      then: { pattern: "previous", causal: false, L: 6, learned: 1 },
      because:
        "If six weights sum to 1, the sum of their squares is least when all are equal: 6 · (1/6)² = 1/6. No training can remove this loss, and once it is reached, it has no gradient.",
    });

    return (state, numbers) => {
      const { L } = state;
      const low = numbers.floors.filter((x) => x > 0).length;
      plane.show({
        title: "loss of each row (bars), and the least that any weights can reach (lines)",
        label: `Loss of each row: ${numbers.rows.map((x) => tf.fixed(x, 2)).join(", ")}`,
        x: { label: "query", from: -0.6, to: L - 0.4, whole: true },
        y: {
          from: 0,
          to: Math.max(state.causal ? 2.1 : 1.1, ...numbers.rows),
          ticks: [0, 0.5, 1, 1.5, 2],
        },
        marks: [
          { bars: numbers.rows, start: 0, colour: "attention", term: "map" },
          numbers.floors.map((y, i) => ({
            line: [
              [i - 0.42, y],
              [i + 0.42, y],
            ],
            colour: "query",
            wide: 3,
            part: "floor",
            term: "floor",
          })),
        ],
      });
      target.show({
        title: `target T: the ${state.pattern} token`,
        label: `The target: a 1 at the key that each query is asked to look at`,
        rows: L,
        values: numbers.T,
        most: 1,
        text: (i, j) => (numbers.T[i][j] ? "1" : ""),
        marks: [{ cells: [], term: "target" }],
      });
      map.show({
        title: "map A of the head",
        label: `The weights of the head, ${tf.percent(state.learned, 0)} of the way to the best map`,
        rows: L,
        values: numbers.A.map((row, i) =>
          row.map((x, j) => (sees(state.causal, i, j) ? x : Number.NaN)),
        ),
        most: 1,
        text: () => "",
      });
      app.read({
        "loss of this head (mean over all pairs)": tf.fixed(numbers.loss, 4),
        "rows that can never match T": String(low),
        "least loss of row 0": tf.fixed(numbers.floors[0], 2),
      });
      app.say(
        `Pattern “${state.pattern} token”${state.causal ? " under a causal mask" : ""}: ${low} of ${L} rows can never match the target; the loss of this head is ${tf.fixed(numbers.loss, 4)}.`,
      );
    };
  },
});
