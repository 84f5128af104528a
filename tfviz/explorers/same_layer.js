// A trained Universal Transformer, step by step; all numbers are stored by the experiment.
const { trained, T } = tf.data;

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
    app.formula("Hᵗ = {layer:the same layer} (Hᵗ⁻¹ + Pᵗ),  {moved:how far each state moves}");
    app.motion("t", { every: 800 });
    app.knob("told", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "beyond",
      question: `Trained with ${T} steps it answers all. The same weights, run for six: how many answers of the test are right?`,
      chips: ["nearly all (over 90 %)", "in between", "near guessing (under 35 %)"],
      truth: (numbers) => (numbers.longer[5] > 0.9 ? 0 : numbers.longer[5] > 0.35 ? 1 : 2),
      then: { t: 6, told: "position and step", seed: 0 },
      because: "Nothing in training asked for a state that stays once it is right.",
    });

    return (state, numbers) => {
      const { open } = question;
      const { pi, hops, answers } = trained[0].rows[state.seed];
      const many = pi.length;
      const most = Math.max(...numbers.moved.flat());
      const rows = numbers.moved.length;
      grid.show({
        title: `how far each state moves in a step (five pairs, five queries)`,
        label: `After step ${state.t}: ${numbers.moved[state.t - 1].map((x) => tf.fixed(x, 1)).join(", ")}`,
        rows,
        columns: 2 * many,
        most,
        row: state.t - 1,
        // steps that have not run yet are hatched
        values: (t, a) => (t < state.t ? numbers.moved[t][a] : Number.NaN),
        rowHeads: tf.range(rows, (t) => String(t + 1)),
        columnHeads: [...pi.map((to, a) => `${a}→${to}`), ...hops.map((h, a) => `${a}+${h}`)],
        marks: [
          { cells: tf.range(2 * many, (a) => [state.t - 1, a]), term: "layer" },
          {
            cells: numbers.moved.slice(0, state.t).flatMap((r, t) => r.map((_, a) => [t, a])),
            term: "moved",
          },
        ],
      });
      right.show({
        title: `right answers${open ? ": first say what you expect" : " of 2,500, by steps"}`,
        label: open
          ? "hidden until the question is answered"
          : numbers.longer.map((x) => tf.percent(x)).join(", "),
        x: { from: 1, to: rows, ticks: [1, 3, 6, 8], label: "steps" },
        y: { from: 0, to: 1.1, ticks: [0, 0.2, 0.5, 1] },
        marks: [
          { rule: { x: T }, colour: "muted" },
          { text: "trained", at: [T, 1.05], dx: 5 },
          !open && { line: numbers.longer, start: 1, colour: "attention", wide: 2.5, dots: true },
          !open && {
            handle: [state.t, numbers.longer[state.t - 1]],
            knob: "t",
            text: `t = ${state.t}`,
          },
        ],
      });
      app.read({
        "queries (start + hops)": tf.range(many, (a) => `${a}+${hops[a]}`).join(", "),
        "must end at": answers.join(", "),
        "answered after t steps": open && state.t > 1 ? "?" : numbers.says.join(", "),
        "right of the test": question.tell(tf.percent(numbers.longer[state.t - 1])),
      });
      const hitsText = open ? "" : `, ${numbers.hits} of ${many} queries are right`;
      app.say(`After ${state.t} step${state.t > 1 ? "s" : ""}${hitsText}.`);
    };
  },
});
