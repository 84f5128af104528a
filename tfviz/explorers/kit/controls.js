// Controls, each of which reads and writes a trait, or what `read` and `write` say.

// The cell to which a key moves from [row, column]; nothing for other keys, which go their way.
function keyed(event, /** @type {number[]} */ [row, column], rows, columns) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const page = Math.max(1, Math.round(rows / 8));
  const move = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-page, 0],
    PageDown: [page, 0],
    Home: [-1e9, 0],
    End: [1e9, 0],
  }[event.key];
  if (!move) return null;
  event.preventDefault();
  event.stopPropagation();
  return [clamp(row + move[0], 0, rows - 1), clamp(column + move[1], 0, columns - 1)];
}

// The place in a list of the number that is nearest to value.
const nearestIn = (list, value) =>
  list.reduce((best, x, k) => (Math.abs(x - value) < Math.abs(list[best] - value) ? k : best), 0);

const controls = {
  slider(key, options) {
    const {
      label,
      letter,
      min = 0,
      max = 1,
      step = 1,
      scale,
      into = this.controls,
      hint,
    } = options;
    const { read = () => this.get(key), write = (value) => this.set(key, value) } = options;
    const format =
      options.format ?? ((value) => (Number.isInteger(value) ? String(value) : sig(value)));
    const id = this.id(key);
    const ends = scale ? { min: 0, max: scale.length - 1, step: 1 } : { min, max, step };
    const input = el("input", { type: "range", id, ...ends });
    input.dataset.lmSuppressShortcuts = "true";
    input.dataset.key = key;
    const output = el("output", { htmlFor: id });
    const name = el("label", { htmlFor: id }, label);
    if (letter) name.append(" ", el("span", { className: "tfx-maths" }, ...typeset(letter)));
    const row = el("div", { className: "tfx-field tfx-slider", title: hint }, name, output, input);
    into.append(row);
    const nearest = (value) => nearestIn(scale, value);
    const update = () => {
      const value = read();
      const place = String(scale ? nearest(value) : value);
      if (input.value !== place) input.value = place;
      const text = format(value);
      if (tell(output, text)) input.setAttribute("aria-valuetext", plainly(text));
      const span = input.max - input.min;
      const share = span > 0 ? (100 * (input.value - input.min)) / span : 0;
      input.style.setProperty("--fill", `${share}%`);
    };
    input.addEventListener("input", () =>
      write(scale ? scale[Number(input.value)] : Number(input.value)),
    );
    this.fields.push(update);
    const limit = (low, high, by) => {
      input.min = low;
      input.max = high;
      if (by) input.step = by;
    };
    return { row, input, update, limit, remove: () => this.forget(row, update) };
  },
  forget(row, update) {
    row.remove();
    this.fields = this.fields.filter((f) => f !== update);
  },
  checkbox(key, { label, into = this.controls, read, write, hint }) {
    read ??= () => this.get(key);
    write ??= (value) => this.set(key, value);
    const input = el("input", { type: "checkbox", id: this.id(key) });
    input.dataset.key = key;
    input.addEventListener("change", () => write(input.checked));
    const name = el("label", { htmlFor: input.id }, label);
    const row = el("div", { className: "tfx-field tfx-check", title: hint }, input, name);
    into.append(row);
    const update = () => {
      input.checked = Boolean(read());
    };
    this.fields.push(update);
    return { row, input, update };
  },
  select(key, { label, options, into = this.controls, read, write, hidden = false }) {
    read ??= () => this.get(key);
    write ??= (value) => this.set(key, value);
    const option = ([value, text]) => el("option", { value }, text);
    const group = ([name, items]) => el("optgroup", { label: name }, ...items.map(option));
    const input = el("select", { id: this.id(key) });
    input.dataset.key = key;
    input.dataset.lmSuppressShortcuts = "true";
    if (Array.isArray(options)) input.append(...options.map(option));
    else input.append(...Object.entries(options).map(group));
    input.addEventListener("change", () => write(input.value));
    const name = el("label", { htmlFor: input.id, className: hidden ? "tfx-hidden" : "" }, label);
    const row = el("div", { className: "tfx-field tfx-select" }, name, input);
    into.append(row);
    const update = () => {
      const value = String(read());
      if (input.value !== value) input.value = value;
    };
    this.fields.push(update);
    return { row, input, update, remove: () => this.forget(row, update) };
  },
  choice(key, { label, options, into = this.controls, read, write, hidden = false }) {
    read ??= () => this.get(key);
    write ??= (value) => this.set(key, value);
    const name = this.id(key);
    const inputs = options.map(([value, text, hint]) => {
      const input = el("input", { type: "radio", name, id: `${name}-${value}` });
      input.dataset.lmSuppressShortcuts = "true";
      input.dataset.key = key;
      input.addEventListener("change", () => write(value));
      return [value, input, el("label", { htmlFor: input.id, title: hint }, text)];
    });
    const row = el(
      "fieldset",
      { className: "tfx-field tfx-choice" },
      el("legend", { className: hidden ? "tfx-hidden" : "" }, label),
      el(
        "span",
        { className: "tfx-segments" },
        ...inputs.flatMap(([, input, text]) => [input, text]),
      ),
    );
    into.append(row);
    const update = () => {
      const now = read();
      for (const [value, input] of inputs) input.checked = value === now;
    };
    this.fields.push(update);
    return { row, update, remove: () => this.forget(row, update) };
  },
  // The control of a knob, as the Python class declares it.
  // With `last`, what the others make of it is the end: knob("row", { last: () => rows - 1 }).
  knob(key, /** @type {any} */ { as, last, ...options } = {}) {
    const { kind, of, texts, step, label, letter } = this.about[key];
    const { low, high } = this.ends(key);
    /** @type {any} */
    const words = { label, letter, ...options };
    if (last) words.read = () => Math.min(this.get(key), last());
    if (as && kind !== "word") words.write ??= (x) => this.set(key, Number(x));
    let control;
    if (kind === "switch") control = this.checkbox(key, words);
    else if (as || kind === "word") {
      const choices = of?.map((value, n) => [value, texts?.[n] ?? String(value)]);
      const put = as === "select" ? this.select : this.choice;
      control = put.call(this, key, { options: choices, ...words });
    } else {
      const by = step ?? (kind === "whole" ? 1 : 0.1);
      const scale = of ? { scale: of } : { min: low, max: high, step: by };
      control = this.slider(key, { ...scale, ...words });
    }
    if (last || this.hanging.includes(key))
      this.fields.push(() => {
        const ends = this.ends(key);
        control.limit(ends.low, last ? last() : ends.high);
        control.update();
      });
    this.knobs.set(key, control);
    return control;
  },
  knobsOf(...keys) {
    for (const key of keys) this.knob(key);
  },
  // A text field for an own trait; `fine` says which texts may be taken over, or `why` in words why
  // not, "" where nothing is wrong.
  text(key, { label, most, why = (_) => "", fine = (x) => !why(x), write, into = this.controls }) {
    write ??= (value) => this.set(key, value);
    const id = this.id(key);
    const props = { type: "text", id, maxLength: most, autocomplete: "off", spellcheck: false };
    const input = el("input", props);
    input.dataset.lmSuppressShortcuts = "true";
    input.dataset.key = key;
    const refused = el("span", { className: "tfx-refused", role: "status" });
    let shown;
    input.addEventListener("input", () => {
      const good = fine(input.value);
      refused.textContent = good ? "" : plainly(why(input.value));
      if (!good) return;
      shown = input.value; // what is typed before the next frame is not overwritten
      write(input.value);
    });
    const name = el("label", { htmlFor: id }, label);
    into.append(el("div", { className: "tfx-field tfx-select" }, name, input, refused));
    this.fields.push(() => {
      const value = this.get(key);
      if (value !== shown) {
        shown = value;
        if (input.value !== value) input.value = value;
      }
    });
    return { input };
  },
  // The nearest value that the knob may have.
  snap(key, value) {
    const { kind, of, between, step } = this.about[key];
    const { low, high } = this.ends(key);
    if (of && !between) {
      return of.reduce((best, x) => (Math.abs(x - value) < Math.abs(best - value) ? x : best));
    }
    const input = this.knobs.get(key)?.input;
    const first = of ? of[0] : input ? Number(input.min) : low;
    const last = of ? of.at(-1) : input ? Number(input.max) : high;
    const by = step ?? (kind === "whole" ? 1 : 0.1);
    const near = first + Math.round((clamp(value, first, last) - first) / by) * by;
    return Number(Math.min(last, near).toFixed(9));
  },
  // So many values further.
  step(key, by) {
    const { kind, of, step = kind === "whole" ? 1 : 0.1 } = this.about[key];
    const now = this.get(key);
    if (of) this.set(key, of[clamp(of.indexOf(this.snap(key, now)) + by, 0, of.length - 1)]);
    else this.set(key, this.snap(key, now + by * step));
  },
  button(text, action, /** @type {any} */ options = {}) {
    const { into = this.footer, title, className = "tfx-button" } = options;
    const button = el("button", { type: "button", className, title, onclick: action }, text);
    into.append(button);
    return button;
  },
  readout(label, /** @type {any} */ { into = this.readouts, title } = {}) {
    const value = el("dd");
    const node = el("dl", { className: "tfx-readout", title }, el("dt", {}, label), value);
    node.dataset.label = label;
    into.append(node);
    return (text) => tell(value, text);
  },
  // All readouts at once: {label: text}; a label that is left out is not shown.
  read(texts) {
    this.outs ??= new Map();
    for (const [label, text] of Object.entries(texts)) {
      if (!this.outs.has(label)) this.outs.set(label, this.readout(label));
      this.outs.get(label)(this.hides(label) ? "?" : String(text));
    }
    for (const node of this.readouts.children) {
      const { label } = node.dataset;
      if (this.outs.has(label)) node.hidden = !(label in texts);
    }
  },
};
