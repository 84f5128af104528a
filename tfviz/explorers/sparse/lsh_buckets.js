// LSH on a circle: the hash, the sort, the chunks and the union of rounds, as in the library.
const { X, R, chunk, stages } = tf.data;
const L = X.length;
const axis = { from: -1.42, to: 1.42, bare: true };
const unit = X.map((x) => x.map((u) => u / tf.norm(x)));
const scores = X.map((q, i) => unit.map((k, j) => (i === j ? -1e5 : tf.dot(q, k) / Math.sqrt(2))));
const full = scores.map((row) => tf.softmax(row));
const others = tf.range(L).flatMap((i) =>
  tf
    .range(L)
    .filter((j) => j !== i)
    .map((j) => [i, j]),
);
// names of neighbours stand on two rings, so that they do not overlap
const turn = unit.map(([x, y]) => Math.atan2(y, x));
const ringOf = turn.map((angle) => turn.filter((other) => other < angle).length % 2);
const listed = (list) => list.join(", ").replace(/, (\d+)$/, " and $1");
const ring = tf.range(360, (a) => [Math.cos((a * Math.PI) / 180), Math.sin((a * Math.PI) / 180)]);

// bucket(x) = argmax [x R; −x R], then the tokens by bucket and place
function hashed([u, v]) {
  const half = u.map((_, k) => [u[k], v[k]]);
  const arrows = [...half, ...half.map((r) => r.map((x) => -x))];
  const into = (x) => tf.best(arrows.map((r) => tf.dot(x, r)));
  const borders = tf.range(360).filter((a) => into(ring[a]) !== into(ring.at(a - 1)));
  // between two borders lies a sector: [its bucket, its directions]
  const sectors = borders.map((from, n) => {
    const to = borders[n + 1] ?? borders[0] + 360;
    return [into(ring[from]), tf.range(to - from + 1, (a) => ring[(from + a) % 360])];
  });
  const bucket = X.map(into);
  const order = tf.range(L).sort((i, j) => bucket[i] - bucket[j] || i - j);
  const place = tf.range(L, (i) => Math.floor(order.indexOf(i) / chunk));
  const meet = (i, j) => bucket[i] === bucket[j] && [0, 1].includes(place[i] - place[j]);
  return { arrows, sectors, bucket, order, place, meet };
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
    const wheel = app.plane({ height: (width) => tf.clamp(width * 0.9, 240, 360), into: both });
    const matrix = app.matrix({ pick: (i) => app.set({ query: at(i) }), tall: 360, into: both });
    let at = (i) => i; // the token in a row of the matrix
    app.formula("{same:bucket(𝐱)} = argmax [𝐱 𝐑; −𝐱 𝐑]");
    app
      .lines()
      .show([
        "{near:Framed}: the query's chunk reads itself and the chunk before. Hatched: pairs that do not meet.",
      ]);
    app.motion("stage", { every: 1600, format: (n) => stages[n] });
    app.knobsOf("b", "rounds", "dice", "query");
    const { query: asked } = app.first;
    const { bucket, order, place, meet } = use(app.first).at(-1);
    const mates = tf.range(L).filter((j) => j !== asked && bucket[j] === bucket[asked]);
    const missed = mates.filter((j) => !meet(asked, j));
    const own = order.filter((j) => j !== asked && place[j] === place[asked]);
    const count = (n) => (n === mates.length ? `all ${n}` : n ? String(n) : "none");
    app.ask(
      mates.length > 1 &&
        app.first.stage < 3 && {
          name: "cut",
          question: `Query ${asked} shares its bucket with tokens ${listed(mates)}. All tokens are sorted by bucket and cut into chunks of ${chunk}; each chunk reads itself and the one before it. How many of these ${mates.length} does query ${asked} still meet?`,
          chips: tf.range(mates.length + 1, count),
          truth: (_, state) => {
            const last = use(state).at(-1);
            return mates.filter((j) => last.meet(asked, j)).length;
          },
          then: { stage: 3 },
          because: missed.length
            ? `Its chunk holds ${listed(own)} besides query ${asked}. Of its bucket, ${listed(missed)} ${missed.length > 1 ? "are" : "is"} in no chunk that it reads.`
            : "The others in its bucket are all in its chunk or in the one before.",
        },
    );

    return (state, numbers) => {
      const all = use(state);
      const last = all.at(-1);
      const rows = state.stage > 1 ? numbers.order : tf.range(L);
      at = (i) => rows[i];
      const mine = last.bucket[state.query];
      const shown = (i, j) =>
        state.stage < 1 || (state.stage < 3 ? last.bucket[i] === last.bucket[j] : last.meet(i, j));
      const lit = tf.range(L).filter((j) => state.stage > 0 && last.bucket[j] === mine);
      const colour = (j) =>
        j === state.query ? "query" : lit.includes(j) ? "attention" : undefined;
      const longest = Math.max(...last.arrows.map(tf.norm));
      wheel.show({
        title: state.stage
          ? `each sector is one bucket; violet: the bucket of query ${state.query}`
          : "sixteen vectors, by their direction",
        label: state.stage
          ? `Query ${state.query} is in bucket ${mine}, with ${lit.length - 1} ${lit.length === 2 ? "other" : "others"}`
          : "The directions of sixteen vectors, in four loose clusters",
        x: axis,
        y: axis,
        square: true,
        pick: (x, y) => app.set({ query: tf.best(unit.map((one) => tf.dot(one, [x, y]))) }),
        marks: [
          state.stage > 0 &&
            last.sectors.map(([bucket, edge]) => {
              const middle = edge[Math.floor(edge.length / 2)];
              const name = state.b > 4 ? String(bucket) : `bucket ${bucket}`;
              return [
                {
                  shape: [[0, 0], ...edge],
                  colour: bucket === mine ? "attention" : "key",
                  strength: bucket === mine ? 0.22 : 0.08,
                  term: bucket === mine ? "same" : undefined,
                },
                { line: [[0, 0], edge[0]], colour: "muted", wide: 1 },
                { text: name, at: middle.map((u) => 0.76 * u), colour: "muted" },
              ];
            }),
          { line: tf.arc(0, 0, 1), colour: "muted", wide: 1 },
          state.stage > 0 &&
            last.arrows.map((r, bucket) => ({
              arrow: [[0, 0], r.map((u) => (0.55 * u) / longest)],
              wide: bucket === mine ? 3 : 2,
              colour: bucket === mine ? "attention" : "ink",
              term: bucket === mine ? "same" : undefined,
            })),
          [...tf.range(L).filter((j) => j !== state.query), state.query].map((j) => ({
            points: [unit[j]],
            size: j === state.query ? 7 : 5,
            colour: colour(j) ?? "muted",
            term: lit.includes(j) ? "same" : undefined,
          })),
          unit.map((x, j) => ({
            text: String(j),
            bold: j === state.query,
            at: x.map((u) => u * (ringOf[j] ? 1.3 : 1.14)),
            colour: colour(j) ?? "ink",
          })),
        ],
      });
      const weight = (i, j) => (shown(i, j) ? (i === j ? 0 : full[i][j]) : Number.NaN);
      const row = rows.indexOf(state.query);
      const met = tf.range(L).filter((c) => shown(state.query, rows[c]));
      const first = last.place[state.query] * chunk; // of its chunk
      const end = first + chunk - 1;
      matrix.show({
        title: `${stages[state.stage]}: weights of full attention${state.stage ? " for pairs that meet" : ""}${state.rounds > 1 ? `, round ${state.rounds}` : ""}`,
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
      // which pairs meet at this step, in any of the rounds; after the cut, the library's numbers
      const meets = (i, j) => state.stage < 1 || all.some(({ bucket }) => bucket[i] === bucket[j]);
      const pairs = others.filter(([i, j]) => meets(i, j));
      const now =
        state.stage < 3
          ? {
              pairs: pairs.length / others.length,
              mass: tf.sum(pairs.map(([i, j]) => full[i][j])) / L,
              meets: pairs.flatMap(([i, j]) => (i === state.query ? [j] : [])),
            }
          : numbers;
      const [share, mass] = [now.pairs, now.mass].map((x) => tf.percent(x, 1));
      app.read({
        "vectors in the query's bucket": lit.length || "–",
        [`query ${state.query} meets`]:
          now.meets.length === L - 1 ? "all" : now.meets.join(", ") || "none",
        "pairs that meet": share,
        "attention kept": mass,
      });
      app.say(
        `${stages[state.stage]}: ${state.b} buckets, ${state.rounds} round${state.rounds > 1 ? "s" : ""}, ${share} of the pairs meet and keep ${mass} of the attention.`,
      );
    };
  },
});
