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

// A text that somebody gave or typed, such as a token, as a label: by the rule of Python's
// `tfviz._labels`, and never read as mathematics or as a term.
const HELD = "\u2060"; // stands around it, is not seen, and no label has one inside
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Zs}\p{Noncharacter_Code_Point}␣]/u;
const READ_AS_ESCAPE = "[ntr](?![a-z])|x[\\da-f]{2}|u[\\da-f]{4}|U[\\da-f]{8}";
const UNSEEN = new RegExp(`(\\\\*)([^!-~])|(\\\\+)(?=${READ_AS_ESCAPE})`, "gsu");
const SHORT = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
function code(c) {
  const n = c.codePointAt(0);
  const [sign, many] = n < 256 ? ["x", 2] : n < 65536 ? ["u", 4] : ["U", 8];
  return `\\${sign}${n.toString(16).padStart(many, "0")}`;
}
function shown(text) {
  return text.replace(UNSEEN, (all, slashes, c, doubled, at) => {
    if (doubled) return doubled + doubled;
    const before = [...text.slice(0, at + slashes.length)].at(-1) ?? "";
    const after = [...text.slice(at + all.length)][0] ?? "";
    const apart = (x) => x === "" || x === " ";
    if (c === " ") return slashes + (apart(before) || apart(after) ? "␣" : " ");
    const joins = [before, after].every((x) => x > "\x7f" && !HIDDEN.test(x));
    if (!HIDDEN.test(c) || ("\u200c\u200d".includes(c) && joins)) return all;
    return slashes + slashes + ((!/^[a-z]/.test(after) && SHORT[c]) || code(c));
  });
}
const token = (text) => (text === "" ? "" : `${HELD}${shown(String(text))}${HELD}`);

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
  if (typeof x === "number" && !Number.isFinite(x)) return `float("${x}")`;
  if (typeof x === "string")
    return JSON.stringify(x).replace(/./gsu, (c) =>
      c !== " " && c !== "␣" && HIDDEN.test(c) ? code(c) : c,
    );
  if (typeof x !== "object") return JSON.stringify(x);
  const pairs = Object.entries(x).map(([key, value]) => `${python(key)}: ${python(value)}`);
  return `{${pairs.join(", ")}}`;
}

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list" && !name.includes("-")) node[name] = said(name, value);
    else node.setAttribute(name, value === true ? "" : said(name, value));
  }
  node.append(...children.flatMap(tag === "option" ? (text) => [plainly(text)] : worded));
  return node;
}
// Another text in a node that holds nothing else; whether it is another.
const texts = new WeakMap();
function tell(node, text) {
  if (texts.get(node) === text) return false;
  texts.set(node, text);
  node.replaceChildren(...worded(text));
  return true;
}

function put(node, name, value) {
  if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else if (typeof value === "number") node.setAttribute(name, Math.round(value * 100) / 100);
  else node.setAttribute(name, said(name, value));
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
    else if (text !== was.children[0]) written(node, text);
  });
  while (parent.childNodes.length > marks.length) parent.lastChild.remove();
}

// "query", "muted", … as the style sheet's variable; any other colour as it is.
const ROLES = ["query", "key", "value", "attention", "ink", "page", "grid", "muted"];
const paint = (colour = "ink") => (ROLES.includes(colour) ? `var(--tfx-${colour})` : colour);

// --- mathematics, set as in the text of a page: a letter is slanted, words and signs are upright, and
// 𝐀 is bold. What follows _ or ^, or is written so in Unicode (dₕ, hⁿ), stands lower or higher.
const LOW = "[\\u2080-\\u209c\\u1d62-\\u1d6a\\u2c7c]";
const HIGH = "[\\u00b2\\u00b3\\u00b9\\u2070-\\u207f\\u02b0-\\u02b8\\u1d2c-\\u1d61\\u1d9b-\\u1dbf]";
const MARKS = { "\u0302": "ˆ", "\u0303": "˜", "\u0304": "ˉ" }; // drawn above the letter before
const SIGNS = { "·": "⋅", "|": "∣", "‖": "∥" }; // as our face has them
const PIECE = new RegExp(
  `(?<low>_<?[A-Za-zα-ω\\d]+|${LOW}+)|(?<high>\\^[−A-Za-zα-ω\\d]+(?:\\.\\d+)?|${HIGH}+)` +
    "|(?<bold>[\\u{1d400}-\\u{1d433}]+)|(?<word>[A-Za-z]{2,}|(?<=^| )a(?= [a-z]{2}))" +
    "|(?<letter>[A-Za-zα-ω])|.",
  "gsu",
);
// A text as pieces: {text, face: "i", "b" or "", level: "sub", "sup" or "", mark}
function pieces(text, level = "") {
  const out = [];
  for (const found of text.normalize("NFD").replaceAll("=\u0338", "\ue020=").matchAll(PIECE)) {
    const { low, high, bold, letter } = found.groups;
    const plain = SIGNS[found[0]] ?? found[0].normalize("NFKC");
    const face = bold ? "b" : letter ? "i" : "";
    if (high && plain === "T") out.push({ text: "⊤", face: "", level: "sup" });
    else if (low || high) out.push(...pieces(plain.replace(/^[_^]/, ""), low ? "sub" : "sup"));
    else if (plain in MARKS) out.at(-1).mark = MARKS[plain];
    else if (out.at(-1)?.face === face && out.at(-1).level === level && !out.at(-1).mark)
      out.at(-1).text += plain;
    else out.push({ text: plain, face, level });
  }
  return out;
}
function typeset(text) {
  const nodes = [];
  let before = "";
  for (const { text: shown, face, level, mark: above } of pieces(text)) {
    const high = above && shown !== shown.toLowerCase();
    const marked = { "data-mark": above, "data-high": high };
    const inner = face || above ? el(face || "span", marked, shown) : shown;
    const node = level ? el(level, {}, inner) : inner;
    const both = level && before && level !== before; // one above the other
    nodes.push(both ? el("span", { className: "tfx-both" }, nodes.pop(), node) : node);
    before = level;
  }
  return nodes;
}

