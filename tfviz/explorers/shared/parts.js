// The parts of a GPT in the page. Each table holds one kind of part, and its entries by the names
// that `tfviz.stored.page_gpt` gives them. An entry makes the part of what is told about it and of
// `own`, the weights of its place: own.numbers(name), own.times(x, name) = x Wᵀ + b.
//
// A formula that the library has derived, as JavaScript: its arguments are two indices, and behind
// them the values of its parameters.
const formulaOf = ({ code, values }) => {
  const f = new Function(`return ${code}`)();
  return (i, j) => f(i, j, ...values);
};

// The part of this kind that is told of: by its name, or, where somebody brings a part of their own,
// by its JavaScript in `told.part`, ({tf, partOf, formulaOf}) => an entry like those below.
function partOf(kind, told, own) {
  const brought = told.part && new Function(`return ${told.part}`)()({ tf, partOf, formulaOf });
  const make = brought ?? PARTS[kind][told.name];
  if (make) return make(told, own);
  const known = Object.keys(PARTS[kind]).join(", ");
  throw new Error(`The page has no “${told.name}” among its ${kind}; it has ${known}.`);
}

// The product of a query's numbers from `a` on with a key's from `b` on.
function met(query, key, wide, a, b) {
  let s = 0;
  for (let c = 0; c < wide; c++) s += query[a + c] * key[b + c];
  return s;
}

