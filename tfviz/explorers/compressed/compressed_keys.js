// Query i may use key s if s c ≤ i + shift; key 0 is token 0, key s the group of tokens (s − 1) c, …, s c − 1.
const L = tf.data.length;
const uses = (i, s, { c, shift }) => s * c <= i + shift;
const reads = (i, j, state) => j === 0 || uses(i, Math.floor(j / state.c) + 1, state);
const ahead = (i, state) => tf.range(L).filter((j) => j > i && reads(i, j, state));
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers(state) {
    const keys = tf.range(L / state.c + 1);
    const later = tf.range(L, (i) => ahead(i, state).length);
    return {
      slots: tf.range(L, (i) => keys.map((s) => Number(uses(i, s, state)))),
      reads: tf.range(L, (i) => tf.range(L, (j) => Number(reads(i, j, state)))),
      ahead: later,
      first: later.findIndex((n) => n > 0),
    };
  },
  setup(app) {
    const both = app.split("5fr 3fr");
    const tokens = app.matrix({
      axes: ["query i", "token j that it reads"],
      pick: (query) => app.set({ query }),
      tall: 380,
      into: both,
      lead: true,
    });
    const keys = app.matrix({
      axes: ["query i", "compressed key s"],
      pick: (query) => app.set({ query }),
      tall: 380,
      into: both,
    });
    app.formula("without a head start, query i may use key s if  {step:s c ≤ i}");
    app.knobsOf("c", "shift", "query");
    const question = app.ask({
      name: "leak",
      question:
        "Each step begins just after its group of three has ended. Suppose every step began two queries earlier: which query would be the first to read a token that comes after it?",
      about: tokens,
      ghost: {
        first: 7,
        at: (i) => [L - 0.5, i + 0.5],
        to: (_, y) => tf.clamp(Math.floor(y), 0, L - 1),
        by: [0, 1],
        draw: (i) => ({ row: i, dash: "4 3" }),
        label: "the first query that reads ahead",
      },
      format: (i) => `query ${i}`,
      hides: ["first query that reads ahead"],
      guards: ["shift"],
      truth: (numbers) => numbers.first,
      then: { c: 3, shift: 2, query: 1 },
      because:
        "Query 1 may then use the key of tokens 0, 1 and 2, and so it reads token 2, which comes after it. A key mixes its tokens and cannot be used in part.",
    });

    return (state, numbers) => {
      const { query, c } = state;
      const ends = tf.range(L / c + 1);
      const later = tf.range(L).flatMap((i) => ahead(i, state).map((j) => [i, j, j]));
      const mine = tf.range(L).filter((j) => reads(query, j, state));
      const used = ends.filter((s) => uses(query, s, state));
      const told = numbers.first < 0 ? "none" : `query ${numbers.first}`;
      tokens.show({
        title: "which tokens a query reads; framed: later tokens",
        label: `Query ${query} reads ${plural(mine.length, "token")}, ${numbers.ahead[query]} of which come after it; arrow keys move the query`,
        rows: L,
        bits: (i, j) => reads(i, j, state),
        row: query,
        over: [{ runs: later, colour: "query" }],
        frames: later.map(([i, j]) => ({ cell: [i, j] })),
        marks: [{ cells: mine.map((j) => [query, j]), term: "step" }],
      });
      keys.show({
        title: "which keys a query may use",
        label: `Query ${query} may use ${plural(used.length, "key")} of ${ends.length}`,
        rows: L,
        columns: ends.length,
        bits: (i, s) => uses(i, s, state),
        row: query,
        columnHeads: ends.map(String),
        marks: [{ cells: used.map((s) => [query, s]), term: "step" }],
      });
      app.read({
        "keys it may use": `${used.length} of ${ends.length}`,
        "later tokens it reads": numbers.ahead[query],
        "first query that reads ahead": told,
      });
      const whole = used.length - 1;
      const reach = whole ? `, the last of which ends with token ${whole * c - 1}` : "";
      app.say(
        `Query ${query} may use token 0 and ${plural(whole, "group")} of ${c}${reach}: ${numbers.ahead[query] ? `it reads ${plural(numbers.ahead[query], "later token")}.` : "it reads nothing that comes after it."}`,
      );
    };
  },
});
