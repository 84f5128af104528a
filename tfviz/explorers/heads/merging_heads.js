// Query head m reads KV head ⌊m h_kv / h⌋; the cache holds 2 · tokens · layers · h_kv · width numbers.
const { layers, heads, width, weights, tokens, bytes } = tf.data;
const cacheOf = (h_kv) => 2 * tokens * layers * h_kv * width * bytes;
const GiB = (n) => `${tf.sig(n / 2 ** 30)} GiB`;

// a thread that leaves one place and reaches the other upright
const thread = (from, to) =>
  tf.range(25, (k) => {
    const part = k / 24;
    const across = part * part * (3 - 2 * part);
    return [from[0] + (to[0] - from[0]) * across, from[1] + (to[1] - from[1]) * part];
  });

export default tf.explorer({
  numbers({ h_kv }) {
    const reads = tf.range(heads, (m) => Math.floor((m * h_kv) / heads));
    return { reads, cache: cacheOf(h_kv) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ h_kv }, { reads, cache }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const most = W - (small ? 78 : 150); // the width of the cache if all heads keep their own
      const unit = most / heads; // of a head, above and in the cache
      const rows = small
        ? { queries: 300, keys: 180, cache: 62, first: 28, second: 8 }
        : { queries: 400, keys: 236, cache: 58, first: 10, second: 10 };
      const [dot, half, tall] = small ? [3, Math.min(5, most / h_kv / 2 - 1), 11] : [6, 11, 17]; // tall: of keys, and of values
      const query = (m) => [(m + 0.5) * unit, rows.queries];
      const kept = (g) => [((g + 0.5) * most) / h_kv, rows.keys];
      const end = h_kv * unit;
      const level = (most * weights) / cacheOf(heads);
      // keys above, values below
      const both = (left, right, middle, tall) => [
        { shape: tf.box(left, right, middle, middle + tall), colour: "key", strength: 1 },
        { shape: tf.box(left, right, middle - tall, middle), colour: "value", strength: 1 },
      ];
      const beside = (x, y, lines, colour) =>
        lines.map((text, k) => ({
          text,
          at: [x, y + (small ? 15 : 20) * ((lines.length - 1) / 2 - k)],
          align: "start",
          colour,
          plain: true,
        }));
      const kvHeads = h_kv > 1 ? "KV heads" : "KV head";

      plane.show({
        label: `${heads} query heads read ${h_kv} ${kvHeads}; the cache takes ${GiB(cache)}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          {
            shape: tf.box(0, most, rows.cache - tall, rows.cache + tall),
            colour: "grid",
            strength: 0.3,
          },
          reads.map((g, m) => ({
            line: thread(query(m), kept(g)),
            colour: tf.faint("query", 50),
            wide: small ? 1.5 : 2.5,
          })),
          tf.range(h_kv, (g) => ({
            line: thread(kept(g), [(g + 0.5) * unit, rows.cache + tall]),
            colour: tf.faint("key", 55),
            wide: small ? 2 : 4,
          })),
          tf.range(h_kv, (g) => {
            const x = kept(g)[0];
            return both(x - half, x + half, rows.keys, half);
          }),
          { points: tf.range(heads, query), colour: "query", size: dot },
          tf.range(h_kv, (g) => both(g * unit + 1, (g + 1) * unit - 1, rows.cache, tall)),
          {
            line: [
              [level, rows.cache - tall],
              [level, rows.cache - tall - 10],
            ],
            colour: "ink",
            wide: 2,
          },
          {
            text: `the model’s weights: ${GiB(weights)}`,
            at: [level, rows.first],
            colour: "ink",
            align: small ? "start" : "middle",
            dx: small ? -8 : 0,
          },
          beside(
            most + 14,
            rows.queries,
            small ? [`${heads} query`, "heads"] : [`${heads} query heads`],
            "query",
          ),
          beside(
            most + 14,
            rows.keys,
            small ? [`${h_kv} KV`, kvHeads.slice(3)] : [`${h_kv} ${kvHeads}`],
            "key",
          ),
          beside(end + 16, rows.cache, [GiB(cache)], "ink"),
          {
            text: `cache of ${tf.count(tokens)} tokens`,
            at: small ? [-12, rows.second] : [most, rows.second],
            align: small ? "start" : "end",
            colour: "muted",
          },
          {
            handle: [end, rows.cache],
            knob: "h_kv",
            colour: "attention",
            text: `${h_kv} ${kvHeads}, ${GiB(cache)}`,
            to: (x) => ({ h_kv: app.snap("h_kv", x / unit) }),
          },
        ],
      });
      const own = GiB(cacheOf(heads));
      const group =
        h_kv === 1
          ? `All ${heads} query heads share one KV head`
          : `${h_kv === 8 ? "In Llama 3.1 8B, " : ""}${heads / h_kv} query heads share each KV head`;
      app.say(
        h_kv === heads
          ? `If each of the ${heads} query heads had a KV head of its own, the cache would take ${own}, over four times as much as the model’s weights.`
          : `${group}, so the cache takes ${GiB(cache)} instead of ${own}. Each still asks its own question.`,
      );
    };
  },
});
