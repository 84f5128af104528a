// The oracle's exits, worked out here from stored log likelihoods as in the library; q is stored.
// Above, a column a letter and a row an exit; below, one letter that is solved and the one after it.
const { scores, q, text, price: learned, prices } = tf.data;
const [N, L] = [scores.LL.length, text.length];
const smoothed = tf.keep((score, beta) =>
  scores[score].map((row) =>
    beta === 0
      ? row
      : row.map((_, t) => tf.sum(row.map((s, u) => s * Math.exp(-((t - u) ** 2) / beta)))),
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
  (score, beta, price) =>
    tf.range(
      L,
      (t) => tf.best(smoothed(score, beta).map((row, n) => row[t] - price * (n + 1))) + 1,
    ),
  200,
);

export default tf.explorer({
  numbers({ score, beta, price, shows }) {
    const mine = exits(score, beta, price);
    const theirs = tf.range(L, (t) => (shows === "oracle" ? 0 : taken(shows, t)));
    const hits = theirs.filter((n, t) => n === mine[t]).length;
    const whole = scores[score].map((row, n) => tf.sum(row) - price * L * (n + 1));
    return {
      exits: mine,
      means: prices.map((p) => tf.sum(exits(score, beta, p)) / L),
      whole: tf.best(whole) + 1,
      taken: theirs,
      hit: shows === "oracle" || score !== "LL" ? -1 : hits,
    };
  },
  setup(app) {
    let from = 0;
    const pick = (_, j) => app.set({ token: from + j });
    const matrix = app.matrix({ axes: ["exit", "t"], pick });
    const below = app.split("1.9fr 1fr");
    const pair = app.split("1fr 1fr", { into: below, keep: 2 });
    const [before, one] = [pair, pair].map((into) => app.plane({ height: () => 210, into }));
    const mean = app.plane({ height: () => 210, into: below });
    app.formula("the oracle takes the exit n with the largest  {score:score} − {price:γ n}");
    app.motion("token", { every: 400 });
    app.knobsOf("price", "beta", "score");
    app.knob("shows", { as: "select" });
    const start = { token: 22, price: 0.1, beta: 0, score: "LL", shows: "oracle" };
    const [solved, next] = [start.token - 1, start.token].map((t) => tf.letter(text[t]));
    const paid = exits(start.score, start.beta, start.price)[start.token - 1];
    const [third, fourth] = scores.LL.slice(2).map((row) => row[start.token]);
    const gain = fourth - third;
    let floor = -3; // where the answer is dragged along
    const question = app.ask({
      name: "next-letter",
      question: `An exit's score (grey) is the log likelihood of the right letter. The exit is worth its score minus γ = ${start.price} for each block (violet). For “${solved}”, exit ${paid} is worth most. For the next letter, “${next}”, only the score is shown. Which exit does the oracle take?`,
      about: one,
      ghost: {
        first: 1,
        at: (exit) => [exit, floor],
        to: (exit) => tf.clamp(Math.round(exit), 1, N),
        by: [1, 0],
        draw: (exit) => ({ rule: { x: exit }, colour: "ink", dash: "4 4" }),
        label: `the oracle's exit for ${next}`,
      },
      format: (exit) => `exit ${exit}`,
      hides: ["asked"],
      truth: (numbers) => numbers.exits[start.token],
      then: start,
      guards: [],
      because: `Blocks 2 and 3 raise the score by more than they cost; block 4 raises it by ${tf.fixed(gain)} and costs ${start.price}.`,
    });

    return (state, numbers) => {
      // the letters below; while the question is open they stay
      const t = Math.max(1, question.open ? start.token : state.token);
      const partOf = (letter) => (letter === start.token ? "asked" : undefined);
      const across = matrix.phone ? 12 : 24;
      from = tf.clamp(state.token - across / 2, 0, L - across);
      const now = smoothed(state.score, state.beta);
      const price = (e) => state.price * (e + 1);
      const oracle = state.shows === "oracle";
      // a cell's colour: the classifier's q, or the score less its price, from worst to best exit
      const shade = (e, t) => {
        if (!oracle) return q[state.shows][e][t];
        const column = tf.range(N, (m) => now[m][t] - price(m));
        const [low, high] = [Math.min(...column), Math.max(...column)];
        return high > low ? (0.85 * (column[e] - low)) / (high - low) : 0.4;
      };
      const row = (i) => N - 1 - i;
      const sign = tf.letter(text[state.token]);
      const told = app.hides(partOf(state.token)) ? "?" : `exit ${numbers.exits[state.token]}`;
      const theirs = oracle ? "" : `, ○ the classifier's (trained at γ = ${learned}), ◉ both`;
      matrix.show({
        title: `● the oracle's exit for each letter${theirs}; the stronger the colour, the ${oracle ? "better" : "likelier"} the exit`,
        label: `Letter ${state.token}, ${sign}: ${told}; arrow keys move`,
        rows: N,
        columns: across,
        most: 1,
        values: (i, j) => (app.hides(partOf(from + j)) ? 0 : shade(row(i), from + j)),
        text: (i, j) => {
          const [byOracle, byClassifier] = [numbers.exits, numbers.taken].map(
            (all) => all[from + j] === row(i) + 1,
          );
          if (byOracle) return byClassifier ? "◉" : "●";
          return byClassifier ? "○" : "";
        },
        part: (_, j) => partOf(from + j),
        rowHeads: tf.range(N, (i) => `exit ${N - i}`),
        columnHeads: tf.range(across, (j) => tf.letter(text[from + j])),
        at: [N - numbers.exits[state.token], state.token - from],
        frames: [{ column: state.token - from, term: "score" }],
      });
      for (const [plane, letter] of [
        [before, t - 1],
        [one, t],
      ]) {
        const scores = now.map((row) => row[letter]);
        const worth = scores.map((s, e) => s - price(e));
        const [low, high] = [Math.min(...worth), Math.max(...scores)];
        const part = partOf(letter);
        const best = numbers.exits[letter];
        const name = `“${tf.letter(text[letter])}”`;
        if (plane === one) floor = low - 0.18 * (high - low);
        plane.show({
          title: app.hides(part) ? `${name}: which exit?` : `${name}: exit ${best}`,
          label: app.hides(part) ? `Scores of ${name}` : `${name}: exit ${best} is worth most`,
          x: { label: "exit", from: 0.8, to: N, ticks: [1, 2, 3, 4] },
          y: { from: low - 0.4 * (high - low), to: high + 0.1 * (high - low) },
          marks: [
            { line: scores, start: 1, colour: "muted", dots: true, name: "score", term: "score" },
            {
              line: worth,
              start: 1,
              name: "score − γ n",
              bold: true,
              colour: "attention",
              dots: true,
              term: "price",
              part,
            },
            { points: [[best, worth[best - 1]]], size: 7, colour: "attention", part },
          ],
        });
      }
      const at = prices.indexOf(state.price);
      mean.show({
        title: "mean exit of all letters, by price",
        label: `γ = ${state.price}: ${tf.fixed(numbers.means[at], 2)}`,
        x: { label: "γ", from: 0, to: prices.at(-1) },
        y: { label: "exit", from: 1, to: N, ticks: [1, 2, 3, 4] },
        marks: [
          { line: numbers.means, at: prices, colour: "attention", term: "price" },
          {
            handle: [state.price, numbers.means[at]],
            knob: "price",
            text: `γ = ${state.price}`,
          },
        ],
      });
      app.read({
        "the oracle's exit": told,
        "mean exit": tf.fixed(numbers.means[at], 2),
        "one exit for all": numbers.whole,
        "the classifier agrees on": numbers.hit < 0 ? "–" : `${numbers.hit} of ${L} letters`,
      });
      const choice =
        told === "?" ? "'s" : ` takes ${told} for letter ${state.token}, “${sign}”; its`;
      app.say(
        `At γ = ${state.price}, the oracle${choice} mean exit over all ${L} letters is ${tf.fixed(numbers.means[at], 2)}.`,
      );
    };
  },
});
