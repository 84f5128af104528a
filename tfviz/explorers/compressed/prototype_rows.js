// Queries in the plane with lines to their prototypes; the row of each prototype; the map that it is copied into.
const { length: L, seed, spread, centres, keys: many, radius } = tf.data;
const noise = tf.uniforms(seed, 2 * L);
const queries = tf.range(L, (i) =>
  centres[i % centres.length].map((x, a) => x + spread * noise[2 * i + a]),
);
const keys = tf.range(many, (j) =>
  [Math.cos, Math.sin].map((of) => radius * of((2 * Math.PI * j) / many)),
);
const STEPS = 10;
const REACH = 2.3; // of the picture of queries
const weights = (q) => Array.from(tf.softmax(keys.map((key) => tf.dot(q, key) / Math.SQRT2)));
const truth = queries.map(weights);
const members = (cluster, c) => tf.range(L).filter((i) => cluster[i] === c);
const middle = (some) => [0, 1].map((a) => tf.mean(some.map((i) => queries[i][a])));

// Lloyd's algorithm, as the library has it
function lloyd(C) {
  let mu = tf.range(C, (c) => queries[Math.floor((c * L) / C)]);
  let cluster = [];
  for (let step = 0; step < STEPS; step += 1) {
    cluster = queries.map((q) => tf.best(mu.map((m) => tf.dot(q, m) - tf.dot(m, m) / 2)));
    const found = cluster;
    mu = mu.map((m, c) => (found.includes(c) ? middle(members(found, c)) : m));
  }
  return cluster;
}

export default tf.explorer({
  numbers({ C }) {
    const cluster = lloyd(C);
    const rows = cluster.map((c) => weights(middle(members(cluster, c))));
    const off = tf.sum(rows.flatMap((row, i) => row.map((a, j) => Math.abs(a - truth[i][j]))));
    return { cluster, rows, elsewhere: off / (2 * L) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 312 : 440);
    const plane = app.plane({ long: true, height: high });

    return (_, { cluster, rows, elsewhere }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const tall = small ? 7 : 10; // a row
      const cell = small ? 5 : Math.floor(W / 90);
      const wide = many * cell;
      const top = H - (small ? 20 : 36);
      const low = top - L * tall;
      const field = small ? 120 : Math.min(L * tall, 0.33 * W); // where the queries are
      const right = W - (small ? 0 : 0.03 * W); // the map ends, and begins
      const map = right - wide;
      const stack = small ? field + 42 : field + 0.16 * W;
      const start = small ? 0 : 0.03 * W;
      // from the top down, as their prototypes lie in the picture of queries
      const groups = [...new Set(cluster)]
        .map((c) => ({ mine: members(cluster, c), at: middle(members(cluster, c)) }))
        .sort((a, b) => b.at[1] - a.at[1]);
      const order = groups.flatMap(({ mine }) => mine);
      const place = (/** @type {any} */ [x, y]) => [
        start + (field * (x + REACH)) / (2 * REACH),
        (top + low) / 2 + (field * y) / (2 * REACH),
      ];
      const begins = groups.map((_, g) =>
        tf.sum(groups.slice(0, g).map(({ mine }) => mine.length)),
      );
      const named = (text, x, y, colour, align = "middle") => ({
        text,
        at: [x, y],
        colour,
        align,
        plain: true,
      });
      const above = top + (small ? 12 : 20);
      const count = groups.length;
      const edge = [stack, top - count * tall];
      const most = 0.6;

      plane.show({
        label: `${L} queries under ${count} prototypes, whose rows are copied into a map of ${L} rows`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          groups.map(({ mine, at }) =>
            mine.map((i) => ({
              line: [place(queries[i]), place(at)],
              colour: tf.faint("query", 45),
              wide: 1,
            })),
          ),
          { points: queries.map(place), colour: "query", size: small ? 2 : 3 },
          { points: groups.map(({ at }) => place(at)), colour: "page", size: small ? 6 : 9 },
          { points: groups.map(({ at }) => place(at)), colour: "query", size: small ? 4.5 : 7 },
          // from a row that is worked out to its copies
          groups.map(({ mine }, g) => ({
            shape: [
              [stack + wide + 3, top - g * tall],
              [map - 4, top - begins[g] * tall],
              [map - 4, top - (begins[g] + mine.length) * tall + 1],
              [stack + wide + 3, top - (g + 1) * tall + 1],
            ],
            colour: tf.faint("attention", g % 2 ? 12 : 22),
            strength: 1,
          })),
          cells(
            groups.map(({ mine }) => rows[mine[0]]),
            { at: [stack, top], cell: [cell, tall], most },
          ),
          cells(
            order.map((i) => rows[i]),
            { at: [map, top], cell: [cell, tall], most },
          ),
          named("queries", start + field / 2, above, "query"),
          named(small ? "worked out" : "rows worked out", stack + wide / 2, above, "attention"),
          named(small ? "in use" : "rows in use", map + wide / 2, above, "attention"),
          small
            ? named(`${count} of ${L}`, stack + 14, edge[1] - 14, "query", "start")
            : named(`${count} of ${L}`, stack - 18, edge[1], "query", "end"),
          {
            handle: edge,
            knob: "C",
            colour: "query",
            text: `${count} prototypes`,
            to: (_, y) => ({ C: app.snap("C", (top - y) / tall) }),
          },
        ],
      });
      const off = tf.percent(elsewhere, 0);
      app.say(
        count === L
          ? `Every query is its own prototype: ${L} rows are worked out, and nothing is saved.`
          : count === 1
            ? `One prototype stands for all ${L} queries: one row is worked out, and ${off} of the attention goes astray.`
            : `${count} prototypes stand for ${L} queries: only their rows are worked out, and ${off} of the attention goes astray.`,
      );
    };
  },
});
