// A Vision Transformer in the page: pre-norm blocks over all patches and the class token at once, GELU.

const { model: MODEL, shown: SHOWN, begin: BEGIN } = tf.data;
const { d, h, layers, patch: P, levels: LEVELS } = MODEL;
const SIDE = 8;
const ACROSS = SIDE / P;
const N = ACROSS * ACROSS;
const DIGITS = 10;
const wide = d / h;

// Weights by their names, once.
const weightsOf = tf.keep((text) => {
  const numbers = halves(text);
  const W = {};
  let at = 0;
  for (const [name, size] of MODEL.shapes) {
    W[name] = numbers.subarray(at, at + size);
    at += size;
  }
  return W;
});

// Rows X (L × the width of the matrix) times a matrix, plus its bias.
function affine(X, W, name, L) {
  const bias = W[`${name}.bias`];
  const p = bias.length;
  const Y = tf.product(X, W[`${name}.weight`], L, X.length / L, p, { right: true });
  return Y.map((y, k) => y + bias[k % p]);
}
function normed(X, W, name, L) {
  const [scale, shift] = [W[`${name}.weight`], W[`${name}.bias`]];
  return tf.layerNorm(X, L, d).Y.map((y, k) => y * scale[k % d] + shift[k % d]);
}
// What each head finds, side by side, times W^o; and the first row of each map.
function attend(X, W, name, L) {
  const qkv = affine(X, W, `${name}.W_qkv`, L);
  const row = (i, part, m) => {
    const start = i * 3 * d + part * d + m * wide;
    return qkv.subarray(start, start + wide);
  };
  const Z = new Float64Array(L * d);
  const ofClass = tf.range(h, (m) => {
    const rows = tf.range(L, (i) =>
      tf.softmax(tf.range(L, (j) => tf.dot(row(i, 0, m), row(j, 1, m)) / Math.sqrt(wide))),
    );
    rows.forEach((weights, i) => {
      for (let j = 0; j < L; j++) {
        const value = row(j, 2, m);
        for (let c = 0; c < wide; c++) Z[i * d + m * wide + c] += weights[j] * value[c];
      }
    });
    return rows[0];
  });
  return { Y: affine(Z, W, `${name}.W_o`, L), ofClass };
}

// Pixels → the shares of the ten digits, and by block and head what the class token gives each patch.
const read = tf.keep((...pixels) => {
  const W = weightsOf(MODEL.weights);
  const cut = tf.range(N * P * P, (k) => {
    const [n, inside] = [Math.floor(k / (P * P)), k % (P * P)];
    const y = Math.floor(n / ACROSS) * P + Math.floor(inside / P);
    return pixels[y * SIDE + (n % ACROSS) * P + (inside % P)] / LEVELS;
  });
  const L = N + 1;
  const tokens = [...W.token, ...affine(Float64Array.from(cut), W, "embed", N)];
  let X = Float64Array.from(tokens, (x, k) => x + W["positions.P"][k]);
  const seen = tf.range(layers, (n) => {
    const block = `stack.blocks.${n}`;
    const { Y, ofClass } = attend(normed(X, W, `${block}.norms.0`, L), W, `${block}.attend`, L);
    X = tf.plus(X, Y);
    const inner = affine(normed(X, W, `${block}.norms.1`, L), W, `${block}.feed.W_1`, L);
    const loud = inner.map((x) => x * normalBelow(x));
    X = tf.plus(X, affine(loud, W, `${block}.feed.W_2`, L));
    return ofClass.map((weights) => Array.from(weights).slice(1));
  });
  const first = normed(X.subarray(0, d), W, "stack.norm", 1);
  return { shares: tf.softmax(affine(first, W, "classify", 1)), seen };
});

const article = (digit) => `${digit === 8 ? "an" : "a"} ${digit}`;
const likeliest = (shares) => shares.indexOf(Math.max(...shares));
const without = (drawing, gone) =>
  drawing.map((x, k) => {
    const n = Math.floor(Math.floor(k / SIDE) / P) * ACROSS + Math.floor((k % SIDE) / P);
    return gone.includes(n) ? 0 : x;
  });
const frame = (n, look) => {
  const [y, x] = [Math.floor(n / ACROSS) * P, (n % ACROSS) * P];
  return { from: [y, x], to: [y + P - 1, x + P - 1], ...look };
};
const GONE = [9]; // the left side of the lower loop of the eight

