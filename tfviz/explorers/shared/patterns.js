// Patterns in the page: from a spec to bits, costs and hops, by the library's formulas. A module that
// uses this file has the families of `patterns.browser_catalogue` in tf.data.families.
const FAMILIES = tf.data.families;

// --- patterns: spec → bits ---------------------------------------------------------------------------

// One compiled formula for each family, on its first use: (i, …parameters) => [what the row is made
// of, (j) => allowed]. The parameters are arguments, so it serves every position of the sliders.
const formulas = {};
const formula = (name) => (formulas[name] ??= new Function(`return ${FAMILIES[name].rows}`)());

const tables = new Map();
function tableBits(spec) {
  if (!tables.has(spec.table)) {
    const bytes = Uint8Array.from(atob(spec.table), (c) => c.charCodeAt(0));
    tables.set(
      spec.table,
      Uint8Array.from(
        { length: spec.shape[0] ** 2 },
        (_, k) => (bytes[k >> 3] >> (7 - (k & 7))) & 1,
      ),
    );
  }
  return tables.get(spec.table);
}

function bits(spec, L) {
  if (spec.table) return tableBits(spec).slice();
  if (spec.op) {
    const [first, ...rest] = spec.parts.map((part) => bits(part, L));
    if (spec.op === "not") for (let k = 0; k < first.length; k++) first[k] ^= 1;
    for (const next of rest) {
      if (spec.op === "and") for (let k = 0; k < first.length; k++) first[k] &= next[k];
      else for (let k = 0; k < first.length; k++) first[k] |= next[k];
    }
    return first;
  }
  const out = new Uint8Array(L * L);
  const values = FAMILIES[spec.name].args
    .slice(2)
    .map((name) => (name === "length" ? L : spec.params[name]));
  const row = formula(spec.name);
  let above;
  for (let i = 0, k = 0; i < L; i++, k += L) {
    const [madeOf, allowed] = row(i, ...values);
    const key = madeOf.join();
    if (key === above) out.copyWithin(k, k - L, k);
    else for (let j = 0; j < L; j++) out[k + j] = allowed(j) ? 1 : 0;
    above = key;
  }
  return out;
}

// The mask of a spec, and what is counted on it.
function measure(spec, L, causal) {
  const mask = bits(spec, L);
  if (causal) for (let i = 0; i < L; i++) mask.fill(0, i * L + i + 1, (i + 1) * L);
  return counts(mask, L);
}

// A mask, its keys row by row, and what is counted on it.
function counts(mask, L) {
  const starts = new Uint32Array(L + 1);
  let pairs = 0,
    most = 0,
    row = 0,
    ahead = null;
  for (let i = 0, k = 0; i < L; i++) {
    for (let j = 0; j < L; j++, k++)
      if (mask[k]) {
        pairs++;
        if (j > i && !ahead) ahead = [i, j];
      }
    starts[i + 1] = pairs;
    if (pairs - starts[i] > most) {
      most = pairs - starts[i];
      row = i;
    }
  }
  const keys = new Uint16Array(pairs);
  for (let i = 0, k = 0, n = 0; i < L; i++)
    for (let j = 0; j < L; j++, k++) if (mask[k]) keys[n++] = j;
  return {
    L,
    mask,
    starts,
    keys,
    pairs,
    most,
    row,
    ahead,
    keysOf: (i) => keys.subarray(starts[i], starts[i + 1]),
  };
}

function tilesOf({ L, starts, keys }, size) {
  const across = Math.ceil(L / size),
    kept = new Uint8Array(across * across);
  for (let i = 0; i < L; i++) {
    const from = Math.floor(i / size) * across;
    for (let k = starts[i]; k < starts[i + 1]; k++) kept[from + Math.floor(keys[k] / size)] = 1;
  }
  const edge = (k) => Math.min(size, L - k * size);
  let blocks = 0,
    pairs = 0;
  for (let a = 0; a < across; a++)
    for (let b = 0; b < across; b++)
      if (kept[a * across + b]) {
        blocks++;
        pairs += edge(a) * edge(b);
      }
  return { blocks, pairs, all: across * across };
}

// --- depth -----------------------------------------------------------------------------------------

// What positions know after one more layer: their own, and what their keys know. Rows are bit sets, 32
// tokens a word. Rows that miss nothing any more are passed over.
function spread(known, { starts, keys, L }, missing = undefined) {
  const words = Math.ceil(L / 32);
  const next = known.slice();
  for (let i = 0; i < L; i++) {
    if (missing && !missing[i]) continue;
    const row = i * words;
    for (let k = starts[i]; k < starts[i + 1]; k++) {
      const from = keys[k] * words;
      for (let w = 0; w < words; w++) next[row + w] |= known[from + w];
    }
  }
  return next;
}
function bitRows(L, allowed) {
  const words = Math.ceil(L / 32);
  const rows = new Uint32Array(L * words);
  for (let i = 0; i < L; i++)
    for (let j = 0; j < L; j++) if (allowed(i, j)) rows[i * words + (j >> 5)] |= 1 << (j & 31);
  return rows;
}

