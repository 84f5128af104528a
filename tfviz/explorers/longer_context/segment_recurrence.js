// Segments of a text with a memory of m rows in each layer: what each token hears in each layer.
const { segments } = tf.data;
const begin = (token, L) => Math.floor(token / L) * L; // of a token's segment

export default tf.explorer({
  numbers({ read, m, L, N, p }) {
    const end = read * L;
    const heard = [p < end ? p : -1];
    const first = [end - L];
    for (let n = 0; n < N; n++) {
      heard.push(heard[0] < 0 ? -1 : Math.min(begin(heard[n] + m, L) + L, end) - 1);
      first.push(Math.max(0, begin(first[n], L) - m));
    }
    const back = (N - 1) * Math.ceil(m / L) * L + m;
    return { heard, first: first.reverse(), back, product: N * m };
  },
  setup(app) {
    const net = app.plane({ height: (width) => tf.clamp(width * 0.5, 240, 330) });
    app
      .lines()
      .show([
        "A token hears the layer below: its own segment up to itself, and the {key:m tokens before that segment}.",
      ]);
    const formula = app.formula("{reach:reach} = (N − 1) · ⌈{memory:m} / L⌉ · L + {memory:m}");
    app.motion("read", { every: 1300 });
    app.knobsOf("m", "L", "N", "p");
    const { read, m, L, N } = app.first;
    const newest = () => (app.get("read") - 1) * app.get("L"); // its first token
    const box = (from, to, layer) => tf.box(from, to, layer - 0.36, layer + 0.36);
    // what the newest segment's first token hears of a layer, from its first to itself
    const frame = (from, layer) => {
      const corners = box(from, newest() + 1, layer);
      return { line: [...corners, corners[0]], colour: "query", wide: 2, term: "reach" };
    };
    const whole = (N - 1) * Math.ceil(m / L) * L + m;
    const only = N * m < whole ? ` N · m would be only ${N * m} tokens.` : "";
    const question = app.ask({
      name: "reach",
      question: `The orange frames show what token ${(read - 1) * L} of layer ${N} hears in each layer below. Which is the first word that it hears?`,
      about: net,
      ghost: {
        first: (read - 1) * L - m,
        at: (token) => [token, 0],
        to: (x) => tf.clamp(Math.round(x), 0, newest()),
        by: [1, 0],
        draw: (token) => ({ ...frame(token, 0), dash: "5 4" }),
        label: "the first word that it hears",
      },
      hides: ["words", "the first word it hears", "how far back"],
      format: (token) => `token ${token}`,
      truth: (numbers) => numbers.first[0],
      then: { read, m, L, N },
      guards: [],
      because: `Each row of memory was computed with the memory of its own segment, so every layer below the top one reaches back by whole segments.${only}`,
    });

    return (state, numbers) => {
      const { open } = question;
      formula.style.visibility = open ? "hidden" : ""; // it would tell
      const end = state.read * state.L;
      const start = end - state.L;
      const back = Math.max(0, start - state.m);
      const layers = tf.range(state.N + 1);
      const name = (layer) => (layer ? `layer ${layer}` : "words");
      const clipped = numbers.first[0] === 0 && numbers.back > start;
      const spoken = numbers.heard[0] >= 0;
      const last = numbers.heard.at(-1);
      net.show({
        title: `columns: tokens; violet: who hears token ${state.p}; blue: the newest memory; orange: what token ${start} hears`,
        label: spoken
          ? `In layer ${state.N}, token ${state.p} is heard up to token ${last}`
          : `Token ${state.p} has not been read yet`,
        x: { from: 0, to: segments * state.L, whole: true, label: "token" },
        y: { names: layers.map(name) },
        marks: [
          ...tf.range(segments + 1, (s) => ({ rule: { x: s * state.L }, colour: "muted" })),
          layers.map((layer) => [
            { shape: box(0, end, layer), colour: "muted", strength: 0.12 },
            state.m > 0 &&
              layer < state.N && {
                shape: box(back, start, layer),
                colour: "key",
                strength: 0.3,
                edge: true,
                term: "memory",
              },
            spoken && {
              shape: box(state.p, numbers.heard[layer] + 1, layer),
              colour: "attention",
              strength: 0.5,
            },
            { ...frame(numbers.first[layer], layer), part: name(layer) },
          ]),
          {
            handle: [state.p + 0.5, 0],
            knob: "p",
            text: `token ${state.p}`,
            to: (x) => ({ p: app.snap("p", x - 0.5) }),
          },
          {
            handle: [back, -0.5],
            knob: "m",
            text: `memory ${state.m}`,
            colour: "key",
            to: (x) => ({ m: app.snap("m", start - x) }),
          },
        ],
      });
      app.read({
        "the first word it hears": `token ${numbers.first[0]}`,
        "how far back": clipped
          ? `${start} tokens, all there are; ${numbers.back} in a longer text`
          : `${numbers.back} tokens`,
        "N · m": numbers.product,
        "token p is heard up to": spoken ? `token ${last}` : "–",
      });
      const own = last < begin(state.p, state.L) + state.L;
      const far = own ? "within its own segment only" : `${last - state.p} tokens later`;
      const heardText = spoken
        ? `is heard in layer ${state.N} up to token ${last}, ${far}`
        : "has not been read yet";
      app.say(
        `${state.read} ${state.read === 1 ? "segment" : "segments"} read. Token ${state.p} ${heardText}.`,
      );
    };
  },
});
