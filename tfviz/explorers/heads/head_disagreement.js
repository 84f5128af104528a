// The cosine of the outputs of two heads, for each pair: mean over tokens of a held-out text, step by step.
const { at, pairs, strengths } = tf.data;
const h = pairs[0][0][0].length;
const steps = at.at(-1);
const all = (matrix) => tf.mean(matrix.flat());
const between = (matrix) => {
  const own = tf.sum(tf.range(h, (m) => matrix[m][m]));
  return (tf.sum(matrix.flat()) - own) / (h * (h - 1));
};
const matricesOf = (strength, layer) =>
  pairs[strengths.indexOf(strength)].map((layers) => layers[layer - 1]);
const signed = (x) => tf.fixed(x, 2);

export default tf.explorer({
  numbers({ strength, step, layer }) {
    const matrices = matricesOf(strength, layer);
    const shown = matrices[at.indexOf(step)];
    return {
      shown,
      agreement: all(shown),
      without: matricesOf(0, layer).map(between),
      with: matrices.map(between),
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.42, 220, 280), lead: true });
    const matrix = app.matrix({ axes: ["head", "head"], tall: 230 });
    app.formula("added to the loss:  −λ D,   D = −mean {pair:cos(head a, head b)}");
    app.knob("strength");
    app.knob("step");
    app.knob("layer");
    const question = app.ask({
      name: "apart",
      question:
        "Without the added loss, the outputs of two heads have a cosine near 0. With λ = 1, the model is rewarded for each pair of its four heads whose outputs point apart. What is the mean cosine of two heads after training?",
      about: plane,
      ghost: {
        first: -0.7,
        at: (y) => [steps, y],
        to: (_, y) => tf.clamp(Math.round(20 * y) / 20, -1, 0.5),
        by: ([x, y], [right, up]) => [x, y + (up || right) / 20],
        label: "the mean cosine after training with λ = 1",
      },
      near: 0.06,
      format: (y) => signed(y),
      hides: ["apart"],
      guards: ["strength"],
      truth: (numbers) => numbers.with.at(-1),
      then: { strength: 1, step: steps, layer: 2 },
      because:
        "Four vectors cannot all be opposite to each other. The squared length of their sum is at least 0, so the mean cosine of two of them is at least −1/(h − 1) = −1/3. The added loss takes them nearly that far.",
    });

    return (state, numbers) => {
      const now = at.indexOf(state.step);
      const mean = numbers.with[now];
      const line = (ys) => ys.map((y, n) => [at[n], y]);
      plane.show({
        title: "mean cosine of the outputs of two different heads",
        label: `With λ = ${state.strength}, after ${state.step} steps the mean cosine of two heads is ${signed(mean)}`,
        x: { label: "step of training", from: 0, to: steps, ticks: [0, 50, 100, 150, 200] },
        y: { from: -1, to: 0.5, ticks: [-1, -0.5, 0, 0.5] },
        marks: [
          { rule: { y: -1 / (h - 1) }, colour: "muted", dash: "4 4", part: "apart" },
          {
            text: "−1/(h − 1)",
            at: [steps, -1 / (h - 1)],
            dy: 14,
            align: "end",
            colour: "muted",
            part: "apart",
          },
          { line: line(numbers.without), colour: "muted", dots: true, name: "λ = 0" },
          state.strength > 0 && {
            line: line(numbers.with),
            colour: "attention",
            wide: 2.5,
            dots: true,
            name: `λ = ${state.strength}`,
            part: "apart",
            term: "pair",
          },
          {
            handle: [state.step, mean],
            knob: "step",
            text: signed(mean),
            to: (x) => ({ step: app.snap("step", x) }),
          },
        ],
      });
      matrix.show({
        title: `layer ${state.layer}, λ = ${state.strength}, after ${state.step} steps: cosine of each pair`,
        label: `Cosines of the outputs of ${h} heads in layer ${state.layer}`,
        rows: h,
        values: numbers.shown,
        signed: true,
        most: 1,
        text: (a, b) => signed(numbers.shown[a][b]),
      });
      app.read({
        "mean cosine of two heads": signed(mean),
        [`−D, mean of all ${h * h} cosines`]: signed(numbers.agreement),
        "mean cosine with λ = 0": signed(numbers.without[now]),
      });
      app.say(
        `With λ = ${state.strength}, after ${state.step} steps, the mean cosine of two heads in layer ${state.layer} is ${signed(mean)}.`,
      );
    };
  },
});
