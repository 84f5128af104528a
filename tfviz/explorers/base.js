// tfviz explorers: what every module is written with. It reaches the module as the object `tf`.
//
// A module is one file that ends in
//
//   export default tf.explorer({
//     fit(fine, values) { … }              // optional: change what a link brings, after each knob is checked
//     setup(app) {                         // build the controls once; return what draws
//       app.prompt("Predict: …? Then press →");
//       const picture = app.canvas(app.picture, { label: "…", height: (width) => width / 2 });
//       app.knob("beta");                  // slider, checkbox or menu, as the Python class declares it
//       return {
//         draw(changed) {                  // coalesced: at most once a frame; changed: Set of traits
//           const { ctx, width, height } = picture.begin();   // CSS pixels, cleared, sharp
//           ctx.fillStyle = app.colours.query; …
//           app.say("query 2 puts 0.61 of its weight on key 0");      // visible and spoken
//         },
//         python: () => "SoftDictionary(beta=2.0)",           // optional: another text for "copy Python"
//       };
//     },
//   });
//
// The knobs of the Python class (tf.declared.knobs) are what "reset", "copy link" and "copy Python" carry, and what a link
// is checked against.
// app.knob(key, {…})     the control of a knob; options as of the controls below replace what is declared
// app.get(key), app.set(key, value), app.set({…})    traits; set redraws and tells the kernel
// app.root, .picture, .controls, .readouts, .footer  DOM nodes to append to
// app.slider(key, {label, letter, min, max, step, format, into, read, write}) -> field with .limit(min, max, step)
//     log: true and scale: [values] give a slider over a list;  read/write replace the trait by your own functions
// app.checkbox(key, {label}), app.select(key, {label, options: [[value, text], …] or {group: [[…]]}})
// app.choice(key, {label, options: [[value, text], …]})       a row of radio buttons
// app.button(text, action, {into, title})
// app.canvas(parent, {label, height(width), keys: true}) -> {canvas, begin() -> {ctx, width, height}, at(event) -> [x, y]}
// app.matrix(parent, {label, pick(i, j), hover(i, j)}) -> {draw({rows, columns, bits | values, row, keys, column}), canvas}
//     draw returns {ctx, unit}: the context with its origin at the first cell, and the size of a cell, for more on top
//     navigable by arrows, PageUp/Down, Home/End: pick(i, j) is called with the new cell
//     bits and values are painted anew when another array comes: change an array only by replacing it
// app.judged(met)             tells the page around whether the state meets the explorer's goal: event "tfviz:goal",
//     its detail {met, state}; the event "tfviz:show" brings such a state back
// app.readout(label, {into, title}) -> function (text) that shows it;   app.say(text)
// app.colours: query key value attention ink page grid muted (strings) + dark; they change with the theme
// app.redraw(), app.still (reduced motion), app.id("name") unique id
// tf.data (what the Python class gives), tf.declared (its knobs), tf.python(value) as Python writes it, tf.el(tag, props, …children), tf.rgb(colour), tf.mix(a, b, share),
// tf.sig(x) 3 significant digits, tf.count(n), tf.bytes(n) KiB/MiB/GiB, tf.clamp(x, low, high)
const tf = (() => {
  "use strict";
  const ROLES = ["query", "key", "value", "attention", "ink", "page", "grid", "muted"];
  let instances = 0;

  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
  const sig = (x, digits = 3) => (Number.isFinite(x) ? String(Number(x.toPrecision(digits))) : String(x));
  const count = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let k = 0;
    while (n >= 1024 && k < units.length - 1) { n /= 1024; k++; }
    return `${n >= 999.5 ? Math.round(n) : sig(n)} ${units[k]}`;
  }

  const python = (x) =>
    x === null || x === undefined ? "None"
      : typeof x === "boolean" ? (x ? "True" : "False")
        : Array.isArray(x) ? `[${x.map(python).join(", ")}]`
          : typeof x === "object" ? `{${Object.entries(x).map(([key, value]) => `${python(key)}: ${python(value)}`).join(", ")}}`
            : JSON.stringify(x);

  // Whether a value, from a link perhaps, is one that this knob may have.
  function fits({ kind, of, between, low = of?.[0] ?? -Infinity, high = of?.at(-1) ?? Infinity }, value) {
    if (kind === undefined || kind === "own") return true; // the module's `fit` knows
    if (of && !between) return of.includes(value);
    if (kind === "switch") return typeof value === "boolean";
    if (kind === "word") return typeof value === "string";
    return Number.isFinite(value) && value >= low && value <= high && (kind === "number" || Number.isInteger(value));
  }

  function el(tag, props = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name in node && name !== "list" && !name.includes("-")) node[name] = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  function rgb(colour) {
    if (!known.has(colour)) {
      probe.canvas.width = probe.canvas.height = 1;
      probe.fillStyle = colour;
      probe.fillRect(0, 0, 1, 1);
      known.set(colour, [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)]);
    }
    return known.get(colour);
  }
  const mix = (a, b, share) => {
    const [x, y] = [rgb(a), rgb(b)];
    return `rgb(${x.map((v, k) => Math.round(v + (y[k] - v) * share)).join(" ")})`;
  };
  const word = (colour) => { // a pixel of ImageData seen as Uint32 (little-endian)
    const [r, g, b] = rgb(colour);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  };

  function isDark() {
    const html = document.documentElement, body = document.body;
    if (html.dataset.theme === "dark" || html.dataset.theme === "light") return html.dataset.theme === "dark";
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
    if (html.hasAttribute("theme")) return html.getAttribute("theme") === "dark"; // Colab
    if (/\bvscode-(dark|light)/.test(body.className)) return body.classList.contains("vscode-dark");
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function onTheme(callback) {
    const watch = new MutationObserver(callback);
    const media = matchMedia("(prefers-color-scheme: dark)");
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "theme", "class"] });
    watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
    media.addEventListener("change", callback);
    return () => { watch.disconnect(); media.removeEventListener("change", callback); };
  }

  // State in the address: base64url of the JSON of what differs from the first state.
  const pack = (value) =>
    btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const unpack = (text) =>
    JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // not a secure page, or not allowed
      const area = el("textarea", { value: text, style: "position:fixed;opacity:0" });
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  class App {
    constructor(model, host, spec) {
      this.model = model;
      this.spec = spec;
      this.number = ++instances;
      this.changed = new Set();
      this.cleanup = [];
      this.fields = [];
      this.measures = [];
      this.first = structuredClone(this.all());
      const body = host.querySelector(":scope > .tfviz-explorer-body");
      this.host = host;
      this.root = el("div", { className: `tfx tfx-${api.name}` });
      this.root.dataset.lmSuppressShortcuts = "true";
      this.root.dataset.jpSuppressContextMenu = "true";
      this.top = el("p", { className: "tfx-prompt", hidden: true });
      this.picture = el("div", { className: "tfx-picture" });
      this.controls = el("div", { className: "tfx-controls" });
      this.status = el("p", { className: "tfx-status", role: "status" });
      this.readouts = el("div", { className: "tfx-readouts" });
      this.footer = el("div", { className: "tfx-footer" });
      this.root.append(this.top, el("div", { className: "tfx-main" }, this.picture, this.controls), this.status, this.readouts, this.footer);
      (body || host).replaceChildren(this.root);
      this.theme();
      if (model.get("prompt")) this.prompt(model.get("prompt"));
    }

    // --- state
    get(key) { return this.model.get(key); }
    all() { return Object.fromEntries(this.spec.keys.map((key) => [key, this.model.get(key)])); }
    moved() { // what differs from the first state
      return Object.fromEntries(Object.entries(this.all()).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(this.first[key])));
    }
    judged(met) { this.host.dispatchEvent(new CustomEvent("tfviz:goal", { bubbles: true, detail: { met, state: this.moved() } })); }
    set(key, value) {
      const values = typeof key === "object" ? key : { [key]: value };
      for (const [name, x] of Object.entries(values)) this.model.set(name, x);
      this.model.save_changes();
    }
    redraw(key) {
      if (key) this.changed.add(key);
      this.frame ??= requestAnimationFrame(() => this.paint());
    }
    paint() {
      cancelAnimationFrame(this.frame);
      this.frame = undefined;
      const changed = this.changed;
      this.changed = new Set();
      this.view.draw(changed);
      for (const update of this.fields) update();
    }
    get still() { return matchMedia("(prefers-reduced-motion: reduce)").matches; }
    id(name) { return `tfx-${api.name}-${this.number}-${name}`; }

    theme() {
      this.root.toggleAttribute("data-dark", isDark());
      const style = getComputedStyle(this.root);
      this.colours = { dark: isDark() };
      for (const role of ROLES) this.colours[role] = style.getPropertyValue(`--tfx-${role}`).trim();
      this.font = style.fontFamily;
      // JupyterLab renders first, then puts the host into its page and the style sheet beside it
      clearTimeout(this.unstyled);
      if (!this.colours.page) this.unstyled = setTimeout(() => { this.theme(); this.redraw("theme"); }, 60);
    }

    // --- words
    prompt(text) { this.top.textContent = text; this.top.hidden = false; }
    say(text) {
      if (text === this.saying) return;
      this.saying = text;
      clearTimeout(this.speech); // a slider on its way is not read out at every step
      if (!this.status.textContent) this.status.textContent = text;
      else this.speech = setTimeout(() => { this.status.textContent = text; }, 120);
    }
    readout(label, { into = this.readouts, title } = {}) {
      const value = el("dd");
      into.append(el("dl", { className: "tfx-readout", title }, el("dt", {}, label), value));
      return (text) => { if (value.textContent !== text) value.textContent = text; };
    }

    // --- controls. Each reads and writes a trait, or what `read` and `write` say.
    slider(key, { label, letter, min = 0, max = 1, step = 1, scale, format, into = this.controls, read, write, hint }) {
      read ??= () => this.get(key);
      write ??= (value) => this.set(key, value);
      format ??= (value) => (Number.isInteger(value) ? String(value) : sig(value));
      const id = this.id(key);
      if (scale) [min, max, step] = [0, scale.length - 1, 1];
      const input = el("input", { type: "range", id, min, max, step });
      input.dataset.lmSuppressShortcuts = "true";
      input.dataset.key = key;
      const output = el("output", { htmlFor: id });
      const name = el("label", { htmlFor: id }, label);
      if (letter) name.append(" ", el("i", {}, letter));
      const row = el("div", { className: "tfx-field tfx-slider", title: hint }, name, output, input);
      into.append(row);
      const nearest = (value) => scale.reduce((best, x, k) => (Math.abs(x - value) < Math.abs(scale[best] - value) ? k : best), 0);
      const update = () => {
        const value = read();
        const place = String(scale ? nearest(value) : value);
        if (input.value !== place) input.value = place;
        const text = format(value);
        if (output.textContent !== text) {
          output.textContent = text;
          input.setAttribute("aria-valuetext", text);
        }
        const span = input.max - input.min;
        input.style.setProperty("--fill", `${span > 0 ? (100 * (input.value - input.min)) / span : 0}%`);
      };
      input.addEventListener("input", () => write(scale ? scale[Number(input.value)] : Number(input.value)));
      this.fields.push(update);
      return {
        row, input, update,
        limit(low, high, by) {
          input.min = low;
          input.max = high;
          if (by) input.step = by;
        },
        remove: () => { row.remove(); this.fields = this.fields.filter((f) => f !== update); },
      };
    }
    checkbox(key, { label, into = this.controls, read, write, hint }) {
      read ??= () => this.get(key);
      write ??= (value) => this.set(key, value);
      const input = el("input", { type: "checkbox", id: this.id(key) });
      input.dataset.key = key;
      input.addEventListener("change", () => write(input.checked));
      const row = el("div", { className: "tfx-field tfx-check", title: hint }, input, el("label", { htmlFor: input.id }, label));
      into.append(row);
      const update = () => { input.checked = Boolean(read()); };
      this.fields.push(update);
      return { row, input, update };
    }
    select(key, { label, options, into = this.controls, read, write, hidden = false }) {
      read ??= () => this.get(key);
      write ??= (value) => this.set(key, value);
      const option = ([value, text]) => el("option", { value }, text);
      const input = el("select", { id: this.id(key) });
      input.dataset.key = key;
      input.dataset.lmSuppressShortcuts = "true";
      if (Array.isArray(options)) input.append(...options.map(option));
      else for (const [group, items] of Object.entries(options)) input.append(el("optgroup", { label: group }, ...items.map(option)));
      input.addEventListener("change", () => write(input.value));
      const row = el("div", { className: "tfx-field tfx-select" }, el("label", { htmlFor: input.id, className: hidden ? "tfx-hidden" : "" }, label), input);
      into.append(row);
      const update = () => { const value = String(read()); if (input.value !== value) input.value = value; };
      this.fields.push(update);
      return { row, input, update, remove: () => { row.remove(); this.fields = this.fields.filter((f) => f !== update); } };
    }
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
      const row = el("fieldset", { className: "tfx-field tfx-choice" }, el("legend", { className: hidden ? "tfx-hidden" : "" }, label),
        el("span", { className: "tfx-segments" }, ...inputs.flatMap(([, input, text]) => [input, text])));
      into.append(row);
      const update = () => { const now = read(); for (const [value, input] of inputs) input.checked = value === now; };
      this.fields.push(update);
      return { row, update };
    }
    knob(key, { as, ...options } = {}) {
      const { kind, of, texts, low, high, step, label, letter } = api.declared.knobs[key];
      const words = { label, letter, ...options };
      if (kind === "switch") return this.checkbox(key, words);
      if (as || kind === "word") {
        const choices = of?.map((value, n) => [value, texts?.[n] ?? String(value)]);
        return (as === "select" ? this.select : this.choice).call(this, key, { options: choices, ...words });
      }
      const scale = of ? { scale: of } : { min: low, max: high, step: step ?? (kind === "whole" ? 1 : 0.1) };
      return this.slider(key, { ...scale, ...words });
    }
    button(text, action, { into = this.footer, title, className = "tfx-button" } = {}) {
      const button = el("button", { type: "button", className, title, onclick: action }, text);
      into.append(button);
      return button;
    }

    // --- pictures
    canvas(parent, { label, height, keys = false, className = "" }) {
      const canvas = el("canvas", { className: `tfx-canvas ${className}`, role: keys ? "application" : "img", "aria-label": label });
      if (keys) { canvas.tabIndex = 0; canvas.dataset.lmSuppressShortcuts = "true"; }
      parent.append(canvas);
      let wide = 300;
      const measure = () => {
        wide = Math.max(40, Math.floor(canvas.parentElement.clientWidth || 300));
        canvas.style.height = `${Math.round(height(wide))}px`;
      };
      this.measures.push(measure); // when setup is done and all is in its place
      const watch = new ResizeObserver(() => {
        const before = wide;
        measure();
        if (before !== wide) this.redraw("size");
      });
      watch.observe(parent);
      this.cleanup.push(() => watch.disconnect());
      const ctx = canvas.getContext("2d");
      return {
        canvas,
        label: (text) => { if (canvas.getAttribute("aria-label") !== text) canvas.setAttribute("aria-label", text); },
        begin: () => {
          const ratio = globalThis.devicePixelRatio || 1;
          const [w, h] = [wide, Math.round(height(wide))];
          const [pw, ph] = [Math.round(w * ratio), Math.round(h * ratio)];
          if (canvas.width !== pw || canvas.height !== ph) { canvas.width = pw; canvas.height = ph; canvas.style.height = `${h}px`; }
          ctx.setTransform(pw / w, 0, 0, ph / h, 0, 0);
          ctx.clearRect(0, 0, w, h);
          ctx.font = `11px ${this.font}`;
          return { ctx, width: w, height: h, ratio };
        },
        at: (event) => {
          const box = canvas.getBoundingClientRect();
          return [event.clientX - box.left, event.clientY - box.top];
        },
      };
    }
    matrix(parent, options) { return matrix(this, parent, options); }
  }

  // A matrix picture: queries down, keys across, forbidden pairs hatched, allowed ones in the
  // attention colour (bits) or on the ramp from the page to it (values in 0…1, NaN = forbidden).
  function matrix(app, parent, { label, pick, hover, axes = ["i", "j"] }) {
    const LEFT = 30, TOP = 20, EDGE = 3;
    const view = app.canvas(parent, { label, height: (w) => w - LEFT + TOP, keys: Boolean(pick), className: "tfx-matrix" });
    const store = document.createElement("canvas"), store2d = store.getContext("2d");
    let cells, look, shown, place, hatch, hatchKey, at = [0, 0];

    function hatching(ctx, ratio) {
      const key = `${app.colours.grid}|${app.colours.page}|${ratio}`;
      if (key !== hatchKey) {
        const size = Math.round(6 * ratio), tile = document.createElement("canvas");
        tile.width = tile.height = size;
        const t = tile.getContext("2d");
        t.strokeStyle = mix(app.colours.page, app.colours.grid, 0.75);
        t.lineWidth = ratio;
        for (const shift of [-size, 0, size]) { t.moveTo(shift, size); t.lineTo(shift + size, 0); }
        t.stroke();
        hatch = ctx.createPattern(tile, "repeat");
        hatchKey = key;
      }
      return hatch;
    }

    function draw({ rows, columns = rows, bits, values, row = -1, column = -1, marks, ramp }) {
      const { ctx, width, height, ratio } = view.begin();
      const { colours } = app;
      const room = Math.min(width - LEFT - EDGE, height - TOP - EDGE) * ratio, n = Math.max(rows, columns);
      const fold = Math.max(1, Math.ceil(n / room)); // cells that share a pixel when there are too many
      const [w, h] = [Math.ceil(columns / fold), Math.ceil(rows / fold)];
      // whole pixels, unless that wastes much of the room: then cells differ by one pixel
      const whole = Math.max(1, Math.floor(room / Math.max(w, h)));
      const cell = (whole * Math.max(w, h)) / room > 0.88 ? whole : room / Math.max(w, h);
      // the cells, one pixel each, on a canvas of their own: painted anew only when they change
      const painted = [fold, w, h, colours.page, colours.attention, ramp ? Math.random() : 0].join();
      if (cells !== (bits ?? values) || look !== painted) {
        [cells, look] = [bits ?? values, painted];
        [store.width, store.height] = [w, h];
        const image = store2d.createImageData(w, h), pixels = new Uint32Array(image.data.buffer), shades = new Uint32Array(65);
        for (let k = 0; k <= 64; k++) shades[k] = word(ramp ? ramp(k / 64) : mix(colours.page, colours.attention, k / 64));
        if (fold === 1) {
          if (bits) for (let k = 0; k < w * h; k++) pixels[k] = bits[k] ? shades[64] : 0;
          else for (let k = 0; k < w * h; k++) pixels[k] = values[k] === values[k] ? shades[Math.round(clamp(values[k], 0, 1) * 64)] : 0;
        } else {
          for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) {
            let sum = 0, some = 0;
            for (let a = 0; a < fold && y * fold + a < rows; a++) for (let b = 0; b < fold && x * fold + b < columns; b++) {
              const value = bits ? bits[(y * fold + a) * columns + x * fold + b] || NaN : values[(y * fold + a) * columns + x * fold + b];
              if (value === value) { sum += value; some++; }
            }
            // how many of the cells behind a pixel are kept shows as its strength, never below .4
            pixels[y * w + x] = !some ? 0 : bits ? shades[Math.round(64 * (0.4 + (0.6 * some) / (fold * fold)))] : shades[Math.round(clamp(sum / some, 0, 1) * 64)];
          }
        }
        store2d.putImageData(image, 0, 0);
      }
      ctx.setTransform(1, 0, 0, 1, 0, 0); // from here in device pixels, whole numbers: crisp
      const [x0, y0] = [Math.round(LEFT * ratio), Math.round(TOP * ratio)];
      const [wide, high] = [Math.round(w * cell), Math.round(h * cell)];
      ctx.imageSmoothingEnabled = false;
      ctx.translate(x0, y0);
      ctx.fillStyle = hatching(ctx, ratio);
      ctx.fillRect(0, 0, wide, high);
      ctx.drawImage(store, 0, 0, w, h, 0, 0, wide, high);
      if (bits && row >= 0 && fold === 1) { // the key set of the query
        ctx.fillStyle = colours.key;
        const [top, bottom] = [Math.round(row * cell), Math.round((row + 1) * cell)];
        for (let j = 0; j < columns; j++) if (bits[row * columns + j]) {
          const left = Math.round(j * cell);
          ctx.fillRect(left, top, Math.round((j + 1) * cell) - left, bottom - top);
        }
      }
      if (n <= 32) {
        ctx.fillStyle = mix(colours.page, colours.grid, 0.8);
        const line = Math.max(1, Math.round(ratio * 0.75));
        for (let k = 1; k < w; k++) ctx.fillRect(Math.round(k * cell), 0, line, high);
        for (let k = 1; k < h; k++) ctx.fillRect(0, Math.round(k * cell), wide, line);
      }
      if (n <= 8 && values) {
        ctx.font = `${Math.round(Math.min(12 * ratio, cell * 0.36))}px ${app.font}`;
        ctx.textAlign = "center";
        ctx.textBaseline = "middle";
        for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) {
          const value = values[y * w + x];
          if (value !== value) continue;
          ctx.fillStyle = value > 0.45 ? colours.page : colours.ink;
          ctx.fillText(sig(value, 2), (x + 0.5) * cell, (y + 0.5) * cell);
        }
      }
      ctx.strokeStyle = colours.muted;
      ctx.lineWidth = Math.max(1, Math.round(ratio));
      ctx.strokeRect(-0.5, -0.5, wide + 1, high + 1);
      const unit = cell / fold, frame = Math.max(2, Math.round(2 * ratio));
      const framed = (x, y, fw, fh, colour) => { // ring outside the cells, with a gap of page colour
        const [a, b, c, d] = [x, y, x + fw, y + fh].map(Math.round);
        ctx.lineWidth = frame;
        ctx.strokeStyle = colour;
        ctx.strokeRect(a - frame / 2, b - frame / 2, c - a + frame, d - b + frame);
      };
      if (column >= 0) framed(column * unit, 0, Math.max(unit, 1), high, colours.key);
      if (row >= 0) framed(0, row * unit, wide, Math.max(unit, 1), colours.query);
      if (marks) for (const [i, j] of marks) framed(j * unit, i * unit, Math.max(unit, 1), Math.max(unit, 1), colours.ink);
      // axes: first and last index, the letters, and the selected ones
      ctx.setTransform(ratio, 0, 0, ratio, x0, y0);
      const u = unit / ratio, size = wide / ratio, tall = high / ratio;
      ctx.font = `11px ${app.font}`;
      const tick = (text, x, y, align, colour, bold) => {
        ctx.textAlign = align;
        ctx.textBaseline = "middle";
        ctx.font = `${bold ? "600 " : ""}11px ${app.font}`;
        ctx.fillStyle = colour;
        ctx.fillText(text, x, y);
      };
      const ri = row >= 0 ? (row + 0.5) * u : -99, cj = column >= 0 ? (column + 0.5) * u : -99;
      if (row >= 0) tick(String(row), -6, clamp(ri, 4, tall - 4), "right", colours.query, true);
      if (column >= 0) tick(String(column), clamp(cj, 6, size - 6), -10, "center", colours.key, true);
      const apart = 15;
      if (Math.abs(ri - u / 2) > apart) tick("0", -6, Math.max(5, u / 2), "right", colours.muted);
      if (Math.abs(ri - tall + u / 2) > apart && rows > 1) tick(String(rows - 1), -6, Math.min(tall - 5, tall - u / 2), "right", colours.muted);
      if (Math.abs(cj - u / 2) > apart) tick("0", Math.max(3, u / 2), -10, "center", colours.muted);
      if (Math.abs(cj - size + u / 2) > 22 && columns > 1) tick(String(columns - 1), Math.min(size - 8, size - u / 2), -10, "center", colours.muted);
      if (Math.abs(ri - tall / 2) > apart) tick(axes[0], -8, tall / 2, "right", colours.query, true);
      if (Math.abs(cj - size / 2) > apart) tick(axes[1], size / 2, -10, "center", colours.key, true);
      shown = { rows, columns };
      place = { x: x0 / ratio, y: y0 / ratio, u };
      at = [clamp(row < 0 ? at[0] : row, 0, rows - 1), clamp(column < 0 ? at[1] : column, 0, columns - 1)];
      return { ctx, unit: u }; // in CSS pixels from the first cell's corner, for what is drawn on top
    }

    const cellAt = (event) => {
      if (!place) return null;
      const [x, y] = view.at(event);
      const [i, j] = [Math.floor((y - place.y) / place.u), Math.floor((x - place.x) / place.u)];
      return i >= 0 && j >= -LEFT / place.u && i < shown.rows && j < shown.columns ? [i, clamp(j, 0, shown.columns - 1)] : null;
    };
    if (hover) {
      view.canvas.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") hover(cellAt(event)); });
      view.canvas.addEventListener("pointerleave", () => hover(null));
    }
    if (pick) {
      view.canvas.addEventListener("click", (event) => { const found = cellAt(event); if (found) pick(...found, "pointer"); });
      view.canvas.addEventListener("keydown", (event) => {
        if (!shown || event.ctrlKey || event.metaKey || event.altKey) return;
        const page = Math.max(1, Math.round(shown.rows / 8));
        const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0], PageDown: [page, 0], Home: [-1e9, 0], End: [1e9, 0] }[event.key];
        if (!move) return;
        event.preventDefault();
        event.stopPropagation();
        at = [clamp(at[0] + move[0], 0, shown.rows - 1), clamp(at[1] + move[1], 0, shown.columns - 1)]; // the next key may come before the next frame
        pick(...at, "key");
      });
    }
    return { draw, canvas: view.canvas, label: view.label };
  }

  function explorer(spec) {
    const { knobs, given, found, kind } = api.declared;
    spec.keys = Object.keys(knobs);
    spec.check = (values) => {
      const fine = Object.fromEntries(Object.entries(values).filter(([key, value]) => fits(knobs[key], value)));
      return spec.fit?.(fine) ?? fine;
    };
    const written = (app) => {
      const names = [...given.filter((name) => !found.includes(name)), ...spec.keys];
      return `${kind}(${names.map((name) => `${name}=${python(app.get(name))}`).join(", ")})`;
    };
    return {
      render({ model, el: host }) {
        const app = new App(model, host, spec);
        const first = app.first;
        // which of its kind on this page: two explorers do not share an address
        const kin = [...document.querySelectorAll(`[data-explorer="${api.name}"]`)];
        const place = kin.indexOf(host);
        const address = place > 0 ? `${api.name}-${place + 1}` : api.name;
        const show = (state) => {
          const wanted = Object.entries(state).filter(([key, value]) => spec.keys.includes(key) && typeof value === typeof first[key]);
          const values = Object.fromEntries(wanted);
          app.set({ ...first, ...spec.check(values) });
        };
        const restore = () => {
          const text = new RegExp(`^#${address}=(.+)$`).exec(location.hash)?.[1];
          if (!text) return;
          try {
            show(unpack(text));
          } catch (error) {
            app.notice = `The link could not be read: ${error.message}`;
            console.warn(app.notice);
          }
        };
        if (place >= 0) restore();

        app.view = spec.setup(app);
        const said = el("span", { className: "tfx-said", role: "status" });
        const tell = (text) => { said.textContent = text; setTimeout(() => { said.textContent = ""; }, 2500); };
        const copier = (text, what) => async () => {
          const value = text();
          tell((await copy(value)) ? `${what} copied` : `copying is blocked here: ${value}`);
        };
        app.button("reset", () => { app.set(structuredClone(first)); tell("first state"); });
        if (place >= 0) {
          app.button("copy link", copier(() => `${location.href.split("#")[0]}#${address}=${pack(app.moved())}`, "link"));
        }
        app.button("copy Python", copier(() => (app.view.python ?? (() => written(app)))(), "Python"));
        for (const [text, value, what] of app.view.copies || []) app.button(text, copier(value, what));
        app.footer.append(said);
        if (app.notice) tell(app.notice);

        const names = spec.keys.concat(given, "prompt");
        const watchers = names.map((name) => [`change:${name}`, () => app.redraw(name)]);
        for (const [event, call] of watchers) model.on(event, call);
        const unwatch = onTheme(() => { app.theme(); app.redraw("theme"); });
        if (place >= 0) addEventListener("hashchange", restore);
        const asked = ({ detail }) => {
          try { show(detail); } catch (error) { tell(`The state cannot be shown: ${error.message}`); }
        };
        host.addEventListener("tfviz:show", asked);
        for (const name of names) app.changed.add(name);
        for (const measure of app.measures) measure();
        app.paint();
        host.dataset.ready = "true";
        return () => {
          for (const [event, call] of watchers) model.off(event, call);
          unwatch();
          removeEventListener("hashchange", restore);
          host.removeEventListener("tfviz:show", asked);
          cancelAnimationFrame(app.frame);
          clearTimeout(app.speech);
          clearTimeout(app.unstyled);
          app.view.destroy?.();
          for (const call of app.cleanup) call();
        };
      },
    };
  }

  const api = { name: "", data: {}, declared: {}, explorer, python, el, rgb, mix, word, sig, count, bytes, clamp };
  return api;
})();
