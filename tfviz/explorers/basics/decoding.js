// From probabilities to text. View "token": p_τ ∝ p^{1/τ}, then top-k, then nucleus, each renormalised.
// View "beam": the B best log p(y) / ((5 + |y|) / 6)^α of all continuations, step by step.
// View "write": the stored GPT of letters runs here, and each letter is drawn after the three cuts.

const { rows: ROWS, compared: COMPARED, most: MOST, model: MODEL } = tf.data;
// each is given by how far it is below the likelier one, in hundredths
const logitsOf = tf.keep((text) => {
  let sum = 0;
  return text.split(" ").map((fall) => {
    sum += Number(fall);
    return sum / 100;
  });
});
const numbered = (node) => node.split(" ").map((pair) => pair.split(":").map(Number));
const children = tf.keep((node) => numbered(node).sort((a, b) => b[1] - a[1] || a[0] - b[0]), 5000);

// How many of the likeliest tokens stay: all, the k first, the smallest set with a share p of those.
function keptTokens(w, k, p) {
  const zero = w.findIndex((x, n) => n > 0 && x === 0); // τ = 0
  let kept = Math.min(k || w.length, zero < 0 ? w.length : zero);
  if (p < 1) {
    const all = tf.sum(w.slice(0, kept));
    let [before, n] = [0, 0];
    while (n < kept && (n === 0 || before / all < p)) before += w[n++];
    kept = n;
  }
  return kept;
}
const cut = tf.keep((text, tau, k, p) => cutOf(logitsOf(text), tau, k, p));
function cutOf(logits, tau, k, p) {
  const hot = tau ? tf.softmax(logits.map((x) => x / tau)) : logits.map((_, n) => Number(n === 0));
  const kept = keptTokens(hot, k, p);
  const mass = tf.sum(hot.slice(0, kept));
  return { hot, kept, mass, after: hot.map((x, n) => (n < kept ? x / mass : 0)) };
}

const LETTERS = [...MODEL.letters];
let model; // made from its weights when somebody wants it to write
// The letters after `begin`; before each what the model says, and what the cuts leave of it.
const writing = tf.keep((begin, written, seed, tau, k, p) => {
  model ??= alive(MODEL);
  const run = model();
  const dice = tf.uniforms(seed, MOST.written).map((x) => x / Math.sqrt(12) + 0.5);
  const say = (token) => {
    const { logits } = run.step(token);
    const order = tf.range(LETTERS.length).sort((a, b) => logits[b] - logits[a] || a - b);
    const falling = order.map((n) => logits[n]);
    const { after, kept } = cutOf(falling, tau, k, p);
    const back = (xs) => LETTERS.map((_, n) => xs[order.indexOf(n)]);
    return { order, kept, p: back(tf.softmax(falling)), after: back(after) };
  };
  const steps = [[...begin].map((letter) => say(LETTERS.indexOf(letter))).at(-1)];
  const tokens = tf.range(written, (n) => {
    const { after } = steps.at(-1);
    let sum = 0;
    const drawnRank = after.findIndex((x) => (sum += x) > dice[n]);
    const token = drawnRank < 0 ? after.findLastIndex((x) => x > 0) : drawnRank;
    steps.push(say(token));
    return token;
  });
  return { tokens, steps };
});

// The beam after each step: a list of lists of hypotheses, each with its parent's place in the one before.
function search(tree, { width, alpha, steps }) {
  const ends = new Set(tree.ends);
  let beam = [{ tokens: [], logP: 0, score: 0, complete: false, parent: 0 }];
  const history = [beam];
  for (let n = 1; n <= steps && beam.some((y) => !y.complete); n++) {
    const penalty = ((5 + n) / 6) ** alpha;
    const old = beam.map((y, parent) => ({ ...y, parent, old: true })).filter((y) => y.complete);
    const grown = beam.flatMap((y, parent) =>
      (y.complete ? [] : children(tree.nodes[y.tokens.join(" ")]).slice(0, width)).map(
        ([token, milli]) => {
          const logP = y.logP + milli / 1000;
          const [tokens, complete] = [[...y.tokens, token], ends.has(token)];
          const p = Math.exp(milli / 1000);
          return { tokens, logP, score: logP / penalty, complete, parent, p };
        },
      ),
    );
    beam = [...old, ...grown].sort((a, b) => b.score - a.score).slice(0, width);
    history.push(beam);
  }
  return history;
}

