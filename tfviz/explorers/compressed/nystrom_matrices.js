// softmax(Q K̃ᵀ/√d) Z softmax(Q̃ Kᵀ/√d), Z after t steps towards the inverse of softmax(Q̃ K̃ᵀ/√d).
const { heads, text, last } = tf.data;
const L = text.length;
const softmaxRows = (Q, K) =>
  Q.map((q) => Array.from(tf.softmax(K.map((k) => tf.dot(q, k) / Math.sqrt(q.length)))));
const mean = (rows) => rows[0].map((_, c) => tf.mean(rows.map((row) => row[c])));
const landmarks = (X, m) => {
  const wide = L / m;
  return tf.range(m, (c) => mean(X.slice(c * wide, (c + 1) * wide)));
};
const turned = (A) => A[0].map((_, c) => A.map((row) => row[c]));
const times = (A, B) => {
  const columns = turned(B);
  return A.map((row) => columns.map((column) => tf.dot(row, column)));
};
// a I − A
const from = (a, A) => A.map((row, i) => row.map((x, j) => (i === j ? a - x : -x)));
const largest = (rows) => Math.max(...rows.map((row) => tf.sum(row.map(Math.abs))));
const firstGuess = (M) => {
  const size = largest(M) * largest(turned(M));
  return turned(M).map((row) => row.map((x) => x / size));
};
const step = (M, Z) => {
  const MZ = times(M, Z);
  const bracket = from(13, times(MZ, from(15, times(MZ, from(7, MZ)))));
  return times(Z, bracket).map((row) => row.map((x) => x / 4));
};
const missed = (A, other) => {
  const square = (of) => tf.sum(A.map((row, i) => tf.sum(row.map((x, j) => of(x, i, j) ** 2))));
  return Math.sqrt(square((x, i, j) => x - other[i][j]) / square((x) => x));
};
const all = tf.keep((m, layer) => {
  const { Q, K } = heads[layer - 1];
  const [Qm, Km] = [landmarks(Q, m), landmarks(K, m)];
  const [A, left, M, right] = [
    softmaxRows(Q, K),
    softmaxRows(Q, Km),
    softmaxRows(Qm, Km),
    softmaxRows(Qm, K),
  ];
  const inverses = [firstGuess(M)];
  while (inverses.length <= last) inverses.push(step(M, inverses.at(-1)));
  const products = inverses.map((Z) => times(times(left, Z), right));
  return { A, left, right, inverses, products, missed: products.map((B) => missed(A, B)) };
}, 8);
const most = (A) => Math.max(...A.flat().map(Math.abs));
/** So many steps are drawn while the question is open. */
const SHOWN = 6;
const stepsOf = (n) => `${n} step${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers({ m, steps, layer }) {
    const { A, left, right, inverses, products, missed } = all(m, layer);
    const product = products[steps];
    const negative = product.flat().filter((x) => x < 0).length / (L * L);
    return { A, left, middle: inverses[steps], right, product, missed, negative };
  },
  setup(app) {
    let blinked = false; // whether the true map stands where its product does
    const blink = () => {
      blinked = !blinked;
      app.redraw("blink");
    };
    const both = app.split("1fr 1fr");
    const map = app.matrix({ axes: ["query", "key"], tall: 280, press: blink, into: both });
    const middle = app.matrix({ bare: true, tall: 240, into: both });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.35, 190, 240), lead: true });
    app.formula("{product:𝐀} = {left:𝐂_q} {middle:𝐙} {right:𝐂_k}");
    app.knobsOf("m", "steps", "layer");
    const question = app.ask({
      name: "blow-up",
      question:
        "At first the error falls as Z comes closer to the inverse of M, and then it rises a little. After 20 steps, Z is close to the exact inverse. How large is the product's error then, as a share of the map's size?",
      about: plane,
      ghost: {
        first: 0.05,
        at: (error) => [last, error],
        to: (_, y) => tf.clamp(y, 0.01, 3),
        by: ([x, error], [right, up]) => [x, error * 1.25 ** (right || up)],
        label: "the error after 20 steps",
      },
      format: (error) => tf.percent(error, 0),
      near: 0.6,
      hides: ["later"],
      guards: ["steps", "m"],
      truth: () => all(16, 1).missed[last],
      then: { m: 16, steps: last, layer: 1 },
      because:
        "Several landmarks of this text are nearly alike, so M is close to a matrix that has no inverse, and its own inverse has huge entries. These multiply every small error in the landmarks' rows. After six steps, Z still leaves out the directions in which M is almost zero.",
    });

    return (state, numbers) => {
      const { A, missed: errors } = numbers;
      const strongest = most(A);
      const error = tf.percent(errors[state.steps], 0);
      const shown = question.open ? SHOWN : last;
      map.show({
        title: blinked
          ? "the true map: press for the product"
          : `product after ${stepsOf(state.steps)}: press for the true map`,
        label: blinked
          ? `Layer ${state.layer}: weights of ${L} queries over ${L} keys. Press for the product.`
          : `The product of the three matrices; ${tf.percent(numbers.negative, 0)} of its entries are negative. Press for the true map.`,
        rows: L,
        values: blinked ? A : numbers.product,
        most: strongest,
        signed: true,
      });
      middle.show({
        title: `$𝐙$, the estimate of $𝐌⁻¹$, after ${stepsOf(state.steps)}`,
        label: `The estimate of the pseudo-inverse after ${stepsOf(state.steps)}; its largest entry is ${tf.short(most(numbers.middle))}`,
        rows: state.m,
        columns: state.m,
        values: numbers.middle,
        most: most(numbers.middle),
        signed: true,
      });
      const points = errors.map((y, x) => [x, y]);
      plane.show({
        title: "error of the product, as a share of the true map's size (log), by steps",
        label: `After ${stepsOf(state.steps)} the product misses ${error} of the map`,
        x: { label: "steps", from: 0, to: last, whole: true, ticks: [0, 6, 10, last] },
        y: {
          from: Math.min(0.01, ...errors),
          to: Math.max(3, 1.5 * Math.max(...errors)),
          log: true,
          ticks: [0.01, 0.1, 1],
          format: (y) => tf.percent(y, 0),
        },
        marks: [
          {
            line: points.slice(0, SHOWN + 1),
            colour: "attention",
            wide: 2.5,
            dots: true,
            term: "middle",
          },
          {
            line: points.slice(SHOWN),
            colour: "attention",
            wide: 2.5,
            dots: true,
            part: "later",
            term: "middle",
          },
          {
            handle: [state.steps, errors[Math.min(state.steps, shown)]],
            knob: "steps",
            text: stepsOf(state.steps),
            to: (x) => ({ steps: app.snap("steps", x) }),
          },
        ],
      });
      app.read({
        "error of the product": error,
        "negative entries": tf.percent(numbers.negative, 0),
        "largest entry of Z": tf.short(most(numbers.middle)),
        "entries of all three": `${tf.count(2 * L * state.m + state.m ** 2)} (map: ${tf.count(L * L)})`,
      });
      app.say(
        `With ${state.m} landmarks and ${stepsOf(state.steps)}, the product misses ${error} of the map, and ${tf.percent(numbers.negative, 0)} of the product's entries are negative.`,
      );
    };
  },
});
