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
    const net = app.plane({ height: (w) => tf.clamp(w * 0.5, 240, 330) });
    const formula = app.formula("{reach:reach} = (N − 1) · ⌈{memory:m} / L⌉ · L + {memory:m}");
    app.motion("read", { every: 1300 });
    app.knobsOf("m", "L", "N", "p");
    const question = app.ask({
      name: "reach",
      question:
        "Segments of 8, a memory of 4, three layers. How many tokens before its first does the sixth segment hear of? (N · m would be 12.)",
      number: { unit: "tokens", near: 0 },
      truth: (n) => n.back,
      then: { read: 6, m: 4, L: 8, N: 3 },
      because:
        "Whoever reads a row of memory reads what that row heard with its own segment's memory: each layer goes a whole segment further.",
    });

    return (k, n) => {
      const { open } = question;
      formula.hidden = open; // it would tell
      const end = k.read * k.L;
      const start = end - k.L;
      const box = (from, to, layer) => tf.box(from, to, layer - 0.36, layer + 0.36);
      const back = Math.max(0, start - k.m);
      const layers = tf.range(k.N + 1);
      const clipped = n.first[0] === 0 && n.back > start;
      const spoken = n.heard[0] >= 0;
      const last = n.heard.at(-1);
      net.show({
        title: `columns: tokens; rows: layers; violet hears token p${open ? "" : "; orange: what the newest segment's first token hears"}`,
        label: spoken
          ? `Of token ${k.p}, layer ${k.N} hears up to token ${last}`
          : `Token ${k.p} is not read yet`,
        x: { from: 0, to: segments * k.L, whole: true, label: "token" },
        y: { from: -0.75, to: k.N + 0.6, bare: true },
        marks: [
          ...tf.range(segments + 1, (s) => ({ rule: { x: s * k.L }, colour: "muted" })),
          layers.map((layer) => [
            { shape: box(0, end, layer), colour: "muted", strength: 0.12 },
            k.m > 0 &&
              layer < k.N && {
                shape: box(back, start, layer),
                colour: "key",
                strength: 0.3,
                edge: true,
                term: "memory",
              },
            spoken && {
              shape: box(k.p, n.heard[layer] + 1, layer),
              colour: "attention",
              strength: 0.5,
            },
            !open && {
              line: [...box(n.first[layer], start + 1, layer), [n.first[layer], layer - 0.36]],
              colour: "query",
              wide: 2,
              term: "reach",
            },
            { text: layer ? `layer ${layer}` : "words", at: [segments * k.L, layer], dx: -4 },
          ]),
          {
            handle: [k.p + 0.5, 0],
            knob: "p",
            text: `token ${k.p}`,
            to: (x) => ({ p: app.snap("p", x - 0.5) }),
          },
          {
            handle: [back, -0.55],
            knob: "m",
            text: `memory ${k.m}`,
            colour: "key",
            to: (x) => ({ m: app.snap("m", start - x) }),
          },
        ],
      });
      app.read({
        "the newest segment hears back": question.tell(
          clipped
            ? `${start} tokens, all there are; ${n.back} in a longer text`
            : `${n.back} tokens`,
        ),
        "N · m": n.product,
        "token p is heard up to": spoken ? `token ${last}` : "–",
      });
      const own = last < begin(k.p, k.L) + k.L;
      const far = own ? "within its own segment only" : `${last - k.p} tokens later`;
      const told = spoken ? `heard in layer ${k.N} up to token ${last}, ${far}` : "not read yet";
      app.say(`${k.read} segments read. Token ${k.p}: ${told}.`);
    };
  },
});
