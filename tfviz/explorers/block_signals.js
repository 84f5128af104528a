// A stack of blocks with random weights, forwards and backwards: one head, ReLU, no biases.
// Rows of L tokens lie one after the other in Float64Arrays; a matrix is [in][out].

const EPS = 1e-5;

// Numbers of mean 0 and variance 1 by their place (mulberry32).
function uniforms(seed, count) {
  const out = new Float64Array(count), start = Math.imul(seed, 0x9e3779b1);
  for (let k = 0; k < count; k++) {
    let x = (start + Math.imul(k + 1, 0x6d2b79f5)) | 0;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    out[k] = (((x ^ (x >>> 14)) >>> 0) / 4294967296 - 0.5) * Math.sqrt(12);
  }
  return out;
}

// A (m, n) times B (n, p); with `left` Aᵀ B for A (n, m), with `right` A Bᵀ for B (p, n).
function product(A, B, m, n, p, { left = false, right = false } = {}) {
  const C = new Float64Array(m * p);
  for (let i = 0; i < m; i++) for (let k = 0; k < n; k++) {
    const a = left ? A[k * m + i] : A[i * n + k];
    if (a === 0) continue;
    if (right) for (let j = 0; j < p; j++) C[i * p + j] += a * B[j * n + k];
    else for (let j = 0; j < p; j++) C[i * p + j] += a * B[k * p + j];
  }
  return C;
}
const plus = (A, B) => A.map((a, k) => a + B[k]);
const rms = (A) => Math.sqrt(A.reduce((sum, a) => sum + a * a, 0) / A.length);
const norm = (A) => Math.sqrt(A.reduce((sum, a) => sum + a * a, 0));

function layerNorm(X, L, d) {
  const Y = new Float64Array(L * d), sigma = new Float64Array(L);
  for (let i = 0; i < L; i++) {
    let mean = 0, square = 0;
    for (let c = 0; c < d; c++) mean += X[i * d + c] / d;
    for (let c = 0; c < d; c++) square += (X[i * d + c] - mean) ** 2 / d;
    sigma[i] = Math.sqrt(square + EPS);
    for (let c = 0; c < d; c++) Y[i * d + c] = (X[i * d + c] - mean) / sigma[i];
  }
  return { Y, back: (dY) => { // (dY − its mean − x̂ times the mean of dY x̂)/σ
    const dX = new Float64Array(L * d);
    for (let i = 0; i < L; i++) {
      let mean = 0, along = 0;
      for (let c = 0; c < d; c++) { mean += dY[i * d + c] / d; along += (dY[i * d + c] * Y[i * d + c]) / d; }
      for (let c = 0; c < d; c++) dX[i * d + c] = (dY[i * d + c] - mean - Y[i * d + c] * along) / sigma[i];
    }
    return dX;
  } };
}

function attend(X, W, L, d) {
  const [Q, K, V] = [W.q, W.k, W.v].map((M) => product(X, M, L, d, d)), root = Math.sqrt(d);
  const A = product(Q, K, L, d, L, { right: true });
  for (let i = 0; i < L; i++) {
    let most = -Infinity, sum = 0;
    for (let j = 0; j < L; j++) most = Math.max(most, A[i * L + j]);
    for (let j = 0; j < L; j++) sum += A[i * L + j] = Math.exp((A[i * L + j] - most) / root);
    for (let j = 0; j < L; j++) A[i * L + j] /= sum;
  }
  const Z = product(A, V, L, L, d);
  return { Y: product(Z, W.o, L, d, d), back: (dY) => {
    const dZ = product(dY, W.o, L, d, d, { right: true });
    const dV = product(A, dZ, L, L, d, { left: true }), dS = product(dZ, V, L, d, L, { right: true });
    for (let i = 0; i < L; i++) { // a (da − Σ a da)
      let mean = 0;
      for (let j = 0; j < L; j++) mean += A[i * L + j] * dS[i * L + j];
      for (let j = 0; j < L; j++) dS[i * L + j] = (A[i * L + j] * (dS[i * L + j] - mean)) / root;
    }
    const dQ = product(dS, K, L, L, d), dK = product(dS, Q, L, L, d, { left: true });
    return [[dQ, W.q], [dK, W.k], [dV, W.v]].map(([dM, M]) => product(dM, M, L, d, d, { right: true })).reduce(plus);
  } };
}

