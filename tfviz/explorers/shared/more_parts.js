// Parts that fewer models have: a state in place of a cache, averages, latent attention. They join
// the tables of `parts.js`, which stands before this.

Object.assign(PARTS.cores, {
  // S = Σ φ(k)ᵀ v and u = Σ φ(k) of each head, in the place of keys and values; what the picture
  // of A needs besides is not kept by the model
  linear: ({ h, h_kv, eps, turn }) => {
    const turned = partOf("turns", turn);
    const phi = (x) => x.map((y) => (y > 0 ? y + 1 : Math.exp(y)));
    return {
      begin: () => ({ heads: undefined, keys: [] }),
      ask(state, row, i) {
        const [turnedQ, turnedK] = [turned(row.q, i, h), turned(row.k, i, h_kv)];
        const [q, k, v] = [phi(turnedQ), phi(turnedK), row.v];
        const [wide, deep] = [q.length / h, v.length / h_kv];
        state.heads ??= tf.range(h, () => ({
          S: new Float64Array(wide * deep),
          u: new Float64Array(wide),
        }));
        state.keys.push(k);
        const out = new Float64Array(h * deep);
        const A = state.heads.map(({ S, u }, m) => {
          const group = Math.floor((m * h_kv) / h);
          for (let c = 0; c < wide; c++) {
            const key = k[group * wide + c];
            u[c] += key;
            for (let e = 0; e < deep; e++) S[c * deep + e] += key * v[group * deep + e];
          }
          const total = met(q, u, wide, m * wide, 0);
          const share = total ? 1 / (total + eps) : 0;
          for (let c = 0; c < wide; c++) {
            for (let e = 0; e < deep; e++) {
              out[m * deep + e] += q[m * wide + c] * S[c * deep + e] * share;
            }
          }
          const weight = (j) => met(q, state.keys[j], wide, m * wide, group * wide) * share;
          return Float64Array.from({ length: i + 1 }, (_, j) => weight(j));
        });
        return { q: turnedQ, k: turnedK, out, A };
      },
      kept: ({ heads }) => tf.sum((heads ?? []).map(({ S, u }) => S.length + u.length)),
    };
  },

  // the gated delta rule: S fades by α, and what the key held gives way to the value by β; so do the
  // columns that would be S if one value alone were 1, of which the picture of A is made
  delta: ({ h, h_kv }) => ({
    begin: () => [],
    ask(heads, { q, k, v, alpha, beta }, i) {
      const [wide, deep] = [q.length / h, v.length / h_kv];
      const unit = (x, m) => {
        const part = x.subarray(m * wide, (m + 1) * wide);
        const long = Math.max(tf.norm(part), 1e-12);
        return part.map((y) => y / long);
      };
      const column = () => new Float64Array(wide);
      if (!i) heads.push(...tf.range(h, () => ({ S: tf.range(deep, column), columns: [] })));
      const out = new Float64Array(h * deep);
      const A = heads.map(({ S, columns }, m) => {
        const group = Math.floor((m * h_kv) / h);
        const [query, key] = [unit(q, m), unit(k, group)];
        const write = (x, value) => {
          const held = met(key, x, wide, 0, 0);
          for (let c = 0; c < wide; c++) {
            x[c] = alpha[m] * (x[c] - beta[m] * held * key[c]) + beta[m] * value * key[c];
          }
        };
        S.forEach((x, e) => {
          write(x, v[group * deep + e]);
          out[m * deep + e] = met(query, x, wide, 0, 0);
        });
        columns.push(column());
        columns.forEach((x, j) => write(x, Number(j === i)));
        return Float64Array.from(columns, (x) => met(query, x, wide, 0, 0));
      });
      return { q, k, out, A };
    },
    kept: (heads) => tf.sum(heads.map(({ S }) => tf.sum(S.map((x) => x.length)))),
  }),

  // the mean of all values so far, which is all that is kept
  average: ({ h, h_kv }) => ({
    begin: () => ({ mean: new Float64Array(0) }),
    ask(state, { q, k, v }, i) {
      const deep = v.length / h_kv;
      const before = state.mean;
      state.mean = Float64Array.from({ length: h * deep }, (_, n) => {
        const group = Math.floor((Math.floor(n / deep) * h_kv) / h);
        return (i * (before[n] ?? 0) + v[group * deep + (n % deep)]) / (i + 1);
      });
      const even = () => new Float64Array(i + 1).fill(1 / (i + 1));
      return { q, k, out: state.mean.slice(), A: tf.range(h, even) };
    },
    kept: ({ mean }) => mean.length,
  }),
});

