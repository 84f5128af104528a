// A trained Universal Transformer, step by step; all numbers are stored by the experiment.
const { trained, T } = tf.data;
const BEYOND = 6; // steps that the question asks about

export default tf.explorer({
  numbers({ t, told: signal, seed }) {
    const one = trained[signal === "position alone" ? 1 : 0];
    const { moved, says, answers } = one.rows[seed];
    return {
      moved,
      says: says[t - 1],
      longer: one.longer[seed],
      hits: says[t - 1].filter((x, n) => x === answers[n]).length,
    };
  },
  setup(app) {
    const both = app.split("1.3fr 1fr");
    const grid = app.matrix({ axes: ["step", "position"], tall: 290, into: both });
    const right = app.plane({ height: (width) => tf.clamp(width * 0.8, 210, 290), into: both });
    app.formula("𝐇ᵏ = {layer:the same layer} (𝐇ᵏ⁻¹ + 𝐏ᵏ),  {moved:how far each state moves}");
    app.motion("t", { every: 800 });
    app.knob("told", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "beyond",
      question: `With ${T} steps, as in training, all 2,500 queries of the test are answered correctly. Now run the same layer ${BEYOND} times. What share of the answers is correct?`,
      about: right,
      hides: ["beyond"],
      ghost: {
        first: 1,
        at: (share) => [BEYOND, share],
        to: (_, share) => Math.round(100 * tf.clamp(share, 0, 1)) / 100,
        draw: (share) => ({ points: [[BEYOND, share]], size: 4, colour: "ink" }),
        by: [0, 0.02],
        label: `the share of correct answers after ${BEYOND} steps`,
      },
      format: tf.percent,
      near: 0.05,
      truth: (numbers) => numbers.longer[BEYOND - 1],
      then: { t: BEYOND, told: "position and step", seed: 0 },
      guards: [],
      because:
        "In training, a state did not have to stay the same once its answer was correct, so the states keep moving and some answers are lost.",
    });

    return (state, numbers) => {
      const { pi, hops, answers, says } =
        trained[state.told === "position alone" ? 1 : 0].rows[state.seed];
      const many = pi.length;
      const most = Math.max(...numbers.moved.flat());
      const rows = numbers.moved.length;
      const hits = says.map((row) => row.filter((x, n) => x === answers[n]).length);
      grid.show({
        title: "how far each state moves in each step; right: correct answers",
        label: `Distances that the states move in step ${state.t}: ${numbers.moved[state.t - 1].map((x) => tf.fixed(x, 1)).join(", ")}`,
        rows,
        columns: 2 * many,
        most,
        row: state.t - 1,
        // steps that have not run yet are hatched
        values: (t, a) => (t < state.t ? numbers.moved[t][a] : Number.NaN),
        rowHeads: tf.range(rows, (t) => String(t + 1)),
        rowTails: hits.map((n, t) => (t < state.t ? `${n} of ${many}` : "")),
        columnHeads: [
          ...pi.map((to, a) => (grid.phone ? `→${to}` : `${a}→${to}`)),
          ...hops.map((h, a) => (grid.phone ? `+${h}` : `${a}+${h}`)),
        ],
        marks: [
          { cells: tf.range(2 * many, (a) => [state.t - 1, a]), term: "layer" },
          {
            cells: numbers.moved.slice(0, state.t).flatMap((r, t) => r.map((_, a) => [t, a])),
            term: "moved",
          },
        ],
      });
      const known = question.open ? T : rows;
      const curve = { colour: "attention", wide: 2.5, dots: true };
      right.show({
        title: "share of correct answers in the test, by step",
        label: numbers.longer
          .slice(0, known)
          .map((x, t) => `${t + 1} steps: ${tf.percent(x)}`)
          .join(", "),
        x: { from: 1, to: rows, whole: true, label: "steps k" },
        y: { from: 0, to: 1.1, ticks: [0, 0.25, 0.5, 0.75, 1], format: tf.percent },
        marks: [
          { rule: { x: T }, colour: "muted", dash: "4 4" },
          { text: "trained", at: [T, 0.2], dx: 6, align: "start", colour: "muted" },
          { line: numbers.longer.slice(T - 1), start: T, ...curve, part: "beyond" },
          { line: numbers.longer.slice(0, T), start: 1, ...curve },
          {
            handle: [state.t, 0.05],
            knob: "t",
            text: `k = ${state.t}`,
          },
        ],
      });
      const test = state.t > known ? "?" : tf.percent(numbers.longer[state.t - 1]);
      app.read({
        "queries (start + hops)": tf.range(many, (a) => `${a}+${hops[a]}`).join(", "),
        "correct answers": answers.join(", "),
        "answers after k steps": numbers.says.join(", "),
        "accuracy in the test": test,
      });
      app.say(
        `After ${state.t} step${state.t > 1 ? "s" : ""}, ${numbers.hits} of these ${many} queries are answered correctly.`,
      );
    };
  },
});
