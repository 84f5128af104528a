// A formula that the reader types: its mask or bias, the keys of a query, cost, reach, and its Python.
const { el, clamp } = tf;
const { first: FIRST, examples: EXAMPLES } = tf.data;
const ASKED = 19; // the row that the question covers
const REST = 450; // milliseconds without a key, until an error is shown

// What a formula with its numbers is, or why it has no value: {typed, given, table, mask, bias, error}.
const outcomeOf = tf.keep((formula, values, L) => {
  const typed = readTyped(formula);
  const given = valuesOf(typed, JSON.parse(values));
  const out = { typed, given, bias: null, error: null };
  const none = () => ({ data: counts(new Uint8Array(L * L), L) });
  try {
    const table = tableOf(typed, L, given);
    const allowed = typed.isMask ? (x) => x : (x) => x > -Infinity;
    Object.assign(out, {
      data: counts(
        Uint8Array.from(table, (x) => Number(allowed(x))),
        L,
      ),
    });
    if (!typed.isMask) out.bias = table.map((x) => (allowed(x) ? x : NaN));
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    Object.assign(out, none(), { error });
  }
  return Object.assign(out, { reach: reachOf([out.data]) });
}, 24);
const outcome = ({ formula, values, L }) => outcomeOf(formula, JSON.stringify(values), L);

// What is wrong with a text, with the numbers at hand; nothing if it can be drawn.
function problemOf(text, values, L) {
  try {
    const typed = readTyped(text);
    tableOf(typed, L, valuesOf(typed, values));
    return null;
  } catch (error) {
    if (error instanceof TypedError) return error;
    throw error;
  }
}

const runs = (numbers) => {
  const out = [];
  for (const n of numbers) {
    if (out.length && out.at(-1)[1] === n - 1) out.at(-1)[1] = n;
    else out.push([n, n]);
  }
  return out;
};
// 0, 8 and 16 to 19
function listed(numbers, most = 6) {
  const parts = runs(numbers).map(([a, b]) =>
    a === b ? `${a}` : b === a + 1 ? `${a}, ${b}` : `${a} to ${b}`,
  );
  if (!parts.length) return "none";
  if (parts.length > most) return `${parts.slice(0, most - 1).join(", ")}, …, ${parts.at(-1)}`;
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
}
const plural = (n, word) => `${tf.count(n)} ${word}${n === 1 ? "" : "s"}`;

// What can be said of the whole mask, in a sentence or two.
function verdictOf(numbers, L, isMask) {
  if (!numbers.pairs) return "No pair is allowed: no query has a key.";
  const causal = numbers.ahead
    ? `Not causal: in ${plural(numbers.ahead, "pair")} the key is later than the query.`
    : "Causal: no query sees a later key.";
  const all = numbers.pairs === L * L && !isMask ? "Every pair is allowed." : "";
  const rows = numbers.empty.length
    ? `${numbers.empty.length === 1 ? "Row" : "Rows"} ${listed(numbers.empty, 4)} ${numbers.empty.length === 1 ? "has" : "have"} no key: a plain softmax gives NaN there; tfviz and FlexAttention give 0.`
    : "Every row has a key.";
  return `${causal} ${all || rows}`;
}

// The formula as it is set, or what is wrong with it, with a caret below the place and what may be meant.
function makeReading(app, use) {
  const formula = el("p", { className: "yom-formula" });
  const verdict = el("p", { className: "yom-verdict" });
  const text = el("code", { className: "yom-text" });
  const caret = el("code", { className: "yom-text", ariaHidden: "true" });
  const message = el("p", { className: "yom-message", role: "status" });
  const better = app.button("", () => use(better.dataset.formula), { into: el("p") });
  const quote = el("div", { className: "yom-quote" }, text, caret);
  const good = el("div", {}, formula, verdict);
  const bad = el("div", { className: "yom-bad" }, quote, message, better.parentNode);
  const root = el("div", { className: "yom-reading" }, good, bad);
  let set;
  return {
    root,
    show({ error, typed, words, source }) {
      good.hidden = Boolean(error);
      bad.hidden = !error;
      if (!error) {
        message.textContent = "";
        verdict.textContent = words;
        if (set !== typed.text) formula.replaceChildren(mathsOf(typed));
        set = typed.text;
        return;
      }
      // the place, with the text around it
      const room = app.main.clientWidth < 480 ? 34 : 72;
      const from = clamp(error.at - Math.floor(room / 2), 0, Math.max(0, source.length - room));
      text.textContent = `${from ? "…" : ""}${source.slice(from, from + room)}` || " ";
      caret.textContent = `${" ".repeat(error.at - from + (from ? 1 : 0))}^`;
      const said = `Character ${error.at + 1}: ${error.message}`;
      if (message.textContent !== said) message.textContent = said;
      const meant = mended(source);
      better.hidden = !meant;
      better.dataset.formula = meant;
      better.textContent = `use ${meant}`;
    },
  };
}

