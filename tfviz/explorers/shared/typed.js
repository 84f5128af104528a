// A mask or a bias that the reader types: a formula of i and j in Python's syntax. It is read and worked out
// here, never executed: no eval, no Function. The same language in Python: tfviz/explained/typed.py, from
// which the words of the errors, the functions and the ranges come (tf.data.language).
const LANGUAGE = tf.data.language;
const { long: LONGEST, deep: DEEPEST, names: MOST_NAMES, whole: LARGEST } = LANGUAGE.most;
const POSITIONS = { i: "i", q: "i", j: "j", k: "j" };
const TOKEN =
  /(?<space>[ \t]+)|(?<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<shift><<|>>)|(?<other>&&|\|\|)|(?<op>\*\*|\/\/|<=|>=|==|!=|[-+*/%()<>,&|^~])|(?<wrong>[=!])/y;
const COMPARISONS = ["<", "<=", ">", ">=", "==", "!="];
// from what binds least to what binds most; comparisons bind less than all of them
const LEVELS = [["|"], ["^"], ["&"], ["+", "-"], ["*", "/", "//", "%"]];

const has = (table, name) => Object.hasOwn(table, name);

// What is wrong with a text, at which place of it.
class TypedError extends Error {
  constructor(code, at, /** @type {any} */ said = {}) {
    super(LANGUAGE.words[code].replace(/\{(\w+)\}/g, (_, name) => String(said[name])));
    this.code = code;
    this.at = at;
  }
}

// --- the text

function tokensOf(text) {
  if (!text.trim()) throw new TypedError("empty", 0);
  const size = [...text].length;
  if (size > LONGEST) throw new TypedError("long", LONGEST, { n: size, right: LONGEST });
  const tokens = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) {
      const what = String.fromCodePoint(text.codePointAt(at));
      if (has(LANGUAGE.signs, what))
        throw new TypedError("sign", at, { what, right: LANGUAGE.signs[what] });
      throw new TypedError("character", at, { what });
    }
    const [kind] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    const [what] = match;
    const right = LANGUAGE.instead[what];
    if (kind === "shift") throw new TypedError("shift", at, { what });
    if (kind === "other") throw new TypedError("double", at, { what, right });
    if (kind === "wrong") throw new TypedError(what === "=" ? "equals" : "bang", at);
    if (kind === "name") {
      if (["and", "or", "not"].includes(what)) throw new TypedError("words", at, { what, right });
      if (LANGUAGE.keywords.includes(what)) throw new TypedError("keyword", at, { what });
    }
    if (kind === "number") {
      const whole = /^[0-9]+$/.test(what);
      if (/^[A-Za-z_]/.test(text.slice(at + what.length)))
        throw new TypedError("glued", at, { what });
      if (/^0+[1-9][0-9]*$/.test(what)) throw new TypedError("zeros", at, { what });
      if (whole ? Number(what) >= LARGEST : !Number.isFinite(Number(what)))
        throw new TypedError("large", at, { right: LARGEST });
    }
    if (kind !== "space") tokens.push({ kind, text: what, at });
    at += what.length;
  }
  checkOrder(text, tokens);
  return tokens;
}

// Operands and operators take turns, and parentheses match.
function checkOrder(text, tokens) {
  const opened = []; // where each stands, and whether it belongs to a call
  let wanted = true; // an operand
  let before = { kind: "op", text: "(", at: 0 };
  for (const token of tokens) {
    const { kind, text: what, at } = token;
    const operand = kind === "number" || kind === "name";
    if (wanted) {
      if (operand) wanted = false;
      else if (what === "(") opened.push({ at, call: false });
      else if (what === ")" && before.text === "(" && opened.at(-1)?.call) {
        opened.pop();
        wanted = false;
      } else if (what === ")" && !opened.length) throw new TypedError("close", at);
      else if (!"-+~".includes(what)) throw new TypedError("operand", at, { what });
    } else if (what === "(") {
      if (before.kind !== "name") throw new TypedError("between", at, { what });
      opened.push({ at, call: true });
      wanted = true;
    } else if (what === ")") {
      if (!opened.length) throw new TypedError("close", at);
      opened.pop();
    } else if (what === ",") {
      if (!opened.at(-1)?.call) throw new TypedError("comma", at);
      wanted = true;
    } else if (operand || what === "~") throw new TypedError("between", at, { what });
    else wanted = true;
    if (opened.length > DEEPEST) throw new TypedError("deep", at, { right: DEEPEST });
    before = token;
  }
  if (wanted) throw new TypedError("operand", text.trimEnd().length, { what: "the end" });
  if (opened.length) throw new TypedError("open", opened.at(-1).at);
}