const VIEWS = {
  write({ begin, written, seed, tau, k, p }) {
    const { tokens, steps } = writing(begin, written, seed, tau, k, p);
    const { p: plain, after, kept } = steps.at(-1);
    return { written: tokens, p: plain, after, kept, entropy: tf.entropy(after) };
  },
  token({ stored, which, tau, k, p }) {
    const all = stored.map((x) => cut(x.falls, tau, k, p));
    const { after, mass } = all[which];
    const [kept, entropy] = [all.map((x) => x.kept), tf.entropy(after)];
    return { after: after.slice(0, COMPARED), kept, mass, entropy };
  },
  beam(state) {
    const finalBeam = search(state.stored[state.which], state).at(-1);
    const [tokens, log_p, score] = ["tokens", "logP", "score"].map((of) =>
      finalBeam.map((y) => y[of]),
    );
    return { tokens, log_p, score, complete: finalBeam.map((y) => Number(y.complete)) };
  },
};
const numbers = (state) => VIEWS[state.view](state);

const SEEN = { " ": "␣", "\n": "↵" };
const visible = (text) => text.replace(/^ (?! |$)/, "").replace(/[ \n]/g, (x) => SEEN[x]);
const percent = (x) => {
  if (x >= 0.9995) return "100 %";
  return x >= 0.00095 ? `${(100 * x).toFixed(x >= 0.0995 ? 0 : 1)} %` : x > 0 ? "< 0.1 %" : "0";
};

// The likeliest first: grey as the model has them, violet what is drawn from.
function drawnFrom(plane, { title, label, names, plain, after, kept, part = undefined }) {
  const at = (n) => ROWS - 1 - n; // the likeliest on top
  const most = Math.max(plain[0], after[0]);
  const lying = (ys, colour, wide) => {
    const bars = tf.range(ROWS, (m) => [at(m), ys[m]]);
    return { bars, lying: true, colour, wide, part: colour === "attention" ? part : undefined };
  };
  plane.show({
    title,
    label: label ?? `${title}; the likeliest: ${names.slice(0, 3).join(", ")}`,
    x: { from: 0, to: most * 1.25, format: percent },
    y: { names: tf.range(ROWS, (m) => names[at(m)]) },
    marks: [
      lying(plain, "grid", 0.85),
      [
        lying(after, "attention", 0.45),
        tf.range(ROWS, (m) => ({
          text: m < kept ? percent(after[m]) : "cut",
          align: "start",
          dx: 5,
          at: [Math.max(plain[m], after[m]), at(m)],
          colour: m < kept ? "ink" : "muted",
          part,
        })),
        kept < ROWS && {
          rule: { y: at(kept) + 0.5 },
          colour: "attention",
          dash: "5 4",
          wide: 2,
          part,
        },
      ],
    ],
  });
}

// The menu of beginnings, and the sliders of the three cuts.
const menu = (app, list) =>
  app.knob("which", { as: "select", options: list.map((x, n) => [n, `${x.prompt} …`]) });
function cuts(app) {
  app.knob("tau", { format: (x) => x.toFixed(2) });
  app.knob("k", { format: (x) => (x ? String(x) : "off") });
  app.knob("p", { format: (x) => (x < 1 ? x.toFixed(2) : "off") });
}