function feed(X, W, L, d) {
  const H = product(X, W.up, L, d, 4 * d).map((h) => Math.max(0, h));
  const made = { Y: product(H, W.down, L, 4 * d, d), back: (dY) => {
    made.weights = norm(product(H, dY, 4 * d, L, d, { left: true }));
    const dH = product(dY, W.down, L, d, 4 * d, { right: true }).map((g, k) => (H[k] > 0 ? g : 0));
    return product(dH, W.up, L, 4 * d, d, { right: true });
  } };
  return made;
}

// One module in its place: where the normalisation stands, and whether there is a skip.
function placed(X, F, order, skips, L, d) {
  const before = order === "pre" ? layerNorm(X, L, d) : { Y: X, back: (dX) => dX };
  const made = F(before.Y), sum = skips ? plus(X, made.Y) : made.Y;
  const after = order === "post" ? layerNorm(sum, L, d) : { Y: sum, back: (dX) => dX };
  return { Y: after.Y, back: (dY) => {
    const dSum = after.back(dY), dX = before.back(made.back(dSum));
    return skips ? plus(dSum, dX) : dX;
  }, made };
}

let kept = { key: "" };
function numbers(seed, gain, N, L, d) { // X, G and the weights of N blocks
  const key = [seed, gain, N].join();
  if (kept.key === key) return kept;
  const all = uniforms(seed, 2 * L * d + N * 12 * d * d);
  let at = 0;
  const take = (count, scale = 1) => all.slice(at, (at += count)).map((x) => x * scale);
  const [X, G] = [take(L * d), take(L * d)], one = gain / Math.sqrt(d);
  const blocks = Array.from({ length: N }, () => ({
    q: take(d * d, one), k: take(d * d, one), v: take(d * d, one), o: take(d * d, one),
    up: take(4 * d * d, one), down: take(4 * d * d, one / 2),
  }));
  return (kept = { key, X, G, blocks });
}

function signals(seed, gain, N, order, skips) {
  const { d, L } = tf.data, { X, G, blocks } = numbers(seed, gain, N, L, d);
  const layers = [], stream = [rms(X)];
  let state = X;
  for (const W of blocks) {
    for (const F of [(X) => attend(X, W, L, d), (X) => feed(X, W, L, d)]) {
      layers.push(placed(state, F, order, skips, L, d));
      state = layers.at(-1).Y;
    }
    stream.push(rms(state));
  }
  let slope = order === "post" ? G : layerNorm(state, L, d).back(G);
  const gradient = [rms(slope)], weights = [];
  for (let n = layers.length - 1; n >= 0; n--) {
    slope = layers[n].back(slope);
    if (n % 2) weights.unshift(layers[n].made.weights);
    else gradient.unshift(rms(slope));
  }
  return { stream, gradient, weights };
}

const NAMES = { pre: "pre-norm", post: "post-norm", none: "no norm" };
const WHAT = { gradient: "gradient that reaches each layer", stream: "size of the stream at each layer", weights: "gradient of W₂ in each block" };
const digits = (x) => (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5) ? x.toExponential(1).replace("e+", "e").replace("-", "−") : tf.sig(x));

