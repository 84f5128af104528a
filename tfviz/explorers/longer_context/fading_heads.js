// Four lanes above a sentence: in head k, a word r words back counts e^(−m r), m = 2^(−8 k / h).
const { words, heads } = tf.data;
const last = words.length - 1;
const slope = (k) => 2 ** ((-8 * (k + 1)) / heads);

export default tf.explorer({
  numbers({ back }) {
    const share = tf.range(heads, (k) => words.map((_, j) => Math.exp(-slope(k) * (last - j))));
    return { share, here: share.map((row) => row[last - back]) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ back }, { share, here }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const margin = small ? 46 : 148; // for the names of the lanes
      const unit = (W - margin) / words.length;
      const at = words.map((_, j) => margin + (j + 0.5) * unit);
      const [lane, tall] = small ? [58, 38] : [80, 53]; // a lane, and in it a bar of 100 %
      const base = tf.range(heads, (k) => H - lane * (k + 1) + 4);
      const said = H - heads * lane - (small ? 16 : 24); // the words stand here
      const ruler = said - 40;
      const there = at[last - back];
      const bar = (j, k) => {
        const [left, top] = [at[j] - 0.34 * unit, base[k] + Math.max(1, tall * share[k][j])];
        const shape = [
          [left, base[k]],
          [left, top],
          [left + 0.68 * unit, top],
          [left + 0.68 * unit, base[k]],
        ];
        const mine = j === last - back;
        return { shape, colour: mine ? "attention" : tf.faint("attention", 26), strength: 1 };
      };
      const distance = back ? `${back} ${back > 1 ? "words" : "word"} back` : "the word itself";

      plane.show({
        label: `A sentence of ${words.length} words; four heads look back from “${words[last]}”, to ${distance}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          tf.range(heads, (k) => [
            words.map((_, j) => bar(j, k)),
            {
              line: [
                [margin, base[k]],
                [W, base[k]],
              ],
              colour: "grid",
              wide: 1,
            },
            {
              text: `head ${k + 1}`,
              at: [-12, base[k] + (small ? 24 : 30)],
              align: "start",
              colour: "ink",
            },
            {
              text: small ? `−1/${1 / slope(k)}` : `−1/${1 / slope(k)} a word`,
              at: [-12, base[k] + 8],
              align: "start",
              colour: "muted",
              plain: true,
            },
            {
              text: tf.percent(here[k]),
              at: [there, base[k] + tall * here[k] + (small ? 10 : 13)],
              colour: "attention",
            },
          ]),
          words.map((text, j) => ({
            text,
            at: [at[j], said - (small && j % 2 ? 16 : 0)],
            colour: j === last ? "query" : j === last - back ? "key" : "muted",
          })),
          // how far back: a line from the word that asks to the key
          {
            line: [
              [there, ruler],
              [at[last], ruler],
            ],
            colour: "key",
          },
          { points: [[at[last], ruler]], colour: "query", size: 5 },
          {
            text: distance,
            at: [
              tf.clamp((there + at[last]) / 2, 0, W - (small ? 40 : 58)),
              ruler - (small ? 16 : 20),
            ],
            colour: "key",
          },
          {
            handle: [there, ruler],
            knob: "back",
            colour: "key",
            text: distance,
            to: (x) => ({ back: app.snap("back", last - (x - margin) / unit + 0.5) }),
          },
        ],
      });
      const [near, far] = [here[0], here[heads - 1]].map((part) => tf.percent(part));
      app.say(
        back
          ? `Near-sighted head 1 gives “${words[last - back]}”, ${distance}, ${near} of the weight that it would have close by; far-sighted head ${heads} still gives ${far}.`
          : `No head takes anything off the word itself; each takes its share off for every word further back.`,
      );
    };
  },
});
