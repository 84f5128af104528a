// A Vision Transformer in the page: all patches and the class token at once.

const { model: MODEL, shown: SHOWN, begin: BEGIN } = tf.data;
const { d, patch: P, levels: LEVELS } = MODEL;
const SIDE = 8;
const ACROSS = SIDE / P;
const N = ACROSS * ACROSS;
const DIGITS = 10;
const model = encoder(MODEL);

// Pixels → the shares of the ten digits, and by block and head what the class token gives each patch.
const read = tf.keep((...pixels) => {
  const { W, affine, stack } = model(MODEL.weights);
  const cut = patchesOf(pixels, SIDE, P).map((x) => x / LEVELS);
  const tokens = [...W.token, ...affine(Float64Array.from(cut), "embed", N)];
  const { X, maps } = stack(
    Float64Array.from(tokens, (x, k) => x + W["positions.P"][k]),
    N + 1,
  );
  const shares = tf.softmax(affine(X.subarray(0, d), "classify", 1));
  return { shares, seen: maps.map((heads) => heads.map((A) => A[0].slice(1))) };
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
    const canvas = app.matrix({ paint, move: moved, ...size });
    const attention = app.matrix({ most: 60, ...size });
    const bars = app.plane({ height: () => 190 });
    app.knob("block");
    app.knob("head", { as: "select" });
    const { drawing: begin } = app.first;
    const asked = String(begin) === String(SHOWN[BEGIN]);
    const question = app.ask(
      asked && {
        name: "rubbed-out",
        question: `The model reads ${article(BEGIN)}. Rub out the framed patch, the left side of the lower loop: which digit does the model read then?`,
        about: bars,
        ghost: {
          first: BEGIN,
          at: (digit) => [digit, 0.5],
          to: (x) => tf.clamp(Math.round(x), 0, DIGITS - 1),
          by: [1, 0],
          label: "the digit that the model reads",
        },
        format: article,
        guards: ["drawing"],
        truth: ({ shares }) => likeliest(shares),
        then: { drawing: without(begin, GONE) },
        because:
          "Without its left side the lower loop is open, and what is left looks like a 9. The weights of the class token change as well.",
      },
    );
    const put = (text, action) => app.button(text, action, { into: app.controls });
    let next = BEGIN;
    put("another test image", () => {
      next = (next + 1) % SHOWN.length;
      app.set({ drawing: [...SHOWN[next]] });
    });
    put("clear", () => app.set({ drawing: SHOWN[0].map(() => 0) }));

    return (state, { shares, weights }) => {
      const digit = likeliest(shares);
      const flat = weights.flat();
      const most = flat.indexOf(Math.max(...flat));
      const share = tf.percent(shares[digit]);
      const grid = tf.range(N, (n) => frame(n, { colour: "grid" }));
      canvas.show({
        title: "draw here",
        label: `An image of ${SIDE} × ${SIDE} pixels, which the model reads as ${article(digit)}. Arrow keys move, the space bar draws or rubs out.`,
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
        title: "what the model reads: probability of each digit",
        label: shares.map((p, c) => `${c}: ${tf.percent(p)}`).join(", "),
        x: { names: tf.range(DIGITS, String) },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1], format: (p) => tf.percent(p) },
        marks: [
          { bars: shares, colour: "muted" },
          { bars: [[digit, shares[digit]]], colour: "attention" },
        ],
      });
      app.read({
        "the model reads": `${article(digit)}, ${share}`,
        "patch with most weight": `row ${Math.floor(most / ACROSS)}, column ${most % ACROSS}`,
        "weight on itself": tf.fixed(1 - tf.sum(flat), 2),
      });
      app.say(
        `The model reads ${article(digit)}, with probability ${share}. In block ${state.block}, the class token gives ${tf.percent(flat[most])} of its weight to the patch in row ${Math.floor(most / ACROSS)}, column ${most % ACROSS}.`,
      );
    };
  },
});
