// Which letters a formula has: each gets a class that says which letter it is, for the page's hints.
//
// A letter is written as in TeX without its markup: θ_m, b:W^q (bold), c:N (calligraphic), B:R
// (blackboard), ~b:q_i (with an accent). Digits, operators and words are no letters.

const FONTS = { mathnormal: "", mathbf: "b:", boldsymbol: "b:", mathcal: "c:", mathbb: "B:" };
const UPRIGHT = /^[\u0391-\u03a9ℓ]$/u; // capitals of Greek, and ℓ, have no class of a font
const ACCENTS = { "~": "~", "^": "^", ˉ: "¯", ˊ: "´", "˙": "˙" };

/** The mark of the font if the node is a letter or some letters in a row, else null. */
function fontOf(node) {
  if (typeof node.text !== "string" || !/^\p{L}+$/u.test(node.text)) return null;
  const font = node.classes.find((name) => name in FONTS);
  if (font !== undefined) return FONTS[font];
  const word = node.classes.some((name) => /^(?:text|math|amsrm)/.test(name));
  return UPRIGHT.test(node.text) && !word ? "" : null;
}

/** One node for each letter: KaTeX joins neighbours of one font. */
function parted(node) {
  return [...node.text].map((text, n, all) => {
    const letter = Object.assign(Object.create(Object.getPrototypeOf(node)), node, { text });
    letter.classes = [...node.classes];
    if (n < all.length - 1) letter.italic = 0;
    return letter;
  });
}

/** What is written in a node, without spaces and struts. */
function written(node) {
  if (typeof node.text === "string") return node.text.replace(/[\s\u200b]/g, "");
  return (node.children ?? []).map(written).join("");
}

/** The rows of a column of boxes that hold something. */
function rowsOf(column) {
  const list = column.children[0].children[0]; // vlist-t → vlist-r → vlist
  return list.children.filter((row) => written(row) !== "");
}

/** "_m^q", as it stands at a letter. Powers, transposes and whole expressions are no names. */
function indices(scripts) {
  const column = scripts.children[0];
  const rows = rowsOf(column).map(written);
  const lone = column.classes.includes("vlist-t2") ? [rows[0], ""] : ["", rows[0]];
  const [low, high] = rows.length === 2 ? rows : lone;
  const named = (mark, text) => (/^[\p{L}\d,()′]{1,8}$/u.test(text ?? "") ? mark + text : "");
  return named("_", low) + (/^\d+$/.test(high) ? "" : named("^", high));
}

/** Name the letters below a node, and add their names to `names`. */
function nameLetters(node, names, around = { accent: "", scripts: "" }) {
  if (!node.children || node.type) return; // a leaf, or MathML
  node.children = node.children.flatMap((child) =>
    fontOf(child) === null ? [child] : parted(child),
  );
  const scripts = node.children.find((child) => child.classes?.includes("msupsub"));
  const accent = node.classes?.includes("katex-accent") ? rowsOf(node.children[0]).at(-1) : null;
  for (const child of node.children) {
    const font = fontOf(child);
    const here = { ...around };
    if (scripts && child !== scripts) here.scripts = indices(scripts);
    if (child === scripts) Object.assign(here, { accent: "", scripts: "" });
    if (accent) here.accent = ACCENTS[written(accent)] ?? "";
    if (font === null) nameLetters(child, names, alone(child) ? here : undefined);
    else {
      const name = `${here.accent}${font}${child.text}${here.scripts}`;
      names.add(name);
      child.classes.push("tf-letter", name);
    }
  }
}

/** Whether scripts and accents around a node belong to one letter in it. */
function alone(node) {
  return (
    [...written(node)].filter((letter) => /\p{L}/u.test(letter)).length === 1 || !node.children
  );
}
