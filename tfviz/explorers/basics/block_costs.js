// Shares of a block's operations, by length: 8 L d², 4 L² d and, of m matrices, 2 m L d d_ff.

const LENGTHS = tf.declared.knobs.L.of;
const PARTS = {
  feed: { name: "feed-forward", colour: "ink", strength: 0.3 },
  projections: { name: "projections", colour: "ink", strength: 0.12 },
  scores: { name: "scores and blend", colour: "attention", strength: 0.85 },
};
const KEYS = Object.keys(PARTS);

const units = (d, factor) => Math.floor(factor * d + 1e-6); // 8/3 is no whole number
const matrices = (swiglu) => (swiglu ? 3 : 2);
const flops = (L, d, factor, swiglu) => ({
  feed: 2 * matrices(swiglu) * L * d * units(d, factor),
  projections: 8 * L * d * d,
  scores: 4 * L * L * d,
});
const shares = (L, d, factor, swiglu) => {
  const operations = flops(L, d, factor, swiglu);
  return KEYS.map((key) => operations[key] / tf.sum(KEYS.map((one) => operations[one])));
};
// the areas are stacked: where that of a part begins
const below = (share, part) => tf.sum(share.slice(0, part));

function amount(x) {
  const units = ["", " thousand", " million", " billion", " trillion", " quadrillion"];
  const thousands = tf.clamp(Math.floor(Math.log10(x * 1.0005) / 3), 0, units.length - 1);
  return tf.sig(x / 1000 ** thousands) + units[thousands];
}

export default tf.explorer({
  numbers({ L, d, factor, swiglu }) {
    const feed = matrices(swiglu) * units(d, factor);
    return {
      ...flops(L, d, factor, swiglu),
      crossing: feed / 2,
      weights: feed / (feed + 4 * d),
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.62, 230, 320) });
    const [plain, gated] = ["4", "6"].map((each) =>
      app.formula(`{feed:${each} L d d_ff}  +  {projections:8 L d²}  +  {scores:4 L² d}`),
    );
    const table = app.table({ columns: ["part", "operations", "share"] });
    app.knob("L", { format: tf.count });
    app.knob("d", { format: tf.count });
    app.knob("factor", { format: (x) => `${tf.sig(x)} d` });
    app.knob("swiglu");
    const { d: width, factor, swiglu } = app.first;
    const times = (matrices(swiglu) * factor) / 2;
    const widths = tf.declared.knobs.d.of;
    const other = 2 * width <= widths.at(-1) ? 2 * width : width / 2;
    app.ask({
      name: "overtake-at-another-width",
      question: `At width ${tf.count(width)}, scores and feed-forward cost the same at ${tf.count(times * width)} tokens. At what length do they cost the same at width ${tf.count(other)}?`,
      about: plane,
      ghost: {
        first: LENGTHS[0] * 4,
        at: (L) => [L, 0.25],
        to: (L) => Number(tf.clamp(L, LENGTHS[0], LENGTHS.at(-1)).toPrecision(2)),
        draw: (L) => ({ rule: { x: L }, colour: "ink", dash: "4 4" }),
        by: ([L], [right, up]) => L * 2 ** ((right || up) / 4),
        label: "where they cost the same",
      },
      unit: "tokens",
      near: 0.1 * times * other,
      truth: (numbers) => numbers.crossing,
      then: { d: other },
      because: swiglu
        ? "$4 L² d$ and $6 L d d_ff$ are equal where $L = 1.5 d_ff$, and $d_ff$ grows with $d$."
        : "$4 L² d$ and $4 L d d_ff$ are equal where $L = d_ff$, and $d_ff$ grows with $d$.",
    });
    const lengths = tf.range(97, (k) => LENGTHS[0] * (LENGTHS.at(-1) / LENGTHS[0]) ** (k / 96));

    return (state, numbers) => {
      plain.hidden = state.swiglu;
      gated.hidden = !state.swiglu;
      const curves = lengths.map((L) => shares(L, state.d, state.factor, state.swiglu));
      const now = shares(state.L, state.d, state.factor, state.swiglu);
      const even = shares(numbers.crossing, state.d, state.factor, state.swiglu);
      const areas = KEYS.flatMap((key, part) => {
        const { name, ...look } = PARTS[key];
        const top = curves.map((share) => share[part]);
        // the name stands where its area is widest, away from the ends
        const widest = 16 + top.slice(16, 81).indexOf(Math.max(...top.slice(16, 81)));
        const middle = below(curves[widest], part) + top[widest] / 2;
        const area = lengths.map((L, m) => {
          const low = below(curves[m], part);
          return [L, low, low + top[m]];
        });
        const text = { text: name, at: [lengths[widest], middle], bold: true, term: key };
        return [{ area, ...look, term: key }, top[widest] > 0.09 && text];
      });
      // dragging the crossing changes the width: it lies at L = m/2 · factor · d, for m matrices
      const drag = (L) => ({ d: app.snap("d", (2 * L) / (matrices(state.swiglu) * state.factor)) });
      const crossing = `scores and feed-forward cost the same at ${tf.count(numbers.crossing)} tokens`;
      const words = KEYS.map((key, part) => `${PARTS[key].name} ${tf.percent(now[part])}`);
      const sharesText = `: ${words.join(", ")}`;
      const all = tf.sum(KEYS.map((key) => numbers[key]));
      plane.show({
        title: "share of the operations, by length",
        label: `Shares at length ${tf.count(state.L)}${sharesText}; ${crossing}`,
        x: { log: true, from: LENGTHS[0], to: LENGTHS.at(-1), label: "length L", format: tf.count },
        y: { from: 0, to: 1, ticks: [0, 0.5, 1], format: (y) => tf.percent(y) },
        marks: [
          areas,
          { rule: { x: numbers.crossing }, colour: "ink", dash: "4 4", wide: 1.5 },
          {
            handle: [numbers.crossing, even[0]],
            knob: "d",
            label: "crossing",
            to: drag,
            text: crossing,
            colour: "ink",
          },
          { rule: { x: state.L }, colour: "query", wide: 2.5 },
          { handle: [state.L, 1], knob: "L", text: `${tf.count(state.L)} tokens`, colour: "query" },
        ],
      });
      table.show(
        KEYS.map((key, part) => {
          const bar = { bar: now[part], text: `${tf.sig(100 * now[part])} %`, colour: "muted" };
          const cells = [amount(numbers[key]), bar];
          return { head: PARTS[key].name, cells, term: key };
        }),
      );
      app.read({
        "scores cost as much as feed-forward at": `${tf.count(numbers.crossing)} tokens`,
        "operations of one block": amount(all),
        "weights of the feed-forward": `${tf.sig(100 * numbers.weights)} % of the block`,
      });
      app.say(`L = ${tf.count(state.L)}, d = ${tf.count(state.d)}${sharesText}.`);
    };
  },
});
