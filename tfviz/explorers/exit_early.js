// Early exit as it was run: exits and letters at each threshold are stored.
const { seeds, full, text, levels } = tf.data;
const [N, L, ACROSS] = [4, text.length, 16];
const measures = Object.keys(seeds[0]);
const dashes = [undefined, "7 4", "2 3"];

export default tf.explorer({
  numbers(k) {
    const { exits, said, points } = seeds[k.seed][k.measure];
    const mine = said[k.level];
    return {
      exits: [...exits[k.level]].map(Number),
      same: tf.range(L).filter((t) => mine[t] === full[k.seed][t]).length,
      ...points[k.level],
    };
  },
  setup(app) {
    let from = 0;
    const pick = (_, j) => app.set({ letter: from + j });
    const matrix = app.matrix({ axes: ["block", "t"], pick });
    const plane = app.plane({ height: (w) => tf.clamp(w * 0.38, 230, 290) });
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
      number: { unit: "%", near: 4 },
      truth: (n) => Math.round(100 * n.agree),
      then: { measure: "softmax response", level: 2, seed: 0 },
      because: "Who leads behind the first blocks mostly goes on to lead, even by little.",
    });

    return (k, n) => {
      const { open } = question;
      const { said } = seeds[k.seed][k.measure];
      from = tf.clamp(k.letter - ACROSS / 2, 0, L - ACROSS);
      const height = (i) => N - i;
      const differs = (t) => said[k.level][t] !== full[k.seed][t];
      const value = levels[k.measure][k.level];
      const left = N - n.exits[k.letter]; // blocks that it does not compute
      const to = (x, y) => {
        const off = (p) => ((100 * p.flops - x) / 95) ** 2 + ((100 * p.agree - y) / 23) ** 2;
        return { level: tf.best(seeds[k.seed][k.measure].points.map((p) => -off(p))) };
      };
      const place = [100 * n.flops, 100 * n.agree];
      matrix.show({
        title: open
          ? "the letters that come"
          : "violet: computed; hatched: skipped; the letter said, ! if all blocks say another",
        label: `Letter ${k.letter}${open ? "" : `: exit ${n.exits[k.letter]}`}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 1,
        values: (i, j) => {
          const above = height(i) - n.exits[from + j];
          if (open) return 0;
          return above > 0 ? Number.NaN : above === 0 ? 0.75 : 0.35;
        },
        text: (i, j) => {
          if (open || n.exits[from + j] !== height(i)) return "";
          return tf.letter(said[k.level][from + j]) + (differs(from + j) ? "!" : "");
        },
        rowHeads: tf.range(N, (i) => `block ${height(i)}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j])),
        at: [left, k.letter - from],
        frames: open ? [] : [{ cell: [left, k.letter - from], term: "c" }],
        marks: [{ term: "copied", cells: open ? [] : tf.range(left, (i) => [i, k.letter - from]) }],
      });
      const [flops, agree] = [tf.percent(n.flops), tf.percent(n.agree, 1)];
      plane.show({
        title: "128 texts: letters as all blocks say them, against the FLOPs",
        label: open ? "Agreement against FLOPs" : `${flops} of the FLOPs, ${agree} agree`,
        x: { label: "FLOPs, % of all blocks", from: 20, to: 115 },
        y: { label: "agree, %", from: 78, to: 101 },
        marks: !open && [
          measures.map((name, m) => ({
            line: seeds[k.seed][name].points.map((p) => [100 * p.flops, 100 * p.agree]),
            name,
            bold: name === k.measure,
            dash: dashes[m],
            term: "level",
            colour: name === k.measure ? "attention" : "muted",
          })),
          { handle: place, knob: "level", to, text: `λ = ${tf.short(value)}`, term: "level" },
        ],
      });
      app.read({
        "blocks, mean": question.tell(`${tf.fixed(n.depth, 2)} of ${N}`),
        FLOPs: question.tell(flops),
        "as all blocks say": question.tell(agree),
        right: question.tell(tf.percent(n.right, 1)),
      });
      const told = open
        ? ""
        : ` leaves behind block ${n.exits[k.letter]} and says ${tf.letter(said[k.level][k.letter])}; all blocks say ${tf.letter(full[k.seed][k.letter])}`;
      app.say(
        `λ = ${tf.short(value)}: letter ${k.letter}, before ${tf.letter(text[k.letter])}${told}.`,
      );
    };
  },
});
