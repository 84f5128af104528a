// Towers of steps above a sentence: a word halts at the first step whose sum reaches the line, or at the last.
const words = Object.keys(tf.data.words);
const { most } = tf.data;

export default tf.explorer({
  numbers({ enough }) {
    const halted = words.map((word) => {
      const [each, line] = [tf.data.words[word], 1 - (1 - enough)];
      let [before, N] = [0, 1];
      for (; before + each < line && N < most; N++) before += each;
      const p = tf.range(most, (n) => (n + 1 < N ? each : n + 1 === N ? 1 - before : 0));
      return { N, p };
    });
    const N = halted.map((one) => one.N);
    return { N, p: halted.map((one) => one.p), total: tf.sum(N) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ enough }, { N, total }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const [left, right] = small ? [0, 58] : [24, 150]; // for the handle and its words
      const unit = (W - left - right) / words.length;
      const at = words.map((_, j) => left + (j + 0.5) * unit);
      const wide = Math.min(0.62 * unit, 92);
      const [base, tall] = small ? [48, 230] : [58, 318]; // tall: a sum of 1
      const line = base + tall * enough;

      // each step is as high as its halting number; what rises above the line is cut off
      const tower = (j) => {
        const each = tf.data.words[words[j]];
        const slab = (low, up, share) => ({
          shape: [
            [at[j] - wide / 2, low],
            [at[j] - wide / 2, up],
            [at[j] + wide / 2, up],
            [at[j] + wide / 2, low],
          ],
          colour: tf.faint("attention", share),
          strength: 1,
        });
        const steps = tf.range(N[j], (n) => [base + tall * each * n, base + tall * each * (n + 1)]);
        return [
          steps.map(([low, up], n) => slab(low + 2, Math.min(up, line), 36 + 9 * n)),
          slab(line, steps.at(-1)[1], 12),
        ];
      };

      plane.show({
        label: `${words.length} words, each with a tower of steps; the line is at ${tf.fixed(enough, 2)}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          words.map((_, j) => tower(j)),
          words.map((word, j) => [
            { text: word.trim(), at: [at[j], base - (small ? 14 : 20)], colour: "ink" },
            {
              text: small ? `${N[j]} ×` : `${N[j]} ${N[j] > 1 ? "steps" : "step"}`,
              at: [at[j], base - (small ? 32 : 44)],
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
            text: "enough",
            at: [W, line + (small ? 20 : 26)],
            align: "end",
            colour: "query",
          },
          {
            handle: [W - (small ? 20 : 30), line],
            knob: "enough",
            colour: "query",
            text: `the steps must add up to ${tf.fixed(enough, 2)}`,
            to: (_, y) => ({ enough: app.snap("enough", (y - base) / tall) }),
          },
        ],
      });
      const order = tf.range(words.length).sort((a, b) => N[a] - N[b]);
      const [quick, slow] = [order[0], order.at(-1)];
      const times = (word) => (N[word] > 1 ? `${N[word]} times` : "once");
      app.say(
        N[slow] > 1
          ? `“${words[slow]}” goes through the block ${times(slow)}, “${words[quick]}” ${times(quick)}: ${total} steps in all, where a fixed depth of ${most} takes ${most * words.length}.`
          : `With the line so low, one step is enough for every word, and “${words.at(-1)}” gets no more thought than “${words[0]}”.`,
      );
    };
  },
});
