// Layer n of N is scored while n = N or s/T < n/2N; s and T are whole numbers, so this is exact. The
// upper picture has a bar for each layer, up to the time when it falls silent; the lower one shows the
// work of a step over the same time.

const { whole: WHOLE, weights: WEIGHTS } = tf.data; // T, and how much each target weighs
const isOn = (n, s, N, every) => n === N || (every && 2 * N * s < n * WHOLE);
const until = (n, N, every) => (n === N ? 1 : every ? n / (2 * N) : 0);
const percent = (x) => `${Number((100 * x).toFixed(1))} %`;

// forward FLOPs of a window: N blocks with d_ff = 4d, and the LM heads at the positions that are scored
const flops = ({ L, d, vocab, N }, classifiers, positions) =>
  N * (24 * L * d * d + 4 * L * L * d) + classifiers * 2 * positions * d * vocab;

function counted(state) {
  const targets = state.two_targets ? 2 : 1;
  const positions = state.every_position ? state.L : 1;
  const work = (layers) => flops(state, layers * targets, positions) / flops(state, 1, state.L);
  return { targets, positions, work };
}

function numbers(state) {
  const { targets, positions, work } = counted(state);
  const on = tf.range(state.N, (m) =>
    Number(isOn(m + 1, state.progress, state.N, state.every_layer)),
  );
  const layers = tf.sum(on);
  return {
    on,
    until: tf.range(state.N, (m) => until(m + 1, state.N, state.every_layer)),
    predictions: layers * targets * positions,
    weight: layers * tf.sum(WEIGHTS.slice(0, targets)),
    now: work(layers),
    mean: work(state.every_layer ? 1 + (state.N - 1) / 4 : 1),
    share: 1 - work(0) / work(layers),
  };
}

export default tf.explorer({
  numbers,
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.55, 185, 330) });
    const strip = app.plane({ height: (width) => (width < 480 ? 105 : 150) });
    app.motion("progress", { every: 60, format: (x) => percent(x / WHOLE) });
    app.knobsOf("layer", "N", "every_position", "every_layer", "two_targets");
    app.knob("vocab", { format: tf.count });
    const { N: most } = app.first;
    const asked = Math.round(0.75 * most);
    const fair = most >= 8 && app.first.every_layer && app.first.progress < 375;
    const question = app.ask(
      fair && {
        name: "silent",
        question: `After how much of training does layer ${asked} of ${most} fall silent?`,
        number: {},
        unit: "%",
        near: 1,
        truth: (numbers) => 100 * numbers.until[asked - 1],
        then: { layer: asked, progress: 5 * Math.ceil((WHOLE * asked) / (2 * most) / 5) },
        guards: ["progress", "layer", "N"],
        because:
          "Layer n of N is scored until n/(2N) of training. In the second half, only the last layer is scored.",
      },
    );

    const snap = (key, value) => app.snap(key, value);
    return (state, numbers) => {
      const { layer } = state;
      const time = state.progress / WHOLE;
      // while the question is open, the bars of the layers that it could be read off from
      const hidden = (m) => question.open && m > most / 2 && m < most;
      // how long each layer is scored: violet while it is, grey after; what is asked for is hidden
      const bars = (scored) =>
        numbers.until.map((end, m) => [
          m + 1,
          numbers.on[m] === scored && !hidden(m + 1) ? end : 0,
        ]);
      const first = numbers.on.indexOf(1) + 1;
      const which =
        first === state.N
          ? `only layer ${state.N} is scored`
          : `layers ${first} to ${state.N} are scored`;
      const end = percent(numbers.until[layer - 1]);
      let about = `Layer ${layer} ${numbers.on[layer - 1] ? "will be" : "was"} scored until ${end}.`;
      if (layer === state.N) about = `Layer ${layer}, the last one, is always scored.`;
      else if (!state.every_layer) about = `Layer ${layer} is never scored.`;
      const words = `At ${percent(time)} of training, ${which}. ${hidden(layer) ? "" : about}`;
      const done = { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1], format: percent };
      plane.show({
        title: "how long each layer is scored; play, or drag the dot",
        label: words,
        x: { ...done, label: "training done" },
        y: { from: 0.5, to: state.N + 0.5, whole: true, label: "layer n" },
        marks: [
          { bars: bars(0), lying: true, colour: "grid" },
          { bars: bars(1), lying: true, colour: "attention" },
          { rule: { x: time }, wide: 2, colour: "ink" },
          {
            handle: [time, layer],
            knob: "progress",
            knobY: "layer",
            colour: "key",
            label: "time and layer",
            text: `${percent(time)}, layer ${layer}`,
            to: (x, y) => ({ progress: snap("progress", WHOLE * x), layer: snap("layer", y) }),
          },
        ],
      });
      const { work } = counted(state);
      const left = (s) =>
        tf.sum(numbers.until.map((_, m) => isOn(m + 1, s, state.N, state.every_layer)));
      const line = tf.range(201, (m) => [m / 200, work(left((m / 200) * WHOLE))]);
      strip.show({
        title: "work of a step ÷ work of a plain step (one LM head, last layer)",
        label: `Work of a step ÷ work of a plain step: ${tf.sig(line[0][1], 4)} at first, ${tf.sig(numbers.now, 4)} now`,
        x: done,
        y: {},
        marks: [
          { rule: { y: 1 }, colour: "muted", dash: "3 3" },
          !question.open && { line, colour: "attention" },
          { rule: { x: time }, wide: 2, colour: "ink" },
          { points: [[time, numbers.now]], colour: "ink" },
        ],
      });
      app.read({
        "layers scored now": `${tf.sum(numbers.on)} of ${state.N}`,
        "predictions per window": tf.count(numbers.predictions),
        "sum of loss weights": tf.sig(numbers.weight, 4),
        "LM heads' share": percent(numbers.share),
        "this step ÷ plain step": tf.sig(numbers.now, 4),
        "all steps ÷ plain steps": tf.sig(numbers.mean, 4),
      });
      app.say(words);
    };
  },
});
