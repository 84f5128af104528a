// (softmax(Q K̃ᵀ/√d) + S) (softmax(Q̃ K̃ᵀ/√d) + I)⁻¹ softmax(Q̃ Kᵀ/√d), with and without S.
const { heads, text, counts } = tf.data;
const L = text.length;
const letters = [...text].map((x) => (x === " " ? "␣" : x));
const softmaxRows = (Q, K) =>
  Q.map((q) => Array.from(tf.softmax(K.map((k) => tf.dot(q, k) / Math.sqrt(q.length)))));
const mean = (rows) => rows[0].map((_, c) => tf.mean(rows.map((row) => row[c])));
const landmarks = (X, m) => {
  const wide = L / m;
  return tf.range(m, (c) => mean(X.slice(c * wide, (c + 1) * wide)));
};
const times = (A, B) => {
  const columns = B[0].map((_, c) => B.map((row) => row[c]));
  return A.map((row) => columns.map((column) => tf.dot(row, column)));
};
// the X with G X = B, by elimination, the largest number of a column first
const solved = (G, B) => {
  const rows = G.map((row, i) => [...row, ...B[i]]);
  const m = rows.length;
  tf.range(m, (c) => {
    const best = tf
      .range(m - c, (r) => c + r)
      .reduce((a, b) => (Math.abs(rows[b][c]) > Math.abs(rows[a][c]) ? b : a));
    [rows[c], rows[best]] = [rows[best], rows[c]];
    const pivot = rows[c][c];
    rows[c] = rows[c].map((x) => x / pivot);
    rows.forEach((row, r) => {
      if (r !== c) rows[r] = row.map((x, j) => x - row[c] * rows[c][j]);
    });
  });
  return rows.map((row) => row.slice(m));
};
const missed = (A, other) => {
  const square = (of) => tf.sum(A.map((row, i) => tf.sum(row.map((x, j) => of(x, i, j) ** 2))));
  return Math.sqrt(square((x, i, j) => x - other[i][j]) / square((x) => x));
};
const rebuilt = (Q, K, m, withE) => {
  const [Qm, Km] = [landmarks(Q, m), landmarks(K, m)];
  const wide = L / m;
  const looks = softmaxRows(Q, Km);
  const left = looks.map((row, i) =>
    row.map((x, c) => x + (withE && c === Math.floor(i / wide) ? 1 : 0)),
  );
  const middle = softmaxRows(Qm, Km).map((row, i) => row.map((x, j) => x + (i === j ? 1 : 0)));
  return times(left, solved(middle, softmaxRows(Qm, K)));
};
const all = tf.keep((layer) => {
  const { Q, K } = heads[layer - 1];
  const A = softmaxRows(Q, K);
  const maps = {
    without: counts.map((m) => rebuilt(Q, K, m, false)),
    with: counts.map((m) => rebuilt(Q, K, m, true)),
  };
  return { A, maps, errors: (way) => maps[way].map((other) => missed(A, other)) };
}, 2);
const names = { without: "without S", with: "with S" };

export default tf.explorer({
  numbers({ way, m, layer }) {
    const { A, maps, errors } = all(layer);
    const map = maps[way][counts.indexOf(m)];
    return {
      A,
      map,
      sums: map.map((row) => tf.sum(row)),
      without: errors("without"),
      with: errors("with"),
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const axes = ["query", "key"];
    const truth = app.matrix({ axes, tall: 280, into: both });
    const product = app.matrix({ axes, tall: 280, into: both });
    const lower = app.split("1fr 1fr");
    const height = (width) => tf.clamp(width * 0.5, 180, 220);
    const sums = app.plane({ height, into: lower, lead: true });
    const plane = app.plane({ height, into: lower });
    app.formula("{product:𝐀} = ({left:𝐂_q} + {own:𝐒}) ({middle:𝐌 + 𝐈})⁻¹ {right:𝐂_k}");
    app.knobsOf("way", "m", "layer");
    const question = app.ask({
      name: "sums",
      question:
        "With S, every row of the map sums to 1, as the bars show. What does each row sum to without S? Set the line.",
      about: sums,
      ghost: {
        first: 0.9,
        at: (sum) => [L / 2, sum],
        to: (_, y) => tf.clamp(Math.round(20 * y) / 20, 0, 1.2),
        by: [0, 0.05],
        draw: (sum) => ({ rule: { y: sum }, colour: "key", dash: "6 4" }),
        label: "what each row sums to without S",
      },
      format: (sum) => tf.fixed(sum, 2),
      near: 0.06,
      hides: ["without"],
      guards: ["way"],
      truth: () => 0.5,
      then: { way: "without", m: 8, layer: 1 },
      because:
        "$𝐌 + 𝐈$ doubles a column of ones, so its inverse halves it. The rows of $𝐂_q$ sum to 1, which leaves one half; those of $𝐂_q + 𝐒$ sum to 2, which gives 1 again.",
    });

    return (state, numbers) => {
      const { A } = numbers;
      const strongest = Math.max(...A.flat());
      const at = counts.indexOf(state.m);
      const error = tf.percent(numbers[state.way][at], 0);
      const shared = { columnHeads: letters, rows: L, most: strongest, signed: true };
      truth.show({
        title: "the true map, L × L",
        label: `Layer ${state.layer}: weights of ${L} queries over ${L} keys`,
        values: A,
        ...shared,
      });
      product.show({
        title: `CSALR ${names[state.way]}, m = ${state.m}`,
        label: `Map of CSALR ${names[state.way]}, with ${state.m} landmarks`,
        values: numbers.map,
        ...shared,
      });
      sums.show({
        title: "sum of each row",
        label: `The rows of the map ${names[state.way]} sum to ${tf.fixed(tf.mean(numbers.sums), 2)}`,
        x: { label: "query", from: -0.5, to: L - 0.5, whole: true, ticks: [0, L - 1] },
        y: { from: 0, to: 1.2, ticks: [0, 0.5, 1] },
        marks: [{ bars: numbers.sums, start: 0, colour: "attention", term: "product" }],
      });
      plane.show({
        title: "error of the map, by number of landmarks",
        label: `With ${state.m} landmarks, CSALR ${names[state.way]} has an error of ${error}`,
        x: { label: "landmarks m", from: counts[0], to: L, log: true, ticks: counts },
        y: {
          from: 0,
          to: Math.max(1, ...numbers.with, ...numbers.without),
          ticks: [0, 0.5, 1],
          format: (y) => tf.percent(y, 0),
        },
        marks: [
          {
            line: counts.map((m, n) => [m, numbers.with[n]]),
            colour: "attention",
            wide: 2.5,
            dots: true,
            name: "with S",
            term: "own",
          },
          {
            line: counts.map((m, n) => [m, numbers.without[n]]),
            colour: "muted",
            dots: true,
            name: "without S",
            part: "without",
          },
          {
            handle: [state.m, numbers[state.way][at]],
            knob: "m",
            text: `m = ${state.m}`,
            to: (x) => ({ m: app.snap("m", x) }),
          },
        ],
      });
      app.read({
        "error of the map": error,
        "each row sums to": tf.fixed(tf.mean(numbers.sums), 2),
        "smallest entry": tf.fixed(Math.min(...numbers.map.flat()), 3),
      });
      app.say(
        `CSALR ${names[state.way]}, ${state.m} landmarks: the rows sum to ${tf.fixed(tf.mean(numbers.sums), 2)}, and the error of the map is ${error}.`,
      );
    };
  },
});
