// A query above a sentence: q = (cos θ, sin θ), a = softmax(β q·k_j), and the blend Σ a_j v_j below it.
const words = Object.keys(tf.data.words);
const [degrees, lengths, values] = [0, 1, 2].map((n) =>
  words.map((word) => tf.data.words[word][n]),
);
const turned = (angle) => [Math.cos, Math.sin].map((of) => of((angle * Math.PI) / 180));
const keys = words.map((_, j) => turned(degrees[j]).map((x) => x * lengths[j]));
const QUESTIONS = { 150: "who?", 90: "did what?", 30: "why?" };

// where the words stand: each in proportion to its letters
const widths = words.map((word) => Math.max(4, word.length) + 1.6);
const middles = widths.map((width, j) => tf.sum(widths.slice(0, j)) + width / 2);

// a thread from one place to another: upright at both ends, bends of one radius, and straight between them
const thread = ([a, b], [c, d]) => {
  const [across, down, side] = [Math.abs(c - a), Math.abs(d - b), Math.sign(c - a)];
  const bend = 0.4 * down;
  const far = Math.hypot(across - 2 * bend, down);
  const most = Math.atan2(across - 2 * bend, down) + Math.asin((2 * bend) / far);
  const part = (n) => {
    const turn = (most * n) / 12;
    return [side * bend * (1 - Math.cos(turn)), bend * Math.sin(turn)];
  };
  const parts = tf.range(13, part);
  return [
    ...parts.map(([x, y]) => [a + x, b - y]),
    ...parts.reverse().map(([x, y]) => [c - x, d + y]),
  ];
};

export default tf.explorer({
  numbers({ angle }) {
    const weights = tf.softmax(keys.map((key) => tf.data.beta * tf.dot(turned(angle), key)));
    const blend = values[0].map((_, c) => tf.sum(weights.map((a, j) => a * values[j][c])));
    return { weights, blend };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ angle }, { weights, blend }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const margin = small ? 44 : 80; // for the names of the rows
      const unit = (W - margin) / tf.sum(widths);
      const at = middles.map((x) => margin + x * unit);
      const middle = margin + (W - margin) / 2;
      const [dial, needle, tall] = small ? [52, 16, 36] : [72, 24, 48]; // tall: a bar of height 1
      const [bar, gap] = small ? [4, 1] : [8, 2];
      const row = small
        ? { hub: 76, keys: 151, words: 170, values: 224, blend: 314 }
        : { hub: 98, keys: 199, words: 224, values: 286, blend: 418 };

      const from = (x, y, way, long) => [x + way[0] * long, H - y + way[1] * long];
      const bars = (x, base, heights, colour) =>
        heights.map((height, c) => {
          const left = x + (c - heights.length / 2) * (bar + gap) + gap / 2;
          const [low, high] = [H - base, H - base + Math.max(1, height * tall)];
          const shape = [
            [left, low],
            [left, high],
            [left + bar, high],
            [left + bar, low],
          ];
          return { shape, colour, strength: 1 };
        });
      const whole = 5 * (bar + gap) - gap;
      const order = tf.range(words.length).sort((a, b) => weights[a] - weights[b]);
      const named = (text, y, colour) => ({ text, at: [-12, H - y], align: "start", colour });
      const tip = from(middle, row.hub, turned(angle), dial);

      plane.show({
        label: `A sentence of ${words.length} words, each with a key and a value; the query points to ${angle}°`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          {
            line: tf.range(81, (n) => from(middle, row.hub, turned(10 + 2 * n), dial)),
            colour: "grid",
            wide: 1,
          },
          // as wide as the weights, which sum to the width of the blend; the heaviest on top
          order.map((j) => {
            const wide = Math.max(1, whole * weights[j]);
            const x = middle + whole * (tf.sum(weights.slice(0, j)) + weights[j] / 2 - 0.5);
            const lines = [
              thread([x, H - row.hub - 10], [at[j], H - row.keys + needle + 6]),
              thread([at[j], H - row.values - 5], [x, H - row.blend + tall + 6]),
            ];
            const colour = tf.faint("attention", 26 + 60 * weights[j]);
            return lines.map((line) => [
              { line, colour: "page", wide: wide + 3 },
              { line, colour, wide },
            ]);
          }),
          Object.entries(QUESTIONS).map(([direction, text]) => ({
            text,
            at: from(middle, row.hub, turned(Number(direction)), dial + 18),
            align: { 150: "end", 90: "middle", 30: "start" }[direction],
            colour: "muted",
            plain: true,
          })),
          words.map((word, j) => [
            {
              arrow: [[at[j], H - row.keys], from(at[j], row.keys, keys[j], needle)],
              colour: "key",
            },
            {
              text: word,
              at: [at[j], H - row.words],
              colour: tf.faint("ink", 62 + 38 * weights[j]),
            },
          ]),
          words.map((_, j) => bars(at[j], row.values, values[j], tf.faint("value", 24))),
          words.map((_, j) =>
            bars(
              at[j],
              row.values,
              values[j].map((v) => v * weights[j]),
              "value",
            ),
          ),
          bars(middle, row.blend, blend, "value"),
          named("turn the query", row.hub, "query"),
          named("keys", row.keys - needle / 2, "key"),
          named("values", row.values - tall / 2, "value"),
          named("blend", row.blend - tall / 2, "value"),
          { points: [[middle, H - row.hub]], colour: "query", size: 5 },
          { arrow: [[middle, H - row.hub], tip], colour: "query", wide: 3 },
          {
            handle: tip,
            knob: "angle",
            colour: "query",
            text: `${angle}°`,
            to: (x, y) => {
              const [dx, dy] = [x - middle, y - (H - row.hub)];
              const up = (Math.atan2(dy, dx) * 180) / Math.PI;
              return { angle: app.snap("angle", up < -90 ? 180 : up) };
            },
          },
        ],
      });
      const [second, first] = order.slice(-2);
      const share = tf.percent(weights[first] + weights[second]);
      app.say(
        `The keys of “${words[first]}” and “${words[second]}” fit the query best, so ${share} of the blend comes from their two values.`,
      );
    };
  },
});
