// Layer n of N is scored while n = N or s/T < n/2N; s and T are whole numbers, so this is exact.

const { whole: WHOLE, weights: WEIGHTS } = tf.data;
const isOn = (n, s, N, every) => n === N || (every && 2 * N * s < n * WHOLE);
const until = (n, N, every) => (n === N ? 1 : every ? n / (2 * N) : 0);
const percent = (x) => `${Number((100 * x).toFixed(1))} %`;

// forward FLOPs of a window: N blocks with d_ff = 4d, and so many classifiers at so many positions
const flops = ({ L, d, vocab, N }, classifiers, positions) =>
  N * (24 * L * d * d + 4 * L * L * d) + classifiers * 2 * positions * d * vocab;

function counted(k) {
  const targets = k.two_targets ? 2 : 1;
  const positions = k.every_position ? k.L : 1;
  const work = (layers) => flops(k, layers * targets, positions) / flops(k, 1, k.L);
  return { targets, positions, work };
}

function numbers(k) {
  const { targets, positions, work } = counted(k);
  const on = tf.range(k.N, (m) => Number(isOn(m + 1, k.progress, k.N, k.every_layer)));
  const layers = tf.sum(on);
  return {
    on,
    until: tf.range(k.N, (m) => until(m + 1, k.N, k.every_layer)),
    predictions: layers * targets * positions,
    weight: layers * tf.sum(WEIGHTS.slice(0, targets)),
    now: work(layers),
    mean: work(k.every_layer ? 1 + (k.N - 1) / 4 : 1),
    share: 1 - work(0) / work(layers),
  };
}

export default tf.explorer({
  numbers,
  setup(app) {
    const plane = app.plane({ height: (w) => tf.clamp(w * 0.55, 185, 330) });
    const strip = app.plane({ height: (w) => (w < 480 ? 105 : 150) });
    app.motion("progress", { every: 60, format: (x) => percent(x / WHOLE) });
    app.knob("layer", { last: () => app.get("N") });
    app.knob("N", { write: (N) => app.set({ N, layer: Math.min(app.get("layer"), N) }) });
    app.knobsOf("every_position", "every_layer", "two_targets");
    app.knob("vocab", { format: tf.count });
    const { N: most } = app.first;
    const asked = Math.round(0.75 * most);
    const fair = most >= 8 && app.first.every_layer && app.first.progress < 375;
    const question = app.ask(
      fair && {
        name: "silent",
        question: `After how much of training does layer ${asked} of ${most} fall silent?`,
        number: { unit: "%", near: 1 },
        truth: (n) => 100 * n.until[asked - 1],
        locks: ["progress", "layer", "N"],
        because: "Layer n of N is asked until n/2N: the last one that leaves does so at half-time.",
      },
    );

    const snap = (key, value) => app.snap(key, value);
    return (k, n) => {
      const layer = Math.min(k.layer, k.N);
      const time = k.progress / WHOLE;
      const hidden = (m) => question.open && m > most / 2 && m < most;
      const bars = (scored) =>
        n.until.map((end, m) => [m + 1, n.on[m] === scored && !hidden(m + 1) ? end : 0]);
      const first = n.on.indexOf(1) + 1;
      const which =
        first === k.N ? `only layer ${k.N} is scored` : `layers ${first} to ${k.N} are scored`;
      const end = percent(n.until[layer - 1]);
      let about = `Layer ${layer} ${n.on[layer - 1] ? "will be" : "was"} scored until ${end}.`;
      if (layer === k.N) about = `Layer ${layer}, the last one, is always scored.`;
      else if (!k.every_layer) about = `Layer ${layer} is never scored.`;
      const words = `At ${percent(time)} of training ${which}. ${hidden(layer) ? "" : about}`;
      const done = { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1], format: percent };
      plane.show({
        title: "how long each layer is scored; play, or drag the dot",
        label: words,
        x: { ...done, label: "training done" },
        y: { from: 0.5, to: k.N + 0.5, whole: true, label: "layer n" },
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
      const { work } = counted(k);
      const left = (s) => tf.sum(n.until.map((_, m) => isOn(m + 1, s, k.N, k.every_layer)));
      const line = tf.range(201, (m) => [m / 200, work(left((m / 200) * WHOLE))]);
      strip.show({
        title: "work of a step, in steps that score the last layer alone",
        label: `Work of a step: ${tf.sig(line[0][1], 4)} at first, ${tf.sig(n.now, 4)} now`,
        x: done,
        y: {},
        marks: [
          { rule: { y: 1 }, colour: "muted", dash: "3 3" },
          !question.open && { line, colour: "attention" },
          { rule: { x: time }, wide: 2, colour: "ink" },
          { points: [[time, n.now]], colour: "ink" },
        ],
      });
      app.read({
        "layers scored now": `${tf.sum(n.on)} of ${k.N}`,
        "predictions per window": tf.count(n.predictions),
        "sum of weights": tf.sig(n.weight, 4),
        "classifiers' share": percent(n.share),
        "this step ÷ plain step": tf.sig(n.now, 4),
        "all steps ÷ plain steps": tf.sig(n.mean, 4),
      });
      app.say(words);
    };
  },
});
