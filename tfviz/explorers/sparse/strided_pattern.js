// Strided attention: the library's formula (tf.data.strided), its mask, and what one row of it holds.
const { strided } = tf.data; // (i, j, stride) => allowed
const L = tf.declared.knobs.stride.high;
const keys = tf.keep((i, stride) => tf.range(L).filter((j) => strided(i, j, stride)), L * L);
const pairs = tf.range(L, (n) => tf.sum(tf.range(L, (i) => keys(i, n + 1).length)));

export default tf.explorer({
  numbers: ({ stride, query }) => ({ keys: keys(query, stride), pairs }),
  setup(app) {
    const both = app.split("1fr 1fr");
    const matrix = app.matrix({ pick: (query) => app.set({ query }), tall: 380, into: both });
    // low on a phone, so that the landing page shows the whole explorer within its second screen
    const height = (w) => (app.narrow ? 160 : tf.clamp(w - 40, 200, 360));
    const plane = app.plane({ height, into: both });
    app.formula("token i looks at j ≤ i if  {window:i − j ≤ s}  or  {column:(i − j) mod s = 0}", {
      into: app.controls,
    });
    app.knobsOf("stride", "query");
    app.ask({
      name: "halved",
      question: "Token 42 looks at 13 tokens. How many will it look at if you halve the stride?",
      chips: ["fewer", "just as many", "more"],
      truth: (numbers) => 1 + Math.sign(numbers.keys.length - keys(42, 8).length),
      then: { stride: 4, query: 42 },
      because:
        "The window shrinks from 9 tokens to 5, but the tokens beyond it are closer together: 9 instead of 4.",
    });

    return (state, numbers) => {
      const from = Math.max(0, state.query - state.stride);
      const near = numbers.keys.filter((j) => j >= from);
      const far = numbers.keys.filter((j) => j < from);
      matrix.show({
        title: "row i: the tokens that token i may look at",
        label: `Row ${state.query}, stride ${state.stride}: ${numbers.keys.length} tokens; arrow keys move the row`,
        rows: L,
        bits: (i, j) => strided(i, j, state.stride),
        row: state.query,
        marks: [
          { cells: near.map((j) => [state.query, j]), term: "window" },
          { cells: far.map((j) => [state.query, j]), term: "column" },
        ],
        handles: [
          {
            handle: [from, state.query + 0.5],
            knob: "stride",
            text: `window: ${state.stride} back`,
            to: (x) => ({ stride: app.snap("stride", state.query - x) }),
          },
        ],
      });
      plane.show({
        title: "number of pairs among all 64 tokens, by stride",
        label: `Number of pairs by stride: ${numbers.pairs[state.stride - 1]} at stride ${state.stride}`,
        x: { label: "stride", from: 0, to: L, whole: true },
        y: { from: 0, to: (L * (L + 1)) / 2 },
        marks: [
          { line: numbers.pairs, start: 1, colour: "attention" },
          {
            handle: [state.stride, numbers.pairs[state.stride - 1]],
            knob: "stride",
            text: `stride ${state.stride}`,
          },
        ],
      });
      app.read({
        "tokens looked at": numbers.keys.length,
        "pairs in total": `${tf.count(numbers.pairs[state.stride - 1])} of ${tf.count((L * (L + 1)) / 2)}`,
      });
      app.say(
        `Token ${state.query} looks at ${numbers.keys.length} ${numbers.keys.length === 1 ? "token" : "tokens"}: ${near.length} in its window, including itself, and ${far.length} farther back.`,
      );
    };
  },
});