// Layers until every token is heard, layer n of stack[n % length]; 0 if it takes more than `most`.
function diameterOf(stack, most) {
  const { L } = stack[0];
  const causal = stack.every((p) => !p.ahead);
  const wanted = wantedRows(L, causal);
  let known = ownRows(L);
  for (let n = 1, quiet = 0; n <= most && quiet < stack.length; n++) {
    const next = spread(known, stack[(n - 1) % stack.length]);
    let [k, last] = [0, next.length];
    while (k < last && (next[k] & wanted[k]) >>> 0 === wanted[k]) k++;
    if (k === last) return n;
    for (k = 0; k < last && next[k] === known[k];) k++;
    quiet = k === last ? quiet + 1 : 0;
    known = next;
  }
  return 0;
}
const ownRows = tf.keep((L) => bitRows(L, (i, j) => i === j));
const wantedRows = tf.keep((L, causal) => bitRows(L, (i, j) => !causal || j <= i));

// Hops between all pairs when layer n uses stack[n % length].
function reachOf(stack) {
  const { L } = stack[0],
    words = Math.ceil(L / 32);
  const causal = stack.every((p) => !p.ahead);
  let known = ownRows(L);
  const missing = Uint16Array.from({ length: L }, (_, i) => (causal ? i : L - 1)); // not heard yet
  const hops = new Int16Array(L * L).fill(-1);
  for (let i = 0; i < L; i++) hops[i * L + i] = 0;
  for (let n = 0, quiet = 0; quiet < stack.length; n++) {
    const next = spread(known, stack[n % stack.length], missing);
    let fresh = false;
    for (let k = 0; k < next.length; k++) {
      let news = next[k] & ~known[k];
      if (news) fresh = true;
      while (news) {
        const bit = 31 - Math.clz32(news & -news);
        hops[Math.floor(k / words) * L + (k % words) * 32 + bit] = n + 1;
        missing[Math.floor(k / words)]--;
        news &= news - 1;
      }
    }
    known = next;
    quiet = fresh ? 0 : quiet + 1;
  }
  let unreachable = 0,
    lost = null,
    far = 0,
    farthest = null;
  for (let i = 0; i < L; i++)
    for (let j = 0; j < L; j++) {
      const hop = hops[i * L + j];
      if (hop > far) {
        far = hop;
        farthest = [i, j];
      }
      if (hop < 0 && (!causal || j <= i)) {
        unreachable++;
        lost ??= [i, j];
      }
    }
  return { hops, causal, unreachable, lost, far, farthest, diameter: unreachable ? null : far };
}

// --- specs as text ---

const literal = (value) =>
  Array.isArray(value) ? `(${value.join(", ")}${value.length === 1 ? "," : ""})` : String(value);
function expression(spec, inside = false) {
  if (spec.table) return `patterns.from_spec(${JSON.stringify(spec)})`;
  if (spec.op === "not") return `~${expression(spec.parts[0], true)}`;
  if (spec.op) {
    const text = spec.parts
      .map((part) => expression(part, true))
      .join(spec.op === "and" ? " & " : " | ");
    return inside ? `(${text})` : text;
  }
  const room = FAMILIES[spec.name].own ? "" : "patterns.";
  return `${room}${spec.name}(${Object.entries(spec.params)
    .map(([name, value]) => `${name}=${literal(value)}`)
    .join(", ")})`;
}

// --- ranges ------------------------------------------------------------------------------------------

const rangers = {};
const parametersOf = (name) =>
  FAMILIES[name].args
    .slice(2)
    .filter((arg) => arg !== "length")
    .map((arg) => [arg, FAMILIES[name].params[arg]]);
function highest(spec, name, L) {
  const { high } = FAMILIES[spec.name].params[name];
  if (!high) return name === "seed" ? 99 : L;
  rangers[high] ??= new Function(`return ${high}`)();
  const names = [...parametersOf(spec.name).map(([n]) => n), "length"];
  return rangers[high](...names.map((n) => (n === "length" ? L : spec.params[n])));
}
// The spec with every parameter inside its range for this L; unknown names are an error.
function fit(spec, L) {
  if (spec.table) {
    if (spec.shape[0] !== L) throw new Error(`the table is for L = ${spec.shape[0]}`);
    return spec;
  }
  if (spec.op) return { op: spec.op, parts: spec.parts.map((part) => fit(part, L)) };
  const family = FAMILIES[spec.name];
  if (!family) throw new Error(`no pattern is called ${spec.name}`);
  const out = { name: spec.name, params: {} };
  for (const [name, range] of parametersOf(spec.name)) {
    let value = spec.params?.[name] ?? range.default;
    if (range.type === "list") {
      const order = Array.isArray(value) ? value : range.default;
      const whole = [...order].sort((a, b) => a - b).every((n, k) => n === k) && order.length <= L;
      value = whole ? order : order.map((_, k) => k).slice(0, L);
    }
    out.params[name] = value;
  }
  for (const [name, range] of Object.entries(family.params)) {
    if (range.type === "list") continue;
    const high = range.high ? highest(out, name, L) : Infinity;
    out.params[name] = tf.clamp(Math.round(out.params[name]), range.min, high);
  }
  return out;
}
// Does the spec hold at this L as it is?
function fitsAt(spec, L) {
  if (spec.parts) return spec.parts.every((part) => fitsAt(part, L));
  if (spec.table) return spec.shape[0] === L;
  const { params } = fit(spec, L);
  return Object.keys(params).every((name) => String(params[name]) === String(spec.params[name]));
}
const tableLength = (spec) =>
  spec.table ? spec.shape[0] : spec.parts ? spec.parts.map(tableLength).find(Boolean) : undefined;
const fresh = (name, L) => fit({ name, params: {} }, L);