export default tf.explorer({
  numbers({ drawing, block, head }) {
    const { shares, seen } = read(...drawing);
    const heads = seen[block];
    const weights = heads[0].map((_, n) =>
      head === "mean" ? tf.mean(heads.map((one) => one[n])) : heads[Number(head)][n],
    );
    return {
      shares: Array.from(shares),
      weights: tf.range(ACROSS, (y) => weights.slice(y * ACROSS, (y + 1) * ACROSS)),
    };
  },
  fit(values) {
    const { drawing } = values;
    const fine = (x) => Number.isInteger(x) && x >= 0 && x <= LEVELS;
    if (!drawing || (drawing.length === SIDE * SIDE && drawing.every(fine))) return values;
    const { drawing: _, ...rest } = values;
    return rest;
  },
  setup(app) {
    let cursor = [0, 0]; // where the next key paints
    let full = true; // whether this stroke paints or rubs out
    const moved = (...cell) => {
      cursor = cell;
      app.redraw("cursor");
    };
    const paint = (i, j, begun) => {
      const drawing = [...app.get("drawing")];
      const k = i * SIDE + j;
      if (begun) full = drawing[k] < LEVELS / 2;
      drawing[k] = full ? LEVELS : 0;
      moved(i, j);
      app.set({ drawing });
    };
    const sides = app.split("1fr 1fr");
    const size = { bare: true, tall: 230, into: sides };
    const canvas = app.matrix({ paint, move: moved, paints: "drawing", ...size });
    const attention = app.matrix({ most: 60, ...size });
    const bars = app.plane({ height: () => 190 });
    app.knob("block");
    app.knob("head", { as: "select" });
    const { drawing: begin } = app.first;
    const asked = String(begin) === String(SHOWN[BEGIN]);
    const question = app.ask(
      asked && {
        name: "rubbed-out",
        question: `The model reads ${article(BEGIN)}. Rub out the framed patch, the left side of the lower loop: which digit does it read then?`,
        about: bars,
        ghost: {
          first: BEGIN,
          at: (digit) => [digit, 0.5],
          to: (x) => tf.clamp(Math.round(x), 0, DIGITS - 1),
          label: "the digit that it reads",
        },
        format: article,
        locks: ["drawing"],
        truth: ({ shares }) => likeliest(shares),
        then: { drawing: without(begin, GONE) },
        because:
          "Without its left side the lower loop is open, and what is left looks like a 9. The weights of the class token change, too.",
      },
    );
    const put = (text, action) => app.button(text, action, { into: app.controls });
    let next = BEGIN;
    const buttons = [
      put("another test image", () => {
        next = (next + 1) % SHOWN.length;
        app.set({ drawing: [...SHOWN[next]] });
      }),
      put("empty", () => app.set({ drawing: SHOWN[0].map(() => 0) })),
    ];

    return (state, { shares, weights }) => {
      for (const button of buttons) button.disabled = question.open;
      const digit = likeliest(shares);
      const flat = weights.flat();
      const most = flat.indexOf(Math.max(...flat));
      const share = tf.percent(shares[digit]);
      const grid = tf.range(N, (n) => frame(n, { colour: "grid" }));
      canvas.show({
        title: question.open ? "the image, in patches of 2 × 2" : "draw here",
        label: `An image of ${SIDE} × ${SIDE} pixels, in which it reads ${article(digit)}. Arrow keys move, the space bar draws or rubs out.`,
        rows: SIDE,
        columns: SIDE,
        values: state.drawing,
        most: LEVELS,
        colour: "ink",
        text: () => "",
        at: cursor,
        frames: [
          ...grid,
          ...(question.open ? GONE.map((n) => frame(n, { colour: "attention" })) : []),
          !question.open && { cell: cursor, colour: "key" },
        ].filter(Boolean),
      });
      attention.show({
        title: "where the class token looks",
        label: `Weights of the class token on ${ACROSS} × ${ACROSS} patches`,
        rows: ACROSS,
        columns: ACROSS,
        values: weights,
        most: Math.max(0.3, ...flat),
        text: (i, j) => tf.fixed(weights[i][j], 2).replace("0.", "."),
        frames: [{ cell: [Math.floor(most / ACROSS), most % ACROSS], colour: "ink" }],
      });
      bars.show({
        title: "what it reads: the share of each digit",
        label: shares.map((p, c) => `${c}: ${tf.percent(p)}`).join(", "),
        x: { names: tf.range(DIGITS, String) },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1], format: (p) => tf.percent(p) },
        marks: [
          { bars: shares, colour: "muted" },
          { bars: [[digit, shares[digit]]], colour: "attention" },
        ],
      });
      app.read({
        "it reads": `${article(digit)}, ${share}`,
        "patch with most weight": `row ${Math.floor(most / ACROSS)}, column ${most % ACROSS}`,
        "weight on itself": tf.fixed(1 - tf.sum(flat), 2),
      });
      app.say(
        `It reads ${article(digit)} with ${share}. In block ${state.block} the class token gives ${tf.percent(flat[most])} to the patch in row ${Math.floor(most / ACROSS)}, column ${most % ACROSS}.`,
      );
    };
  },
});
