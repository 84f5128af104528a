// Drawn to scale: Q (L × d), Kᵀ (d × L) and Q Kᵀ (L × L) at their upper left corner, Kᵀ, V (L × d) and
// Kᵀ V (d × d) at their lower right one.
const { d } = tf.data;

export default tf.explorer({
  numbers: ({ L }) => ({
    square: L * L,
    state: d * d,
    operations: [4 * L * L * d, 4 * L * d * d],
  }),
  setup(app) {
    const most = app.about.L.high;
    const high = (width) => (width < 640 ? 260 : 430);
    const plane = app.plane({ long: true, height: high });

    return ({ L }, { square, state }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const gap = small ? 3 : 6;
      const between = small ? 20 : 110;
      const room = H - (small ? 50 : 58) - gap;
      const beside = small ? 8 : 144; // words to the left and to the right
      const unit = Math.min((W - between - 2 * gap - beside) / 2, room) / (most + d);
      const [long, short] = [L * unit, d * unit];
      const whole = (most + d) * unit + gap;
      const left = (W - 2 * whole - between) / 2;
      const right = W - left;
      const top = H - (small ? 24 : 30);
      const low = top - whole;
      const box = (x, y, wide, tall, colour, strength) => ({
        shape: tf.box(x, x + wide, y - tall, y),
        colour: tf.faint(colour, strength),
        strength: 1,
      });
      const named = (text, x, y, colour, align = "start") => ({
        text,
        at: [x, y],
        colour,
        align,
        plain: true,
      });
      const inner = [left + short + gap, top - short - gap]; // where the square begins
      const corner = [right - short, low + short]; // where the state begins
      const line = small ? 11 : 16; // from an edge to the middle of its words
      const inside = (text, x, y) => named(text, x, y, "page", "middle");

      plane.show({
        label: `A head of width ${d} on ${L} tokens: a square of ${L} × ${L} numbers, or a state of ${d} × ${d}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          box(left, inner[1], short, long, "query", 30),
          box(inner[0], top, long, short, "key", 30),
          box(...inner, long, long, "attention", 100),
          box(corner[0] - gap - long, corner[1], long, short, "key", 30),
          box(corner[0], corner[1] + gap + long, short, long, "value", 30),
          box(...corner, short, short, "attention", 100),
          named("keys", inner[0] + long + 8, top - short / 2, "key"),
          small
            ? named("queries", left, inner[1] - long - (long < 60 ? 26 : line), "query")
            : named("queries", left - 10, inner[1] - long / 2, "query", "end"),
          named("values", right, corner[1] + gap + long + line, "value", "end"),
          named("keys", corner[0] - gap - (small ? 38 : 0), low - line, "key", "end"),
          long > (small ? 90 : 120) &&
            inside(`${L} × ${L}`, inner[0] + long / 2, inner[1] - long / 2),
          small
            ? named(`${d} × ${d}`, right, low - line, "attention", "end")
            : named(`${d} × ${d}`, right + 10, low + short / 2, "attention"),
          {
            handle: [inner[0] + long, inner[1] - long],
            knob: "L",
            colour: "attention",
            text: `${L} tokens`,
            to: (x, y) => ({ L: app.snap("L", (x - inner[0] + inner[1] - y) / 2 / unit) }),
          },
        ],
      });
      const [all, few] = [square, state].map((n) => tf.count(n));
      app.say(
        L === d
          ? `At ${L} tokens, as many as the head is wide, both orders make a matrix of ${few} numbers.`
          : L < d
            ? `With only ${L} tokens the square is the smaller one: ${all} numbers against ${few}.`
            : `${L} tokens: queries with keys make ${all} numbers. Keys with values make ${few}, however long the text is.`,
      );
    };
  },
});
