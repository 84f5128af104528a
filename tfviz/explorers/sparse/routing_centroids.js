// Routing in the plane: centroids follow the directions of their queries and keys, as in the library.
const { Q, K, start, loud } = tf.data;
const L = Q.length;
const unit = (x) => x.map((u) => u / tf.norm(x));
const full = Q.map((q) => tf.softmax(K.map((key) => tf.dot(q, key) / Math.SQRT2)));
const clusters = (X, mu) => X.map((x) => tf.best(mu.map((c) => tf.dot(unit(x), c))));

// n ← λ n + (1 − λ) N,   μ ← (λ n μ + (1 − λ) Σ x̂) / n; who has no member stays
const after = tf.keep((step, k, decay) => {
  if (step === 0) return { mu: start.slice(0, k), count: tf.range(k, () => 1) };
  const { mu, count } = after(step - 1, k, decay);
  const X = [...Q, ...K];
  const at = clusters(X, mu);
  const mine = tf.range(k, (c) => X.filter((_, n) => at[n] === c).map(unit));
  const now = count.map((n, c) => decay * n + (1 - decay) * mine[c].length);
  const moved = mu.map((m, c) => {
    const sum = (a) => tf.sum(mine[c].map((x) => x[a]));
    const follow = (u, a) => (decay * count[c] * u + (1 - decay) * sum(a)) / now[c];
    return mine[c].length ? m.map(follow) : m;
  });
  return { mu: moved, count: now };
});

// who belongs to each centroid: all that are nearest to it, or the L/k that are nearest
function taken(X, mu, even) {
  const at = clusters(X, mu);
  return mu.map((c, n) => {
    if (!even) return tf.range(L).filter((j) => at[j] === n);
    const near = X.map((x) => tf.dot(unit(x), c));
    const nearest = tf.range(L).sort((a, b) => near[b] - near[a]);
    return nearest.slice(0, Math.floor(L / mu.length));
  });
}

const routed = tf.keep((step, k, decay, even) => {
  const { mu } = after(step, k, decay);
  const [mine, theirs] = [taken(Q, mu, even), taken(K, mu, even)];
  const meet = (i, j) => mu.some((_, c) => mine[c].includes(i) && theirs[c].includes(j));
  return { mu, queries: clusters(Q, mu), keys: clusters(K, mu), meet };
});
const keysOf = ({ length }) => `${length} key${length === 1 ? "" : "s"}`;
const use = ({ step, k, decay, even }) => routed(step, k, decay, even);

export default tf.explorer({
  numbers(state) {
    const { mu, queries, keys, meet } = use(state);
    const kept = tf.range(L, (i) => tf.range(L).filter((j) => meet(i, j)));
    return {
      mu,
      queries,
      keys,
      meets: kept[state.query],
      pairs: tf.sum(kept.map((row) => row.length)) / (L * L),
      mass: tf.sum(kept.flatMap((row, i) => row.map((j) => full[i][j]))) / L,
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.9, 250, 350), into: both });
    let at = (i) => i; // the query in a row of the matrix
    const matrix = app.matrix({ pick: (i) => app.set({ query: at(i) }), tall: 350, into: both });
    app.formula(
      "{near:nearest centroid: argmax 𝐱̂ · μ_c}; {meet:i and j meet if one centroid takes both}",
    );
    app.motion("step", { every: 700 });
    app.knobsOf("k", "decay", "even", "query");
    const question = app.ask({
      name: "mass",
      question:
        "Four centroids begin side by side. After 12 steps, what share of the attention will lie on pairs that meet?",
      ruler: { low: 0, high: 100 },
      format: (x) => tf.percent(x / 100, 1),
      near: 8,
      truth: (numbers) => 100 * numbers.mass,
      then: { step: 12, k: 4, decay: 0.8, even: true },
      because:
        "Each centroid now stands in a group of its own, and most of the weight lies within these groups.",
    });

    return (state, numbers) => {
      const { meet } = use(state);
      const order = (own) => tf.range(L).sort((a, b) => own[a] - own[b] || a - b);
      const [rows, columns] = [order(numbers.queries), order(numbers.keys)];
      at = (i) => rows[i];
      const mine = numbers.queries[state.query];
      const percent = (x) => question.tell(tf.percent(x, 1));
      plane.show({
        title: "numbers: queries; dots: keys; arrows: centroids (thick: nearest to query i)",
        label: `Query ${state.query} is nearest to centroid ${mine} and meets ${keysOf(numbers.meets)}`,
        x: { from: -1.6, to: 1.6, bare: true },
        y: { from: -1.6, to: 1.6, bare: true },
        square: true,
        marks: [
          numbers.mu.map((c, m) => ({
            arrow: [[0, 0], c],
            term: "near",
            ...(m === mine ? { colour: "attention", wide: 4 } : { wide: 2 }),
          })),
          { points: K.map(unit), colour: "key", name: "keys" },
          {
            points: numbers.meets.map((j) => unit(K[j]).map((u) => u * 1.12)),
            colour: "attention",
            name: "keys that the query meets",
            term: "meet",
          },
          // the names stand outside the circle, on three rings so that neighbours do not overlap
          Q.map((x, i) => ({
            text: String(i),
            colour: "query",
            bold: i === state.query,
            at: unit(x).map((u) => u * [1.24, 1.38, 1.52][i % 3]),
          })),
        ],
      });
      const row = rows.indexOf(state.query);
      const weight = (i, j) => (meet(i, j) ? full[i][j] : Number.NaN);
      matrix.show({
        title: "weights of full attention for pairs that meet, sorted by centroid",
        label: `Row of query ${state.query}; arrow keys move it`,
        rows: L,
        values: (i, j) => weight(rows[i], columns[j]),
        most: 0.5,
        row,
        rowHeads: rows.map(String),
        columnHeads: columns.map(String),
        marks: [{ cells: numbers.meets.map((j) => [row, columns.indexOf(j)]), term: "meet" }],
      });
      app.read({
        "pairs that meet": percent(numbers.pairs),
        "attention kept": percent(numbers.mass),
        "query i meets": keysOf(numbers.meets),
      });
      const clustersText = question.open
        ? ""
        : `: ${percent(numbers.pairs)} of the pairs meet and keep ${percent(numbers.mass)} of the attention`;
      app.say(
        `After ${state.step} step${state.step === 1 ? "" : "s"} with ${state.k} centroids${clustersText}.`,
      );
    };
  },
});
