// p ∝ exp(log p / τ) of the likeliest tokens as hills, the likeliest in the middle and the others right
// and left of it in turn. The smallest set of the likeliest that holds so much is lit.
const { words: WORDS, beginning: BEGINNING, held: HELD } = tf.data;
const logits = tf.data.log_p.flatMap(([x, many]) => tf.range(many, () => x / 100));
const hot = tf.keep((tau) => tf.softmax(logits.map((x) => x / tau)));
const [words, ranks] = [Object.keys(WORDS), Object.values(WORDS)];
const written = (tau) => String(Number(tau.toFixed(2)));
const percent = (p) => (p < 0.005 ? "< 1 %" : tf.percent(p));

export default tf.explorer({
  numbers({ tau }) {
    const p = hot(tau);
    let [kept, sum] = [0, 0];
    while (kept === 0 || (sum < HELD && kept < p.length)) sum += p[kept++];
    return { p: ranks.map((rank) => p[rank]), kept };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 324 : 440);
    const plane = app.plane({ long: true, height: high });
    const { low, high: hottest, step: every } = app.about.tau;
    const temperatures = tf.range(Math.round((hottest - low) / every) + 1, (k) => low + k * every);

    return ({ tau }, { p, kept }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const side = small ? 3 : 6; // words on each side of the middle
      const rows = small
        ? { top: 48, ground: 236, words: 258, shares: 280 }
        : { top: 46, ground: 340, words: 364, shares: 388 };
      const step = (W + 24) / (2 * side + 1);
      const place = (n) => (n % 2 ? (n + 1) / 2 : -n / 2); // of the word n, from the middle
      const word = (k) => (k > 0 ? 2 * k - 1 : -2 * k);
      const at = (k) => W / 2 + step * k;
      const unit = rows.ground - rows.top;
      const height = (k) => {
        const [from, t] = [Math.floor(k), k - Math.floor(k)];
        const [a, b] = [p[word(from)], p[word(from + 1)]];
        return H - rows.ground + unit * (a + (b - a) * t * t * (3 - 2 * t));
      };
      const hills = (from, to, colour) => {
        const many = Math.max(1, Math.ceil((to - from) * 24));
        const ridge = tf.range(many + 1, (n) => from + ((to - from) * n) / many);
        const ground = H - rows.ground;
        return {
          shape: [[at(from), ground], ...ridge.map((k) => [at(k), height(k)]), [at(to), ground]],
          colour,
          strength: 1,
        };
      };
      // as far as words are kept; a hill is lit to its foot
      const edge = side + 0.5;
      const lit = ranks.filter((rank) => rank < kept).length;
      const [lowest, highest] = [0, 1].map((right) =>
        Math.min(edge, Math.floor((lit - 1 + right) / 2) + 0.95),
      );
      const peak = [W / 2, H - rows.ground + unit * p[0]];

      plane.show({
        label: `Probabilities of the next token after “${BEGINNING}”, the likeliest in the middle`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          hills(-edge, -lowest, tf.faint("ink", 16)),
          hills(highest, edge, tf.faint("ink", 16)),
          hills(-lowest, highest, "attention"),
          tf.range(2 * side + 1, (n) => [
            {
              text: words[n],
              at: [at(place(n)), H - rows.words],
              colour: n < lit ? "ink" : "muted",
              bold: n < lit,
            },
            {
              text: percent(p[n]),
              at: [at(place(n)), H - rows.shares],
              colour: n < lit ? "attention" : "muted",
            },
          ]),
          { text: `${BEGINNING} …`, at: [-12, H - 10], align: "start", bold: true },
          { text: `temperature ${written(tau)}`, at: peak, dy: -20, bold: true },
          {
            handle: peak,
            knob: "tau",
            colour: "ink",
            text: `temperature ${written(tau)}`,
            to: (_, y) => {
              const wanted = (y - (H - rows.ground)) / unit;
              const best = tf.best(temperatures.map((one) => -Math.abs(hot(one)[0] - wanted)));
              return { tau: app.snap("tau", temperatures[best]) };
            },
          },
        ],
      });
      const share = `At temperature ${written(tau)}, “${words[0]}” has ${percent(p[0])}`;
      const [all, least] = [tf.count(logits.length), tf.percent(HELD)];
      app.say(
        kept > 1
          ? `${share}; of ${all} tokens, the ${tf.count(kept)} likeliest hold ${least}, and top-p draws from these alone.`
          : `${share}; top-p needs ${least}, so it draws this one of ${all} tokens.`,
      );
    };
  },
});
