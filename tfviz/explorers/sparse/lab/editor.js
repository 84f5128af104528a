// How many lines the controls of a pattern take.
function linesOf(spec, inside = 0) {
  if (spec.op === "not") return 1 + linesOf(spec.parts[0]);
  if (spec.op) return tf.sum(spec.parts.map((part) => linesOf(part, 1))) + inside;
  const values = Object.values(spec.params ?? {});
  return tf.sum(values.map((value) => (Array.isArray(value) ? 4 : 1))) + inside;
}

// The pattern as a tree of terms joined by and / or, each perhaps negated. Rebuilt when its shape
// changes; a slider on its way only changes numbers.
function makeEditor(app, side, root) {
  let shape,
    controls = [],
    serial = 0;
  const leafName = (spec) =>
    spec.op === "not" ? leafName(spec.parts[0]) : spec.table ? "table" : spec.name;
  const shapeOf = (spec) =>
    spec.table ? "T" : spec.op ? `${spec.op}(${spec.parts.map(shapeOf).join()})` : spec.name;
  const at = (spec, path) => path.reduce((node, k) => node.parts[k], spec);
  function change(path, edit) {
    const replace = (node, /** @type {any[]} */ [k, ...rest]) =>
      k === undefined
        ? edit(node)
        : { ...node, parts: node.parts.map((part, n) => (n === k ? replace(part, rest) : part)) };
    const spec = replace(app.get(side), path);
    app.set(side, fit(spec, app.get("L")));
  }
  const without = (path) => {
    const parent = path.slice(0, -1),
      k = path.at(-1);
    change(parent, (node) => {
      const parts = node.parts.filter((_, n) => n !== k);
      return parts.length === 1 ? parts[0] : { ...node, parts };
    });
  };
  const add = (op) =>
    change([], (node) => {
      const next = fresh(op === "and" ? "causal" : "global_tokens", app.get("L"));
      return node.op === op ? { op, parts: [...node.parts, next] } : { op, parts: [node, next] };
    });

  // `joint`: and / or, which joins it to the term before
  function leaf(spec, path, into, many, joint = "") {
    const key = `${side}-${serial++}`;
    const negated = spec.op === "not";
    const inner = negated ? [...path, 0] : path,
      plain = negated ? spec.parts[0] : spec;
    if (many || negated) {
      const row = el("div", { className: "sl-term" }, joint);
      into.append(row);
      if (plain.table) row.append(el("span", {}, "table"));
      else if (plain.op) row.append(el("span", {}, "not"));
      else {
        controls.push(
          app.select(`${key}-family`, {
            label: "term",
            hidden: true,
            into: row,
            options: Object.entries(FAMILIES).map(([name, { title }]) => [name, title]),
            read: () => at(app.get(side), inner).name ?? plain.name,
            write: (name) => change(inner, () => fresh(name, app.get("L"))),
          }),
        );
      }
      const not = app.button(
        "not",
        () =>
          change(path, (node) =>
            node.op === "not" ? node.parts[0] : { op: "not", parts: [node] },
          ),
        { into: row, title: "the pairs that this term leaves out" },
      );
      not.setAttribute("aria-pressed", String(negated));
      if (path.length)
        app
          .button("×", () => without(path), { into: row })
          .setAttribute("aria-label", `remove ${leafName(spec)}`);
    }
    if (plain.op) return node(plain, inner, into);
    if (plain.table) return;
    for (const [name, range] of parametersOf(plain.name)) {
      const value = () => at(app.get(side), inner).params?.[name] ?? range.default;
      if (range.type === "list") permutation(key, name, inner, value, into);
      else {
        const field = app.slider(`${key}-${name}`, {
          label: name,
          into,
          min: range.min,
          max: 64,
          read: value,
          write: (x) =>
            change(inner, (node) => ({ ...node, params: { ...node.params, [name]: x } })),
        });
        controls.push({
          ...field,
          fit: (L) =>
            field.limit(range.min, Math.max(range.min, highest(at(app.get(side), inner), name, L))),
        });
      }
    }
  }
  function permutation(key, name, path, value, into) {
    const id = app.id(`${key}-${name}`);
    const input = el("input", {
      type: "text",
      id,
      inputMode: "numeric",
      autocomplete: "off",
      spellcheck: false,
    });
    input.dataset.lmSuppressShortcuts = "true";
    input.dataset.key = `${key}-${name}`;
    const hint = el("small", { id: `${id}-hint` });
    input.setAttribute("aria-describedby", hint.id);
    const put = (order) =>
      change(path, (node) => ({ ...node, params: { ...node.params, [name]: order } }));
    input.addEventListener("input", () => {
      const order = input.value
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number);
      const good =
        order.length > 0 &&
        order.length <= app.get("L") &&
        [...order].sort((a, b) => a - b).every((n, k) => n === k);
      input.setAttribute("aria-invalid", String(!good));
      hint.textContent = good
        ? "query block b uses key block π(b)"
        : "write every number from 0 to n − 1 once";
      if (good) put(order);
    });
    const row = el(
      "div",
      { className: "tfx-field sl-order" },
      el("label", { htmlFor: id }, name, " ", el("i", {}, "π")),
      input,
      hint,
    );
    const buttons = el("div", { className: "sl-term" });
    app.button("shift", () => put([...value().slice(1), value()[0]]), { into: buttons });
    app.button("more blocks", () => put([...value(), value().length]), { into: buttons });
    app.button("fewer", () => put(value().filter((n) => n !== value().length - 1)), {
      into: buttons,
    });
    row.append(buttons);
    into.append(row);
    hint.textContent = "query block b uses key block π(b)";
    controls.push({
      fit: () => {
        if (document.activeElement !== input) input.value = value().join(", ");
      },
      remove() {},
    });
  }
  function node(spec, path, into) {
    if (spec.op !== "and" && spec.op !== "or") return leaf(spec, path, into, false);
    const group = el("div", { className: "sl-group" });
    into.append(group);
    spec.parts.forEach((part, k) => {
      const joint = el("div", {});
      if (k) {
        controls.push(
          app.choice(`${side}-op-${serial++}`, {
            label: "joined by",
            hidden: true,
            into: joint,
            options: [
              ["and", "and"],
              ["or", "or"],
            ],
            read: () => at(app.get(side), path).op,
            write: (op) => change(path, (old) => ({ ...old, op })),
          }),
        );
      }
      if (part.op === "and" || part.op === "or") {
        if (k) group.append(joint);
        node(part, [...path, k], group);
        const row = el("div", { className: "sl-term" });
        group.append(row);
        app.button("not", () => change([...path, k], (old) => ({ op: "not", parts: [old] })), {
          into: row,
        });
        app
          .button("×", () => without([...path, k]), { into: row })
          .setAttribute("aria-label", "remove the group");
      } else leaf(part, [...path, k], group, true, k ? joint : "");
    });
  }
  return {
    draw(spec, L) {
      const now = shapeOf(spec);
      if (now !== shape) {
        const focused = root.contains(document.activeElement)
          ? document.activeElement.textContent
          : null;
        for (const control of controls) control.remove?.();
        controls = [];
        serial = 0;
        root.replaceChildren();
        node(spec, [], root);
        const row = el(
          "div",
          { className: "sl-term" },
          el("span", { className: "sl-with" }, "combine:"),
        );
        root.append(row);
        app.button("and", () => add("and"), { into: row, title: "only the pairs in both" });
        app.button("or", () => add("or"), { into: row, title: "the pairs in either" });
        if (!spec.op)
          app.button("not", () => change([], (old) => ({ op: "not", parts: [old] })), {
            into: row,
            title: "all other pairs",
          });
        shape = now;
        if (focused)
          [...root.querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
      }
      for (const control of controls) control.fit?.(L);
    },
  };
}
