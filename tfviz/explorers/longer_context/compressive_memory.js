// Two queues of one layer: [squeezed; single], fed by segments of four tokens, as in the library.
const { x, segment, layers } = tf.data;
const squeeze = {
  mean: tf.mean,
  max: (xs) => Math.max(...xs),
  newest: (xs) => xs.at(-1),
};
// where single rows begin, and the groups behind them: rows wait until there are c of them
const belt = ({ step, m, m_c, c, f }) => {
  let [begin, groups] = [0, []];
  for (let s = 1; s <= step; s++) {
    const leaving = Math.floor(Math.max(0, s * segment - begin - m) / c);
    for (let g = 0; g < leaving; g++, begin += c)
      groups.push([begin, squeeze[f](x.slice(begin, begin + c))]);
    groups = groups.slice(Math.max(0, groups.length - m_c));
  }
  return { begin, groups };
};

// how far all layers reach, if one reaches `far` tokens: each further layer adds whole segments
const reachOf = (far) => (layers - 1) * Math.ceil(far / segment) * segment + far;
const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers(state) {
    const { begin, groups } = belt(state);
    const off = groups.flatMap(([a, v]) => tf.range(state.c, (n) => Math.abs(x[a + n] - v)));
    return {
      begin,
      squeezed: groups,
      off: tf.sum(off) / Math.max(1, off.length),
      ranges: tf.range(8, (n) => state.m + (n + 1) * state.m_c),
    };
  },
  setup(app) {
    const bars = app.plane({ height: (width) => tf.clamp(width * 0.38, 210, 270) });
    const far = app.plane({ height: (width) => tf.clamp(width * 0.3, 190, 220) });
    app.formula("reach of a layer = {single:single slots} + c · {squeezed:squeezed slots}");
    app.motion("step", { every: 900, verbs: ["back", "read on"] });
    app.knobsOf("m", "m_c", "c");
    app.knob("f", { as: "choice" });
    const question = app.ask({
      name: "range",
      question:
        "Six slots hold single rows, five hold squeezed ones, and three rows are squeezed into one. After all twelve segments, how many tokens are in the two memories, whole or squeezed?",
      number: {},
      unit: "tokens",
      near: 0,
      truth: (numbers) => numbers.ranges[2],
      then: { step: 12, m: 6, m_c: 5, c: 3 },
      because:
        "Six rows are kept as they were, and five slots stand for three tokens each: 6 + 5 · 3 = 21.",
    });

    return (state, numbers) => {
      const { open } = question;
      const done = state.step * segment;
      const from = numbers.squeezed.length ? numbers.squeezed[0][0] : numbers.begin;
      const bar = (i, height, wide = 1) => tf.box(i + 0.08, i + wide - 0.08, 0, height);
      const kept = (i) => i >= numbers.begin && i < done;
      const newest = (i) => i >= done - segment && kept(i);
      const look = (i) => {
        if (newest(i)) return { colour: "query", strength: 0.75 };
        if (kept(i)) return { colour: "key", strength: 0.6, term: "single" };
        return { colour: "muted", strength: i < done ? 0.08 : 0.4 };
      };
      bars.show({
        title:
          "narrow bars: tokens (orange: new, blue: in memory, faint: gone); wide violet: squeezed rows",
        label: `${plural(state.step, "segment")} read: ${plural(done - numbers.begin, "single row")}, ${plural(numbers.squeezed.length, "squeezed row")}`,
        x: { from: 0, to: x.length, whole: true, label: "token" },
        y: { from: 0, to: 1.1, label: "the token's number" },
        // the tokens, then each squeezed row as one wide bar over those that it stands for
        marks: [
          ...x.map((v, i) => ({ shape: bar(i, v), ...look(i) })),
          ...numbers.squeezed.map(([a, v]) => ({
            shape: bar(a, v, state.c),
            colour: "attention",
            strength: 0.55,
            edge: true,
            term: "squeezed",
          })),
          ...tf.range(state.step + 1, (s) => ({ rule: { x: s * segment }, colour: "muted" })),
        ],
      });
      const line = (m, m_c) => tf.range(8, (r) => [r + 1, m + (r + 1) * m_c]);
      const most = Math.max(40, 9 * state.m_c + state.m);
      far.show({
        title: "tokens that a layer reaches, at the same number of slots",
        label: open
          ? "Reach against c"
          : `With c = ${state.c}: ${numbers.ranges[state.c - 1]} tokens`,
        x: { from: 1, to: 8, whole: true, label: "rows squeezed into one, c" },
        y: { from: 0, to: most, label: "tokens" },
        marks: [
          {
            line: line(state.m + state.m_c, 0),
            colour: "muted",
            dash: "5 3",
            name: "all slots single",
          },
          !open && [
            {
              line: line(state.m, state.m_c),
              colour: "attention",
              wide: 2.5,
              name: "as set",
              bold: true,
              term: "squeezed",
            },
            { handle: [state.c, numbers.ranges[state.c - 1]], knob: "c", text: `c = ${state.c}` },
          ],
        ],
      });
      app.read({
        "slots (the cost)": `${state.m + state.m_c}`,
        "reach of a layer, in tokens": open ? "?" : numbers.ranges[state.c - 1],
        [`reach of ${layers} layers`]: open ? "?" : reachOf(numbers.ranges[state.c - 1]),
        "squeezed numbers are off by": tf.fixed(numbers.off, 3),
      });
      const whole = done
        ? `Tokens ${numbers.begin} to ${done - 1} are kept as they were`
        : "Nothing is in memory";
      const small =
        from < numbers.begin
          ? `, ${from} to ${numbers.begin - 1} in ${plural(numbers.squeezed.length, "squeezed row")}`
          : "";
      app.say(`${plural(state.step, "segment")} read. ${whole}${small}.`);
    };
  },
});
