// Models taken apart in the page, as tfviz.anatomy does: `counted` is made from its source. Numbers,
// texts, lists and objects go in and come out.

// The text of a config.json, read and never run: numbers with a point stay what they are, `Infinity`
// and `NaN` are numbers, any name is a name.
function configRead(source) {
  const [deepest, longest] = [500, 4300];
  let at = 0;
  const wrong = () => {
    const lines = source.slice(0, at).split("\n");
    const place = `line ${lines.length}, column ${[...lines.at(-1)].length + 1}`;
    throw new py.ValueError(`config is no JSON at ${place}; paste the whole config.json`);
  };
  const find = (form) => {
    form.lastIndex = at;
    const match = form.exec(source);
    if (match) at = form.lastIndex;
    return match;
  };
  const space = () => find(/[ \t\n\r]*/y);
  const next = (sign) => source[at] === sign && ++at > 0;

  function string() {
    const start = at++;
    let text = "";
    for (;;) {
      text += find(/[^"\\\u0000-\u001f]*/y)[0];
      if (next('"')) return text;
      const escape = find(/\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/y);
      if (!escape) {
        if (at >= source.length || source.startsWith("\\", source.length - 1)) at = start;
        else if (source.startsWith("\\u", at)) at++;
        wrong();
      }
      const [, letter, code] = escape;
      const signs = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
      text += code ? String.fromCharCode(parseInt(code, 16)) : (signs[letter] ?? letter);
    }
  }

  const words = { null: null, true: true, false: false, NaN, Infinity, "-Infinity": -Infinity };
  function value(depth) {
    if (depth > deepest)
      throw new py.ValueError("config is nested too deep; paste the whole config.json");
    if (source[at] === '"') return string();
    const open = next("{") ? "}" : next("[") ? "]" : "";
    if (open) return open === "}" ? pairs(depth) : list(depth);
    const word = find(/null|true|false|NaN|-?Infinity/y);
    if (word) return words[word[0]];
    const number = find(/-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y);
    if (!number) wrong();
    const whole = !number[1] && !number[2];
    if (whole && number[0].replace("-", "").length > longest)
      throw new py.ValueError("config has a number that is too long; paste the whole config.json");
    const x = Number(number[0]);
    return whole || !Number.isInteger(x) ? x : new py.Float(x);
  }
  function list(depth) {
    const made = [];
    space();
    if (next("]")) return made;
    for (;;) {
      made.push(value(depth + 1));
      space();
      if (next("]")) return made;
      if (!next(",")) wrong();
      space();
    }
  }
  function pairs(depth) {
    const made = new Map();
    space();
    if (next("}")) return made;
    for (;;) {
      if (source[at] !== '"') wrong();
      const name = string();
      space();
      if (!next(":")) wrong();
      space();
      made.set(name, value(depth + 1));
      space();
      if (next("}")) return made;
      if (!next(",")) wrong();
      space();
    }
  }

  space();
  const made = value(0);
  space();
  if (at < source.length) wrong();
  return made;
}

// {names, of, read, CARDS}, and models as objects that count; arguments that have names in Python
// and may be left out come as one object.
function anatomyOf({ models, families }) {
  const [byFamily, byId] = [families, models].map(py.held);
  const python = counted(
    () => byFamily,
    () => byId,
  );
  const card = ({ name, operations, bandwidth, memory }) =>
    new python.record$Card(name, operations, bandwidth, memory);
  const onCard = (which) => (which && typeof which === "object" ? card(which) : which);
  const BITS = ["bits", "cache_bits", "state_bits"];
  function asked(named, ...names) {
    const strange = Object.keys(named).find((name) => !names.includes(name));
    if (strange) throw new TypeError(`${strange} is no argument; give ${names.join(", ")}`);
    return names.map((name) => named[name]);
  }
  const shown = (x) => ({ ...x, ridge: x.ridge });

  const ghost = (a) => a && model(a);
  function model(a) {
    const once = {};
    const kept = (name, made) => (once[name] ??= made());
    const methods = {
      get layers() {
        return kept("layers", () =>
          a.layers.map((x) => ({
            ...x,
            heads: x.heads && { ...x.heads },
            letter: a.fields.get("layers")[x.n],
            mask: py.plain(x.allowed),
          })),
        );
      },
      get uses() {
        return kept("uses", () => a.uses);
      },
      get beyond() {
        return kept("beyond", () => a.beyond);
      },
      get parameters() {
        return kept("parameters", () => ({
          ...a.parameters,
          by_part: py.plain(a.parameters.by_part),
        }));
      },
      cache: (L, named = {}) =>
        py.plain(a.cache(L, ...asked(named, "batch", "bits", "state_bits", "source"))),
      cache_of: (n, L) => py.sum(python.counting$kept_by(a.fields, n, L)),
      convolutions: (named = {}) => a.convolutions(...asked(named, "batch", "bits")),
      longest: (memory, named = {}) => a.longest(memory, ...asked(named, "batch", ...BITS)),
      flops: (L, named = {}) => py.plain(a.flops(L, ...asked(named, "phase", "batch"))),
      bytes_moved: (L, named = {}) =>
        py.plain(a.bytes_moved(L, ...asked(named, "phase", "batch", ...BITS))),
      point: (phase, which, named = {}) => ({
        ...a.point(phase, onCard(which), ...asked(named, "L", "batch", ...BITS)),
      }),
      intensity: (L, named = {}) => a.intensity(L, ...asked(named, "phase", "batch", ...BITS)),
      roofline(which, named = {}) {
        const x = a.roofline(onCard(which), ...asked(named, "L", "batch", ...BITS));
        const [prefill, decode] = [x.prefill, x.decode].map((y) => ({ ...y }));
        return { card: shown(x.card), turning_batch: x.turning_batch, prefill, decode };
      },
      but: (changes) => model(a.but(py.held(changes))),
      // ghosts, or null: all layers see everything; besides, each head has keys of its own
      seeing_all: () => ghost(a.seeing_all()),
      with_every_head: () => ghost(a.with_every_head()),
    };
    const { id, name, year, family, guess, refused, doubts, unread, assumed } = a;
    const facts = { id, name, year, family, guess, refused, doubts, unread, assumed };
    const own = { ...facts, fields: py.plain(a.fields), facts: py.plain(a.facts) };
    return Object.defineProperties(own, Object.getOwnPropertyDescriptors(methods));
  }

  return {
    names: (listed = false) => python.reading$names(listed),
    of: (id) => model(python.reading$of(id)),
    read: (text) => model(python.reading$understood(configRead(text))),
    CARDS: Object.fromEntries([...python.record$CARDS].map(([name, x]) => [name, shown(x)])),
  };
}