// --- the tree: {op, at, args, value}; of a comparison `ops` between its args

function treeOf(tokens) {
  let n = 0;
  const is = (ops) => tokens[n]?.kind === "op" && ops.includes(tokens[n].text);
  function comparison() {
    const { at } = tokens[n];
    const args = [binary(0)];
    const ops = [];
    while (is(COMPARISONS)) {
      ops.push(tokens[n++].text);
      args.push(binary(0));
    }
    return ops.length ? { op: "compare", at, args, ops } : args[0];
  }
  function binary(level) {
    if (level === LEVELS.length) return unary();
    const { at } = tokens[n];
    let left = binary(level + 1);
    while (is(LEVELS[level])) {
      const op = tokens[n++].text;
      left = { op, at, args: [left, binary(level + 1)] };
    }
    return left;
  }
  function unary() {
    if (!is(["-", "+", "~"])) return power();
    const { at, text } = tokens[n++];
    return { op: { "-": "neg", "+": "pos", "~": "~" }[text], at, args: [unary()] };
  }
  function power() {
    const { at } = tokens[n];
    const base = atom();
    if (!is(["**"])) return base;
    n++;
    return { op: "**", at, args: [base, unary()] };
  }
  function atom() {
    const { kind, text, at } = tokens[n++];
    if (kind === "number") return { op: "number", at, args: [], value: text };
    if (kind === "op") {
      const inner = comparison();
      n++; // the parenthesis that closes it
      return inner;
    }
    if (!is(["("])) return { op: "name", at, args: [], value: text };
    n++;
    const args = [];
    while (!is([")"])) {
      args.push(comparison());
      if (is([","])) n++;
    }
    n++;
    return { op: "call", at, args, value: text };
  }
  return comparison();
}

const anyOf = (node, names) =>
  (node.op === "name" && names.includes(node.value)) || node.args.some((one) => anyOf(one, names));

