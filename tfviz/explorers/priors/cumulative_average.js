// The running mean ȳ_i = (i ȳ_{i−1} + y_i)/(i + 1), and the weights 1/(i + 1) of all keys up to i.
const { values: VALUES, share } = tf.data;
const ASKED = 7;
const meanUpTo = (values, i) => tf.mean(values.slice(0, i + 1));
const tokens = { from: -0.5, to: VALUES.length - 0.5, whole: true, label: "token" };

export default tf.explorer({
  numbers({ i, first }) {
    const values = [first, ...VALUES.slice(1)];
    return {
      values,
      means: values.map((_, n) => meanUpTo(values, n)),
      weights: tf.range(i + 1, (j) => share(i, j)),
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.45, 230, 300), lead: true });
    const weights = app.plane({ height: () => 150 });
    app.formula("new mean  =  ({kept:i · mean so far} + {new:value of token i}) / (i + 1)");
    app.knobsOf("i", "first");
    const question = app.ask({
      name: "mean",
      question:
        "The first seven tokens have the mean 4, and the model keeps only this mean. Token 7 has the value 12. What is the new mean?",
      about: plane,
      ghost: {
        first: 9,
        at: (y) => [ASKED, y],
        to: (_, y) => tf.clamp(Math.round(2 * y) / 2, 0, 12),
        by: [0, 0.5],
        label: "the mean of all eight tokens",
      },
      near: 0.25,
      format: (y) => `mean ${tf.fixed(y, 2)}`,
      hides: ["after"],
      guards: ["i", "first"],
      truth: () => meanUpTo(VALUES, ASKED),
      then: { i: ASKED, first: VALUES[0] },
      because:
        "(7 · 4 + 12)/8 = 5. The mean so far counts seven times, the new value once. None of the earlier values is needed.",
    });

    return (state, numbers) => {
      const { i } = state;
      const now = numbers.means[i];
      const kept = i ? numbers.means[i - 1] : Number.NaN;
      const upTo = (from, to) =>
        tf.range(to - from + 1, (n) => [from + n, numbers.means[from + n]]);
      const last = question.open ? ASKED : VALUES.length - 1;
      plane.show({
        title: "value of each token (bars), and the mean up to it (line)",
        label: `Token ${i} has the value ${numbers.values[i]}; the mean up to it is ${tf.fixed(now, 2)}`,
        x: tokens,
        y: { from: 0, to: 12.5, ticks: [0, 4, 8, 12] },
        marks: [
          { bars: numbers.values.slice(0, last + 1), start: 0, colour: "value", term: "new" },
          { line: upTo(0, Math.min(ASKED - 1, last)), colour: "attention", wide: 2.5, dots: true },
          {
            line: upTo(ASKED - 1, VALUES.length - 1),
            colour: "attention",
            wide: 2.5,
            dots: true,
            part: "after",
            term: "kept",
          },
          {
            handle: [i, now],
            knob: "i",
            text: `mean ${tf.fixed(now, 2)}`,
            to: (x) => ({ i: app.snap("i", x) }),
          },
        ],
      });
      weights.show({
        title: `weights in the mean at token ${i}: 1/${i + 1} each`,
        label: `${i + 1} ${i ? "tokens, each" : "token"} with the weight ${tf.fixed(numbers.weights[0], 3)}`,
        x: tokens,
        y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
        marks: [{ bars: numbers.weights, start: 0, colour: "attention" }],
      });
      app.read({
        "mean so far": i ? tf.fixed(kept, 2) : "none",
        "value of token i": String(numbers.values[i]),
        "new mean": tf.fixed(now, 2),
      });
      app.say(
        `Token ${i}: the mean of ${i + 1} ${i ? "tokens, each" : "token,"} with the weight ${tf.fixed(numbers.weights[0], 3)}, is ${tf.fixed(now, 2)}.`,
      );
    };
  },
});
