// S_b = Σ_a J_a (P_l)_ab, W_b = softmax(S_b), U_c = Σ_b W_b (P_w)_bc, for one query and two heads.
const { words, scores } = tf.data;
const n = words.length;
const both = [0, 1];
// head 0 keeps its scores, and the values of head 1 meet the weights of head 1
const scoresOf = ({ score_01, score_11 }) => [
  [1, score_01],
  [0, score_11],
];
const weightsOf = ({ weight_00, weight_10 }) => [
  [weight_00, 0],
  [weight_10, 1],
];
const mixed = (rows, P) =>
  both.map((b) => rows[0].map((_, j) => tf.sum(both.map((a) => rows[a][j] * P[a][b]))));

function talk(state) {
  const S = mixed(scores, scoresOf(state));
  const W = S.map((row) => Array.from(tf.softmax(row)));
  const U = mixed(W, weightsOf(state));
  return { mixed_scores: S, weights: W, mixed_weights: U, sums: U.map(tf.sum) };
}
const entry = (x) => tf.fixed(x, 1);
const ROLES = ["key", "attention"]; // of the heads

// From left to right: words, scores, wires, weights, wires, weights that meet the values; head 0 above head 1.
function layout(plane) {
  const [W, H] = [plane.width - 24, plane.height - 22]; // one unit is one pixel
  const first = plane.width < 480 ? 36 : 44; // the width of the words
  const panel = (W - first) * (plane.width < 480 ? 0.2 : 0.22);
  const gap = (W - first - 3 * panel) / 2;
  const lefts = tf.range(3, (k) => first + k * (panel + gap));
  const top = 32; // for the names of columns
  const high = (H - top - 32) / 2; // of a head
  const row = high / n;
  const upper = [H - top, high];
  return { H, panel, gap, lefts, row, upper, at: (b, j) => upper[b] - (j + 0.5) * row };
}

// What leads from one head to another: an S from the end of one column to the beginning of the next. What
// stays in its head runs on the outside, what crosses on the inside.
function wireOf({ panel, gap, lefts, upper, row }, k, a, b) {
  const outside = a === b ? 0.27 : 0.74;
  const port = (head) => upper[head] - n * row * (head ? 1 - outside : outside);
  const [x, from, to] = [lefts[k] + panel + 6, port(a), port(b)];
  return (part) => [x + (gap - 12) * part, from + (to - from) * part * part * (3 - 2 * part)];
}

