// Codes of place and step from the library's formula of the sinusoid; distances to one of them.
const { entry, places, steps } = tf.data; // entry(i, c, d, base) => number
const row = tf.keep((i, d, base) => tf.range(d, (c) => entry(i, c, d, base)), 400);
const code = (i, t, d, base) => {
  const [p, s] = [row(i, d, 10000), row(t, d, base)];
  return p.map((x, c) => x + s[c]);
};

export default tf.explorer({
  numbers({ t, i, d, base }) {
    const mine = code(i, t, d, base);
    const far = (code) => tf.norm(code.map((x, c) => x - mine[c]));
    return {
      codes: tf.range(places, (j) => code(j, t, d, base)),
      far: tf.range(places, (j) => tf.range(steps, (n) => far(code(j, n + 1, d, base)))),
    };
  },
  setup(app) {
    const both = app.split("1.2fr 1fr");
    const size = { tall: 300, into: both };
    const axes = ["place", "column of the code"];
    const table = app.matrix({ ...size, axes, pick: (i) => app.set({ i }) });
    const pick = (i, t) => app.set({ i, t: t + 1 });
    const map = app.matrix({ ...size, axes: ["place", "step"], pick });
    app.formula("𝐏ᵏᵢ = {place:code of place i} + {step:code of step k}");
    app.motion("t", { every: 700 });
    app.knobsOf("i", "d", "base");
    const question = app.ask({
      name: "twin",
      question:
        "Place and step use the same base. Which other place and step have exactly the same code as place 3 at step 5?",
      chips: ["no other", "place 5 at step 3", "place 4 at step 4", "place 8 at step 1"],
      truth: (numbers) =>
        [0, numbers.far[5][2], numbers.far[4][3], numbers.far[8][0]].findIndex(
          (x, at) => at && x < 1e-9,
        ) % 4,
      then: { t: 5, i: 3, d: 16, base: 10000 },
      because:
        "A sum does not depend on the order of its terms. With another base for the step, the two codes differ.",
    });

    return (state, numbers) => {
      const { open } = question;
      table.show({
        title: `Pᵏ at step ${state.t}: violet above 0, grey below`,
        label: `Codes at step ${state.t}; place ${state.i} is selected; arrow keys select another`,
        rows: places,
        columns: state.d,
        values: numbers.codes,
        signed: true,
        most: 2,
        row: state.i,
        marks: [{ cells: tf.range(state.d, (c) => [state.i, c]), term: "place" }],
        columnHeads: state.d > 16 ? undefined : tf.range(state.d, String),
      });
      const near = open ? NaN : 0; // while the question is open, all cells are hatched
      const closest = numbers.far.flatMap((r, j) =>
        r.map((x, s) => [x, j, s + 1]).filter(([, a, b]) => a !== state.i || b !== state.t),
      );
      const [least, j, s] = closest.reduce((a, b) => (b[0] < a[0] ? b : a));
      map.show({
        title: open
          ? "codes near this one: shown once you answer"
          : "stronger: nearer to the code of place i, step k",
        label: open ? "hidden until the question is answered" : `Nearest: place ${j} at step ${s}`,
        rows: places,
        columns: steps,
        most: 1,
        row: state.i,
        values: (i, t) => near + Math.exp(-numbers.far[i][t]),
        columnHeads: tf.range(steps, (m) => String(m + 1)),
        frames: open ? [] : [{ cell: [state.i, state.t - 1] }, { cell: [j, s - 1] }],
        marks: [{ cells: tf.range(places, (a) => [a, state.t - 1]), term: "step" }],
      });
      app.read({
        "this code": `place ${state.i}, step ${state.t}`,
        "nearest other code": question.tell(`place ${j}, step ${s}`),
        "its distance": question.tell(tf.fixed(least, 2)),
      });
      const nearestText = `: the nearest other code is place ${j} at step ${s}, ${tf.fixed(least, 2)} away`;
      app.say(`Step ${state.t}, place ${state.i}${open ? "" : nearestText}.`);
    };
  },
});