// The same with what each piece is, "whole", "real" or "condition"; what does not fit is refused.
function checked(tree, names) {
  const number = (node, what) => {
    if (node.kind === "condition") throw new TypedError("numbers", node.at, { what });
  };
  const note = (name, at) => {
    if (name === "L" || names.includes(name)) return;
    if (names.length === MOST_NAMES)
      throw new TypedError("names", at, { what: name, right: MOST_NAMES });
    names.push(name);
  };
  const named = (name, at) => {
    const whole = (value) => ({ op: "name", at, kind: "whole", args: [], value });
    if (has(POSITIONS, name)) return whole(POSITIONS[name]);
    if (name === "inf") return { op: "number", at, kind: "real", args: [], value: "inf" };
    if (has(LANGUAGE.functions, name)) throw new TypedError("call", at, { what: name });
    if (LANGUAGE.reserved.includes(name)) throw new TypedError("reserved", at, { what: name });
    if (name.startsWith("_")) throw new TypedError("underscore", at, { what: name });
    note(name, at);
    return whole(name);
  };
  const compared = (node) => {
    const args = node.args.map(read);
    if (args.length > 2) throw new TypedError("chain", args[2].at);
    const [op] = node.ops;
    const [left, right] = args;
    if (op === "==" || op === "!=") {
      if ((left.kind === "condition") !== (right.kind === "condition"))
        throw new TypedError("mixed", right.at, { what: op });
    } else for (const one of args) number(one, op);
    if (!args.some((one) => anyOf(one, ["i", "j", "h"]))) throw new TypedError("still", left.at);
    return { op, at: node.at, kind: "condition", args };
  };
  const called = (node) => {
    const { value: name, at } = node;
    if (!has(LANGUAGE.functions, name)) {
      const right = Object.keys(LANGUAGE.functions).join(", ");
      throw new TypedError("function", at, { what: name, right });
    }
    const [least, most, right] = LANGUAGE.functions[name];
    const n = node.args.length;
    if (n < least || n > most) throw new TypedError("arguments", at, { what: name, right, n });
    const args = node.args.map(read);
    let numbers = args;
    if (name === "where") {
      if (args[0].kind !== "condition") throw new TypedError("choice", args[0].at);
      numbers = args.slice(1);
    }
    for (const one of numbers) number(one, name);
    const keeps = ["abs", "min", "max", "where"].includes(name);
    const whole = keeps && numbers.every((one) => one.kind === "whole");
    return { op: name, at, kind: whole ? "whole" : "real", args, call: true };
  };
  function read(node) {
    const { op, at, value } = node;
    if (op === "number")
      return { op, at, kind: /^[0-9]+$/.test(value) ? "whole" : "real", args: [], value };
    if (op === "name") return named(value, at);
    if (op === "compare") return compared(node);
    if (op === "call") return called(node);
    const args = node.args.map(read);
    const [left, right] = args;
    if (op === "~") {
      if (left.kind !== "condition") throw new TypedError("not", left.at);
      return { op, at, kind: "condition", args };
    }
    if (op === "neg" || op === "pos") {
      number(left, op === "neg" ? "-" : "+");
      return op === "pos" ? left : { op, at, kind: left.kind, args };
    }
    if ("&|^".includes(op)) {
      for (const one of args)
        if (one.kind !== "condition") throw new TypedError("tight", one.at, { what: op });
      return { op, at, kind: "condition", args };
    }
    for (const one of args) number(one, op);
    const whole = left.kind === "whole" && right.kind === "whole";
    if (op === "**" && whole && right.op !== "number") throw new TypedError("power", at);
    return { op, at, kind: whole && op !== "/" ? "whole" : "real", args };
  }
  return read(tree);
}

// What each name for a number is used for: "head", "divisor", "real" or "whole".
function usesOf(tree) {
  const found = new Map();
  const note = (node, use) => {
    const one = node.op === "neg" ? node.args[0] : node;
    if (one.op !== "name" || ["i", "j", "L"].includes(one.value)) return;
    found.set(one.value, [...(found.get(one.value) ?? []), use]);
  };
  const walk = (node) => {
    node.args.forEach((one, place) => {
      if (["//", "%"].includes(node.op) && place === 1) note(one, "divisor");
      else if (["*", "/"].includes(node.op) && tree.kind !== "condition") note(one, "real");
      else if (one.op !== "neg") note(one, node.op === "neg" ? "negated" : "whole");
      walk(one);
    });
  };
  note(tree, "whole");
  walk(tree);
  const useOf = ([name, seen]) => {
    if (name === "h") return [name, "head"];
    if (seen.includes("divisor")) return [name, "divisor"];
    const real = seen.includes("real") && seen.every((use) => ["real", "negated"].includes(use));
    return [name, real ? "real" : "whole"];
  };
  return Object.fromEntries([...found].map(useOf));
}

// The formula that a text holds: {text, tree, isMask, names: [[name, range]]}. Throws a TypedError.
const readTyped = tf.keep((text) => {
  const names = [];
  const tree = checked(treeOf(tokensOf(text)), names);
  if (!anyOf(tree, ["i", "j"])) throw new TypedError("constant", tree.at);
  const uses = usesOf(tree);
  return {
    text,
    tree,
    isMask: tree.kind === "condition",
    names: names.map((name) => [name, LANGUAGE.ranges[uses[name]]]),
  };
}, 24);

