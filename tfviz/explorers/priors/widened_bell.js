// Bars above a sentence: softmax(s) in outline, softmax(s + G) filled, where G = −(j − i)²/(2 σ²) is a bell.
const words = Object.keys(tf.data.words);
const scores = Object.values(tf.data.words);
const { query } = tf.data;
const bell = (j, spread) => -((j - query) ** 2) / (2 * spread ** 2);

export default tf.explorer({
  numbers({ spread }) {
    const G = words.map((_, j) => bell(j, spread));
    const weights = tf.softmax(scores.map((s, j) => s + G[j]));
    return { bell: G.map(Math.exp), plain: tf.softmax(scores), weights };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ spread }, { plain, weights }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const unit = W / words.length;
      const x = (j) => (j + 0.5) * unit;
      const base = small ? 48 : 46;
      const crown = H - base - 16; // of the bell
      const tall = 0.8 * crown; // of a weight of 1
      const wide = Math.min(0.56 * unit, 52);
      const box = (j, height, colour) => ({
        shape: [
          [x(j) - wide / 2, base],
          [x(j) - wide / 2, base + Math.max(1, tall * height)],
          [x(j) + wide / 2, base + Math.max(1, tall * height)],
          [x(j) + wide / 2, base],
        ],
        colour,
        strength: 1,
      });
      const curve = tf.range(241, (n) => {
        const j = -0.5 + (words.length * n) / 240;
        return [x(j), base + crown * Math.exp(bell(j, spread))];
      });
      const side = [x(query - spread), base + crown * Math.exp(-0.5)];
      const first = tf.best(weights);
      const wanted = tf.best(plain);

      plane.show({
        label: `A sentence of ${words.length} words and a bell around “${words[query]}” with a spread of ${spread} words`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          { area: curve.map(([a, b]) => [a, base, b]), colour: "query", strength: 0.08 },
          plain.map((a, j) => box(j, a, tf.faint("key", 24))),
          weights.map((a, j) => ({
            ...box(j, a, "attention"),
            strength: 0.85,
          })),
          { line: curve, colour: "query", wide: 2 },
          [...new Set([first, wanted])].map((j) => ({
            text: j === first ? tf.percent(weights[j]) : `now ${tf.percent(weights[j])}`,
            at: [x(j), base + tall * Math.max(weights[j], plain[j]) + (small ? 12 : 16)],
            colour: "attention",
          })),
          first !== wanted && {
            text: `content alone: ${tf.percent(plain[wanted])}`,
            at: [small ? -8 : x(wanted), base + tall * plain[wanted] + (small ? 28 : 38)],
            align: small ? "start" : "middle",
            colour: "key",
          },
          words.map((text, j) => ({
            text,
            at: [x(j), base - (unit < 80 && j % 2 ? 32 : 16)],
            colour: j === query ? "query" : j === first ? "attention" : "muted",
          })),
          {
            text: `± ${tf.short(spread)} ${spread === 1 ? "word" : "words"}`,
            at: side[0] < 130 ? [-8, side[1] + 24] : [side[0] - (small ? 16 : 20), side[1] + 4],
            align: side[0] < 130 ? "start" : "end",
            colour: "query",
          },
          {
            handle: side,
            knob: "spread",
            colour: "query",
            text: `${tf.short(spread)} words to each side`,
            to: (px) => ({ spread: app.snap("spread", query - (px / unit - 0.5)) }),
          },
        ],
      });
      const [best, now] = [words[wanted], tf.percent(weights[first])];
      app.say(
        first === wanted
          ? `The bell is so wide that content decides: “${best}” gets ${now}, although it stands ${query - wanted} words away.`
          : first === query
            ? `The bell is so narrow that “it” looks mostly at itself and its neighbours; “${best}”, which fits best, is out of sight.`
            : `The bell favours what is near: “${words[first]}” gets ${now}, although by content “${best}” fits better.`,
      );
    };
  },
});
