// An explorer in the page: its state, its frame, its address, its colours, and what is said.

// Whether a value, from a link perhaps, is one that this knob may have; its ends are numbers here.
function fits(about, value) {
  const { kind, of, between } = about;
  const {
    low = of?.[0] ?? Number.NEGATIVE_INFINITY,
    high = of?.at(-1) ?? Number.POSITIVE_INFINITY,
  } = about;
  if (kind === undefined || kind === "own") return true; // the module's `fit` knows
  if (of && !between) return of.includes(value);
  if (kind === "switch") return typeof value === "boolean";
  if (kind === "word") return typeof value === "string";
  const inside = Number.isFinite(value) && value >= low && value <= high;
  return inside && (kind === "number" || Number.isInteger(value));
}

// how many explorers the document has seen: in a notebook each brings a kit of its own, and all of
// them need ids and names of their own
const seen = Symbol.for("tfviz explorers");

class App {
  view; // what setup() gave: it draws
  lit; // the term that lights up
  relight; // does so again, in a new drawing
  full = true; // nothing can be done if it is higher than a screen: fit() has seen to it, or will
  notes; // formulas and sentences: beside the picture, or below it where there is no room

  constructor(model, host, spec, tf) {
    this.tf = tf;
    this.model = model;
    this.spec = spec;
    this.number = document[seen] = (document[seen] ?? 0) + 1;
    this.changed = new Set();
    this.cleanup = [];
    this.fields = [];
    this.measures = [];
    this.knobs = new Map(); // the controls by the names of their knobs
    this.asked = [];
    this.squeeze = 1; // of the heights that a module asks for
    this.first = structuredClone(this.all());
    // the knobs as declared, with the ends and choices that depend on what is given
    const ends = spec.ends?.(this.values()) ?? {};
    this.about = Object.fromEntries(
      Object.entries(tf.declared.knobs).map(([key, x]) => [key, { ...x, ...ends[key] }]),
    );
    const moves = ({ low, high }) => [low, high].some((end) => typeof end === "object");
    this.hanging = Object.keys(this.about).filter((key) => moves(this.about[key]));
    const body = host.querySelector(":scope > .tfviz-explorer-body");
    this.host = host;
    this.formerly = host.dataset.formerly ? [host.dataset.formerly] : []; // its name before
    const kind = tf.declared.scene ? "tfx tfx-scene" : "tfx";
    this.root = el("div", { className: `${kind} tfx-${tf.name}` });
    this.root.dataset.lmSuppressShortcuts = "true";
    this.root.dataset.jpSuppressContextMenu = "true";
    this.top = el("p", { className: "tfx-prompt", hidden: true });
    this.questions = el("div", { className: "tfx-questions" });
    this.picture = el("div", { className: "tfx-picture" });
    this.controls = el("div", { className: "tfx-controls" });
    this.status = el("p", { className: "tfx-status", role: "status" });
    this.readouts = el("div", { className: "tfx-readouts" });
    this.footer = el("div", { className: "tfx-footer" });
    // beside the picture: what is moved, then what it comes to
    const beside = [this.controls, this.status, this.readouts, this.footer];
    this.side = el("div", { className: "tfx-side" }, ...beside);
    const parts = [this.top, this.questions, this.picture, this.side];
    this.main = el("div", { className: "tfx-main" }, ...parts);
    this.root.append(this.main);
    (body || host).replaceChildren(this.root);
    this.theme();
    if (model.get("prompt")) this.prompt(model.get("prompt"));
  }