// A slider for each name of the formula, in places that are kept: nothing moves when one comes or goes.
function makeNumbers(app) {
  const root = el("div", { className: "yom-numbers", role: "group", ariaLabel: "numbers" });
  const free = el("p", { className: "yom-free" });
  app.controls.append(root);
  let made = "";
  let sliders = [];
  return (typed) => {
    const wanted = JSON.stringify(typed.names);
    if (wanted === made) return;
    made = wanted;
    for (const slider of sliders) slider.remove();
    free.remove();
    sliders = typed.names.map(([name, { low, high, step }]) =>
      app.slider(`value-${name}`, {
        label: name === "h" ? "head h" : name,
        min: low,
        max: high,
        step,
        into: root,
        read: () => valuesOf(typed, app.get("values"))[name],
        write: (x) =>
          app.set("values", { ...valuesOf(typed, app.get("values")), [name]: Number(x) }),
      }),
    );
    free.textContent = sliders.length
      ? ""
      : "A name in the formula, such as w, becomes a slider here.";
    root.append(free);
    for (const slider of sliders) slider.update();
  };
}

const codeOf = (state) => {
  const { typed, given } = outcome(state);
  return flexOf(typed, given, state.L);
};
function explainOf(state) {
  const { typed } = outcome(state);
  const heads = typed.names.some(([name]) => name === "h") ? ", heads=8" : "";
  const name = typed.isMask ? "mask_mod" : "score_mod";
  return `${codeOf(state)}\n\nfrom tfviz import explain\nmine = explain(${name}${heads})\nmine`;
}

