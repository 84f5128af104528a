// (φ(Q) φ(K)ᵀ) V takes 2 L² d multiplications, φ(Q) (φ(K)ᵀ V) takes 2 L d²; the matrix in between has L² or d² numbers.
const { lengths } = tf.data;
const products = {
  scores: (L, d) => 2 * L * L * d,
  state: (L, d) => 2 * L * d * d,
};
const between = { scores: (L) => L * L, state: (_, d) => d * d };
const power = (n) => `10${{ 3: "³", 6: "⁶", 9: "⁹" }[Math.round(Math.log10(n))]}`;
// the square in the upper left corner of a picture that is `side` wide
const corner = (size, side) => tf.box(0, size, side - size, side);

export default tf.explorer({
  numbers: ({ order, L, d }) => ({
    scores: lengths.map((length) => products.scores(length, d)),
    state: lengths.map((length) => products.state(length, d)),
    between: between[order](L, d),
  }),
  setup(app) {
    const both = app.split("3fr 2fr");
    const plane = app.plane({
      height: (width) => tf.clamp(width * 0.62, 240, 320),
      into: both,
      lead: true,
    });
    const squares = app.plane({ height: (width) => tf.clamp(width, 200, 320), into: both });
    app.formula("{scores:(φ(𝐐) φ(𝐊)ᵀ) 𝐕}  =  {state:φ(𝐐) (φ(𝐊)ᵀ 𝐕)}");
    app.knob("order", { as: "select" });
    app.knobsOf("L", "d");
    const cost = (L) => products.scores(L, 64);
    const question = app.ask({
      name: "crossing",
      question:
        "The line shows how many multiplications a head of width 64 takes if it multiplies queries with keys first. At which length does the other order, keys with values first, take just as many?",
      about: plane,
      ghost: {
        first: 8192,
        at: (L) => [L, cost(L)],
        to: (x) => app.snap("L", x),
        draw: (L) => ({ rule: { x: L }, colour: "key", dash: "6 4" }),
        by: ([L], [right, up]) => L * 2 ** (right || up),
        label: "the length at which both orders cost the same",
      },
      format: (L) => `L = ${tf.count(L)}`,
      hides: ["state", "multiplications, keys with values"],
      guards: ["order"],
      truth: (numbers) =>
        lengths[numbers.scores.indexOf(numbers.state.find((n, k) => n === numbers.scores[k]))],
      then: { order: "state", L: 64, d: 64 },
      because:
        "2 L²dₕ and 2 L dₕ² are equal at L = dₕ. For every longer text, multiplying keys with values first is cheaper, and twice the length then costs only twice as much.",
    });

    return (state, numbers) => {
      const at = lengths.indexOf(state.L);
      const now = { scores: numbers.scores[at], state: numbers.state[at] };
      const told = (order) => tf.count(now[order]);
      const open = question.open;
      plane.show({
        title: "number of multiplications, by length (both log)",
        label: `At ${tf.count(state.L)} tokens: ${told("scores")} multiplications with queries and keys first${open ? "" : `, ${told("state")} with keys and values first`}`,
        x: {
          from: lengths[0],
          to: lengths.at(-1),
          log: true,
          label: "tokens L",
          ticks: [4, 64, 1024, 16384],
          format: tf.count,
        },
        y: { from: 256, to: 1e11, log: true, ticks: [1e3, 1e6, 1e9], format: power },
        marks: [
          {
            line: numbers.scores,
            at: lengths,
            colour: "attention",
            wide: 2.5,
            name: "queries with keys",
            term: "scores",
          },
          {
            line: numbers.state,
            at: lengths,
            colour: "value",
            wide: 2.5,
            name: "keys with values",
            term: "state",
            part: "state",
          },
          {
            handle: [state.L, now[open ? "scores" : state.order]],
            knob: "L",
            text: `L = ${tf.count(state.L)}`,
            to: (x) => ({ L: app.snap("L", x) }),
          },
        ],
      });
      const side = Math.max(state.L, state.d);
      const square = { scores: corner(state.L, side), state: corner(state.d, side) };
      squares.show({
        title: "the matrix in between, in both orders, to scale",
        label: `A square of ${state.L} by ${state.L} numbers and one of ${state.d} by ${state.d}`,
        square: true,
        x: { from: 0, to: side, bare: true },
        y: { from: 0, to: side, bare: true },
        marks: [
          {
            shape: square.scores,
            colour: "attention",
            strength: state.order === "scores" ? 0.5 : 0.12,
            edge: true,
            term: "scores",
          },
          {
            shape: square.state,
            colour: "value",
            strength: state.order === "state" ? 0.9 : 0.3,
            edge: true,
            term: "state",
          },
        ],
      });
      app.read({
        "multiplications, queries with keys": told("scores"),
        "multiplications, keys with values": told("state"),
        "numbers in the middle matrix": tf.count(numbers.between),
      });
      app.say(
        `${tf.count(state.L)} tokens: ${state.order === "scores" ? `${told("scores")} multiplications, and an L × L matrix of ${tf.count(numbers.between)} numbers in between` : `${told("state")} multiplications, and a dₕ × dₕ matrix of ${tf.count(numbers.between)} numbers in between`}.`,
      );
    };
  },
});
