// An image, cut into patches of P × P pixels; the patches as tokens in a row; and an arch for any two of them.
const { image, side: SIDE, levels } = tf.data;
const plural = (n, what) => `${tf.count(n)} ${what}${n === 1 ? "" : "s"}`;
const shade = (pixel) => tf.faint("ink", Math.round(8 + (92 * pixel) / levels));

// half of an ellipse from one place to another, so high
const arch = (from, to, base, high) =>
  tf.range(25, (n) => {
    const turn = (Math.PI * n) / 24;
    return [(from + to) / 2 - ((to - from) / 2) * Math.cos(turn), base + high * Math.sin(turn)];
  });

export default tf.explorer({
  numbers({ P }) {
    const across = SIDE / P;
    const tokens = tf.range(across ** 2, (n) => {
      const [top, left] = [Math.floor(n / across) * P, (n % across) * P];
      return tf.range(P * P, (m) => image[(top + Math.floor(m / P)) * SIDE + left + (m % P)]);
    });
    return { tokens, pairs: tokens.length ** 2 };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 334 : 430);
    const plane = app.plane({ long: true, height: high });

    return ({ P }, { tokens, pairs }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const across = SIDE / P;
      const [gap, whole] = small ? [3, 112] : [6, 316];
      const pixel = (whole - gap * (across - 1)) / SIDE;
      // the row of tokens: what it is wide, and how large they are
      const [start, end] = small ? [0, W] : [whole + 100, W];
      const most = (small ? { 1: 4, 2: 15, 4: 34, 8: 46 } : { 1: 8, 2: 36, 4: 84, 8: 140 })[P];
      const pitch = Math.min((end - start) / tokens.length, most * 1.24);
      const size = Math.min(most, pitch * 0.84);
      const first = (start + end - pitch * tokens.length) / 2;
      const middle = tf.range(tokens.length, (n) => first + (n + 0.5) * pitch);
      const base = small ? 26 : 40;
      const [left, top] = small ? [0, H] : [0, base + whole];
      const tall = small ? 118 : 290; // of the widest arch, over tokens without height
      const steep = tall / (end - start);
      const apex = base + size + 6 + steep * pitch * (tokens.length - 1);

      const squares = (token, x, y, unit) =>
        token.map((value, m) => {
          const [row, column] = [Math.floor(m / P), m % P];
          const a = x + column * unit;
          const b = y - row * unit;
          return {
            shape: tf.box(a, a + unit + 0.5, b - unit - 0.5, b),
            colour: shade(value),
            strength: 1,
          };
        });
      const frame = (x, y, long) => ({
        line: [
          [x, y],
          [x + long, y],
          [x + long, y - long],
          [x, y - long],
          [x, y],
        ],
        colour: "value",
        wide: small ? 2 : 3,
      });
      const place = (n) => {
        const [row, column] = [Math.floor(n / across), n % across];
        return [left + column * (P * pixel + gap), top - row * (P * pixel + gap)];
      };
      const corner = [left + P * pixel, top - P * pixel];
      const cut = `${P} × ${P}`;

      plane.show({
        label: `An image of ${SIDE} × ${SIDE} pixels in patches of ${cut}: ${plural(tokens.length, "token")}, ${plural(pairs, "pair")}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          tf.range(tokens.length, (i) =>
            tf.range(i, (j) => ({
              line: arch(middle[j], middle[i], base + size + 6, steep * (middle[i] - middle[j])),
              colour: tf.faint("attention", P === 1 ? 60 : 72),
              wide: { 1: 0.35, 2: 1, 4: 2, 8: 2 }[P],
            })),
          ),
          tokens.map((token, n) => squares(token, ...place(n), pixel)),
          tokens.map((token, n) => squares(token, middle[n] - size / 2, base + size, size / P)),
          frame(left, top, P * pixel),
          frame(middle[0] - size / 2, base + size, size),
          small
            ? [
                { text: "patches of", at: [whole + 16, top - 12], align: "start", colour: "value" },
                {
                  text: `${cut} pixels`,
                  at: [whole + 16, top - 29],
                  align: "start",
                  colour: "value",
                },
              ]
            : {
                text: `patches of ${cut} pixels`,
                at: [left, base - 24],
                align: "start",
                colour: "value",
              },
          {
            text: `${plural(tokens.length, "token")} in a row`,
            at: [(start + end) / 2, base - (small ? 16 : 24)],
            colour: "value",
          },
          {
            text: `${tf.count(tokens.length)} × ${tf.count(tokens.length)} = ${plural(pairs, "pair")}`,
            at: [(start + end) / 2, apex + (small ? 12 : 18)],
            colour: "attention",
          },
          {
            handle: corner,
            knob: "P",
            colour: "value",
            text: `${cut} pixels`,
            to: (x, y) => ({ P: app.snap("P", (x - left + top - y) / 2 / pixel) }),
          },
        ],
      });
      app.say(
        {
          1: `Single pixels as tokens: 64 of them already make ${tf.count(4096)} pairs for attention to compare. A photograph would make billions.`,
          2: "Patches of 2 × 2 pixels: 16 tokens make 256 pairs. Halve their side, and the pairs grow sixteenfold.",
          4: "Patches of 4 × 4 pixels: four tokens make only 16 pairs, but each token must now hold a quarter of the image.",
          8: "The whole image as one token: attention has nothing left to compare.",
        }[P],
      );
    };
  },
});
