// Query head m reads key head ⌊m hₖᵥ / h⌋, or m mod hₖᵥ where key heads are tiled; keys of a group are pooled.
const { K, V, keyHeads } = tf.data;
const h = K.length;
const dHead = K[0].length;
const reads = {
  neighbours: (n, left) => Math.floor((n * left) / h),
  tiles: (n, left) => n % left,
};
const kept = keyHeads.map((left) => 2 * left * dHead);
const pools = {
  mean: (rows) => rows[0].map((_, c) => tf.mean(rows.map((row) => row[c]))),
  first: (rows) => rows[0],
};
const scheme = (left) => (left === h ? "MHA" : left === 1 ? "MQA" : `GQA-${left}`);
const heads = (left) => `${left} head${left === 1 ? "" : "s"}`;
// a key head stands in the middle of its share of the width
const middle = (m, left) => ((m + 0.5) * h) / left - 0.5;

export default tf.explorer({
  numbers({ h_kv, wiring, pool }) {
    const read = tf.range(h, (n) => reads[wiring](n, h_kv));
    const pooled = (X) => tf.range(h_kv, (m) => pools[pool](X.filter((_, n) => read[n] === m)));
    return { reads: read, shared_keys: pooled(K), shared_values: pooled(V), kept };
  },
  setup(app) {
    const picture = app.plane({ height: () => 190, lead: true });
    const both = app.split("1fr 1fr");
    const matrix = app.matrix({ axes: ["head of keys", "number"], tall: 130, into: both });
    const bars = app.plane({ height: () => 200, into: both });
    app.formula(
      "query head m reads key head {reads:⌊m hₖᵥ / h⌋} (tiled: m mod hₖᵥ);   kept: 2 · {kept:hₖᵥ} · dₕ",
    );
    app.knob("h_kv");
    app.knob("wiring", { as: "select" });
    app.knob("pool", { as: "select" });
    const { h_kv: begins, wiring } = app.first;
    const aboutCache = {
      name: "cache",
      question: `Each of ${h} heads keeps ${2 * dHead} numbers for a token, ${kept[0]} in all. How many numbers are kept if all heads share one key and one value?`,
      about: bars,
      ghost: {
        first: kept[1] + 2 * dHead,
        at: (x) => [x, 0],
        to: (x) => tf.clamp(Math.round(x / 4) * 4, 4, kept[0]),
        draw: (x) => ({ rule: { x }, colour: "ink", dash: "6 4" }),
        by: [4, 0],
        label: "the end of the bar",
      },
      unit: "numbers",
      near: 4,
      hides: ["shared"],
      guards: ["h_kv"],
      truth: (numbers) => numbers.kept.at(-1),
      then: { h_kv: 1 },
      because:
        "With one key and value instead of eight, the cache is an eighth as large. All eight queries are still there.",
    };
    const aboutReading = {
      name: "reads",
      question: `With ${begins} heads of keys, query heads 0 and 1 both read key head 0. Now only 2 heads of keys are left. Which is the last query head that reads key head 0?`,
      about: picture,
      ghost: {
        first: 1,
        at: (n) => [n, 1],
        to: (x) => tf.clamp(Math.round(x), 0, h - 1),
        by: [1, 0],
        label: "the last query head that reads key head 0",
      },
      format: (n) => `query head ${n}`,
      guards: ["h_kv", "wiring"],
      truth: (numbers) => numbers.reads.lastIndexOf(0),
      then: { h_kv: 2, wiring: "neighbours" },
      because:
        "Each group has h / hₖᵥ = 4 neighbours: query heads 0 to 3 read key head 0, and heads 4 to 7 read key head 1.",
    };
    // what the second one says of query heads 0 and 1 holds for four heads of keys in neighbours
    const reading = begins === h / 2 && wiring === "neighbours" && aboutReading;
    app.ask(begins === h ? aboutCache : reading);

    return (state, numbers) => {
      const left = state.h_kv;
      const box = (x, y, half) => tf.box(x - half, x + half, y - 0.13, y + 0.13);
      picture.show({
        title: `${scheme(left)}: ${h} heads of queries, ${heads(left)} of keys and values`,
        label: `Query heads 0 to ${h - 1} read the key heads ${numbers.reads.join(", ")}`,
        x: { from: -0.6, to: h - 0.4, bare: true },
        y: { from: -0.25, to: 1.25, bare: true },
        marks: [
          numbers.reads.map((m, n) => ({
            line: [
              [n, 0.87],
              [middle(m, left), 0.13],
            ],
            colour: "attention",
            wide: 2,
            term: "reads",
          })),
          tf.range(h, (n) => [
            { shape: box(n, 1, 0.36), colour: "query", strength: 0.25, edge: true },
            { text: `q${n}`, at: [n, 1], colour: "query", bold: true, plain: true },
          ]),
          tf.range(left, (m) => [
            {
              shape: box(middle(m, left), 0, 0.36),
              colour: "key",
              strength: 0.3,
              edge: true,
              term: "kept",
            },
            { text: `k${m}`, at: [middle(m, left), 0], colour: "key", bold: true, plain: true },
          ]),
        ],
        hover: false,
      });
      matrix.show({
        title: "keys of one character, by head",
        label: `Keys of one character, ${heads(left)} of ${dHead} numbers`,
        rows: left,
        columns: dHead,
        values: numbers.shared_keys,
        text: () => "",
        signed: true,
        rowHeads: tf.range(left, String),
      });
      const row = (n) => keyHeads.length - 1 - n;
      bars.show({
        title: "numbers kept for one token, in one layer",
        label: keyHeads.map((n, k) => `${scheme(n)}: ${kept[k]}`).join("; "),
        x: { from: 0, to: kept[0] * 1.18, ticks: [0, kept[2], kept[1], kept[0]] },
        y: { names: keyHeads.map(scheme).reverse() },
        marks: keyHeads.map((n, k) => {
          const part = k === keyHeads.length - 1 ? "shared" : undefined;
          const mine = n === left;
          return [
            {
              shape: tf.box(0, kept[k], row(k) - 0.32, row(k) + 0.32),
              colour: mine ? "attention" : "muted",
              strength: mine ? 0.9 : 0.45,
              term: "kept",
              part,
            },
            {
              text: String(kept[k]),
              at: [kept[k], row(k)],
              dx: 6,
              align: "start",
              bold: mine,
              part,
            },
          ];
        }),
        hover: false,
      });
      const share = h / left;
      app.read({
        "numbers kept for a token": String(kept[keyHeads.indexOf(left)]),
        "last reader of key head 0": `query head ${numbers.reads.lastIndexOf(0)}`,
      });
      app.say(
        `${scheme(left)}: ${share} query head${share === 1 ? " reads" : "s read"} each head of keys and values; a token leaves ${kept[keyHeads.indexOf(left)]} numbers in the cache.`,
      );
    };
  },
});
