// Commit, then reveal: a question that is answered before the explorer shows it.
//   const q = app.ask({name, question, chips: [text, …] | number: {unit, near} | curve: {at: [x, …], log},
//     truth: (numbers, state) => index | number | [y, …], then: {knob: value}, locks: [knob, …], because})
//   q.open                    true until it is answered or passed over: what it asks for is not drawn
//   q.tell(text)              the text, "?" while it is open
//   q.sketch, q.marks()       for plane.show({sketch: q.sketch, marks: [...q.marks()]}): the drawn curve
// `truth` is worked out from numbers() at the first state with `then`, which the answer also sets. The
// locks (without it, the knobs of `then`) stay shut until then. The answer is kept with the reader's progress (event "tfviz:answer"); without such a page, until reload.
// Passed over, it says what it is, too. Without a question, q is one that is not open.
function ask(app, spec) {
  if (!spec) return { open: false, sketch: null, marks: () => [], tell: (x) => x };
  const { name, question, chips, number, curve, truth, then = {}, because = "" } = spec;
  const { locks = Object.keys(then) } = spec;
  const box = el("div", { className: "tfx-ask", role: "group", ariaLabel: "Your prediction" });
  const line = el("p", { className: "tfx-question" }, question);
  const row = el("div", { className: "tfx-answers" });
  const verdict = el("p", { className: "tfx-verdict", role: "status" });
  box.append(line, row, verdict);
  app.questions.append(box);
  const key = `${app.tf.name}/${name}`;
  const q = { open: true, said: undefined, node: box, tell: (x) => (q.open ? "?" : x) };
  const ys = curve ? curve.at.map(() => undefined) : null;
  const dispatched = (type, said) => {
    const detail = { name: key, said };
    app.host.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
    return detail.said;
  };
  const right = () => {
    const state = { ...app.values(), ...structuredClone(app.first), ...then };
    return truth(app.spec.numbers?.(state), state);
  };
  const written = (x) => (Number.isInteger(x) && Math.abs(x) < 1e15 ? count(x) : short(x));
  const shown = (x) => (number ? `${written(x)}${number.unit ? ` ${number.unit}` : ""}` : chips[x]);

  function write() {
    const known = q.said !== undefined;
    row.hidden = !q.open;
    box.toggleAttribute("data-open", q.open);
    let text = "";
    if (!q.open) {
      const is = right();
      if (curve) text = `${known ? "The dashed line is yours. " : ""}${because}`;
      else if (!known) text = `it is: ${shown(is)}. ${because}`;
      else {
        const far = number ? Math.abs(q.said - is) > (number.near ?? 0) : q.said !== is;
        const met = far
          ? `you said: ${shown(q.said)}; it is: ${shown(is)}`
          : `you said: ${shown(q.said)}. ${q.said === is ? "So it is" : `Near enough: it is ${shown(is)}`}`;
        text = `${far ? "✗" : "✓"} ${met}. ${because}`;
      }
    }
    verdict.textContent = text;
    if (text) {
      const again = el(
        "button",
        { type: "button", className: "tfx-again", onclick: reopen },
        "ask me again",
      );
      verdict.append(" ", again);
    }
    for (const knob of locks) {
      if (q.open) app.locked.add(knob);
      else app.locked.delete(knob);
      for (const part of [app.knobs.get(knob)?.row, app.knobs.get(knob)?.more]) {
        part?.toggleAttribute("data-locked", q.open);
        part?.toggleAttribute("inert", q.open);
      }
    }
    app.redraw("asked");
  }
  function settle(said) {
    q.open = false;
    q.said = said;
    if (said !== undefined) dispatched("tfviz:answer", said);
    if (Object.keys(then).length) app.set(then);
    write();
  }
  function reopen() {
    q.open = true;
    q.said = undefined;
    ys?.fill(undefined);
    dispatched("tfviz:answer", null);
    app.set(structuredClone(app.first));
    write();
    row.querySelector("button, input")?.focus();
  }

  const put = (text, action) => app.button(text, action, { into: row });
  if (chips) chips.forEach((text, n) => put(text, () => settle(n)));
  if (number) {
    const input = el("input", { type: "text", inputMode: "decimal", ariaLabel: question });
    input.dataset.lmSuppressShortcuts = "true";
    const give = () => {
      const value = Number(input.value.replace(",", ".").replace("−", "-"));
      if (input.value.trim() && Number.isFinite(value)) settle(value);
      else input.focus();
    };
    input.addEventListener("keydown", (event) => event.key === "Enter" && give());
    row.append(input);
    if (number.unit) row.append(number.unit);
    put("that is my answer", give);
  }
  if (curve) {
    const done = put("that is my curve", () => settle(filled()));
    done.disabled = true;
    q.drawn = () => {
      done.disabled = !ys.some((y) => y !== undefined);
    };
  }
  put("just show me", () => settle(undefined)).classList.add("tfx-quiet");
  // between the points that were drawn, straight
  function filled() {
    const some = ys.flatMap((y, k) => (y === undefined ? [] : [k]));
    return ys.map((y, k) => {
      if (y !== undefined) return y;
      const a = some.filter((n) => n < k).at(-1) ?? some[0];
      const b = some.find((n) => n > k) ?? some.at(-1);
      if (a === b) return ys[a];
      const share = (k - a) / (b - a);
      return curve.log ? ys[a] * (ys[b] / ys[a]) ** share : ys[a] + (ys[b] - ys[a]) * share;
    });
  }
  Object.defineProperty(q, "sketch", {
    get: () => (curve && q.open ? { at: curve.at, ys, changed: q.drawn } : null),
  });
  q.marks = () =>
    curve && !q.open && q.said
      ? [{ line: q.said, at: curve.at, colour: "key", dash: "6 4", name: "you" }]
      : [];
  q.start = () => {
    const said = dispatched("tfviz:asked");
    const fine = curve
      ? Array.isArray(said) && said.length === curve.at.length
      : Number.isFinite(said);
    if (fine && (!chips || chips[said] !== undefined)) {
      q.open = false;
      q.said = said;
    }
    write();
  };
  app.asked.push(q);
  return q;
}
