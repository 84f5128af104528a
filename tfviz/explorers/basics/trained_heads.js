// Heads of a trained model on a text: all maps to choose from, one large, and arcs from a query to its keys.

const FULL = 65535;
const printed = (letter) => (letter === " " ? "·" : letter);
const said = (letter) => (letter === " " ? "space" : `“${letter}”`);

// A of all heads from text: two bytes a weight, the causal half row after row; NaN where j > i.
const unpack = tf.keep((text, layers, heads, L) => {
  const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  let at = 0;
  const map = () => {
    const A = new Float64Array(L * L).fill(Number.NaN);
    for (let i = 0; i < L; i++)
      for (let j = 0; j <= i; j++, at += 2) A[i * L + j] = (raw[at] + 256 * raw[at + 1]) / FULL;
    return A;
  };
  return tf.range(layers, () => tf.range(heads, map));
});
// The same of the reader's own text, by the model itself.
const { letters: LETTERS, longest: LONGEST } = tf.data.model;
let model;
const mapsOf = tf.keep((text) => {
  model ??= alive(tf.data.model);
  const run = model();
  const rows = [...text].map((letter) => run.step(LETTERS.indexOf(letter)).blocks);
  const L = text.length;
  return rows[0].map((block, n) =>
    block.A.map((_, m) => {
      const A = new Float64Array(L * L).fill(Number.NaN);
      for (const [i, blocks] of rows.entries()) A.set(blocks[n].A[m], i * L);
      return A;
    }),
  );
});
const why = (text) => (text ? unread(text, LETTERS, 2, LONGEST) : "");
const textOf = (state) => state.yours || state.texts[state.text];
const lengthOf = (state) => textOf(state).length;
// the maps [layer][head] of the text that is shown: the model's own of the reader's text, else the stored
const maps = (state) =>
  state.yours
    ? mapsOf(state.yours)
    : unpack(state.maps[state.text], ...state.shape, lengthOf(state));
const rowOf = (state) => Math.min(state.row, lengthOf(state) - 1);
const roots = new WeakMap(); // the large map shows √A, so that small weights can be seen
const root = (A) => roots.get(A) ?? roots.set(A, A.map(Math.sqrt)).get(A);

// The row, and of the whole map the mean entropy in nats, distance, and weight on the token before.
function numbersOf(state) {
  const [A, L, row] = [maps(state)[state.layer][state.head], lengthOf(state), rowOf(state)];
  const rows = tf.range(L, (i) => Array.from(A.subarray(i * L, i * L + i + 1)));
  return {
    weights: rows[row],
    entropy: tf.mean(rows.map(tf.entropy)),
    distance: tf.mean(rows.map((as, i) => tf.sum(as.map((a, j) => a * (i - j))))),
    before: tf.mean(rows.slice(1).map((as) => as.at(-2))),
  };
}

// An arc from the query i to key j, the higher the further apart, as wide as its weight.
function bow(i, j, L, a) {
  const high = j === i ? 1 : 1.2 + (4 * (i - j)) / Math.max(1, L - 1);
  const half = j === i ? 0.3 : (i - j) / 2;
  const line = tf
    .arc(0, 0, 1, 0, Math.PI)
    .map(([x, y]) => [(i + j) / 2 + half * x, 0.6 + high * y]);
  const colour = tf.faint("attention", Math.round(25 + 75 * a));
  return { line, colour, wide: 0.75 + 7 * a };
}

// Where the head looks: only if the letter of the query has come before.
function question(first, state) {
  const [text, L, i] = [textOf(state), lengthOf(state), rowOf(state)];
  const last = text.lastIndexOf(text[i], i - 1);
  if (last < 0 || i < 3) return null;
  const best = tf.best(numbersOf({ ...state, ...first }).weights);
  return {
    name: "looks-most-at",
    question: `Layer ${first.layer}, head ${first.head}: the arcs show letter ${i - 1}. Which letter does the next one, letter ${i}, ${said(text[i])}, look at most?`,
    hides: ["row"],
    ghost: {
      first: i,
      at: (j) => [j, 0.95],
      to: (x) => tf.clamp(Math.round(x), 0, i),
      by: [1, 0],
      draw: (j) => ({ ...bow(i, j, L, 0.3), colour: "ink", dash: "4 4" }),
      label: "the letter it looks at most",
    },
    format: (j) => (j === i ? "itself" : `${said(text[j])} ${i - j} back`),
    truth: (numbers) => tf.best(numbers.weights),
    because:
      best > 0 && text[best - 1] === text[i]
        ? `It looks at the letter that followed an earlier ${said(text[i])}.`
        : "Each head has learnt to look for something else.",
  };
}

// Whether it is the stored model, whose weights are here.
const known = (whole) => Object.keys(whole).length > 0;

