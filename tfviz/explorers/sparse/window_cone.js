// Layers of a causal window of `lookback` words: word i hears of j after ⌈(i − j) / lookback⌉ layers.
const { words, source, goal, layers } = tf.data;
const L = words.length;
const everything = (L * (L + 1)) / 2;
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six"];

// where the words stand: each in proportion to its letters
const widths = words.map((word) => word.length + 3);
const middles = widths.map((width, j) => tf.sum(widths.slice(0, j)) + width / 2);

export default tf.explorer({
  numbers({ lookback }) {
    const after = (j) => Math.ceil((goal - j) / lookback);
    return {
      hops: tf.range(goal + 1, (j) => (after(j) > layers ? -1 : after(j))),
      pairs: tf.sum(words.map((_, i) => Math.min(i, lookback) + 1)),
    };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ lookback }, { hops, pairs }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const tight = W < 1120; // words take turns in two rows
      const cell = small ? 6 : tight ? 8 : 10; // of the map of pairs
      const map = L * cell;
      const left = small ? 50 : 74; // for the names of the layers
      const room = small ? W - left - 10 : W - left - map - (tight ? 60 : 90);
      const xs = small
        ? words.map((_, j) => left + ((j + 0.5) * room) / L)
        : middles.map((x) => left + (x * room) / tf.sum(widths));
      const [bottom, top] = small ? [H - 296, H - 130] : [H - (tight ? 366 : 382), H - 30];
      const y = (layer) => bottom + ((top - bottom) * layer) / layers;
      const heard = hops[source] > 0;

      // who is in the cone: what the goal reads in the last layer, what these read in the one before, …
      const first = (layer) => Math.max(0, goal - lookback * (layers - layer));
      const edges = tf.range(layers, (n) => {
        const layer = layers - n;
        return tf.range(goal - first(layer) + 1, (k) => {
          const i = first(layer) + k;
          return tf.range(Math.min(i, lookback) + 1, (back) => ({
            line: [
              [xs[i], y(layer)],
              [xs[i - back], y(layer - 1)],
            ],
            colour: tf.faint("attention", 26),
            wide: 1,
          }));
        });
      });
      const dots = tf.range(layers + 1, (layer) =>
        words.slice(0, layer ? goal + 1 : L).map((_, j) => ({
          points: [[xs[j], y(layer)]],
          colour: j >= first(layer) && j <= goal ? "attention" : "grid",
          size: small ? 2.5 : 3.5,
        })),
      );
      // the way of the news: as far as it gets in each layer, and then it waits
      const way = tf.range(layers + 1, (n) => [xs[Math.min(goal, source + n * lookback)], y(n)]);
      const corner = small ? [left, H - 4] : [W - map, top];
      const square = (i, j) =>
        tf.box(
          corner[0] + j * cell,
          corner[0] + (j + 1) * cell - 1,
          corner[1] - (i + 1) * cell + 1,
          corner[1] - i * cell,
        );
      const cells = (kept, colour) =>
        words.map((_, i) =>
          tf
            .range(i + 1)
            .filter((j) => i - j <= lookback === kept)
            .map((j) => ({ shape: square(i, j), colour, strength: 1 })),
        );
      const named = (text, layer) => ({
        text,
        at: [-8, y(layer)],
        align: "start",
        colour: "muted",
      });
      const edge = [xs[goal - lookback], y(layers - 1)];
      const share = tf.percent(pairs / everything);

      plane.show({
        label: `${L} words under ${layers} layers; each word reads ${lookback} before it`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          edges,
          dots,
          {
            line: way,
            colour: heard ? "attention" : "muted",
            wide: small ? 3 : 4,
            dash: heard ? undefined : "2 6",
          },
          !heard && {
            text: small ? "stops" : "stops here",
            at: [way[layers][0] - 12, y(layers)],
            align: "end",
            colour: "muted",
          },
          { points: [way[0]], colour: "key", size: 6 },
          {
            text: small ? `${lookback} back` : `reads ${lookback} back`,
            at: [xs[goal] + 14, edge[1]],
            align: "start",
            colour: "query",
          },
          {
            line: [[xs[goal], edge[1]], edge],
            colour: "query",
            wide: small ? 4 : 5,
          },
          { points: [[xs[goal], y(layers)]], colour: "query", size: 6 },
          small
            ? [source, goal].map((j) => ({
                text: words[j],
                at: [xs[j], bottom - 18],
                colour: j === goal ? "query" : "key",
              }))
            : words.map((text, j) => ({
                text,
                at: [xs[j], bottom - (tight && j % 2 ? 40 : 22)],
                colour:
                  j === goal
                    ? "query"
                    : j === source
                      ? "key"
                      : j > goal || hops[j] < 0
                        ? tf.faint("muted", 60)
                        : "ink",
              })),
          named("words", 0),
          tf.range(layers, (n) => named(`layer ${n + 1}`, n + 1)),
          cells(false, tf.faint("muted", 16)),
          cells(true, "attention"),
          small
            ? [
                {
                  text: `${pairs} of ${everything} pairs`,
                  at: [left + map + 14, H - 40],
                  align: "start",
                },
                {
                  text: "in each layer",
                  at: [left + map + 14, H - 58],
                  align: "start",
                  colour: "muted",
                },
              ]
            : [
                {
                  text: `${pairs} of ${everything} pairs`,
                  at: [W, top - map - 22],
                  align: "end",
                },
                {
                  text: "in each layer",
                  at: [W, top - map - 44],
                  align: "end",
                  colour: "muted",
                },
              ],
          {
            handle: edge,
            knob: "lookback",
            colour: "query",
            text: `${lookback} words back`,
            to: (x) => {
              const near = tf.best(xs.map((at) => -Math.abs(at - x)));
              return { lookback: app.snap("lookback", goal - near) };
            },
          },
        ],
      });
      const back = lookback === 1 ? "one word" : `${NUMBERS[lookback] ?? lookback} words`;
      const [from, to] = [`“${words[source]}”`, `“${words[goal]}”`];
      app.say(
        heard
          ? `Each word reads ${back} back, which is ${share} of all pairs, and ${hops[source] === 1 ? "one layer is" : `${NUMBERS[hops[source]]} layers are`} enough to bring ${from} to ${to}.`
          : `Each word reads ${back} back. Four layers carry news only ${lookback * layers} words, so ${to} never hears of ${from}.`,
      );
    };
  },
});