// x / (mean of x² + ε)^½, then times the weight and plus the bias of the norm, if it has them.
function rescaled(x, own, eps) {
  const [weight, bias] = [own.numbers("weight"), own.numbers("bias")];
  const root = Math.sqrt(met(x, x, x.length, 0, 0) / x.length + eps);
  return x.map((y, c) => (y / root) * (weight ? weight[c] : 1) + (bias ? bias[c] : 0));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const silu = (x) => x * sigmoid(x);
const twoLayers = (phi) => (_, own) => (x) => {
  const hidden = own.times(x, "W_1").map(phi);
  return { hidden, fed: own.times(hidden, "W_2") };
};

// What an attention keeps of the tokens so far, [{j, …rows}, …]: all of them, or the first and the
// last ones. A window is a ring of the last rows; with `first` they are attention sinks and a ring.
const forget = (rows, { last, first }) => {
  if (last !== null && rows.length > last + first) rows.splice(first, 1);
};

const PARTS = {
  // what is added to the embedding of place i: (x, i) => x
  positions: {
    none: () => (x) => x,
    table: (_, own) => {
      const P = own.numbers("P");
      return (x, i) => x.map((y, c) => y + P[i * x.length + c]);
    },
    formula: (told) => {
      const p = formulaOf(told);
      return (x, i) => x.map((y, c) => y + told.scale * p(i, c));
    },
  },

  // what happens to queries and keys of place i, so many heads side by side: (x, i, heads) => x
  turns: {
    none: () => (x) => x,
    rope:
      ({ speeds, interpolate, length }) =>
      (x, i) => {
        const y = new Float64Array(x.length);
        for (let n = 0; n < x.length / 2; n++) {
          const m = n % speeds.length; // the pair's number in its head
          const angle = (i / interpolate) * speeds[m];
          const [cos, sin] = [length * Math.cos(angle), length * Math.sin(angle)];
          const [a, b] = [2 * n, 2 * n + 1];
          y[a] = x[a] * cos - x[b] * sin;
          y[b] = x[a] * sin + x[b] * cos;
        }
        return y;
      },
    // the last numbers of each head alone, as `of` turns them
    tail: ({ many, of }) => {
      const turn = partOf("turns", of);
      return (x, i, heads) => {
        const [y, wide] = [x.slice(), x.length / heads];
        for (let end = wide; end <= x.length; end += wide) {
          y.set(turn(x.subarray(end - many, end), i, 1), end - many);
        }
        return y;
      };
    },
  },

  // what is added to the score of query i and key j in head m: score(query, i, j, m), where `query`
  // is the head's part of the query; and to what the head finds, found(i, j) => a vector, if anything
  biases: {
    none: () => ({ score: () => 0 }),
    formula: ({ code, heads }) => {
      const of = heads.map((values) => formulaOf({ code, values }));
      return { score: (_, i, j, m) => of[m % of.length](i, j) };
    },
    shaw: ({ label, k, values }, own) => {
      const [nth, P_k, P_v] = [formulaOf(label), own.numbers("P_k"), own.numbers("P_v")];
      return {
        score: (query, i, j) => {
          const wide = query.length;
          return met(query, P_k, wide, 0, (nth(i, j) + k) * wide) / Math.sqrt(wide);
        },
        found: values
          ? (i, j) => {
              const wide = P_v.length / (2 * k + 1);
              const at = (nth(i, j) + k) * wide;
              return P_v.subarray(at, at + wide);
            }
          : undefined,
      };
    },
    t5: ({ buckets, many, scale }, own) => {
      const b = own.numbers("b"); // [head][bucket]; `buckets` has the bucket of each distance
      const nth = (n) => buckets[Math.min(n, buckets.length - 1)];
      return { score: (_, i, j, m) => scale * b[m * many + nth(i - j)] };
    },
  },

  // x => a row of a size that is easy to go on from
  norms: {
    none: () => (x) => x,
    rms:
      ({ eps }, own) =>
      (x) =>
        rescaled(x, own, eps),
    layer:
      ({ eps }, own) =>
      (x) => {
        const mean = tf.mean(x);
        return rescaled(
          x.map((y) => y - mean),
          own,
          eps,
        );
      },
  },

  // where the norm and the skip stand around a part F of the block: (x, F, norm) => x
  orders: {
    pre: () => (x, F, norm) => tf.plus(x, F(norm(x))),
    post: () => (x, F, norm) => norm(tf.plus(x, F(x))),
    none: () => (x, F) => tf.plus(x, F(x)),
  },

  // x => {hidden, fed}: the row between the two layers, and what is added to the stream
  feeds: {
    none: () => (x) => ({ hidden: new Float64Array(0), fed: new Float64Array(x.length) }),
    gelu: twoLayers((x) => x * normalBelow(x)),
    relu: twoLayers((x) => Math.max(0, x)),
    silu: twoLayers(silu),
    swiglu: (_, own) => (x) => {
      const gates = own.times(x, "W_1").map(silu);
      const hidden = own.times(x, "W_3").map((y, c) => y * gates[c]);
      return { hidden, fed: own.times(hidden, "W_2") };
    },
  },

  // how queries find values. `begin()` gives the state before the first token; `ask(state, row, i)`
  // takes {q, k, v} of token i and gives {q, k, out, A[head][j]}: q and k as they meet, the heads side
  // by side in a new row `out`, and A = [] where there are no weights; `kept(state)` says how many
  // numbers must be kept for the next token
  cores: {
    softmax: (told, own) => {
      const { h, h_kv, past, within } = told; // values may be the first numbers within the keys
      const may = told.masks.map(formulaOf);
      const [turn, bias] = [partOf("turns", told.turn), partOf("biases", told.bias, own)];
      return {
        begin: () => [],
        ask(rows, row, i) {
          const [q, k, v] = [turn(row.q, i, h), turn(row.k, i, h_kv), row.v];
          const [wide, deep] = [q.length / h, v.length / h_kv]; // of a key, and of a value
          rows.push({ j: i, k, v });
          const out = new Float64Array(h * deep);
          const A = tf.range(h, (m) => {
            const group = Math.floor((m * h_kv) / h); // whose keys and values it reads
            const query = q.subarray(m * wide, (m + 1) * wide);
            const seen = rows.filter(({ j }) => may[m % may.length](i, j));
            const scores = seen.map(
              ({ j, k }) =>
                met(query, k, wide, 0, group * wide) / Math.sqrt(wide) + bias.score(query, i, j, m),
            );
            const weights = new Float64Array(i + 1);
            tf.softmax(scores).forEach((a, n) => {
              const { j, v } = seen[n];
              const more = bias.found?.(i, j);
              weights[j] = a;
              for (let c = 0; c < deep; c++) {
                out[m * deep + c] += a * (v[group * deep + c] + (more ? more[c] : 0));
              }
            });
            return weights;
          });
          forget(rows, past);
          return { q, k, out, A };
        },
        kept: (rows) => tf.sum(rows.map(({ k, v }) => k.length + (within ? 0 : v.length))),
      };
    },
  },

  // the row {q, k, v} of a token that a core is asked with
  projections: {
    one:
      ({ d, h, h_kv }, own) =>
      (x) => {
        const qkv = own.times(x, "W_qkv");
        const both = d + (d / h) * h_kv;
        return { q: qkv.subarray(0, d), k: qkv.subarray(d, both), v: qkv.subarray(both) };
      },
  },

  // what the heads have found, and the token's row => what is added to the stream
  joins: {
    one: (_, own) => (out) => own.times(out, "W_o"),
  },

  // what mixes tokens: `begin` and `kept` as a core has them, and ask(state, x, i, off) => {q, k, v,
  // A, out, said}, where the heads that are `off` find nothing
  mixers: {
    attention: (told, own) => {
      const core = partOf("cores", told.core, own.inside("core"));
      const project = partOf("projections", told.projection, own);
      const join = partOf("joins", told.join, own);
      return {
        begin: core.begin,
        kept: core.kept,
        ask(state, x, i, off) {
          const row = project(x);
          const answer = core.ask(state, row, i);
          const wide = answer.out.length / told.h;
          for (const m of off) answer.out.fill(0, m * wide, (m + 1) * wide);
          return { ...row, ...answer, said: join(answer.out, x) };
        },
      };
    },
  },
};
