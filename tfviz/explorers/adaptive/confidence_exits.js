// Early exit as it was run: exits and letters at each threshold are stored. The matrix shows a piece of
// the text, a column a letter and a row a block; the curve below, all texts at every threshold.
const { seeds, full, text, levels } = tf.data; // by seed; `full`: what all blocks predict
const [N, L, ACROSS] = [4, text.length, 16];
const measures = Object.keys(seeds[0]);
const RESPONSE = "softmax response";
// how a curve is drawn, and the point of it beside which its name stands
const looks = {
  [RESPONSE]: { dash: "10 3 2 3", named: { point: 2, align: "end", dx: -12, dy: -10 } },
  saturation: { dash: "2 3", named: { point: 11, align: "start", dx: 6, dy: 12 } },
  classifier: { dash: "7 4", named: { point: 8, align: "start", dx: 8, dy: 10 } },
};

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
      "exit after the first block with {c:c(𝐡ⁿ)} ≥ {level:λ}; {copied:above it 𝐡ⁿ is copied}",
    );
    app.motion("letter", { every: 400, verbs: ["back", "next letter"] });
    app.knob("level", { format: (n) => tf.short(levels[app.values().measure][n]) });
    app.knob("measure", { as: "select" });
    app.knob("seed");
    // the question: from the lowest threshold to a higher one
    const level = 2;
    const points = seeds[0][RESPONSE].points.map((p) => [100 * p.flops, 100 * p.agree]);
    const [lowest, asked, highest] = [points[0], points[level], points.at(-1)];
    app.ask({
      name: "lead",
      question: `At λ = 0, every letter exits after block 1, and ${tf.fixed(lowest[1], 0)} % of the predictions agree with the full model. At λ = ${levels[RESPONSE][level]}, a letter goes on until the likeliest next letter leads the second by a probability of ${levels[RESPONSE][level]}. What percentage agrees then?`,
      about: plane,
      ghost: {
        first: 98,
        at: (agree) => [asked[0], agree],
        to: (_, agree) => Math.round(tf.clamp(agree, 78, 100)),
        by: [0, 1],
        draw: (agree) => ({
          line: [lowest, [asked[0], agree], highest],
          colour: "ink",
          dash: "2 4",
        }),
        label: "agreement, in %",
      },
      unit: "%",
      near: 1.5,
      hides: ["its curve"],
      truth: (numbers) => Math.round(100 * numbers.agree),
      then: { measure: RESPONSE, level, seed: 0 },
      guards: ["level"],
      because:
        "Most predictions are settled after block 1. The lead separates them from the doubtful ones, and only the doubtful ones go on.",
    });

    return (state, numbers) => {
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
        title:
          "violet: computed; hatched: skipped; letter: the prediction, with ! if the full model's differs",
        label: `Prediction of letter ${state.letter}: exit ${numbers.exits[state.letter]}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 1,
        values: (i, j) => {
          const above = height(i) - numbers.exits[from + j];
          return above > 0 ? Number.NaN : above === 0 ? 0.75 : 0.35;
        },
        text: (i, j) => {
          if (numbers.exits[from + j] !== height(i)) return "";
          return tf.letter(said[state.level][from + j]) + (differs(from + j) ? "!" : "");
        },
        rowHeads: tf.range(N, (i) => `block ${height(i)}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j])),
        at: [left, state.letter - from],
        frames: [{ cell: [left, state.letter - from], term: "c" }],
        marks: [{ term: "copied", cells: tf.range(left, (i) => [i, state.letter - from]) }],
      });
      const [flops, agree] = [tf.percent(numbers.flops), tf.percent(numbers.agree)];
      plane.show({
        title: "128 texts: predictions that agree with the full model, against the FLOPs",
        label: `${flops} of the FLOPs, ${agree} agree`,
        x: { label: "FLOPs, % of all blocks", from: 20, to: 115 },
        y: { label: "agree, %", from: 78, to: 101 },
        marks: [
          measures.map((name) => {
            const curve = seeds[state.seed][name].points.map((p) => [100 * p.flops, 100 * p.agree]);
            const { dash, named } = looks[name];
            const { point, ...beside } = named;
            const chosen = name === state.measure;
            const look = {
              colour: chosen ? "attention" : "muted",
              part: name === RESPONSE ? "its curve" : undefined,
            };
            return [
              { line: curve, dash: chosen ? undefined : dash, term: "level", ...look },
              { text: name, at: curve[point], bold: chosen, ...beside, ...look },
            ];
          }),
          { handle: place, knob: "level", to, text: `λ = ${tf.short(value)}`, term: "level" },
        ],
      });
      app.read({
        "blocks per letter": `${tf.fixed(numbers.depth)} of ${N}`,
        FLOPs: flops,
        "agree with the full model": agree,
        accuracy: tf.percent(numbers.right),
      });
      const [comes, mine, all] = [
        text[state.letter],
        said[state.level][state.letter],
        full[state.seed][state.letter],
      ].map(tf.letter);
      app.say(
        `λ = ${tf.short(value)}: the prediction of letter ${state.letter} exits after block ${numbers.exits[state.letter]} and is “${mine}”; the full model predicts “${all}”, and the right letter is “${comes}”.`,
      );
    };
  },
});
