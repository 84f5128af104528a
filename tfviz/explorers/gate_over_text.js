// A text with the gate of each place: 0, what was found; 1, the model alone.
const { letters, words, gate, h, m, pushes, text } = tf.data;
const ACROSS = 16;
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const nats = tf.keep((push) =>
  gate.map((s, t) => {
    const g = sigmoid(s + push);
    return -Math.log(tf.softmax(h[t].map((x, i) => g * x + (1 - g) * m[t][i]))[text[t + 1]]);
  }),
);

export default tf.explorer({
  numbers({ token, push }) {
    const after = text[token + 1];
    return {
      gates: gate.map((s) => sigmoid(s + push)),
      p: Math.exp(-nats(push)[token]),
      alone: tf.softmax(h[token])[after],
      memory: tf.softmax(m[token])[after],
      nats: tf.mean(nats(push)),
      curve: pushes.map((x) => tf.mean(nats(x))),
    };
  },
  setup(app) {
    const pick = (i, j) => app.set({ token: ACROSS * i + j });
    const matrix = app.matrix({ pick, bare: true, most: 46 });
    const lost = app.plane({ height: (width) => tf.clamp(width * 0.32, 200, 240) });
    app.formula("z = {memory:(1 − g) m} + {model:g h},   {gate:g} = σ({model:h} · w + push)");
    app.motion("token", { every: 400 });
    app.knob("push", { format: (x) => tf.fixed(x, 1) });
    const question = app.ask({
      name: "ends",
      question:
        "The curve is the loss on this text. Push the gate at all places: to the left only the memory speaks, to the right only the model. Which is lowest?",
      chips: ["memory alone", "near 0, as it was trained", "model alone"],
      truth: (numbers) => {
        const best = pushes[numbers.curve.indexOf(Math.min(...numbers.curve))];
        return best < -2.5 ? 0 : best > 2.5 ? 2 : 1;
      },
      then: { push: 0 },
      because: "Both parts were trained to be mixed: neither is as good alone.",
    });

    return (state, numbers) => {
      const place = (t) => [Math.floor(t / ACROSS), t % ACROSS];
      const retrieved = words[state.token].map((w) => letters[w]);
      matrix.show({
        title: "the text; the more colour, the more memory, 1 − g",
        label: `Place ${state.token}, ${letters[text[state.token]]}; arrow keys move it`,
        rows: gate.length / ACROSS,
        columns: ACROSS,
        most: 1,
        values: Float64Array.from(numbers.gates, (g) => 1 - g),
        text: (i, j) => letters[text[ACROSS * i + j]],
        at: place(state.token),
        frames: [{ cell: place(state.token), colour: "query" }],
      });
      const from = Math.floor(Math.min(...numbers.curve) * 5) / 5;
      const to = Math.ceil(Math.max(...numbers.curve) * 5) / 5;
      lost.show({
        title: "loss on this text, all gates pushed",
        label: question.open
          ? "Loss against push"
          : `Push ${state.push}: ${tf.fixed(numbers.nats, 2)} nats`,
        x: { from: -6, to: 6, label: "push: memory alone ← → model alone", whole: true },
        y: { from, to, label: "nats" },
        marks: !question.open && [
          { line: numbers.curve, at: pushes, wide: 2.5, term: "gate" },
          {
            handle: [state.push, numbers.nats],
            knob: "push",
            label: "push of the gate",
            text: `${tf.fixed(numbers.nats, 2)} nats`,
          },
        ],
      });
      app.read({
        "next letter": letters[text[state.token + 1]],
        "neighbours said": retrieved.join(" "),
        "gate g": tf.fixed(numbers.gates[state.token], 2),
        "p: memory, model, both": `${tf.fixed(numbers.memory, 2)}, ${tf.fixed(numbers.alone, 2)}, ${tf.fixed(numbers.p, 2)}`,
      });
      app.say(
        `After ${letters[text[state.token]]} came ${letters[text[state.token + 1]]}; neighbours said ${retrieved.join(", ")}. The gate is ${tf.fixed(numbers.gates[state.token], 2)}, p = ${tf.fixed(numbers.p, 2)}.`,
      );
    };
  },
});
