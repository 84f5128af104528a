// Above each word one bar for each block: how sure it is, p(word) − p(rival). The first at the line is the exit.
const words = Object.keys(tf.data.words);
const { blocks } = tf.data;

export default tf.explorer({
  numbers({ threshold }) {
    const sure = words.map((word) =>
      tf.range(blocks, (n) => {
        const [first, second] = tf.softmax([tf.data.words[word] * (n + 1), 0]);
        return first - second;
      }),
    );
    const exits = sure.map((row) => {
      const ready = row.findIndex((c) => c >= threshold);
      return ready < 0 ? blocks : ready + 1;
    });
    return { sure, exits, total: tf.sum(exits) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ threshold }, { sure, exits, total }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const right = small ? 36 : 130; // for the handle and its words
      const unit = (W - right) / words.length;
      const at = words.map((_, j) => (j + 0.5) * unit);
      const [base, tall] = small ? [52, 240] : [66, 326]; // tall: entirely sure
      const step = Math.min(17, (unit * 0.8) / blocks);
      const line = base + tall * threshold;

      const bar = (j, n) => {
        const [left, top] = [at[j] + (n - blocks / 2) * step, base + tall * sure[j][n]];
        const wide = step * 0.78;
        const shape = [
          [left, base],
          [left, top],
          [left + wide, top],
          [left + wide, base],
        ];
        const out = n + 1 - exits[j]; // 0: the exit; above it: skipped
        const colour = out ? tf.faint("attention", out < 0 ? 44 : 9) : "attention";
        return { shape, colour, strength: 1 };
      };

      plane.show({
        label: `${words.length} words, each with ${blocks} bars, one for a block; the line is at ${tf.percent(threshold)}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          words.map((_, j) => tf.range(blocks, (n) => bar(j, n))),
          words.map((word, j) => [
            {
              line: [
                [at[j] - (blocks / 2) * step, base],
                [at[j] + (blocks / 2) * step, base],
              ],
              colour: "grid",
              wide: 1,
            },
            { text: word.trim(), at: [at[j], base - (small ? 15 : 22)], colour: "ink" },
            {
              text: small ? exits[j] : `${exits[j]} ${exits[j] > 1 ? "blocks" : "block"}`,
              at: [at[j], base - (small ? 34 : 47)],
              colour: "attention",
              plain: true,
            },
          ]),
          {
            line: [
              [0, line],
              [W, line],
            ],
            colour: "query",
            wide: 2,
          },
          {
            text: small ? tf.percent(threshold) : `${tf.percent(threshold)} sure`,
            at: [W, line + (small ? 20 : 26)],
            align: "end",
            colour: "query",
          },
          small && {
            text: "blocks",
            at: [W, base - 34],
            align: "end",
            colour: "attention",
            plain: true,
          },
          {
            handle: [W - (small ? 18 : 40), line],
            knob: "threshold",
            colour: "query",
            text: `${tf.percent(threshold)} sure`,
            to: (_, y) => ({ threshold: app.snap("threshold", (y - base) / tall) }),
          },
        ],
      });
      const order = tf.range(words.length).sort((a, b) => exits[a] - exits[b]);
      const [quick, slow] = [order[0], order.at(-1)].map((j) => `“${words[j].trim()}”`);
      const [few, many] = [exits[order[0]], exits[order.at(-1)]];
      app.say(
        many > few
          ? `Easy words leave early: ${quick} takes ${few > 1 ? `${few} blocks` : "one block"}, ${slow} ${many < blocks ? many : `all ${blocks}`}, and the whole sentence ${total} of ${blocks * words.length}.`
          : `Now every word leaves after its first block, and “${words.at(-1)}” is written by a model that is ${tf.percent(sure.at(-1)[0])} sure of it.`,
      );
    };
  },
});