// A number for every name: what is given where it fits, else the first one.
function valuesOf({ names }, given) {
  const fits = ({ low, high, step }, x) =>
    Number.isFinite(x) && x >= low && x <= high && (step !== 1 || Number.isInteger(x));
  return Object.fromEntries(
    names.map(([name, range]) => {
      const value = has(given, name) ? given[name] : undefined;
      return [name, fits(range, value) ? value : range.first];
    }),
  );
}

// --- values: each operation for all pairs at once, in 64 bits as Python has them

// The remainder has the sign of what divides.
function modulo(a, b) {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}
function floorDivided(a, b) {
  const exact = (a - modulo(a, b)) / b;
  const down = Math.floor(exact);
  return exact - down > 0.5 ? down + 1 : down;
}
const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": floorDivided,
  "%": modulo,
  "**": (a, b) => a ** b,
  neg: (a) => -a,
  "&": (a, b) => a && b,
  "|": (a, b) => a || b,
  "^": (a, b) => Number(a !== b),
  "~": (a) => 1 - a,
  "<": (a, b) => Number(a < b),
  "<=": (a, b) => Number(a <= b),
  ">": (a, b) => Number(a > b),
  ">=": (a, b) => Number(a >= b),
  "==": (a, b) => Number(a === b),
  "!=": (a, b) => Number(a !== b),
  abs: Math.abs,
  min: Math.min,
  max: Math.max,
  where: (condition, a, b) => (condition ? a : b),
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
};

// All pairs of L positions, row by row: 1 where i may attend to j; of a bias its numbers.
function tableOf({ tree, isMask }, L, values) {
  const pairs = L * L;
  const wrong = (code, node, n) =>
    new TypedError(code, node.at, { i: Math.floor(n / L), j: n % L, right: LARGEST });
  const fill = (of) => Float64Array.from({ length: pairs }, (_, n) => of(n));
  const known = { ...values, L };
  const leaf = ({ op, value }) => {
    if (op === "number") return fill(() => (value === "inf" ? Infinity : Number(value)));
    if (value === "i") return fill((n) => Math.floor(n / L));
    if (value === "j") return fill((n) => n % L);
    return fill(() => known[value]);
  };
  const work = (node) => {
    if (!node.args.length) return leaf(node);
    const args = node.args.map(work);
    if (["/", "//", "%"].includes(node.op)) {
      const zero = args[1].indexOf(0);
      if (zero >= 0) throw wrong("zero", node.args[1], zero);
    }
    const operation = OPERATIONS[node.op];
    const [a, b, c] = args;
    const out =
      args.length === 1
        ? a.map((x) => operation(x))
        : args.length === 2
          ? a.map((x, n) => operation(x, b[n]))
          : args.length === 3
            ? a.map((x, n) => operation(x, b[n], c[n]))
            : a.map((_, n) => operation(...args.map((one) => one[n])));
    if (node.kind === "condition") return out;
    const none = out.findIndex(Number.isNaN);
    if (none >= 0) throw wrong("nan", node, none);
    const large = node.kind === "whole" ? out.findIndex((x) => Math.abs(x) >= LARGEST) : -1;
    if (large >= 0) throw wrong("large at", node, large);
    return out;
  };
  const table = work(tree);
  const high = isMask ? -1 : table.indexOf(Infinity);
  if (high >= 0) throw wrong("infinite", tree, high);
  return table;
}

// --- written again: as Python, and as mathematics

// How tightly each binds, in Python.
const binds = (node) => {
  const { op } = node;
  if (COMPARISONS.includes(op) || op === "compare") return 0;
  const level = LEVELS.findIndex((ops) => ops.includes(op));
  if (level >= 0) return level + 1;
  return { neg: 6, pos: 6, "~": 6, "**": 7 }[op] ?? 8;
};

