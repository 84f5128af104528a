// One attention, every number: S = Q Kᵀ, divided by √d_k, masked, softmax over each row, Z = A V.

const MOST = 8;
const split = (text) => text.split(/\s+/).filter(Boolean);
const wordsOf = ({ yours, words }) => (yours.trim() ? split(yours) : words);
const cardsOf = ({ yours, cards, Q, K, V }) =>
  split(yours).length ? tf.range(3, (n) => split(yours).map((word) => cards[word][n])) : [Q, K, V];
function why(text, cards) {
  const strange = split(text).find((word) => !Object.hasOwn(cards, word));
  if (strange) return `no cards for “${tf.token(strange)}”`;
  return split(text).length > MOST ? `${MOST} words at most` : "";
}

function numbers(state) {
  const [Q, K, V] = cardsOf(state);
  const by = state.scale ? Math.sqrt(Q[0].length) : 1;
  const scores = Q.map((q) => K.map((key) => tf.dot(q, key)));
  const weights = scores.map((row, i) => {
    const open = state.causal ? row.slice(0, i + 1) : row;
    return [...tf.softmax(open.map((score) => score / by)), ...row.slice(open.length).fill(0)];
  });
  const blend = (weights) => V[0].map((_, c) => tf.sum(weights.map((x, j) => x * V[j][c])));
  return { scores, weights, output: weights.map(blend) };
}

const vector = (x) => `(${x.map((v) => tf.fixed(v)).join(", ")})`;

