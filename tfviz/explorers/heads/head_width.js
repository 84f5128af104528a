// A head of width d_p has scores of rank d_p: the d_p largest singular values of log P, centred.
const { logits, widths } = tf.data;
const names = Object.keys(logits);
const L = widths.length;
const titles = { bell: "bell", trained: "trained", random: "random" };
const targets = { bell: "bell", trained: "trained head", random: "random weights" };
const centred = (row) => row.map((x) => x - tf.mean(row));
// what the softmax of the given numbers is, centred again as the library does
const scoresOf = tf.keep((name) => logits[name].map(centred), names.length);
const parts = tf.keep(
  (name) => tf.svd(Float64Array.from(scoresOf(name).flat()), L, L),
  names.length,
);
const rows = (scores) => scores.map((row) => Array.from(tf.softmax(row)));
const nearest = (name, sharp, width) => {
  const { U, S, V } = parts(name);
  return rows(
    tf.range(L, (i) =>
      tf.range(
        L,
        (j) => sharp * tf.sum(tf.range(width, (r) => U[i * L + r] * S[r] * V[j * L + r])),
      ),
    ),
  );
};
const wantedOf = (name, sharp) => rows(scoresOf(name).map((row) => row.map((x) => sharp * x)));
const divergence = (P, A) =>
  Math.max(
    0,
    tf.mean(P.map((row, i) => tf.sum(row.map((p, j) => p * (Math.log(p) - Math.log(A[i][j])))))),
  );
const missedBy = tf.keep((key) => {
  const [name, sharp] = key.split(" ");
  const P = wantedOf(name, Number(sharp));
  return widths.map((width) => divergence(P, nearest(name, Number(sharp), width)));
}, 12);
const LEAST = 1e-8; // nats, which are rounding
const enough = (missed) => widths[missed.findIndex((x) => x < LEAST)];

export default tf.explorer({
  numbers({ d_p, target, sharp }) {
    const missed = names.map((name) => missedBy(`${name} ${sharp}`));
    return { wanted: wantedOf(target, sharp), drawn: nearest(target, sharp, d_p), missed };
  },
  setup(app) {
    const both = app.split("1fr 1fr", { keep: 2 });
    const axes = ["query", "key"];
    const left = app.matrix({ axes, tall: 260, into: both });
    const right = app.matrix({ axes, tall: 260, into: both });
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.45, 210, 280), lead: true });
    app.formula("rank of the scores {drawn:𝐐 𝐊ᵀ} ≤ {width:dₚ};   softmax → {wanted:map}");
    app.knob("d_p");
    app.knob("target", { as: "select" });
    app.knob("sharp");
    const asked = { target: "random", sharp: 1, d_p: L - 1 };
    const question = app.ask({
      name: "enough",
      question: `A head of 2 numbers draws a bell around each query exactly. How wide must a head be to draw random weights of ${L} tokens exactly?`,
      about: plane,
      ghost: {
        first: 4,
        at: (x) => [x, 0.02],
        to: (x) => tf.clamp(Math.round(x), 1, L),
        by: [1, 0],
        draw: (x) => ({ rule: { x }, colour: "ink", dash: "6 4" }),
        label: "smallest width that is enough",
      },
      format: (x) => `${x} ${x === 1 ? "number" : "numbers"}`,
      near: 1,
      hides: ["random", "smallest exact width"],
      guards: ["target", "d_p", "sharp"],
      truth: () => enough(missedBy("random 1")),
      then: asked,
      because: `Scores of ${L} tokens have rank up to ${L}, but the softmax ignores a constant added to a row, so a width of ${L - 1} is enough. Any narrower head misses something.`,
    });

    return (state, numbers) => {
      const { d_p, target } = state;
      const chosen = numbers.missed[names.indexOf(target)];
      const missed = chosen[d_p - 1];
      const most = Math.max(...numbers.wanted.flat());
      left.show({
        title: `target: ${targets[target]}`,
        label: `The target map: ${targets[target]}`,
        rows: L,
        values: numbers.wanted,
        most,
        text: () => "",
      });
      right.show({
        title: `drawn with dₚ = ${d_p}`,
        label: `What a head of width ${d_p} draws`,
        rows: L,
        values: numbers.drawn,
        most,
        text: () => "",
      });
      plane.show({
        title: "what a head misses, by its width",
        label: `Smallest exact width: ${names
          .map((name, n) => {
            const width = String(enough(numbers.missed[n]));
            return `${targets[name]} ${name === "random" ? question.tell(width) : width}`;
          })
          .join("; ")}`,
        x: { from: 1, to: L, whole: true, label: "width dₚ of the head" },
        y: { from: 0, label: "KL in nats" },
        marks: [
          names.map((name, n) => ({
            line: widths.map((width, k) => [width, numbers.missed[n][k]]),
            name: titles[name],
            colour: name === target ? "attention" : "muted",
            wide: name === target ? 2.5 : 1.5,
            dots: true,
            part: name,
          })),
          {
            handle: [d_p, missed],
            knob: "d_p",
            text: `${tf.fixed(missed, 3)} nats`,
            to: (x) => ({ d_p: app.snap("d_p", x) }),
            term: "width",
          },
        ],
      });
      app.read({
        "missed, in nats": tf.fixed(missed, 3),
        "smallest exact width": `dₚ = ${enough(question.open ? numbers.missed[names.indexOf("random")] : chosen)}`,
      });
      app.say(
        `A head of ${d_p} ${d_p === 1 ? "number" : "numbers"} misses ${tf.fixed(missed, 3)} nats of the target (${targets[target]}).`,
      );
    };
  },
});
