// Scores in use in layer n = own + w · scores in use in layer n − 1; each map is their softmax.
const { text, seed, noise, likes, patterns } = tf.data;
const L = text.length;
const N = patterns.length;
const random = tf.uniforms(seed, N * L * L);
const liked = [
  (i, j) => text[i] === text[j],
  (i, j) => j === i - 1,
  (_, j) => j === 0,
  (i, j) => j === i + 1,
];
const own = tf.range(N, (n) =>
  tf.range(L, (i) =>
    tf.range(L, (j) => likes * Number(liked[n](i, j)) + noise * random[(n * L + i) * L + j]),
  ),
);

function correlation(a, b) {
  const [x, y] = [a, b].map((all) => all.map((v) => v - tf.mean(all)));
  return tf.dot(x, y) / (tf.norm(x) * tf.norm(y));
}

export default tf.explorer({
  numbers({ below }) {
    let used = own[0];
    const maps = own.map((scores, n) => {
      const from = used;
      if (n) used = scores.map((row, i) => row.map((s, j) => s + below * from[i][j]));
      return used.map((row) => Array.from(tf.softmax(row)));
    });
    const alike = tf.range(N - 1, (n) => correlation(maps[n].flat(), maps[n + 1].flat()));
    return { maps, alike };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 330 : Math.min(360, 112 + 0.19 * width));
    const plane = app.plane({ long: true, height: high });

    return ({ below }, { maps, alike }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const gap = small ? 84 : 0.1 * W;
      const cell = small ? 9 : Math.floor((W - 3 * gap) / (4 * L));
      const side = cell * L;
      const line = small ? 12 : 20;
      const apart = 54; // on a phone, between the two rows, which are read like a snake
      const wide = small ? 2 * side + gap : 4 * side + 3 * gap;
      const start = (W - wide) / 2;
      const top = H - 2 * line;
      const corners = small
        ? [0, 1, 1, 0].map((x, n) => [start + x * (side + gap), top - (n > 1 ? side + apart : 0)])
        : maps.map((_, n) => [start + n * (side + gap), top]);
      const thick = (small ? 40 : 56) * below;
      const middle = top - side / 2;
      const band = (from, to, across) => ({
        shape: across
          ? tf.box(from[0], to[0], from[1] - thick / 2, from[1] + thick / 2)
          : tf.box(from[0] - thick / 2, from[0] + thick / 2, to[1], from[1]),
        colour: tf.faint("attention", 26),
        strength: 1,
      });
      const links = corners.slice(1).map(([x, y], n) => {
        const [a, b] = corners[n];
        if (x === a) return band([a + side / 2, b - side - 4], [a + side / 2, y + 4], false);
        const [left, right] = [Math.min(a, x) + side + 4, Math.max(a, x) - 4];
        return band([left, y - side / 2], [right, y - side / 2], true);
      });
      const share = tf.percent(below, 0);
      const handle = [corners[0][0] + side + gap / 2, middle + thick / 2];

      plane.show({
        label: `Maps of ${N} layers over ${L} letters, each with ${share} of the scores from below`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          below > 0 && links,
          maps.map((map, n) => cells(map, { at: corners[n], cell, most: 0.8 })),
          corners.map(([x, y], n) => ({
            text: `layer ${n}`,
            at: [x + side / 2, small && n > 1 ? y - side - line : y + line],
            colour: "ink",
            plain: true,
          })),
          !small &&
            corners.map(([x, y], n) => ({
              text: `own: ${patterns[n]}`,
              at: [x + side / 2, y - side - line],
              colour: "muted",
              plain: true,
            })),
          { text: share, at: [handle[0], handle[1] + line + 8], colour: "attention", plain: true },
          {
            text: "handed up",
            at: [handle[0], middle - thick / 2 - line - 8],
            colour: "attention",
            plain: true,
          },
          {
            handle,
            knob: "below",
            colour: "attention",
            text: `${share} handed up`,
            to: (_, y) => ({ below: app.snap("below", (y - middle) / (small ? 20 : 28)) }),
          },
        ],
      });
      const near = tf.fixed(tf.mean(alike), 2);
      app.say(
        below === 0
          ? `Each layer begins anew: what layer 0 found is lost in layer 1 (correlation of neighbouring maps ${near}).`
          : below === 1
            ? `All scores are handed up: each map keeps what the layers below found (correlation of neighbouring maps ${near}).`
            : `With ${share} of the scores handed up, what a layer found fades in the layers above (correlation of neighbouring maps ${near}).`,
      );
    };
  },
});
