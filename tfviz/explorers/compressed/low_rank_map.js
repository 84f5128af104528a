// A trained map and two of rank k: by singular values, and softmax(Q (E K)ᵀ/√d) E with mean pooling.
const { heads, ranks, text } = tf.data;
const L = text.length;
const letters = [...text].map((x) => (x === " " ? "␣" : x));
const softmaxRows = (Q, K) =>
  Q.map((q) => Array.from(tf.softmax(K.map((k) => tf.dot(q, k) / Math.sqrt(q.length)))));
const mean = (rows) => rows[0].map((_, c) => tf.mean(rows.map((row) => row[c])));
const pooled = (Q, K, k) => {
  const wide = L / k;
  const few = tf.range(k, (c) => mean(K.slice(c * wide, (c + 1) * wide)));
  const P = softmaxRows(Q, few);
  return P.map((row) => tf.range(L, (j) => row[Math.floor(j / wide)] / wide));
};
const best = ({ U, S, V }, k) =>
  tf.range(L, (i) =>
    tf.range(L, (j) => tf.sum(tf.range(k, (r) => U[i * L + r] * S[r] * V[j * L + r]))),
  );
const missed = (A, other) => {
  const square = (at) => tf.sum(tf.range(L * L, (n) => at(Math.floor(n / L), n % L) ** 2));
  return Math.sqrt(square((i, j) => A[i][j] - other[i][j]) / square((i, j) => A[i][j]));
};
const all = tf.keep((layer) => {
  const { Q, K } = heads[layer - 1];
  const A = softmaxRows(Q, K);
  const parts = tf.svd(Float64Array.from(A.flat()), L, L);
  const maps = {
    best: ranks.map((k) => best(parts, k)),
    mean: ranks.map((k) => pooled(Q, K, k)),
  };
  return { A, maps, errors: (way) => maps[way].map((other) => missed(A, other)) };
}, 2);
const names = {
  best: (k) => `the best matrix of rank ${k}`,
  mean: (k) => `mean pooling, k = ${k}`,
};

export default tf.explorer({
  numbers({ k, way, layer }) {
    const { A, maps, errors } = all(layer);
    const beside = maps[way][ranks.indexOf(k)];
    return { A, beside, best: errors("best"), mean: errors("mean") };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const axes = ["query", "key"];
    const left = app.matrix({ axes, tall: 300, into: both });
    const right = app.matrix({ axes, tall: 300, into: both });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.35, 190, 240), lead: true });
    app.formula(
      "best:  {few:k singular values};   Linformer:  softmax(𝐐 ({mix:𝐄} 𝐊)ᵀ/√dₕ) {mix:𝐄}",
    );
    app.knobsOf("k", "way", "layer");
    const question = app.ask({
      name: "diagonal",
      question: `This head looks at the next character, so its map is nearly a diagonal. The best matrix of rank 4 misses ${tf.percent(all(2).errors("best")[2], 0)} of it. What share does the best matrix of rank 16 miss, half of the full rank?`,
      about: plane,
      ruler: { low: 0, high: 100 },
      format: (x) => tf.percent(x / 100, 0),
      near: 8,
      hides: ["lines", "mean pooling misses"],
      guards: ["k", "way", "layer"],
      truth: (numbers) => 100 * numbers.best[ranks.indexOf(16)],
      then: { k: 16, way: "best", layer: 2 },
      because:
        "A diagonal has full rank: 32 parts of equal size, of which each further rank adds one. Half of them leave half of the sum of squares, and the root of a half is 71 %.",
    });

    return (state, numbers) => {
      const { A, beside } = numbers;
      const most = Math.max(...A.flat());
      const at = ranks.indexOf(state.k);
      const heads = { columnHeads: letters };
      left.show({
        title: "the true map, L × L",
        label: `Layer ${state.layer}: weights of 32 queries over 32 keys, the largest ${tf.fixed(most, 2)}`,
        rows: L,
        values: A,
        most,
        ...heads,
      });
      right.show({
        title: names[state.way](state.k),
        label: `The map beside it: ${names[state.way](state.k)}`,
        rows: L,
        values: beside,
        most,
        signed: state.way === "best",
        ...heads,
      });
      const [good, even] = [numbers.best[at], numbers.mean[at]].map((x) => tf.percent(x, 0));
      plane.show({
        title: "what a matrix of rank k misses, as a share of the true map's size",
        label: `At rank ${state.k} the best matrix misses ${good}${question.open ? "" : `, mean pooling ${even}`}`,
        x: { label: "k", from: 1, to: L, log: true, ticks: ranks },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
        marks: [
          { points: [[4, numbers.best[ranks.indexOf(4)]]], colour: "muted" },
          {
            line: ranks.map((k, n) => [k, numbers.best[n]]),
            colour: "muted",
            dots: true,
            name: "best matrix",
            part: "lines",
            term: "few",
          },
          {
            line: ranks.map((k, n) => [k, numbers.mean[n]]),
            colour: "attention",
            dots: true,
            wide: 2.5,
            name: "mean pooling",
            part: "lines",
            term: "mix",
          },
          {
            handle: [state.k, numbers[state.way][at]],
            knob: "k",
            text: `k = ${state.k}`,
            to: (x) => ({ k: app.snap("k", x) }),
          },
        ],
      });
      app.read({
        "best matrix misses": good,
        "mean pooling misses": even,
        "numbers in two factors": `${tf.count(2 * L * state.k)} instead of ${tf.count(L * L)}`,
      });
      const evenText = question.open ? "" : `, mean pooling ${even}`;
      app.say(`With k = ${state.k} of ${L}, the best matrix misses ${good} of the map${evenText}.`);
    };
  },
});