// A text as nodes. What stands between dollars, and a letter with another one lower or higher, is
// mathematics.
const IN_TEXT = new RegExp(`\\$([^$]+)\\$|((?:\\p{L}\\p{M}*|\\d+|[[(])(?:${LOW}|${HIGH})+)`, "gu");
function parted(text) {
  /** @type {any[][]} */
  const parts = String(text ?? "") // no text is an empty one
    .split(HELD)
    .flatMap((piece, n) => {
      if (n % 2) return [[piece]];
      const found = [...piece.matchAll(IN_TEXT)];
      const ends = [0, ...found.map((one) => one.index + one[0].length)];
      const between = [...found.map((one) => one.index), piece.length];
      return between.flatMap((to, k) => [
        [piece.slice(ends[k], to)],
        ...(k < found.length ? [[found[k][1] ?? found[k][2], true]] : []),
      ]);
    });
  return parts.filter(([part]) => part);
}
const worded = (text) =>
  text instanceof Node
    ? [text]
    : parted(text).map(([part, set]) =>
        set ? el("span", { className: "tfx-maths" }, ...typeset(part)) : part,
      );
// The same where no node may stand.
const plainly = (text) =>
  parted(text)
    .map(([part, set]) => (set ? part.normalize("NFKC") : part))
    .join("");
const said = (name, value) =>
  typeof value === "string" && /^(aria|title$|label$)/.test(name) ? plainly(value) : value;
// The same in a picture, whose texts have one line of 12 pixels.
const DOWN = { sub: 3, sup: -4 };
function written(node, text) {
  const parts = parted(text);
  if (!parts.some(([, set]) => set))
    return void (node.textContent = parts.map(([part]) => part).join(""));
  let now = 0;
  const drawn = parts.flatMap(([part, set]) =>
    (set ? pieces(part) : [{ text: part, face: "", level: "" }]).map((piece) => {
      const down = DOWN[piece.level] ?? 0;
      const kind = [set && "tfx-maths", set && piece.face, piece.level].filter(Boolean).join(" ");
      const span = svg("tspan", { class: kind, dy: down - now || null }, piece.text);
      now = down;
      return span;
    }),
  );
  node.replaceChildren(...drawn);
}

// --- terms. `{e:tanh(s W)}` in a text is the term e, printed as tanh(s W); the same name on a mark, a
// row or a cell, and in the chapter around (data-term), lights up with it, on hover and on focus.
const TERM = new RegExp(
  `(\\{\\w+:(?:${HELD}[^${HELD}]*${HELD}|[^{}${HELD}])*\\})|(${HELD}[^${HELD}]*${HELD})`,
);
const termed = (text, set) =>
  text
    .split(TERM)
    .filter(Boolean)
    .flatMap((part) => {
      const [, name, shown] = /^\{(\w+):(.*)\}$/s.exec(part) || [];
      if (!name) return set(part);
      return [el("span", { className: "tfx-term", tabIndex: 0, "data-term": name }, ...set(shown))];
    });

const terms = {
  // A formula with its terms.
  formula(text, /** @type {any} */ { into } = {}) {
    return this.note(el("p", { className: "tfx-formula" }, ...termed(text, typeset)), into);
  },
  // Words that stand beside the picture where there is room for them, or in another place.
  note(node, into) {
    if (into) into.append(node);
    else this.status.before(node);
    return node;
  },
  // Sentences with terms, one below the other: lines.show(["{query:it} asks, …", …]).
  lines(/** @type {any} */ { into } = {}) {
    const node = this.note(el("ul", { className: "tfx-lines" }), into);
    let known = "";
    return {
      node,
      show(texts) {
        if (texts.join("\n") === known) return;
        known = texts.join("\n");
        node.replaceChildren(...texts.map((text) => el("li", {}, ...termed(text, worded))));
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
