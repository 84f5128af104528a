// Mathematics that no formula of the library can give to the page, each written once and proven
// against torch by the tests. A matrix is a Float64Array of rows; weights are [in][out].

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const range = (n, of = (k) => k) => Array.from({ length: n }, (_, k) => of(k));
const sum = (xs) => xs.reduce((all, x) => all + x, 0);
const dot = (a, b) => a.reduce((all, x, k) => all + x * b[k], 0);
const norm = (xs) => Math.sqrt(xs.reduce((all, x) => all + x * x, 0));
const rms = (xs) => norm(xs) / Math.sqrt(xs.length);
const plus = (a, b) => a.map((x, k) => x + b[k]);
const mean = (xs) => sum(xs) / xs.length;
const best = (xs) => xs.reduce((top, x, k) => (x > xs[top] ? k : top), 0); // the first of the largest
const entropy = (ps) => -sum(ps.map((p) => (p > 0 ? p * Math.log(p) : 0))); // in nats

// A function that remembers its last results, by its arguments (numbers and words).
function keep(of, most = 40) {
  const known = new Map();
  return (...args) => {
    const key = args.join("|");
    if (!known.has(key)) {
      if (known.size >= most) known.clear();
      known.set(key, of(...args));
    }
    return known.get(key);
  };
}

// Points of a circle's arc, angles counter-clockwise from the right.
const arc = (x, y, r, from = 0, to = 2 * Math.PI, many = 32) =>
  range(many + 1, (k) => {
    const angle = from + ((to - from) * k) / many;
    return [x + r * Math.cos(angle), y + r * Math.sin(angle)];
  });

// The corners of a box.
const box = (left, right, low, high) => [
  [left, low],
  [right, low],
  [right, high],
  [left, high],
];

// Convex hull of points in the plane, counter-clockwise (Andrew's monotone chain).
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const p of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), p) <= 0) chain.pop();
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

// Weights that sum to one, for scores of any size.
function softmax(scores) {
  const most = Math.max(...scores);
  const loud = scores.map((s) => Math.exp(s - most));
  const all = sum(loud);
  return loud.map((x) => x / all);
}

// Numbers of mean 0 and variance 1 by their place (mulberry32), as the library makes them too.
function uniforms(seed, count) {
  const out = new Float64Array(count);
  const start = Math.imul(seed, 0x9e3779b1);
  for (let k = 0; k < count; k++) {
    let x = (start + Math.imul(k + 1, 0x6d2b79f5)) | 0;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    out[k] = (((x ^ (x >>> 14)) >>> 0) / 4294967296 - 0.5) * Math.sqrt(12);
  }
  return out;
}

// A (m, n) times B (n, p); with `left` Aᵀ B for A (n, m), with `right` A Bᵀ for B (p, n). Two rows
// and four columns at a time: a number that is read serves twice or more, and no sum waits for
// another. At the edge the last row or column is computed again, and not written.
function product(A, B, m, n, p, { left = false, right = false } = {}) {
  const [ai, ak] = left ? [1, m] : [n, 1];
  const [bj, bk] = right ? [n, 1] : [1, p];
  const C = new Float64Array(m * p);
  for (let i = 0; i < m; i += 2) {
    const down = i + 1 < m ? ai : 0;
    for (let j = 0; j < p; j += 4) {
      const one = j + 1 < p ? bj : 0;
      const two = j + 2 < p ? 2 * bj : 0;
      const three = j + 3 < p ? 3 * bj : 0;
      let c0 = 0,
        c1 = 0,
        c2 = 0,
        c3 = 0,
        d0 = 0,
        d1 = 0,
        d2 = 0,
        d3 = 0;
      for (let k = 0, a = i * ai, b = j * bj; k < n; k++, a += ak, b += bk) {
        const x = A[a];
        const y = A[a + down];
        const u = B[b];
        const v = B[b + one];
        const w = B[b + two];
        const z = B[b + three];
        c0 += x * u;
        c1 += x * v;
        c2 += x * w;
        c3 += x * z;
        d0 += y * u;
        d1 += y * v;
        d2 += y * w;
        d3 += y * z;
      }
      const at = i * p + j;
      C[at] = c0;
      if (one) C[at + 1] = c1;
      if (two) C[at + 2] = c2;
      if (three) C[at + 3] = c3;
      if (!down) continue;
      C[at + p] = d0;
      if (one) C[at + p + 1] = d1;
      if (two) C[at + p + 2] = d2;
      if (three) C[at + p + 3] = d3;
    }
  }
  return C;
}

