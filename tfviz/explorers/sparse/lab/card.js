// One pattern: its menu, its picture, the keys of the query, its condition, its controls.

function makeCard(app, side, actions) {
  const letter = NAME[side];
  const root = el("div", {
    role: "group",
    className: "sl-card",
    "aria-label": `pattern ${letter}`,
  });
  root.dataset.side = side;
  const head = el(
    "div",
    { className: "sl-head" },
    el("span", { className: "sl-badge", "aria-hidden": "true" }, letter),
  );
  const stage = el("div", { className: "sl-stage" });
  const set = el("p", { className: "sl-set" }),
    formula = el("p", { className: "sl-formula" });
  const terms = el("div", { className: "sl-terms" });
  root.append(head, stage, set, formula, terms);

  const presets = Object.entries(tf.data.presets);
  const kind = ([title, _]) => (/^[A-Z]/.test(title) ? "From papers" : "Atomic");
  const options = { Atomic: [], "From papers": [], Other: [["*", "your own"]] };
  for (const preset of presets) options[kind(preset)].push([preset[0], preset[0]]);
  const current = () => {
    const spec = app.get(side);
    return presets.find(([, p]) => p.name && p.name === spec.name)?.[0] ?? "*";
  };
  // two presets of one family: keep the one that was chosen
  let chosen = null;
  app.select(`${side}-preset`, {
    label: `pattern ${letter}`,
    hidden: true,
    options,
    into: head,
    read: () =>
      chosen && tf.data.presets[chosen].name === app.get(side).name ? chosen : current(),
    write: (title) => {
      if (title === "*") return app.redraw();
      chosen = title;
      app.set(side, fit(tf.data.presets[title], app.get("L")));
    },
  });

  const matrix = app.matrix({ into: stage, pick: actions.pick, hover: actions.peek });
  const graph = makeGraph(app, stage, letter, actions);
  const editor = makeEditor(app, side, terms);
  let said; // what the words below the picture were made for
  let term = -1; // the part of the formula that lights up with its cells
  const over = (event) => {
    const now = Number(event?.target.closest("[data-part]")?.dataset.part ?? -1);
    if (now === term) return;
    term = now;
    app.redraw("term");
  };
  for (const type of ["pointerover", "focusin"]) formula.addEventListener(type, over);
  for (const type of ["pointerleave", "focusout"]) formula.addEventListener(type, () => over());

  return {
    root,
    draw({ data, query, token, view, L, spec, causal, tall }) {
      matrix.box.hidden = view !== "matrix";
      graph.box.hidden = view !== "graph";
      const keys = data.keysOf(query);
      const words = `query ${query} attends to ${spoken(keys)}; ${keys.length} of ${L}`;
      const label = `Pattern ${letter}, ${view}, ${L} tokens. ${words}. Arrow keys move the query and the token.`;
      if (view === "graph") graph.draw(data, query, token, label, tall);
      else {
        const own = { colour: "key", runs: runs(keys).map(([from, to]) => [query, from, to]) };
        const part = spec.op && spec.op !== "not" && spec.parts[term];
        const lit = { colour: "value", runs: part ? runsOf(bits(part, L), L) : [] };
        const over = [own, lit];
        matrix.show({ label, tall, rows: L, bits: data.mask, row: query, column: token, over });
      }
      editor.draw(spec, L);
      const now = words + JSON.stringify(spec) + causal;
      if (said === now) return words;
      said = now;
      const shown = runs(keys).map(([a, b]) =>
        a === b ? `${a}` : b === a + 1 ? `${a}, ${b}` : `${a} … ${b}`,
      );
      const list = shown.length > 6 ? [...shown.slice(0, 3), "…", ...shown.slice(-2)] : shown;
      set.replaceChildren(
        el(
          "span",
          { className: "tfx-maths" },
          el("i", {}, "S"),
          el("sub", { className: "sl-i" }, query),
        ),
        " = {",
        el("span", { className: "sl-j" }, list.join(", ")),
        "}",
        el("small", {}, ` ${keys.length} of ${L} keys`),
      );
      const rule = formulaText(spec);
      const limit = causal ? `(${rule}) and i ≥ j` : rule;
      formula.replaceChildren(
        el(
          "span",
          { className: "sl-when" },
          /[≤≥=<>]/.test(rule) ? "j is in the set if " : "the rule: ",
        ),
        ...termsOf(spec, limit, query),
      );
      return words;
    },
  };
}

// The runs of allowed pairs in all rows, as [i, first j, last j].
function runsOf(allowed, L) {
  const out = [];
  for (let i = 0, k = 0; i < L; i++) {
    for (let j = 0; j < L; j++, k++) {
      if (!allowed[k]) continue;
      if (j && allowed[k - 1]) out.at(-1)[2] = j;
      else out.push([i, j, j]);
    }
  }
  return out;
}