Object.assign(PARTS.projections, {
  // and for each head how much of its state is left, α, and how much is written over, β
  gated: (told, attend) => {
    const own = attend.inside("project");
    const project = PARTS.projections.one(told, own);
    const [A, b_a] = [own.numbers("A"), own.numbers("b_a")];
    const softplus = (x) => (x > 20 ? x : Math.log1p(Math.exp(x)));
    return (x) => {
      const fading = own.times(x, "W_a").map((y, m) => Math.exp(A[m]) * softplus(y + b_a[m]));
      const alpha = fading.map((y) => Math.exp(-y));
      return { ...project(x), alpha, beta: own.times(x, "W_beta").map(sigmoid) };
    };
  },
  // latent attention: one key [note; turned part] for all heads, whose note is the value, and
  // queries that have come down to the notes
  latents: ({ h, d_head, d_c, d_r, noted, eps }, attend) => {
    const own = attend.inside("project");
    const norm = PARTS.norms.rms({ eps }, own.inside("norm"));
    const normQuery = PARTS.norms.rms({ eps }, own.inside("query_note.1"));
    const note = (x) => (noted ? normQuery(own.times(x, "query_note.0")) : x);
    const down = own.numbers("W_uk"); // [head][number of the head][number of the note]
    const wide = d_c + d_r;
    const longer = Math.sqrt(wide / (d_head + d_r));
    return (x) => {
      const asked = own.times(note(x), "W_q");
      const q = new Float64Array(h * wide);
      for (let m = 0; m < h; m++) {
        const at = m * (d_head + d_r);
        for (let c = 0; c < d_head; c++) {
          for (let e = 0; e < d_c; e++) {
            q[m * wide + e] += longer * asked[at + c] * down[(m * d_head + c) * d_c + e];
          }
        }
        for (let e = 0; e < d_r; e++) q[m * wide + d_c + e] = longer * asked[at + d_head + e];
      }
      const k = own.times(x, "W_kv");
      k.set(norm(k.subarray(0, d_c)));
      return { q, k, v: k.subarray(0, d_c) };
    };
  },
});

Object.assign(PARTS.joins, {
  // each head rescaled, and a gate of the token's row for each of its numbers
  gated: ({ h, eps }, attend) => {
    const own = attend.inside("join");
    const norm = PARTS.norms.rms({ eps }, own.inside("norm"));
    return (out, x) => {
      const [gates, wide] = [own.times(x, "W_z").map(silu), out.length / h];
      const y = new Float64Array(out.length);
      for (let at = 0; at < y.length; at += wide) y.set(norm(out.subarray(at, at + wide)), at);
      return own.times(
        y.map((z, c) => z * gates[c]),
        "W_o",
      );
    };
  },
  latents: ({ d_head, d_c }, attend) => {
    const own = attend.inside("join");
    const up = own.numbers("W_uv"); // [head][number of the head][number of the note]
    return (out) => {
      const of = (_, n) => met(out, up, d_c, Math.floor(n / d_head) * d_c, n * d_c);
      return own.times(Float64Array.from({ length: up.length / d_c }, of), "W_o");
    };
  },
});

Object.assign(PARTS.mixers, {
  // the mean of the rows so far, as one head, through `feed`, and gates between it and the row
  average: (told, own) => {
    const core = PARTS.cores.average({ h: 1, h_kv: 1 });
    const feed = told.feed && partOf("feeds", told.feed, own.inside("feed"));
    return {
      begin: core.begin,
      kept: core.kept,
      ask(state, x, i, off) {
        const { out, A } = core.ask(state, { q: x, k: x, v: x }, i);
        if (off.length) out.fill(0);
        const g = feed ? feed(out).fed : out;
        const parts = { q: x, k: x, v: x, out, A };
        if (!told.gated) return { ...parts, said: g };
        const both = new Float64Array(2 * x.length);
        both.set(x);
        both.set(g, x.length);
        const gates = own.times(both, "gates").map(sigmoid);
        return { ...parts, said: x.map((y, c) => gates[c] * y + gates[x.length + c] * g[c]) };
      },
    };
  },
});
