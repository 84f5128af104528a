// Two causal maps of one sentence as arcs from each word back to those before it: above softmax(q_i·k_j),
// below a bell at j = i + offset. One word has another place.
const { words, score, offset, spread } = tf.data;
const [moved, ...others] = Object.keys(words);
const n = others.length + 1;
const orderOf = (place) => [...others.slice(0, place), moved, ...others.slice(place)];
const bell = (x) => Math.exp(-(x ** 2) / (2 * spread ** 2)) / (spread * Math.sqrt(2 * Math.PI));

export default tf.explorer({
  numbers({ place }) {
    const order = orderOf(place);
    const rowOf = (asks, i) => {
      const scores = order.slice(0, i + 1).map((key) => score * asks.includes(words[key][0]));
      const weights = tf.softmax(scores);
      return tf.range(n, (j) => weights[j] ?? 0);
    };
    const content = order.map((word, i) => rowOf(words[word][1], i));
    const prior = tf.range(n, (i) => tf.range(n, (j) => (j <= i ? bell(j - i - offset) : 0)));
    return { content, prior };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ place }, { content, prior }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const order = orderOf(place);
      const at = tf.range(n, (i) => ((i + 0.5) * W) / n);
      const base = small ? 112 : 152; // of the words
      const [above, below] = small ? [26, 18] : [36, 26]; // where arcs begin
      const [most, wide] = small ? [160, 9] : [212, 15];
      // half an ellipse from one word to another
      const arc = (i, j, up) => {
        const rise = up ? most * ((i - j) / (n - 1)) ** 0.6 : (small ? 40 : 58) * (i - j) ** 0.5;
        return tf.range(49, (k) => {
          const turn = (Math.PI * k) / 48;
          const x = (at[i] + at[j]) / 2 - ((at[i] - at[j]) / 2) * Math.cos(turn);
          const y = rise * Math.sin(turn);
          return [x, base + (up ? above + y : -below - y)];
        });
      };
      const arcs = (map, up) =>
        map
          .flatMap((row, i) => row.slice(0, i).map((weight, j) => ({ weight, i, j })))
          .filter(({ weight }) => weight > 0.03)
          .map(({ weight, i, j }) => {
            const strong = up && (i === place || j === place);
            const colour = tf.faint("attention", strong ? 100 : 20 + 35 * weight);
            return { line: arc(i, j, up), wide: Math.max(1, wide * weight), colour, strong };
          })
          .sort((a, b) => Number(a.strong) - Number(b.strong) || a.wide - b.wide);
      const title = (text, y) => ({ text, at: [-12, y], align: "start", colour: "muted" });

      plane.show({
        label: `“${order.join(" ")}”: arcs from each word to the words before it, by two heads`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          title(small ? "compares words" : "a head that compares words", H - 4),
          title(small ? "only a prior" : "a head with only a prior", 14),
          arcs(content, true),
          arcs(prior, false),
          order.map((word, i) => ({
            text: word,
            at: [at[i], base],
            colour: i === place ? "query" : "ink",
            plain: true,
          })),
          {
            handle: [at[place], base + above - 4],
            knob: "place",
            colour: "query",
            text: `place ${place} of ${n}`,
            to: (x) => ({ place: app.snap("place", (x * n) / W - 0.5) }),
          },
        ],
      });
      const back = n - 1 - place;
      const found = back
        ? `“${order.at(-1)}” finds “${moved}” ${back} place${back > 1 ? "s" : ""} back, with ${tf.percent(content[n - 1][place])} of its weight`
        : `“${moved}” looks back for deeds, and finds “bit” and “barked”`;
      app.say(`Above, ${found}. Below, each word looks one place back, whatever stands there.`);
    };
  },
});