export default tf.explorer({
  ends: ({ texts, shape, whole }) => ({
    text: { high: texts.length - 1 },
    layer: { high: shape[0] - 1 },
    head: { high: shape[1] - 1 },
    row: { high: (known(whole) ? LONGEST : Math.max(...texts.map((x) => x.length))) - 1 },
  }),
  // the query stands in the text that is shown; of a text of one's own it is the last letter
  fit(values, app) {
    if (why(values.yours ?? "") || (values.yours && !known(app.get("whole")))) delete values.yours;
    const last = lengthOf({ ...app.values(), ...app.first, ...values }) - 1;
    if (values.row > last) delete values.row;
    if (values.yours && !("row" in values)) values.row = last;
    return values;
  },
  numbers: numbersOf,
  setup(app) {
    const { texts, shape, whole, removed } = app.values();
    const [layers, heads] = shape;
    let pointed; // the letter under the mouse: looked at, not chosen
    const arcs = app.plane({ height: (width) => tf.clamp(width * 0.3, 140, 190) });
    const hover = (i) => {
      pointed = i;
      app.redraw("glance");
    };
    const big = app.matrix({ lead: false, tall: 320, pick: (row) => app.set({ row }), hover });
    app.knob("text", {
      as: "select",
      options: texts.map((text, n) => [n, text]),
      write: (n) => app.set({ text: Number(n), yours: "", row: texts[n].length - 1 }),
    });
    if (known(whole)) {
      const write = (yours) =>
        app.set({ yours, row: (yours || texts[app.get("text")]).length - 1 });
      app.text("yours", { label: "or a text of your own", most: LONGEST, why, write });
    }
    app.knobsOf("layer", "head");
    app.knob("row", { last: () => lengthOf(app.values()) - 1 });
    const picker = app.split(`repeat(${heads}, 1fr)`, { into: app.controls, keep: heads });
    const small = tf.range(layers * heads, (n) => {
      const place = { layer: Math.floor(n / heads), head: n % heads };
      const press = () => app.set(place);
      return { place, view: app.matrix({ into: picker, lead: false, bare: true, press }) };
    });
    const what = question(app.first, app.values());
    const asked = app.ask(what && { ...what, about: arcs });
    const start = app.first;
    const askedRow = rowOf(app.values());
    // the row that is asked for: held back in its arcs and in its maps, the one before is shown
    const isAsked = (state, layer, head, row) =>
      Boolean(what) &&
      !state.yours &&
      [state.text, layer, head, row].join() ===
        [start.text, start.layer, start.head, askedRow].join();

    return (state, numbers, changed) => {
      const [text, L, chosen] = [textOf(state), lengthOf(state), rowOf(state)];
      const i = Math.min(pointed ?? chosen, L - 1);
      const held = asked.open && isAsked(state, state.layer, state.head, i);
      const from = held ? i - 1 : i; // the letter whose arcs are drawn
      const weights = numbersOf({ ...state, row: from }).weights;
      const order = tf.range(from + 1).sort((p, q) => weights[q] - weights[p]);
      const where = (j) => (j === from ? "itself" : `${said(text[j])} ${from - j} back`);
      const looks = order.slice(0, 2).map((j) => `${tf.fixed(weights[j])} on ${where(j)}`);
      const words = `Layer ${state.layer}, head ${state.head}: letter ${from}, ${said(text[from])}, puts ${looks.join(" and ")}.`;
      const box = (j) => tf.box(j - 0.5, j + 0.5, -0.5, 0.5);
      const name = `letter ${i}, ${said(text[i])}`;
      arcs.show({
        title: "arcs from the query to its keys: drag the dot below the text",
        label: `Text ${text}: ${words}`,
        x: { from: -0.6, to: L - 0.4, bare: true },
        y: { from: -1.2, to: 5.8, bare: true },
        hover: false,
        marks: [
          weights.map((a, j) => ({ shape: box(j), colour: "attention", strength: Math.sqrt(a) })),
          order
            .filter((j) => weights[j] >= 0.01)
            .reverse()
            .map((j) => bow(from, j, L, weights[j])),
          tf.range(L, (j) => ({
            text: printed(text[j]),
            at: [j, 0],
            plain: true,
            bold: j === i || weights[j] > 0.35,
            colour: j > from ? "muted" : weights[j] > 0.4 ? "page" : "ink",
          })),
          { line: [...box(i), box(i)[0]], colour: "query", wide: 2.5 },
          { handle: [i, -0.95], knob: "row", colour: "query", text: name },
        ],
      });
      const shown = (layer, head) => root(maps(state)[layer][head]);
      const part = (layer, head) => (r) => (isAsked(state, layer, head, r) ? "row" : "others");
      const weight = (r, c) => tf.fixed(shown(state.layer, state.head)[r * L + c] ** 2);
      big.show({
        title: `layer ${state.layer}, head ${state.head}: a row is a query; shade: square root of the weight`,
        label: `Attention weights of layer ${state.layer}, head ${state.head}, ${L} by ${L}; arrow keys choose the query`,
        rows: L,
        most: 1,
        text: weight,
        part: part(state.layer, state.head),
        values: shown(state.layer, state.head),
        row: i,
      });
      for (const { place, view } of small) {
        const mine = place.layer === state.layer && place.head === state.head;
        view.root.setAttribute("aria-pressed", String(mine));
        view.show({
          title: `${place.layer}·${place.head}`,
          label: `show layer ${place.layer}, head ${place.head}`,
          rows: L,
          most: 1,
          text: () => "",
          part: part(place.layer, place.head),
          values: shown(place.layer, place.head),
          frames: mine ? [{ colour: "attention" }] : [],
        });
      }
      const lost = Object.keys(whole).map((task) => [
        `loss on ${task}, without this head`,
        `${tf.fixed(whole[task])} → ${tf.fixed(removed[state.layer][state.head][task])} nats`,
      ]);
      const habits = {
        "mean entropy of a row": `${tf.fixed(numbers.entropy)} nats ≈ ${tf.fixed(Math.exp(numbers.entropy), 1)} keys`,
        "mean distance": `${tf.fixed(numbers.distance, 1)} letters`,
        "mean weight on the letter before": tf.fixed(numbers.before),
      };
      app.read({ ...habits, ...Object.fromEntries(lost) });
      if (pointed === undefined) app.say(words);
    };
  },
});
