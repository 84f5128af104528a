// Mixing vectors m_a of four heads over d̃ₖ features; a feature serves (Σ|m|)² / Σm² heads.
const { mixing, accuracies, blind, sizes, width } = tf.data;
const h = mixing[String(sizes[0])].length;
const largest = (rows) => Math.max(...rows.flat().map(Math.abs));
const ways = [
  { way: "parafac", name: "PARAFAC", colour: "attention", dy: 26 },
  { way: "svd", name: "SVD (dashed)", colour: "key", dash: "6 4", dy: 44 },
];
// of d_k, the place among the sizes
const at = (d_k) => sizes.length - 1 - sizes.indexOf(d_k);
const percent = (x) => tf.percent(x, 0);
const ENOUGH = 0.9; // of the digits
const fewest = Math.min(...sizes.filter((_, n) => accuracies.parafac[n] >= ENOUGH));
// the features by the head that uses each most: what is not shared stands in steps
const sorted = (m) => {
  const weight = (n) => m.map((row) => Math.abs(row[n]));
  const head = (n) => tf.best(weight(n));
  const order = tf.range(m[0].length, (n) => n);
  order.sort((a, b) => head(a) - head(b) || Math.max(...weight(b)) - Math.max(...weight(a)));
  return m.map((row) => order.map((n) => row[n]));
};

export default tf.explorer({
  numbers({ d_k }) {
    const m = mixing[String(d_k)];
    const most = largest(m);
    const served = tf.range(d_k, (n) => {
      const column = m.map((row) => row[n]);
      return tf.sum(column.map(Math.abs)) ** 2 / tf.sum(column.map((x) => x * x));
    });
    return {
      mixing: m.map((row) => row.map((x) => x / most)),
      served: tf.mean(served),
      weights: (2 * width + h) * d_k + width * h,
    };
  },
  setup(app) {
    const matrix = app.matrix({ axes: ["head", "feature"], tall: 130 });
    const plane = app.plane({ height: (wide) => tf.clamp(wide * 0.36, 200, 260), lead: true });
    app.formula("head a:   𝐗 𝐖̃_q diag({mixing:𝐦_a}) (𝐗 𝐖̃_k)ᵀ");
    app.knob("d_k");
    const question = app.ask({
      name: "accuracy",
      question: `A trained encoder reads ${percent(accuracies.parafac[0])} of the test digits correctly, with ${sizes[0]} features of queries and keys in each layer. A decomposition (PARAFAC) replaces them with fewer, which heads can share, and nothing is trained again. What is the smallest of these sizes that still reads ${percent(ENOUGH)}?`,
      about: plane,
      ghost: {
        first: sizes[2],
        at: (size) => [at(size), ENOUGH],
        to: (x) => sizes[sizes.length - 1 - tf.clamp(Math.round(x), 0, sizes.length - 1)],
        by: [1, 0],
        draw: (size) => ({ rule: { x: at(size) }, colour: "ink", dash: "6 4" }),
        label: "the smallest size that is enough",
      },
      format: (size) => `${size} features`,
      hides: ["fewer"],
      guards: ["d_k"],
      truth: () => fewest,
      then: { d_k: fewest },
      because: `Even ${fewest} features, one for each head, read ${percent(accuracies.parafac[sizes.indexOf(fewest)])}. This model needs only a small part of what ${sizes[0]} features can express.`,
    });

    return (state, numbers) => {
      const { d_k } = state;
      const place = sizes.indexOf(d_k);
      const shares = d_k === sizes[0] ? "as trained: each head has its own" : "after PARAFAC";
      matrix.show({
        title: `mixing vectors of ${h} heads, ${d_k} features, ${shares}`,
        label: `${h} heads weigh ${d_k} features; a feature serves ${tf.fixed(numbers.served, 1)} heads`,
        rows: h,
        columns: d_k,
        signed: true,
        values: sorted(numbers.mixing),
        most: 1,
        text: () => "",
        rowHeads: app.narrow && d_k > 24 ? undefined : tf.range(h, String), // rows of 6 pixels
        marks: [{ cells: tf.range(h, (a) => [a, 0]), term: "mixing" }],
      });
      const steps = sizes.length - 1;
      plane.show({
        title: "digits read correctly, without more training",
        label: `With ${sizes[0]} features, ${percent(accuracies.parafac[0])} of the digits are read correctly`,
        x: {
          from: -0.3,
          to: steps + 0.3,
          label: "features of queries and keys",
          ticks: tf.range(sizes.length, (n) => n),
          format: (n) => String(sizes[steps - n] ?? ""),
        },
        y: { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1], format: percent },
        marks: [
          { rule: { y: ENOUGH }, colour: "muted", dash: "2 4" },
          { text: percent(ENOUGH), at: [-0.2, ENOUGH], dy: 12, align: "start" },
          { rule: { y: blind }, colour: "muted", dash: "2 4", part: "fewer" },
          { text: "all scores 0", at: [steps, blind], dy: 16, align: "end", part: "fewer" },
          ways.map(({ way, name, colour, dash }) => ({
            line: sizes.map((size, n) => [at(size), accuracies[way][n]]),
            colour,
            dash,
            wide: 2,
            dots: true,
            part: "fewer",
          })),
          ways.map(({ name, colour, dy }) => ({
            text: name,
            at: [1, 0.9],
            dy,
            colour,
            bold: true,
            part: "fewer",
          })),
          { points: [[at(sizes[0]), accuracies.parafac[0]]], colour: "attention" },
          { rule: { x: at(d_k) }, colour: "ink", dash: "3 3" },
        ],
      });
      app.read({
        "weights for queries, keys and mixing": tf.count(numbers.weights),
        "heads that a feature serves": tf.fixed(numbers.served, 1),
        "read correctly": percent(accuracies.parafac[place]),
      });
      app.say(
        `${d_k} features need ${tf.count(numbers.weights)} weights; a feature serves ${tf.fixed(numbers.served, 1)} heads${question.open ? "" : `, and ${percent(accuracies.parafac[place])} of the digits are read correctly`}.`,
      );
    };
  },
});
