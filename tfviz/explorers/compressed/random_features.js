// Estimates of e^(x yᵀ) by random features, for two vectors of length 1 in a plane.
const { plane: sets, squares, angles, block } = tf.data;
const turn = (degrees) => (degrees * Math.PI) / 180;
// what one direction adds to the estimate, ÷ the true kernel
const terms = {
  positive: ([a, b], cos, sin) => Math.exp(a * (1 + cos) + b * sin - 1 - cos),
  sines: ([a, b], cos, sin) => Math.exp(1 - cos) * Math.cos(a * (1 - cos) - b * sin),
};
const estimates = tf.keep((kind, m, orthogonal) => {
  const used = kind === "positive" ? m : m / 2;
  const drawings = sets[orthogonal ? "orthogonal" : "single"].map((W) => W.slice(0, used));
  return angles.map((angle) => {
    const [cos, sin] = [Math.cos(turn(angle)), Math.sin(turn(angle))];
    return drawings.map((W) => tf.mean(W.map((w) => terms[kind](w, cos, sin))));
  });
}, 16);
// the variance of one term, ÷ the square of the kernel (sines: of two features)
const variance = {
  positive: (angle) => Math.exp(2 + 2 * Math.cos(turn(angle))) - 1,
  sines: (angle) => {
    const far = 2 - 2 * Math.cos(turn(angle));
    return (1 - Math.exp(-far)) ** 2 * Math.exp(far);
  },
};
const error = (kind, m) => angles.map((angle) => Math.sqrt(Math.max(0, variance[kind](angle)) / m));
const blocked = (kind, m) => {
  const many = (kind === "positive" ? m : m / 2) / block;
  return squares[kind].map((square) => Math.sqrt(square / many));
};
const names = { sines: "sines, cosines", positive: "positive" };
const colours = { sines: "key", positive: "attention" };
const [LOW, HIGH] = [-1, 3];
const LEAST = 0.01; // the least error that is drawn
const above = (errors) => errors.flatMap((x, n) => (x >= LEAST ? [[angles[n], x]] : []));

export default tf.explorer({
  numbers: ({ kind, m, orthogonal }) => ({
    ratios: estimates(kind, m, orthogonal),
    positive: error("positive", m),
    sines: error("sines", m),
    positiveBlocks: blocked("positive", m),
    sinesBlocks: blocked("sines", m),
  }),
  setup(app) {
    const both = app.split("1fr 1fr");
    const height = (width) => tf.clamp(width * 0.75, 230, 320);
    const scatter = app.plane({ height, into: both });
    const errors = app.plane({ height, into: both, lead: true });
    app.formula(
      "{sines:sin, cos (𝐰 𝐱ᵀ)}: exact at 0°;   {positive:exp(𝐰 𝐱ᵀ − |𝐱|²/2)}: exact at 180°",
    );
    app.knobsOf("kind", "m", "orthogonal");
    app.knob("angle", { format: (x) => `${tf.short(x)}°` });
    const question = app.ask({
      name: "crossing",
      question:
        "Sines and cosines are exact where x and y are equal, at 0°, and err most at 180°. Positive features are exact at 180°. At which angle do the two have the same relative error?",
      about: errors,
      ghost: {
        first: 45,
        at: (angle) => [angle, 0.3],
        to: (x) => tf.clamp(Math.round(x / 7.5) * 7.5, 0, 180),
        draw: (angle) => ({ rule: { x: angle }, colour: "attention", dash: "6 4" }),
        by: [7.5, 0],
        label: "the angle of equal error",
      },
      format: (angle) => `${tf.short(angle)}°`,
      near: 8,
      hides: ["positive", "error of positive features"],
      guards: ["kind"],
      truth: (numbers) => {
        const apart = angles.map((_, n) => Math.abs(numbers.sines[n] - numbers.positive[n]));
        return angles[apart.indexOf(Math.min(...apart))];
      },
      then: { kind: "positive", angle: 90 },
      because:
        "The two curves are almost mirror images. Positive features err little where the kernel is small, as for the many keys that a query should ignore, and most where it is large.",
    });

    return (state, numbers) => {
      const at = angles.indexOf(state.angle);
      const column = numbers.ratios[at];
      const colour = colours[state.kind];
      const negative = tf.sum(numbers.ratios.map((row) => row.filter((x) => x < 0).length));
      scatter.show({
        title: `estimate ÷ true kernel, ${tf.data.draws} draws at each angle`,
        label: `At ${state.angle}° the estimates range from ${tf.fixed(Math.min(...column), 2)} to ${tf.fixed(Math.max(...column), 2)} times the true kernel`,
        x: { label: "angle between x and y", from: -6, to: 186, ticks: [0, 45, 90, 135, 180] },
        y: { from: LOW, to: HIGH, ticks: [-1, 0, 1, 2, 3] },
        hover: false,
        marks: [
          { shape: tf.box(state.angle - 3, state.angle + 3, LOW, HIGH), colour, strength: 0.12 },
          { rule: { y: 1 }, colour: "ink" },
          { rule: { y: 0 }, colour: "muted", dash: "3 3" },
          {
            points: numbers.ratios.flatMap((row, n) =>
              row.map((x) => [angles[n], tf.clamp(x, LOW, HIGH)]),
            ),
            size: 2,
            colour,
            term: state.kind,
          },
        ],
      });
      const line = (kind) => [
        {
          line: above(numbers[kind]),
          colour: colours[kind],
          wide: 2.5,
          name: names[kind],
          term: kind,
          part: kind,
        },
        state.orthogonal && {
          line: above(numbers[`${kind}Blocks`]),
          colour: colours[kind],
          dash: "5 4",
          part: kind,
        },
      ];
      const [good, bad] = ["sines", "positive"].map((kind) =>
        tf.percent((state.orthogonal ? numbers[`${kind}Blocks`] : numbers[kind])[at], 0),
      );
      const shown = numbers[question.open ? "sines" : state.kind][at];
      errors.show({
        title: "expected relative error, by angle (log)",
        label: `At ${state.angle}°: sines and cosines ${good}${question.open ? "" : `, positive features ${bad}`}`,
        x: { label: "angle between x and y", from: -6, to: 186, ticks: [0, 45, 90, 135, 180] },
        y: {
          from: LEAST,
          to: 4,
          log: true,
          ticks: [0.01, 0.1, 1],
          format: (x) => tf.percent(x, 0),
        },
        marks: [
          line("sines"),
          line("positive"),
          {
            handle: [state.angle, Math.max(shown, LEAST)],
            knob: "angle",
            text: `${tf.short(state.angle)}°`,
            to: (x) => ({ angle: app.snap("angle", x) }),
          },
        ],
      });
      app.read({
        "true kernel": tf.fixed(Math.exp(Math.cos(turn(state.angle))), 2),
        "error of sines and cosines": good,
        "error of positive features": question.open ? "?" : bad,
        "estimates below 0": `${negative} of ${tf.count(angles.length * tf.data.draws)}`,
      });
      app.say(
        `At ${tf.short(state.angle)}°, with ${state.m} features, sines and cosines err by ${good} of the kernel${question.open ? "" : `, positive features by ${bad}`}.`,
      );
    };
  },
});
