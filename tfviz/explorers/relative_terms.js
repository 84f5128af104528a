// Relative positions: Shaw's labels, the four terms of Transformer-XL and its shift, T5's buckets.

const { label: labelOf, shifted, bucketed, starts, prompts } = tf.data;
const sign = (n) => String(n).replace("-", "−");
const square = (n, f) => tf.range(n, (i) => tf.range(n, (j) => f(i, j)));

// The smallest distance of every bucket, in whole numbers as in Python.
const edges = tf.keep((buckets, far) => {
  const firsts = tf.range(buckets / 2);
  const rest = BigInt(buckets - buckets / 2);
  const e = BigInt(buckets / 2);
  let n = e;
  for (let m = 0n; m < rest; m++) {
    while (n ** rest < BigInt(far) ** m * e ** (rest - m)) n++;
    firsts.push(Number(n));
  }
  return firsts;
});
function bucketOf(n, { buckets, far, future }) {
  const half = future ? buckets / 2 : buckets;
  const distance = future ? Math.abs(n) : Math.max(0, n);
  const b = edges(half, far).findLastIndex((first) => first <= distance);
  return future && n < 0 ? b + half : b;
}

function fourTerms({ Q, K, R, u, v, terms }) {
  const L = Q.length;
  const r = (i, j) => R[L - 1 - (i - j)];
  const four = [
    square(L, (i, j) => tf.dot(Q[i], K[j])),
    square(L, (i, j) => tf.dot(Q[i], r(i, j))),
    square(L, (_, j) => tf.dot(u, K[j])),
    square(L, (i, j) => tf.dot(v, r(i, j))),
  ];
  const all = (i, j) => tf.sum(four.map((table, n) => (terms[n] ? table[i][j] : 0)));
  return [...four, square(L, (i, j) => all(i, j) / Math.sqrt(u.length))];
}

// Cells after `step`: 1 + 5 · query + distance; 0 where a zero was padded.
function shift({ step }) {
  const n = shifted;
  const rows = square(n, (i, c) => 1 + i * n + n - 1 - c);
  const padded = rows.map((row) => [0, ...row]);
  const cut = tf.range(n + 1, (i) => padded.flat().slice(i * n, (i + 1) * n));
  return [rows, padded, cut, cut.slice(1), cut.slice(1)][step];
}

const VIEWS = {
  labels: ({ L, k }) => square(L, (i, j) => labelOf(i, j, k)),
  terms: fourTerms,
  shift,
  buckets: (state) => square(bucketed, (i, j) => bucketOf(i - j, state)),
};
const numbers = (state) => ({ shown: VIEWS[state.view](state) });
const TERMS = ["q·k", "q·r", "u·k", "v·r"];
const WHAT = ["content", "content, place", "every query, content", "every query, place"];
const STEPS = [
  "each query by each distance",
  "a zero in front of every row",
  "the same numbers, cut into rows of 5",
  "first row dropped",
  "keys after the query masked",
];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const QUESTIONS = {
  labels: ({ L }) => ({
    name: "which-k",
    question: `With L = ${L}, from which k on does a larger k change nothing?`,
    number: {},
    near: 0,
    truth: (numbers, state) =>
      tf.range(L + 1).find((m) => same(VIEWS.labels({ L, k: m }), VIEWS.labels({ L, k: L }))) ??
      state.k,
    locks: ["k"],
    because: "No key stands further away than L − 1: beyond that nothing is clipped.",
  }),
  terms: () => ({
    name: "columns",
    question: "One of the four terms is made of columns: every row of it is the same. Which?",
    chips: TERMS,
    truth: ({ shown }) => shown.findIndex((table) => table.every((row) => same(row, table[0]))),
    because: "It asks neither who the query is nor where the key stands: only what the key is.",
  }),
  shift: ({ row, step }) =>
    step < 2 && {
      name: "begins-with",
      question: `Read on in rows of 5, and drop the first: with which distance does row ${row} begin?`,
      chips: tf.range(shifted, (n) => `r${n}`),
      truth: ({ shown }) => (shown[row][0] - 1) % shifted,
      then: { step: 3 },
      because: "Key 0 stands so far from its query: every row has moved to where it belongs.",
    },
  buckets: (first) => ({
    name: "shares",
    question: "How many distances are in the bucket of distance 22?",
    number: {},
    near: 0,
    truth: (numbers, state) =>
      tf.range(999).filter((n) => bucketOf(n, state) === bucketOf(22, first)).length,
    because: "From half of the buckets on, each is wider than the one before, as on a log axis.",
  }),
};

