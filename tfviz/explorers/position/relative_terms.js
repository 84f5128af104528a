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
const WHAT = [
  "query and key",
  "query and distance",
  "key, for any query",
  "distance, for any query",
];
const STEPS = [
  "each query times each distance",
  "a zero in front of every row",
  "the same numbers, read in rows of 5",
  "the first row is dropped",
  "keys after the query are masked",
];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// What each view asks about its first state; a ghost stands in a cell of the row of its query.
const inRow = (row, columns) => ({
  first: 0,
  at: (column) => [column + 0.5, row + 0.5],
  to: (x) => tf.clamp(Math.floor(x), 0, columns - 1),
  by: [1, 0],
});
const QUESTIONS = {
  labels: ({ L, k, row }, { big }) =>
    row > k && {
      name: "shared",
      question: `Keys with the same label share one vector. The labels of query ${row} are hidden: which is the last key that shares the vector of key 0?`,
      about: big,
      ghost: {
        ...inRow(row, L),
        draw: (column) => ({ from: [row, 0], to: [row, column], dash: "5 4" }),
      },
      format: (column) => `key ${column}`,
      hides: ["labels of the query"],
      truth: ({ shown }) => shown[row].lastIndexOf(shown[row][0]),
      then: { L, k, row, column: row - k },
      guards: [],
      because: `Key j has the label j − ${row}, but no label is below −${k}, so keys 0 to ${row - k} all have the label −${k}.`,
    },
  terms: (first, { four }, words) => {
    const { row } = first;
    const best = tf.best(fourTerms(first)[2][row]);
    return (
      row > 0 && {
        name: "u-k",
        question: `In u·k only the row of “${words[0]}” is drawn. Which word has the highest number in the row of “${words[row]}”?`,
        about: four[2],
        ghost: {
          ...inRow(row, words.length),
          draw: (column) => ({ cell: [row, column], colour: "query", dash: "4 3" }),
        },
        format: (column) => words[column],
        hides: ["rows of u·k"],
        truth: ({ shown }) => tf.best(shown[2][row]),
        then: { row, column: best },
        guards: [],
        because:
          "u is the same for every query, so all rows of u·k are equal: this term depends only on the key.",
      }
    );
  },
  shift: ({ row, step }, { goal }) =>
    step < 2 && {
      name: "own-key",
      question: `Put a zero in front of every row, read the same numbers in rows of ${shifted}, and drop the first row. Under which key does q${row}·r0 end up?`,
      about: goal,
      ghost: {
        ...inRow(row, shifted),
        draw: (column) => ({ cell: [row, column], colour: "query", dash: "4 3" }),
      },
      format: (column) => `key ${column}`,
      hides: ["goal"],
      truth: (_, state) => shift({ ...state, step: 3 })[row].indexOf(1 + row * shifted),
      then: { step: 3, row },
      guards: ["step"],
      because: `r0 belongs to the query's own key. Row ${row} has moved left by ${shifted - 1 - row}, so each of its distances now stands under its key.`,
    },
  buckets: (first, { curve }) => {
    const { buckets, far, future, row } = first;
    const alone = buckets / 2; // distances with a bucket of their own
    const at = tf.range((Math.max(bucketed, far + 6) - alone) / 2, (n) => alone + 2 * n);
    const mates = tf.range(999).filter((n) => bucketOf(n, first) === bucketOf(22, first));
    return (
      !future && {
        name: "goes-on",
        question: `The nearest ${alone} distances have a bucket each, and all distances from ${far} on share the last bucket. How does the bucket number grow in between?`,
        about: curve,
        curve: { at },
        hides: ["stairs", "its bucket holds the distances"],
        truth: () => at.map((n) => bucketOf(n, first)),
        then: row >= 22 ? { row, column: row - 22 } : {},
        guards: [],
        because: `The edges of the other buckets grow by a constant factor, so the buckets hold more and more distances: bucket ${bucketOf(22, first)} holds ${mates[0]} to ${mates.at(-1)}.`,
      }
    );
  },
};

