// What four exits predict, letter by letter: stored from real training. Below, how often each exit is right:
// the chosen training, and one to compare it with.
const { depths, text, trained } = tf.data;
const ACROSS = 16;
const N = depths.aligned[0].right.length;
const LONE = "last exit alone";

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
    app.formula("exit n: softmax( LN({state:𝐡_tⁿ}) 𝐄ᵀ ), with the same {read:𝐄} for all");
    app.motion("letter", { every: 400 });
    app.knob("exit");
    app.knob("trained", { as: "select" });
    app.knob("seed");
    const accuracy = (name, seed) => depths[name][seed].right.map((share) => 100 * share);
    const [, second] = accuracy(LONE, 0);
    app.ask({
      name: "first",
      question:
        "In the violet model, every exit was trained. If only exit 4 is trained, exit 4 gets better and exit 2 gets worse (dashed). What is the accuracy of exit 1 then?",
      about: plane,
      ghost: {
        first: 10,
        at: (share) => [1, share],
        to: (_, share) => Math.round(tf.clamp(share, 0, 60)),
        by: [0, 1],
        draw: (share) => ({ line: [share, second], start: 1, colour: "ink", dash: "2 4" }),
        label: "accuracy of exit 1, in %",
      },
      unit: "%",
      near: 4,
      hides: ["first exit"],
      truth: (numbers) => Math.round(100 * numbers.right[0]),
      then: { trained: LONE, exit: 1, seed: 0 },
      guards: ["trained"],
      because:
        "No loss trained block 1 to produce a state that the classifier can read, so exit 1 predicts far fewer letters correctly.",
    });

    return (state, numbers) => {
      const { said, tenths } = depths[state.trained][state.seed];
      from = tf.clamp(state.letter - ACROSS / 2, 0, text.length - 1 - ACROSS);
      matrix.show({
        title:
          "the letter that each exit predicts; the stronger the colour, the likelier the right one",
        label: `Letter ${state.letter}, exit ${state.exit}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 10,
        values: (i, j) => Number(tenths[N - 1 - i][from + j]) + 0.5,
        text: (i, j) => tf.letter(said[N - 1 - i][from + j]),
        rowHeads: tf.range(N, (i) => `exit ${N - i}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j + 1])),
        at: [N - state.exit, state.letter - from],
        frames: [{ cell: [N - state.exit, state.letter - from], term: "state" }],
      });
      const height = 100 * numbers.right[state.exit - 1];
      const share = tf.percent(numbers.right[state.exit - 1]);
      const rival = state.trained === LONE ? "aligned" : LONE;
      const course = (name) => {
        const chosen = name === state.trained;
        const [first, ...others] = accuracy(name, state.seed);
        const look = {
          dots: true,
          dash: chosen ? undefined : "7 4",
          colour: chosen ? "attention" : "muted",
          term: "read",
        };
        const part = name === LONE ? "first exit" : undefined;
        return [
          { line: [first, others[0]], start: 1, part, ...look },
          { line: others, start: 2, name: trained[name], bold: chosen, ...look },
        ];
      };
      plane.show({
        title: "accuracy of each exit on held-out text",
        label: `Exit ${state.exit}: ${share}`,
        x: { label: "exit", from: 0.9, to: N, ticks: [1, 2, 3, 4] },
        y: { label: "right letters, %", from: 0, to: 60 },
        marks: [
          course(rival),
          course(state.trained),
          { handle: [state.exit, height], knob: "exit", text: `exit ${state.exit}` },
        ],
      });
      const tenth = numbers.tenths[state.exit - 1] / 10;
      app.read({
        "accuracy of this exit": share,
        "same as exit 4": `${numbers.alike} of ${text.length - 1} letters`,
        "P of the right letter": `${tf.fixed(tenth, 1)} to ${tf.fixed(tenth + 0.1, 1)}`,
      });
      const [given, next, mine] = [
        text[state.letter],
        text[state.letter + 1],
        said[state.exit - 1][state.letter],
      ].map(tf.letter);
      app.say(
        `After “${given}” comes “${next}”; exit ${state.exit} predicts “${mine}”. On held-out text, it is right for ${share} of the letters.`,
      );
    };
  },
});
