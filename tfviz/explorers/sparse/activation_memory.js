// Numbers held for the backward pass: 16 N L d; (N + 16) L d; (2 + max(6, 10/c)) L d.
const D = 512;
const WAYS = {
  kept: { name: "keep everything", colour: "ink" },
  checkpointed: { name: "checkpointing", colour: "value" },
  reversible: { name: "reversible", colour: "attention" },
};
const KEYS = Object.keys(WAYS);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
// numbers held by each way, for N blocks on L tokens and c chunks
const held = {
  kept: (N, L) => N * 16 * L * D,
  checkpointed: (N, L) => (N + 16) * L * D,
  reversible: (_, L, c) => 2 * L * D + Math.max(6 * L * D, Math.ceil((10 * L * D) / c)),
};

export default tf.explorer({
  numbers: ({ L, chunks }) =>
    Object.fromEntries(
      KEYS.map((way) => [way, tf.range(24, (n) => 4 * held[way](n + 1, L, chunks))]),
    ),
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.55, 220, 300) });
    app.formula(
      "keep everything: {kept:16 N L d}; checkpointing: {checkpointed:(N + 16) L d}; reversible: {reversible:2 L d + the larger part of one block}",
    );
    const table = app.table({ columns: ["method", "peak memory", "share of the first"] });
    for (const key of ["N", "L", "chunks"]) app.knob(key, { format: tf.count });
    const question = app.ask({
      name: "depth",
      question:
        "Keeping everything takes 3 GiB for 24 blocks and 4,096 tokens. How much do reversible layers take at the peak?",
      number: {},
      unit: "MiB",
      near: 35,
      truth: (numbers) => numbers.reversible[23] / 2 ** 20,
      then: { N: 24, L: 4096, chunks: 1 },
      because:
        "They keep two streams of 8 MiB each, and recomputing one feed-forward network takes 80 MiB, at any depth.",
    });

    return (state, numbers) => {
      const heldNow = (way) => numbers[way][state.N - 1];
      const most = numbers.kept[23]; // the scale: all kept, at 24 blocks
      const shown = question.open ? ["kept"] : KEYS;
      plane.show({
        title: "memory for the backward pass, by number of blocks",
        label: shown.map((way) => `${WAYS[way].name}: ${tf.bytes(heldNow(way))}`).join(", "),
        x: { from: 1, to: 24, whole: true, label: "blocks N" },
        y: { from: 0, to: most, ticks: tf.range(5, (q) => (q * most) / 4), format: tf.bytes },
        marks: [
          ...shown.map((way) => ({
            line: numbers[way],
            start: 1,
            ...WAYS[way],
            term: way,
            wide: 2.5,
          })),
          { rule: { x: state.N }, colour: "grid" },
          {
            handle: [state.N, heldNow("kept")],
            knob: "N",
            text: plural(state.N, "block"),
            colour: "ink",
          },
        ],
      });
      table.show(
        KEYS.map((way) => {
          const known = shown.includes(way);
          const bar = { bar: heldNow(way), of: heldNow("kept"), colour: WAYS[way].colour };
          const share = `${tf.sig((100 * heldNow(way)) / heldNow("kept"))} %`;
          const cells = known ? [tf.bytes(heldNow(way)), { ...bar, text: share }] : ["?", "?"];
          return { head: WAYS[way].name, cells, term: way };
        }),
      );
      app.say(
        `${plural(state.N, "block")}, ${tf.count(state.L)} tokens: ${shown.map((way) => `${WAYS[way].name} ${tf.bytes(heldNow(way))}`).join(", ")}.`,
      );
    };
  },
});
