// The soft dictionary: â_j = q·k_j, a = softmax(β â), z = Σ a_j v_j, for keys and values in the plane.

function numbers({ query, beta, K, V }) {
  const scores = K.map((k) => tf.dot(query, k));
  const weights = tf.softmax(scores.map((s) => beta * s));
  return { scores, weights, answer: blend(weights, V) };
}
const blend = (weights, V) => [0, 1].map((c) => tf.sum(weights.map((a, j) => a * V[j][c])));
const longest = (K) => 2 * (Math.max(...K.map(tf.norm)) || 0.5);
const vector = (x) => `(${x.map((v) => tf.fixed(v)).join(", ")})`;

export default tf.explorer({
  fit(fine, app) {
    const [x, y, more] = fine.query ?? [0, 0];
    const far = more === undefined ? Math.hypot(x, y) : Number.NaN;
    if (!(far <= longest(app.get("K")) + 1e-9)) delete fine.query;
    return fine;
  },
  numbers,
  setup(app) {
    const { K, V, ...given } = app.values();
    const [names, axes] = [given.names, given.axes].map((words) => words.map(tf.token));
    const most = longest(K);
    const ends = [0, 1].map((c) => [Math.min, Math.max].map((of) => of(...V.map((v) => v[c]))));
    const middle = ends.map(tf.mean);
    // where z can be said to be: the values and some air around them
    const room = ends.map(([from, to]) => {
      const air = 0.15 * (to - from || 1);
      return [from - air, to + air];
    });
    const pair = app.split("1fr 1fr");
    const tall = { into: pair, height: (width) => Math.min(width, 290) };
    const [asks, blends] = [app.plane(tall), app.plane(tall)];
    app.formula(
      "{weight:a} = softmax( β {key:𝐊} {query:𝐪} ),   {attention:𝐳} = Σ {weight:a} {value:𝐯}",
    );
    const table = app.table({ columns: ["entry", "score", "β score", "weight"] });

    const shorten = (x, y) => {
      const share = Math.min(1, most / (Math.hypot(x, y) || 1));
      return { query: [x, y].map((c) => Math.round(c * share * 1e4) / 1e4) };
    };
    const polar = () => {
      const [x, y] = app.get("query");
      return [Math.hypot(x, y), (Math.atan2(y, x) * 180) / Math.PI];
    };
    let facing = polar()[1]; // a query of length 0 still knows where it looked
    const turned = (length, degrees) => {
      const angle = (degrees * Math.PI) / 180;
      app.set(shorten(length * Math.cos(angle), length * Math.sin(angle)));
    };
    app.knob("beta", { format: (x) => x.toFixed(1) });
    app.slider("length", {
      label: "length of the query",
      letter: "|q|",
      max: most,
      step: 0.01,
      format: (x) => x.toFixed(2),
      read: () => polar()[0],
      write: (x) => turned(x, facing),
    });
    app.slider("angle", {
      label: "direction of the query",
      min: -180,
      max: 180,
      step: 1,
      read: () => facing,
      format: (x) => `${Math.round(x)}°`,
      write: (x) => {
        facing = x;
        turned(polar()[0], x);
        app.redraw("query");
      },
    });
    const { query: first } = app.first;
    const loudest = tf.best(numbers({ ...app.values(), query: first }).weights);
    const [wide, high] = ends.map(([from, to]) => to - from || 1);
    app.ask({
      name: "z-without-sharpness",
      question: `At β = ${tf.sig(app.first.beta)}, ${names[loudest]} has the largest weight. Where does the answer z lie at β = 0?`,
      about: blends,
      ghost: {
        first: [ends[0][0], room[1][1] - 0.05 * high],
        at: (place) => place,
        to: (x, y) => [x, y].map((c, n) => Math.round(1e3 * tf.clamp(c, ...room[n])) / 1e3),
        draw: (place) => ({ points: [place], size: 4, colour: "ink" }),
        by: [0.04 * wide, 0.04 * high],
        label: "where z lies",
      },
      format: vector,
      near: 0.12 * Math.hypot(wide, high),
      truth: (numbers) => numbers.answer,
      then: { beta: 0 },
      because:
        "At β = 0 all entries get the same weight, so z is the mean of the values. The larger β is, the nearer z comes to the value with the largest weight.",
    });

    return (state, numbers) => {
      const [size, degrees] = polar();
      if (size > 1e-6) facing = degrees;
      const circle = (r) => ({ line: tf.arc(0, 0, r), colour: "grid", wide: 1 });
      const outside = ([x, y]) => {
        const long = Math.hypot(x, y) || 1; // the name stands where the key points
        return [x * (1 + (0.2 * most) / long), y * (1 + (0.14 * most) / long)];
      };
      asks.show({
        title: "keys and query: drag the query",
        label: `Keys ${names.join(", ")} and the query, direction ${Math.round(degrees)}°, length ${tf.fixed(size)}`,
        square: true,
        hover: false,
        x: { from: -most, to: most, bare: true },
        y: { from: -most, to: most, bare: true },
        marks: [
          { ...circle(most), dash: "2 4" },
          circle(most / 2),
          { rule: { x: 0 }, colour: "grid" },
          { rule: { y: 0 }, colour: "grid" },
          // a disc at each key, its area the weight
          ...K.map((key, j) => ({
            points: [key],
            size: Math.sqrt(numbers.weights[j]) * 30,
            term: "weight",
            colour: tf.faint("attention", 55),
          })),
          ...K.flatMap((key, j) => [
            { arrow: [[0, 0], key], colour: "key", term: "key" },
            { text: names[j], at: outside(key), colour: "key", bold: true, term: "key" },
          ]),
          { arrow: [[0, 0], state.query], colour: "query", wide: 3, term: "query" },
          {
            handle: state.query,
            name: "query",
            colour: "query",
            term: "query",
            to: shorten,
            by: [0.05, 0.05],
            text: vector(state.query),
          },
        ],
      });
      blends.show({
        title: "values and the answer z",
        label: `Values of ${names.join(", ")} and the answer z = ${vector(numbers.answer)} inside the shape that they span`,
        x: { label: axes[0] },
        y: { label: axes[1], from: room[1][0], to: room[1][1] },
        marks: [
          // z is a mean of the values, so it never leaves their hull
          { shape: tf.hull(V), colour: "value", edge: true },
          V.map((v, j) => ({
            line: [v, numbers.answer],
            colour: "attention",
            wide: 7 * numbers.weights[j],
            term: "weight",
          })),
          { points: V, colour: "value", size: 6, term: "value" },
          V.map((v, j) => ({
            text: names[j],
            at: v,
            colour: "value",
            bold: true,
            term: "value",
            dy: v[1] < middle[1] ? 17 : -17,
            align: v[0] > middle[0] ? "end" : "start",
          })),
          { points: [numbers.answer], size: 8, colour: "attention", term: "attention" },
          {
            text: "z",
            at: numbers.answer,
            dx: numbers.answer[0] < middle[0] ? 17 : -17, // names of values stand above and below
            colour: "attention",
            bold: true,
            term: "attention",
          },
        ],
        hover: (x, y) => vector([x, y]),
      });
      table.show(
        names.map((head, j) => {
          const [s, a] = [numbers.scores[j], numbers.weights[j]];
          const bar = { bar: a, text: tf.fixed(a, 3), colour: "attention" };
          return { head, term: "weight", cells: [tf.fixed(s), tf.fixed(state.beta * s), bar] };
        }),
      );
      const order = tf.range(names.length).sort((a, b) => numbers.weights[b] - numbers.weights[a]);
      const lead =
        order.length > 1 ? state.beta * (numbers.scores[order[0]] - numbers.scores[order[1]]) : 0;
      app.read({
        "answer z": vector(numbers.answer),
        "largest ÷ second weight": tf.short(Math.exp(Math.min(lead, 600))),
        "effective entries (e to the entropy)": tf.fixed(Math.exp(tf.entropy(numbers.weights))),
      });
      const talk = order.map((j) => `${names[j]} has the weight ${tf.fixed(numbers.weights[j])}`);
      app.say(
        `β = ${state.beta.toFixed(1)}: ${talk.slice(0, 2).join(", ")}; z = ${vector(numbers.answer)}`,
      );
    };
  },
});
