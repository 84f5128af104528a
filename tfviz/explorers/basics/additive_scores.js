// Two scores of the same state and notes: e_j = tanh(s W_a + h_j U_a) v_aᵀ and s h_jᵀ / √d.

const SIZES = tf.declared.knobs.size.of;
const SHARP = tf.declared.knobs.sharpness.of;
const times = (x, W) => W[0].map((_, m) => tf.sum(x.map((value, a) => value * W[a][m])));

function weights({ s, H, W_a, U_a, v_a, sharpness }, size) {
  const asks = times(s, W_a);
  const score = (x, m) => Math.tanh(size * (asks[m] + x)) * v_a[m] * sharpness;
  return {
    additive: tf.softmax(H.map((h) => tf.sum(times(h, U_a).map(score)))),
    dot: tf.softmax(H.map((h) => (size * size * tf.dot(s, h)) / Math.sqrt(s.length))),
  };
}

function numbers(state) {
  const most = (kind) => SIZES.map((size) => Math.max(...weights(state, size)[kind]));
  return { ...weights(state, state.size), most_additive: most("additive"), most_dot: most("dot") };
}

export default tf.explorer({
  numbers,
  setup(app) {
    const plane = app.plane();
    app.formula("{additive:additive: tanh(𝐬 𝐖 + 𝐡 𝐔) · 𝐯}");
    app.formula("{dot:dot product: 𝐬 · 𝐡 / √d}");
    const table = app.table({ columns: ["note", "additive", "dot product"] });
    app.knobsOf("size", "sharpness");
    const question = app.ask({
      name: "longer-states",
      question:
        "As state and notes grow longer, the dot product's largest weight follows the dashed curve. Draw the additive score's.",
      about: plane,
      hides: ["additive"],
      curve: { at: SIZES },
      truth: (numbers) => numbers.most_additive,
      guards: ["sharpness"],
      because:
        "Since |tanh| < 1, no score exceeds the sum of the |v|, so the largest weight has a ceiling.",
    });

    const names = app.get("names").map(tf.token);
    return (state, numbers) => {
      const lengths = tf.range(91, (m) => 10 ** (m / 30 - 1));
      const curve = (kind) =>
        lengths.map((size) => [size, Math.max(...weights(state, size)[kind])]);
      // tanh of endlessly long states is ±1: there the curve ends
      const limit = (sharpness) => Math.max(...weights({ ...state, sharpness }, 1e9).additive);
      const ceiling = limit(state.sharpness);
      // the dot on the ceiling: the sharpness whose ceiling is nearest to where it is held
      const far = (sharpness, y) => Math.abs(limit(sharpness) - y);
      const lift = (_, y) => ({
        sharpness: SHARP.reduce((best, v) => (far(v, y) < far(best, y) ? v : best)),
      });
      const now = Math.max(...numbers.additive);
      const dot = Math.max(...numbers.dot);
      plane.show({
        title: "largest weight of a note, as state and notes grow longer",
        label: `Largest weight at factor ${state.size}: dot product ${tf.fixed(dot)}${question.tell(`, additive ${tf.fixed(now)}`, "")}`,
        x: { log: true, from: 0.1, to: 100, label: "factor on state and notes" },
        y: { from: 0, to: 1 },
        marks: [
          { rule: { x: state.size }, colour: "grid" },
          { line: curve("dot"), name: "dot product", colour: "muted", dash: "6 3", term: "dot" },
          { rule: { y: ceiling }, colour: "muted", dash: "2 3", part: "additive" },
          {
            text: "ceiling",
            at: [0.1, ceiling],
            colour: "muted",
            dx: 30,
            dy: ceiling > 0.9 ? 12 : -10,
            part: "additive",
          },
          {
            line: curve("additive"),
            name: "additive",
            term: "additive",
            part: "additive",
            colour: "attention",
            wide: 2.5,
            bold: true,
          },
          {
            handle: [0.1, ceiling],
            knobY: "sharpness",
            to: lift,
            colour: "key",
            text: `v × ${state.sharpness}`,
            part: "additive",
          },
          {
            handle: [state.size, question.open ? dot : now],
            knob: "size",
            text: `factor ${state.size}`,
          },
        ],
        hover: (x, y, mark) =>
          `${mark.name ?? "largest weight"} at factor ${tf.sig(x)}: ${tf.fixed(y)}`,
      });
      const bar = (a, colour, part) => ({ bar: a, text: tf.fixed(a, 3), colour, part });
      table.show(
        names.map((name, j) => ({
          head: name,
          cells: [bar(numbers.additive[j], "attention", "additive"), bar(numbers.dot[j], "muted")],
        })),
      );
      const best = (a) => tf.fixed(Math.max(...a));
      const where = (a) => `on “${names[a.indexOf(Math.max(...a))]}”`;
      const words = question.tell(
        `the additive score puts ${best(numbers.additive)} of the weight ${where(numbers.additive)} and the dot product ${best(numbers.dot)} ${where(numbers.dot)}`,
        `the dot product puts ${best(numbers.dot)} of the weight ${where(numbers.dot)}`,
      );
      app.say(`At factor ${state.size}, ${words}.`);
    };
  },
});
