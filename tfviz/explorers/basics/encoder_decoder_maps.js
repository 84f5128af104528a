// The three attentions of an encoder–decoder: which tokens attend to which, with which shapes, at which step.

const PARTS = ["encoder", "decoder", "cross"];
const TITLES = ["self-attention", "causal self-attention", "cross-attention"];

const mean = (A, head) =>
  head >= 0 ? A[head] : A[0].map((row, i) => row.map((_, j) => tf.mean(A.map((one) => one[i][j]))));

function numbers(state) {
  const [encoder, decoder, cross] = PARTS.map((part) => mean(state[part], state.head));
  const [x, y] = [state.source.length, state.written.length];
  const pairs = [x * x, (y * (y + 1)) / 2, x * y];
  return { encoder, decoder, cross, pairs, best: tf.best(cross[state.step]) };
}

export default tf.explorer({
  ends: (state) => ({
    step: { high: state.written.length - 1 },
    head: { high: state.encoder.length - 1 },
  }),
  numbers,
  setup(app) {
    const { d, encoder, step: first, ...given } = app.values();
    const [source, written, said] = [given.source, given.written, given.said].map((words) =>
      words.map(tf.token),
    );
    const [X, Y, h] = [source.length, written.length, encoder.length];
    const above = app.split("3fr 2fr");
    const reading = app.plane({ into: above, height: () => 190 });
    const plan = app.plane({ into: above, height: () => 230 });
    const side = app.split("1fr 1fr 1fr", { keep: 3 });
    const pick = (part) => (i) => app.set(part === "encoder" ? { part } : { part, step: i });
    const maps = PARTS.map((part) => app.matrix({ into: side, lead: false, pick: pick(part) }));
    const lines = app.lines();
    app.motion("step", { every: 900, verbs: ["back", "write"] });
    app.knob("head", { format: (n) => (n < 0 ? "mean" : String(n)) });
    app.knob("part");
    const next = first + 1;
    const because = () => {
      const best = numbers({ ...app.values(), ...app.first, step: next }).best;
      return source[best] === said[next]
        ? `At step ${next} the decoder must say “${said[next]}”, so it looks at that symbol in the source.`
        : "This symbol has the largest weight.";
    };
    app.ask(
      next < Y && {
        name: "looks-at-next",
        question: `Step ${first} is shown. At step ${next} the decoder reads “${written[next]}”: which symbol of the source does it look at most?`,
        about: reading,
        hides: ["later"],
        ghost: {
          first: 0,
          at: (j) => [(j + 0.5) / X, 1],
          to: (x) => tf.clamp(Math.floor(x * X), 0, X - 1),
          draw: (j) => ({
            line: [0.14, 0.86],
            at: [(next + 0.5) / Y, (j + 0.5) / X],
            dash: "4 4",
          }),
          by: [1 / X, 0],
          label: "the symbol it looks at most",
        },
        format: (j) => `source ${j}: ${source[j]}`,
        truth: (numbers) => numbers.best,
        then: { step: next },
        because: because(),
      },
    );

    return (state, numbers) => {
      const i = state.step;
      const part = PARTS.indexOf(state.part);
      const weights = numbers.cross[i];
      const x = (j, many) => (j + 0.5) / many;
      reading.show({
        title: "where the decoder looks while it writes: drag the dot",
        label: `Step ${i}: the decoder looks most at source ${numbers.best}, ${source[numbers.best]}`,
        x: { from: 0, to: 1, bare: true },
        y: { from: -0.5, to: 1.3, bare: true },
        hover: false,
        marks: [
          weights.map((a, j) => ({
            line: [0.14, 0.86],
            at: [x(i, Y), x(j, X)],
            wide: 7 * a,
            colour: "attention",
            term: "cross",
          })),
          source.map((text, j) => ({
            text,
            at: [x(j, X), 1],
            colour: "key",
            bold: j === numbers.best,
          })),
          said.map((text, j) => ({
            text: j <= i ? text : "·",
            at: [x(j, Y), 0],
            colour: "value",
            bold: j === i,
          })),
          { text: "source", at: [0, 1.22], align: "start", colour: "muted" },
          { text: "written", at: [0, -0.24], align: "start", colour: "muted" },
          {
            handle: [x(i, Y), -0.28],
            knob: "step",
            text: `step ${i}`,
            colour: "query",
            to: (at) => ({ step: app.snap("step", at * Y - 0.5) }),
          },
        ],
      });
      // the plan: a box a sublayer, the encoder's in column 0 and the decoder's in column 1
      const box = (text, column, row, term) => [
        {
          shape: tf.box(column - 0.45, column + 0.45, row - 0.3, row + 0.3),
          colour: term ? "attention" : "muted",
          edge: true,
          term,
          strength: term === state.part ? 0.4 : 0.08,
        },
        { text, at: [column, row], bold: term === state.part, term, plain: true },
      ];
      const note = (text, column, row) => ({ text, at: [column, row], colour: "muted" });
      const up = (column, row) => {
        const ends = [0.32, 0.68].map((y) => [column, row + y]);
        return { arrow: ends, colour: "muted", wide: 1.5 };
      };
      const handed = [0, 1].map((n) => [0.2 + 0.35 * n, 2.9 - 0.7 * n]); // from H to the decoder
      plan.show({
        title: "plan of the model",
        label: "Plan: the encoder on the left hands H to the cross-attention of the decoder",
        x: { from: -0.5, to: 1.5, bare: true },
        y: { from: -0.5, to: 4.5, bare: true },
        hover: false,
        marks: [
          [note(`source ${X} × ${d}`, 0, 0), note(`H ${X} × ${d}`, 0, 3)],
          [note(`written ${Y} × ${d}`, 1, 0), note("says", 1, 4)],
          [box("self", 0, 1, "encoder"), box("feed-forward", 0, 2)],
          [box("causal self", 1, 1, "decoder"), box("cross", 1, 2, "cross")],
          [box("feed-forward", 1, 3), tf.range(3, (row) => up(0, row))],
          [tf.range(4, (row) => up(1, row)), { arrow: handed, colour: "key" }],
        ],
      });
      maps.forEach((view, m) => {
        const table = numbers[PARTS[m]];
        const [rows, columns] = [table.length, table[0].length];
        view.show({
          title: `${TITLES[m]} ${rows} × ${columns}`,
          label: `${TITLES[m]}, ${rows} queries by ${columns} keys; arrow keys choose a position`,
          rows,
          columns,
          most: 1,
          text: () => "",
          row: m ? i : undefined,
          values: (r, c) => (m === 1 && c > r ? Number.NaN : table[r][c]),
          part: (r) => (m === 2 && r > first ? "later" : "others"),
          frames: m === part ? [{ colour: "attention" }] : [],
          marks: [{ cells: tf.range(columns, (c) => [m ? i : 0, c]), term: PARTS[m] }],
        });
      });
      const [a, b] = [numbers[state.part].length, numbers[state.part][0].length];
      const seen = [
        "and nothing is masked: each symbol sees all",
        "and the masked future is hatched",
        "and nothing is masked: the whole source is known",
      ];
      const share = tf.fixed(weights[numbers.best]);
      const from = (decoder) => `from ${decoder ? "what is written" : "the source"}`;
      lines.show([
        `{query:Q} ${from(part)}: ${a} × ${d};  {key:K}, {value:V} ${from(part === 1)}: ${b} × ${d}`,
        `${h} heads of width ${d / h}; each has weights {attention:A: ${a} × ${b}}, ${seen[part]}`,
        `Step ${i}: the decoder reads {query:${written[i]}}, looks most at {key:${source[numbers.best]} (source ${numbers.best})} with weight ${share}, and says {value:${said[i]}}`,
      ]);
      app.read({
        "pairs of this attention": numbers.pairs[part],
        "pairs of all three": tf.sum(numbers.pairs),
        "looked at most in this step": `source ${numbers.best}: ${source[numbers.best]}`,
      });
      const which = state.head < 0 ? "mean of the heads" : `head ${state.head}`;
      app.say(
        `Step ${i}, ${which}: reads “${written[i]}”, looks most at source ${numbers.best}, “${source[numbers.best]}”, with weight ${share}, and says “${said[i]}”.`,
      );
    };
  },
});
