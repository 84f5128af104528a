// A word belongs to the centroid whose direction fits its own best; a centroid learns to be their mean.
const words = Object.keys(tf.data.words);
const turned = (degrees) => [Math.cos, Math.sin].map((of) => of((degrees * Math.PI) / 180));
const units = words.map((word) => turned(tf.data.words[word][0]));
const lengths = words.map((word) => tf.data.words[word][1]);
const scores = words.map(
  (_, j) =>
    (tf.data.length ** 2 * lengths[0] * lengths[j] * tf.dot(units[0], units[j])) / Math.SQRT2,
);
const weights = tf.softmax(scores);

export default tf.explorer({
  numbers({ angle }) {
    const centroids = [tf.data.fixed[0], angle, tf.data.fixed[1]].map(turned);
    const clusters = units.map((x) => tf.best(centroids.map((mu) => tf.dot(mu, x))));
    const own = units.filter((_, j) => clusters[j] === 1);
    const [x, y] = own.length ? [0, 1].map((c) => tf.mean(own.map((v) => v[c]))) : centroids[1];
    const kept = tf.sum(weights.filter((_, j) => clusters[j] === clusters[0]));
    return { clusters, weights, kept, toward: (Math.atan2(y, x) * 180) / Math.PI };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ angle }, { clusters, kept, toward }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const low = small ? 22 : 24;
      const [cx, wide, tall] = [W / 2, small ? 0.46 * W : 0.42 * W, H - low - (small ? 46 : 44)];
      const at = (degrees, r) => {
        const [x, y] = turned(degrees);
        return [cx + x * r * wide, low + y * r * tall];
      };
      const places = words.map((word) => at(...tf.data.words[word]));
      const middles = [tf.data.fixed[0], angle, tf.data.fixed[1]];
      const ends = [0, (middles[0] + angle) / 2, (angle + middles[2]) / 2, 180];
      const home = clusters[0];
      const round = (from, to, r) => tf.range(31, (n) => at(from + ((to - from) * n) / 30, r));
      const pairs = words.flatMap((_, i) =>
        tf
          .range(i)
          .filter((j) => clusters[i] === clusters[j])
          .map((j) => [i, j]),
      );
      const off = Math.abs(toward - angle) > 8;
      const others = tf.range(words.length - 1, (j) => j + 1);
      const members = others.filter((j) => clusters[j] === home).length;
      // from beside the handle, along the rim
      const way = Math.sign(toward - angle);
      const pull = round(angle + 5 * way, toward, 1.03);

      plane.show({
        label: `${words.length} words in three clusters; the one in the middle has its centroid at ${angle}°`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          {
            shape: [[cx, low], ...round(ends[home], ends[home + 1], 1.03)],
            colour: tf.faint("attention", 12),
            strength: 1,
          },
          ends.slice(1, 3).map((end) => ({
            line: [[cx, low], at(end, 1.03)],
            colour: "grid",
            wide: 1.5,
          })),
          { line: round(0, 180, 1.03), colour: "grid", wide: 1 },
          pairs
            .filter(([, j]) => j || clusters[0] !== home)
            .map(([i, j]) => ({
              line: [places[i], places[j]],
              colour: tf.faint("muted", 34),
              wide: 1,
            })),
          others
            .filter((j) => clusters[j] === home || weights[j] > 0.04)
            .map((j) => ({
              line: [places[0], places[j]],
              ...(clusters[j] === home
                ? { colour: "attention", wide: 1 + 16 * weights[j] }
                : { colour: "muted", wide: 1.5, dash: "3 4" }),
            })),
          words.map((word, j) => [
            {
              points: [places[j]],
              colour: j ? (clusters[j] === home ? "attention" : "muted") : "query",
              size: j ? (small ? 3 : 4) : small ? 6 : 8,
            },
            {
              text: word,
              at: places[j],
              dy: small ? 13 : 19,
              colour: j ? (clusters[j] === home ? "ink" : "muted") : "query",
            },
          ]),
          tf.data.fixed.map((place, n) => ({
            points: [at(place, 1.03)],
            colour: tf.faint("attention", 2 * n === home ? 100 : 60),
            size: small ? 6 : 8,
          })),
          off && [
            { line: pull, colour: "ink", wide: 2 },
            { arrow: [pull.at(-6), pull.at(-1)], colour: "ink", wide: 2 },
          ],
          {
            text: "centroid",
            at: at(angle, 1.03),
            align: Math.abs(angle - 90) < 12 ? "middle" : angle < 90 ? "start" : "end",
            dx: Math.abs(angle - 90) < 12 ? 0 : angle < 90 ? 12 : -12,
            dy: small ? -18 : -20,
            colour: "attention",
          },
          {
            handle: at(angle, 1.03),
            knob: "angle",
            colour: "attention",
            text: `${angle}°`,
            to: (x, y) => ({
              angle: app.snap(
                "angle",
                (Math.atan2(Math.max(0, y - low) / tall, (x - cx) / wide) * 180) / Math.PI,
              ),
            }),
          },
        ],
      });
      app.say(
        off
          ? `With the centroid here, “${words[0]}” keeps ${tf.percent(kept)} of its attention; a step of learning moves the centroid along the arrow.`
          : `Words read only their own cluster: “${words[0]}” meets ${members} words, and keeps ${tf.percent(kept)} of its attention.`,
      );
    };
  },
});
