// A stack of blocks with random weights, forwards and backwards: one head, no biases.

const { d, L } = tf.data;
const NAMES = { pre: "pre-norm", post: "post-norm", none: "no norm" };
const WHAT = {
  gradient: "gradient that reaches each layer",
  stream: "size of the stream at each layer",
  weights: "gradient of W₂ in each block",
};
const MINE = { colour: "attention", wide: 2.5, dots: true, bold: true };
const DEEPEST = tf.declared.knobs.depth.high;

// The numbers of a seed, drawn once; the weights of N blocks with their gain. The three matrices of a
// gated network are made of the same numbers as the two of the usual one.
let drawn = {};
function weights(seed, gain, swiglu, N) {
  if (drawn.seed !== seed) {
    drawn = { seed, all: tf.uniforms(seed, 2 * L * d + DEEPEST * 12 * d * d), blocks: [] };
  }
  if (drawn.gain !== gain || drawn.swiglu !== swiglu) {
    Object.assign(drawn, { gain, swiglu, blocks: [] });
  }
  let at = 0;
  const take = (count, scale = 1) => drawn.all.slice(at, (at += count)).map((x) => x * scale);
  const [X, G] = [take(L * d), take(L * d)];
  const one = gain / Math.sqrt(d);
  const units = swiglu ? (8 * d) / 3 : 4 * d;
  for (let n = 0; n < N; n++) {
    at = 2 * L * d + n * 12 * d * d;
    drawn.blocks[n] ??= {
      q: take(d * d, one),
      k: take(d * d, one),
      v: take(d * d, one),
      o: take(d * d, one),
      ...(swiglu && { gate: take(d * units, one) }),
      up: take(d * units, one),
      down: take(d * units, gain / Math.sqrt(units)),
    };
  }
  return { X, G, blocks: drawn.blocks.slice(0, N) };
}

// The way up in each of the three orders, as far as it was needed so far.
const upwards = tf.keep(
  (seed, gain, swiglu) => ({ states: [weights(seed, gain, swiglu, 0).X], layers: [] }),
  3,
);
// Stream, gradient and gradient of W₂ by layer, for every depth in all three orders. Where the stream
// has grown beyond `loud`, what comes back is rounding noise; where it has vanished, nothing comes back.
const signals = tf.keep((seed, gain, N, order, skips, rms, swiglu) => {
  const { X, G, blocks } = weights(seed, gain, swiglu, N);
  const normalise = rms ? tf.rmsNorm : tf.layerNorm;
  const place = { order, skips, normalise };
  const made = upwards(seed, gain, swiglu, order, skips, rms);
  const followed = [tf.data.least, tf.data.most];
  const { states, layers } = tf.blockStack(X, blocks, place, L, d, followed, made);
  const stream = states.map(tf.rms);
  if (Math.max(...stream) > tf.data.loud || Math.min(...stream) < tf.data.least) {
    return { stream, gradient: [], weights: [] };
  }
  let slope = order === "post" ? G : normalise(states.at(-1), L, d).back(G);
  const gradient = [tf.rms(slope)];
  const weighted = [];
  for (const [attend, feed] of layers.toReversed()) {
    slope = attend.back(feed.back(slope));
    gradient.unshift(tf.rms(slope));
    weighted.unshift(feed.inner.weights);
  }
  return { stream, gradient, weights: weighted };
}, 3 * DEEPEST);
const numbersOf = ({ seed, gain, depth, order, skips, rms, swiglu }) =>
  signals(seed, gain, depth, order, skips, rms, swiglu);

// What the curve says, in words; the stream is not always followed to the last block.
function told({ show, depth }, numbers) {
  const sizes = numbers[show];
  if (!sizes.length) {
    return Math.min(...numbers.stream) < tf.data.least
      ? "the stream has become so small that nothing comes back"
      : "the stream has grown so large that the computed gradient is rounding noise and is not shown";
  }
  const [first, last] = [sizes[0], sizes.at(-1)].map(tf.short);
  const followed = numbers.stream.length - 1;
  return followed < depth
    ? `the stream is ${last} after block ${followed} and is not followed any further`
    : `the ${WHAT[show]} is ${first} at the first and ${last} at the last`;
}

// One question for each first state: a curve to draw, or words to choose.
const QUESTIONS = {
  gradient: {
    name: "with-skips",
    question:
      "With skips, how large is the gradient at each layer? Draw the curve that you expect.",
    curve: { at: [0, 4, 8, 12, 16, 20, 24], log: true },
    truth: (numbers) => numbers.gradient,
    then: { skips: true },
    because:
      "A skip passes the gradient on unchanged, and what the modules add to it is comparatively small.",
  },
  weights: {
    name: "where-it-pulls",
    question: "With pre-norm instead, in which blocks is this gradient largest?",
    chips: ["in the first", "in the last", "the same in all"],
    truth: ({ weights }) =>
      weights[0] > 1.5 * weights.at(-1) ? 0 : weights.at(-1) > 1.5 * weights[0] ? 1 : 2,
    hides: ["pre"],
    then: { order: "pre" },
    because:
      "On the way back, the gradient gains a little in each block, so it is largest in the first blocks.",
  },
};

export default tf.explorer({
  numbers: numbersOf,
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.7, 210, 340) });
    app.knobsOf("show", "order", "rms", "swiglu", "skips", "depth");
    app.knob("gain", { format: (x) => x.toFixed(1) });
    app.knob("seed");
    const { show: first, skips } = app.first;
    const question = app.ask(first === "gradient" && skips ? null : QUESTIONS[first]);

    return (state, numbers) => {
      const start = state.show === "weights" ? 1 : 0;
      const line = (order, values) => ({ line: values, start, name: NAMES[order] });
      const others = Object.keys(NAMES).filter((order) => order !== state.order);
      plane.question = state.show === first && question.spec ? question : undefined;
      const mine = numbers[state.show];
      const depth = {
        handle: [state.depth, mine.at(-1)],
        knob: "depth",
        text: `${state.depth} blocks`,
      };
      const summary = [
        NAMES[state.order],
        state.rms && state.order !== "none" && "RMSNorm",
        state.swiglu && "SwiGLU",
        `${state.skips ? "with" : "without"} skips`,
        `${state.depth} block${state.depth > 1 ? "s" : ""}`,
      ]
        .filter(Boolean)
        .join(", ");
      const last = numbers.stream.length - 1;
      const words = told(state, numbers);
      plane.show({
        title: `${WHAT[state.show]}, log scale${state.skips ? "" : ", without skips"}`,
        label: `${summary}: ${words}`,
        x: { from: start, to: DEEPEST, label: start ? "block" : "after block (0 = the input)" },
        y: { log: true },
        marks: [
          others.map((order, m) => ({
            ...line(order, numbersOf({ ...state, order })[state.show]),
            colour: "muted",
            wide: 1.5,
            dash: ["5 3", "2 3"][m],
            part: state.show === first ? order : "others",
          })),
          { ...line(state.order, mine), ...MINE },
          mine.length > 0 && depth,
          state.show !== "weights" && [
            { rule: { y: 1 }, colour: "grid" },
            { points: [[0, 1]], size: 0 },
          ],
        ],
      });
      const ends = mine.length && {
        "at the first layer": tf.short(mine[0]),
        "at the last layer": tf.short(mine.at(-1)),
        "first ÷ last": tf.short(mine[0] / mine.at(-1)),
      };
      const end = last < state.depth ? `stream size after block ${last}` : "final stream size";
      app.read({ ...ends, [end]: tf.short(numbers.stream.at(-1)) });
      app.say(`${summary}: ${words}.`);
    };
  },
});