function tokenView(app) {
  const { stored, which: first, p } = app.values();
  const V = logitsOf(stored[0].falls).length;
  const pair = app.split("1fr 1.1fr");
  const bars = app.plane({ into: pair, height: () => 340 });
  const curve = app.plane({ into: pair, height: () => 340 });
  menu(app, stored);
  cuts(app);
  const keptOf = (n, { tau, k, p }) => cut(stored[n].falls, tau, k, p).kept;
  const start = app.values();
  const kept = keptOf(first, start);
  const others = tf.range(stored.length).filter((n) => n !== first);
  const solved = others.map((n) => `${tf.count(keptOf(n, start))} after “${stored[n].prompt}”`);
  const asked = app.ask(
    p < 1 &&
      kept < V && {
        name: "how-many",
        question: `With p₀ = ${p}, this many of ${tf.count(V)} tokens stay: ${solved.join(", ")}. How many stay after “${stored[first].prompt}”?`,
        about: curve,
        ghost: {
          first: 5,
          at: (n) => [n, p],
          to: (n) => Math.round(tf.clamp(n, 1, V)),
          by: ([n], [right, up]) =>
            right + up > 0 ? Math.max(n + 1, n * 1.15) : Math.min(n - 1, n / 1.15),
          draw: (n) => ({ points: [[n, p]], size: 4, colour: "ink" }),
          label: "how many tokens stay",
        },
        hides: ["mine"],
        format: (n) => `${tf.count(n)} token${n === 1 ? "" : "s"}`,
        near: Math.max(1, Math.round(0.25 * kept)),
        truth: (numbers) => numbers.kept[first],
        then: {},
        because:
          "A nucleus holds a fixed share, so it grows where the model is unsure and shrinks where it is sure.",
      },
  );
  const last = app.about.k.of.length; // one place after the largest k: off
  const places = [...app.about.k.of.slice(1), V];
  const setK = (n) => app.set({ k: n > 1.3 * places.at(-2) ? 0 : Math.round(tf.clamp(n, 1, V)) });
  return (state, numbers) => {
    const all = stored.map((x) => cut(x.falls, state.tau, state.k, state.p));
    const mine = all[state.which];
    const { names, prompt } = stored[state.which];
    const plain = cut(stored[state.which].falls, 1, 0, 1).hot;
    const open = asked.open && state.which === first;
    const tell = (text) => (open ? "?" : text);
    const share = tf.count(mine.kept);
    drawnFrom(bars, {
      title: "grey: the model's p; violet: after τ and the cuts",
      label: `The likeliest tokens after “${prompt}”: ${names.slice(0, 3).map(visible).join(", ")}`,
      names: names.map(visible),
      plain,
      after: mine.after,
      kept: mine.kept,
      part: open ? "mine" : undefined,
    });
    const ns = tf.range(V, (m) => m + 1).filter((m) => m < 20 || m % Math.ceil(m / 40) === 0);
    const summed = (hot) => {
      let sum = 0;
      const held = hot.map((x) => (sum += x));
      return ns.map((m) => [m, Math.min(1, held[m - 1])]);
    };
    const list = tf
      .range(stored.length)
      .sort((a, b) => Number(a === state.which) - Number(b === state.which));
    const colour = (m) => (m === state.which ? "attention" : "muted");
    const ends = list.filter((m) => all[m].kept < V);
    const end = ({ hot, kept }) => [kept, Math.min(1, tf.sum(hot.slice(0, kept)))];
    // what stays after each beginning, the fewest on top, where no curve comes
    const stays = tf.range(stored.length).sort((a, b) => all[a].kept - all[b].kept);
    const legend = stays.map((m, row) => ({
      text: `${stored[m].prompt}: ${asked.open && m === first ? "?" : tf.count(all[m].kept)}`,
      at: [V, 0.5 - row * Math.min(0.11, 0.44 / stored.length)],
      align: "end",
      colour: colour(m),
      bold: m === state.which,
    }));
    curve.show({
      title: "total probability of the r likeliest tokens",
      label: stored
        .map((s, m) => (asked.open && m === first ? "" : `“${s.prompt}” ${all[m].kept}`))
        .filter(Boolean)
        .join(", "),
      x: { log: true, from: 1, to: V, label: "r (log)", format: tf.count },
      y: { from: 0, to: 1, ticks: [0, 0.5, 1] },
      marks: [
        list.map((m) => ({
          line: summed(all[m].hot),
          label: stored[m].prompt,
          colour: colour(m),
          wide: m === state.which ? 3 : 1.25,
          part: m === first ? "mine" : undefined,
        })),
        ends.map((m) => [
          {
            points: [end(all[m])],
            size: 5,
            label: stored[m].prompt,
            colour: colour(m),
            part: m === first ? "mine" : undefined,
          },
        ]),
        state.k > 0 && { rule: { x: state.k }, colour: "query", dash: "5 3" },
        { rule: { y: state.p }, colour: "key", dash: "2 2" },
        legend,
        {
          text: `p₀ ${state.p < 1 ? state.p : "off"}`,
          at: [1, state.p],
          dx: 28,
          dy: 14,
          colour: "key",
        },
        {
          text: `k ${state.k || "off"}`,
          at: [state.k || V, 0.04],
          dx: state.k && state.k < 50 ? 12 : -12,
          align: state.k && state.k < 50 ? "start" : "end",
          colour: "query",
        },
        {
          handle: [state.k || V, 0.04],
          name: "k",
          label: app.nameOf("k"),
          colour: "query",
          text: state.k ? `k = ${state.k}` : "off",
          put: setK,
          by: ([n], [right, up]) => {
            const place =
              places.findIndex((x) => x >= n) +
              Math.sign(right + up) * (Math.abs(right + up) > 10 ? last : 1);
            return places[tf.clamp(place, 0, places.length - 1)];
          },
        },
        { handle: [1.3, state.p], knobY: "p", colour: "key", text: `p₀ = ${state.p}` },
      ],
      hover: (x, y, mark) =>
        `${mark.label ? `“${mark.label}”, ` : ""}${tf.count(x)}: ${percent(y)}`,
    });
    app.read({
      "the likeliest token": `“${visible(names[0])}”, ${percent(plain[0])}`,
      "tokens that can be drawn": tell(`${share} of ${tf.count(V)}`),
      "their share before the cuts": tell(percent(mine.mass)),
      "tokens that matter (e to the entropy)": tell(tf.sig(Math.exp(numbers.entropy))),
    });
    const can = mine.kept === 1 ? "1 token" : `${share} tokens`;
    const text = `${can} can be drawn; “${visible(names[0])}” has probability ${percent(mine.after[0])}`;
    app.say(
      `After “${prompt}”, ${open ? `“${visible(names[0])}” is the likeliest token, with probability ${percent(plain[0])}` : text}.`,
    );
  };
}

