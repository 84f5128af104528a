// A text with the gate of each letter: at 0 only the memory counts, at 1 only the model.
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
    app.formula("𝐳 = {memory:(1 − g) 𝐦} + {model:g 𝐡},   {gate:g} = σ({model:𝐡} · 𝐰 + push)");
    app.motion("token", { every: 400 });
    app.knob("push", { format: (x) => tf.fixed(x, 1) });
    const { curve } = app.spec.numbers({ ...app.values(), ...app.first });
    const [low, high] = [
      Math.floor(5 * Math.min(...curve)) / 5,
      Math.ceil(5 * Math.max(...curve)) / 5,
    ];
    const half = (pushes.length - 1) / 2;
    const trained = curve[half];
    const worst = curve.at(-1);
    app.ask({
      name: "memory-alone",
      question: `With the trained gate, which mixes memory and model, the loss is ${tf.fixed(trained, 1)} nats per letter. With the model alone (far right), it is ${tf.fixed(worst, 1)}. What is it with the memory alone (far left)?`,
      about: lost,
      ghost: {
        first: trained,
        at: (nats) => [pushes[0], nats],
        to: (_, nats) => Math.round(20 * tf.clamp(nats, low, high)) / 20,
        draw: (nats) => ({
          line: [
            [pushes[0], nats],
            [0, trained],
          ],
          colour: "ink",
          dash: "2 4",
        }),
        by: [0.05, 0.05],
        label: "loss of the memory alone, in nats",
      },
      format: (nats) => `${tf.fixed(nats)} nats`,
      near: 0.15,
      hides: ["left half"],
      truth: (numbers) => numbers.curve[0],
      then: { push: pushes[0] },
      because:
        "Memory and model were trained only as a mixture, so on this text neither predicts as well alone.",
    });

    return (state, numbers) => {
      const place = (t) => [Math.floor(t / ACROSS), t % ACROSS];
      const retrieved = words[state.token].map((w) => `“${letters[w]}”`);
      const [here, next] = [text[state.token], text[state.token + 1]].map((w) => letters[w]);
      matrix.show({
        title: "the stronger a letter's colour, the more memory the gate lets in (1 − g)",
        label: `Letter ${state.token}, ${here}; arrow keys move along the text`,
        rows: gate.length / ACROSS,
        columns: ACROSS,
        most: 1,
        values: Float64Array.from(numbers.gates, (g) => 1 - g),
        text: (i, j) => letters[text[ACROSS * i + j]],
        at: place(state.token),
        frames: [{ cell: place(state.token), colour: "query" }],
      });
      const look = { wide: 2.5, term: "gate" };
      lost.show({
        title: "loss on this text, with the same push on every gate",
        label: `Push ${state.push}: ${tf.fixed(numbers.nats)} nats`,
        x: { from: -6.5, to: 6.2, label: "push: memory alone ← → model alone", whole: true },
        y: { from: low, to: high, label: "nats" },
        marks: [
          {
            line: numbers.curve.slice(0, half + 1),
            at: pushes.slice(0, half + 1),
            part: "left half",
            ...look,
          },
          { line: numbers.curve.slice(half), at: pushes.slice(half), ...look },
          {
            handle: [state.push, numbers.nats],
            knob: "push",
            label: "push on every gate",
            text: `${tf.fixed(numbers.nats)} nats`,
          },
        ],
      });
      app.read({
        "loss on this text": `${tf.fixed(numbers.nats)} nats`,
        "next letter": `“${next}”`,
        "retrieved letters": retrieved.join(" "),
        "gate g": tf.fixed(numbers.gates[state.token]),
        "p: memory, model, mixture": [numbers.memory, numbers.alone, numbers.p]
          .map((p) => tf.fixed(p))
          .join(", "),
      });
      app.say(
        `After “${here}” comes “${next}”; the retrieved letters are ${retrieved.join(", ")}. The gate is ${tf.fixed(numbers.gates[state.token])}, and “${next}” gets p = ${tf.fixed(numbers.p)}.`,
      );
    };
  },
});
