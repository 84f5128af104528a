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
const KINDS = ["asks nothing", "asks for a near fact", "asks for a far fact"];
// where the facts about the name that token t asks for were stated
const told = (t) => {
  const places = tf.range(m + t).filter((at) => isFact(at) && about[at] === about[m + t]);
  return places.map((at) => at - m - t);
};
const asking = tf.range(rows.length).filter((t) => rows[t].kind); // the tokens that ask

export default tf.explorer({
  numbers({ token, k, flat }) {
    return { weights: weigh(token, k, flat), right: rows.map((_, t) => onFact(t, k, flat)) };
  },
  setup(app) {
    const chips = app.chips({ label: "the 32 tokens" });
    const map = app.plane({ height: (width) => tf.clamp(width * 0.42, 270, 300) });
    const strip = app.plane({ height: (width) => tf.clamp(width * 0.24, 140, 160) });
    app.formula("{m:𝐕_m} = softmax(τ 𝐪̂ · {key:𝐤̂ of the k best}) 𝐕");
    app.motion("token", { every: 700 });
    app.knob("k");
    app.knob("flat", { format: (x) => tf.fixed(x, 1) });
    // the first question about a far fact, which head 0 finds
    const old = asking.find((t) => rows[t].kind === 2 && told(t).includes(-rows[t].back[0][0]));
    const height = (t) => asking.length - 1 - asking.indexOf(t); // of its row; the first on top
    const question = app.ask({
      name: "where",
      question: `“${words[m + old]}” asks for a fact that was stated twelve segments of 16 tokens ago. How far back is the memory to which its heads give the most weight?`,
      about: map,
      hides: ["asked"],
      ghost: {
        first: -30,
        at: (place) => [place, height(old)],
        to: (place) => Math.round(tf.clamp(place, -m - 16, -1)),
        draw: (place) => ({ points: [[place, height(old)]], size: 4, colour: "ink" }),
        by: [4, 0],
        label: "the memory with the most weight",
      },
      format: (place) => `${tf.count(-place)} tokens back`,
      near: 15,
      truth: () => -rows[old].back[0][0],
      then: { token: old },
      guards: [],
      because:
        "That is twelve segments (192 tokens) and one token more. Nobody told the heads how far to look: the key of this fact is simply the one most like the query.",
    });

    return (state, numbers) => {
      const at = m + state.token;
      const { back, kind } = rows[state.token];
      chips.show([
        rows.map((_, t) => ({
          text: words[m + t],
          kind: t === state.token ? "new" : rows[t].kind ? "made" : undefined,
        })),
      ]);
      // a memory: where it lies, as strong as its weight
      const read = (place, row, tall, weight) => ({
        shape: tf.box(place - 2.5, place + 2.5, row - tall, row + tall),
        colour: "attention",
        strength: 0.12 + 0.88 * weight,
        term: "m",
      });
      const weights = (t) => weigh(t, state.k, state.flat);
      const strongest = (t) => rows[t].back[0][0];
      map.show({
        title:
          "what eight questions read; framed: facts about that name; right: the weight on them",
        label: asking
          .filter((t) => t !== old || !question.open)
          .map(
            (t) =>
              `${words[m + t]} reads ${words[m + t - strongest(t)]}, ${strongest(t)} tokens back`,
          )
          .join("; "),
        x: {
          from: -m - 16,
          to: 26,
          ticks: [-250, -200, -150, -100, -50, 0],
          label: "tokens before the question",
        },
        y: {
          names: asking
            .map((t) => `${words[m + t]} ${rows[t].kind === 2 ? "far" : "near"}`)
            .reverse(),
        },
        hover: false,
        marks: [
          asking.includes(state.token) && {
            shape: tf.box(-m - 16, 26, height(state.token) - 0.5, height(state.token) + 0.5),
            colour: "query",
            strength: 0.1,
          },
          asking.map((t) => {
            const part = t === old ? "asked" : undefined;
            const both = new Map(); // place → weight of both heads
            weights(t).forEach((ws, h) =>
              ws.forEach((w, i) => {
                const place = -rows[t].back[h][i];
                both.set(place, (both.get(place) ?? 0) + w);
              }),
            );
            const most = Math.max(...both.values());
            return [
              [...both].map(([place, w]) => ({ ...read(place, height(t), 0.3, w / most), part })),
              told(t).map((place) => ({
                shape: tf.box(place - 4, place + 4, height(t) - 0.44, height(t) + 0.44),
                strength: 0,
                edge: true,
                colour: "key",
                term: "key",
                part,
              })),
              { text: tf.fixed(numbers.right[t], 2), at: [14, height(t)], colour: "key", part },
            ];
          }),
          { rule: { x: 0 }, colour: "query" },
        ],
      });
      const hidden = question.open && state.token === old;
      const found = back.map(
        ([place], h) => `Head ${h} reads ${words[at - place]}, ${place} tokens back`,
      );
      strip.show({
        title: `what “${words[at]}” reads, head by head`,
        label: hidden ? "Hidden until the question is answered" : found.join("; "),
        x: { from: -m - 16, to: 26, ticks: [-250, -200, -150, -100, -50, 0] },
        y: { names: gates.map((_, h) => `head ${h}`) },
        hover: false,
        marks: [
          !hidden &&
            // a row a head: a box where each memory lies, and the word of the strongest
            numbers.weights.map((ws, h) => [
              ws.map((w, i) => read(-back[h][i], h, 0.26, w / ws[0])),
              {
                text: words[at - back[h][0]],
                colour: "key",
                term: "key",
                at: [tf.clamp(-back[h][0], 8 - m, -8), h + 0.44],
              },
            ]),
          { rule: { x: 0 }, colour: "query" },
        ],
      });
      app.read({
        token: words[at],
        "this token": KINDS[kind],
        "head 0's strongest memory": hidden ? "?" : `${back[0][0]} tokens back`,
        "weight on its fact": hidden ? "?" : kind ? tf.fixed(numbers.right[state.token], 2) : "–",
        "gates of the heads": gates.map((g) => tf.fixed(g, 2)).join(", "),
      });
      app.say(
        `Token ${state.token}, ${words[at]}, ${KINDS[kind]}${hidden ? "" : `. ${found.join("; ")}`}.`,
      );
    };
  },
});