// A tree as Python; `atom` says how a number, a name or a call is written.
function written(node, atom) {
  const inside = (one, least) => {
    const text = written(one, atom);
    return binds(one) < least ? `(${text})` : text;
  };
  const { op, args } = node;
  const own = binds(node);
  if (own === 8) return atom(node, (one) => written(one, atom));
  if (op === "neg" || op === "pos" || op === "~")
    return `${{ neg: "-", pos: "+", "~": "~" }[op]}${inside(args[0], 6)}`;
  if (op === "**") return `${inside(args[0], 8)} ** ${inside(args[1], 6)}`;
  const ops = node.ops ?? args.slice(1).map(() => op);
  // the right side of a difference or a quotient needs its parentheses, and so do all comparisons
  return args
    .map((one, n) => (n ? `${ops[n - 1]} ` : "") + inside(one, n || own === 0 ? own + 1 : own))
    .join(" ");
}
const asTyped = (node, write) =>
  node.op === "call" || node.call
    ? `${node.call ? node.op : node.value}(${node.args.map(write).join(", ")})`
    : node.value;

// Whether a minus in front of a product belongs to all of it.
const beginsNegative = ({ op, args }) =>
  op === "neg" || (["*", "/"].includes(op) && beginsNegative(args[0]));

// FlexAttention's function of a formula, with its numbers, as Python that can be copied.
function flexOf({ tree, isMask, names }, values, L) {
  const moves = (node) => anyOf(node, ["i", "j", "h"]);
  let torch = false;
  const word = (name) => {
    torch = true;
    return `torch.${name}`;
  };
  const atom = (node, write) => {
    const { op, args, value } = node;
    if (value === "inf") return 'float("inf")';
    if (!node.call) return { i: "q", j: "k" }[value] ?? value;
    if (op === "abs") return `abs(${write(args[0])})`;
    if (op === "where") return `${word("where")}(${args.map(write).join(", ")})`;
    if (op === "min" || op === "max") {
      const [first, ...rest] = args;
      let [text, tensor] = [write(first), moves(first)];
      for (const one of rest) {
        const [a, b] = [text, write(one)];
        const side = op === "min" ? "max" : "min"; // at most so much is the smaller of two
        if (tensor && moves(one)) text = `${word(`${op}imum`)}(${a}, ${b})`;
        else if (tensor) text = `${word("clamp")}(${a}, ${side}=${b})`;
        else if (moves(one)) text = `${word("clamp")}(${b}, ${side}=${a})`;
        else text = `${op}(${a}, ${b})`;
        tensor ||= moves(one);
      }
      return text;
    }
    const [x] = args;
    return moves(x) ? `${word(op)}(${write(x)})` : `math.${op}(${write(x)})`;
  };
  const text = (node) => written(node, atom);
  const scores = (node) => {
    if (node.op === "where") {
      const [condition, ...sides] = node.args;
      return `${word("where")}(${[text(condition), ...sides.map(scores)].join(", ")})`;
    }
    const never = node.op === "neg" && node.args[0].value === "inf";
    if (never) return text(node);
    const added = binds(node) < 5 ? `(${text(node)})` : text(node);
    // −m · … as a difference; in −m // 2 the sign belongs to m
    return beginsNegative(node) ? `score - ${added.slice(1)}` : `score + ${added}`;
  };
  const taken = names.map(([name]) => name);
  const batch = taken.includes("b") ? (taken.includes("batch") ? "_b" : "batch") : "b";
  const own = isMask ? "mask_mod" : "score_mod";
  const body = isMask ? text(tree) : scores(tree);
  const given = names.filter(([name]) => name !== "h").map(([name]) => [name, values[name]]);
  if (anyOf(tree, ["L"])) given.push(["L", L]);
  const imports = [/\bmath\./.test(body) && "import math", torch && "import torch"];
  const [left, right] = [0, 1].map((side) => given.map((one) => one[side]).join(", "));
  return [
    ...imports.filter(Boolean),
    ...(given.length ? [`${left} = ${right}`, ""] : []),
    `def ${own}(${isMask ? "" : "score, "}${batch}, h, q, k):`,
    `    return ${body}`,
  ].join("\n");
}

