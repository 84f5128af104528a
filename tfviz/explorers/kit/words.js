// Numbers as words, elements, and terms: what is named alike lights up together.

const sig = (x, digits = 3) =>
  Number.isFinite(x) ? String(Number(x.toPrecision(digits))) : String(x);
const count = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
// With so many decimals, a real minus, and never −0.
const fixed = (x, digits = 2) =>
  (Number(x.toFixed(digits)) === 0 ? 0 : x).toFixed(digits).replace("-", "−");
// Short for sizes of any order: 0.012, 345, 1.2e7.
const short = (x) =>
  x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5)
    ? x.toExponential(1).replace("e+", "e").replace(".0e", "e").replaceAll("-", "−")
    : sig(x).replace("-", "−");

const percent = (x, digits = 0) => `${fixed(100 * x, digits)} %`;
// A letter of a text, seen also where it is a space.
const letter = (c) => ({ " ": "␣", "\n": "⏎" })[c] ?? c;

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  while (n >= 1024 && k < units.length - 1) {
    n /= 1024;
    k++;
  }
  return `${n >= 999.5 ? Math.round(n) : sig(n)} ${units[k]}`;
}

// A value as Python writes it.
function python(x) {
  if (x === null || x === undefined) return "None";
  if (typeof x === "boolean") return x ? "True" : "False";
  if (Array.isArray(x)) return `[${x.map(python).join(", ")}]`;
  if (typeof x !== "object") return JSON.stringify(x);
  const pairs = Object.entries(x).map(([key, value]) => `${python(key)}: ${python(value)}`);
  return `{${pairs.join(", ")}}`;
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

function put(node, name, value) {
  if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, typeof value === "number" ? Math.round(value * 100) / 100 : value);
}

const bare = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);

function svg(tag, props = {}, ...children) {
  const node = bare(tag);
  for (const [name, value] of Object.entries(props)) put(node, name, value);
  node.append(...children);
  return node;
}

// What a step draws anew is only described, and `redrawn` makes the children of a parent look like it:
// what is the same is not touched, so that a browser lays out and paints only the rest.
const mark = (tag, props, ...children) => ({ tag, props, children });
const described = new WeakMap();
function redrawn(parent, marks) {
  marks.forEach((now, n) => {
    let node = parent.childNodes[n];
    if (node?.nodeName !== now.tag) {
      const fresh = bare(now.tag);
      if (node) node.replaceWith(fresh);
      else parent.append(fresh);
      node = fresh;
    }
    const was = described.get(node) ?? { props: {}, children: [] };
    for (const name in was.props) if (!(name in now.props)) node.removeAttribute(name);
    for (const name in now.props)
      if (now.props[name] !== was.props[name]) put(node, name, now.props[name]);
    described.set(node, now);
    const [text] = now.children;
    if (typeof text === "object") redrawn(node, now.children);
    else if (text !== was.children[0]) node.textContent = text;
  });
  while (parent.childNodes.length > marks.length) parent.lastChild.remove();
}

// "query", "muted", … as the style sheet's variable; any other colour as it is.
const ROLES = ["query", "key", "value", "attention", "ink", "page", "grid", "muted"];
const paint = (colour = "ink") => (ROLES.includes(colour) ? `var(--tfx-${colour})` : colour);

// --- terms. `{e:tanh(s W)}` in a text is the term e, printed as tanh(s W); the same name on a mark, a
// row or a cell, and in the chapter around (data-term), lights up with it, on hover and on focus.
function termed(text) {
  return text.split(/(\{\w+:[^{}]*\})/).map((part) => {
    const [, name, shown] = /^\{(\w+):(.*)\}$/.exec(part) || [];
    if (!name) return part;
    return el("span", { className: "tfx-term", tabIndex: 0, "data-term": name }, shown);
  });
}

// d_ff in a formula: ff stands lower.
function lower(node) {
  for (const child of [...node.childNodes])
    if (child.nodeType === Node.ELEMENT_NODE) lower(child);
    else
      child.replaceWith(
        ...child.data.split(/_(<?\w+)/).map((part, n) => (n % 2 ? el("sub", {}, part) : part)),
      );
}

const terms = {
  // A formula, or a line of code, with its terms.
  formula(text, { into = this.picture, code = false } = {}) {
    const node = el(code ? "code" : "p", { className: "tfx-formula" }, ...termed(text));
    if (!code) lower(node);
    into.append(node);
    return node;
  },
  // Sentences with terms, one below the other: lines.show(["{query:it} asks, …", …]).
  lines({ into = this.picture } = {}) {
    const node = el("ul", { className: "tfx-lines" });
    into.append(node);
    let known = "";
    return {
      node,
      show(texts) {
        if (texts.join("\n") === known) return;
        known = texts.join("\n");
        node.replaceChildren(...texts.map((text) => el("li", {}, ...termed(text))));
        for (const term of node.querySelectorAll(".tfx-term")) term.removeAttribute("tabindex");
      },
    };
  },
  // A place for figures side by side, one below the other on a phone; with `keep` in so many columns
  // there too. {into: app.split("2fr 1fr")}
  split(columns, { into = this.picture, keep = 0 } = {}) {
    const node = el("div", { className: "tfx-split" });
    node.style.setProperty("--columns", columns);
    if (keep) node.style.setProperty("--narrow", `repeat(${keep}, minmax(0, 1fr))`);
    node.toggleAttribute("data-keep", Boolean(keep));
    into.append(node);
    return node;
  },
  // Watches the section of the page that the explorer stands in.
  linkTerms() {
    const around = this.host.closest("section") || this.root;
    const light = (term) => {
      if (term === this.lit) return;
      this.lit = term;
      const names = term?.split(" ") ?? [];
      for (const node of around.querySelectorAll("[data-term]")) {
        const mine = node.dataset.term.split(" ").some((name) => names.includes(name));
        node.toggleAttribute("data-lit", mine);
      }
      this.root.toggleAttribute("data-some-lit", names.length > 0);
    };
    this.relight = () => {
      const term = this.lit;
      this.lit = "";
      light(term);
    };
    const of = ({ target }) => target.closest?.("[data-term]")?.dataset.term;
    const on = (event) => light(of(event));
    const off = () => light(undefined);
    for (const type of ["pointerover", "focusin"]) around.addEventListener(type, on);
    for (const type of ["pointerleave", "focusout"]) around.addEventListener(type, off);
    this.cleanup.push(() => {
      for (const type of ["pointerover", "focusin"]) around.removeEventListener(type, on);
      for (const type of ["pointerleave", "focusout"]) around.removeEventListener(type, off);
    });
  },
  // Groups of chips: chips.show([[{text, kind: "made" | "new", term}, …], …])
  chips(/** @type {any} */ { into = this.picture, label } = {}) {
    const node = el("p", { className: "tfx-chips", "aria-label": label });
    into.append(node);
    return {
      node,
      show: (groups) =>
        node.replaceChildren(
          ...groups.map((group) =>
            el(
              "span",
              { className: "tfx-group" },
              ...group.map(({ text, kind, term }) =>
                el("span", { className: "tfx-chip", "data-kind": kind, "data-term": term }, text),
              ),
            ),
          ),
        ),
    };
  },
};
