// Localness for one query: softmax(score + bell(j)), and the two curves that it is the product of.
const { scores, places, windows, bell } = tf.data;
const L = scores.length;
const content = Array.from(tf.softmax(scores));
const keys = { from: -0.5, to: L - 0.5, whole: true, label: "key" };
const ASKED = { centre: 13, window: 6, trained: false };

function numbers({ centre, window, trained, i }) {
  const p = trained ? places[i] : centre;
  const D = trained ? windows[i] : window;
  const G = tf.range(L, (j) => bell(0, j, p, D));
  return {
    content,
    bell: G.map(Math.exp),
    product: Array.from(tf.softmax(scores.map((s, j) => s + G[j]))),
    p,
    D,
  };
}

export default tf.explorer({
  numbers,
  setup(app) {
    const above = app.plane({ height: (width) => tf.clamp(width * 0.33, 190, 240) });
    const below = app.plane({
      height: (width) => tf.clamp(width * 0.33, 190, 240),
      lead: true,
    });
    app.formula("weight  ∝  {content:exp(𝐪·𝐤/√d)} · {bell:exp(−(j − p)²/(2(D/2)²))}");
    for (const key of ["centre", "window"]) app.knob(key, { format: (x) => tf.short(x) });
    app.knobsOf("trained", "i");
    const question = app.ask({
      name: "winner",
      question:
        "Content alone prefers key 4, and the centre of the bell is at place 13. Multiply the bars by the bell. Which key then has the most weight?",
      about: below,
      ghost: {
        first: 9,
        at: (j) => [j, 0.1],
        to: (x) => Math.round(tf.clamp(x, 0, L - 1)),
        draw: (j) => ({ rule: { x: j }, colour: "attention", dash: "6 4" }),
        by: [1, 0],
        label: "the key with the most weight",
      },
      format: (j) => `key ${j}`,
      near: 0,
      hides: ["product", "most weight"],
      guards: ["centre", "window", "trained", "i"],
      truth: () => tf.best(numbers({ ...ASKED, i: 0 }).product),
      then: ASKED,
      because:
        "Key 15 is neither the best by content nor the nearest to the centre, but its product is the largest. Key 4 is 9 places from the centre, three standard deviations, so its weight is multiplied by 0.01.",
    });

    return (state, { bell: curve, product, p, D }) => {
      const best = tf.best(product);
      above.show({
        title: "weights from content (bars), the bell (line), its window (shaded)",
        label: `Content gives key ${tf.best(content)} the most weight; the bell is centred on place ${tf.fixed(p, 1)} and has a window of ${tf.fixed(D, 1)}`,
        x: keys,
        y: { from: 0, to: 1.05, ticks: [0, 0.5, 1] },
        marks: [
          {
            area: tf.range(49, (n) => {
              const j = p - D / 2 + (n * D) / 48;
              return [tf.clamp(j, -0.5, L - 0.5), 0, Math.exp(bell(0, j, p, D))];
            }),
            colour: "query",
          },
          { bars: content, start: 0, colour: "key", term: "content" },
          {
            line: tf.range(8 * L - 7, (n) => [n / 8, Math.exp(bell(0, n / 8, p, D))]),
            colour: "query",
            wide: 2.5,
            term: "bell",
          },
          !state.trained && {
            handle: [p, 1],
            knob: "centre",
            colour: "query",
            label: "the centre p",
            text: `p = ${tf.fixed(p, 1)}`,
            to: (x) => ({ centre: app.snap("centre", x) }),
          },
          !state.trained && {
            handle: [Math.min(p + D / 2, L - 0.5), Math.exp(-0.5)],
            knob: "window",
            colour: "query",
            shape: "right",
            label: "half of the window D",
            text: "p + D/2",
            to: (x) => ({ window: app.snap("window", 2 * (x - p)) }),
          },
          state.trained && { rule: { x: state.i }, colour: "ink", dash: "4 4" },
          state.trained && { text: `query ${state.i}`, at: [state.i, 0.95] },
        ],
      });
      below.show({
        title: "their product, divided by its sum (bars); content alone (line)",
        label: question.open
          ? "The product of content and the bell"
          : `Key ${best} has the most weight, ${tf.percent(product[best], 0)}`,
        x: keys,
        y: { from: 0, to: Math.max(0.5, ...product), ticks: [0, 0.25, 0.5, 0.75, 1] },
        marks: [
          { bars: product, start: 0, colour: "attention", part: "product" },
          { line: content, start: 0, colour: "key", wide: 1.5, dots: true, term: "content" },
        ],
      });
      app.read({
        "p − i": state.trained ? tf.fixed(p - state.i, 1) : "–",
        window: tf.fixed(D, 1),
        "most weight": `key ${best}: ${tf.percent(product[best], 0)}`,
      });
      app.say(
        question.open
          ? `The bell is centred on place ${tf.fixed(p, 1)} and has a window of ${tf.fixed(D, 1)}.`
          : `With a bell around place ${tf.fixed(p, 1)} and a window of ${tf.fixed(D, 1)}, key ${best} has ${tf.percent(product[best], 0)} of the weight.`,
      );
    };
  },
});