export default tf.explorer({
  // What a link brings: a formula that can be read, and numbers that it has.
  fit(values, { first }) {
    const { formula = first.formula, values: numbers, ...others } = values;
    try {
      const given = numbers ?? (formula === first.formula ? first.values : {});
      return { ...others, formula, values: valuesOf(readTyped(formula), given) };
    } catch {
      return others;
    }
  },
  numbers(state) {
    const { data, bias, reach, error } = outcome(state);
    const { L, query, layers, block } = state;
    const rows = tf.range(L);
    const tiles = tilesOf(data, block);
    const hops = reach.hops.subarray(query * L, (query + 1) * L);
    return {
      mask: data.mask,
      bias: bias ? bias.map((x) => (Number.isNaN(x) ? 0 : x)) : [],
      keys: data.keysOf(query),
      empty: rows.filter((i) => !data.keysOf(i).length),
      ahead: tf.sum(rows.map((i) => data.keysOf(i).filter((j) => j > i).length)),
      pairs: data.pairs,
      blocks: tiles.blocks,
      block_pairs: tiles.pairs,
      heard: hops.map((hop) => Number(hop >= 0 && hop <= layers)),
      diameter: reach.diameter ?? -1,
      unreachable: reach.unreachable,
      wrong: Number(Boolean(error)),
    };
  },
  setup(app) {
    let typing = null; // a text that cannot be drawn, with what is wrong
    let spoken = null; // the same, when it has stood for a moment
    let later;
    app.cleanup.push(() => clearTimeout(later));
    const take = (formula, values = {}) => {
      clearTimeout(later);
      typing = null;
      spoken = null;
      const typed = readTyped(formula);
      field.input.value = formula;
      app.set({ formula, values: valuesOf(typed, { ...app.get("values"), ...values }) });
      app.redraw("typing");
    };
    const top = el("div", { className: "yom-top" });
    app.questions.after(top);
    const field = app.text("formula", {
      label: "your formula of query i and key j",
      most: 2 * LONGEST,
      into: top,
      fine: (text) => {
        clearTimeout(later);
        const error = problemOf(text, app.get("values"), app.get("L"));
        typing = error && { error, source: text };
        spoken = error ? spoken && typing : null; // an error that is shown follows at once
        later = setTimeout(() => {
          spoken = typing;
          app.redraw("typing");
        }, REST);
        app.redraw("typing");
        return !error;
      },
      write: (text) => take(text),
    });
    const reading = makeReading(app, (text) => {
      take(text);
      field.input.focus();
    });
    reading.root.id = app.id("reading");
    field.input.setAttribute("aria-describedby", reading.root.id);
    const offers = el("div", { className: "yom-offers", role: "group", ariaLabel: "examples" });
    for (const [name, formula, values] of EXAMPLES)
      app.button(name, () => take(formula, values), { into: offers, title: formula });
    top.append(el("div", { className: "yom-below" }, reading.root, offers));

    const both = app.split("1fr 1fr");
    const pick = (i) => app.set("query", i);
    let peek; // the row that is pointed at
    const hover = (row) => {
      if (row === peek) return;
      peek = row;
      app.redraw("peek");
    };
    const one = app.matrix({ tall: 320, into: both, pick, hover });
    const many = app.matrix({ tall: 320, into: both, pick, hover });
    const code = el("pre", { className: "yom-code", tabIndex: 0, ariaLabel: "the same in Python" });
    app.picture.append(code);
    const sliders = makeNumbers(app);
    app.knobsOf("L", "query", "layers", "block");

    const { first } = app;
    const mine =
      first.formula === FIRST.formula &&
      first.L === 24 &&
      JSON.stringify(valuesOf(readTyped(first.formula), first.values)) ===
        JSON.stringify(FIRST.values);
    const question = app.ask(
      mine && {
        name: "keys-of-a-row",
        question: `With w = ${FIRST.values.w} and s = ${FIRST.values.s}, this is a window of ${FIRST.values.w} keys and every column whose number is divisible by ${FIRST.values.s}. Row ${ASKED} is covered. How many keys does query ${ASKED} have?`,
        number: { hint: "A key that both sides of | allow counts once." },
        unit: "keys",
        hides: ["row", "keys of the query"],
        format: (n) => plural(n, "key"),
        truth: (numbers) => numbers.keys.length,
        then: { query: ASKED },
        guards: [],
        because: `The window gives keys 16 to 19, the columns give keys 0, 8 and 16, and 16 is in both.`,
      },
    );

    return (state, numbers, changed) => {
      const { L, layers, block } = state;
      if (changed.has("formula") && typing && field.input.value === state.formula) typing = null;
      const { typed, data, bias, reach, error } = outcome(state);
      const query = Math.min(peek ?? state.query, L - 1);
      const covered = question.open && query === ASKED;
      const keys = data.keysOf(query);
      sliders(typed);
      const wrong = (typing && spoken) || (!typing && error && { error, source: state.formula });
      reading.show({
        ...wrong,
        typed,
        words: verdictOf(numbers, L, typed.isMask),
      });
      offers.hidden = Boolean(wrong); // what is wrong takes its room
      field.input.setAttribute("aria-invalid", String(Boolean(typing)));
      one.box.toggleAttribute("data-old", Boolean(typing));
      many.box.toggleAttribute("data-old", Boolean(typing));

      const part = (i) => i === ASKED && question.open && "row";
      const over = covered
        ? []
        : [{ colour: "key", runs: runs(keys).map(([a, b]) => [query, a, b]) }];
      const most = bias ? Math.max(1e-9, ...bias.filter(Number.isFinite).map(Math.abs)) : 1;
      const told = covered
        ? `query ${query} is covered by the question`
        : keys.length
          ? `query ${query} attends to ${keys.length === 1 ? "key" : "keys"} ${listed(keys)} (${keys.length} of ${L})`
          : `query ${query} attends to no key`;
      one.show({
        title: bias
          ? "one layer: what is added to each score (− grey, + violet)"
          : "one layer: who attends to whom",
        label: `${bias ? "Bias" : "Mask"}, ${L} by ${L}. ${told}. Arrow keys move the query.`,
        rows: L,
        ...(bias ? { values: bias, signed: true, most } : { bits: data.mask, over }),
        row: query,
        part,
      });
      const heard = (i, j) => reach.hops[i * L + j] >= 0 && reach.hops[i * L + j] <= layers;
      const row = tf.range(L).filter((j) => heard(query, j));
      many.show({
        title: `${plural(layers, "layer")}: who reaches whom`,
        label: `Over ${plural(layers, "layer")}, query ${query} ${covered ? "is covered by the question" : `reaches ${row.length} of ${L} tokens`}.`,
        rows: L,
        bits: (i, j) => Number(heard(i, j)),
        row: query,
        part,
      });
      code.textContent = codeOf(state);

      const across = Math.ceil(L / block);
      app.read({
        "keys of the query": `${tf.count(keys.length)} of ${L}`,
        pairs: `${tf.count(numbers.pairs)}, ${tf.percent(numbers.pairs / L / L)}`,
        [`blocks of ${block}`]: `${numbers.blocks} of ${across * across}`,
        "rows without a key": numbers.empty.length ? listed(numbers.empty, 3) : "none",
        "later keys": numbers.ahead ? plural(numbers.ahead, "pair") : "none: causal",
        "all connected after":
          numbers.diameter < 0 ? "never" : plural(Math.max(1, numbers.diameter), "layer"),
      });
      const shown = typing ? "The picture shows the last formula that could be read. " : "";
      const none = error && !typing ? `The formula has no value: ${error.message} ` : "";
      app.say(
        `${shown}${none}${told[0].toUpperCase()}${told.slice(1)}. ${tf.count(numbers.pairs)} of ${tf.count(L * L)} pairs are allowed; blocks of ${block} cover ${tf.percent(numbers.block_pairs / L / L)}.`,
      );
    };
  },
  copies: { FlexAttention: (app) => codeOf(app.all()), explain: (app) => explainOf(app.all()) },
});
// for tests
export const language = { codeOf, mathsOf, mended, problemOf, readTyped, tableOf, valuesOf };
