// A word and its sentence. Above it an arc for each weight of each head, as wide as the weight; below
// it the same for one head, whose scores are the sum of the others', divided by the root of its width.
const { words: WORDS, features: FEATURES, heads: HEADS, loud: LOUD } = tf.data;
const words = Object.keys(WORDS);
const questions = Object.keys(HEADS);
const L = words.length;

export default tf.explorer({
  numbers({ row }) {
    const scores = Object.values(HEADS).map(([sought, asks]) => {
      const query = LOUD * tf.dot(WORDS[words[row]], asks);
      return words.map((word) => query * WORDS[word][FEATURES.indexOf(sought)]);
    });
    const all = words.map((_, j) => tf.sum(scores.map((of) => of[j])) / Math.sqrt(scores.length));
    return { heads: scores.map(tf.softmax), one: tf.softmax(all) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 324 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ row }, { heads, one }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const widths = words.map((word) => Math.max(3, word.length) + (small ? 1.4 : 3));
      const unit = W / tf.sum(widths);
      const at = words.map((_, j) => unit * (tf.sum(widths.slice(0, j)) + widths[j] / 2));
      const [line, tall, deep, most] = small ? [184, 140, 100, 10] : [246, 204, 138, 16];
      const far = Math.max(...at.map((x) => Math.abs(x - at[row])));

      // half an ellipse from the word that asks to word j; one that looks at itself is a small loop
      const bow = (j, weight, side) => {
        const half = j === row ? 11 : Math.abs(at[j] - at[row]) / 2;
        const share = j === row ? 0.14 : 0.12 + (0.88 * 2 * half) / far;
        const rise = share * (side > 0 ? tall : deep);
        const middle = (at[j] + at[row]) / 2;
        const curve = tf.arc(0, 0, 1, 0, Math.PI, 48);
        return {
          line: curve.map(([x, y]) => [middle + half * x, H - line + side * (17 + rise * y)]),
          colour: tf.faint("attention", 22 + 70 * weight),
          wide: Math.max(0.75, most * weight),
          top: [middle + 0.16 * half * Math.sign(at[j] - at[row]), H - line + side * (17 + rise)],
        };
      };
      // the heaviest in front
      const fan = (maps, side) =>
        maps
          .flatMap((weights) => weights.map((weight, j) => bow(j, weight, side)))
          .sort((a, b) => a.wide - b.wide);
      // the questions that are answered, by one word with more than half of the weight
      const answers = questions
        .map((question, n) => ({ question, j: tf.best(heads[n]), weight: Math.max(...heads[n]) }))
        .filter(({ weight }) => weight > 0.5)
        .sort((a, b) => a.j - b.j);
      const lit = words.map((_, j) => Math.max(...heads.map((weights) => weights[j])));
      const part = (text, y) => ({ text, at: [-12, H - y], align: "start", colour: "attention" });

      plane.show({
        label: `“${words[row]}” asks; four heads above the sentence, one head below it`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          fan(heads, 1),
          fan([one], -1),
          answers.map(({ question, j, weight }) => {
            const { top, wide } = bow(j, weight, 1);
            return { text: question, at: top, dy: -wide / 2 - 9, bold: true, colour: "attention" };
          }),
          one.map((weight, j) => {
            if (weight < 0.2 || j === row) return false;
            const { top, wide } = bow(j, weight, -1);
            return { text: tf.percent(weight), at: top, dy: wide / 2 + 10, colour: "muted" };
          }),
          words.map((word, j) => ({
            text: word,
            at: [at[j], H - line],
            bold: j === row,
            colour: j === row ? "query" : tf.faint("ink", 58 + 42 * lit[j]),
          })),
          part("four heads", line - tall),
          part("one head", line + deep),
          { points: [[at[row], H - line - 17]], colour: "query", size: 4 },
          {
            handle: [at[row], H - line + 17],
            knob: "row",
            colour: "query",
            text: words[row],
            to: (x) => ({ row: tf.best(at.map((place) => -Math.abs(place - x))) }),
          },
        ],
      });
      const NUMBERS = ["", "One", "Two", "Three", "Four"];
      const word = `“${words[row]}”`;
      const found = answers.map(({ j }) => `“${words[j]}”`);
      if (found.length > 1)
        app.say(
          `${NUMBERS[found.length]} heads answer ${word}: ${found.join(", ")}. One head alone blends them: no answer gets more than ${tf.percent(Math.max(...one))}.`,
        );
      else if (found.length)
        app.say(
          `${word} has one question, “${answers[0].question}”: one head finds ${found[0]}, and no other head looks at a single word.`,
        );
      else app.say(`${word} has no question, so all four heads spread over the sentence.`);
    };
  },
});
