// A text in which every token has a span of its own: the stored one.
const { texts } = tf.data;
const ACROSS = 16;
const use = ({ price, seed }) => texts[price][seed];

export default tf.explorer({
  numbers(state) {
    const { z, back } = use(state);
    return { z: z[state.token], back: back[state.token], mean: tf.mean(z) };
  },
  setup(app) {
    const pick = (i, j) => app.set({ token: ACROSS * i + j });
    const matrix = app.matrix({ pick, bare: true, most: 46 });
    app.formula("z_t = {S:S} · σ({v:𝐮} · 𝐱_t + {v:b})");
    app.motion("token", { every: 300 });
    app.knobsOf("price", "seed");
    const question = app.ask({
      name: "who",
      question:
        "At a closing bracket, the model must predict the sign of its opening bracket. ( and ) are close, [ and ] far apart, and long spans cost more. Which tokens have the longest mean span after training?",
      chips: ["dots (noise)", "opening brackets", ")", "]"],
      truth: (numbers, state) => {
        const { words, z } = use(state);
        const kind = (word) => (word === "·" ? 0 : word === ")" ? 2 : word === "]" ? 3 : 1);
        const mean = (m) => tf.mean(z.filter((_, t) => kind(words[t]) === m));
        return tf.best(tf.range(4, mean));
      },
      then: { price: "priced", seed: 0 },
      because: "Only ] needs a token far back; all others get by with a short, cheap span.",
    });

    return (state, numbers) => {
      const { words, z } = use(state);
      const rows = words.length / ACROSS;
      const from = Math.max(0, Math.ceil(state.token - numbers.z));
      const seen = tf.range(state.token - from + 1, (m) => from + m);
      const place = (t) => [Math.floor(t / ACROSS), t % ACROSS];
      matrix.show({
        title: question.open
          ? "the text, line by line"
          : "the stronger the colour, the longer the token's span",
        label: `Token ${state.token}, ${words[state.token]}; arrow keys move along the text`,
        rows,
        columns: ACROSS,
        most: 64,
        values: z.map((x) => (question.open ? 0 : x)),
        text: (i, j) => words[ACROSS * i + j],
        at: place(state.token),
        frames: [
          { cell: place(state.token), colour: "query" },
          ...(numbers.back ? [{ cell: place(state.token - numbers.back), colour: "key" }] : []),
        ],
        marks: [{ cells: question.open ? [] : seen.map(place), term: "S" }],
      });
      app.read({
        "this token looks back": question.tell(`${tf.fixed(numbers.z, 1)} tokens`),
        "its opening bracket": numbers.back ? `${numbers.back} tokens back` : "none",
        "mean span of the text": question.tell(`${tf.fixed(numbers.mean, 1)} tokens`),
      });
      const spanText = question.open ? "" : ` and looks ${tf.fixed(numbers.z, 1)} tokens back`;
      const pair = numbers.back ? `; its opening bracket is ${numbers.back} tokens back` : "";
      app.say(`Token ${state.token} is ${words[state.token]}${spanText}${pair}.`);
    };
  },
});
