// Informer's rating of each query of a trained head: M from all keys, and max − mean of sampled ones. The best
// rated get a row of a softmax, all others an even row.
const { heads, text, drawn } = tf.data;
const L = text.length;
const letters = [...text].map((x) => (x === " " ? "␣" : x));
const many = (f) => Math.min(f * Math.ceil(Math.log(L)), L);
const best = (ratings, u) =>
  tf
    .range(L)
    .sort((a, b) => ratings[b] - ratings[a])
    .slice(0, u)
    .sort((a, b) => a - b);

const scores = tf.keep((layer) => {
  const { Q, K } = heads[layer - 1];
  return Q.map((q) => K.map((k) => tf.dot(q, k) / Math.sqrt(q.length)));
}, 2);
const maps = tf.keep((layer) => scores(layer).map((s) => Array.from(tf.softmax(s))), 2);
const logSum = (s) => {
  const most = Math.max(...s);
  return most + Math.log(tf.sum(s.map((x) => Math.exp(x - most))));
};

function numbers({ by, factor, draw, layer }) {
  const u = many(factor);
  const exact = scores(layer).map((s) => logSum(s) - tf.mean(s));
  const sampled = scores(layer).map((s, i) => {
    const few = drawn[draw][i].slice(0, u).map((j) => s[j]);
    return Math.max(...few) - tf.mean(few);
  });
  const [right, estimated] = [best(exact, u), best(sampled, u)];
  const kept = by === "exact" ? right : estimated;
  const A = maps(layer).map((row, i) => (kept.includes(i) ? row : row.map(() => 1 / L)));
  const missed = A.map((row, i) => tf.sum(row.map((a, j) => Math.abs(a - maps(layer)[i][j]))));
  return {
    exact,
    sampled,
    kept,
    found: estimated.filter((i) => right.includes(i)).length,
    A,
    misses: tf.mean(missed),
  };
}

export default tf.explorer({
  numbers,
  setup(app) {
    const both = app.split("1fr 1fr");
    const plane = app.plane({
      height: (width) => tf.clamp(width * 0.7, 220, 330),
      into: both,
      lead: true,
    });
    const matrix = app.matrix({ axes: ["query", "key"], tall: 330, into: both });
    app.formula(
      "{exact:ln Σ e^s − mean of s}  over all keys,   {sampled:max of s − mean of s}  over sampled keys",
    );
    app.knob("by", { as: "select" });
    app.knobsOf("factor", "draw", "layer");
    const question = app.ask({
      name: "found",
      question:
        "The violet bars are the 8 queries whose rows are farthest from even, when rated with all 32 keys. Informer rates each query with only 8 keys drawn at random. How many of these 8 are among the 8 that it rates best?",
      about: plane,
      ruler: { low: 0, high: 8, step: 1 },
      format: (x) => `${x} of 8`,
      near: 1,
      hides: ["sampled", "found by the estimate"],
      guards: ["by"],
      truth: (numbers) => numbers.found,
      then: { by: "sampled", factor: 2, draw: 0, layer: 1 },
      because:
        "A few large scores make a row uneven, and eight keys drawn at random may miss them. But no bar is as low as the dashed line of an even row: whichever 8 queries are active, all the others lose something.",
    });

    return (state, values) => {
      const u = many(state.factor);
      const { exact, sampled, kept } = values;
      const others = tf.range(L).filter((i) => !kept.includes(i));
      const estimated = best(sampled, u);
      const top = 1.3 * Math.max(...exact, ...sampled);
      plane.show({
        title: "rating of each query: by all keys (bars), by sampled keys (dots)",
        label: `${u} of ${L} queries are active: ${kept.join(", ")}`,
        x: { label: "query", from: -0.7, to: L - 0.3, ticks: [0, 8, 16, 24, 31] },
        y: { from: 0, to: top },
        marks: [
          { bars: others.map((i) => exact[i]), at: others, wide: 0.7, colour: "muted" },
          {
            bars: kept.map((i) => exact[i]),
            at: kept,
            wide: 0.7,
            colour: "attention",
            term: "exact",
          },
          { rule: { y: Math.log(L) }, colour: "ink", dash: "5 4" },
          { text: "dashed: an even row", at: [L * 0.4, Math.log(L) + 0.04 * top], colour: "ink" },
          tf.range(L).map((i) => ({
            points: [[i, sampled[i]]],
            size: estimated.includes(i) ? 5 : 2.5,
            colour: "key",
            part: "sampled",
            term: "sampled",
          })),
          { text: `violet: the ${u} active queries`, at: [L / 2, top * 0.95], colour: "attention" },
          {
            text: `large dots: the ${u} best by the estimate`,
            at: [L / 2, top * 0.87],
            colour: "key",
            part: "sampled",
          },
        ],
      });
      matrix.show({
        title: "weights applied: rows of a softmax (active), even rows (lazy)",
        label: `${u} rows of a softmax and ${L - u} even rows`,
        rows: L,
        values: values.A,
        most: Math.max(...maps(state.layer).flat()),
        columnHeads: letters,
      });
      app.read({
        "active queries": `${u} of ${L}`,
        "found by the estimate": `${values.found} of ${u}`,
        "a row misses, on average": tf.fixed(values.misses),
      });
      app.say(
        `${u} of ${L} queries are active; the others get the mean of the values.${question.open ? "" : ` The estimate finds ${values.found} of the ${u} best queries.`}`,
      );
    };
  },
});
