// Patterns as text: in Python, as a mask_mod, as a sentence and as a condition on i and j.
const SIDES = ["left", "right"];
const NAME = { left: "A", right: "B" };
const STACKS = { A: ["left"], B: ["right"], AB: ["left", "right"], BA: ["right", "left"] };

// What SparseLab says where it is given no prompt.
const ownPrompt = (query) =>
  `After how many layers of A does query ${query} hear of token 0? Step through the layers, then let A and B take turns.`;

// What "copy Python" leaves out: it is so without being said.
const USUAL = {
  token: 0,
  causal: false,
  stack: "A",
  layers: 2,
  view: "matrix",
  side: "left",
  panel: "depth",
  block: 16,
};
function pythonOf(app) {
  const state = app.all();
  const options = { L: state.L, query: state.query };
  for (const [key, usual] of Object.entries(USUAL))
    if (state[key] !== usual) options[key] = state[key];
  for (const key of ["goal", "ask"]) if (app.get(key)) options[key] = app.get(key);
  if (app.get("panels").length < 2) options.panels = app.get("panels");
  const prompt = app.get("prompt");
  if (prompt && prompt !== ownPrompt(app.first.query)) options.prompt = prompt;
  const written = Object.entries(options).map(([key, value]) => `${key}=${tf.python(value)}`);
  return `from tfviz import patterns
from tfviz.explorers import SparseLab

left = ${expression(state.left)}
right = ${expression(state.right)}
lab = SparseLab(left=left, right=right, ${written.join(", ")})
lab`;
}

function maskModOf(app) {
  const { L, causal } = app.all();
  const helpers = [];
  const combine = (spec, letter) => {
    if (spec.op === "not") return `~${combine(spec.parts[0], letter)}`;
    if (spec.op)
      return `(${spec.parts.map((part) => combine(part, letter)).join(spec.op === "and" ? " & " : " | ")})`;
    const name = `${spec.table ? "table" : spec.name}_${letter}${helpers.length + 1}`;
    if (spec.table)
      helpers.push(
        `${name} = patterns.from_spec(${JSON.stringify(spec)})`,
        `${name} = ${name}.holds`,
      );
    else {
      const { python, args } = FAMILIES[spec.name];
      const lines = args.slice(2).map((arg) => {
        const value = arg === "length" ? L : spec.params[arg];
        return `    ${arg} = ${Array.isArray(value) ? `torch.tensor(${JSON.stringify(value)})` : value}`;
      });
      helpers.push(
        `def ${name}(i, j):\n${lines.map((line) => `${line}\n`).join("")}    return ${python}\n`,
      );
    }
    return `${name}(i, j)`;
  };
  const mods = SIDES.map((side) => {
    const letter = NAME[side].toLowerCase();
    const formula = combine(app.get(side), letter);
    return `def mask_mod_${letter}(b, h, i, j):\n    return ${causal ? `${formula} & (i >= j)` : formula}\n`;
  });
  const body = [...helpers, ...mods].join("\n");
  const imports = [
    "import torch",
    "from torch.nn.attention.flex_attention import create_block_mask",
  ];
  if (body.includes("patterns.")) imports.push("from tfviz import patterns");
  if (body.includes("hash_of(")) imports.push("from tfviz.formula import hash_of");
  return `${imports.join("\n")}\n\n${body}
block_mask_a = create_block_mask(mask_mod_a, None, None, ${L}, ${L}, device="cpu")`;
}

// Numbers as people write them: 3, 5, 9 to 12.
function runs(numbers) {
  const out = [];
  for (const n of numbers) {
    if (out.length && out.at(-1)[1] === n - 1) out.at(-1)[1] = n;
    else out.push([n, n]);
  }
  return out;
}
function spoken(numbers, most = 8) {
  const parts = runs(numbers).map(([a, b]) =>
    a === b ? `${a}` : b === a + 1 ? `${a} and ${b}` : `${a} to ${b}`,
  );
  if (!parts.length) return "no keys";
  if (parts.length > most)
    return `keys ${parts.slice(0, most - 1).join(", ")} and ${parts.length - most + 1} more ranges`;
  return `${numbers.length === 1 ? "key" : "keys"} ${parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0]}`;
}

// The condition on i and j with numbers in place, the query's number and j in their colours.
const LONG = 170; // letters of a condition that is said in words instead
function formulaText(spec) {
  if (spec.table) return "(i, j) is in the table";
  if (spec.op === "not") return `not (${partText(spec.parts[0])})`;
  if (spec.op)
    return spec.parts
      .map((part) => {
        const words = partText(part);
        return part.op || / (and|or) /.test(words) ? `(${words})` : words;
      })
      .join(` ${spec.op} `);
  const { text, doc, params } = FAMILIES[spec.name];
  if (text.length > LONG) {
    const said = doc
      .split(/\. | \(/)[0]
      .replace(/`(\w+)`/g, (_, name) => spec.params[name] ?? name);
    return `${said[0].toLowerCase()}${said.slice(1)}`;
  }
  return Object.keys(params).reduce((words, name) => {
    const value = spec.params[name];
    return Array.isArray(value)
      ? words.replaceAll(`${name}.length`, value.length).replaceAll(name, "π")
      : words.replace(new RegExp(`\\b${name}\\b`, "g"), value);
  }, text);
}
// The same of a part of a whole: shorter.
function partText(spec) {
  const { text, title } = FAMILIES[spec.name] ?? {};
  return text?.length > LONG ? `j is in ${title}` : formulaText(spec);
}
function formulaNodes(text, query) {
  return text
    .split(/\b([ij])\b/)
    .map((piece) =>
      piece === "i"
        ? el("b", { className: "sl-i" }, String(query))
        : piece === "j"
          ? el("b", { className: "sl-j" }, "j")
          : piece,
    );
}

// The parts that `and` or `or` join are terms: each lights up with its cells.
function termsOf(spec, text, query) {
  const parts = spec.op && spec.op !== "not" ? spec.parts.map(partText) : [];
  const out = [];
  let rest = text;
  parts.forEach((part, n) => {
    const at = rest.indexOf(part);
    if (at < 0) return;
    const props = { className: "tfx-term", tabIndex: 0, "data-part": String(n) };
    out.push(
      ...formulaNodes(rest.slice(0, at), query),
      el("span", props, ...formulaNodes(part, query)),
    );
    rest = rest.slice(at + part.length);
  });
  return [...out, ...formulaNodes(rest, query)];
}
