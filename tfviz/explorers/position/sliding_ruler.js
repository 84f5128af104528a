// A query at place i, the distances clip(j − i, −k, k) below its sentence, and a = softmax(score of each).
const { words, scores } = tf.data;
const longest = (scores.length - 1) / 2;
const signed = (n) => (n > 0 ? `+${n}` : tf.fixed(n, 0));

export default tf.explorer({
  numbers({ place }) {
    const labels = words.map((_, j) => tf.clamp(j - place, -longest, longest));
    return { labels, weights: tf.softmax(labels.map((n) => scores[n + longest])) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ place }, { labels, weights }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const margin = small ? -8 : 100; // for the names of the rows
      const unit = (W - margin + (small ? 8 : 0)) / words.length;
      const at = (j) => margin + (j + 0.5) * unit;
      const row = small
        ? { words: 112, ruler: 166, scores: 242, places: 300, top: 6 }
        : { words: 172, ruler: 230, scores: 342, places: 398, top: 8 };
      const foot = H - row.words + (small ? 16 : 22); // of the arcs
      const tall = H - row.top - foot; // of the longest arc
      const half = small ? 13 : 20; // of the ruler's height
      const one = small ? 14 : 25; // the height of a score of 1

      const arc = (j) =>
        tf.range(41, (n) => {
          const turn = (Math.PI * n) / 40;
          const [a, b] = [at(place), at(j)];
          const rise = tall * Math.sqrt(Math.abs(j - place) / (words.length - 1));
          return [(a + b) / 2 + ((a - b) / 2) * Math.cos(turn), foot + rise * Math.sin(turn)];
        });
      const order = tf.range(words.length).sort((a, b) => weights[a] - weights[b]);
      const named = (text, y, colour, above) => ({
        text,
        at: [-12, H - y + (small ? above : 0)],
        align: "start",
        colour,
      });
      // keys that share a distance stand on one piece of the ruler
      const pieces = tf
        .range(2 * longest + 1, (n) => n - longest)
        .map((n) => ({ n, on: tf.range(words.length).filter((j) => labels[j] === n) }))
        .filter(({ on }) => on.length);
      const spoken = (n, many) =>
        Math.abs(n) < longest || many === 1
          ? signed(n)
          : small && many < 4
            ? `${signed(n)} …`
            : `${signed(n)} and beyond`;

      plane.show({
        label: `A sentence of ${words.length} words; the ruler of distances begins at “${words[place]}”`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          order
            .filter((j) => j !== place)
            .map((j) => ({
              line: arc(j),
              colour: tf.faint("attention", 26 + 70 * weights[j]),
              wide: Math.max(1, (small ? 24 : 40) * weights[j]),
            })),
          words.map((text, j) => ({
            text,
            at: [at(j), H - row.words],
            colour: j === place ? "query" : tf.faint("ink", 62 + 38 * weights[j]),
          })),
          pieces.map(({ n, on }) => [
            {
              shape: tf.box(
                at(on[0]) - unit / 2 + 1.5,
                at(on.at(-1)) + unit / 2 - 1.5,
                H - row.ruler - half,
                H - row.ruler + half,
              ),
              colour: n ? tf.faint("key", 44 - 11 * Math.abs(n)) : tf.faint("query", 30),
              strength: 1,
            },
            {
              text: spoken(n, on.length),
              at: [tf.mean(on.map(at)), H - row.ruler],
              colour: n ? "key" : "query",
              plain: true,
            },
          ]),
          pieces.map(({ n, on }) => {
            const [left, right] = [on[0], on.at(-1)].map(at);
            const wide = small ? 6 : 16;
            const low = H - row.scores;
            return {
              shape: tf.box(left - wide, right + wide, low, low + one * scores[n + longest]),
              colour: tf.faint("attention", 30 + 24 * scores[n + longest]),
              strength: 1,
            };
          }),
          words.map((_, j) => ({ text: String(j), at: [at(j), H - row.places], colour: "muted" })),
          named("distance", row.ruler, "key", 26),
          named("score", row.scores - one, "attention", 34),
          named("place", row.places, "muted", 22),
          {
            handle: [at(place), foot],
            knob: "place",
            colour: "query",
            text: `“${words[place]}”, place ${place}`,
            to: (x) => ({ place: app.snap("place", (x - margin) / unit - 0.5) }),
          },
        ],
      });
      const before = weights[place - 1];
      app.say(
        place
          ? `“${words[place]}” gives ${tf.percent(before)} of its weight to “${words[place - 1]}”, the word before: a distance keeps its score wherever the query stands.`
          : `“${words[0]}” has no word before it and keeps ${tf.percent(weights[0])} of its weight; all words three or more places away share one score.`,
      );
    };
  },
});
