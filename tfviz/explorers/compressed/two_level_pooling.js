// The tokens that level 1 reads, the groups that level 2 reads, and how far both reach together.
const { L } = tf.data;
const reachOf = ({ w1, size, sides }) => w1 + sides * size + Math.floor(size / 2);
const inText = (j) => tf.clamp(j, 0, L - 1);
const asked = { query: 32, w1: 3, size: 3, sides: 4 };
const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers({ query, w1, size, sides }) {
    const half = Math.floor(size / 2);
    const w2 = sides * size + half;
    const pooled = tf
      .range(2 * sides + 1, (n) => query + (n - sides) * size)
      .filter((centre) => centre + half >= 0 && centre - half < L)
      .map((centre) => [inText(centre - half), inText(centre + half)]);
    return { w2, pooled, keys: 2 * w1 + 1 + 2 * sides + 1, reach: w1 + w2 };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.3, 210, 260) });
    app.formula(
      "{fine:𝐲 = attn(𝐪, 𝐊, 𝐕)};   {coarse:𝐳 = attn(𝐪⁽²⁾, pool(𝐊⁽²⁾), pool(𝐕⁽²⁾))};   𝐲 + 𝐳",
    );
    app.knobsOf("query", "w1", "size", "sides");
    app.ask({
      name: "reach",
      question:
        "Level 1 reads three tokens on each side of query 32. Level 2 reads four pooled keys, of three tokens each, on each side of the one in the middle; they are made of the outputs of level 1. Which is the last token that query 32 can learn about?",
      about: plane,
      ghost: {
        first: 60,
        at: (j) => [j, 0],
        to: (x) => Math.round(tf.clamp(x, 33, L - 1)),
        draw: (j) => ({ rule: { x: j }, colour: "query", dash: "6 4" }),
        by: [1, 0],
        label: "the last token that the query can learn about",
      },
      format: (j) => `token ${j}`,
      near: 0,
      hides: ["reach", "reaches at most"],
      guards: [],
      truth: () => asked.query + reachOf(asked),
      then: asked,
      because:
        "The last pooled key covers tokens 43 to 45, and in level 1, token 45 has read three tokens further: 32 + 13 + 3 = 48.",
    });

    return (state, numbers) => {
      const { query, w1 } = state;
      const { pooled, reach, keys, w2 } = numbers;
      const tokens = tf.range(L).filter((j) => Math.abs(j - query) <= w1);
      plane.show({
        title: "what one query reads in a text of 64 tokens",
        label: `Query ${query} reads ${plural(tokens.length, "token")} and ${plural(pooled.length, "pooled key")}`,
        x: { from: -1, to: L, ticks: [0, 16, 32, 48, 63], label: "token" },
        y: { names: ["reach", "level 2", "level 1"] },
        hover: false,
        marks: [
          {
            shape: tf.box(inText(query - reach) - 0.5, inText(query + reach) + 0.5, -0.16, 0.16),
            colour: "query",
            strength: 0.35,
            part: "reach",
          },
          pooled.map(([from, to]) => ({
            shape: tf.box(from - 0.42, to + 0.42, 0.68, 1.32),
            colour: "key",
            strength: 0.4,
            edge: true,
            term: "coarse",
          })),
          tokens.map((j) => ({
            shape: tf.box(j - 0.42, j + 0.42, 1.68, 2.32),
            colour: "attention",
            strength: 0.7,
            edge: true,
            term: "fine",
          })),
          { rule: { x: query }, colour: "query" },
          {
            handle: [query, 2.45],
            knob: "query",
            text: `i = ${query}`,
            to: (x) => ({ query: app.snap("query", x) }),
          },
        ],
      });
      app.read({
        "keys that a query reads": String(keys),
        "window of level 2, each side": plural(w2, "token"),
        "reaches at most": `token ${inText(query + reach)}`,
      });
      app.say(
        `Query ${query} reads ${plural(tokens.length, "token")} one by one and ${plural(pooled.length, "pooled key")}; a window of single tokens as wide as that of level 2 would have ${plural(2 * w2 + 1, "key")}.`,
      );
    };
  },
});