  // --- state
  get(key) {
    return this.shown && key in this.shown ? this.shown[key] : this.model.get(key);
  }
  all() {
    return Object.fromEntries(this.spec.keys.map((key) => [key, this.model.get(key)]));
  }
  // the knobs, and what is given
  values() {
    const given = this.tf.declared.given.map((key) => [key, this.model.get(key)]);
    return Object.assign(Object.fromEntries(given), this.all());
  }
  moved() {
    // what differs from the first state
    const hasMoved = ([key, value]) => JSON.stringify(value) !== JSON.stringify(this.first[key]);
    return Object.fromEntries(Object.entries(this.all()).filter(hasMoved));
  }
  judged(met) {
    const detail = { met, state: this.moved() };
    this.host.dispatchEvent(new CustomEvent("tfviz:goal", { bubbles: true, detail }));
  }
  // The least and the greatest value of a knob in a state; an end may be another knob, and so much more.
  ends(key, state = this.all()) {
    const at = (end) => (typeof end === "object" ? state[end.knob] + end.plus : end);
    const { low, high } = this.about[key];
    return { low: at(low), high: at(high) };
  }
  // Sets knobs by name. A reader who moves what an open question guards has looked: all is shown.
  set(key, value) {
    const before = this.all();
    this.bring(typeof key === "object" ? key : { [key]: value });
    for (const question of this.asked) question.looked(before);
  }
  // Brings about a state that the kit names, without looking; what hangs on a knob is kept between its ends.
  bring(given) {
    this.way = undefined;
    const changes = { ...given };
    const state = { ...this.all(), ...changes };
    for (const name of this.hanging) {
      const { low = Number.NEGATIVE_INFINITY, high = Number.POSITIVE_INFINITY } = this.ends(
        name,
        state,
      );
      const inside = clamp(state[name], low, high);
      if (inside !== state[name]) state[name] = changes[name] = inside;
    }
    // as declared: Python checks one after the other, and an end comes before what hangs on it
    const names = [...new Set([...this.spec.keys, ...Object.keys(changes)])];
    for (const name of names) if (name in changes) this.model.set(name, changes[name]);
    this.model.save_changes();
  }
  // The same, and the picture shows the way there; with reduced motion it is there at once.
  glide(changes) {
    const from = this.all();
    this.bring(changes);
    const to = this.all();
    const keys = this.spec.keys.filter((key) => String(from[key]) !== String(to[key]));
    if (keys.length && !this.still) this.way = { begun: performance.now(), from, to, keys };
  }
  // the state on the way, nothing where it is at its end
  between() {
    const part = this.way ? (performance.now() - this.way.begun) / GLIDE : 1;
    if (part >= 1) {
      this.way = undefined;
      return undefined;
    }
    const { from, to, keys } = this.way;
    const share = part * part * (3 - 2 * part);
    const mixed = (a, b) => a + (b - a) * share;
    const state = { ...to };
    for (const key of keys) {
      const { kind, of } = this.about[key];
      const lists = Array.isArray(from[key]) && from[key].length === to[key].length;
      if (of && typeof to[key] === "number") {
        const places = [from, to].map((one) => nearestIn(of, one[key]));
        state[key] = of[Math.round(mixed(places[0], places[1]))];
      } else if (kind === "whole" || kind === "number")
        state[key] = this.snap(key, mixed(from[key], to[key]));
      else if (lists && to[key].every(Number.isFinite))
        state[key] = to[key].map((x, n) => mixed(from[key][n], x));
    }
    for (const key of this.hanging) {
      const { low, high } = this.ends(key, state);
      state[key] = clamp(state[key], low ?? -Infinity, high ?? Infinity);
    }
    return state;
  }
  // what numbers() gives for the present state, worked out once
  numbers() {
    if (this.stale !== false) {
      this.counted = this.spec.numbers(this.values());
      this.stale = false;
    }
    return this.counted;
  }
  redraw(key) {
    if (key) this.changed.add(key);
    this.frame ??= requestAnimationFrame(() => this.paint());
  }
  // A second key within a frame counts from where the first one led, not from the last picture.
  settle() {
    if (this.frame !== undefined) this.paint();
  }
  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.draw(this.between());
    if (!this.full && !this.narrow && this.root.offsetHeight > SCREEN) this.fit();
    if (this.way) for (const key of this.way.keys) this.redraw(key);
    if (this.lit) this.relight(); // what was drawn anew lights up again
  }
  // Draws the present state, or another one.
  draw(state) {
    const changed = this.changed;
    this.changed = new Set();
    this.shown = state;
    if (state) {
      const values = { ...this.values(), ...state };
      this.view(values, this.spec.numbers(values), changed);
    } else this.view(this.values(), this.numbers(), changed);
    for (const update of this.fields) update();
    this.shown = undefined;
    this.top.hidden = !this.words || this.asked.some(({ node }) => !node.hidden);
    if (changed.has("size") && !this.rehearsing) {
      clearTimeout(this.fitting);
      this.fitting = setTimeout(() => this.fit(), RESIZED);
    }
  }
  get narrow() {
    return this.main.clientWidth <= PHONE;
  }
  // No higher than a screen. Notes are moved for it, and what is moved loses the focus: it gets it back.
  fit() {
    clearTimeout(this.fitting);
    this.fitting = undefined;
    const held = document.activeElement;
    this.place();
    if (held !== document.activeElement && this.root.contains(held))
      /** @type {HTMLElement} */ (held).focus({ preventScroll: true });
  }
  // Notes for which there is no room beside the picture stand below it, and pictures become smaller
  // where all is too high, and larger where what stands beside them is higher.
  place() {
    const { picture, side, controls, footer, root } = this;
    this.notes ??= [...side.children].filter((part) => part !== controls && part !== footer);
    const lowest = (column) => {
      const last = [...column.children].filter((one) => one.offsetHeight && one !== footer).at(-1);
      return last ? last.offsetTop + last.offsetHeight - column.offsetTop : 0;
    };
    const drawn = (squeeze) => {
      this.squeeze = squeeze;
      this.keepRoom();
    };
    footer.before(...this.notes);
    for (const question of this.asked) question.help();
    drawn(1);
    if (this.narrow) return;
    const beside = side.offsetTop < picture.offsetTop + picture.offsetHeight;
    const room = (grown = 1) => grown * lowest(picture) - lowest(side) - footer.offsetHeight;
    let below = null;
    // a state that a link holds has perhaps no question above it: it needs no more room than is kept
    const { minHeight } = getComputedStyle(root.closest(".tfviz-explorer-body") ?? root);
    const tallest = Math.min(TALLEST, Number.parseFloat(minHeight) || TALLEST);
    const fine = () => room() >= 0 || (room(GROWN) >= 0 && root.offsetHeight <= tallest);
    for (const note of [...this.notes].reverse()) {
      if (!beside || fine()) break;
      if (note.offsetHeight) below = picture.insertBefore(note, below);
    }
    if (below) drawn(1);
    for (let n = 0, before = 0; n < 4; n++) {
      const high = lowest(picture);
      const over = Math.min(
        Math.max(0, root.offsetHeight - TALLEST),
        beside ? room() : Number.POSITIVE_INFINITY,
      );
      const share = clamp(this.squeeze * (1 - over / high), SHRUNK, GROWN);
      if (Math.abs(over) < 2 || share === this.squeeze || high === before) break;
      before = high;
      drawn(share);
    }
    this.full = root.offsetHeight > SCREEN;
  }
  // Nothing moves when an answer is shown: each part keeps the room that it needs before and after.
  keepRoom() {
    const open = this.asked.filter((question) => question.open);
    const parts = () => [...this.root.querySelectorAll(KEPT)];
    for (const part of parts()) part.style.minHeight = "";
    const rooms = new Map();
    // draws a state, the one at hand without it, and measures what it needs
    const tried = (state) => {
      this.changed = new Set([...this.spec.keys, ...this.tf.declared.given, "size"]);
      this.draw(state);
      if (!open.length) return;
      for (const part of parts())
        rooms.set(part, Math.max(rooms.get(part) ?? 0, part.offsetHeight));
    };
    this.rehearsing = true;
    for (const question of open) question.open = false;
    if (open.length) tried(open[0].target());
    for (const question of open) question.open = true;
    tried();
    this.rehearsing = false;
    for (const [part, room] of rooms) if (room) part.style.minHeight = `${room}px`;
  }
  // whether the parts of this name are held back by a question
  hides(part) {
    return part !== undefined && this.asked.some((question) => question.hides(part));
  }
  // whether the reader uses fingers
  touched() {
    return matchMedia("(pointer: coarse), (max-width: 480px)").matches;
  }
  nameOf(key) {
    return this.about[key]?.label || key;
  }
  get still() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }
  id(name) {
    return `tfx-${this.tf.name}-${this.number}-${name}`;
  }

  theme() {
    this.root.toggleAttribute("data-dark", isDark());
    const style = getComputedStyle(this.root);
    this.colours = { dark: isDark() };
    for (const role of ROLES) this.colours[role] = style.getPropertyValue(`--tfx-${role}`).trim();
    this.font = style.fontFamily;
    // JupyterLab renders first, then puts the host into its page and the style sheet beside it
    clearTimeout(this.unstyled);
    if (!this.colours.page) {
      this.unstyled = setTimeout(() => {
        this.theme();
        this.redraw("theme");
      }, 60);
    }
  }

  // --- words
  // what to try: above the picture, or after the answer where there is a question
  prompt(text) {
    this.words = text;
    tell(this.top, text);
  }
  next() {
    return this.words ?? "";
  }
  // Shown and spoken: at once, then at most four times a second while a slider is on its way.
  say(text) {
    if (text === this.saying && !this.rehearsing) return;
    this.saying = text;
    if (this.rehearsing) {
      tell(this.status, text);
      return;
    }
    const late = 250 - (performance.now() - (this.spoken ?? -1e9));
    if (late <= 0) this.speak();
    else this.speech ??= setTimeout(() => this.speak(), late);
  }
  speak() {
    clearTimeout(this.speech);
    this.speech = undefined;
    this.spoken = performance.now();
    tell(this.status, this.saying);
  }

  plane(options) {
    return plane(this, options ?? {});
  }
  matrix(options) {
    return matrix(this, options ?? {});
  }
  table(options) {
    return table(this, options);
  }
  motion(key, options) {
    return motion(this, key, options);
  }
  ask(options) {
    return ask(this, options);
  }
}
for (const part of [controls, terms]) {
  Object.defineProperties(App.prototype, Object.getOwnPropertyDescriptors(part));
}