// --- modules with their gradients: {Y, back(dY) -> dX}, for L rows of d numbers

// Each row to mean square 1.
function rmsNorm(X, L, d, eps = 1e-5) {
  const Y = new Float64Array(L * d);
  const root = new Float64Array(L);
  for (let i = 0; i < L; i++) {
    let square = 0;
    for (let c = 0; c < d; c++) square += X[i * d + c] ** 2 / d;
    root[i] = Math.sqrt(square + eps);
    for (let c = 0; c < d; c++) Y[i * d + c] = X[i * d + c] / root[i];
  }
  const back = (dY) => {
    // (dY − x̂ times the mean of dY x̂)/root
    const dX = new Float64Array(L * d);
    for (let i = 0; i < L; i++) {
      let along = 0;
      for (let c = 0; c < d; c++) along += (dY[i * d + c] * Y[i * d + c]) / d;
      for (let c = 0; c < d; c++) dX[i * d + c] = (dY[i * d + c] - Y[i * d + c] * along) / root[i];
    }
    return dX;
  };
  return { Y, back };
}

// Each row less its mean.
function centred(X, L, d) {
  const Y = new Float64Array(L * d);
  for (let i = 0; i < L; i++) {
    let mean = 0;
    for (let c = 0; c < d; c++) mean += X[i * d + c] / d;
    for (let c = 0; c < d; c++) Y[i * d + c] = X[i * d + c] - mean;
  }
  return Y;
}

// Each row to mean 0 and variance 1.
function layerNorm(X, L, d, eps = 1e-5) {
  const { Y, back } = rmsNorm(centred(X, L, d), L, d, eps);
  return { Y, back: (dY) => centred(back(dY), L, d) };
}

// Self-attention with one head; W = {q, k, v, o}, each (d, d).
function selfAttention(X, W, L, d) {
  const [Q, K, V] = [W.q, W.k, W.v].map((M) => product(X, M, L, d, d));
  const root = Math.sqrt(d);
  const A = product(Q, K, L, d, L, { right: true });
  for (let i = 0; i < L; i++) {
    A.set(softmax(A.subarray(i * L, (i + 1) * L).map((s) => s / root)), i * L);
  }
  const Z = product(A, V, L, L, d);
  const back = (dY) => {
    const dZ = product(dY, W.o, L, d, d, { right: true });
    const dV = product(A, dZ, L, L, d, { left: true });
    const dS = product(dZ, V, L, d, L, { right: true });
    for (let i = 0; i < L; i++) {
      // a (da − Σ a da)
      let mean = 0;
      for (let j = 0; j < L; j++) mean += A[i * L + j] * dS[i * L + j];
      for (let j = 0; j < L; j++) dS[i * L + j] = (A[i * L + j] * (dS[i * L + j] - mean)) / root;
    }
    const dQ = product(dS, K, L, L, d);
    const dK = product(dS, Q, L, L, d, { left: true });
    const [a, b, c] = [
      [dQ, W.q],
      [dK, W.k],
      [dV, W.v],
    ].map(([dM, M]) => product(dM, M, L, d, d, { right: true }));
    return plus(plus(a, b), c);
  };
  return { Y: product(Z, W.o, L, d, d), A, back };
}

