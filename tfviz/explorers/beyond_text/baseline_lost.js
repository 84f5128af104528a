// Two models on digits: bars of errors with a dot for each seed, and the paired difference, whose word follows the rules of `outcomes`.
const { images, delta, bar, trivial, loudness, steps, missed, names, words, t95, first } = tf.data;
const short = ["full attention", "Linformer"];
const SEEDS = missed[0][0][0].map((_, seed) => seed);
const MANY = 5; // from so many seeds on, their agreement is worth a word
const points = (share) => 100 * share;
const percent = (share) => `${tf.fixed(points(share), 1)} %`;
const signed = (share) =>
  `${share > 0 ? "+" : share < 0 ? "−" : ""}${tf.fixed(points(Math.abs(share)), 1)}`;
const spread = (row) => {
  const middle = tf.mean(row);
  return Math.sqrt(tf.sum(row.map((x) => (x - middle) ** 2)) / (row.length - 1));
};

function wordOf(apart, low, high, score) {
  const middle = tf.mean(apart);
  if (score >= trivial[bar]) return "has not learned it";
  if (-delta <= low && high <= delta) return `equal to within ${delta}`;
  if ((low <= 0 && high >= 0) || Math.abs(middle) <= delta) return "cannot tell";
  const word = middle < 0 ? "better" : "worse";
  const agree = apart.every((x) => x > 0 === middle > 0);
  return agree && apart.length >= MANY ? `${word} in every seed` : word;
}

const cell = ({ std, steps: count }, model) =>
  missed[model][loudness.indexOf(std)][steps.indexOf(count)].map((n) => n / images);

function compared(state) {
  const chosen = [...state.seeds].map(Number);
  const errors = names.map((_, model) => chosen.map((seed) => cell(state, model)[seed]));
  const apart = chosen.map((_, n) => errors[1][n] - errors[0][n]);
  const [middle, n] = [tf.mean(apart), chosen.length];
  const reach = (t95[n] * spread(apart)) / Math.sqrt(n);
  const means = errors.map(tf.mean);
  return {
    errors,
    means,
    difference: middle,
    interval: [middle - reach, middle + reach],
    word: words.indexOf(wordOf(apart, middle - reach, middle + reach, means[1])),
    refused: Number(means[0] >= trivial[bar]),
  };
}

const lead = (state) => tf.fixed(points(-compared(state).difference), 1);
const verdict = ({ refused, word }) =>
  refused ? `no comparison: ${short[0]} loses to ${bar}` : words[word];

