// Learn then Test on stored losses: the same draws, p-values and tests as in the library.
const { levels, lost, depth, blocks, draws, most } = tf.data;
const [T, WORLD] = [levels.length, lost[0].length];
const bits = lost.map((row) => Uint8Array.from(row, Number));
const truth = [0, ...bits.map((row) => tf.sum([...row]) / WORLD)];
const drawn = Uint16Array.from(tf.uniforms(7, draws * most), (u) =>
  Math.floor((u / Math.sqrt(12) + 0.5) * WORLD),
);
// of each draw and threshold: how many of its first m texts are lost
const counts = tf.keep((m) =>
  tf.range(draws, (d) => {
    const mine = drawn.subarray(d * most, d * most + m);
    return bits.map((row) => mine.reduce((all, text) => all + row[text], 0));
  }),
);
// the divergence between two coins, in Hoeffding's and Bentkus' bound
const h1 = (a, b) => (a > 0 ? a * Math.log(a / b) : 0) + (1 - a) * Math.log((1 - a) / (1 - b));
// the p-value of every count 0 … m
const pValues = tf.keep((test, m, delta) => {
  let [chance, tail] = [(1 - delta) ** m, 0];
  return tf.range(m + 1, (k) => {
    tail += chance;
    chance *= ((m - k) / (k + 1)) * (delta / (1 - delta));
    const exact = Math.min(1, tail);
    if (test === "exact") return exact;
    if (test === "Hoeffding") return Math.exp(-2 * m * Math.max(0, delta - k / m) ** 2);
    return Math.min(Math.exp(-m * h1(Math.min(k / m, delta), delta)), Math.E * exact);
  });
});
// 1, 0.1, 0.01, 10⁻³, …
const power = (p) => (p < 0.01 ? `10⁻${"⁰¹²³⁴⁵⁶"[-Math.round(Math.log10(p))]}` : String(p));
const back = (values) => [...values].reverse();
const rejected = (p, epsilon) => {
  const first = p.findIndex((x) => x > epsilon);
  return first < 0 ? p.length : first;
};

export default tf.explorer({
  numbers({ m, delta, epsilon, test, draw }) {
    const table = pValues(test, m, delta);
    const p = counts(m).map((row) => row.map((count) => table[count]));
    const chosen = p.map((row) => rejected(row, epsilon));
    return {
      risks: counts(m)[draw].map((count) => count / m),
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
    app.formula(
      "reject {hyp:H_k: R(λ_k) > δ} while {p:p_k ≤ ε}; choose the last such {chosen:λ_k}",
    );
    app.motion("step", { every: 500, verbs: ["back", "next test"] });
    app.knobsOf("m", "delta", "epsilon", "draw");
    app.knob("test", { as: "select" });
    const { m, delta, epsilon, test } = app.first;
    const few = 25;
    const { broken } = app.spec.numbers(app.first);
    const loosest = levels[T - 1];
    app.ask({
      name: "fewer-texts",
      question: `The promise is that at most about ${Math.round(epsilon * draws)} of ${draws} draws choose a threshold whose true risk is above δ = ${delta}. With ${m} texts per draw, ${broken} do (orange). How many do with only ${few} texts per draw?`,
      about: many,
      ghost: {
        first: 40,
        at: (count) => [loosest, count],
        to: (_, count) => Math.round(tf.clamp(count, 0, 80)),
        by: [0, 1],
        draw: (count) => ({
          shape: tf.box(loosest - 0.02, loosest + 0.02, 0, count),
          edge: true,
          strength: 0,
          dash: "4 3",
          colour: "ink",
        }),
        label: "draws with a true risk above δ",
      },
      unit: "draws",
      near: 3,
      truth: (numbers) => numbers.broken,
      then: { m: few, delta, epsilon, test, draw: 0, step: T },
      guards: ["m"],
      because: `With ${few} texts, the p-values are larger, so in most draws the tests stop earlier, at stricter thresholds. Fewer texts cost more blocks, but they do not break the promise.`,
    });

    return (state, numbers) => {
      const at = (j) => levels[j];
      const done = Math.min(state.step, numbers.safe + 1, T);
      const tested = tf.range(done);
      const settled = done > numbers.safe || done === T;
      const low = (p) => Math.max(p, 1e-6);
      const x = { label: "threshold λ", from: 0, to: 1.02 }; // with half of the last bar
      risk.show({
        title: "risk (share of lost texts): this draw's and the true one",
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
            label: "allowed risk",
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
        y: { label: "p (log)", from: 1e-6, to: 1, log: true, format: power },
        marks: [
          { points: tested.map((j) => [at(j), low(numbers.p[j])]), colour: "attention", term: "p" },
          { rule: { y: state.epsilon }, colour: "key" },
          { text: `ε = ${state.epsilon}`, at: [0.02, state.epsilon * 1.6], align: "start" },
        ],
      });
      many.show({
        title: `thresholds that ${draws} draws choose; orange: true risk above δ`,
        label: `In ${numbers.broken} of ${draws} draws, the true risk is above δ`,
        x,
        y: { label: "draws", from: 0, whole: true },
        marks: numbers.tally.slice(1).map((count, j) => ({
          shape: tf.box(at(j) - 0.02, at(j) + 0.02, 0, count),
          colour: truth[j + 1] > state.delta ? "query" : "value",
          strength: 0.7,
        })),
      });
      const mean = numbers.safe ? depth[numbers.safe - 1] : blocks;
      const all = tf.dot(numbers.tally, [blocks, ...depth]) / draws;
      const chosen = numbers.safe ? `λ = ${tf.short(at(numbers.safe - 1))}` : "none: all blocks";
      app.read({
        "this draw's choice": settled ? chosen : "not yet",
        "its true risk": settled ? tf.fixed(truth[numbers.safe], 3) : "not yet",
        "mean blocks, this draw": settled ? `${tf.fixed(mean, 2)} of ${blocks}` : "not yet",
        "mean blocks, all draws": `${tf.fixed(all)} of ${blocks}`,
        "true risk above δ": `${numbers.broken} of ${draws} draws`,
      });
      app.say(
        settled
          ? `Testing stops after ${done} ${done === 1 ? "test" : "tests"}: ${numbers.safe ? `${chosen} is chosen, and its true risk is ${tf.fixed(truth[numbers.safe], 3)}` : "no threshold is shown to be safe, so all blocks run"}.`
          : done
            ? `${done} ${done === 1 ? "test" : "tests"} made: thresholds down to ${tf.short(at(done - 1))} are shown to be safe.`
            : "0 tests made: no threshold is shown to be safe yet.",
      );
    };
  },
});