export default tf.explorer({
  fit(fine) {
    if (fine.buckets % 4) delete fine.buckets;
    if (fine.terms && fine.terms.length !== 4) delete fine.terms;
    return fine;
  },
  numbers,
  setup(app) {
    const { words, view: first } = app.values();
    const own = app.get("prompt");
    const side = () =>
      ({ terms: words.length, shift: shifted, buckets: bucketed, labels: app.get("L") })[
        app.get("view")
      ];
    const pick = (row, column) => app.set({ row, column });
    const big = app.matrix({ pick });
    const parts = app.split("1fr 1fr 1fr 1fr", { keep: 2 });
    const four = TERMS.map(() => app.matrix({ into: parts, lead: false, bare: true, pick }));
    const strip = app.matrix({ axes: ["", "row"], most: 30 });
    const curve = app.plane({ height: () => 170 });
    const formula = app.formula(
      `( ${TERMS.map((name, n) => `{term${n}:${name}}`).join(" + ")} ) / √d`,
    );
    const names = Object.keys(VIEWS).filter((name) => words.length || name !== "terms");
    app.knob("view", {
      options: names.map((name) => [name, name]),
      write: (view) => app.set({ view, ...starts[view] }),
    });
    const box = (name, n) =>
      app.checkbox(`term${n}`, {
        label: `${name}  (${WHAT[n]})`,
        read: () => app.get("terms")[n],
        write: (on) => app.set({ terms: app.get("terms").map((x, m) => (m === n ? on : x)) }),
      });
    const shorter = (L) => {
      const [row, column] = ["row", "column"].map((key) => Math.min(app.get(key), L - 1));
      app.set({ L, row, column });
    };
    const only = {
      labels: [app.knob("L", { write: shorter }), app.knob("k"), app.knob("causal")],
      terms: TERMS.map(box),
      shift: [app.motion("step", { every: 1500 }).slider],
      buckets: [app.knob("buckets"), app.knob("far"), app.knob("future")],
    };
    const [, columnKnob] = ["row", "column"].map((key) =>
      app.knob(key, { last: () => side() - 1 }),
    );
    const asked = app.ask(QUESTIONS[first](app.first));

    const hidden = () => asked.open && app.get("view") === first;

    const draw = {
      labels(state, table, i, j) {
        const { L, causal } = state;
        const n = table[i][j];
        const shut = causal && j > i;
        const allowed = table.map((row, r) => row.filter((_, c) => !causal || c <= r));
        const used = (m) => allowed.flat().includes(m);
        const handle = [Math.max(0, i - state.k) + 0.5, i + 0.5];
        const to = (x) => ({ k: app.snap("k", i - x + 0.5) });
        big.show({
          title: `label of each pair, from −${state.k} to ${state.k}: drag the dot`,
          label: `Labels of ${L} by ${L} pairs for k = ${state.k}; query ${i}, key ${j}`,
          rows: L,
          signed: true,
          most: state.k || 1,
          row: i,
          column: j,
          values: (r, c) => (causal && c > r ? Number.NaN : table[r][c]),
          text: (r, c) => sign(table[r][c]),
          frames: [{ cell: [i, j] }],
          handles: [{ handle, knob: "k", text: `k = ${state.k}`, to }],
        });
        const all = tf.range(2 * state.k + 1, (m) => m - state.k);
        strip.show({
          title: "Pᵏ: one row for each label; hatched: no pair here has it",
          label: `${all.filter(used).length} of ${all.length} labels are in use`,
          rows: 1,
          columns: all.length,
          signed: true,
          most: state.k || 1,
          values: all.map((m) => (used(m) ? m : Number.NaN)),
          text: (_, c) => sign(all[c]),
          frames: shut ? [] : [{ cell: [0, n + state.k] }],
        });
        const edge = allowed.flat().filter((m) => Math.abs(m) === state.k).length;
        app.read({
          "rows in each table": all.length,
          "of them in use here": all.filter(used).length,
          "pairs with an outermost label": tf.percent(edge / allowed.flat().length),
        });
        const mates = table[i].filter((m, c) => m === n && (!causal || c <= i)).length;
        const clipped = n !== j - i ? `, clipped to ${sign(n)}` : `, label ${sign(n)}`;
        const many = `${mates} keys of this query share that row of the table`;
        const share = mates > 1 ? many : "No other key of this query has that label";
        return shut ? "after the query, not allowed" : `j − i = ${sign(j - i)}${clipped}. ${share}`;
      },
      terms(state, all, i, j) {
        const L = words.length;
        const top = Math.max(1e-9, ...all.slice(0, 4).flat(2).map(Math.abs));
        const most = Math.max(1e-9, ...all[4].flat().map(Math.abs));
        big.show({
          title: `the sum of those that are on, divided by √${state.u.length}`,
          label: `Sum of the terms for ${words.join(", ")}; arrow keys choose a pair`,
          rows: L,
          rowHeads: words,
          columnHeads: words,
          row: i,
          column: j,
          signed: true,
          values: all[4],
          most,
          text: (r, c) => tf.fixed(all[4][r][c], 1),
          frames: [{ cell: [i, j] }],
        });
        four.forEach((view, n) => {
          const on = state.terms[n];
          view.show({
            title: on ? TERMS[n] : `${TERMS[n]}  off`,
            label: `The term ${TERMS[n]}, ${on ? "on" : "off"}; arrow keys choose a pair`,
            rows: L,
            most: on ? top : 4 * top,
            signed: true,
            row: i,
            column: j,
            values: (r, c) => (hidden() ? 0 : all[n][r][c]),
            text: () => "",
            marks: [{ cells: [[i, j]], term: `term${n}`, colour: "query" }],
          });
        });
        const termsHere = all.slice(0, 4).map((table) => table[i][j]);
        const listed = termsHere.map((x, n) => (state.terms[n] ? tf.fixed(x) : "off"));
        app.read({
          [`q·k + q·r + u·k + v·r, distance ${sign(i - j)}`]: hidden() ? "?" : listed.join(" + "),
          [`sum / √${state.u.length}`]: tf.fixed(all[4][i][j]),
        });
        const best = tf.best(all[4][i]);
        const parts = TERMS.map((name, n) => `${name} ${listed[n]}`);
        const partsText = hidden() ? "" : `: ${parts.join(", ")}`;
        return `“${words[i]}” asks “${words[j]}”${partsText}. Highest score of “${words[i]}”: “${words[best]}”`;
      },
      shift(state, table, i) {
        const { step } = state;
        const [rows, columns] = [table.length, table[0].length];
        const at = (x) => [Math.floor((x - 1) / shifted), (x - 1) % shifted];
        const early = step ? () => "" : (c) => `r${shifted - 1 - c}`;
        const heads = step >= 3 ? (c) => `key ${c}` : early;
        big.show({
          title: `${step}. ${STEPS[step]}`,
          label: `Rel-shift, step ${step}: ${STEPS[step]}. Up and down choose the query to follow`,
          rows,
          columns,
          most: 1,
          row: step === 2 ? undefined : i,
          values: (r, c) => {
            if (step === 4 && c > r) return Number.NaN;
            const x = table[r][c];
            return x && at(x)[0] === i ? 1 - 0.17 * at(x)[1] : 0;
          },
          text: (r, c) => (table[r][c] ? `q${at(table[r][c])[0]}·r${at(table[r][c])[1]}` : "0"),
          rowHeads: tf.range(rows, (r) => (step === 2 ? (r ? "" : "goes") : `q${r}`)),
          columnHeads: tf.range(columns, heads),
          frames: step === 2 ? [{ row: 0, colour: "ink", dash: "5 4" }] : [],
        });
        const right = table.flatMap((row, r) =>
          row.filter((x, c) => step >= 3 && x && c <= r && same(at(x), [r, r - c])),
        );
        app.read({
          "numbers in memory": rows * columns,
          "pairs j ≤ i that stand under their key": `${right.length} of ${(shifted * (shifted + 1)) / 2}`,
        });
        const done = `Query ${i} now has distance ${i} under key 0 and distance 0 under key ${i}`;
        return `Step ${step} of 4: ${STEPS[step]}. ${step >= 3 ? done : `Query ${i} must move left by ${shifted - 1 - i}`}`;
      },
      buckets(state, table, i, j) {
        const { buckets, far, future } = state;
        const half = future ? buckets / 2 : buckets;
        const shade = (b) =>
          (1 - (0.92 * (b % half)) / (half - 1)) * (future && b >= half ? -1 : 1);
        const b = table[i][j];
        const shut = !future && j > i;
        const first = edges(half, far);
        const n = Math.abs(i - j);
        const [low, next] = [first[b % half], first[(b % half) + 1]];
        const some = next - 1 === low ? `${low} alone` : `${low} to ${next - 1}`;
        const reach = next === undefined ? `${low} and beyond` : some;
        big.show({
          title: "bucket of each pair: the stronger, the nearer",
          label: `Buckets of ${bucketed} by ${bucketed} pairs; query ${i}, key ${j}. Arrow keys choose a pair`,
          rows: bucketed,
          signed: true,
          most: 1,
          row: i,
          column: j,
          values: (r, c) => (!future && c > r ? Number.NaN : shade(table[r][c])),
          frames: [{ cell: [i, j] }],
        });
        const side = future && j > i ? half : 0;
        const end = Math.max(bucketed, far + 6);
        const one = { ...state, buckets: half, future: false };
        const stair = (x) => [x, side + bucketOf(Math.floor(x), one)];
        curve.show({
          title: "bucket against distance: drag the violet dot, and where the last begins",
          label: shut ? "No bucket" : `Distance ${n} is in bucket ${b}`,
          x: { from: 0, to: end, label: "distance", whole: true },
          y: { from: side, to: side + half, whole: true },
          marks: [
            !hidden() && { line: tf.range(8 * end, (m) => stair(m / 8)), colour: "key" },
            { rule: { x: far }, dash: "4 3" },
            { handle: [far, side + half], knob: "far", colour: "ink", text: String(far) },
            !shut &&
              !hidden() && {
                handle: [n, b],
                knob: "column",
                label: "distance",
                text: `distance ${n}`,
                to: (x) => ({ column: app.snap("column", j > i ? i + x : i - x) }),
              },
          ],
        });
        app.read({
          "learned numbers for each head": buckets,
          distance: shut ? "–" : n,
          ...(hidden() ? {} : { "its bucket holds the distances": shut ? "–" : reach }),
        });
        if (shut) return "after the query, not allowed";
        return `distance ${n}${hidden() ? "" : ` is in bucket ${b}, with the distances ${reach}`}`;
      },
    };

    return (state, numbers) => {
      const { view } = state;
      app.prompt(view === first && own ? own : prompts[view]);
      for (const [name, fields] of Object.entries(only))
        for (const field of fields) {
          field.row.hidden = name !== view;
          if (field.more) field.more.hidden = name !== view;
        }
      strip.box.hidden = view !== "labels";
      parts.hidden = formula.hidden = view !== "terms";
      curve.box.hidden = view !== "buckets";
      asked.node?.toggleAttribute("hidden", view !== first);
      const [i, j] = [state.row, state.column].map((x) => Math.min(x, side() - 1));
      columnKnob.row.hidden = view === "shift";
      const words = draw[view](state, numbers.shown, i, j);
      const named = ["labels", "buckets"].includes(view) ? `Query ${i}, key ${j}: ` : "";
      app.say(`${named}${words}.`);
    };
  },
});
