// The best matrix of rank k, Σ_{r<k} s_r u_r v_rᵀ, as the product of an L × k and a k × L matrix.
const { topics, gains } = tf.data;
const L = topics.length;
const [TOPIC, SELF, STRENGTH, SEED] = gains;
const strength = tf.uniforms(SEED, L).map((x) => STRENGTH * x);
const map = tf.range(L, (i) =>
  Array.from(
    tf.softmax(
      tf.range(
        L,
        (j) => TOPIC * Number(topics[i] === topics[j]) + SELF * Number(i === j) + strength[j],
      ),
    ),
  ),
);
const { U, S, V } = tf.svd(Float64Array.from(map.flat()), L, L);
// both with the root of the singular value, so that their numbers are of one size
const tall = (k) => tf.range(L, (i) => tf.range(k, (r) => U[i * L + r] * Math.sqrt(S[r])));
const wide = (k) => tf.range(k, (r) => tf.range(L, (j) => V[j * L + r] * Math.sqrt(S[r])));
const MOST = 0.26; // of a map: the shade that is full
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers({ k }) {
    const [left, across] = [tall(k), wide(k)];
    const rebuilt = left.map((row) =>
      tf.range(L, (j) => tf.sum(row.map((x, r) => x * across[r][j]))),
    );
    const right = tf.sum(
      map.flatMap((row, i) => row.map((a, j) => Math.max(0, Math.min(a, rebuilt[i][j])))),
    );
    return { map, rebuilt, right: right / L };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : Math.min(400, 96 + 0.24 * width));
    const plane = app.plane({ long: true, height: high });

    return ({ k }, { rebuilt, right }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const most = app.about.k.high;
      // in a row, thin · wide = rebuilt ≈ real; on a phone in two rows, one pair below the other
      const gap = small ? 26 : 56;
      const cell = small ? 4 : Math.floor((2 * (W - 3 * gap)) / (3 * L + most)) / 2;
      const side = cell * L;
      const row = small ? 168 : 0;
      const top = H - (small ? 16 : 44);
      const all = small ? 2 * side + gap : (3 * L + most) * cell + 3 * gap;
      const start = (W - all) / 2;
      const first = small ? start + side - (L - most) * cell : start + most * cell; // right edge
      const second = small ? start + side + gap : first + gap;
      const third = small ? start : second + side + gap;
      const fourth = third + side + gap;
      const named = (text, x, y, colour) => ({ text, at: [x, y], colour, plain: true });
      const above = small ? 9 : 18;
      const sign = (text, x, y) => ({ text, at: [x - gap / 2, y - side / 2], colour: "muted" });
      const edge = [second + side + 4, top - k * cell];

      plane.show({
        label: `A matrix of ${k} columns times one of ${k} rows, their product, and the real map of ${L} tokens`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          cells(tall(k), { at: [first - k * cell, top], cell, colour: "query", most: 0.4 }),
          cells(wide(k), { at: [second, top], cell, colour: "key", most: 0.4 }),
          cells(rebuilt, { at: [third, top - row], cell, most: MOST }),
          cells(map, { at: [fourth, top - row], cell, most: MOST }),
          sign("×", second, top),
          !small && sign("=", third, top),
          sign("≈", fourth, top - row),
          { ...named(plural(k, "column"), first, top + above, "query"), align: "end" },
          named(plural(k, "row"), second + side / 2, top + above, "key"),
          named("their product", third + side / 2, top - row + above, "attention"),
          named("the real map", fourth + side / 2, top - row + above, "attention"),
          named(`rank ${k}`, edge[0] - (small ? 40 : 58), edge[1] - (small ? 14 : 18), "key"),
          {
            handle: edge,
            knob: "k",
            colour: "key",
            shape: "down",
            text: `rank ${k}`,
            to: (_, y) => ({ k: app.snap("k", (top - y) / cell) }),
          },
        ],
      });
      const held = tf.count(2 * L * k);
      const share = tf.percent(right, 0);
      app.say(
        2 * k === L
          ? `At rank ${k} the thin matrices hold ${held} numbers, as many as the map itself: nothing is saved any more.`
          : `${k === 1 ? "A column and a row" : "Two thin matrices"}, ${held} numbers in all, rebuild ${share} of the attention in a map of ${tf.count(L * L)} numbers.`,
      );
    };
  },
});
