// Early exit as it was run: exits and letters at each threshold are stored. The matrix shows a piece of
// the text, a column a letter and a row a block; the curve below, all texts at every threshold.
const { seeds, full, text, levels } = tf.data; // by seed; `full`: the letters that all blocks say
const [N, L, ACROSS] = [4, text.length, 16];
const measures = Object.keys(seeds[0]);
const dashes = [undefined, "7 4", "2 3"];

export default tf.explorer({
  numbers(state) {
    const { exits, said, points } = seeds[state.seed][state.measure];
    const mine = said[state.level];
    return {
      exits: [...exits[state.level]].map(Number),
      same: tf.range(L).filter((t) => mine[t] === full[state.seed][t]).length,
      ...points[state.level],
    };
  },
  setup(app) {
    let from = 0;
    const pick = (_, j) => app.set({ letter: from + j });
    const matrix = app.matrix({ axes: ["block", "t"], pick });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.38, 230, 290) });
    app.formula(
      "leave behind the first block with {c:c(hⁿ)} ≥ {level:λ}; {copied:above it hⁿ is copied}",
    );
    app.motion("letter", { every: 400, verbs: ["back", "next letter"] });
    app.knob("level", { format: (n) => tf.short(levels[app.values().measure][n]) });
    app.knob("measure", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "lead",
      question:
        "Each letter leaves as soon as the likeliest one leads by at least 0.1. How many per cent of the letters are still those that all blocks say?",
      number: {},
      unit: "%",
      near: 4,
      truth: (numbers) => Math.round(100 * numbers.agree),
      then: { measure: "softmax response", level: 2, seed: 0 },
      because: "Who leads behind the first blocks mostly goes on to lead, even by little.",
    });

    return (state, numbers) => {
      const { open } = question;
      const { said } = seeds[state.seed][state.measure];
      from = tf.clamp(state.letter - ACROSS / 2, 0, L - ACROSS);
      const height = (i) => N - i;
      const differs = (t) => said[state.level][t] !== full[state.seed][t];
      const value = levels[state.measure][state.level];
      const left = N - numbers.exits[state.letter]; // blocks that it does not compute
      // the dot goes to the threshold whose point is nearest, both axes scaled to the picture
      const to = (x, y) => {
        const apart = (p) => ((100 * p.flops - x) / 95) ** 2 + ((100 * p.agree - y) / 23) ** 2;
        return { level: tf.best(seeds[state.seed][state.measure].points.map((p) => -apart(p))) };
      };
      const place = [100 * numbers.flops, 100 * numbers.agree];
      matrix.show({
        title: open
          ? "the letters that come"
          : "violet: computed; hatched: skipped; the letter said, ! if all blocks say another",
        label: `Letter ${state.letter}${open ? "" : `: exit ${numbers.exits[state.letter]}`}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 1,
        values: (i, j) => {
          const above = height(i) - numbers.exits[from + j];
          if (open) return 0;
          return above > 0 ? Number.NaN : above === 0 ? 0.75 : 0.35;
        },
        text: (i, j) => {
          if (open || numbers.exits[from + j] !== height(i)) return "";
          return tf.letter(said[state.level][from + j]) + (differs(from + j) ? "!" : "");
        },
        rowHeads: tf.range(N, (i) => `block ${height(i)}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j])),
        at: [left, state.letter - from],
        frames: open ? [] : [{ cell: [left, state.letter - from], term: "c" }],
        marks: [
          { term: "copied", cells: open ? [] : tf.range(left, (i) => [i, state.letter - from]) },
        ],
      });
      const [flops, agree] = [tf.percent(numbers.flops), tf.percent(numbers.agree, 1)];
      plane.show({
        title: "128 texts: letters as all blocks say them, against the FLOPs",
        label: open ? "Agreement against FLOPs" : `${flops} of the FLOPs, ${agree} agree`,
        x: { label: "FLOPs, % of all blocks", from: 20, to: 115 },
        y: { label: "agree, %", from: 78, to: 101 },
        marks: !open && [
          measures.map((name, m) => ({
            line: seeds[state.seed][name].points.map((p) => [100 * p.flops, 100 * p.agree]),
            name,
            bold: name === state.measure,
            dash: dashes[m],
            term: "level",
            colour: name === state.measure ? "attention" : "muted",
          })),
          { handle: place, knob: "level", to, text: `λ = ${tf.short(value)}`, term: "level" },
        ],
      });
      app.read({
        "blocks, mean": question.tell(`${tf.fixed(numbers.depth, 2)} of ${N}`),
        FLOPs: question.tell(flops),
        "as all blocks say": question.tell(agree),
        right: question.tell(tf.percent(numbers.right, 1)),
      });
      const exitText = open
        ? ""
        : ` leaves behind block ${numbers.exits[state.letter]} and says ${tf.letter(said[state.level][state.letter])}; all blocks say ${tf.letter(full[state.seed][state.letter])}`;
      app.say(
        `λ = ${tf.short(value)}: letter ${state.letter}, before ${tf.letter(text[state.letter])}${exitText}.`,
      );
    };
  },
});
