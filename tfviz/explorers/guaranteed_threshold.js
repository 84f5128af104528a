// Learn then Test on stored losses: the same draws, p-values and walk as in the library.
const { levels, lost, depth, blocks, draws, most } = tf.data;
const [T, WORLD] = [levels.length, lost[0].length];
const bits = lost.map((row) => Uint8Array.from(row, Number));
const truth = [0, ...bits.map((row) => tf.sum([...row]) / WORLD)];
const drawn = Uint16Array.from(tf.uniforms(7, draws * most), (u) =>
  Math.floor((u / Math.sqrt(12) + 0.5) * WORLD),
);
// of each draw and threshold: how many of its first n texts are lost
const counts = tf.keep((n) =>
  tf.range(draws, (d) => {
    const mine = drawn.subarray(d * most, d * most + n);
    return bits.map((row) => mine.reduce((all, text) => all + row[text], 0));
  }),
);
// the divergence between two coins, in Hoeffding's and Bentkus' bound
const h1 = (a, b) => (a > 0 ? a * Math.log(a / b) : 0) + (1 - a) * Math.log((1 - a) / (1 - b));
// the p-value of every count 0 … n
const pValues = tf.keep((test, n, delta) => {
  let [chance, tail] = [(1 - delta) ** n, 0];
  return tf.range(n + 1, (k) => {
    tail += chance;
    chance *= ((n - k) / (k + 1)) * (delta / (1 - delta));
    const exact = Math.min(1, tail);
    if (test === "exact") return exact;
    if (test === "Hoeffding") return Math.exp(-2 * n * Math.max(0, delta - k / n) ** 2);
    return Math.min(Math.exp(-n * h1(Math.min(k / n, delta), delta)), Math.E * exact);
  });
});
const back = (values) => [...values].reverse();
const rejected = (p, epsilon) => {
  const first = p.findIndex((x) => x > epsilon);
  return first < 0 ? p.length : first;
};

export default tf.explorer({
  numbers({ n, delta, epsilon, test, draw }) {
    const table = pValues(test, n, delta);
    const p = counts(n).map((row) => row.map((count) => table[count]));
    const chosen = p.map((row) => rejected(row, epsilon));
    return {
      risks: counts(n)[draw].map((count) => count / n),
      p: p[draw],
      safe: chosen[draw],
      tally: tf.range(T + 1, (k) => chosen.filter((c) => c === k).length),
      broken: chosen.filter((k) => truth[k] > delta).length,
    };
  },
  setup(app) {
    const both = app.split("1fr 1fr");
    const risk = app.plane({ height: () => 250, into: both });
    const tests = app.plane({ height: () => 250, into: both });
    const many = app.plane({ height: (width) => tf.clamp(width * 0.26, 170, 210) });
    app.formula("reject {hyp:H_j: R(λ_j) > δ} while {p:p_j ≤ ε}; keep the last {chosen:λ}");
    app.motion("step", { every: 500, verbs: ["back", "next test"] });
    app.knobsOf("n", "delta", "epsilon", "draw");
    app.knob("test", { as: "select" });
    const question = app.ask({
      name: "hundred",
      question:
        "A hundred times 200 texts are drawn, and each draw walks to a threshold of its own (δ = 0.1, ε = 0.1, exact p-values). In how many of the hundred is the true risk of what it chose above δ?",
      number: {},
      unit: "draws",
      near: 4,
      truth: (numbers) => numbers.broken,
      then: { n: 200, delta: 0.1, epsilon: 0.1, test: "exact", step: 20 },
      because: "At most ε = 10 in a hundred are allowed on the mean. Now try n = 25, or ε = 0.5.",
    });

    return (state, numbers) => {
      const { open } = question;
      const at = (j) => levels[j];
      const done = Math.min(state.step, numbers.safe + 1, T);
      const tested = tf.range(done);
      const settled = done > numbers.safe || done === T;
      const low = (p) => Math.max(p, 1e-6);
      const x = { label: "threshold λ", from: 0, to: 1 };
      risk.show({
        title: "share of texts that are lost: this draw, and in truth",
        label: `Tests made: ${done}; δ = ${state.delta}`,
        x,
        y: { label: "risk", from: 0, to: 0.22 },
        marks: [
          // from the right to the left, so that names stand there
          {
            line: back(truth.slice(1)),
            at: back(levels),
            dash: "5 3",
            colour: "muted",
            name: "true",
          },
          done > 1 && {
            line: back(numbers.risks.slice(0, done)),
            at: back(levels.slice(0, done)),
            colour: "attention",
            dots: true,
            name: "this draw",
            term: "hyp",
          },
          { rule: { y: state.delta }, colour: "key" },
          { text: `δ = ${state.delta}`, at: [0.4, state.delta + 0.012] },
          settled &&
            numbers.safe && { rule: { x: at(numbers.safe - 1) }, colour: "value", term: "chosen" },
          {
            handle: [0.55, state.delta],
            knobY: "delta",
            label: "risk allowed",
            by: "y",
            text: `δ = ${state.delta}`,
            to: (_, y) => ({ delta: app.snap("delta", y) }),
          },
        ],
      });
      tests.show({
        title: "p-values, from the strictest threshold (right) down",
        label: done ? `Last p-value ${tf.short(numbers.p[done - 1])}` : "No test yet",
        x,
        y: { label: "p (log)", from: 1e-6, to: 1, log: true },
        marks: [
          { points: tested.map((j) => [at(j), low(numbers.p[j])]), colour: "attention", term: "p" },
          { rule: { y: state.epsilon }, colour: "key" },
          { text: `ε = ${state.epsilon}`, at: [0.02, state.epsilon * 1.6], align: "start" },
        ],
      });
      many.show({
        title: `the threshold of each of ${draws} draws; orange: true risk above δ`,
        label: open
          ? "Thresholds of a hundred draws"
          : `${numbers.broken} of ${draws} draws break the promise`,
        x,
        y: { label: "draws", from: 0, whole: true },
        marks:
          !open &&
          numbers.tally.slice(1).map((count, j) => ({
            shape: tf.box(at(j) - 0.02, at(j) + 0.02, 0, count),
            colour: truth[j + 1] > state.delta ? "query" : "value",
            strength: 0.7,
          })),
      });
      const mean = numbers.safe ? depth[numbers.safe - 1] : blocks;
      const chosen = numbers.safe ? `λ = ${tf.short(at(numbers.safe - 1))}` : "none: all blocks";
      app.read({
        "this draw's choice": settled ? chosen : "not yet",
        "its true risk": settled ? tf.fixed(truth[numbers.safe], 3) : "not yet",
        "mean blocks": settled ? `${tf.fixed(mean, 2)} of ${blocks}` : "not yet",
        "promises broken": question.tell(`${numbers.broken} of ${draws}`),
      });
      app.say(
        settled
          ? `The walk ends after ${done} ${done === 1 ? "test" : "tests"}: ${chosen}, true risk ${tf.fixed(truth[numbers.safe], 3)}.`
          : done
            ? `${done} ${done === 1 ? "test" : "tests"} made, all rejected: thresholds down to ${tf.short(at(done - 1))} are shown safe.`
            : "0 tests made: no threshold is shown safe yet.",
      );
    };
  },
});
