// One row of attention under three masks, as functions of the distance x; the ramp is the library's.
const { s, v } = tf.data;
const L = s.length;
const loud = s.map(Math.exp);
const most = Math.max(...loud);
const through = {
  all: () => 1,
  ramp: (x, { z, R }) => tf.clamp((R + z - x) / R, 0, 1),
  step: (x, { scale }) => (x <= scale ? 1 : 0),
};
const titles = {
  all: "vanilla: every key",
  ramp: "adaptive: a learned ramp",
  step: "fixed: a step",
};
const passed = (name, k) => loud.map((e, x) => through[name](x, k) * e);
const weights = (name, k) => passed(name, k).map((e, _, all) => e / tf.sum(all));

export default tf.explorer({
  numbers(state) {
    const weightsByMask = Object.fromEntries(
      Object.keys(through).map((name) => [name, weights(name, state)]),
    );
    const sum = tf.sum(passed("ramp", state));
    const y = tf.sum(weightsByMask.ramp.map((a, x) => a * v[x]));
    const on = (x) => x > state.z && x < state.z + state.R;
    return {
      ...weightsByMask,
      pull: loud.map((e, x) => (on(x) ? ((e / state.R) * (v[x] - y)) / sum : 0)),
      keys: Object.values(weightsByMask).map((a) => a.filter((x) => x > 0).length),
    };
  },
  setup(app) {
    const three = app.split("1fr 1fr 1fr");
    const height = (w) => tf.clamp(w * 0.75, 190, 250);
    const put = (name) => app.plane({ height, into: three, lead: name === "ramp" });
    const planes = Object.keys(through).map(put);
    app.formula("m(x) = clip(({ramp:R} + {whole:z} − x) / {ramp:R}, 0, 1)");
    app.knobsOf("z", "R", "scale");
    const wide = app.first.scale > app.first.z; // fixed windows are looked at
    const step = {
      name: "more",
      question:
        "Which lets more keys through, at least in part: a window of ω = 14, or a ramp from z = 8 to z + R = 21?",
      chips: ["the window", "the ramp"],
      truth: (numbers) => Number(numbers.keys[1] > numbers.keys[2]),
      then: { z: 8, R: 13, scale: 14 },
      guards: [],
      because:
        "The ramp lets 21 keys through, the last ones with little weight; the window lets 15 through, all in full.",
    };
    const learned = {
      name: "who",
      question:
        "Training asks whether a slightly larger z would help. For how many of the 32 keys would it change the mask, when z = 8.5 and R = 6?",
      number: {},
      unit: "keys",
      near: 0,
      truth: (numbers) => numbers.pull.filter((p) => p !== 0).length,
      then: { z: 8.5, R: 6 },
      guards: [],
      because:
        "The mask changes only on the ramp: at the distances 9, 10, … 14. A key that passes in full, or not at all, gives z no gradient.",
    };
    const question = app.ask(wide ? step : learned);

    return (state, numbers) => {
      const edge = Math.min(L - 0.5, state.z + state.R);
      const on = tf.range(L).filter((x) => x > state.z && x < state.z + state.R);
      const last = state.scale + 0.5;
      const low = through.ramp(edge, state);
      // each mask as a line through its corners; a step has two at one place
      const curves = {
        all: { line: [1, 1], at: [0, L - 0.5] },
        ramp: { line: [1, 1, low, through.ramp(L - 0.5, state)], at: [0, state.z, edge, L - 0.5] },
        step: { line: [1, 1, 0, 0], at: [0, last, last, L - 0.5] },
      };
      const handles = {
        all: [],
        ramp: [
          { handle: [state.z, 1], knob: "z", text: `z = ${state.z}`, term: "whole" },
          {
            handle: [edge, low],
            knob: "R",
            text: `R = ${state.R}`,
            term: "ramp",
            to: (x) => ({ R: app.snap("R", x - state.z) }),
          },
        ],
        step: [
          {
            handle: [last, 1],
            knob: "scale",
            text: `ω = ${state.scale}`,
            to: (x) => ({ scale: app.snap("scale", x - 0.5) }),
          },
        ],
      };
      const moving = {
        points: on.map((x) => [x, through.ramp(x, state)]),
        colour: "key",
        name: "keys on the ramp",
        term: "ramp",
      };
      Object.keys(through).forEach((name, place) => {
        planes[place].show({
          title: titles[name],
          label: `${titles[name]}: ${numbers.keys[place]} of ${L} keys pass`,
          x: { label: "tokens back, x", from: -0.7, to: L - 0.3, whole: true },
          y: { from: 0, to: 1.12, ticks: [0, 1] },
          marks: [
            { bars: loud.map((e) => e / most), colour: "grid", name: "before the mask" },
            {
              bars: passed(name, state).map((e) => e / most),
              colour: "attention",
              name: "what passes",
              term: name === "ramp" ? "whole" : undefined,
            },
            { ...curves[name], colour: "query", wide: 2.5 },
            name === "ramp" && !question.open && moving,
            handles[name],
          ],
        });
      });
      app.read({
        "keys that pass each mask": numbers.keys.join(", "),
        "keys on the ramp": question.tell(on.length),
        "dy/dz": question.tell(tf.fixed(tf.sum(numbers.pull), 3)),
      });
      app.say(
        `With z = ${state.z} and R = ${state.R}, ${numbers.keys[1]} of ${L} keys pass, at least in part; the step lets ${numbers.keys[2]} through.`,
      );
    };
  },
});