export default tf.explorer({
  ends: () => ({ row: { high: MOST - 1 }, column: { high: MOST - 1 } }),
  fit(values, app) {
    if (why(values.yours ?? "", app.get("cards"))) delete values.yours;
    const last = wordsOf({ ...app.values(), ...app.first, ...values }).length - 1;
    for (const key of ["row", "column"]) if (values[key] > last) delete values[key];
    return values;
  },
  numbers,
  setup(app) {
    const { Q: asking, cards, row: first } = app.values();
    const start = wordsOf(app.values()).map(tf.token);
    const root = `√${asking[0].length}`;
    let pointed; // the cell under the mouse: looked at, not chosen
    const small = { most: 34, axes: ["i", "c"] };
    const cells = {
      most: 34,
      pick: (row, column) => app.set({ row, column }),
      hover: (i, j) => {
        pointed = i === undefined ? undefined : [i, j];
        app.redraw("glance");
      },
    };
    app.formula("{attention:𝐀} = softmax( {query:𝐐} {key:𝐊}ᵀ / √d ), 𝐙 = {attention:𝐀} {value:𝐕}");
    const scored = app.split("minmax(0, 5fr) minmax(0, 4fr)");
    const asked = app.split("1fr 1fr", { into: scored, keep: 2 });
    const [queries, keys] = [0, 1].map(() => app.matrix({ ...small, into: asked, lead: false }));
    const scores = app.matrix({ ...cells, into: scored, lead: false });
    const blended = app.split("minmax(0, 4fr) minmax(0, 5fr)");
    const weights = app.matrix({ ...cells, into: blended });
    const handed = app.split("1fr 1fr", { into: blended, keep: 2 });
    const [values, outputs] = [0, 1].map(() => app.matrix({ ...small, into: handed }));
    const work = app.lines();
    const shown = () => wordsOf(app.values()).map(tf.token);
    const word = { format: (n) => shown()[n], last: () => shown().length - 1 };
    if (Object.keys(cards).length) {
      const label = `your own sentence, from these words: ${Object.keys(cards).map(tf.token).join(", ")}`;
      const write = (yours) => app.set({ yours, row: 0, column: 0 });
      app.text("yours", { label, most: 80, why: (text) => why(text, cards), write });
    }
    app.knob("row", word);
    app.knob("column", word);
    app.knob("scale", { label: `divide by ${root}` });
    app.knob("causal");
    const heard = tf.best(numbers({ ...app.values(), ...app.first }).weights[first]);
    const question = app.ask({
      name: "listens-most-to",
      question: `Compare the rows of Q and K: to which word does “${start[first]}” give the most weight?`,
      about: weights,
      hides: ["row"],
      ghost: {
        first,
        at: (j) => [j + 0.5, first + 0.5],
        to: (x) => tf.clamp(Math.floor(x), 0, start.length - 1),
        by: [1, 0],
        draw: (j) => ({ cell: [first, j], dash: "4 3" }),
        label: "the word with the most weight",
      },
      format: (j) => `“${start[j]}”`,
      truth: (numbers) => tf.best(numbers.weights[first]),
      then: { column: heard },
      guards: [],
      because:
        "Its query and that word's key have the largest dot product, so that word gets the most weight.",
    });

    return (state, numbers) => {
      const [words, [Q, K, V]] = [wordsOf(state).map(tf.token), cardsOf(state)];
      const L = words.length;
      const [i, j] = (pointed ?? [state.row, state.column]).map((x) => Math.min(x, L - 1));
      const by = state.scale ? Math.sqrt(Q[0].length) : 1;
      const asked = (r) => (r === first && !state.yours ? "row" : "others");
      const forbidden = (i, j) => state.causal && j > i;
      // a table of vectors, one row a word: Q, K, V or Z; the row of the chosen word is framed
      const narrow = (view, title, table, chosen, term) =>
        view.show({
          title,
          label: `${title}: a row for each of ${words.join(", ")}`,
          rows: L,
          columns: table[0].length,
          values: table,
          signed: true,
          most: 2 * Math.max(1e-9, ...table.flat().map(Math.abs)),
          colour: term,
          text: (r, c) => tf.fixed(table[r][c]),
          part: (r) => (term === "attention" ? asked(r) : "others"),
          rowHeads: words,
          rowColour: term === "attention" ? "query" : term,
          frames: [{ row: chosen, colour: term }],
          marks: [{ cells: tf.range(table[0].length, (c) => [chosen, c]), term }],
        });
      narrow(queries, "queries Q", Q, i, "query");
      narrow(keys, "keys K", K, j, "key");
      narrow(values, "values V", V, j, "value");
      narrow(outputs, "outputs Z = A V", numbers.output, i, "attention");
      // a table of pairs, S or A: forbidden cells are hatched, the chosen one is framed
      const wide = (view, title, table, most) =>
        view.show({
          title,
          label: `${title}; arrow keys choose a query and a key`,
          rows: L,
          rowHeads: words,
          columnHeads: words,
          row: i,
          column: j,
          most,
          signed: true,
          text: (r, c) => tf.fixed(table[r][c]),
          part: asked,
          values: (r, c) => (forbidden(r, c) ? Number.NaN : table[r][c]),
          frames: [{ cell: [i, j] }],
          marks: [{ cells: [[i, j]], term: "attention", colour: "attention" }],
        });
      const scaled = numbers.scores.map((row) => row.map((score) => score / by));
      const most = 3 * Math.max(1e-9, ...scaled.flat().map(Math.abs));
      wide(scores, `S = Q Kᵀ${state.scale ? ` / ${root}` : ""}`, scaled, most);
      wide(weights, "A = softmax of each row of S", numbers.weights, 1);

      const weightShown = tf.fixed(numbers.weights[i][j], 3);
      const products = Q[i].map((x, c) => `${tf.fixed(x)}·${tf.fixed(K[j][c])}`).join(" + ");
      const score = numbers.scores[i][j];
      const open = question.open && asked(i) === "row";
      const seen = numbers.scores[i].filter((_, c) => !forbidden(i, c));
      const all = tf.sum(seen.map((x) => Math.exp(x / by)));
      const lines = [
        `{query:${words[i]}} asks, {key:${words[j]}} is asked: ${products} = ${open ? "?" : tf.fixed(score)}`,
        state.scale && `divided by ${root} = ${tf.fixed(by)}: ${tf.fixed(score / by)}`,
        `softmax over ${seen.length} key${seen.length > 1 ? "s" : ""}: $e^${tf.fixed(score / by)}$ / ${tf.short(all)} = {attention:${weightShown}}`,
        `{attention:${weightShown}} · {value:${vector(V[j])}} is one term of ${vector(numbers.output[i])}, the output of {query:${words[i]}}`,
      ];
      const shut = ["j > i: forbidden; the score is −∞ and the weight exactly 0"];
      work.show(open ? [lines[0]] : forbidden(i, j) ? [lines[0], ...shut] : lines.filter(Boolean));
      if (pointed) return;
      const best = tf.best(numbers.weights[i]);
      const weightText = forbidden(i, j) ? "forbidden" : `weight ${weightShown}`;
      app.say(
        open
          ? `“${words[i]}” asks “${words[j]}”; their dot product is ${products}. The other words' rows are already computed.`
          : `${words[i]} → ${words[j]}: ${weightText}. “${words[i]}” gives the most weight to “${words[best]}” (${tf.fixed(numbers.weights[i][best])}).`,
      );
    };
  },
});
