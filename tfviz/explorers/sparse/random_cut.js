// Four buckets: the largest of xR and −xR, for R a turn of the plane. Bucket 0 lies 45° around the turn.
const words = Object.keys(tf.data.words);
const angles = Object.values(tf.data.words).map((degrees) => (degrees * Math.PI) / 180);
const scores = angles.map((a, j) =>
  j ? (tf.data.length * Math.cos(a - angles[0])) / Math.SQRT2 : -1e5,
);
const weights = tf.softmax(scores);
const NARROW = 860; // pixels: less has no room for the buckets beside the circle
const list = (some) =>
  some.length > 1 ? `${some.slice(0, -1).join(", ")} and ${some.at(-1)}` : some[0];

export default tf.explorer({
  numbers({ turn }) {
    const by = (turn * Math.PI) / 180;
    const bucket = angles.map((a) => {
      const [x, y] = [Math.cos(a - by), Math.sin(a - by)];
      return tf.best([x, y, -x, -y]);
    });
    const kept = tf.sum(weights.filter((_, j) => bucket[j] === bucket[0]));
    return { bucket, weights, kept };
  },
  setup(app) {
    const high = (width) => (width < NARROW ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ turn }, { bucket, kept }) => {
      const small = plane.width < NARROW;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const [cx, cy, R] = small ? [W / 2, 180, 100] : [W < 1040 ? 235 : 300, 208, 158];
      const at = (angle, r = R) => [cx + r * Math.cos(angle), cy + r * Math.sin(angle)];
      const edge = ((turn + 45) * Math.PI) / 180; // where the query's bucket ends
      const hold = at(edge, 0.6 * R);
      const mine = (j) => bucket[j] === bucket[0];
      const others = tf.range(words.length - 1, (j) => j + 1);
      const lost = others.filter((j) => !mine(j) && weights[j] > 0.05);
      const chord = (j) => [at(angles[0]), at(angles[j])];
      const side = (angle) =>
        Math.cos(angle) > 0.2 ? "start" : Math.cos(angle) < -0.2 ? "end" : "middle";

      // the buckets as columns, and the attention that the query's bucket keeps
      const start = W < 1040 ? 500 : 640;
      const [left, wide] = small ? [0, W] : [start, W - start];
      const column = (n) => left + (n * wide) / 4;
      const members = tf.range(4, (n) => words.filter((_, j) => bucket[j] === n));
      const bar = (from, to, low, tall) =>
        tf.box(left + from * wide, left + to * wide, low, low + tall);

      plane.show({
        label: `${words.length} words around a circle that a cut divides into four buckets`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          {
            shape: [[cx, cy], ...tf.arc(cx, cy, R, edge - Math.PI / 2, edge)],
            colour: tf.faint("attention", 14),
            strength: 1,
          },
          { line: tf.arc(cx, cy, R, 0, 2 * Math.PI, 90), colour: "grid", wide: 1 },
          tf.range(2, (n) => ({
            line: [at(edge + (n * Math.PI) / 2, R), at(edge + Math.PI + (n * Math.PI) / 2, R)],
            colour: "attention",
            wide: 2,
          })),
          lost.map((j) => ({ line: chord(j), colour: "muted", wide: 1.5, dash: "3 4" })),
          others
            .filter(mine)
            .map((j) => ({ line: chord(j), colour: "attention", wide: 1 + 16 * weights[j] })),
          words.map((word, j) => [
            {
              points: [at(angles[j])],
              colour: j ? (mine(j) ? "attention" : "muted") : "query",
              size: j ? (small ? 3 : 4) : small ? 6 : 8,
            },
            {
              text: word,
              at: at(angles[j], R + (small ? 14 : 20)),
              align: side(angles[j]),
              colour: j ? (mine(j) ? "ink" : "muted") : "query",
            },
          ]),
          !small &&
            members.map((some, n) => [
              {
                text: `bucket ${n + 1}`,
                at: [column(n), H - 44],
                align: "start",
                colour: n === bucket[0] ? "attention" : "muted",
              },
              {
                line: [
                  [column(n), H - 62],
                  [column(n + 1) - 24, H - 62],
                ],
                colour: n === bucket[0] ? "attention" : "grid",
                wide: 2,
              },
              some.map((text, k) => ({
                text,
                at: [column(n), H - 86 - 27 * k],
                align: "start",
                colour: n === bucket[0] ? (text === words[0] ? "query" : "ink") : "muted",
              })),
            ]),
          {
            shape: bar(0, 1, small ? 8 : 40, small ? 8 : 12),
            colour: tf.faint("muted", 20),
            strength: 1,
          },
          { shape: bar(0, kept, small ? 8 : 40, small ? 8 : 12), colour: "attention", strength: 1 },
          {
            text: `${tf.percent(kept)} of the attention of “${words[0]}” is kept`,
            at: [left, small ? 32 : 76],
            align: "start",
          },
          {
            text: "turn the cut",
            at: [hold[0] - (small ? 14 : 16), hold[1] + 18],
            align: "end",
            colour: "attention",
          },
          {
            handle: hold,
            knob: "turn",
            colour: "attention",
            text: `${turn}°`,
            to: (x, y) => {
              const angle = (Math.atan2(y - cy, x - cx) * 180) / Math.PI;
              return { turn: app.snap("turn", (angle < -135 ? angle + 360 : angle) - 45) };
            },
          },
        ],
      });
      const met = others.filter(mine).length;
      app.say(
        lost.length
          ? `This cut parts “${words[0]}” from ${list(lost.map((j) => words[j]))}, and ${tf.percent(1 - kept)} of its attention is lost.`
          : `“${words[0]}” meets ${met} words of its bucket instead of all ${others.length}, and keeps ${tf.percent(kept)} of its attention.`,
      );
    };
  },
});
