// used = α · own + (1 − α) · guess; the guess of a pixel is a weighted sum of the 3 × 3 around it.
const { below, own, kernels } = tf.data;
const L = below.length;
const grid = (cell) => tf.range(L, (i) => tf.range(L, (j) => cell(i, j)));
const allowed = ({ reader }, i, j) => reader === "bert" || j <= i;

function guessed(image, { kernel, reader }) {
  const rows = kernels[kernel].slice(0, reader === "bert" ? 3 : 2);
  const pixel = (y, x) => image[y]?.[x] ?? 0;
  return grid((i, j) =>
    tf.sum(rows.map((row, y) => tf.sum(row.map((k, x) => k * pixel(i + y - 1, j + x - 1))))),
  );
}

const best = (row, state) => {
  const seen = row.filter((_, j) => allowed(state, state.i, j));
  return seen.indexOf(Math.max(...seen));
};

export default tf.explorer({
  numbers(state) {
    const image = grid((i, j) => (allowed(state, i, j) ? below[i][j] : 0));
    const guess = guessed(image, state);
    const used = grid((i, j) => state.alpha * own[i][j] + (1 - state.alpha) * guess[i][j]);
    const weights = used.map((row, i) => {
      const seen = row.map((s, j) => (allowed(state, i, j) ? s : -Infinity));
      return Array.from(tf.softmax(seen));
    });
    return { image, guess, used, weights };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.36, 200, 240), lead: true });
    const maps = app.split("1fr 1fr");
    const pick = (i, j) => app.set({ i, j });
    const axes = ["query", "key"];
    const left = app.matrix({ axes, pick, tall: 230, into: maps });
    const right = app.matrix({ axes, pick, tall: 230, into: maps });
    const middle = app.matrix({ axes, tall: 122 });
    app.formula("in use  =  {own:α · own}  +  {guess:(1 − α) · kernel ∗ scores from below}");
    app.knob("kernel", { as: "select" });
    app.knob("reader", { as: "select" });
    app.knobsOf("alpha", "i", "j");
    const asked = { kernel: "right", alpha: 0, reader: "gpt", i: 6 };
    const question = app.ask({
      name: "guess",
      question:
        "The kernel has a single weight: each pair takes the score of the key to its right. In the scores from below (bars), query 6 prefers key 4. Which key does the guess prefer?",
      about: plane,
      ghost: {
        first: 6,
        at: (j) => [j, 5.5],
        to: (x) => tf.clamp(Math.round(x), 0, L - 1),
        draw: (j) => ({ rule: { x: j }, colour: "ink", dash: "6 4" }),
        by: [1, 0],
        label: "the key that the guess prefers",
      },
      format: (j) => `key ${j}`,
      hides: ["guess", "preferred now", "its weight"],
      guards: ["kernel", "alpha", "reader", "i", "j"],
      truth: ({ used }) => best(used[asked.i], asked),
      then: { ...asked, j: 3 },
      because:
        "Key 3 gets the score of key 4, its neighbour to the right, which is 5. So this layer looks one key further left than the one below.",
    });

    return (state, { image, used, weights }) => {
      const { i, j } = state;
      const seen = (a, b) => allowed(state, a, b);
      const last = state.reader === "gpt" ? i : L - 1;
      const preferred = best(used[i], state);
      const lower = best(image[i], state);
      plane.show({
        title: `query ${i}: scores from below (bars), scores in use (line)`,
        label: `In the layer below, query ${i} prefers key ${lower}${question.open ? "" : `; now it prefers key ${preferred}`}`,
        x: { from: -0.5, to: L - 0.5, whole: true, label: "key" },
        y: { from: 0, to: 6.5, ticks: [0, 2, 4, 6], label: "score" },
        marks: [
          { bars: image[i].slice(0, last + 1), start: 0, colour: "key", term: "guess" },
          {
            line: used[i].slice(0, last + 1),
            start: 0,
            colour: "attention",
            wide: 2.5,
            dots: true,
            part: "guess",
          },
        ],
      });
      const shared = { rows: L, columns: L, row: i, signed: true, most: 6 };
      const word = (x) => (Number.isFinite(x) ? tf.short(x) : "");
      const around = { from: [i - 1, j - 1], to: [i + 1, j + 1] };
      const inside = {
        from: around.from.map((x) => Math.max(x, 0)),
        to: [state.reader === "gpt" ? i : Math.min(i + 1, L - 1), Math.min(j + 1, L - 1)],
      };
      left.show({
        title: "scores from below",
        label: `The guess for query ${i} and key ${j} reads the framed pixels`,
        values: grid((a, b) => (seen(a, b) ? image[a][b] : NaN)),
        text: (a, b) => (seen(a, b) ? word(image[a][b]) : ""),
        frames: [inside],
        ...shared,
      });
      const kernel = kernels[state.kernel];
      const cut = state.reader === "gpt" ? 2 : 3;
      middle.show({
        title: "kernel: weights of the framed scores",
        label: `The kernel, ${cut} rows of three weights`,
        rows: 3,
        columns: 3,
        values: kernel.map((row, y) => row.map((k) => (y < cut ? k : NaN))),
        text: (y, x) => (y < cut ? word(kernel[y][x]) : ""),
        rowHeads: ["i − 1", "i", "i + 1"],
        columnHeads: ["j − 1", "j", "j + 1"],
        signed: true,
        most: 1,
      });
      const hidden = (a) => question.open && a === i;
      right.show({
        title: "scores in use",
        label: `Scores of the layer, α = ${state.alpha}`,
        values: grid((a, b) => (seen(a, b) ? (hidden(a) ? 0 : used[a][b]) : NaN)),
        text: (a, b) => (seen(a, b) ? (hidden(a) ? "?" : word(used[a][b])) : ""),
        frames: question.open ? [] : [{ cell: [i, j] }],
        ...shared,
      });
      const weight = tf.percent(weights[i][preferred], 0);
      app.read({
        "preferred below": `key ${lower}`,
        "preferred now": `key ${preferred}`,
        "its weight": weight,
      });
      app.say(
        question.open
          ? `In the layer below, query ${i} prefers key ${lower}.`
          : `In the layer below, query ${i} prefers key ${lower}. With α = ${state.alpha} it now prefers key ${preferred} (weight ${weight}).`,
      );
    };
  },
});
