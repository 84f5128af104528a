// Halting as in the library: η = σ(logit + b), steps until their sum reaches 1 − ε, then the remainder.
const { words, logits } = tf.data;
const M = logits[0].length;
const halted = (row, b, eps) => {
  const p = [];
  let before = 0;
  for (let n = 1; n <= M; n++) {
    const eta = 1 / (1 + Math.exp(-row[n - 1] - b));
    const last = before + eta >= 1 - eps || n === M;
    p.push(last ? 1 - before : eta);
    if (last) return { N: n, R: 1 - before, p: [...p, ...tf.range(M - n, () => 0)] };
    before += eta;
  }
  return { N: M, R: 1 - before, p };
};

export default tf.explorer({
  numbers({ b, eps, tau }) {
    const haltings = logits.map((row) => halted(row, b, eps));
    const [N, R, p] = ["N", "R", "p"].map((part) => haltings.map((x) => x[part]));
    return {
      N,
      R,
      p,
      ran: tf.range(M, (n) => N.filter((x) => x > n).length),
      price: (tau * (tf.sum(N) + tf.sum(R))) / words.length,
    };
  },
  setup(app) {
    const stacks = app.plane({ height: (width) => tf.clamp(width * 0.48, 240, 340) });
    app.formula(
      "halt at step k when {sum:η¹ + … + ηᵏ} ≥ {edge:1 − ε};  the last weight is the {rest:remainder R}",
    );
    app.motion("step", { every: 900 });
    app.knobsOf("b", "eps", "tau");
    const { b: bias, eps: gap } = app.first;
    const question = app.ask(
      bias === 0
        ? {
            name: "remainder",
            question:
              "The halting numbers of “man” are 0.3, 0.4 and 0.5. With what weight does its third state count in the mean?",
            number: { hint: "The weights of its states must sum to one." },
            format: (x) => tf.fixed(x, 2),
            near: 0.005,
            truth: (numbers) => Number(numbers.p[2][2].toFixed(3)),
            then: { step: 3, b: 0, eps: 0.01 },
            because:
              "0.3 + 0.4 + 0.5 is more than 0.99, so “man” halts at step 3. The weights must sum to one, so 1 − 0.7 = 0.3 is left.",
          }
        : {
            name: "share",
            question:
              "All six words take their steps together until the last one has halted. If a word is no longer computed once it has halted, what share of all states is computed?",
            chips: ["nearly all", "about half", "about a tenth"],
            truth: ({ N }) =>
              [0.8, 0.3, 0].findIndex((x) => tf.sum(N) > x * N.length * Math.max(...N)),
            then: { step: M, b: bias, eps: gap },
            because:
              "Each word costs only its own number of steps. Without halting, every word would cost as many steps as the slowest.",
          },
    );

    return (state, numbers) => {
      const { open } = question;
      // a column a word: the weights of its steps, stacked; the last one is the remainder
      const pieces = numbers.p.map((p, word) => {
        let top = 0;
        return p.slice(0, Math.min(state.step, numbers.N[word])).map((height, at) => {
          const last = at + 1 === numbers.N[word];
          const look = last
            ? { colour: "query", strength: 0.75, term: "rest" }
            : { colour: "attention", strength: at % 2 ? 0.3 : 0.5, term: "sum" };
          top += height;
          const shape = tf.box(word - 0.36, word + 0.36, top - height, top);
          const digits = height > 0.98 && height < 1 ? 3 : 2; // 0.987 is not yet 0.99
          const name = { text: tf.fixed(height, digits), at: [word, top - height / 2] };
          return [{ shape, edge: true, ...look }, height > 0.08 && name];
        });
      });
      const running = numbers.N.filter((N) => N > state.step).length;
      stacks.show({
        title: `after step ${state.step}; violet: η of each step; orange: remainder`,
        label: words
          .map((w, i) =>
            numbers.N[i] <= state.step ? `${w} halted at step ${numbers.N[i]}` : `${w} still runs`,
          )
          .join(", "),
        x: { names: words },
        y: { from: 0, to: 1.12, label: "sum of the weights", ticks: [0, 0.5, 1] },
        marks: [
          pieces,
          { rule: { y: 1 - state.eps }, colour: "key", term: "edge" },
          {
            handle: [words.length - 0.55, 1 - state.eps],
            knobY: "eps",
            term: "edge",
            to: (x, y) => ({ eps: app.snap("eps", 1 - y) }),
            text: `1 − ε = ${tf.fixed(1 - state.eps, 2)}`,
          },
        ],
      });
      const most = Math.max(...numbers.N);
      const slowest =
        running || open ? "" : `; the slowest took ${most} ${most === 1 ? "step" : "steps"}`;
      const steps = tf.sum(numbers.N.map((N) => Math.min(N, state.step)));
      const full = words.length * Math.min(state.step, most);
      app.read({
        "steps of each word": question.tell(numbers.N.join(", ")),
        "computed so far": `${steps} of ${full} states`,
        "τ · mean of K + R": question.tell(tf.fixed(numbers.price, 3)),
      });
      app.say(
        `After step ${state.step}, ${running} of ${words.length} words still ${running === 1 ? "runs" : "run"}${slowest}.`,
      );
    };
  },
});