const why = (text) => unread(text, MODEL.letters, 1, MOST.begin);

function writeView(app) {
  const text = { label: "the beginning, and the letters written so far", into: app.questions };
  const chips = app.chips(text);
  const pair = app.split("1fr 1fr");
  const [bars, past] = [0, 1].map(() => app.plane({ into: pair, height: () => 340 }));
  app.text("begin", { label: "your own beginning", most: MOST.begin, why });
  app.motion("written", { every: 500, verbs: ["back", "write"] });
  cuts(app);
  app.knob("seed");
  return (state, numbers) => {
    const { tokens, steps } = writing(
      state.begin,
      state.written,
      state.seed,
      state.tau,
      state.k,
      state.p,
    );
    const { order, kept } = steps.at(-1);
    const shown = (letter) => letter.replaceAll(" ", "␣");
    const said = tokens.map((m) => LETTERS[m]);
    const drawnChips = said.map((x, m) => [{ text: shown(x), kind: said[m + 1] ? "made" : "new" }]);
    chips.show([[{ text: shown(state.begin) }], ...drawnChips]);
    drawnFrom(bars, {
      title: "the next letter; grey: the model's p; violet: after τ and the cuts",
      label: `The next letter, most likely “${shown(LETTERS[order[0]])}”`,
      names: order.map((m) => shown(LETTERS[m])),
      plain: order.map((m) => numbers.p[m]),
      after: order.map((m) => numbers.after[m]),
      kept,
    });
    const had = tokens.map((token, m) => [m + 1, steps[m].p[token]]);
    const lettersText = said.map((x, m) => `${shown(x)} ${percent(had[m][1])}`);
    past.show({
      title: "the model's p for each letter that was drawn",
      label: `Letters drawn, and the model's p: ${lettersText.join(", ")}`,
      x: { from: 0.4, to: MOST.written + 0.6, whole: true, label: "letters written" },
      y: { from: 0, to: 1.1, ticks: [0, 0.5, 1] },
      marks: [
        { bars: had, colour: "attention", wide: 0.7 },
        ...had.map(([x, y], m) => ({ text: shown(said[m]), at: [x, y], dy: -9, plain: true })),
      ],
      hover: (x, y) => `letter ${x}: ${percent(y)}`,
    });
    app.read({
      "letters that can be drawn": `${kept} of ${LETTERS.length}`,
      "letters that matter (e to the entropy)": tf.sig(Math.exp(numbers.entropy)),
    });
    const next = `“${shown(LETTERS[order[0]])}” with ${percent(numbers.after[order[0]])}`;
    app.say(`“${state.begin}${said.join("")}” … next letter: ${next}; ${kept} can be drawn.`);
  };
}