export default tf.explorer({
  numbers: talk,
  setup(app) {
    const plane = app.plane({ long: true, height: (width) => (width < 480 ? 330 : 400) });
    app.formula("𝐒 = 𝐉 {first:𝐏_l};   𝐖 = {softmax:softmax(𝐒)};   𝐔 = 𝐖 {second:𝐏_w}");
    app.knobsOf("score_01", "score_11");
    app.knobsOf("weight_00", "weight_10");
    const question = app.ask({
      name: "negated",
      question:
        "$𝐏_l$ gives head 1 the scores of head 0 times −1, and none of its own. Which word gets the most weight in head 1?",
      about: plane,
      ghost: {
        first: 1,
        at: (j) => {
          const place = layout(plane);
          return [place.lefts[1] + 0.3 * place.panel, place.at(1, j)];
        },
        to: (_, y) => {
          const { upper, row } = layout(plane);
          return tf.clamp(Math.round((upper[1] - y) / row - 0.5), 0, n - 1);
        },
        by: ([x, y], [right, up]) => [x, y + (up || right) * layout(plane).row],
        label: "the word with the most weight in head 1",
      },
      format: (j) => `“${words[j]}”`,
      hides: ["head 1"],
      guards: ["score_01", "score_11"],
      truth: (numbers) => tf.best(numbers.weights[1]),
      then: { score_01: -1, score_11: 0 },
      because:
        "“red” has the lowest score in head 0, −1.5. Times −1, it becomes 1.5, the highest. Head 1 gives the most weight to what head 0 gives the least.",
    });

    return (state, { weights, mixed_weights, sums }) => {
      const place = layout(plane);
      const { H, panel, lefts, row, upper, at } = place;
      const half = tf.clamp(0.75 * row, 8, 16); // of a wire of 1

      // lying bars from a line at `zero`, a share of the panel
      const bars = (k, rows, zero, unit, term) =>
        both.map((b) => {
          const part = b && k ? "head 1" : undefined;
          const base = lefts[k] + zero * panel;
          return [
            {
              line: [
                [base, upper[b]],
                [base, upper[b] - n * row],
              ],
              colour: "grid",
              wide: 1,
            },
            rows[b].map((value, j) => {
              const [y, end] = [at(b, j), base + value * unit * panel];
              const shape = tf.box(
                Math.min(base, end),
                Math.max(base, end),
                y - 0.34 * row,
                y + 0.34 * row,
              );
              return { shape, colour: ROLES[b], strength: 0.85, part, term };
            }),
          ];
        });
      // as wide as its entry; stripes where that is below 0
      const wires = (k, P, knobs, term) =>
        [
          [0, 0],
          [1, 1],
          [0, 1],
          [1, 0],
        ].map(([a, b]) => {
          const [value, on, knob] = [P[a][b], wireOf(place, k, a, b), knobs[`${a}${b}`]];
          const line = tf.range(25, (m) => on(m / 24));
          const [x, y] = on(0.64);
          const letter = on(0.17);
          return [
            {
              line,
              colour: value ? tf.faint(ROLES[a], 40) : "grid",
              wide: Math.max(1.5, 2 * half * Math.abs(value)),
              dash: value < 0 ? "5 3" : value ? undefined : "2 4",
              term,
            },
            (knob || value) && { text: entry(value).replace(".0", ""), at: letter, colour: "ink" },
            knob && {
              handle: [x, y + value * half],
              knob,
              colour: ROLES[a],
              text: entry(value),
              to: (_, up) => ({ [knob]: app.snap(knob, (up - y) / half) }),
              term,
            },
          ];
        });
      const titles = ["scores", "softmax", "for values"];
      const over = (text, x, term) => ({ text, at: [x, H - 4], colour: "muted", term });

      plane.show({
        title: "one query in two heads: drag the edge of a wire",
        label: `Head 0 gives the most weight to ${words[tf.best(weights[0])]}${question.open ? "" : `, head 1 to ${words[tf.best(weights[1])]}`}`,
        hover: false,
        x: { from: 0, to: plane.width - 24, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          titles.map((text, k) => over(text, lefts[k] + panel / 2)),
          over("$𝐏_l$", (lefts[0] + panel + lefts[1]) / 2, "first"),
          over("$𝐏_w$", (lefts[1] + panel + lefts[2]) / 2, "second"),
          both.map((b) =>
            words.map((text, j) => ({
              text,
              at: [-12, at(b, j)],
              align: "start",
              colour: ROLES[b],
            })),
          ),
          wires(0, scoresOf(state), { "01": "score_01", 11: "score_11" }, "first"),
          wires(1, weightsOf(state), { "00": "weight_00", 10: "weight_10" }, "second"),
          bars(0, scores, 0.42, 0.2),
          bars(1, weights, 0, 1, "softmax"),
          bars(2, mixed_weights, 0.5, 0.5),
        ],
      });
      app.read({
        "head 0 sums to": tf.fixed(sums[0], 2),
        "head 1 sums to": tf.fixed(sums[1], 2),
      });
      app.say(
        `Head 0 gives the most weight to “${words[tf.best(weights[0])]}”${question.open ? "" : `, head 1 to “${words[tf.best(weights[1])]}”`}; after $𝐏_w$ the weights of head 0 sum to ${tf.fixed(sums[0], 2)}.`,
      );
    };
  },
});