export default tf.explorer({
  fit(fine) {
    if (fine.buckets % 4) delete fine.buckets;
    if (fine.terms && fine.terms.length !== 4) delete fine.terms;
    return fine;
  },
  numbers,
  setup(app) {
    const { words: given, view: first } = app.values();
    const words = given.map(tf.token);
    const own = app.get("prompt");
    const side = () =>
      ({ terms: words.length, shift: shifted, buckets: bucketed, labels: app.get("L") })[
        app.get("view")
      ];
    const pick = (row, column) => app.set({ row, column });
    const both = app.split("1fr 1fr");
    const big = app.matrix({ pick, into: both });
    const beside = app.split("1fr", { into: both });
    const parts = app.split("1fr 1fr", { keep: 2, into: beside });
    const four = TERMS.map(() =>
      app.matrix({ into: parts, lead: false, bare: true, most: 27, pick }),
    );
    const strip = app.matrix({ axes: ["", "row"], most: 30, into: beside });
    const goal = app.matrix({ pick: (row) => app.set({ row }), into: beside });
    const curve = app.plane({ height: (width) => tf.clamp(width * 0.7, 170, 300), into: beside });
    const leads = { labels: big, terms: four[2], shift: goal, buckets: curve };
    const formula = app.formula(
      `( ${TERMS.map((name, n) => `{term${n}:${name}}`).join(" + ")} ) / √dₕ`,
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
    const asked = app.ask(QUESTIONS[first](app.values(), { big, four, goal, curve }, words));
    const { row: askedRow } = app.first;
    const hidden = () => asked.open && app.get("view") === first;

    const draw = {
      labels(state, table, i, j) {
        const { L, causal } = state;
        const n = table[i][j];
        const shut = causal && j > i;
        const allowed = table.map((row, r) => row.filter((_, c) => !causal || c <= r));
        const used = (m) => allowed.flat().includes(m);
        const held = hidden() && i === askedRow;
        const last = askedRow === L - 1 ? L - 2 : L - 1; // the row in which k is dragged
        const handle = [Math.max(0, last - state.k) + 0.5, last + 0.5];
        const to = (x) => ({ k: app.snap("k", last - x + 0.5) });
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
          part: (r) => first === "labels" && r === askedRow && "labels of the query",
          frames: [{ cell: [i, j] }],
          handles: [{ handle, knob: "k", text: `k = ${state.k}`, to }],
        });
        const all = tf.range(2 * state.k + 1, (m) => m - state.k);
        strip.show({
          title: "Pᵏ: one row for each label; hatched: no pair has that label",
          label: `${all.filter(used).length} of ${all.length} labels are in use`,
          rows: 1,
          columns: all.length,
          signed: true,
          most: state.k || 1,
          values: all.map((m) => (used(m) ? m : Number.NaN)),
          text: (_, c) => sign(all[c]),
          frames: shut || held ? [] : [{ cell: [0, n + state.k] }],
        });
        const edge = allowed.flat().filter((m) => Math.abs(m) === state.k).length;
        app.read({
          "rows in each table": all.length,
          "rows in use here": all.filter(used).length,
          "pairs with the label −k or k": tf.percent(edge / allowed.flat().length),
        });
        if (held) return `j − i = ${sign(j - i)}; the labels of this query are hidden`;
        const mates = table[i].filter((m, c) => m === n && (!causal || c <= i)).length;
        const clipped = n !== j - i ? `, clipped to ${sign(n)}` : `, label ${sign(n)}`;
        const many = `${mates} keys of this query share that row of the table`;
        const share = mates > 1 ? many : "No other key of this query has that label";
        return shut
          ? "the key comes after the query and is masked"
          : `j − i = ${sign(j - i)}${clipped}. ${share}`;
      },
      terms(state, all, i, j) {
        const L = words.length;
        const top = Math.max(1e-9, ...all.slice(0, 4).flat(2).map(Math.abs));
        const most = Math.max(1e-9, ...all[4].flat().map(Math.abs));
        big.show({
          title: `the sum of the terms that are on, divided by √${state.u.length}`,
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
            values: all[n],
            text: (r, c) => (n === 2 ? tf.fixed(all[n][r][c], 1) : ""), // the one that is asked about
            part: (r) => n === 2 && r > 0 && "rows of u·k",
            marks: [{ cells: [[i, j]], term: `term${n}`, colour: "query" }],
          });
        });
        const termsHere = all.slice(0, 4).map((table) => table[i][j]);
        const held = (n) => n === 2 && i > 0 && app.hides("rows of u·k");
        const listed = termsHere.map((x, n) =>
          state.terms[n] ? (held(n) ? "?" : tf.fixed(x)) : "off",
        );
        app.read({
          "distance i − j": sign(i - j),
          "q·k + q·r + u·k + v·r": listed.join(" + "),
          [`sum / √${state.u.length}`]: tf.fixed(all[4][i][j]),
        });
        const best = tf.best(all[4][i]);
        const parts = TERMS.map((name, n) => `${name} ${listed[n]}`);
        return `Query “${words[i]}”, key “${words[j]}”: ${parts.join(", ")}. Highest score of “${words[i]}”: “${words[best]}”`;
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
          rowHeads: tf.range(rows, (r) => (step === 2 ? (r ? "" : "drop") : `q${r}`)),
          columnHeads: tf.range(columns, heads),
          frames: step === 2 ? [{ row: 0, colour: "ink", dash: "5 4" }] : [],
        });
        goal.show({
          title: "wanted: each number under its key; hatched: keys after the query",
          label: `The wanted result: query ${i} has distances ${i} to 0 under keys 0 to ${i}. Up and down choose the query`,
          rows: shifted,
          most: 1,
          row: i,
          values: (r, c) => (c > r ? Number.NaN : r === i ? 1 - 0.17 * (r - c) : 0),
          text: (r, c) => `q${r}·r${r - c}`,
          part: (r, c) => r === askedRow && c <= r && "goal",
          rowHeads: tf.range(shifted, (r) => `q${r}`),
          columnHeads: tf.range(shifted, (c) => `key ${c}`),
        });
        const right = table.flatMap((row, r) =>
          row.filter((x, c) => step >= 3 && x && c <= r && same(at(x), [r, r - c])),
        );
        app.read({
          "numbers in memory": rows * columns,
          "pairs j ≤ i that stand under their key": `${right.length} of ${(shifted * (shifted + 1)) / 2}`,
        });
        const done = `Query ${i} now has distance ${i} under key 0 and distance 0 under key ${i}`;
        return `Step ${step} of 4: ${STEPS[step]}. ${step >= 3 ? done : `The row of query ${i} must move left by ${shifted - 1 - i}`}`;
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
          title: "bucket of each pair; stronger colour: nearer",
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
        const stairs = tf.range(8 * end, (m) => stair(m / 8));
        curve.show({
          title: "bucket by distance: drag a dot",
          label: shut ? "A key after the query has no bucket" : `Distance ${n} is in bucket ${b}`,
          x: { from: 0, to: end, label: "distance", whole: true },
          y: { from: side, to: side + half, whole: true },
          marks: [
            { line: stairs.slice(0, 4 * half), colour: "key" },
            { line: stairs.slice(4 * half - 1), colour: "key", part: "stairs" },
            { rule: { x: far }, dash: "4 3" },
            { handle: [far, side + half], knob: "far", colour: "ink", text: String(far) },
            !shut &&
              (!hidden() || n < half / 2) && {
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
          "its bucket holds the distances": shut ? "–" : reach,
        });
        if (shut) return "the key comes after the query and is masked";
        return `distance ${n}${hidden() ? "" : ` is in bucket ${b}, with the distances ${reach}`}`;
      },
    };

    return (state, numbers, changed) => {
      const { view } = state;
      app.prompt(view === first && own ? own : prompts[view]);
      for (const [name, fields] of Object.entries(only))
        for (const field of fields) {
          field.row.hidden = name !== view;
          if (field.more) field.more.hidden = name !== view;
        }
      strip.box.hidden = view !== "labels";
      goal.box.hidden = view !== "shift";
      parts.hidden = formula.hidden = view !== "terms";
      curve.box.hidden = view !== "buckets";
      asked.node?.toggleAttribute("hidden", view !== first);
      if (asked.node) leads[first].question = view === first ? asked : undefined;
      if (changed.has("view")) leads[view].lead();
      const [i, j] = [state.row, state.column].map((x) => Math.min(x, side() - 1));
      columnKnob.row.hidden = view === "shift";
      const words = draw[view](state, numbers.shown, i, j);
      const named = ["labels", "buckets"].includes(view) ? `Query ${i}, key ${j}: ` : "";
      app.say(`${named}${words}.`);
    };
  },
});
