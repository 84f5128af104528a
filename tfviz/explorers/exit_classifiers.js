// The oracle's exits, worked out here from stored log likelihoods as in the library; q is stored.
const { scores, q, text, price: learned, prices } = tf.data;
const [N, L, ACROSS] = [scores.LL.length, text.length, 24];
const smoothed = tf.keep((score, sigma) =>
  scores[score].map((row) =>
    sigma === 0
      ? row
      : row.map((_, t) => tf.sum(row.map((s, u) => s * Math.exp(-((t - u) ** 2) / sigma)))),
  ),
);
// the exit that a classifier takes: the likeliest; with "stop or go on" the first of χ > ½
const taken = (kind, t) => {
  const column = q[kind].map((row) => row[t]);
  if (kind !== "geometric") return tf.best(column) + 1;
  let below = 0;
  for (let n = 0; n < N - 1; n++) {
    if (2 * column[n] > 1 - below) return n + 1;
    below += column[n];
  }
  return N;
};
const exits = tf.keep(
  (score, sigma, price) =>
    tf.range(
      L,
      (t) => tf.best(smoothed(score, sigma).map((row, n) => row[t] - price * (n + 1))) + 1,
    ),
  200,
);

export default tf.explorer({
  numbers({ score, sigma, price, shows }) {
    const mine = exits(score, sigma, price);
    const theirs = tf.range(L, (t) => (shows === "oracle" ? 0 : taken(shows, t)));
    const hits = theirs.filter((n, t) => n === mine[t]).length;
    const whole = scores[score].map((row, n) => tf.sum(row) - price * L * (n + 1));
    return {
      exits: mine,
      means: prices.map((p) => tf.sum(exits(score, sigma, p)) / L),
      whole: tf.best(whole) + 1,
      taken: theirs,
      hit: shows === "oracle" || score !== "LL" ? -1 : hits,
    };
  },
  setup(app) {
    let from = 0;
    const pick = (_, j) => app.set({ token: from + j });
    const matrix = app.matrix({ axes: ["exit", "t"], pick });
    const both = app.split("1fr 1fr");
    const one = app.plane({ height: () => 220, into: both });
    const mean = app.plane({ height: () => 220, into: both });
    app.formula("oracle: argmax over n of  {score:s_tⁿ} − {price:λ} n");
    app.motion("token", { every: 400 });
    app.knobsOf("price", "sigma", "score");
    app.knob("shows", { as: "select" });
    const question = app.ask({
      name: "free",
      question:
        "Blocks cost nothing (λ = 0), and each letter takes the exit that gives it the highest log likelihood. How many of the 48 letters take the last, fourth exit?",
      number: {},
      unit: "letters",
      near: 4,
      truth: (numbers) => numbers.exits.filter((e) => e === N).length,
      then: { price: 0, sigma: 0, score: "LL", shows: "oracle" },
      because:
        "The deepest exit is best on the mean, and often not for one letter: an oracle that sees the answer picks luck, too.",
    });

    return (state, numbers) => {
      const { open } = question;
      from = tf.clamp(state.token - ACROSS / 2, 0, L - ACROSS);
      const now = smoothed(state.score, state.sigma);
      const price = (e) => state.price * (e + 1);
      // a cell's colour: the classifier's q, or the score less its price, from worst to best exit
      const shade = (e, t) => {
        if (state.shows !== "oracle") return q[state.shows][e][t];
        const column = tf.range(N, (m) => now[m][t] - price(m));
        const [low, high] = [Math.min(...column), Math.max(...column)];
        return high > low ? (0.85 * (column[e] - low)) / (high - low) : 0.4;
      };
      const row = (i) => N - 1 - i;
      const own = now.map((scores) => scores[state.token]);
      const sign = tf.letter(text[state.token]);
      matrix.show({
        title: open ? "the letters that come" : "● the oracle's exit, ○ the classifier's, ◉ both",
        label: `Letter ${state.token}, ${sign}${open ? "" : `: exit ${numbers.exits[state.token]}`}; arrow keys move`,
        rows: N,
        columns: ACROSS,
        most: 1,
        values: (i, j) => (open ? 0 : shade(row(i), from + j)),
        text: (i, j) => {
          const [byOracle, byClassifier] = [numbers.exits, numbers.taken].map(
            (all) => all[from + j] === row(i) + 1,
          );
          return open
            ? ""
            : byOracle && byClassifier
              ? "◉"
              : byOracle
                ? "●"
                : byClassifier
                  ? "○"
                  : "";
        },
        rowHeads: tf.range(N, (i) => `${N - i}`),
        columnHeads: tf.range(ACROSS, (j) => tf.letter(text[from + j])),
        at: [N - numbers.exits[state.token], state.token - from],
        frames: [{ column: state.token - from, term: "score" }],
      });
      one.show({
        title: `letter ${sign}: its score, and the score less λ n`,
        label: open ? "Scores of this letter" : `Best: exit ${numbers.exits[state.token]}`,
        x: { label: "exit", from: 1, to: N, whole: true },
        y: {},
        marks: [
          !open && { line: own, start: 1, colour: "muted", name: "s", term: "score" },
          !open && {
            line: own.map((s, e) => s - price(e)),
            start: 1,
            name: "s − λ n",
            bold: true,
            colour: "attention",
            dots: true,
            term: "price",
          },
        ],
      });
      const at = prices.indexOf(state.price);
      mean.show({
        title: "the oracle's mean exit at each price",
        label: open
          ? "Mean exit against the price"
          : `λ = ${state.price}: ${tf.fixed(numbers.means[at], 2)}`,
        x: { label: "λ", from: 0, to: prices.at(-1) },
        y: { label: "exit", from: 1, to: N },
        marks: [
          !open && { line: numbers.means, at: prices, colour: "attention", term: "price" },
          !open && {
            handle: [state.price, numbers.means[at]],
            knob: "price",
            text: `λ = ${state.price}`,
          },
        ],
      });
      app.read({
        "mean exit": question.tell(tf.fixed(numbers.means[at], 2)),
        "one exit for all": question.tell(numbers.whole),
        "○ is where ● is":
          open || numbers.hit < 0
            ? "–"
            : `${numbers.hit} of ${L}; guessing: ${L / N}; it learned from likelihoods, λ = ${learned}`,
      });
      app.say(
        open
          ? `Letter ${state.token} is ${sign}.`
          : `At λ = ${state.price} the oracle lets ${sign} leave at exit ${numbers.exits[state.token]}; the mean is ${tf.fixed(numbers.means[at], 2)}.`,
      );
    };
  },
});