const MATHML = "http://www.w3.org/1998/Math/MathML";
const maths = (tag, ...children) => {
  const node = document.createElementNS(MATHML, tag);
  node.append(...children);
  // a letter alone is slanted by our own face, not by a browser, which would want another letter
  if (tag === "mi" && children[0].length === 1) node.setAttribute("mathvariant", "normal");
  return node;
};

// The formula as a browser sets it.
function mathsOf({ tree, isMask }) {
  const sign = (text) => maths("mo", text);
  const row = (...parts) => maths("mrow", ...parts);
  const around = (open, inner, close) => {
    const [a, b] = [sign(open), sign(close)];
    const tall = inner.localName === "mfrac" || inner.querySelector("mfrac, mtable");
    for (const one of [a, b]) one.setAttribute("stretchy", String(Boolean(tall)));
    a.setAttribute("form", "prefix");
    b.setAttribute("form", "postfix");
    return row(a, inner, b);
  };
  const word = (text) => {
    return maths("mtext", text.replaceAll(" ", "\u00a0")); // which stays at an end
  };
  const signs = {
    "<=": "≤",
    ">=": "≥",
    "==": "=",
    "!=": "≠",
    "-": "−",
    "*": "·",
    "&": "and",
    "|": "or",
    "^": "either … or",
    "%": "mod",
  };
  const name = (text) => {
    const node = maths(text.length > 1 && text !== "inf" ? "mtext" : "mi", text);
    if (text === "i" || text === "j") node.setAttribute("class", `typed-${text}`);
    return node;
  };
  const inside = (node, least) => {
    const boxed = ["/", "//"].includes(node.op); // a fraction keeps itself together
    return binds(node) < least && !boxed ? around("(", set(node), ")") : set(node);
  };
  function set(node) {
    const { op, args, value } = node;
    if (op === "number") return value === "inf" ? sign("∞") : maths("mn", value);
    if (op === "name") return name(value);
    const [a, b] = args;
    if (op === "neg") return row(sign("−"), inside(a, 5));
    if (op === "~") return row(word("not "), around("(", set(a), ")"));
    if (op === "**") return maths("msup", inside(a, 8), set(b));
    if (op === "/") return maths("mfrac", set(a), set(b));
    if (op === "//") return around("⌊", maths("mfrac", set(a), set(b)), "⌋");
    if (op === "abs") return around("|", set(a), "|");
    if (op === "sqrt") return maths("msqrt", set(a));
    if (op === "exp") return maths("msup", maths("mi", "e"), set(a));
    if (op === "where") {
      const line = (...cells) => maths("mtr", ...cells.map((cell) => maths("mtd", cell)));
      const cases = maths(
        "mtable",
        line(set(args[1]), row(word("if "), set(a))),
        line(set(args[2]), word("else")),
      );
      const brace = sign("{");
      brace.setAttribute("stretchy", "true");
      return row(brace, cases);
    }
    if (node.call) {
      const list = args.flatMap((one, n) => (n ? [sign(","), set(one)] : [set(one)]));
      return row(maths("mi", op), around("(", row(...list), ")"));
    }
    const own = binds(node);
    if ("&|^".includes(op)) return row(inside(a, 0.5), word(` ${signs[op]} `), inside(b, 0.5));
    const between = op === "%" ? word(" mod ") : sign(signs[op] ?? op);
    return row(inside(a, own), between, inside(b, own === 0 ? 1 : own + 1));
  }
  const joined = (node, op) =>
    node.op === op ? [...joined(node.args[0], op), ...joined(node.args[1], op)] : [node];
  const top = (node) => {
    if (!"&|".includes(node.op)) return set(node);
    // comparisons stand beside each other; another sign inside has its parentheses
    const parts = joined(node, node.op).map((one) =>
      "&|^".includes(one.op) ? around("(", top(one), ")") : set(one),
    );
    return row(...parts.flatMap((one, n) => (n ? [word(` ${signs[node.op]} `), one] : [one])));
  };
  // −m · |i − j| is taken away from the score
  const without = (one) =>
    one.op === "neg" ? one.args[0] : { ...one, args: [without(one.args[0]), one.args[1]] };
  const added = beginsNegative(tree)
    ? [sign("−"), inside(without(tree), 5)]
    : [sign("+"), inside(tree, 5)];
  const all = isMask ? [top(tree)] : [name("score"), ...added];
  const node = maths("math", ...all);
  node.setAttribute("display", "inline");
  return node;
}

