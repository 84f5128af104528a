// Segments of a text with a memory of m rows in each layer: which nodes (token, layer) hear what.
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
    const formula = app.formula("{reach:reach} = (N − 1) · ⌈{memory:m} / L⌉ · L + {memory:m}");
    app.motion("read", { every: 1300 });
    app.knobsOf("m", "L", "N", "p");
    const question = app.ask({
      name: "reach",
      question:
        "Segments of 8, a memory of 4, three layers. How many tokens before its first does the sixth segment hear of? (N · m would be 12.)",
      number: {},
      unit: "tokens",
      near: 0,
      truth: (numbers) => numbers.back,
      then: { read: 6, m: 4, L: 8, N: 3 },
      because:
        "Whoever reads a row of memory reads what that row heard with its own segment's memory: each layer goes a whole segment further.",
    });

    return (state, numbers) => {
      const { open } = question;
      formula.hidden = open; // it would tell
      const end = state.read * state.L;
      const start = end - state.L;
      // a layer is a row of the picture; what it hears of, a bar over the tokens
      const box = (from, to, layer) => tf.box(from, to, layer - 0.36, layer + 0.36);
      const back = Math.max(0, start - state.m);
      const layers = tf.range(state.N + 1);
      const clipped = numbers.first[0] === 0 && numbers.back > start;
      const spoken = numbers.heard[0] >= 0;
      const last = numbers.heard.at(-1);
      net.show({
        title: `columns: tokens; rows: layers; violet hears token p${open ? "" : "; orange: what the newest segment's first token hears"}`,
        label: spoken
          ? `Of token ${state.p}, layer ${state.N} hears up to token ${last}`
          : `Token ${state.p} is not read yet`,
        x: { from: 0, to: segments * state.L, whole: true, label: "token" },
        y: { from: -0.75, to: state.N + 0.6, bare: true },
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
            !open && {
              line: [
                ...box(numbers.first[layer], start + 1, layer),
                [numbers.first[layer], layer - 0.36],
              ],
              colour: "query",
              wide: 2,
              term: "reach",
            },
            { text: layer ? `layer ${layer}` : "words", at: [segments * state.L, layer], dx: -4 },
          ]),
          {
            handle: [state.p + 0.5, 0],
            knob: "p",
            text: `token ${state.p}`,
            to: (x) => ({ p: app.snap("p", x - 0.5) }),
          },
          {
            handle: [back, -0.55],
            knob: "m",
            text: `memory ${state.m}`,
            colour: "key",
            to: (x) => ({ m: app.snap("m", start - x) }),
          },
        ],
      });
      app.read({
        "the newest segment hears back": question.tell(
          clipped
            ? `${start} tokens, all there are; ${numbers.back} in a longer text`
            : `${numbers.back} tokens`,
        ),
        "N · m": numbers.product,
        "token p is heard up to": spoken ? `token ${last}` : "–",
      });
      const own = last < begin(state.p, state.L) + state.L;
      const far = own ? "within its own segment only" : `${last - state.p} tokens later`;
      const heardText = spoken
        ? `heard in layer ${state.N} up to token ${last}, ${far}`
        : "not read yet";
      app.say(`${state.read} segments read. Token ${state.p}: ${heardText}.`);
    };
  },
});
