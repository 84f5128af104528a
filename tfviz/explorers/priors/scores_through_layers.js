// used in layer n = w₁ · own + w₂ · used in layer n − 1; a rule gives (w₁, w₂) for each layer.
const { own, words } = tf.data;
const TOP = own.length - 1;
const L = words.length;
const rules = {
  own: () => [1, 0],
  accumulated: () => [1, 1],
  reused: (n, { m }) => (n % m ? [0, 1] : [1, 0]),
};
const matrix = (cell) => tf.range(L, (i) => tf.range(L, (j) => cell(i, j)));

function usedBy(state) {
  const used = [own[0]];
  for (let n = 1; n <= TOP; n++) {
    const [w1, w2] = rules[state.rule](n, state);
    used.push(matrix((i, j) => w1 * own[n][i][j] + w2 * used[n - 1][i][j]));
  }
  return used;
}

// the same place in the picture for each rule: what the top layer uses for this pair
const asked = {
  accumulated: {
    question:
      "Each layer adds its own score to the sum from below. For “mat” and “cat”, the sums in layers 0 to 2 are 1, 3 and 2. Layer 3's own score is 2. What is its sum?",
    because: "2 + 2 = 4. All four layers count equally: 1 + 2 − 1 + 2.",
  },
  reused: {
    question:
      "Every two layers share a map: layer 1 uses that of layer 0, so its score for “mat” and “cat” is still 1. Layer 2 computes a new score, −1. Which score does layer 3 use?",
    because:
      "Layer 3 reuses the score of layer 2, −1. Its own score would be 2, but a lazy layer never computes it.",
  },
};

export default tf.explorer({
  numbers(state) {
    const used = usedBy(state);
    const softmax = (row) => Array.from(tf.softmax(row));
    return { used, weights: used.map((scores) => scores.map(softmax)) };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.4, 210, 270), lead: true });
    const lines = app.lines();
    const maps = app.split("1fr 1fr 1fr", { keep: 2 });
    const pick = (i, j) => app.set({ i, j });
    const options = { axes: ["query", "key"], pick, tall: 210, into: maps };
    const grids = tf.range(3, () => app.matrix(options));
    const last = () => (question.open ? TOP - 1 : TOP);
    app.motion("layer", { every: 1200, last });
    app.knob("rule", { as: "select" });
    app.knobsOf("m", "i", "j");
    const rule = app.first.rule in asked ? app.first.rule : "accumulated";
    const pair = { i: 5, j: 1 };
    const question = app.ask({
      name: "top",
      ...asked[rule],
      about: plane,
      ghost: {
        first: 0,
        at: (score) => [TOP, score],
        to: (_, score) => tf.clamp(Math.round(score), -3, 7),
        by: [0, 1],
        label: `the score that layer ${TOP} uses`,
      },
      near: 0.25,
      format: (score) => `score ${tf.short(score)}`,
      hides: ["top"],
      guards: ["rule", "m", "i", "j"],
      truth: () => usedBy({ ...app.first, rule })[TOP][pair.i][pair.j],
      then: { layer: TOP, rule, m: app.first.m, ...pair },
    });

    return (state, { used, weights }) => {
      const { i, j } = state;
      const n = Math.min(state.layer, last());
      const at = (layer) => [layer, used[layer][i][j]];
      const layers = tf.range(TOP + 1);
      plane.show({
        title: `score of “${words[i]}” for “${words[j]}”: own (bars), in use (line)`,
        label: `Layer ${n}'s own score is ${tf.short(own[n][i][j])}, and the score in use is ${tf.short(used[n][i][j])}`,
        x: { names: layers.map((layer) => `layer ${layer}`) },
        y: { from: -3.5, to: 7.5, ticks: [-2, 0, 2, 4, 6], label: "score" },
        marks: [
          { rule: { y: 0 }, colour: "muted" },
          { bars: layers.map((layer) => own[layer][i][j]), start: 0, colour: "muted", term: "own" },
          { line: layers.slice(0, TOP).map(at), colour: "attention", wide: 2.5, dots: true },
          {
            line: [at(TOP - 1), at(TOP)],
            colour: "attention",
            wide: 2.5,
            dots: true,
            part: "top",
            term: "below",
          },
          {
            handle: at(n),
            knob: "layer",
            text: `uses ${tf.short(used[n][i][j])}`,
            to: (x) => ({ layer: Math.min(app.snap("layer", x), last()) }),
          },
        ],
      });
      const [w1, w2] = n ? rules[state.rule](n, state) : [1, 0];
      const below = n ? tf.short(used[n - 1][i][j]) : "0";
      lines.show([
        `layer ${n} uses  ${w1} · {own:${tf.short(own[n][i][j])}} (own)  +  ${w2} · {below:${below}} (from below)  =  {attention:${tf.short(used[n][i][j])}}`,
      ]);
      const shared = { rows: L, columns: L, row: i, column: j, frames: [{ cell: [i, j] }] };
      const score = { ...shared, signed: true, most: 6 };
      grids[0].show({
        title: `own scores of layer ${n}`,
        label: `Layer ${n}'s own score for the pair is ${tf.short(own[n][i][j])}`,
        values: own[n],
        text: (a, b) => tf.short(own[n][a][b]),
        ...score,
      });
      grids[1].show({
        title: "scores in use",
        label: `Layer ${n} uses the score ${tf.short(used[n][i][j])}`,
        values: used[n],
        text: (a, b) => tf.short(used[n][a][b]),
        ...score,
      });
      grids[2].show({
        title: "weights",
        label: `In layer ${n}, “${words[i]}” gives “${words[j]}” ${tf.percent(weights[n][i][j], 0)} of its weight`,
        values: weights[n],
        most: 1,
        text: () => "",
        ...shared,
      });
      app.read({
        "own score": tf.short(own[n][i][j]),
        "score in use": tf.short(used[n][i][j]),
        weight: tf.percent(weights[n][i][j], 0),
      });
      app.say(
        `Layer ${n} uses the score ${tf.short(used[n][i][j])}, so “${words[i]}” gives “${words[j]}” ${tf.percent(weights[n][i][j], 0)} of its weight.`,
      );
    };
  },
});