export default tf.explorer({
  numbers: compared,
  setup(app) {
    const both = app.split("1fr 1fr");
    const height = (width) => tf.clamp(width * 0.75, 250, 280);
    const bars = app.plane({ height, into: both, lead: true });
    const pairs = app.plane({ height, into: both });
    app.knob("std", { format: String });
    app.knob("steps", { format: tf.count });
    app.knob("seeds", { as: "select" });
    const answered = { std: loudness.at(-1), steps: 400, seeds: first };
    const after = compared(answered);
    app.ask({
      name: "louder",
      question: `With tables of positions that begin at ${loudness[0]}, ${short[1]} makes far fewer errors than ${short[0]}. How many does ${short[0]} make if both tables begin at ${loudness.at(-1)}, and nothing else changes?`,
      about: bars,
      ghost: {
        first: 6,
        at: (errors) => [0, errors],
        to: (_, y) => Math.round(10 * tf.clamp(y, 0, 10)) / 10,
        draw: (errors) => ({
          line: [
            [-0.42, errors],
            [0.42, errors],
          ],
          colour: "ink",
          dash: "6 4",
        }),
        by: [0, 0.5],
        label: `errors of ${short[0]}, in percent`,
      },
      format: (errors) => `${tf.fixed(errors, 1)} %`,
      near: 1,
      truth: () => points(after.means[0]),
      then: answered,
      guards: ["std"],
      because: `The finding was mostly this one number: Linformer's lead shrinks from ${lead({ ...answered, std: loudness[0] })} to ${lead(answered)} points.`,
    });

    return (state, numbers) => {
      const chosen = [...state.seeds].map(Number);
      const all = names.map((_, model) => cell(state, model));
      const most = Math.max(10, ...all.flat().map(points));
      const crowded = most > 20; // both lines lie close to the axis
      const dots = (row, at, some, size) => ({
        points: SEEDS.filter(some).map((seed) => at(seed, points(row[seed]))),
        size,
        colour: "ink",
      });
      const isChosen = (seed) => chosen.includes(seed);
      const isLeft = (seed) => !chosen.includes(seed);
      const beside = (model) => (seed, y) => [model + (seed - 2) * 0.1, y];
      bars.show({
        title: `errors on ${images} images`,
        label: names.map((name, n) => `${name} ${percent(numbers.means[n])}`).join(", "),
        x: { names: [...short, ""] }, // room for the names of the lines
        y: { from: 0, to: most * 1.05, label: "errors, %" },
        marks: [
          names.map((name, n) => {
            const [mean, look] = [points(numbers.means[n]), { colour: n ? "attention" : "muted" }];
            const [left, right] = [n - 0.35, n + 0.35];
            const top = [
              [left, mean],
              [right, mean],
            ];
            return [
              { shape: tf.box(left, right, 0, mean), name, ...look },
              { line: top, wide: 3, ...look },
            ];
          }),
          names.map((_, n) => [
            dots(all[n], beside(n), isLeft, 1.5),
            dots(all[n], beside(n), isChosen, 3.5),
          ]),
          Object.entries(trivial).map(([name, share], n) => [
            { rule: { y: points(share) }, dash: n ? "2 3" : "6 4" },
            crowded
              ? { text: name, at: [2.45, points(trivial[bar])], align: "end", dy: n ? -6 : -20 }
              : { text: name, at: [2.45, points(share)], align: "end", dy: n ? 14 : -6 },
          ]),
        ],
      });
      const apart = SEEDS.map((seed) => points(all[1][seed] - all[0][seed]));
      const [low, high] = numbers.interval.map(points);
      const widest = Math.max(2, ...[low, high, ...apart].map(Math.abs)) * 1.08;
      const row = (seed) => SEEDS.length - seed;
      const across = (some, size) => ({
        points: SEEDS.filter(some).map((seed) => [apart[seed], row(seed)]),
        size,
        colour: "ink",
      });
      pairs.show({
        title: `${short[1]} − ${short[0]}, by seed`,
        label: `Difference ${signed(numbers.difference)} points, interval ${signed(low / 100)} to ${signed(high / 100)}`,
        x: { from: -widest, to: widest, label: "points of errors (grey: too few to count)" },
        y: { names: ["mean", ...SEEDS.map((seed) => `seed ${SEEDS.length - 1 - seed}`)] },
        marks: [
          {
            shape: tf.box(-points(delta), points(delta), -0.5, SEEDS.length + 0.5),
            colour: "muted",
          },
          { rule: { x: 0 } },
          across(isLeft, 1.5),
          across(isChosen, 3.5),
          {
            line: [
              [low, 0],
              [high, 0],
            ],
            colour: "attention",
            wide: 3,
          },
          { points: [[points(numbers.difference), 0]], size: 5, colour: "attention" },
        ],
      });
      const sign = chosen.filter((seed) => apart[seed] < 0).length;
      const same = Math.max(sign, chosen.filter((seed) => apart[seed] > 0).length);
      const luck = 2 ** (chosen.length - 1);
      app.read({
        [short[0]]: percent(numbers.means[0]),
        [short[1]]: percent(numbers.means[1]),
        "difference, 95 % interval": `${signed(numbers.difference)} points, ${signed(low / 100)} to ${signed(high / 100)}`,
        "runs that agree": `${same} of ${chosen.length}; all agree by luck 1 time in ${luck}`,
        "what may be said": verdict(numbers),
      });
      app.say(
        `Full attention makes ${percent(numbers.means[0])} errors and ${short[1]} ${percent(numbers.means[1])}, with tables that begin at ${state.std}, ${tf.count(state.steps)} steps and seeds ${chosen.join(", ")}. What may be said: ${verdict(numbers)}.`,
      );
    };
  },
});
