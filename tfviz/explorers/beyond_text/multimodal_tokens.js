// A question in letters, an image in patches, a sound in frames: one sequence through one stack.

const { model: MODEL, shown: SHOWN, heard: HEARD } = tf.data;
const { questions: QUESTIONS, alphabet: ALPHABET, lengths: LENGTHS } = tf.data;
const { d, patch: P, frame: FRAME, levels: LEVELS } = MODEL;
const SIDE = 8;
const ACROSS = SIDE / P;
const KINDS = Object.keys(LENGTHS);
const COLOURS = { text: "query", image: "key", sound: "value" };
const MASKS = ["joint", "block"];
const starts = KINDS.map((_, n) => tf.sum(KINDS.slice(0, n).map((kind) => LENGTHS[kind])));
const L = tf.sum(Object.values(LENGTHS));
const ASKED = LENGTHS.text - 1;
const nth = tf.range(L, (i) => starts.findLastIndex((start) => i >= start)); // the kind's number
const inKind = (i) => i - starts[nth[i]];
const sameKind = (i, j) => nth[i] === nth[j];
const model = encoder(MODEL, "joint.stack");

// The share of "yes", and all maps.
const read = tf.keep((question, digit, beeps, mask) => {
  const { W, affine, stack } = model(MODEL.weights);
  const letters = W["joint.embed.text.weight"];
  const rows = {
    text: [...question].flatMap((letter) => {
      const n = ALPHABET.indexOf(letter);
      return Array.from(letters.subarray(n * d, (n + 1) * d));
    }),
    image: affine(
      Float64Array.from(patchesOf(SHOWN[digit], SIDE, P), (x) => x / LEVELS),
      "joint.embed.image",
      LENGTHS.image,
    ),
    sound: affine(Float64Array.from(HEARD[beeps]), "joint.embed.sound", LENGTHS.sound),
  };
  const places = W["joint.positions.P"];
  const tokens = KINDS.flatMap((kind) => {
    const mark = W[`joint.marks.${kind}`];
    return Array.from(rows[kind], (x, k) => x + places[k] + mark[k % d]);
  });
  const may = mask === "block" ? sameKind : () => true;
  const { X, maps } = stack(Float64Array.from(tokens), L, may);
  const [logit] = affine(X.subarray(ASKED * d, (ASKED + 1) * d), "answer", 1);
  return { yes: 1 / (1 + Math.exp(-logit)), maps };
});

const nameOf = (question) =>
  tf.range(L, (i) => {
    const kind = KINDS[nth[i]];
    if (kind === "text") return `“${question[i]}”`;
    return `${kind === "image" ? "patch" : "frame"} ${inKind(i) + 1}`;
  });
const said = (yes) => (yes > 0.5 ? "yes" : "no");
const sure = (yes) => Math.max(yes, 1 - yes);

