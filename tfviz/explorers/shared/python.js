// What Python means by its operators and built-in names, for what scripts/javascript.py translates:
// dicts are Maps, sets are Sets, lists and tuples arrays, None is null. What Python would refuse as a
// TypeError, or for a missing key, is a TypeError here.
const py = (() => {
  class ValueError extends Error {
    name = "ValueError";
  }
  class KeyError extends Error {
    name = "KeyError";
  }
  // A number that knows its parts, whole ones all.
  class Total extends Number {
    constructor(parts) {
      const whole = new Map([...parts].map(([name, part]) => [name, round(part)]));
      super(sum(whole.values()));
      this.parts = whole;
    }
  }
  // A number that was written with a point or an exponent, and is whole all the same.
  class Float extends Number {}

  const refuse = (words) => {
    throw new TypeError(words);
  };
  const is_bool = (x) => typeof x === "boolean";
  const is_str = (x) => typeof x === "string";
  const is_list = (x) => Array.isArray(x);
  const is_Mapping = (x) => x instanceof Map;
  const is_int = (x) => Number.isInteger(x) || is_bool(x) || x instanceof Total;
  const is_float = (x) => x instanceof Float || (typeof x === "number" && !Number.isInteger(x));
  const is_number = (x) => typeof x === "number" || is_bool(x) || x instanceof Number;
  const number = (x) =>
    typeof x === "number" ? x : is_number(x) ? +x : refuse(`${repr(x)} is no number`);
  const index = (x) => (is_int(x) ? +x : refuse(`${repr(x)} is no whole number`));
  const text = (x) => (is_str(x) ? x : refuse(`${repr(x)} is no text`));
  const map = (x) => (x instanceof Map ? x : refuse(`${repr(x)} is no dict`));
  const key = (x) =>
    is_str(x) || x === null ? x : is_number(x) ? +x : refuse(`${repr(x)} is not hashable`);

  function bool(x) {
    if (x === null || x === undefined || x === false || x === "" || x === 0) return false;
    if (x instanceof Number) return +x !== 0;
    if (Array.isArray(x)) return x.length > 0;
    return x instanceof Map || x instanceof Set ? x.size > 0 : true;
  }
  const and = (a, b) => (bool(a) ? b() : a);
  const or = (a, b) => (bool(a) ? a : b());

  function iter(x) {
    if (x instanceof Map) return x.keys();
    return x && (is_str(x) || x[Symbol.iterator])
      ? x
      : x === ""
        ? []
        : refuse("nothing to go over");
  }
  const list = (x) => [...iter(x)];
  const set = (x = []) => new Set(list(x).map(key));
  const len = (x) => (is_str(x) || is_list(x) ? x.length : (x?.size ?? refuse("no length")));

  // --- operators -----------------------------------------------------------------------------------

  function plus(a, b) {
    if (is_str(a) && is_str(b)) return a + b;
    return is_list(a) && is_list(b) ? [...a, ...b] : number(a) + number(b);
  }
  const minus = (a, b) =>
    a instanceof Set ? new Set([...a].filter((x) => !has(b, x))) : number(a) - number(b);
  function times(a, b) {
    if ((is_str(a) || is_list(a)) && a.length * index(b) > 1e7) refuse("more than a page can hold");
    if (is_str(a)) return a.repeat(Math.max(index(b), 0));
    if (!is_list(a)) return is_str(b) || is_list(b) ? times(b, a) : number(a) * number(b);
    return Array.from({ length: Math.max(index(b), 0) }, () => a).flat();
  }
  const divisor = (x) => (number(x) === 0 ? refuse("division by zero") : number(x));
  const over = (a, b) => number(a) / divisor(b);
  const power = (a, b) => number(a) ** number(b);
  function modulo(a, b) {
    const rest = number(a) % divisor(b);
    return rest && rest < 0 !== number(b) < 0 ? rest + number(b) : rest;
  }
  const floored = (a, b) => Math.round((number(a) - modulo(a, b)) / number(b));
  const divmod = (a, b) => [floored(a, b), modulo(a, b)];
  const both = (a, b) => new Set(list(a).filter((x) => has(b, x)));
  const either = (a, b) =>
    a instanceof Set ? new Set([...a, ...iter(b)]) : new Map([...map(a), ...map(b)]);
  // a |= b
  function joined(a, b) {
    for (const [name, x] of map(b)) map(a).set(name, x);
    return a;
  }

  function equal(a, b) {
    if (is_number(a) && is_number(b)) return +a === +b;
    if (is_list(a) && is_list(b)) return a.length === b.length && a.every((x, i) => equal(x, b[i]));
    if (a instanceof Set && b instanceof Set) return a.size === b.size && most(a, b);
    if (!(a instanceof Map && b instanceof Map)) return a === b;
    return a.size === b.size && [...a].every(([name, x]) => b.has(name) && equal(x, b.get(name)));
  }
  function less(a, b) {
    if (is_str(a) && is_str(b)) return order(list(a).map(point), list(b).map(point)) < 0;
    return is_list(a) && is_list(b) ? order(a, b) < 0 : number(a) < number(b);
  }
  const point = (x) => x.codePointAt(0);
  function order(a, b) {
    const at = a.findIndex((x, i) => i < b.length && !equal(x, b[i]));
    return at < 0 ? a.length - b.length : less(a[at], b[at]) ? -1 : 1;
  }
  const most = (a, b) =>
    a instanceof Set ? [...a].every((x) => b.has(x)) : less(a, b) || equal(a, b);
  function has(x, part) {
    if (is_str(x)) return x.includes(text(part));
    return x instanceof Map || x instanceof Set
      ? x.has(key(part))
      : list(x).some((y) => equal(y, part));
  }

  // --- what is held --------------------------------------------------------------------------------

  function item(x, at) {
    if (x instanceof Map) return x.has(key(at)) ? x.get(key(at)) : refuse(`no ${repr(at)} there`);
    if (!is_str(x) && !is_list(x)) refuse(`${repr(x)} has no parts`);
    return x.at(index(at)) ?? (is_list(x) && x.at(at) === null ? null : refuse("no such place"));
  }
  function set_item(x, at, value) {
    if (x instanceof Map) x.set(key(at), value);
    else is_list(x) && index(at) < x.length ? (x[at] = value) : refuse("no such place");
  }
  function slice(x, from, to) {
    const ends = [from ?? 0, to ?? undefined].map((n) => (n === undefined ? n : index(n)));
    if (is_str(x))
      return /[\ud800-\udfff]/.test(x) ? [...x].slice(...ends).join("") : x.slice(...ends);
    return is_list(x) ? x.slice(...ends) : refuse(`${repr(x)} has no parts`);
  }
  // x[from:to] = values
  const put = (x, from, to, values) =>
    x.splice(from ?? 0, slice(x, from, to).length, ...iter(values));
  function parts(x, many) {
    const all = list(x);
    if (all.length !== many) throw new ValueError(`${all.length} values for ${many} names`);
    return all;
  }
  const get = (x, name, otherwise = null) => (map(x).has(key(name)) ? x.get(key(name)) : otherwise);
  const items = (x) => [...map(x)];
  const keys = (x) => new Set(map(x).keys());
  const values = (x) => [...map(x).values()];
  const dict = (x) => new Map(map(x));
  const fromkeys = (names, value = null) => new Map(list(names).map((name) => [key(name), value]));
  function pop(x, name, otherwise) {
    const value = otherwise === undefined ? item(map(x), name) : get(x, name, otherwise);
    x.delete(name);
    return value;
  }
  function setdefault(x, name, value) {
    if (!map(x).has(name)) x.set(name, value);
    return x.get(name);
  }
  const clear = (x) => x.clear();
  const add = (x, one) => x.add(key(one));
  const append = (x, one) => x.push(one);
  function update(x, more) {
    if (x instanceof Map) joined(x, more);
    else for (const one of iter(more)) x.add(key(one));
  }

  // --- functions -----------------------------------------------------------------------------------

  const all = (x) => list(x).every(bool);
  function any(x) {
    for (const one of iter(x)) if (bool(one)) return true;
    return false;
  }
  function next(x, otherwise) {
    for (const one of iter(x)) return one;
    return otherwise === undefined ? refuse("nothing there") : otherwise;
  }
  const sum = (x) => list(x).reduce(plus, 0);
  const extreme = (better) => (x, by) => {
    const value = (one) => (by ? by(one) : one);
    const all = list(x);
    if (!all.length) throw new ValueError("nothing to choose from");
    return all.reduce((best, one) => (better(value(one), value(best)) ? one : best));
  };
  const min = extreme(less);
  const max = extreme((a, b) => less(b, a));
  function sorted(x, by = null, falling = false) {
    const before = (a, b) => (falling ? less(b, a) : less(a, b));
    return list(x).sort((a, b) => (before(a, b) ? -1 : before(b, a) ? 1 : 0));
  }
  const enumerate = (x) => list(x).map((one, i) => [i, one]);
  function zip(...lists) {
    const rows = lists.map(list);
    const at = rows.findIndex((x) => x.length !== rows[0].length);
    if (at > 0) throw new ValueError(`zip() argument ${at + 1} is of another length`);
    return rows[0].map((_, i) => rows.map((x) => x[i]));
  }
  function range(from, to, step = 1) {
    if (to === undefined) [from, to] = [0, from];
    const many = Math.ceil((index(to) - index(from)) / divisor(index(step)));
    return Array.from({ length: Math.max(many, 0) }, (_, i) => +from + i * step);
  }
  const whole = (x) => {
    if (Number.isNaN(x)) throw new ValueError("cannot convert float NaN to integer");
    return Number.isFinite(x) ? x : refuse("cannot convert float infinity to integer");
  };
  function int(x) {
    if (!is_str(x)) return whole(Math.trunc(number(x)));
    if (/^\s*[-+]?\d+(_\d+)*\s*$/.test(x)) return Number(x.replaceAll("_", ""));
    throw new ValueError(`invalid literal for int() with base 10: ${repr(x)}`);
  }
  // To the nearest whole number, and to an even one from the middle.
  function round(x) {
    const below = Math.floor(whole(number(x)));
    const rest = number(x) - below;
    return below + Number(rest > 0.5 || (rest === 0.5 && modulo(below, 2) === 1));
  }
  const ord = (x) => text(x).codePointAt(0);

  // --- texts ---------------------------------------------------------------------------------------

  const join = (between, x) => list(x).map(text).join(between);
  const replace = (x, old, fresh) => text(x).replaceAll(old, fresh);
  const startswith = (x, start, from = 0) => text(x).startsWith(start, from);
  const strip = (x) => text(x).trim();
  const lower = (x) => text(x).toLowerCase();
  const split = (x, between) => text(x).split(between);
  const count = (x, part) => text(x).split(part).length - 1;
  const ljust = (x, n, fill) => text(x).padEnd(index(n), fill);
  const rfind = (x, part, from, to) => slice(text(x), 0, to).lastIndexOf(part);
  const translate = (x, table) =>
    list(text(x))
      .map((y) => get(table, ord(y), y))
      .join("");

  const compile = (pattern) => new RegExp(`^(?:${pattern})$`, "s");
  function fullmatch(pattern, x) {
    const match = text(x).match(is_str(pattern) ? compile(pattern) : pattern);
    return match && [...match].map((y) => y ?? null);
  }
  const findall = (pattern, x) =>
    [...text(x).matchAll(new RegExp(pattern, "g"))].map(([, ...groups]) =>
      groups.map((y) => y ?? ""),
    );

  const ESCAPED = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  function escaped(x, quote) {
    if (x === quote || x in ESCAPED) return ESCAPED[x] ?? `\\${x}`;
    if (x === " " || !/[\p{C}\p{Z}]/u.test(x)) return x;
    const code = ord(x).toString(16);
    const [letter, wide] = code.length < 3 ? ["x", 2] : code.length < 5 ? ["u", 4] : ["U", 8];
    return `\\${letter}${code.padStart(wide, "0")}`;
  }
  function written(x) {
    if (Number.isNaN(x)) return "nan";
    if (!Number.isFinite(x)) return x < 0 ? "-inf" : "inf";
    const [digits, ten] = x.toExponential().split("e");
    const wide = Math.abs(+ten) < 10 ? `0${Math.abs(+ten)}` : Math.abs(+ten);
    if (x && (+ten < -4 || +ten > 15)) return `${digits}e${+ten < 0 ? "-" : "+"}${wide}`;
    if (Number.isInteger(x)) return `${Object.is(x, -0) ? "-0" : x}.0`;
    return +ten < 0 ? x.toFixed(digits.replace(/^-?\d\.?/, "").length - ten) : String(x);
  }
  function repr(x) {
    if (x === null || x === undefined) return "None";
    if (is_bool(x)) return x ? "True" : "False";
    if (is_int(x)) return String(BigInt(+x));
    if (is_number(x)) return written(+x);
    if (is_list(x)) return `[${x.map(repr).join(", ")}]`;
    if (x instanceof Map) return `{${[...x].map((y) => y.map(repr).join(": ")).join(", ")}}`;
    if (!is_str(x)) return String(x);
    const quote = x.includes("'") && !x.includes('"') ? '"' : "'";
    return quote + [...x].map((y) => escaped(y, quote)).join("") + quote;
  }
  const str = (x) => (is_str(x) ? x : repr(x));

  // A value of an object that is worked out once.
  function once(object, name, made) {
    const value = made();
    Object.defineProperty(object, name, { value });
    return value;
  }

  // --- from and to plain JavaScript ----------------------------------------------------------------

  // What JSON holds, as Python has it.
  function held(x) {
    if (is_list(x)) return x.map(held);
    if (x === null || typeof x !== "object") return x;
    return new Map(Object.entries(x).map(([name, y]) => [name, held(y)]));
  }
  // Lists, numbers and objects, whose keys are own properties whatever they are called.
  function plain(x) {
    if (x instanceof Total) return { total: +x, parts: plain(x.parts) };
    if (x instanceof Number) return +x;
    if (is_list(x) || x instanceof Set) return [...x].map(plain);
    if (x instanceof Map) return Object.fromEntries([...x].map(([name, y]) => [name, plain(y)]));
    return x;
  }

  // prettier-ignore
  return {
    ValueError, KeyError, Total, Float, is_bool, is_str, is_list, is_Mapping, is_int,
    is_float, bool, and, or, iter, list, tuple: list, set, len, plus, minus, times, over,
    power, modulo, floored, divmod, both, either, joined, equal, less, most, has, item,
    set_item, slice, put, parts, get, items, keys, values, dict, fromkeys, pop, setdefault,
    clear, update, all, any, next, sum, min, max, sorted, enumerate, zip, range, float:
    number, int, round, ord, join, replace, startswith, strip, lower, split, count, ljust,
    rfind, translate, compile, fullmatch, findall, repr, str, once, held, plain, add, append,
  };
})();
