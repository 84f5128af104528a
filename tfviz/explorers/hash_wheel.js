// LSH on a circle: the hash, the sort, the chunks and the union of rounds, as in the library.
const { X, R, chunk, stages } = tf.data;
const L = X.length;
const edge = { colour: "muted", wide: 1, dash: "4 4" };
const axis = { from: -8, to: 8, bare: true };
const unit = X.map((x) => x.map((u) => u / tf.norm(x)));
const scores = X.map((q, i) => unit.map((k, j) => (i === j ? -1e5 : tf.dot(q, k) / Math.sqrt(2))));
const full = scores.map((row) => tf.softmax(row));
const ring = tf.range(360, (a) => [Math.cos((a * Math.PI) / 180), Math.sin((a * Math.PI) / 180)]);

// h(x) = argmax [x R; −x R], then the tokens by bucket and place
function hashed([u, v]) {
  const half = u.map((_, k) => [u[k], v[k]]);
  const arrows = [...half, ...half.map((r) => r.map((x) => -x))];
  const into = (x) => tf.best(arrows.map((r) => tf.dot(x, r)));
  const borders = ring.filter((x, a) => into(x) !== into(ring.at(a - 1)));
  const bucket = X.map(into);
  const order = tf.range(L).sort((i, j) => bucket[i] - bucket[j] || i - j);
  const place = tf.range(L, (i) => Math.floor(order.indexOf(i) / chunk));
  const meet = (i, j) => bucket[i] === bucket[j] && [0, 1].includes(place[i] - place[j]);
  return { arrows, borders, bucket, order, place, meet };
}
const thrown = tf.keep((b, dice) => R[b][dice].map(hashed));
const use = ({ b, dice, rounds }) => thrown(b, dice).slice(0, rounds);

export default tf.explorer({
  numbers(state) {
    const all = use(state);
    const pair = (i, j) => i !== j && all.some(({ meet }) => meet(i, j));
    const kept = tf.range(L, (i) => tf.range(L).filter((j) => pair(i, j)));
    return {
      buckets: all.map(({ bucket }) => bucket),
      order: all.at(-1).order,
      meets: kept[state.query],
      pairs: tf.sum(kept.map((keys) => keys.length)) / (L * (L - 1)),
      mass: tf.sum(kept.flatMap((keys, i) => keys.map((j) => full[i][j]))) / L,
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const wheel = app.plane({ height: (width) => tf.clamp(width * 0.9, 240, 340), into: both });
    const matrix = app.matrix({ pick: (i) => app.set({ query: at(i) }), tall: 340, into: both });
    let at = (i) => i; // the token in a row of the matrix
    app.formula(
      "bucket: {same:h(x) = argmax [x R; −x R]}; framed: {near:own chunk and the one before}; hatched: no meeting",
    );
    app.motion("stage", { every: 1600, format: (n) => stages[n] });
    app.knobsOf("b", "rounds", "dice", "query");
    const question = app.ask({
      name: "pairs",
      question:
        "With four equal buckets 20 % of all pairs would meet, 3 of 15 others. These are unequal, and cut into chunks of 4. What share meets?",
      ruler: { low: 0, high: 100 },
      format: (x) => tf.percent(x / 100, 1),
      near: 2,
      hides: ["pairs that meet", "attention kept", "query meets"],
      truth: (numbers) => 100 * numbers.pairs,
      then: { stage: 3, b: 4, rounds: 1, dice: 0 },
      because: "Unequal buckets add some pairs, the cut costs more. Now play the steps.",
    });

    return (state, numbers) => {
      const last = use(state).at(-1);
      const rows = state.stage > 1 ? numbers.order : tf.range(L);
      at = (i) => rows[i];
      const mine = last.bucket[state.query];
      const shown = (i, j) =>
        state.stage < 1 || (state.stage < 3 ? last.bucket[i] === last.bucket[j] : last.meet(i, j));
      const lit = tf.range(L).filter((j) => state.stage > 0 && last.bucket[j] === mine);
      const colour = (j) =>
        j === state.query ? "query" : lit.includes(j) ? "attention" : undefined;
      wheel.show({
        title: state.stage
          ? "arrows, borders, bucket numbers; violet: the query's"
          : "sixteen vectors",
        label: state.stage
          ? `Query ${state.query} is in bucket ${mine}, with ${lit.length - 1} others`
          : "Sixteen vectors in four loose clusters",
        x: axis,
        y: axis,
        square: true,
        marks: [
          { line: tf.arc(0, 0, 4.6), colour: "grid", wide: 1 },
          state.stage > 0 &&
            last.borders.map((x) => ({ line: [[0, 0], x.map((u) => 8 * u)], ...edge })),
          state.stage > 0 &&
            last.arrows.map((r) => ({ arrow: [[0, 0], r.map((u) => 1.6 * u)], wide: 2 })),
          X.map((to, j) => ({
            points: [to],
            size: j === state.query ? 6 : 4,
            colour: colour(j) ?? "muted",
            term: lit.includes(j) ? "same" : undefined,
          })),
          // the names stand outside, on two rings so that neighbours do not overlap
          unit.map((x, j) => ({
            text: String(state.stage ? last.bucket[j] : j),
            bold: j === state.query,
            at: x.map((u) => u * (j === state.query ? 5.4 : j % 2 ? 6.9 : 7.9)),
            colour: colour(j) ?? "muted",
          })),
        ],
      });
      const weight = (i, j) => (shown(i, j) ? (i === j ? 0 : full[i][j]) : Number.NaN);
      const row = rows.indexOf(state.query);
      const met = tf.range(L).filter((c) => shown(state.query, rows[c]));
      const first = last.place[state.query] * chunk; // of its chunk
      const end = first + chunk - 1;
      matrix.show({
        title: `${stages[state.stage]}: weights of full attention${state.stage ? " where a pair meets" : ""}${state.rounds > 1 ? `, round ${state.rounds}` : ""}`,
        label: `Row of query ${state.query}; arrow keys move it`,
        rows: L,
        values: (i, j) => weight(rows[i], rows[j]),
        most: 0.5,
        row,
        rowHeads: rows.map(String),
        columnHeads: rows.map(String),
        frames:
          state.stage === 3 ? [{ from: [first, Math.max(0, first - chunk)], to: [end, end] }] : [],
        marks: [{ cells: met.map((c) => [row, c]), term: state.stage === 3 ? "near" : "same" }],
      });
      const known = state.stage === 3 && !question.open; // the counts are those after the cut
      const counted = (text) => (state.stage === 3 ? text : "after the cut");
      const [pairs, mass] = [numbers.pairs, numbers.mass].map((x) => tf.percent(x, 1));
      app.read({
        "vectors in the query's bucket": tf.range(L).filter((j) => last.bucket[j] === mine).length,
        "pairs that meet": counted(pairs),
        "attention kept": counted(mass),
        "query meets": counted(`${numbers.meets.length} others`),
      });
      const keptText = known ? `, ${pairs} of the pairs, ${mass} of the attention` : "";
      app.say(
        `${stages[state.stage]}: ${state.b} buckets, ${state.rounds} round${state.rounds > 1 ? "s" : ""}${keptText}.`,
      );
    };
  },
});
