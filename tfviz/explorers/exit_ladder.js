// What four exits say, letter by letter: stored from real training.
const { depths, text, trained } = tf.data;
const ACROSS = 16;
const N = depths.aligned[0].right.length;
const names = Object.keys(trained);
const dashes = { "aligned, ω = n": "7 4", mixed: "2 3" };

export default tf.explorer({
  numbers(state) {
    const { right, said, tenths } = depths[state.trained][state.seed];
    const [mine, last] = [said[state.exit - 1], said.at(-1)];
    return {
      right,
      tenths: tenths.map((row) => Number(row[state.letter])),
      alike: tf.range(mine.length).filter((t) => mine[t] === last[t]).length,
    };
  },
  setup(app) {
    let from = 0;
    const pick = (i, j) => app.set({ exit: N - i, letter: from + j });
    const matrix = app.matrix({ axes: ["exit", "t"], pick });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.35, 210, 260) });
    app.formula("exit n: softmax of LN({state:h_tⁿ}) Eᵀ — the same {read:E} for all");
    app.motion("letter", { every: 400 });
    app.knob("exit");
    app.knob("trained", { as: "select" });
    app.knob("seed");
    const question = app.ask({
      name: "first",
      question:
        "Only the last of four exits was trained; all share its classifier. How many per cent of the letters does the first exit name?",
      number: {},
      unit: "%",
      near: 5,
      truth: (numbers) => Math.round(100 * numbers.right[0]),
      then: { trained: "last exit alone", exit: 1, seed: 0 },
      because: "Nobody told the first block to speak this language. Compare the other trainings.",
    });

    return (state, numbers) => {
      const { open } = question;
      const { said, tenths } = depths[state.trained][state.seed];
      from = tf.clamp(state.letter - ACROSS / 2, 0, text.length - 1 - ACROSS);
      matrix.show({
        title:
          "the more colour, the likelier the right letter; in the cell the letter that is said",
        label: `Letter ${state.letter}, exit ${state.exit}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 10,
        values: (i, j) => (open ? 0 : Number(tenths[N - 1 - i][from + j]) + 0.5),
        text: (i, j) => (open ? "" : tf.letter(said[N - 1 - i][from + j])),
        rowHeads: tf.range(N, (i) => `exit ${N - i}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j + 1])),
        at: [N - state.exit, state.letter - from],
        frames: [{ cell: [N - state.exit, state.letter - from], term: "state" }],
      });
      const height = 100 * numbers.right[state.exit - 1];
      const share = tf.percent(numbers.right[state.exit - 1], 1);
      plane.show({
        title: "right letters of each exit, held-out text",
        label: open ? "Accuracy of each exit" : `Exit ${state.exit}: ${share}`,
        x: { label: "exit", from: 1, to: N, whole: true },
        y: { label: "right, %", from: 0, to: 60 },
        marks: [
          !open &&
            names.map((name) => ({
              line: depths[name][state.seed].right.map((v) => 100 * v),
              start: 1,
              dots: true,
              name: trained[name],
              bold: name === state.trained,
              dash: dashes[name],
              term: "read",
              colour: name === state.trained ? "attention" : "muted",
            })),
          { handle: [state.exit, open ? 30 : height], knob: "exit", text: `exit ${state.exit}` },
        ],
      });
      const right = tf.letter(text[state.letter + 1]);
      app.read({
        "this exit is right": question.tell(share),
        "says what the last says": question.tell(
          `${numbers.alike} of ${text.length - 1} letters here`,
        ),
        "p of the right letter here": question.tell(
          `${numbers.tenths[state.exit - 1] / 10} or a little more`,
        ),
      });
      const words = open
        ? ""
        : `; exit ${state.exit} says ${tf.letter(said[state.exit - 1][state.letter])}`;
      app.say(`After ${tf.letter(text[state.letter])} comes ${right}${words}.`);
    };
  },
});