export default tf.explorer({
  setup(app) {
    const title = tf.el("p", { className: "bs-title" });
    app.picture.append(title);
    const picture = app.canvas(app.picture, { label: "", height: (w) => tf.clamp(w * 0.72, 260, 340), keys: true });
    app.knob("show");
    app.knob("order");
    app.knob("skips");
    app.knob("depth");
    app.knob("gain", { format: (x) => x.toFixed(1) });
    app.knob("seed");
    const first = app.readout("at the first layer"), last = app.readout("at the last layer"), ratio = app.readout("first : last"), size = app.readout("stream at the end");

    picture.canvas.addEventListener("keydown", (event) => {
      const N = app.get("depth");
      const to = { ArrowLeft: N - 1, ArrowDown: N - 1, ArrowRight: N + 1, ArrowUp: N + 1, PageDown: N - 6, PageUp: N + 6, Home: 1, End: tf.declared.knobs.depth.high }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      app.set("depth", tf.clamp(to, 1, tf.declared.knobs.depth.high));
    });

    function draw(lines, show, N) {
      const { ctx, width, height } = picture.begin(), c = app.colours;
      const [left, right, top, bottom] = [50, 74, 10, 36];
      const tiny = 1e-30, log = (v) => Math.log10(Math.max(v, tiny));
      const all = lines.flatMap((line) => line.values.map(log));
      let [low, high] = [Math.min(...all), Math.max(...all)];
      const pad = Math.max(0.15, (high - low) * 0.06);
      [low, high] = show === "weights" ? [low - pad, high + pad] : [Math.min(low - pad, -0.35), Math.max(high + pad, 0.35)]; // with 1 in sight
      const begin = show === "weights" ? 1 : 0, end = Math.max(N, begin + 1);
      const x = (n) => left + ((width - left - right) * (n - begin)) / (end - begin);
      const y = (v) => height - bottom - ((height - top - bottom) * (v - low)) / (high - low);
      ctx.font = `11px ${app.font}`;
      ctx.textBaseline = "middle";
      ctx.lineWidth = 1;
      const every = Math.max(1, Math.ceil((high - low) / 6)), ticks = [];
      for (let e = Math.ceil(low); e <= high; e++) if (e % every === 0) ticks.push([e, 10 ** e]);
      if (high - low < 2.2) for (let e = Math.floor(low); e <= high; e++) for (const m of [2, 5]) ticks.push([e + Math.log10(m), m * 10 ** e]);
      ctx.textAlign = "right";
      for (const [at, value] of ticks) {
        if (at < low || at > high) continue;
        ctx.strokeStyle = tf.mix(c.page, c.grid, 0.7);
        ctx.beginPath(); ctx.moveTo(left, y(at)); ctx.lineTo(width - right, y(at)); ctx.stroke();
        ctx.fillStyle = c.muted;
        ctx.fillText(Number.isInteger(at) && Math.abs(at) > 3 ? value.toExponential(0).replace("e+", "e").replace("-", "−") : String(Number(value.toPrecision(1))), left - 6, y(at));
      }
      ctx.textAlign = "center";
      const step = N > 12 ? 4 : N > 6 ? 2 : 1;
      for (let n = begin; n <= N; n++) if (n === begin || n % step === 0) ctx.fillText(String(n), x(n), height - bottom + 13);
      ctx.fillText(show === "weights" ? "block" : "after block (0 = the input)", (left + width - right) / 2, height - 7);
      const ends = lines.map((line, n) => [y(log(line.values.at(-1))), n]).sort((a, b) => a[0] - b[0]);
      for (let k = 1; k < ends.length; k++) ends[k][0] = Math.max(ends[k][0], ends[k - 1][0] + 14);
      const over = ends.at(-1)[0] - (height - bottom);
      if (over > 0) for (let k = ends.length - 1, floor = height - bottom; k >= 0; k--) { ends[k][0] = Math.min(ends[k][0], floor); floor = ends[k][0] - 14; }
      for (const [place, n] of ends) {
        const { values, mine, name, dash } = lines[n];
        ctx.strokeStyle = ctx.fillStyle = mine ? c.attention : c.muted;
        ctx.lineWidth = mine ? 2.5 : 1.5;
        ctx.setLineDash(mine ? [] : dash);
        ctx.beginPath();
        values.forEach((v, k) => (k ? ctx.lineTo(x(begin + k), y(log(v))) : ctx.moveTo(x(begin), y(log(v)))));
        ctx.stroke();
        ctx.setLineDash([]);
        if (mine) values.forEach((v, k) => { ctx.beginPath(); ctx.arc(x(begin + k), y(log(v)), 3.5, 0, 2 * Math.PI); ctx.fill(); });
        ctx.textAlign = "left";
        ctx.font = `${mine ? "600 " : ""}11px ${app.font}`;
        ctx.fillText(name, width - right + 8, place);
      }
    }

    return {
      draw() {
        const [N, order, skips, gain, seed, show] = ["depth", "order", "skips", "gain", "seed", "show"].map((key) => app.get(key));
        const found = signals(seed, gain, N, order, skips);
        const others = Object.keys(NAMES).filter((name) => name !== order);
        const lines = others.map((name, n) => ({ name: NAMES[name], values: signals(seed, gain, N, name, skips)[show], dash: [[5, 3], [2, 3]][n] }));
        const values = found[show];
        lines.push({ name: NAMES[order], values, mine: true });
        title.textContent = `${WHAT[show]}, log scale${skips ? "" : ", without skips"}`;
        draw(lines, show, N);
        first(digits(values[0]));
        last(digits(values.at(-1)));
        ratio(digits(values[0] / values.at(-1)));
        size(digits(found.stream.at(-1)));
        app.root.dataset.signals = JSON.stringify(found);
        const words = `${NAMES[order]}, ${skips ? "with" : "without"} skips, ${N} block${N > 1 ? "s" : ""}: ${WHAT[show]} is ${digits(values[0])} at the first and ${digits(values.at(-1))} at the last`;
        picture.label(`${words}; dashed for comparison: ${others.map((name) => NAMES[name]).join(" and ")}. Arrow keys change the number of blocks`);
        app.say(`${words}.`);
      },
    };
  },
});
