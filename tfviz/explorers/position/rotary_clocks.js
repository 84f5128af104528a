// Rotary positions: θ_m = base^(−2m/d); pair m of q and k as complex numbers q_m, k_m.
// Score = Re Σ_m q_m conj(k_m) e^{i (i−j) θ_m / s}: arrows of fixed length whose shadows add up.

const FAR = tf.declared.knobs.i.high;
const TURN = 2 * Math.PI;
const speeds = (d, base) => tf.range(d / 2, (m) => base ** ((-2 * m) / d));
const polar = (x, m) => [Math.hypot(x[2 * m], x[2 * m + 1]), Math.atan2(x[2 * m + 1], x[2 * m])];

// Each clock's arrow at a distance: [length, angle].
function arrows({ pairs, pair, base }, distance) {
  const [q, k] = pairs[pair];
  return speeds(q.length, base).map((w, m) => {
    const [[a, alpha], [b, beta]] = [polar(q, m), polar(k, m)];
    return [a * b, alpha - beta + distance * w];
  });
}
const tip = ([r, angle]) => [r * Math.cos(angle), r * Math.sin(angle)];
const shadow = (list) => tf.sum(list.map((arrow) => tip(arrow)[0]));

// The same number the way a model computes it: turn both vectors, then the dot product.
function turned(x, place, base) {
  return speeds(x.length, base).flatMap((w, m) => {
    const [r, angle] = polar(x, m);
    return tip([r, angle + place * w]);
  });
}

function numbers(state) {
  const [q, key] = state.pairs[state.pair];
  const at = (x, place) => turned(x, (place + state.shift) / state.interpolate, state.base);
  const list = arrows(state, (state.i - state.j) / state.interpolate);
  return {
    arrows: list.map(tip),
    score: shadow(list),
    product: tf.dot(at(q, state.i), at(key, state.j)),
  };
}

