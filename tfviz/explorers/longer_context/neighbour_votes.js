// A query on its way through stored contexts: the k nearest vote for their words by exp(−d²), and λ of the prediction
// is theirs; the rest is the model's own, softmax(first + gains x).
const { words, store, gains, first, neighbours, share, ends } = tf.data;
const nearest = (d2) =>
  tf
    .range(store.length)
    .sort((a, b) => d2[a] - d2[b])
    .slice(0, neighbours);

export default tf.explorer({
  numbers({ way }) {
    const query = [0, 1].map((c) => ends[0][c] + (way / 100) * (ends[1][c] - ends[0][c]));
    const d2 = store.map(([x, y]) => (x - query[0]) ** 2 + (y - query[1]) ** 2);
    const close = nearest(d2);
    const votes = tf.softmax(close.map((n) => -d2[n]));
    const near = words.map((_, w) => tf.sum(votes.filter((_, k) => store[close[k]][2] === w)));
    const model = tf.softmax(first.map((score, w) => score + gains[w] * query[0]));
    const both = words.map((_, w) => share * near[w] + (1 - share) * model[w]);
    return { query, d2, model, near, both };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ way }, { query, d2, model, near, both }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      // the plane of contexts, and the bars beside it, or below it on a phone
      const [wide, tall] = small ? [W, 186] : [0.6 * W, H - 34];
      const at = ([x, y]) => [(x / 10.5) * wide, H - tall - (small ? 14 : 34) + (y / 5.7) * tall];
      const [left, top, row] = small ? [54, 232, 19] : [0.72 * W, 92, 66];
      const one = W - left - (small ? 42 : 60); // the width of a share of 1
      const half = small ? 6 : 12;
      const legend = H - (small ? 208 : 8);
      const close = nearest(d2);
      const votes = tf.softmax(close.map((n) => -d2[n]));
      const winner = tf.best(both);
      const bar = (w, from, to, colour) => ({
        shape: tf.box(
          left + one * from,
          left + one * to,
          H - top - w * row - half,
          H - top - w * row + half,
        ),
        colour,
        strength: 1,
      });

      plane.show({
        label: `${store.length} stored contexts, each with its next word; the ${neighbours} nearest to the query vote`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          { line: ends.map(at), colour: tf.faint("query", 30), wide: 1, dash: "2 5" },
          close.map((n, k) => ({
            line: [at(query), at(store[n])],
            colour: tf.faint("attention", 30 + 65 * votes[k]),
            wide: Math.max(1.5, (small ? 12 : 22) * votes[k]),
          })),
          store.map(([x, y, w], n) => ({
            text: words[w],
            at: at([x, y]),
            colour: close.includes(n) ? "attention" : tf.faint("ink", 64),
          })),
          {
            text: small
              ? "words that followed in stored contexts"
              : "stored contexts, and the word that followed each",
            at: [-12, H - (small ? 4 : 8)],
            align: "start",
            colour: "muted",
          },
          {
            text: "new context",
            at: at(query),
            dx: way > 70 ? -18 : 18,
            align: way > 70 ? "end" : "start",
            colour: "query",
          },
          words.map((word, w) => [
            bar(w, 0, (1 - share) * model[w], "key"),
            bar(w, (1 - share) * model[w], both[w], "attention"),
            {
              text: word,
              at: [left - 10, H - top - w * row],
              align: "end",
              colour: w === winner ? "ink" : "muted",
            },
            {
              text: tf.percent(both[w]),
              at: [left + one * both[w] + 8, H - top - w * row],
              align: "start",
              colour: w === winner ? "ink" : "muted",
            },
          ]),
          { text: "model", at: [left, legend], align: "start", colour: "key" },
          {
            text: "+ neighbours",
            at: [left + (small ? 46 : 64), legend],
            align: "start",
            colour: "attention",
          },
          {
            handle: at(query),
            knob: "way",
            colour: "query",
            text: `${way} % of its way`,
            to: (x) => {
              const [a, b] = ends.map((end) => at(end)[0]);
              return { way: app.snap("way", (100 * (x - a)) / (b - a)) };
            },
          },
        ],
      });
      const [alone, voted] = [tf.best(model), tf.best(near)];
      const [mine, theirs] = [tf.percent(model[alone]), tf.percent(near[voted])];
      app.say(
        alone === voted
          ? `Model and neighbours agree on “${words[alone]}”: the model alone gives it ${mine}, the four nearest contexts ${theirs}.`
          : `The model alone says “${words[alone]}”, ${mine}, but the four nearest contexts vote for “${words[voted]}”, ${theirs}, and together they say “${words[winner]}”.`,
      );
    };
  },
});
