// −|w r² + b| over the distance r = j − i, with the weights of keys whose scores are otherwise alike.
const { far, beside } = tf.data;
const distances = tf.range(2 * far + 1, (n) => n - far);
const LOWEST = -8;
const ASKED = { w: 0.2, b: -1.8 };
const top = ({ w, b }) => (w > 0 ? Math.sqrt(-b / w) : 0);

function numbers({ w, b }) {
  const scores = distances.map((d) => beside(0, d, w, b));
  const plain = distances.map((d) => beside(0, d, w, 0));
  const shares = (x) => Array.from(tf.softmax(x));
  return { scores, weights: shares(scores), plain, plainWeights: shares(plain) };
}

const curve = (w, b) =>
  tf
    .range(32 * far + 1, (n) => n / 16 - far)
    .map((d) => [d, beside(0, d, w, b)])
    .map(([d, y]) => [d, y < LOWEST ? Number.NaN : y]);

export default tf.explorer({
  numbers,
  setup(app) {
    const above = app.plane({
      height: (width) => tf.clamp(width * 0.36, 200, 260),
      lead: true,
    });
    const below = app.plane({ height: (width) => tf.clamp(width * 0.27, 160, 200) });
    app.formula("added to a score  =  −|{w:w} r² + {b:b}|,   r = j − i");
    app.knob("w", { format: (x) => tf.fixed(x, 2) });
    app.knob("b", { format: (x) => tf.fixed(x, 1) });
    const question = app.ask({
      name: "top",
      question:
        "The dashed bell is the prior for w = 0.2 and b = 0: the query itself loses nothing. Now set b to −1.8. At which distance to the right of the query does a key lose nothing?",
      about: above,
      ghost: {
        first: 6,
        at: (d) => [d, 0],
        to: (x) => Math.round(tf.clamp(x, 0, far)),
        draw: (d) => ({ rule: { x: d }, colour: "attention", dash: "6 4" }),
        by: [1, 0],
        label: "the distance at which a key loses nothing",
      },
      format: (d) => `distance ${d}`,
      near: 0,
      hides: ["curve", "weights", "highest at distance", "weight of the query itself"],
      guards: ["w", "b"],
      truth: () => Math.round(top(ASKED)),
      then: ASKED,
      because:
        "At distance 3 the two terms cancel: 0.2 · 3² − 1.8 = 0. The query itself now loses 1.8, so the curve has the shape of an M.",
    });

    return (state, { scores, weights, plain, plainWeights }) => {
      const { w, b } = state;
      const x = { from: -far - 0.5, to: far + 0.5, whole: true, label: "distance r = j − i" };
      const best = top(state);
      above.show({
        title: "what is added to a score: with b (solid) and without b (dashed)",
        label: question.open
          ? `Without b, the query itself loses 0, and a key at distance 3 loses ${tf.fixed(-plain[far + 3], 1)}`
          : `The query itself loses ${tf.fixed(-scores[far], 1)}; ${w > 0 ? `a key at distance ${tf.fixed(best, 1)} loses nothing` : "all keys lose the same"}`,
        x,
        y: { from: LOWEST, to: 0.6, ticks: [-8, -6, -4, -2, 0] },
        marks: [
          { rule: { y: 0 }, colour: "muted", dash: "2 4" },
          { line: curve(w, 0), colour: "key", dash: "6 4", wide: 1.5, term: "w" },
          { line: curve(w, b), colour: "attention", wide: 2.5, part: "curve", term: "b" },
          !question.open && {
            handle: [0, b],
            knobY: "b",
            colour: "attention",
            label: "b, minus what the query itself loses",
            text: `b = ${tf.fixed(b, 1)}`,
            shape: "down",
            to: (_, y) => ({ b: app.snap("b", tf.clamp(y, -5, 0)) }),
            term: "b",
          },
        ],
      });
      below.show({
        title: "weights of keys that fit equally well: with b (bars), without b (dashed)",
        label: question.open
          ? `Without b, the query itself keeps ${tf.percent(plainWeights[far], 0)} of the weight`
          : `The query itself keeps ${tf.percent(weights[far], 0)} of the weight`,
        x,
        y: {
          from: 0,
          to: Math.max(0.4, ...weights, ...plainWeights),
          ticks: [0, 0.2, 0.4, 0.6, 0.8, 1],
        },
        marks: [
          { bars: weights, start: -far, colour: "attention", part: "weights" },
          {
            line: plainWeights.map((y, n) => [n - far, y]),
            colour: "key",
            dash: "6 4",
            wide: 1.5,
          },
        ],
      });
      app.read({
        "highest at distance": w > 0 ? tf.fixed(best, 1) : "all alike",
        "weight of the query itself": tf.percent(weights[far], 0),
        "its weight without b": tf.percent(plainWeights[far], 0),
      });
      app.say(
        question.open
          ? `w = ${tf.fixed(w, 2)}: without b, the query itself keeps ${tf.percent(plainWeights[far], 0)} of the weight.`
          : `w = ${tf.fixed(w, 2)}, b = ${tf.fixed(b, 1)}: the query itself keeps ${tf.percent(weights[far], 0)} of the weight, and ${w > 0 ? `a key at distance ${tf.fixed(best, 1)} loses nothing` : "all keys lose the same"}.`,
      );
    };
  },
});
