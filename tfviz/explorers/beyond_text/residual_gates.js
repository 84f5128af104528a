// Gates of one number, with all other weights still 0: what is left of x, and what enters of y.
const { depth } = tf.data;
const sigmoid = (a) => 1 / (1 + Math.exp(-a));
// the share of x that a gate passes, and what it lets in of y
const GATES = {
  gru: { share: sigmoid, enters: (y, b) => sigmoid(-b) * Math.tanh(y) },
  highway: { share: sigmoid, enters: (y, b) => sigmoid(-b) * y },
  output: { share: () => 1, enters: (y, b) => sigmoid(-b) * y },
  sigtanh: { share: () => 1, enters: (y, b) => sigmoid(-b) * Math.tanh(y) },
  input: { share: () => 0.5, enters: (y) => y },
};
const RULES = {
  gru: "g  =  {of_x:σ(b) x}  +  {of_y:σ(−b) tanh(y)}",
  highway: "g  =  {of_x:σ(b) x}  +  {of_y:σ(−b) y}",
  output: "g  =  {of_x:x}  +  {of_y:σ(−b) y}",
  sigtanh: "g  =  {of_x:x}  +  {of_y:σ(−b) tanh(y)}",
  input: "g  =  {of_x:x / 2}  +  {of_y:y}",
};
const leftAfter = (gate, b) => tf.range(depth + 1, (n) => GATES[gate].share(b) ** n);
const percent = (share) => tf.percent(share, share < 0.01 ? 2 : 0);

export default tf.explorer({
  numbers: ({ gate, b, x, y }) => ({
    of_x: GATES[gate].share(b) * x,
    of_y: GATES[gate].enters(y, b),
    left: leftAfter(gate, b),
  }),
  setup(app) {
    const curve = app.plane({ height: (width) => tf.clamp(width * 0.42, 220, 280), lead: true });
    const one = app.plane({ height: () => 170 });
    const rule = app.lines();
    app.knob("gate", { as: "select" });
    app.knobsOf("b", "n");
    app.knobsOf("x", "y");
    const question = app.ask({
      name: "depth",
      question:
        "At the paper's b = 2, a GRU gate passes 88 % of x, so 78 % is left after the two gates of one block. How much of x is left after the 24 gates of twelve blocks?",
      about: curve,
      ghost: {
        first: 60,
        at: (left) => [depth, left / 100],
        to: (_, left) => tf.clamp(Math.round(100 * left), 0, 100),
        by: ([x, y], [right, up]) => [x, y + (up || right) / 50],
        label: "how much of x is left after 24 gates",
      },
      near: 5,
      format: (left) => `${tf.fixed(left, 0)} %`,
      hides: ["rest", "left after 24 gates"],
      guards: ["n"],
      truth: () => 100 * leftAfter("gru", 2)[depth],
      then: { gate: "gru", b: 2, n: depth },
      because:
        "0.88 to the power of 24 is 0.05. One gate is close to the identity, but a stack of gates is not: what one gate drops does not come back.",
    });

    return (state, numbers) => {
      const { n, b, x, y } = state;
      const { left, of_x, of_y } = numbers;
      const shown = question.open ? 2 : depth;
      const biased = state.gate === "input" ? "" : `b = ${tf.fixed(b, 1)}: `;
      curve.show({
        title: "share of x that is left, by gates passed",
        label: `After ${n} gates, ${percent(left[n])} of x is left`,
        x: { from: 0, to: depth + 0.6, ticks: [0, 2, 4, 8, 12, 16, 20, 24], label: "gates passed" },
        y: { from: 0, to: 1.05, ticks: [0, 0.5, 1], format: (a) => tf.percent(a, 0) },
        marks: [
          {
            line: left.slice(0, 3),
            start: 0,
            colour: "attention",
            wide: 2.5,
            dots: true,
            term: "of_x",
          },
          {
            line: left.slice(2).map((share, k) => [k + 2, share]),
            colour: "attention",
            wide: 2.5,
            dots: true,
            part: "rest",
            term: "of_x",
          },
          {
            handle: [Math.min(n, shown), left[Math.min(n, shown)]],
            knob: "n",
            text: `k = ${n}: ${percent(left[n])}`,
            to: (at) => ({ n: app.snap("n", at) }),
          },
        ],
      });
      one.show({
        title: "one gate: its output g is a part of x plus a part of y",
        label: `x = ${tf.fixed(x, 1)} and y = ${tf.fixed(y, 1)} give g = ${tf.fixed(of_x + of_y, 2)}`,
        x: { from: -3.2, to: 5.4, ticks: [-3, 0, 3] },
        y: { names: ["g", "y", "x"] },
        marks: [
          { shape: tf.box(0, x, 1.7, 2.3), colour: "key", edge: true, strength: 0.15 },
          { shape: tf.box(0, of_x, 1.7, 2.3), colour: "key", strength: 0.8, term: "of_x" },
          { shape: tf.box(0, y, 0.7, 1.3), colour: "value", edge: true, strength: 0.15 },
          { shape: tf.box(0, of_y, 0.7, 1.3), colour: "value", strength: 0.8, term: "of_y" },
          { shape: tf.box(0, of_x, -0.3, 0.3), colour: "key", strength: 0.8, term: "of_x" },
          {
            shape: tf.box(of_x, of_x + of_y, -0.3, 0.3),
            colour: "value",
            strength: 0.8,
            term: "of_y",
          },
        ],
      });
      rule.show([RULES[state.gate]]);
      app.read({
        "share of x one gate passes": percent(left[1]),
        "left after 24 gates": percent(left[depth]),
        g: tf.fixed(of_x + of_y, 2),
      });
      app.say(
        `${biased}one gate passes ${percent(left[1])} of x and outputs ${tf.fixed(of_x + of_y, 2)}${question.open ? "" : `; after 24 gates, ${percent(left[depth])} of x is left`}.`,
      );
    };
  },
});
