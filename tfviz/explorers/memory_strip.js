// Memories that two heads of a trained layer retrieve for each of 32 tokens, as stored.
const { words, about, rows, gates, m } = tf.data;
const weigh = (token, k, flat) =>
  rows[token].scores.map((s) => tf.softmax(s.slice(0, k).map((x) => x / flat)));
const isFact = (at) => words[at].includes("=");
// the share of the weight on facts of the name that is asked for
const onFact = tf.keep((token, k, flat) => {
  if (!rows[token].kind) return 0;
  const at = m + token;
  const shares = weigh(token, k, flat).map((ws, h) =>
    tf.sum(
      ws.map((w, i) => {
        const far = at - rows[token].back[h][i];
        return about[far] === about[at] && isFact(far) ? w : 0;
      }),
    ),
  );
  return tf.sum(shares) / shares.length;
});
const KINDS = ["asks nothing", "asks for a fact of the segment before", "asks for an old fact"];

export default tf.explorer({
  numbers({ token, k, flat }) {
    return { weights: weigh(token, k, flat), right: rows.map((_, t) => onFact(t, k, flat)) };
  },
  setup(app) {
    const chips = app.chips({ label: "the 32 tokens" });
    const strip = app.plane({ height: (width) => tf.clamp(width * 0.28, 170, 210) });
    const bars = app.plane({ height: (width) => tf.clamp(width * 0.26, 170, 200) });
    app.formula("{m:V_m} = softmax(τ q̂ · {key:k̂ of the k best}) V");
    app.motion("token", { every: 700 });
    app.knob("k");
    app.knob("flat", { format: (x) => tf.fixed(x, 1) });
    const finds = ({ kind, back }, t) =>
      kind === 2 && about[m + t - back[0][0]] === about[m + t] && isFact(m + t - back[0][0]);
    const old = rows.findIndex(finds);
    const question = app.ask({
      name: "where",
      question: `Token ${old} asks “${words[m + old]}”, and what it asks for was told twelve segments of 16 tokens before, at any place of that segment. How many tokens back does the heads' strongest memory lie?`,
      number: {},
      unit: "tokens",
      near: 15,
      truth: () => rows[old].back[0][0],
      then: { token: old },
      because:
        "Twelve segments are 192 tokens; where the two stand within their segments adds or takes up to 15.",
    });

    return (state, numbers) => {
      const at = m + state.token;
      const { back, kind } = rows[state.token];
      chips.show([
        rows.map((_, t) => ({
          text: words[m + t],
          kind: t === state.token ? "made" : rows[t].kind ? "new" : undefined,
        })),
      ]);
      const open = question.open && state.token === old;
      const read = back.map(
        ([far], h) =>
          `head ${h}: ${words[at - far]}, ${far} tokens back, ${tf.fixed(numbers.weights[h][0], 2)}`,
      );
      strip.show({
        title: "memories that each head reads: more colour, more weight",
        label: open ? "Answer first" : read.join("; "),
        x: { from: -m - 16, to: 0, label: "tokens before this one" },
        y: { names: gates.map((_, h) => `head ${h}`) },
        marks: [
          !open &&
            // a row a head: a box where each memory lies, and the word of the strongest
            numbers.weights.map((ws, h) => [
              ws.map((w, i) => ({
                shape: tf.box(-back[h][i] - 1.5, -back[h][i] + 1.5, h - 0.38, h + 0.38),
                colour: "attention",
                strength: 0.1 + 0.9 * w,
                edge: true,
                term: "m",
              })),
              {
                text: words[at - back[h][0]],
                colour: "key",
                term: "key",
                at: [tf.clamp(-back[h][0] + 4, -m, -30), h],
              },
            ]),
          { rule: { x: 0 }, colour: "query" },
        ],
      });
      bars.show({
        title: "weight on facts of the name asked for",
        label: question.open
          ? "Weights of all tokens"
          : `Token ${state.token}: ${tf.fixed(numbers.right[state.token], 2)}`,
        x: { from: 0, to: rows.length, whole: true, label: "token" },
        y: { from: 0, to: 1 },
        marks: [
          !question.open && {
            bars: numbers.right,
            at: numbers.right.map((_, t) => t + 0.5),
            wide: 0.8,
            colour: "attention",
            name: "both heads",
          },
          {
            handle: [state.token + 0.5, 0],
            knob: "token",
            text: words[at],
            to: (x) => ({ token: app.snap("token", x - 0.5) }),
          },
        ],
      });
      app.read({
        token: words[at],
        it: KINDS[kind],
        "gates of the heads": gates.map((g) => tf.fixed(g, 2)).join(", "),
        "weight on its fact": open || !kind ? "–" : tf.fixed(numbers.right[state.token], 2),
      });
      const finds = back.map(([far], h) => `Head ${h} finds ${words[at - far]}, ${far} back`);
      const factText = open ? "" : ` ${KINDS[kind]}. ${finds.join("; ")}`;
      app.say(`Token ${state.token}: ${words[at]}${factText}.`);
    };
  },
});
