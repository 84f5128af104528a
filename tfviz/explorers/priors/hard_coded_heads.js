// A trained map, and exp(bell(i, j))/(s √(2π)) for each pair: nothing of it depends on the text.
const { heads, text, bell, far } = tf.data;
const L = text.length;
const letters = [...text].map((x) => (x === " " ? "␣" : x));
const softmaxRows = (Q, K) =>
  Q.map((q) => Array.from(tf.softmax(K.map((k) => tf.dot(q, k) / Math.sqrt(q.length)))));
const trained = tf.keep((layer) => softmaxRows(heads[layer - 1].Q, heads[layer - 1].K), 2);

function rowOf(i, { offset, spread, divided }) {
  const radius = Math.ceil(far * spread);
  const height = 1 / (spread * Math.sqrt(2 * Math.PI));
  const row = tf.range(L, (j) =>
    Math.abs(j - i - offset) <= radius ? height * Math.exp(bell(i, j, offset, spread)) : 0,
  );
  const total = tf.sum(row);
  return divided && total ? row.map((a) => a / total) : row;
}

export default tf.explorer({
  numbers(state) {
    const content = trained(state.layer);
    const prior = tf.range(L, (i) => rowOf(i, state));
    const shared = prior.map((row, i) => tf.sum(row.map((a, j) => Math.min(a, content[i][j]))));
    return { content, prior, sums: prior.map(tf.sum), common: tf.mean(shared) };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const axes = ["query", "key"];
    const pick = (i) => app.set({ i });
    const left = app.matrix({ axes, pick, tall: 300, into: both });
    const right = app.matrix({ axes, pick, tall: 300, into: both });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.35, 190, 240), lead: true });
    app.formula("weight of key j  =  exp({bell:−(j − i − Δ)²/(2s²)}) / (s √(2π))");
    app.knobsOf("i", "offset", "spread");
    app.knobsOf("divided", "layer");
    const asked = { i: 0, offset: -1, spread: 1, divided: false };
    const question = app.ask({
      name: "edge",
      question:
        "Each row of the hard-coded map is a bell centred one place before the query. It is cut off at the edges of the text and not divided by its sum. Rows in the middle sum to 100 %. What does the row of query 0 sum to?",
      about: plane,
      ruler: { low: 0, high: 100 },
      format: (x) => tf.percent(x / 100, 0),
      near: 8,
      hides: ["bell", "hard-coded row sums to"],
      guards: ["i", "offset", "spread", "divided"],
      truth: () => 100 * tf.sum(rowOf(0, asked)),
      then: asked,
      because:
        "0.24 + 0.05 + 0.005 ≈ 0.30. The bell is centred one place before the text, so its peak and the half before it are cut off.",
    });

    return (state, numbers) => {
      const { content, prior } = numbers;
      const { i } = state;
      const heads = { columnHeads: letters, row: i };
      left.show({
        title: `weights by content: a trained head of layer ${state.layer}`,
        label: `The largest weight of query ${i} in the trained head is ${tf.fixed(Math.max(...content[i]), 2)}`,
        rows: L,
        values: content,
        most: Math.max(...content.flat()),
        ...heads,
      });
      right.show({
        title: "weights by place: a hard-coded head",
        label: `The bell of query ${i} is centred at place ${i + state.offset}`,
        rows: L,
        values: prior,
        most: Math.max(...prior.flat()),
        ...heads,
      });
      const total = tf.percent(numbers.sums[i], 0);
      plane.show({
        title: `weights of query ${i}: hard-coded (bars) and trained (line)`,
        label: `Query ${i}: weights of the trained head${question.open ? "" : `, and a bell that sums to ${total}`}`,
        x: { from: -0.5, to: L - 0.5, whole: true, label: "key" },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
        marks: [
          { bars: prior[i], start: 0, colour: "attention", part: "bell", term: "bell" },
          { line: content[i], start: 0, colour: "key", wide: 2, dots: true },
        ],
      });
      app.read({
        "hard-coded row sums to": total,
        "overlap with the trained head": tf.percent(numbers.common, 0),
      });
      app.say(
        `With Δ = ${state.offset} and s = ${state.spread}, the bells cover ${tf.percent(numbers.common, 0)} of the trained head's weight${question.open ? "" : `; the row of query ${i} sums to ${total}`}.`,
      );
    };
  },
});
