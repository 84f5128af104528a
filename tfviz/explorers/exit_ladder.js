// What four exits say, letter by letter: stored from real training.
const { depths, text, trained } = tf.data;
const ACROSS = 16;
const N = depths.aligned[0].right.length;
const names = Object.keys(trained);
const dashes = { "aligned, ω = n": "7 4", mixed: "2 3" };

export default tf.explorer({
  numbers(k) {
    const { right, said, tenths } = depths[k.trained][k.seed];
    const [mine, last] = [said[k.exit - 1], said.at(-1)];
    return {
      right,
      tenths: tenths.map((row) => Number(row[k.letter])),
      alike: tf.range(mine.length).filter((t) => mine[t] === last[t]).length,
    };
  },
  setup(app) {
    let from = 0;
    const pick = (i, j) => app.set({ exit: N - i, letter: from + j });
    const matrix = app.matrix({ axes: ["exit", "t"], pick });
    const plane = app.plane({ height: (w) => tf.clamp(w * 0.35, 210, 260) });
    app.formula("exit n: softmax of LN({state:h_tⁿ}) Eᵀ — the same {read:E} for all");
    app.motion("letter", { every: 400 });
    app.knob("exit");
    app.knob("trained", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "first",
      question:
        "Only the last of four exits was trained; all share its classifier. How many per cent of the letters does the first exit name?",
      number: { unit: "%", near: 5 },
      truth: (n) => Math.round(100 * n.right[0]),
      then: { trained: "last exit alone", exit: 1, seed: 0 },
      because: "Nobody told the first block to speak this language. Compare the other trainings.",
    });

    return (k, n) => {
      const { open } = question;
      const { said, tenths } = depths[k.trained][k.seed];
      from = tf.clamp(k.letter - ACROSS / 2, 0, text.length - 1 - ACROSS);
      matrix.show({
        title:
          "the more colour, the likelier the right letter; in the cell the letter that is said",
        label: `Letter ${k.letter}, exit ${k.exit}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 10,
        values: (i, j) => (open ? 0 : Number(tenths[N - 1 - i][from + j]) + 0.5),
        text: (i, j) => (open ? "" : tf.letter(said[N - 1 - i][from + j])),
        rowHeads: tf.range(N, (i) => `exit ${N - i}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j + 1])),
        at: [N - k.exit, k.letter - from],
        frames: [{ cell: [N - k.exit, k.letter - from], term: "state" }],
      });
      const height = 100 * n.right[k.exit - 1];
      const share = tf.percent(n.right[k.exit - 1], 1);
      plane.show({
        title: "right letters of each exit, held-out text",
        label: open ? "Accuracy of each exit" : `Exit ${k.exit}: ${share}`,
        x: { label: "exit", from: 1, to: N, whole: true },
        y: { label: "right, %", from: 0, to: 60 },
        marks: [
          !open &&
            names.map((name) => ({
              line: depths[name][k.seed].right.map((v) => 100 * v),
              start: 1,
              dots: true,
              name: trained[name],
              bold: name === k.trained,
              dash: dashes[name],
              term: "read",
              colour: name === k.trained ? "attention" : "muted",
            })),
          { handle: [k.exit, open ? 30 : height], knob: "exit", text: `exit ${k.exit}` },
        ],
      });
      const right = tf.letter(text[k.letter + 1]);
      app.read({
        "this exit is right": question.tell(share),
        "says what the last says": question.tell(`${n.alike} of ${text.length - 1} letters here`),
        "p of the right letter here": question.tell(
          `${n.tenths[k.exit - 1] / 10} or a little more`,
        ),
      });
      const words = open ? "" : `; exit ${k.exit} says ${tf.letter(said[k.exit - 1][k.letter])}`;
      app.say(`After ${tf.letter(text[k.letter])} comes ${right}${words}.`);
    };
  },
});