export default tf.explorer({
  ends: ({ pairs }) => ({ pair: { of: Object.keys(pairs) } }),
  numbers,
  setup(app) {
    const { pairs, trained } = app.values();
    const names = Object.keys(pairs);
    const many = pairs[names[0]][0].length / 2;
    const perLine = (w) => Math.min(many, Math.max(2, Math.floor(w / 74)));
    const lines = (w) => Math.ceil(many / perLine(w));
    const faces = app.plane({
      height: (width) => lines(width) * Math.min(178, width / perLine(width) + 32) + 8,
    });
    const below = app.split("1fr 1fr");
    const [sum, graph] = [0, 1].map(() => app.plane({ into: below, height: () => 210 }));
    app.formula("score = Σ |{query:qₘ}| |{key:kₘ}| cos( {attention:(i − j) θₘ + αₘ − βₘ} )");
    const go = (distance) => {
      const n = tf.clamp(Math.round(distance), -FAR, FAR);
      const j = tf.clamp(app.get("j"), Math.max(0, -n), Math.min(FAR, FAR - n));
      return { i: j + n, j };
    };
    app.knobsOf("i", "j");
    app.motion("shift", { every: 80, format: (x) => `+${x}` });
    app.knob("base", { format: tf.count });
    app.knob("interpolate", { format: tf.sig });
    if (names.length > 1)
      app.knob("pair", { as: "select", options: names.map((x) => [x, tf.token(x)]) });
    const before = numbers(app.values()).arrows;
    const { i, base, interpolate } = app.first;
    const turn = ([x, y], [a, b]) => Math.abs(Math.atan2(x * b - y * a, x * a + y * b));
    app.ask(
      many > 1 &&
        base > 1 &&
        i < FAR && {
          name: "query-moves",
          question: "Only the query moves on by one place. Which clock's angle changes most?",
          chips: tf.range(many, (m) => `clock ${m}`),
          truth: (numbers) => tf.best(before.map((arrow, m) => turn(arrow, numbers.arrows[m]))),
          then: { i: i + 1 },
          because: `The first hand turns by ${tf.fixed(360 / TURN / interpolate, 0)}° a place, each further one ${tf.sig(base ** (1 / many))} times more slowly.`,
        },
    );

    return (state, numbers) => {
      const [q, key] = state.pairs[state.pair];
      const distance = state.i - state.j;
      const theta = speeds(2 * many, state.base);
      const list = arrows(state, distance / state.interpolate);
      const lengths = [q, key].flatMap((x) => tf.range(many, (m) => polar(x, m)[0]));
      const longest = Math.max(1e-9, ...lengths);
      const columns = perLine(faces.width);
      // one clock a pair of numbers: the hands of query and key, and the angle between them
      const clocks = theta.flatMap((w, m) => {
        const [x, y] = [m % columns, -1.35 * Math.floor(m / columns)];
        const hand = (v, place) => {
          const [length, start] = polar(v, m);
          return [
            (0.38 * length) / longest,
            start + ((place + state.shift) / state.interpolate) * w,
          ];
        };
        const between = (((list[m][1] % TURN) + 1.5 * TURN) % TURN) - TURN / 2 || 0; // −π … π
        const degrees = (between * 360) / TURN;
        const [queryHand, keyHand] = [hand(q, state.i), hand(key, state.j)];
        const to = (arrow) => tip(arrow).map((c, axis) => c + [x, y][axis]);
        const wedge = tf.arc(x, y, 0.2, keyHand[1], keyHand[1] + between);
        return [
          { line: tf.arc(x, y, 0.43), colour: "grid", wide: 1 },
          { shape: [[x, y], ...wedge], colour: "attention", strength: 0.35, term: "attention" },
          { arrow: [[x, y], to(keyHand)], colour: "key", wide: 2.5, term: "key" },
          { arrow: [[x, y], to(queryHand)], colour: "query", wide: 3, term: "query" },
          { text: `${tf.fixed(degrees, 0)}°`, at: [x, y - 0.56], colour: "attention" },
        ];
      });
      faces.show({
        title: `clock m = 0 … ${many - 1}: hands of query and key; violet: the angle between them`,
        label: `${many} clocks, query at ${state.i + state.shift}, key at ${state.j + state.shift}`,
        square: true,
        hover: false,
        marks: clocks,
        x: { from: -0.47, to: columns - 0.53, bare: true },
        y: { from: -1.35 * (lines(faces.width) - 1) - 0.68, to: 0.46, bare: true },
      });
      // the arrows end to end: each begins where the one before it ends
      const all = tf.sum(list.map(([r]) => r)) || 1;
      const ends = [[0, 0]];
      for (const [x, y] of numbers.arrows) ends.push([ends.at(-1)[0] + x, ends.at(-1)[1] + y]);
      const tall = Math.max(0.3 * all, ...ends.map(([, y]) => 1.15 * Math.abs(y)));
      const format = (x) => tf.fixed(x, 1);
      sum.show({
        title: "the violet arrows end to end: how far right they reach is the score",
        label: `Arrows of ${many} clocks end to end reach ${tf.fixed(numbers.score)} to the right, of at most ${tf.fixed(all)}`,
        square: true,
        hover: false,
        x: { from: -1.05 * all, to: 1.05 * all, ticks: [-all, 0, all], format },
        y: { from: -tall, to: tall, bare: true },
        marks: [
          { rule: { x: 0 }, colour: "grid" },
          { rule: { y: 0 }, colour: "grid" },
          { line: [ends.at(-1), [numbers.score, -tall]], colour: "muted", dash: "3 3", wide: 1 },
          { line: [-tall, -tall], at: [0, numbers.score], colour: "attention", wide: 6 },
          tf.range(many, (m) => ({
            arrow: [ends[m], ends[m + 1]],
            colour: "attention",
            wide: 3,
            term: "attention",
          })),
        ],
      });
      const curve = (factor) =>
        tf.range(8 * FAR + 1, (m) => [m / 4 - FAR, shadow(arrows(state, (m / 4 - FAR) / factor))]);
      const halves = (x) => (x * FAR) / 2;
      graph.show({
        title: "score by distance i − j: drag the dot; left of 0 the key comes later",
        label: `Score for distances ${-FAR} to ${FAR}; at ${distance} it is ${tf.fixed(numbers.score)}`,
        x: { from: -FAR, to: FAR, label: "distance i − j", ticks: [-2, -1, 0, 1, 2].map(halves) },
        y: { from: -all, to: all, ticks: [0], format: () => "0" },
        marks: [
          { rule: { x: 0 }, colour: "grid" },
          trained > 0 && [
            { rule: { x: trained }, colour: "ink", dash: "5 4" },
            { text: `trained to ${trained}`, at: [trained, -0.9 * all], dx: 4, align: "start" },
          ],
          state.interpolate > 1 && { line: curve(1), colour: "muted", wide: 1 },
          { line: curve(state.interpolate), colour: "attention" },
          {
            handle: [distance, numbers.score],
            name: "distance",
            to: go,
            text: `distance ${distance}`,
          },
        ],
      });
      app.read({
        "distance i − j": tf.fixed(distance, 0),
        "score, from the distance": tf.fixed(numbers.score, 3),
        "score, from the turned vectors": tf.fixed(numbers.product, 3),
        "slowest clock: one turn in": `${tf.count((TURN * state.interpolate) / theta.at(-1))} positions`,
      });
      const where = `Query at ${state.i + state.shift}, key at ${state.j + state.shift}`;
      app.say(`${where}: distance ${tf.fixed(distance, 0)}, score ${tf.fixed(numbers.score)}.`);
    };
  },
});
