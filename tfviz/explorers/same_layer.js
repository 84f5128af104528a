// A trained Universal Transformer, step by step; all numbers are stored by the experiment.
const { trained, T } = tf.data;

export default tf.explorer({
  numbers({ t, told, seed }) {
    const one = trained[told === "position alone" ? 1 : 0];
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
    const right = app.plane({ height: (w) => tf.clamp(w * 0.8, 210, 290), into: both });
    app.formula("Hᵗ = {layer:the same layer} (Hᵗ⁻¹ + Pᵗ),  {moved:how far each state moves}");
    app.motion("t", { every: 800 });
    app.knob("told", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "beyond",
      question: `Trained with ${T} steps it answers all. The same weights, run for six: how many answers of the test are right?`,
      chips: ["nearly all (over 90 %)", "in between", "near guessing (under 35 %)"],
      truth: (n) => (n.longer[5] > 0.9 ? 0 : n.longer[5] > 0.35 ? 1 : 2),
      then: { t: 6, told: "position and step", seed: 0 },
      because: "Nothing in training asked for a state that stays once it is right.",
    });

    return (k, n) => {
      const { open } = question;
      const { pi, hops, answers } = trained[0].rows[k.seed];
      const many = pi.length;
      const most = Math.max(...n.moved.flat());
      const rows = n.moved.length;
      grid.show({
        title: `how far each state moves in a step (five pairs, five queries)`,
        label: `After step ${k.t}: ${n.moved[k.t - 1].map((x) => tf.fixed(x, 1)).join(", ")}`,
        rows,
        columns: 2 * many,
        most,
        row: k.t - 1,
        values: (t, a) => (t < k.t ? n.moved[t][a] : Number.NaN),
        rowHeads: tf.range(rows, (t) => String(t + 1)),
        columnHeads: [...pi.map((to, a) => `${a}→${to}`), ...hops.map((h, a) => `${a}+${h}`)],
        marks: [
          { cells: tf.range(2 * many, (a) => [k.t - 1, a]), term: "layer" },
          {
            cells: n.moved.slice(0, k.t).flatMap((r, t) => r.map((_, a) => [t, a])),
            term: "moved",
          },
        ],
      });
      right.show({
        title: `right answers${open ? ": first say what you expect" : " of 2,500, by steps"}`,
        label: open
          ? "hidden until the question is answered"
          : n.longer.map((x) => tf.percent(x)).join(", "),
        x: { from: 1, to: rows, ticks: [1, 3, 6, 8], label: "steps" },
        y: { from: 0, to: 1.1, ticks: [0, 0.2, 0.5, 1] },
        marks: [
          { rule: { x: T }, colour: "muted" },
          { text: "trained", at: [T, 1.05], dx: 5 },
          !open && { line: n.longer, start: 1, colour: "attention", wide: 2.5, dots: true },
          !open && { handle: [k.t, n.longer[k.t - 1]], knob: "t", text: `t = ${k.t}` },
        ],
      });
      app.read({
        "queries (start + hops)": tf.range(many, (a) => `${a}+${hops[a]}`).join(", "),
        "must end at": answers.join(", "),
        "answered after t steps": open && k.t > 1 ? "?" : n.says.join(", "),
        "right of the test": question.tell(tf.percent(n.longer[k.t - 1])),
      });
      const told = open ? "" : `, ${n.hits} of ${many} queries are right`;
      app.say(`After ${k.t} step${k.t > 1 ? "s" : ""}${told}.`);
    };
  },
});