const PHONE = 640; // pixels inside an explorer, as in kit.css: one column
const SCREEN = 720; // pixels that a laptop shows of an explorer
const TALLEST = 700; // of these, what fit() fills: another state may need a line more
const [SHRUNK, GROWN] = [0.72, 1.4]; // of the height that a module asks for
const RESIZED = 150; // milliseconds of rest, until what has another width fits again
const GLIDE = 600; // milliseconds from the state at hand to the one that an answer names
const KEPT =
  ".tfx-controls, .tfx-status, .tfx-readout, .tfx-table, .tfx-lines, .tfx-chips, .tfx-formula, .tfx-title, .tfx-frame";
const EMBEDDED = 72; // pixels around an explorer on a page of its own, with the line below it
const ADDRESS_AFTER = 300; // milliseconds of rest, until the address follows the state

// The states in the address, each under the name of its explorer: #name=…&name-2=…
const linked = () =>
  location.hash
    .slice(1)
    .split("&")
    .filter((part) => /^[a-z_]+(-\d+)?=./.test(part));

function explorer(tf, spec) {
  const { knobs, given, derived, kind } = tf.declared;
  spec.keys = Object.keys(knobs);
  const written = (app) => {
    const names = [...given.filter((name) => !derived.includes(name)), ...spec.keys];
    return `${kind}(${names.map((name) => `${name}=${python(app.get(name))}`).join(", ")})`;
  };

  // What is given, or the prompt, changes only from outside: the explorer is set up anew.
  function render({ model, el: host }) {
    let undo = mount({ model, el: host });
    let waiting;
    const again = () => {
      clearTimeout(waiting); // several come one after the other
      waiting = setTimeout(() => {
        undo();
        undo = mount({ model, el: host });
      });
    };
    const events = [...given, "prompt"].map((name) => `change:${name}`);
    for (const event of events) model.on(event, again);
    return () => {
      clearTimeout(waiting);
      for (const event of events) model.off(event, again);
      undo();
    };
  }

  function mount({ model, el: host }) {
    const app = new App(model, host, spec, tf);
    const first = app.first;
    // which of its kind on this page: two explorers do not share an address
    const kin = [...document.querySelectorAll(`[data-explorer="${tf.name}"]`)];
    const place = kin.indexOf(host);
    const called = (name) => (place > 0 ? `${name}-${place + 1}` : name);
    const address = called(tf.name);
    // a link may be older than the explorer's name
    const addresses = [address, ...app.formerly.map(called)];
    const mine = (part) => addresses.some((name) => part.startsWith(`${name}=`));
    const show = (state) => {
      const known = (key) => key in state && typeof state[key] === typeof first[key];
      const some = {};
      for (const key of spec.keys.filter(known)) {
        const about = { ...app.about[key], ...app.ends(key, { ...first, ...some }) };
        if (fits(about, state[key])) some[key] = state[key];
      }
      const fine = spec.fit?.(some, app) ?? some;
      app.set({ ...first, ...fine });
      const refused = Object.keys(state).filter((key) => !(key in fine));
      if (refused.length) {
        const what = refused.map((key) => `${key} = ${python(state[key])}`).join(", ");
        throw new Error(`${what} cannot be; the first value stands`);
      }
    };
    let notice = "";
    let known; // what the address says of it, as far as it has read or written that
    const restore = () => {
      const part = linked().find(mine);
      const text = part?.split("=")[1];
      if (!text) return;
      known = part;
      try {
        show(unpack(text));
      } catch (error) {
        notice = `The link could not be read: ${error.message}`;
        console.warn(notice);
        if (app.view) tell(notice);
      }
    };
    if (place >= 0) restore();

    app.view = spec.setup(app);
    const said = el("span", { className: "tfx-said", role: "status" });
    let telling;
    const tell = (text) => {
      said.textContent = text;
      clearTimeout(telling);
      telling = setTimeout(() => {
        said.textContent = "";
      }, 2500);
    };
    const copier = (text, what) => async () => {
      const value = text();
      tell((await copy(value)) ? `${what} copied` : `copying is blocked here: ${value}`);
    };
    const hash = () => `#${address}=${pack(app.moved())}`;
    const code = () => (spec.python ?? written)(app);
    const framed = () => {
      const frame = el("iframe", { title: host.ariaLabel, width: "100%" });
      frame.src = `${host.dataset.embed}#${tf.name}=${pack(app.moved())}`;
      frame.height = String(Math.ceil(app.root.offsetHeight) + EMBEDDED);
      frame.style.border = "0";
      return frame.outerHTML;
    };
    if (!tf.declared.scene) {
      app.button("reset", () => {
        app.bring(structuredClone(first));
        tell("first state");
      });
      if (place >= 0)
        app.button(
          "copy link",
          copier(() => location.href.split("#")[0] + hash(), "link"),
        );
      app.button("copy Python", copier(code, "Python"));
      if (host.dataset.embed) app.button("embed", copier(framed, "HTML"));
      for (const [what, text] of Object.entries(spec.copies ?? {}))
        app.button(
          `copy ${what}`,
          copier(() => text(app), what),
        );
    }
    app.footer.append(said);
    if (notice) tell(notice);

    // the address follows the state, once the reader has moved something
    let touched = false;
    let later;
    const follow = () => {
      clearTimeout(later);
      if (place < 0 || !touched) return;
      later = setTimeout(() => {
        const still = !Object.keys(app.moved()).length;
        const there = linked().find(mine);
        if (there ? there !== known : still) return; // a link that was just opened is not lost
        known = still ? undefined : hash().slice(1);
        // the one moved last stands first: a page that opens there scrolls to it
        const parts = linked().filter((part) => !mine(part));
        if (!still) parts.unshift(hash().slice(1));
        const clean = location.pathname + location.search;
        try {
          history.replaceState(history.state, "", parts.length ? `#${parts.join("&")}` : clean);
        } catch {
          // a page that may not: then only "copy link" knows
        }
      }, ADDRESS_AFTER);
    };
    for (const type of ["input", "click", "keydown", "pointerdown"]) {
      app.root.addEventListener(
        type,
        () => {
          touched = true;
        },
        true,
      );
    }

    const names = spec.keys.concat(given, "prompt");
    const watchers = spec.keys.map((name) => {
      const call = () => {
        app.stale = true;
        app.redraw(name);
        follow();
      };
      return [`change:${name}`, call];
    });
    for (const [event, call] of watchers) model.on(event, call);
    const unwatch = onTheme(() => {
      app.theme();
      app.redraw("theme");
    });
    if (place >= 0) addEventListener("hashchange", restore);
    const asked = ({ detail }) => {
      try {
        show(detail);
      } catch (error) {
        tell(`The state cannot be shown: ${error.message}`);
      }
    };
    host.addEventListener("tfviz:show", asked);
    for (const name of names) app.changed.add(name);
    for (const measure of app.measures) measure();
    for (const question of app.asked) question.start();
    app.linkTerms();
    app.paint();
    app.fit();
    // words are measured: with faces that come later, once more
    if (document.fonts.status === "loading") document.fonts.ready.then(() => app.redraw("size"));
    // for the tests, and for the curious at the console
    host.tfviz = {
      numbers: () => plain(app.numbers()),
      python: code,
      hash,
      paint: () => app.paint(),
      resting: () => ![app.frame, app.way, app.speech, app.fitting].some(Boolean), // drawn, arrived and said
      questions: () => app.asked.map((question) => question.facts()),
    };
    host.dataset.ready = "true";
    return () => {
      for (const [event, call] of watchers) model.off(event, call);
      unwatch();
      removeEventListener("hashchange", restore);
      host.removeEventListener("tfviz:show", asked);
      cancelAnimationFrame(app.frame);
      for (const timer of [app.speech, app.fitting, app.unstyled, later, telling])
        clearTimeout(timer);
      for (const call of app.cleanup) call();
    };
  }
  return { render };
}

// Typed arrays as lists.
const plain = (x) => {
  if (ArrayBuffer.isView(x)) return Array.from(/** @type {Float64Array} */ (x));
  if (Array.isArray(x)) return x.map(plain);
  if (x && typeof x === "object") {
    return Object.fromEntries(Object.entries(x).map(([key, value]) => [key, plain(value)]));
  }
  return x;
};

// What a module is written with: the object `tf`, of its own for each explorer.
const kit = (about) => {
  const tf = {
    ...about,
    clamp,
    range,
    keep,
    sum,
    dot,
    norm,
    rms,
    plus,
    mean,
    best,
    entropy,
    arc,
    box,
    hull,
    softmax,
    uniforms,
    product,
    svd,
    rmsNorm,
    layerNorm,
    blockStack,
    bytePairs,
    sig,
    count,
    fixed,
    short,
    percent,
    letter,
    token,
    bytes,
    pack,
    python,
    el,
    mix,
    faint,
    word,
    keyed,
  };
  tf.explorer = (spec) => explorer(tf, spec);
  return tf;
};
kit.Model = Model;