// What the beam has dropped, what is left of it, and the best.
const LOOKS = [
  { colour: "grid", wide: 1.25, strength: 0, ink: "muted", rim: "ink" },
  { colour: "attention", wide: 1.5, strength: 0, ink: "ink", rim: "ink" },
  { colour: "attention", wide: 4, strength: 1, ink: "page", rim: "page" },
];
const RIM = { strength: 0, edge: true, dash: "3 2" };
function beamView(app) {
  const { stored: trees, which: first, width } = app.values();
  const text = (tree, tokens) => tokens.map((n) => tree.names[n]).join("");
  const plane = app.plane({ height: (width) => 10 * (width < 480 ? 36 : 42) + 20, long: true });
  const table = app.table({
    columns: ["rank", "text", "log p", "score"],
    widths: ["4rem", "", "4.5rem", "4.5rem"],
    wrap: true,
  });
  menu(app, trees);
  app.knob("width");
  app.knob("alpha", { format: (x) => x.toFixed(2) });
  app.motion("steps", { every: 900, verbs: ["back", "grow"] });
  const before = numbers(app.values()).log_p[0];
  app.ask(
    width < 6 && {
      name: "wider",
      question: `After “${trees[first].prompt} …”, is the best text with W = ${width + 1} likelier than with W = ${width}?`,
      chips: ["likelier", "the same", "less likely"],
      truth: (numbers) =>
        Math.abs(numbers.log_p[0] - before) < 1e-9 ? 1 : numbers.log_p[0] > before ? 0 : 2,
      then: { width: width + 1 },
      because:
        "After each token, a beam keeps only the W best beginnings; one that it has dropped never comes back.",
    },
  );
  return (state, numbers) => {
    const tree = trees[state.which];
    const history = search(tree, state);
    const finalBeam = history.at(-1);
    const lone = search(tree, { ...state, width: 1 }).at(-1)[0];
    // which of each step lead to something that is still there (1), and which to the best (2)
    const kinds = history.map((beam) => beam.map(() => 0));
    // walk back from each, the best last so that its way stays marked
    for (let place = finalBeam.length - 1; place >= 0; place--)
      for (let m = history.length - 1, q = place; m >= 0; q = history[m][q].parent, m--)
        kinds[m][q] = place ? 1 : 2;
    const at = (m, place) => (m ? [place + 0.5, -m] : [state.width / 2, -0.35]);
    const nodes = history.slice(1).flatMap((beam, n) =>
      beam.map((y, place) => {
        const shape = tf.box(place + 0.06, place + 0.94, -n - 1.36, -n - 0.64);
        const line = [at(n, y.parent), at(n + 1, place)];
        return { y, line, shape, ...LOOKS[kinds[n + 1][place]] };
      }),
    );
    nodes.sort((a, b) => a.wide - b.wide);
    const isGreedy = ({ y }) => !y.old && y.tokens.every((x, m) => x === lone.tokens[m]);
    const letters = Math.floor(plane.width / state.width / 8.4);
    const short = (w) => (w.length > letters ? `${w.slice(0, Math.max(1, letters - 1))}…` : w);
    plane.show({
      title: `after “${tree.prompt}”; violet: paths still in the beam; filled: the best one; dashed: greedy's path`,
      label: `A beam of ${state.width} after ${history.length - 1} tokens; best: “${tree.prompt}${text(tree, finalBeam[0].tokens)}”`,
      x: { from: 0, to: state.width, bare: true },
      y: { from: -10.5, to: -0.2, bare: true },
      hover: false,
      marks: [
        nodes.map(({ line, colour, wide }) => ({ line, colour, wide })),
        nodes.map(({ shape }) => ({ shape, colour: "page", strength: 1 })),
        nodes.map(({ shape, colour, strength }) => ({ shape, colour, strength, edge: true })),
        nodes.filter(isGreedy).map(({ shape, rim }) => ({ ...RIM, shape, colour: rim })),
        nodes.map(({ y, ink, line }) => {
          const word = y.old ? "(complete)" : visible(tree.names[y.tokens.at(-1)]);
          const text = { at: line[1], colour: ink, plain: true };
          return [
            { ...text, text: short(word), dy: y.old ? 0 : -6, bold: true },
            !y.old && { ...text, text: y.p.toFixed(y.p < 0.1 ? 3 : 2), dy: 8 },
          ];
        }),
      ],
    });
    const line = (head, y, mine) => {
      const whole = `${tree.prompt}${text(tree, y.tokens)}`.replace(/\n/g, "↵");
      const end = y.complete ? "" : " …";
      return { head, mine, cells: [whole + end, tf.fixed(y.logP), tf.fixed(y.score)] };
    };
    const places = finalBeam.map((y, m) => line(String(m + 1), y, m === 0));
    while (places.length < 3) places.push({ head: "–", mine: false, cells: ["", "", ""] }); // rows keep their place
    table.show([line("greedy", lone), ...places]);
    const asked = history.slice(0, -1).flat();
    app.read({
      "highest log p in the beam": tf.fixed(Math.max(...numbers.log_p), 3),
      "distributions computed": asked.filter((y) => !y.complete).length,
    });
    const ours = text(tree, finalBeam[0].tokens);
    const same =
      ours === text(tree, lone.tokens)
        ? "finds the same text"
        : `finds one with ${tf.fixed(lone.logP)}`;
    app.say(
      `W = ${state.width}: “${ours.trim().replace(/\s+/g, " ")}” with log p ${tf.fixed(finalBeam[0].logP)}; greedy ${same}.`,
    );
  };
}

export default tf.explorer({
  ends: ({ stored }) => ({ which: { high: Math.max(0, stored.length - 1) } }),
  fit(values) {
    if (values.alpha) values.alpha = Math.round(4 * values.alpha) / 4; // only these are stored
    if ("begin" in values && why(values.begin)) delete values.begin;
    return values;
  },
  numbers,
  setup: (app) => ({ token: tokenView, beam: beamView, write: writeView })[app.get("view")](app),
});
