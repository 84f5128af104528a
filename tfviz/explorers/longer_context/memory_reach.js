// Four rows of squares, the text and three layers: what the token that is read hears, row by row, through memories
// of one segment each (squares), and through squeezed rows before them (bars).
const { segment, segments, layers, squeezed, group, spoken } = tf.data;
const tokens = segment * segments;

export default tf.explorer({
  numbers({ token }) {
    const start = Math.floor(token / segment) * segment;
    const first = (back) => tf.range(layers + 1, (n) => Math.max(0, start - (layers - n) * back));
    return { kept: first(segment), squeezed: first(segment + group * squeezed) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ token }, { kept, squeezed: furthest }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const margin = small ? 0 : 90; // for the names of the rows
      const gap = small ? 4 : 12; // between two segments
      const step = (W - margin - gap * (segments - 1)) / tokens;
      const at = (j) => margin + (j + 0.5) * step + gap * Math.floor(j / segment);
      const row = small
        ? { top: 70, next: 54, high: 20, text: 274, legend: 300 }
        : { top: 92, next: 76, high: 26, text: 372, legend: 372 };
      const middle = (n) => H - row.top - (layers - n) * row.next;
      const half = Math.max(1.5, step / 2 - (small ? 0.8 : 2));
      const tall = row.high / 2;
      const start = kept[layers];

      const tile = (n, from, to, colour, strength = 1) => ({
        shape: tf.box(at(from) - half, at(to) + half, middle(n) - tall, middle(n) + tall),
        colour,
        strength,
      });
      // what one layer reads of the one below: from its first row to its last
      const fan = (n, first) => ({
        shape: [
          [at(first[n]) - half, middle(n) - tall],
          [at(token) + half, middle(n) - tall],
          [at(token) + half, middle(n - 1) + tall],
          [at(first[n - 1]) - half, middle(n - 1) + tall],
        ],
        colour: "attention",
        strength: 0.09,
      });
      const levels = tf.range(layers + 1);
      const grouped = (n) => {
        const many = (kept[n] - furthest[n]) / group;
        return tf.range(Math.ceil(many), (k) => [
          Math.max(0, kept[n] - (k + 1) * group),
          kept[n] - k * group - 1,
        ]);
      };
      const [near, far] = [kept[0] <= spoken, furthest[0] <= spoken];
      const bars = near ? [] : grouped(0);
      const said = bars.find(([a, b]) => a <= spoken && spoken <= b) ?? [spoken, spoken];
      const legend = [
        ["being read", "attention"],
        ["memory", "key"],
        ["squeezed", tf.faint("key", 75)],
      ];
      const inside = start <= spoken;
      const heard = near || far;
      const ends = { align: at(token) > W - 110 ? "end" : at(token) < 110 ? "start" : "middle" };

      plane.show({
        label: `Token ${token} of ${tokens} is read: ${heard ? "token 3 is heard" : "token 3 is not heard"}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          levels.slice(1).map((n) => [fan(n, furthest), fan(n, kept)]),
          levels.map((n) =>
            tf
              .range(tokens)
              .filter((j) => j < furthest[n] || j > token)
              .map((j) => tile(n, j, j, tf.faint("ink", j > token ? 5 : 13))),
          ),
          levels.map((n) => grouped(n).map(([a, b]) => tile(n, a, b, tf.faint("key", 48)))),
          levels.map((n) => [
            tf.range(start - kept[n], (k) => tile(n, kept[n] + k, kept[n] + k, "key")),
            tf.range(token - start + 1, (k) => tile(n, start + k, start + k, "attention")),
          ]),
          // with the tokens that it was squeezed with
          tile(0, ...said, "page"),
          tile(0, ...said, near ? "value" : tf.faint("value", 60)),
          legend.map(([text, colour], k) => ({
            text,
            at: [W - (small ? [0, 82, 146] : [0, 122, 216])[k], H - row.legend],
            align: "end",
            colour,
          })),
          !small &&
            levels.map((n) => ({
              text: n ? `layer ${n}` : "text",
              at: [-12, middle(n)],
              align: "start",
              colour: "muted",
            })),
          {
            text: "“the key is in the vase”",
            at: [at(0) - half, H - row.text],
            align: "start",
            colour: heard ? "value" : "muted",
          },
          {
            text: "“where is the key?”",
            at: [at(token), middle(layers) + tall + (small ? 30 : 36)],
            colour: "query",
            ...ends,
          },
          {
            handle: [at(token), middle(layers)],
            knob: "token",
            colour: "query",
            text: `token ${token}`,
            to: (x) => {
              const part = (x - margin) / (segment * step + gap);
              const whole = Math.floor(part);
              const within = ((part - whole) * (segment * step + gap)) / step;
              return {
                token: app.snap("token", whole * segment + Math.min(within, segment) - 0.5),
              };
            },
          },
        ],
      });
      const back = token - spoken;
      app.say(
        inside
          ? "Both sentences stand in one segment, so every layer reads the answer directly: no memory is needed yet."
          : near
            ? `The answer is ${back} tokens back, in another segment; each layer’s memory reaches one segment further back, so three layers hear it.`
            : far
              ? `${back} tokens back, the answer is beyond three layers of memory; squeezed rows, three tokens in one, still reach it.`
              : `The answer is ${back} tokens back: even squeezed rows no longer reach it, and the model can only guess.`,
      );
    };
  },
});
