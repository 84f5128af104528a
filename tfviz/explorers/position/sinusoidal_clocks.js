// Place i as clock hands: hand m stands at (sin iω_m, cos iω_m), noon is place 0.

const PLACES = tf.declared.knobs.place.high + 1;
const { entry, hand } = tf.data; // (i, c, d, base) => p_ic, (k, m, d, base) => cos(k ω_m)

const there = ({ place, step }) => tf.clamp(place + step, 0, PLACES - 1);
const row = (i, d, base) => tf.range(d, (c) => entry(i, c, d, base));
const all = tf.keep((d, base) => {
  const rows = tf.range(PLACES, (i) => row(i, d, base));
  return tf.range(d).flatMap((c) => rows.map((p) => p[c])); // entries down, places across
});
const products = tf.keep((d, base) =>
  tf.range(2 * PLACES - 1, (n) => tf.sum(tf.range(d / 2, (m) => hand(n + 1 - PLACES, m, d, base)))),
);

function numbersOf(state) {
  const { place, d, base } = state;
  const [p, q] = [row(place, d, base), row(there(state), d, base)];
  return { p, q, product: tf.dot(p, q), products: products(d, base) };
}
// by how far hand m turns from the one row to the other, within a turn
const turns = ({ p, q }) =>
  tf.range(p.length / 2, (m) => {
    const [a, b] = [p, q].map((x) => Math.atan2(x[2 * m], x[2 * m + 1]));
    return [a, Math.atan2(Math.sin(b - a), Math.cos(b - a))];
  });

export default tf.explorer({
  numbers: numbersOf,
  setup(app) {
    const perLine = (w) => Math.min(app.get("d") / 2, w < 430 ? 4 : app.get("d") > 16 ? 6 : 8);
    const lines = (w) => Math.ceil(app.get("d") / 2 / perLine(w));
    const dials = app.plane({
      height: (width) => lines(width) * Math.min(116, width / perLine(width) + 12) + 14,
    });
    const table = app.matrix({
      axes: ["c", "i"],
      tall: 240,
      pick: (_, place) => app.set({ place }),
    });
    const curve = app.plane({ height: () => 170 });
    app.formula("{query:𝐩ᵢ} · {key:𝐩ᵢ₊ₖ} = Σ cos( {attention:k ωₘ} )");
    app.motion("place", { every: 250 });
    app.knob("step", {
      format: (k) => tf.fixed(k, 0),
      read: () => there(app.all()) - app.get("place"),
    });
    app.knob("d");
    app.knob("base", { format: tf.count });
    const question = app.ask({
      name: "both-move",
      question: "If i moves and k stays the same, which of the violet angles change?",
      chips: ["all of them", "those of the fast clocks", "none"],
      truth: (numbers, state) => {
        const { place, d, base } = state;
        const j = there(state); // stays within the places where place + step does not
        const by = j > 40 ? -9 : 9;
        const later = turns({ p: row(place + by, d, base), q: row(j + by, d, base) });
        const moved = turns(numbers).filter(([, x], m) => Math.abs(x - later[m][1]) > 1e-6).length;
        return moved === later.length ? 0 : moved ? 1 : 2;
      },
      guards: ["place"],
      because:
        "An angle depends only on k, how long the clock runs between the two places, not on i.",
    });

    return (state, numbers) => {
      const { place: i, d, base } = state;
      const j = there(state);
      const many = perLine(dials.width);
      const cosines = tf.range(d / 2, (m) => hand(j - i, m, d, base));
      // one clock a pair of numbers: two hands, and the wedge by which they stand apart
      const clocks = turns(numbers).flatMap(([angle, turn], m) => {
        const [x, y] = [m % many, -1.25 * Math.floor(m / many)];
        const up = Math.PI / 2 - angle; // clockwise from noon
        const tip = (r, v) => [x + r * v[2 * m], y + r * v[2 * m + 1]];
        return [
          {
            shape: [[x, y], ...tf.arc(x, y, 0.38, up, up - turn)],
            colour: "attention",
            strength: 0.3,
            term: "attention",
          },
          { line: tf.arc(x, y, 0.42), colour: "muted", wide: 1 },
          { line: [y + 0.36, y + 0.42], at: [x, x], colour: "muted", wide: 1 },
          { line: [[x, y], tip(0.34, numbers.q)], colour: "key", wide: 3, term: "key" },
          { line: [[x, y], tip(0.27, numbers.p)], colour: "query", wide: 4, term: "query" },
          { text: `cos ${tf.fixed(cosines[m])}`, at: [x, y - 0.52], term: "attention" },
        ];
      });
      const apart = tf.fixed(j - i, 0);
      dials.show({
        title: "hand m: orange at place i, blue at i + k; violet: angle",
        label: `${d / 2} clocks with the hands of place ${i} and place ${j}`,
        square: true,
        hover: false,
        marks: clocks,
        x: { from: -0.46, to: many - 0.54, bare: true },
        y: { from: -1.25 * (lines(dials.width) - 1) - 0.62, to: 0.44, bare: true },
      });
      table.show({
        title: "the hands as numbers: a column for each place; violet above 0, grey below 0",
        label: `Rows 0 to ${PLACES - 1} of the table P with ${d} numbers each; place ${i} and place ${j} are framed; arrow keys choose the place`,
        rows: d,
        columns: PLACES,
        values: all(d, base),
        signed: true,
        column: i,
        columnColour: "query",
        frames: [{ column: j, colour: "key" }],
        handles: [
          {
            handle: [i + 0.5, d / 2],
            knob: "place",
            shape: "across",
            colour: "query",
            text: `place ${i}`,
            to: (x) => ({ place: app.snap("place", x - 0.5) }),
          },
        ],
        marks: [
          { cells: tf.range(d, (c) => [c, i]), term: "query", colour: "query" },
          { cells: tf.range(d, (c) => [c, j]), term: "key", colour: "key" },
        ],
      });
      const mean = numbers.product / (d / 2);
      curve.show({
        title: "product of the two rows, divided by d/2, against k: drag the dot",
        label: `Product against k: 1 at k = 0, ${tf.fixed(mean)} at k = ${apart}`,
        x: { label: "k", from: 1 - PLACES, to: PLACES - 1, whole: true },
        y: { from: -1, to: 1, ticks: [-1, 0, 1] },
        marks: [
          {
            line: numbers.products.map((x) => x / (d / 2)),
            start: 1 - PLACES,
            colour: "attention",
          },
          { handle: [j - i, mean], knob: "step", colour: "key", text: `k = ${apart}` },
        ],
      });
      const slowest = 2 * Math.PI * base ** (1 - 2 / d);
      app.read({
        "pᵢ · pᵢ₊ₖ": tf.fixed(numbers.product),
        "divided by d/2": tf.fixed(mean),
        "pᵢ · pᵢ": tf.fixed(tf.dot(numbers.p, numbers.p)),
        "slowest hand goes round in": `${slowest < 100 ? tf.fixed(slowest, 1) : tf.count(slowest)} places`,
      });
      const anglesText = question.open
        ? ""
        : `: the ${d / 2} pairs of hands are k = ${apart} steps apart`;
      app.say(
        `Places ${i} and ${j}${anglesText}; the product is ${tf.fixed(numbers.product)} (at most ${d / 2}).`,
      );
    };
  },
});
