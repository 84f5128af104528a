// Spans that were learned: the stored training, as it went.
const { longest, every, learned, words } = tf.data;
const MOST = 36; // tokens, on both axes
const layers = learned[0].spans[0][0].length;
// from the lowest layer to the top one
const tints = ["muted", "ink", "attention"];
const [FREE, PRICED] = [0, 2]; // the runs without a price and with the one that is asked about
const named = (layer) =>
  layer === 0 ? "lowest layer" : layer === layers - 1 ? "top layer" : "middle layer";

export default tf.explorer({
  numbers({ run, seed, time }) {
    const history = learned[run].spans[seed];
    const means = history.map((now) => now.map(tf.mean));
    const nats = learned[run].nats[seed];
    return { spans: history[time], means, nats, mean: tf.mean(means[time]) };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const height = (w) => tf.clamp(w * 0.8, 230, 320);
    const [bars, lines] = [0, 1].map(() => app.plane({ height, into: both }));
    app.formula("loss + {price:λ} · (mean {span:z} of the heads, summed over layers)");
    app.motion("time", { every: 500, format: (t) => `${t * every} steps` });
    app.knob("run", { format: (n) => words[n] });
    app.knob("seed");
    const freely = learned[FREE].spans[0].map((now) => tf.mean(now.flat()));
    app.ask({
      name: "priced",
      question: `Without a price, spans begin at ${learned[FREE].start} tokens and end at a mean of ${tf.fixed(freely.at(-1), 1)} over all twelve heads. What is their mean at the end with a price of λ = ${learned[PRICED].price}?`,
      about: lines,
      ghost: {
        first: learned[PRICED].start,
        at: (mean) => [every * 10, mean],
        to: (_, mean) => Math.round(10 * tf.clamp(mean, 0, MOST)) / 10,
        draw: (mean) => ({ points: [[every * 10, mean]], size: 4, colour: "ink" }),
        by: [0, 1],
        label: "the mean span at the end",
      },
      format: (mean) => `${tf.fixed(mean, 1)} tokens`,
      near: 3,
      truth: (numbers) => numbers.means.at(-1).reduce((sum, z) => sum + z, 0) / layers,
      then: { run: PRICED, time: 10, seed: 0 },
      guards: ["run"],
      because: "Even this low price makes the heads give up nearly all of their span.",
    });

    return (state, numbers) => {
      const steps = `${state.time * every} steps`;
      bars.show({
        title: `span of each head after ${steps}`,
        label: numbers.spans.map((layer, l) => `${named(l)}: ${layer.join(", ")}`).join("; "),
        x: {
          label: "layer and head",
          names: numbers.spans.flatMap((layer, l) => layer.map((_, h) => `${l}.${h}`)),
        },
        y: { label: "z, tokens", from: 0, to: MOST },
        marks: numbers.spans.map((layer, l) => ({
          bars: layer,
          start: l * layer.length,
          colour: tints[l],
          name: named(l),
          term: "span",
        })),
      });
      const line = (means, name, look) => ({
        line: means.map((mean, t) => [t * every, mean]),
        name,
        term: "span",
        ...look,
      });
      lines.show({
        title: `mean span during training, ${words[state.run]}`,
        label: `Mean spans after ${steps}: ${numbers.means[state.time].map((z, l) => `${named(l)} ${tf.fixed(z, 1)}`).join(", ")}`,
        x: { label: "steps", from: 0, to: every * 10 },
        y: { label: "z, tokens", from: 0, to: MOST },
        marks: [
          tf.range(layers, (l) =>
            line(
              numbers.means.map((now) => now[l]),
              named(l),
              { colour: tints[l], dash: [undefined, "7 4", "2 3"][l] },
            ),
          ),
          line(numbers.means.map(tf.mean), "all heads", { colour: "ink", wide: 3, bold: true }),
          state.run !== FREE && line(freely, words[FREE], { colour: "muted", dash: "2 4" }),
          { rule: { x: state.time * every } },
        ],
      });
      const mean = `${tf.fixed(numbers.mean, 1)} tokens`;
      app.read({
        "mean span": mean,
        "loss at the end, per letter": `${tf.fixed(numbers.nats, 3)} nats`,
      });
      app.say(
        `${words[state.run]}, seed ${state.seed}: after ${steps} the mean span of the twelve heads is ${mean}.`,
      );
    };
  },
});
