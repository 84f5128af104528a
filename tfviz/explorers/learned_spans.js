// Spans that were learned: the stored training, as it went.
const { longest, every, learned, words } = tf.data;
const layers = learned[0].spans[0][0].length;
// from the lowest layer to the top one
const tints = ["muted", "ink", "attention"];
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
    app.formula("loss + {price:λ} · mean of {span:z} over the heads of each layer");
    app.motion("time", { every: 500, format: (t) => `${t * every} steps` });
    app.knob("run", { format: (n) => words[n] });
    app.knob("seed");
    const question = app.ask({
      name: "which",
      question: `All heads begin with z = ${learned[2].start}, and a span has the price λ = ${learned[2].price}. Which layer has the longest spans after training?`,
      chips: ["the lowest", "the middle one", "the top one"],
      truth: (numbers) => numbers.means.at(-1).indexOf(Math.max(...numbers.means.at(-1))),
      then: { run: 2, time: 10, seed: 0 },
      because:
        "At this price the lowest layer keeps less than one token, with all three seeds. Try λ = 0.0005: there it is the other way round.",
    });

    return (state, numbers) => {
      const shown = question.open ? learned[state.run].spans[state.seed][0] : numbers.spans;
      bars.show({
        title: `spans of the heads after ${state.time * every} steps`,
        label: numbers.spans.map((layer, l) => `${named(l)}: ${layer.join(", ")}`).join("; "),
        x: {
          label: "layer and head",
          names: shown.flatMap((layer, l) => layer.map((_, h) => `${l}.${h}`)),
        },
        y: { label: "z, tokens", from: 0, to: longest / 2 + 4 },
        marks: shown.map((layer, l) => ({
          bars: layer,
          start: l * layer.length,
          colour: tints[l],
          name: named(l),
          term: "span",
        })),
      });
      lines.show({
        title: "mean of each layer while it trains",
        label: `Mean spans: ${numbers.means[state.time].map((z, l) => `${named(l)} ${tf.fixed(z, 1)}`).join(", ")}`,
        x: { label: "steps", from: 0, to: every * 10 },
        y: { from: 0, to: longest / 2 + 4 },
        marks: [
          !question.open &&
            tf.range(layers, (l) => ({
              line: numbers.means.map((now, t) => [t * every, now[l]]),
              name: named(l),
              colour: tints[l],
              dash: [undefined, "7 4", "2 3"][l],
              term: "span",
            })),
          { rule: { x: state.time * every } },
        ],
      });
      app.read({
        "mean span": question.tell(`${tf.fixed(numbers.mean, 1)} tokens`),
        "loss at the end": question.tell(`${tf.fixed(numbers.nats, 3)} nats`),
      });
      const meanText = question.open
        ? ""
        : `, the mean span is ${tf.fixed(numbers.mean, 1)} tokens`;
      app.say(
        `${words[state.run]}, seed ${state.seed}: after ${state.time * every} steps${meanText}.`,
      );
    };
  },
});