export default tf.explorer({
  numbers({ question, digit, beeps, mask, token }) {
    const found = MASKS.map((name) => read(question, digit, beeps, name));
    const heads = found[MASKS.indexOf(mask)].maps.at(-1);
    return {
      yes: found.map(({ yes }) => yes),
      weights: tf.range(L, (j) => tf.mean(heads.map((A) => A[token][j]))),
    };
  },
  setup(app) {
    const ribbon = app.matrix({
      bare: true,
      most: 40,
      pick: (_, j) => app.set({ token: j }),
    });
    const sides = app.split("1fr 2fr", { keep: 2 });
    const eye = app.matrix({ bare: true, tall: 120, into: sides });
    const ear = app.plane({ height: () => 120, into: sides });
    const bars = app.plane({ height: () => 130, lead: true });
    app.knob("question", { as: "select" });
    app.knobsOf("digit", "beeps");
    app.knob("mask", { as: "select" });
    app.knob("token");
    const question = app.ask({
      name: "blind",
      question:
        "In one sequence, the model is almost sure of its answer. Now a block mask lets each kind see only itself. The answer is still read at the “?”. Where does the lower bar, the probability of yes, end?",
      about: bars,
      ghost: {
        first: 0.9,
        at: (x) => [x, 0],
        to: (x) => tf.clamp(Math.round(x * 50) / 50, 0, 1),
        draw: (x) => ({ rule: { x }, colour: "ink", dash: "6 4" }),
        by: [0.02, 0],
        label: "the probability of yes under the block mask",
      },
      format: (x) => tf.percent(x),
      near: 0.08,
      hides: ["blind"],
      guards: ["mask"],
      truth: ({ yes }) => yes[1],
      then: { mask: "block", token: ASKED },
      because:
        "The “?” now sees only five letters and itself. For each question, yes is right half of the time, so about 50 % is the best it can say. What it cannot see is hatched.",
    });

    // where cells are narrow, only every second frame has its number, as below the sound
    const numbered = (i) => !app.narrow || KINDS[nth[i]] !== "sound" || inKind(i) % 2 === 0;
    const written = (i, question) => (nth[i] ? String(inKind(i) + 1) : question[i]);

    return (state, { yes, weights }) => {
      const names = nameOf(state.question);
      const blocked = state.mask === "block";
      const share = (n) => tf.sum(weights.slice(starts[n], starts[n] + LENGTHS[KINDS[n]]));
      const shares = KINDS.map((kind, n) => `${kind} ${tf.percent(share(n))}`).join(", ");
      const may = (j) => !blocked || sameKind(state.token, j);
      const frameOf = (n) => ({
        from: [0, starts[n]],
        to: [0, starts[n] + LENGTHS[KINDS[n]] - 1],
        colour: COLOURS[KINDS[n]],
      });
      ribbon.show({
        title: `${L} tokens: ${KINDS.map((kind) => `${LENGTHS[kind]} of ${kind}`).join(", ")}; shaded: what token ${state.token} attends to`,
        label: `The tokens of the sequence. ${names[state.token]} is selected; its weights: ${shares}. Arrow keys move, Enter selects.`,
        rows: 1,
        columns: L,
        values: tf.range(L, (j) => (may(j) ? weights[j] : Number.NaN)),
        most: 0.3,
        text: (_, j) => (numbered(j) ? written(j, state.question) : ""),
        at: [0, state.token],
        frames: [
          ...KINDS.map((_, n) => frameOf(n)),
          { cell: [0, state.token], colour: "attention" },
        ],
      });
      eye.show({
        title: "image: 4 patches",
        label: `An image of ${SIDE} × ${SIDE} pixels that shows a ${state.digit}, cut into ${LENGTHS.image} patches`,
        rows: SIDE,
        columns: SIDE,
        values: SHOWN[state.digit],
        most: LEVELS,
        colour: "ink",
        text: () => "",
        frames: tf.range(LENGTHS.image, (n) => {
          const [y, x] = [Math.floor(n / ACROSS) * P, (n % ACROSS) * P];
          return { from: [y, x], to: [y + P - 1, x + P - 1], colour: COLOURS.image };
        }),
      });
      ear.show({
        title: `sound: ${LENGTHS.sound} frames`,
        label: `A sound of ${LENGTHS.sound} frames, ${state.beeps} of them with a beep`,
        x: {
          from: 0,
          to: LENGTHS.sound * FRAME,
          ticks: tf.range(LENGTHS.sound, (n) => (n + 0.5) * FRAME),
          format: (t) => String(Math.ceil(t / FRAME)),
        },
        y: { from: -1.5, to: 1.5, bare: true },
        marks: [
          tf.range(LENGTHS.sound - 1, (n) => ({ rule: { x: (n + 1) * FRAME }, colour: "grid" })),
          { line: HEARD[state.beeps].map((x, t) => [t + 0.5, x]), colour: COLOURS.sound },
        ],
        hover: false,
      });
      bars.show({
        title: `“${state.question}”: the probability of yes`,
        label: `One sequence: ${tf.percent(yes[0])}. Block mask: ${question.tell(tf.percent(yes[1]))}`,
        x: {
          from: 0,
          to: bars.width < 480 ? 1.3 : 1.12,
          ticks: [0, 0.25, 0.5, 0.75, 1],
          format: (p) => tf.percent(p),
        },
        y: { names: ["block mask", "one sequence"] },
        marks: yes.map((p, n) => {
          const part = n ? "blind" : undefined;
          const mine = blocked === Boolean(n);
          return [
            {
              shape: tf.box(0, p, 1 - n - 0.32, 1 - n + 0.32),
              colour: mine ? "attention" : "muted",
              strength: mine ? 0.9 : 0.45,
              part,
            },
            {
              text: tf.percent(p),
              at: [p, 1 - n],
              dx: 6,
              align: "start",
              bold: mine,
              part,
            },
          ];
        }),
        hover: false,
      });
      const now = yes[Number(blocked)];
      app.read({
        "weights of the token": shares,
        answer: `${said(now)}, ${tf.percent(sure(now))} sure`,
      });
      app.say(
        `${blocked ? "Under the block mask" : "In one sequence"}, ${names[state.token]} attends to ${blocked ? `its own kind only` : `all ${L} tokens`}: ${shares}. The model says ${said(now)} and is ${tf.percent(sure(now))} sure.`,
      );
    };
  },
});
