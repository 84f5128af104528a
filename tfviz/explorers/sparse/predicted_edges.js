// SAC's smallest case: nodes are named one after another by the chances that the library learnt.
const { first, second, dice, every, reader, mate } = tf.data;
const N = first[0].length;

function drawn(chances, u) {
  let rest = u * tf.sum(chances);
  const node = chances.findIndex((chance) => (rest -= chance) < 0);
  return node < 0 ? N - 1 : node;
}
function named(state) {
  const nodes = [];
  for (let t = 0; t < state.named; t++) {
    const chances = t % 2 ? second[state.learnt][nodes.at(-1)] : first[state.learnt];
    nodes.push(drawn(chances, dice[state.dice][t]));
  }
  return nodes;
}
const right = ([i, j]) => i === reader && j === mate;
// from i over to j; to itself, a small ring
const bow = ([i, j]) =>
  i === j ? tf.arc(i, 0.45, 0.3) : tf.arc((i + j) / 2, 0, Math.abs(i - j) / 2, 0, Math.PI);
const colour = (edge) => (right(edge) ? "attention" : "muted");
// where the latest edge is named: over its bow
const namedAt = ([i, j]) => [(i + j) / 2, i === j ? 0.92 : Math.abs(i - j) / 2 + 0.14];

export default tf.explorer({
  numbers(state) {
    const nodes = named(state);
    const edges = tf.range(Math.floor(state.named / 2), (e) => nodes.slice(2 * e, 2 * e + 2));
    return {
      edges,
      next: state.named % 2 ? second[state.learnt][nodes.at(-1)] : first[state.learnt],
      chance: first[state.learnt][reader] * second[state.learnt][reader][mate],
      right: edges.filter(right).length,
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const height = (w) => tf.clamp(w * 0.7, 220, 320);
    const [arcs, bars] = [0, 1].map(() => app.plane({ height, into: both }));
    const drawnSo = app.lines();
    app.formula("∇J = Σ ∇ log p({draw:a_t} | a_<t) ({reward:r} − b)");
    app.motion("named", { every: 450 });
    app.knob("learnt", { format: (s) => `${s * every} steps` });
    app.knob("dice");
    const question = app.ask({
      name: "right",
      question: `An untrained network draws the edge ${reader} → ${mate} once in 36 draws. After ${every * (first.length - 1)} steps of training, how many of 8 draws will give it?`,
      number: {},
      near: 1,
      truth: (numbers) => numbers.right,
      then: { learnt: first.length - 1, named: 16, dice: 0 },
      because: "Only this edge earns more reward than a guess, so its chance grows to nearly 1.",
    });

    return (state, numbers) => {
      const half = state.named % 2 ? named(state).at(-1) : undefined;
      const latest = state.named % 2 ? undefined : numbers.edges.at(-1);
      arcs.show({
        title:
          half === undefined
            ? "edges so far (thick: the latest)"
            : `an edge from node ${half} to …`,
        label: numbers.edges.length
          ? `Edges ${numbers.edges.map(([i, j]) => `${i} to ${j}`).join(", ")}`
          : "No edge yet",
        x: { from: -0.8, to: N - 0.2, bare: true },
        y: { from: -0.7, to: 2.9, bare: true },
        marks: [
          // a bow for each edge so far; the one that is rewarded is not dashed
          numbers.edges.map((edge) => ({
            ...(right(edge) ? { term: "reward" } : { dash: "5 4" }),
            line: bow(edge),
            colour: colour(edge),
            wide: edge === latest ? 4 : 2,
          })),
          latest && { text: latest.join(" → "), at: namedAt(latest), bold: true },
          { points: tf.range(N, (i) => [i, 0]), colour: "ink", name: "nodes" },
          ...tf.range(N, (i) => ({
            text: i === reader ? `${i}: query` : i === mate ? `${i}: answer` : String(i),
            at: [i, -0.35],
            bold: i === reader || i === mate || i === half,
            colour: i === reader ? "query" : i === mate ? "key" : "ink",
          })),
        ],
      });
      drawnSo.show([`Drawn: ${numbers.edges.map((e) => e.join("→")).join(", ") || "none"}`]);
      bars.show({
        title:
          half === undefined ? "chance to be drawn first" : `chance to be drawn after node ${half}`,
        label: numbers.next.map((p, i) => `node ${i}: ${tf.fixed(p, 2)}`).join(", "),
        x: { from: -0.6, to: N - 0.4, whole: true, label: "node" },
        y: { from: 0, to: 1, label: "chance" },
        marks: [
          {
            bars: numbers.next,
            colour: "attention",
            name: "chance of the next node",
            term: "draw",
          },
        ],
      });
      app.read({
        "chance of 1 → 4": question.open && state.learnt ? "?" : tf.fixed(numbers.chance, 3),
        "edges drawn": `${numbers.edges.length}`,
        "of these, 1 → 4": `${numbers.right}`,
      });
      app.say(
        `After ${state.learnt * every} steps of training: ${numbers.edges.length} edge${numbers.edges.length === 1 ? "" : "s"} drawn, ${numbers.right} of them from 1 to 4.`,
      );
    };
  },
});