// ReLU between two matrices; W = {up (d, 4d), down (4d, d)}. `back` notes ‖∂/∂down‖ as .weights.
function feedForward(X, W, L, d) {
  const H = product(X, W.up, L, d, 4 * d).map((h) => Math.max(0, h));
  const layer = { Y: product(H, W.down, L, 4 * d, d), weights: undefined, back: undefined };
  layer.back = (dY) => {
    layer.weights = norm(product(H, dY, 4 * d, L, d, { left: true }));
    const dH = product(dY, W.down, L, d, 4 * d, { right: true });
    for (let k = 0; k < dH.length; k++) if (!(H[k] > 0)) dH[k] = 0;
    return product(dH, W.up, L, 4 * d, d, { right: true });
  };
  return layer;
}

// A gate: silu of one product times another; W = {gate (d, n), up (d, n), down (n, d)}. `back` notes
// ‖∂/∂down‖ as .weights.
function gatedFeedForward(X, W, L, d) {
  const n = W.down.length / d;
  const G = product(X, W.gate, L, d, n);
  const U = product(X, W.up, L, d, n);
  const open = G.map((g) => 1 / (1 + Math.exp(-g)));
  const H = G.map((g, k) => g * open[k] * U[k]);
  const layer = { Y: product(H, W.down, L, n, d), weights: undefined, back: undefined };
  layer.back = (dY) => {
    layer.weights = norm(product(H, dY, n, L, d, { left: true }));
    const dH = product(dY, W.down, L, d, n, { right: true });
    const dU = dH.map((x, k) => x * G[k] * open[k]);
    const dG = dH.map((x, k) => x * U[k] * open[k] * (1 + G[k] * (1 - open[k])));
    const [gate, up] = [
      [dG, W.gate],
      [dU, W.up],
    ].map(([dM, M]) => product(dM, M, L, n, d, { right: true }));
    return plus(gate, up);
  };
  return layer;
}

// One module in its place: where the normalisation stands, and whether there is a skip.
function placed(X, F, { order, skips, normalise }, L, d) {
  const same = { Y: X, back: (dX) => dX };
  const before = order === "pre" ? normalise(X, L, d) : same;
  const inner = F(before.Y);
  const sum = skips ? plus(X, inner.Y) : inner.Y;
  const after = order === "post" ? normalise(sum, L, d) : { ...same, Y: sum };
  const back = (dY) => {
    const dSum = after.back(dY);
    const dX = before.back(inner.back(dSum));
    return skips ? plus(dSum, dX) : dX;
  };
  return { Y: after.Y, back, inner };
}

// Blocks of both modules, one after the other: X before each and after the last, and the modules. What
// was `made` of the lower blocks is not made again. No block follows a stream beyond `least` or `most`.
function blockStack(X, blocks, place, L, d, [least, most], made = { states: [X], layers: [] }) {
  const { states, layers } = made;
  for (const W of blocks.slice(layers.length)) {
    const size = rms(states.at(-1));
    if (size < least || size > most) break;
    const think = W.gate ? gatedFeedForward : feedForward;
    const attend = placed(states.at(-1), (x) => selfAttention(x, W, L, d), place, L, d);
    const feed = placed(attend.Y, (x) => think(x, W, L, d), place, L, d);
    states.push(feed.Y);
    layers.push([attend, feed]);
  }
  const N = blocks.length;
  return { states: states.slice(0, N + 1), layers: layers.slice(0, N) };
}

// --- byte-pair merges: all states from no merge to the last, for rows of tokens below 256.
// Pairs [u, w, how often] stand by how often they occur, then by their numbers; the first is merged next.
function bytePairs(rows, most) {
  const ranked = () => {
    const counts = new Map();
    for (const row of rows) {
      for (let k = 1; k < row.length; k++) {
        const key = row[k - 1] * 65536 + row[k];
        counts.set(key, (counts.get(key) || 0) + 1);
      }
    }
    return [...counts]
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .map(
        ([key, often]) =>
          /** @type {[number, number, number]} */ ([Math.floor(key / 65536), key % 65536, often]),
      );
  };
  const merged = (row, [u, w, _], pair) => {
    const out = [];
    for (const token of row) {
      if (out.length && out.at(-1) === u && token === w) out[out.length - 1] = pair;
      else out.push(token);
    }
    return out;
  };
  const steps = [{ rows, pairs: ranked(), merge: null }];
  while (steps.length <= most && steps.at(-1).pairs.length) {
    const merge = steps.at(-1).pairs[0];
    const pair = 255 + steps.length; // its number
    rows = rows.map((row) => merged(row, merge, pair));
    steps.push({ rows, pairs: ranked(), merge });
  }
  return steps;
}

