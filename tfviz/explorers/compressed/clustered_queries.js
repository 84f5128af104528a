// Queries in the plane, put into clusters by Lloyd's algorithm; every query of a cluster gets the row of
// its centroid, and improved rows share the weight of the centroid's k best keys anew.
const { queries, keys, reach, moved } = tf.data;
const L = queries.length;
const STEPS = 10;
const mean = (rows) => [0, 1].map((a) => tf.mean(rows.map((row) => row[a])));
const of = ({ x, y }) => queries.map((q, i) => (i === moved ? [x, y] : q));
const members = (cluster, c) => tf.range(L).filter((i) => cluster[i] === c);

function lloyd(Q, C) {
  let mu = tf.range(C, (c) => Q[Math.floor((c * L) / C)]);
  let cluster = [];
  for (let step = 0; step < STEPS; step += 1) {
    cluster = Q.map((q) => tf.best(mu.map((m) => tf.dot(q, m) - tf.dot(m, m) / 2)));
    const mine = mu.map((_, c) => members(cluster, c));
    mu = mu.map((m, c) => (mine[c].length ? mean(mine[c].map((i) => Q[i])) : m));
  }
  return cluster;
}

const said = (place) => `(${place.map((c) => tf.fixed(c, 1)).join(", ")})`;
const scores = (q) => keys.map((key) => tf.dot(q, key) / Math.SQRT2);
const weights = (q) => Array.from(tf.softmax(scores(q)));
const byWeight = (row) => tf.range(L).sort((a, b) => row[b] - row[a] || a - b);
const missed = (A, other) =>
  A.map((row, i) => tf.sum(row.map((a, j) => Math.abs(a - other[i][j]))));

function improved(q, shared, k) {
  if (k === 0) return shared;
  const best = byWeight(shared).slice(0, k);
  const mass = tf.sum(best.map((j) => shared[j]));
  const own = tf.softmax(best.map((j) => scores(q)[j]));
  return shared.map((a, j) => (best.includes(j) ? mass * own[best.indexOf(j)] : a));
}