// --- what may have been meant: `and`, `&&`, forgotten parentheses and chained comparisons, in Python's words

// The text with its conditions in parentheses and joined by & | ~, or "" where that is no formula either.
function mended(text) {
  const signs = { ...LANGUAGE.signs, "≤": "<=" };
  const plainly = [...text].map((c) => (has(signs, c) ? ` ${signs[c]} ` : c)).join("");
  const pieces = plainly.match(
    /(?:[0-9]+\.?[0-9]*|\.[0-9]+)|[A-Za-z_]\w*|\*\*|\/\/|<=|>=|==|!=|&&|\|\||[^\s]/g,
  );
  if (!pieces || pieces.length > LONGEST) return "";
  const said = { ...LANGUAGE.instead };
  const tokens = pieces.flatMap((piece, n) => {
    const word = has(said, piece) ? said[piece] : piece;
    const glued = /^[0-9.]/.test(piece) && /^[A-Za-z_(]/.test(pieces[n + 1] ?? "");
    const kind = /^[0-9.]/.test(piece)
      ? "number"
      : /^[A-Za-z_]/.test(word)
        ? "name"
        : piece === "not" || piece === "!"
          ? "not"
          : "op";
    const own = { kind, text: word, at: 0 };
    return glued ? [own, { kind: "op", text: "*", at: 0 }] : [own];
  });
  let n = 0;
  const is = (ops, kind = "op") => tokens[n]?.kind === kind && ops.includes(tokens[n].text);
  const joins = [["|"], ["^"], ["&"]];
  function joined(level) {
    if (level === joins.length) return negated();
    let left = joined(level + 1);
    while (is(joins[level])) {
      const op = tokens[n++].text;
      left = { op, args: [left, joined(level + 1)] };
    }
    return left;
  }
  function negated() {
    if (!is(["~"], "not")) return compared();
    n++;
    return { op: "~", args: [negated()] };
  }
  function compared() {
    const args = [added(3)];
    const ops = [];
    while (is(COMPARISONS)) {
      ops.push(tokens[n++].text);
      args.push(added(3));
    }
    const pairs = ops.map((op, k) => ({ op, args: [args[k], args[k + 1]] }));
    return pairs.length
      ? pairs.reduce((left, right) => ({ op: "&", args: [left, right] }))
      : args[0];
  }
  function added(level) {
    if (level === LEVELS.length) return signed();
    let left = added(level + 1);
    while (is(LEVELS[level])) {
      const op = tokens[n++].text;
      left = { op, args: [left, added(level + 1)] };
    }
    return left;
  }
  function signed() {
    if (is(["-", "+", "~"])) {
      const op = { "-": "neg", "+": "pos", "~": "~" }[tokens[n++].text];
      return { op, args: [signed()] };
    }
    const base = atom();
    if (!is(["**"])) return base;
    n++;
    return { op: "**", args: [base, signed()] };
  }
  function atom() {
    const token = tokens[n++];
    if (token?.kind === "number") return { op: "number", args: [], value: token.text };
    if (token?.kind === "op" && token.text === "(") {
      const inner = joined(0);
      if (!is([")"])) throw new Error("not closed");
      n++;
      return inner;
    }
    if (token?.kind !== "name") throw new Error("no operand");
    if (!is(["("])) return { op: "name", args: [], value: token.text };
    n++;
    const args = [joined(0)];
    while (is([","])) {
      n++;
      args.push(joined(0));
    }
    if (!is([")"])) throw new Error("not closed");
    n++;
    return { op: "call", args, value: token.text };
  }
  try {
    const tree = joined(0);
    if (n < tokens.length) return "";
    const better = written(tree, asTyped);
    readTyped(better);
    return better === text ? "" : better;
  } catch {
    return "";
  }
}