// --- singular values

// A (m, n) = U diag(S) Vᵀ with r = min(m, n) columns in U (m, r) and V (n, r), S falling. One-sided
// Jacobi: pairs of columns are turned in their plane until all are orthogonal; their lengths are S.
// The number of U's column that is largest in magnitude is positive. Where S is 0 so is the column of
// U, or of V where m < n. Throws an Error for what is not finite.
function svd(A, m, n) {
  const strange = A.findIndex((x) => !Number.isFinite(x));
  if (A.length !== m * n) throw new Error(`svd of ${A.length} numbers as ${m} × ${n}`);
  if (strange >= 0) {
    const place = `[${Math.floor(strange / n)}, ${strange % n}]`;
    throw new Error(`svd: the number at ${place} is ${A[strange]}; all must be finite`);
  }
  if (m < n) {
    const transposed = Float64Array.from(
      { length: m * n },
      (_, k) => A[(k % m) * n + Math.floor(k / m)],
    );
    const { U, S, V } = svd(transposed, n, m);
    return signed({ U: V, S, V: U }, m, n);
  }
  const largest = A.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1; // no square overflows
  const columns = range(n, (c) =>
    Float64Array.from({ length: m }, (_, r) => A[r * n + c] / largest),
  );
  const turns = range(n, (c) => Float64Array.from({ length: n }, (_, r) => Number(r === c)));
  const turn = (a, b, cosine, sine) => {
    for (let k = 0; k < a.length; k++) {
      [a[k], b[k]] = [cosine * a[k] - sine * b[k], sine * a[k] + cosine * b[k]];
    }
  };
  const rounding = m * 2.3e-16; // what a dot product of m numbers may be off by
  let turned = true;
  for (let sweep = 0; turned && sweep < 60; sweep++) {
    turned = false;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const [a, b] = [columns[p], columns[q]];
        const [aa, bb, ab] = [dot(a, a), dot(b, b), dot(a, b)];
        if (Math.abs(ab) <= rounding * Math.sqrt(aa * bb)) continue; // orthogonal already
        turned = true;
        const zeta = (bb - aa) / (2 * ab);
        const tangent = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
        const cosine = 1 / Math.sqrt(1 + tangent * tangent);
        turn(a, b, cosine, cosine * tangent);
        turn(turns[p], turns[q], cosine, cosine * tangent);
      }
    }
  }
  const exact = columns.map(norm);
  const least = rounding * n * Math.max(...exact); // below it a length is rounding, and counts as 0
  const lengths = exact.map((length) => (length > least ? length : 0));
  const order = range(n).sort((p, q) => lengths[q] - lengths[p] || p - q);
  const U = new Float64Array(m * n);
  const V = new Float64Array(n * n);
  order.forEach((c, place) => {
    for (let r = 0; r < m; r++) U[r * n + place] = lengths[c] ? columns[c][r] / lengths[c] : 0;
    for (let r = 0; r < n; r++) V[r * n + place] = turns[c][r];
  });
  const S = Float64Array.from(order, (c) => lengths[c] * largest);
  return signed({ U, S, V }, m, n);
}

// The same with the largest number of each of U's columns positive: signs are a matter of choice.
function signed({ U, S, V }, m, n) {
  const r = S.length;
  for (let c = 0; c < r; c++) {
    const top = best(range(m, (row) => Math.abs(U[row * r + c])));
    if (U[top * r + c] >= 0) continue;
    for (let row = 0; row < m; row++) U[row * r + c] *= -1;
    for (let row = 0; row < n; row++) V[row * r + c] *= -1;
  }
  return { U, S, V };
}