export default tf.explorer({
  numbers(state) {
    const Q = of(state);
    const cluster = lloyd(Q, state.C);
    const used = [...new Set(cluster)].sort((a, b) => a - b);
    const centre = (c) => mean(members(cluster, c).map((i) => Q[i]));
    const truth = Q.map(weights);
    const clustered = cluster.map((c) => weights(centre(c)));
    const better = Q.map((q, i) => improved(q, clustered[i], state.k));
    return {
      cluster,
      centroids: used.map(centre),
      true: truth,
      clustered,
      improved: better,
      "clustered misses": missed(clustered, truth),
      "improved misses": missed(better, truth),
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const plane = app.plane({
      height: (width) => tf.clamp(width * 0.9, 280, 340),
      into: both,
      lead: true,
    });
    const bars = app.plane({ height: (width) => tf.clamp(width * 0.6, 200, 340), into: both });
    const three = app.split("1fr 1fr 1fr", { keep: 3 });
    const axes = ["query", "key"];
    const maps = ["true", "clustered", "improved"].map(() =>
      app.matrix({ axes, bare: true, tall: 220, into: three, lead: false }),
    );
    app.formula(
      "one row for each cluster: softmax({centre:𝐪}ᶜ 𝐊ᵀ/√dₕ);  improved on its {best:k best keys}",
    );
    app.knobsOf("C", "k", "x", "y");
    app.ask({
      name: "centroid",
      question: `Queries 0 to ${moved} form one cluster. They share one row of weights, that of a point which is hidden. Where is this point?`,
      about: plane,
      ghost: {
        first: [0.5, 0],
        at: (place) => place,
        to: (x, y) => [x, y].map((c) => Math.round(10 * tf.clamp(c, -reach, reach)) / 10),
        draw: (place) => ({ points: [place], size: 6, colour: "ink" }),
        by: [0.1, 0.1],
        label: "the point whose row is shared",
      },
      format: said,
      near: 0.3,
      hides: ["centroid", "centroid of query 0"],
      guards: [],
      truth: (numbers) => numbers.centroids[0],
      then: { C: 2, x: app.first.x, y: app.first.y },
      because: `It is the mean of the four, their centroid. Query ${moved} is farthest from it, and its true row differs most from the shared one.`,
    });

    return (state, numbers) => {
      const Q = of(state);
      const used = [...new Set(numbers.cluster)].sort((a, b) => a - b);
      const centre = (i) => numbers.centroids[used.indexOf(numbers.cluster[i])];
      const first = (i) => numbers.cluster[i] === numbers.cluster[0];
      const hidden = (i) => (first(i) ? "centroid" : undefined);
      plane.show({
        title: `queries (numbers), keys (dots), centroids (crosses); drag query ${moved}`,
        label: `Query ${moved} is at ${tf.fixed(state.x, 1)}, ${tf.fixed(state.y, 1)}; ${used.length} clusters`,
        square: true,
        hover: false,
        x: { from: -reach, to: reach, bare: true },
        y: { from: -reach, to: reach, bare: true },
        marks: [
          { points: keys, colour: "key", name: "keys" },
          Q.map((q, i) => ({
            line: [q[1], centre(i)[1]],
            at: [q[0], centre(i)[0]],
            colour: "grid",
            part: hidden(i),
          })),
          numbers.centroids.map((m, n) => ({
            text: "✕",
            at: m,
            colour: "attention",
            bold: true,
            term: "centre",
            part: used[n] === numbers.cluster[0] ? "centroid" : undefined,
          })),
          Q.map(
            (q, i) =>
              i !== moved && {
                text: String(i),
                at: q,
                dx: tf.norm([q[0] - centre(i)[0], q[1] - centre(i)[1]]) < 0.2 ? 13 : 0, // beside its cross
                colour: "query",
                bold: true,
              },
          ),
          {
            handle: Q[moved],
            knob: "x",
            knobY: "y",
            name: `query ${moved}`,
            colour: "query",
            text: String(moved),
            to: (x, y) => ({ x: app.snap("x", x), y: app.snap("y", y) }),
          },
        ],
      });
      const [shared, better] = [numbers["clustered misses"], numbers["improved misses"]];
      bars.show({
        title: "by how much each query's row misses the true one (at most 2)",
        label: `The row of query ${moved} misses the true one by ${tf.fixed(shared[moved])}; improved, by ${tf.fixed(better[moved])}`,
        x: { label: "query", from: -0.6, to: L - 0.4, ticks: tf.range(L) },
        y: { from: 0, to: 2, ticks: [0, 1, 2] },
        marks: [
          { bars: shared, at: tf.range(L, (i) => i - 0.2), wide: 0.36, colour: "muted" },
          {
            bars: better,
            at: tf.range(L, (i) => i + 0.2),
            wide: 0.36,
            colour: "attention",
            term: "best",
          },
          { text: "grey: clustered", at: [L - 2.2, 1.85], colour: "muted" },
          { text: "violet: improved", at: [L - 2.2, 1.6], colour: "attention" },
        ],
      });
      const most = Math.max(...numbers.true.flat());
      ["true", "clustered", "improved"].forEach((name, n) => {
        maps[n].show({
          title: name,
          label: `${name} weights of 8 queries over 8 keys`,
          rows: L,
          values: numbers[name],
          text: () => "", // three maps beside each other leave no room for numbers
          most,
          row: moved,
        });
      });
      app.read({
        "centroid of query 0": said(centre(0)),
        [`clustered row ${moved} misses by`]: tf.fixed(shared[moved]),
        [`improved row ${moved} misses by`]: tf.fixed(better[moved]),
        "rows worked out": `${used.length} of ${L}`,
      });
      const mates = members(numbers.cluster, numbers.cluster[moved]).filter((i) => i !== moved);
      app.say(
        mates.length
          ? `Query ${moved} shares its row with ${mates.join(", ")}. The row misses the true one by ${tf.fixed(shared[moved])}; improved on ${state.k} keys, by ${tf.fixed(better[moved])}.`
          : `Query ${moved} is alone in its cluster, and its row is the true one.`,
      );
    };
  },
});
