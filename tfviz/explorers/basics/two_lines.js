// Two lines of text: threads run from the word that is written up to the source and back to what is
// written already. Later words are covered.
const { source: SOURCE, target: TARGET, loud: LOUD } = tf.data;
const target = Object.keys(TARGET);
const [X, Y] = [SOURCE.length, target.length];
const asks = target.map((word) => SOURCE.map((source) => TARGET[word][source] ?? 0));
const read = [SOURCE.map(() => 0), ...asks]; // the begin sign, then the words
const crossOf = (i) => tf.softmax(asks[i].map((a) => LOUD * a));
const pastOf = (i) => tf.softmax(read.slice(0, i + 1).map((key) => LOUD * tf.dot(asks[i], key)));

export default tf.explorer({
  numbers: ({ step }) => ({ cross: crossOf(step), past: pastOf(step) }),
  setup(app) {
    const high = (width) => (width < 640 ? 324 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ step }, { cross, past }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const rows = small
        ? { source: 34, target: 218, deep: 62 }
        : { source: 40, target: 296, deep: 92 };
      const letter = small ? 7 : 9;
      const left = small ? 12 : 112;
      // words stand in proportion to their letters
      const places = (words, from) => {
        const widths = words.map((word) => Math.max(2, word.length) + (small ? 2 : 3));
        const unit = (W - from) / tf.sum(widths);
        return words.map((_, j) => from + unit * (tf.sum(widths.slice(0, j)) + widths[j] / 2));
      };
      const [at, below] = [places(SOURCE, left), places(target, left)];
      const begin = left - (small ? 14 : 30);
      const reads = [begin, ...below]; // where the words that it reads stand
      const [top, line] = [H - rows.source - 16, H - rows.target];

      // from a word of the target up to one of the source: upright at both ends
      const thread = (i, j, weight, share) => ({
        line: tf.range(25, (k) => {
          const t = k / 24;
          const smooth = t * t * (3 - 2 * t);
          return [below[i] + (at[j] - below[i]) * smooth, line + 26 + (top - line - 26) * t];
        }),
        colour: tf.faint("attention", share),
        wide: Math.max(0.75, (small ? 9 : 14) * weight),
      });
      const far = below[Y - 1] - begin;
      const bow = (j, weight) => {
        const [from, to] = [below[step], reads[j]];
        const [half, middle] = [(from - to) / 2, (from + to) / 2];
        const rise = rows.deep * (0.3 + (1.4 * half) / far);
        return {
          line: tf
            .arc(0, 0, 1, 0, Math.PI, 40)
            .map(([x, y]) => [middle + half * x, line - 16 - rise * y]),
          colour: tf.faint("attention", 25 + 65 * weight),
          wide: Math.max(0.75, (small ? 9 : 14) * weight),
        };
      };
      const heaviest = (marks) => marks.sort((a, b) => a.wide - b.wide);
      const before = tf.range(step, (i) =>
        crossOf(i).map((weight, j) => weight > 0.3 && thread(i, j, weight * 0.5, 14)),
      );
      const part = (text, y) => !small && { text, at: [-12, y], align: "start", colour: "muted" };

      plane.show({
        label: `The source has ${X} words; the target's word ${step + 1} of ${Y} is written`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          before,
          heaviest(cross.map((weight, j) => thread(step, j, weight, 25 + 65 * weight))),
          heaviest(past.map((weight, j) => bow(j, weight))),
          SOURCE.map((text, j) => ({
            text,
            at: [at[j], H - rows.source],
            colour: tf.faint("key", 68 + 32 * cross[j]),
            bold: cross[j] > 0.3,
          })),
          { points: [[begin, line]], colour: "muted", size: 3 },
          target.map((text, i) =>
            i > step
              ? {
                  line: [
                    [below[i] - (letter * text.length) / 2, line],
                    [below[i] + (letter * text.length) / 2, line],
                  ],
                  colour: "grid",
                  wide: 14,
                }
              : {
                  text,
                  at: [below[i], line],
                  colour: i < step ? "ink" : "query",
                  bold: i === step,
                },
          ),
          part("source", H - rows.source),
          part("written", line),
          {
            handle: [below[step], line + 20],
            knob: "step",
            colour: "query",
            text: `“${target[step]}”, word ${step + 1} of ${Y}`,
            to: (x) => ({ step: tf.best(below.map((place) => -Math.abs(place - x))) }),
          },
        ],
      });
      const [j, k] = [tf.best(cross), tf.best(past)];
      const share = (weight) => tf.percent(weight);
      const back = k ? `back at “${target[k - 1]}” (${share(past[k])})` : "at the sign that begins";
      const looks = step && past[k] < 1.2 / (step + 1) ? "evenly at what is written" : back;
      const NUMBERS = ["", "one", "two", "three", "four", "five", "six"];
      const later = Y - 1 - step;
      const rest = later
        ? `the ${later > 1 ? `${NUMBERS[later]} later words are` : "last word is"} covered`
        : "nothing is covered any more";
      app.say(
        `To write “${target[step]}”, the decoder looks at “${SOURCE[j]}” in the source (${share(cross[j])}) and ${looks}; ${rest}.`,
      );
    };
  },
});
