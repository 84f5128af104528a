// Five causal maps of a text: softmax(Q Kᵀ/√d) of a trained head, and four that compare nothing.
const { tokens, place, Q, K, guess, R, W, letters, digits, priors, bell } = tf.data;
const L = R.length;
const last = L - 1;
const far = 6; // places from the centre of the bell, beyond which its weight is 0
const letter = (n) => String.fromCharCode("a".charCodeAt(0) + n);
const written = (t) =>
  t < letters * digits
    ? letter(Math.floor(t / digits)) + (t % digits)
    : `${letter(t - letters * digits)}?`;
const words = tokens.map((row) => row.map(written));

const causal = (scores) =>
  tf.range(L, (i) => {
    const shares = Array.from(tf.softmax(scores(i).slice(0, i + 1)));
    return tf.range(L, (j) => (j <= i ? shares[j] : 0));
  });
const relu = (x) => x.map((a) => Math.max(a, 0));
const wide = Math.sqrt(Q[0][0].length);
const height = 1 / Math.sqrt(2 * Math.PI);
const bellAt = (i, j) => (Math.abs(j - i + 1) <= far ? height * Math.exp(bell(i, j, -1, 1)) : 0);
const mapsOf = tf.keep(
  (n) => ({
    content: causal((i) => K[n].map((k) => tf.dot(Q[n][i], k) / wide)),
    average: tf.range(L, (i) => tf.range(L, (j) => (j <= i ? 1 / (i + 1) : 0))),
    bell: tf.range(L, (i) => tf.range(L, (j) => (j <= i ? bellAt(i, j) : 0))),
    random: causal((i) => R[i]),
    dense: causal((i) => {
      const hidden = relu(guess[n][i]);
      return tf.range(L, (j) => tf.sum(hidden.map((x, c) => x * W[c][j])));
    }),
  }),
  4,
);
const kinds = ["content", ...priors];
const highest = (row) => row.indexOf(Math.max(...row));

export default tf.explorer({
  numbers({ text, prior }) {
    const [one, other] = [mapsOf(0), mapsOf(text - 1)];
    const rows = [one, other].map((maps) => [maps.content[last], maps[prior][last]]);
    const common = rows.map(([a, b]) => tf.sum(a.map((x, j) => Math.min(x, b[j]))));
    return { maps: kinds.map((name) => other[name]), rows, common };
  },
  setup(app) {
    const height = () => 170;
    const first = app.plane({ height });
    const second = app.plane({ height, lead: true });
    const gallery = app.split("1fr 1fr 1fr 1fr 1fr", { keep: 2 });
    const matrices = kinds.map((name) =>
      app.matrix({
        axes: ["query", "key"],
        tall: 130,
        bare: true,
        into: gallery,
        pick: () => name !== "content" && app.set({ prior: name }),
      }),
    );
    app.knob("text");
    app.knob("prior", { as: "select" });
    const asked = { text: 2, prior: "random" };
    const question = app.ask({
      name: "highest",
      question: `The last token asks for a letter's digit. A trained head (line) finds the pair: at place ${place[0]} in text 1, at place ${place[1]} in text 2. A random Synthesizer (bars) gives most weight to place ${highest(mapsOf(0).random[last])} in text 1. At which place is its highest bar in text 2?`,
      about: second,
      ghost: {
        first: place[1],
        at: (x) => [x, 0.25],
        to: (x) => tf.clamp(Math.round(x), 0, last),
        by: [1, 0],
        label: "the highest bar in text 2",
      },
      format: (x) => `place ${x}`,
      near: 0,
      hides: ["bars", "highest bar"],
      guards: ["text", "prior"],
      truth: () => highest(mapsOf(asked.text - 1)[asked.prior][last]),
      then: asked,
      because:
        "The bars are the same. A random Synthesizer has one table of scores for all texts, so it cannot follow the pair.",
    });

    return (state, numbers) => {
      const { text, prior } = state;
      const n = text - 1;
      const show = (plane, which, [content, row], part) =>
        plane.show({
          title: `text ${which + 1}: weights of the last token, ${words[which][last]}`,
          label: `Text ${which + 1}, ${words[which].join(" ")}: the trained head looks at place ${highest(content)}`,
          x: { names: words[which] },
          y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
          marks: [
            { bars: row, start: 0, colour: "attention", part },
            { line: content, start: 0, colour: "key", wide: 2, dots: true },
          ],
        });
      show(first, 0, numbers.rows[0]);
      show(second, n, numbers.rows[1], "bars");
      matrices.forEach((matrix, k) => {
        const name = kinds[k];
        const map = numbers.maps[k];
        matrix.show({
          title: name,
          label: `Weights of a head in text ${text}: ${name}`,
          rows: L,
          values: map,
          most: name === "content" || name === "dense" ? 1 : Math.max(...map[last]) * 1.5,
          text: () => "",
          bare: true,
          frames: [{ row: last }, ...(name === prior ? [{}] : [])],
          part: (i) => (name === "random" && i === last ? "bars" : undefined),
        });
      });
      const at = highest(numbers.rows[1][1]);
      app.read({
        "the pair asked for": `place ${place[n]}`,
        "highest bar": `place ${at}`,
      });
      const common = numbers.common.map((x) => tf.percent(x, 0));
      const where = `Text ${text} asks for ${words[n][last]}; its pair is at place ${place[n]}`;
      app.say(
        question.open
          ? `${where}.`
          : `${where}, and the highest bar is at place ${at}. Bars and line have ${common[1]} of their weight in common, and ${common[0]} in text 1.`,
      );
    };
  },
});
