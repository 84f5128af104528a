// Sparse Lab: two patterns under shared controls. Formulas, ranges and words come from the library
// (tf.data); `lab/` holds its pieces.
const { clamp, el, mix, sig } = tf; // for its parts too
const { high: MOST } = tf.declared.knobs.layers;
const GAP = [Number.NaN, Number.NaN]; // between lines of one mark

// What was counted for the last states. The specs are texts here.
const measured = tf.keep((text, L, causal) => measure(JSON.parse(text), L, causal), 12);
const reached = tf.keep((texts, L, causal) =>
  reachOf(texts.split("\n").map((text) => measured(text, L, causal))),
);
function dataOf(state) {
  const text = (side) => JSON.stringify(state[side]);
  const of = (side) => measured(text(side), state.L, state.causal);
  const use = STACKS[state.stack];
  const reach = reached(use.map(text).join("\n"), state.L, state.causal);
  return { left: of("left"), right: of("right"), stack: use.map(of), reach };
}

// The question that a lab is given with `ask`: the reader says it before the layers show it.
function questionOf(app) {
  const [what, stack] = Object.entries(app.get("ask") ?? {})[0] ?? [];
  if (!what) return app.ask(null);
  const { query, token } = app.first;
  const turns =
    stack.length > 1
      ? `layers of ${[...stack].join(" and ")} in turn (${stack[0]} first)`
      : `layers of ${stack}`;
  const names = SIDES.map((side) => expression(app.first[side]).match(/\w+(?=\()/g)).flat();
  const truth = (_, state) => {
    const { reach } = dataOf({ ...state, stack });
    return Math.max(0, what === "hops" ? reach.hops[query * state.L + token] : reach.diameter);
  };
  const answer = truth({}, app.values());
  const question = app.ask({
    name: [what, stack, query, token, ...names].join("-"),
    question: `After how many ${turns} ${
      what === "hops" ? `does query ${query} hear of token ${token}` : "is every pair connected"
    }? (0 means never.)`,
    number: { hint: "How far does one layer reach?" },
    unit: "layers",
    format: (n) => (n ? `${n} ${n === 1 ? "layer" : "layers"}` : "never"),
    truth,
    // the state that shows it: the very last layer is the one that it takes
    then: { stack, layers: answer ? Math.min(answer, MOST) : app.first.layers },
    hides: stack === app.first.stack ? ["hops to the token", "diameter", "never connected"] : [],
    because: "In each layer, a message takes at most one step, from a key to its query.",
  });
  // until then so many layers at most are drawn, if these are the ones that it asks about
  const most = stack === app.first.stack ? Math.max(1, (answer || MOST) - 1) : undefined;
  return Object.assign(question, { most });
}

// A goal: what is wanted, and whether the layers keep it, above the picture and below it.
function makeGoal(app) {
  const wanted = el("span");
  const judgement = el("b", { role: "status" }); // the verdict alone is spoken, when it changes
  const root = el("p", { className: "sl-goal" }, wanted, judgement);
  app.top.after(root);
  // the same for the eye, where the last controls are
  const brief = el("b", { className: "sl-brief", "aria-hidden": "true" });
  return ({ stack, reach }, { goal, L, stack: use }) => {
    root.hidden = brief.hidden = !goal;
    if (!goal) return;
    const { met, message } = verdict(goal, L, stack, reach);
    const wants = [];
    if (goal.max_hops !== undefined)
      wants.push(
        `every ${goal.causal ? "earlier token" : "token"} in ≤ ${goal.max_hops} ${goal.max_hops === 1 ? "hop" : "hops"}`,
      );
    if (goal.max_keys !== undefined) wants.push(`≤ ${goal.max_keys} keys per row`);
    if (goal.max_pairs !== undefined) wants.push(`≤ ${goal.max_pairs} pairs`);
    if (goal.causal) wants.push("causal");
    if (goal.L !== undefined) wants.push(`L = ${goal.L}`);
    const layers = `layers use ${[...use].join(" and ")}${use.length > 1 ? " in turn" : ""}`;
    wanted.textContent = `Goal: ${wants.join(", ")}; ${layers}.`;
    const text = `${met ? "✓" : "✗"} ${message}`;
    if (judgement.textContent !== text) judgement.textContent = text;
    root.dataset.met = brief.dataset.met = String(met);
    brief.textContent = met ? "✓ Goal met" : "✗ Goal not met yet";
    if (!brief.isConnected) app.footer.querySelector(".tfx-said").before(brief);
    app.judged(met);
  };
}

export default tf.explorer({
  // What a link brings, with every parameter inside its range.
  fit(values, app) {
    const L = values.L ?? app.first.L;
    for (const side of SIDES)
      if (values[side] || values.L) values[side] = fit(values[side] ?? app.first[side], L);
    return values;
  },
  numbers(state) {
    const { left, right, stack, reach } = dataOf(state);
    const { L, query, token, layers, block } = state;
    const both = [left, right];
    const tiles = both.map((one) => tilesOf(one, block));
    return {
      keys: both.map((one) => one.keysOf(query).length),
      pairs: both.map((one) => one.pairs),
      blocks: tiles.map((one) => one.blocks),
      block_pairs: tiles.map((one) => one.pairs),
      hops: reach.hops.subarray(query * L, (query + 1) * L),
      diameter: reach.diameter ?? -1,
      unreachable: reach.unreachable,
      heard: coneOf(stack, layers, query, token).cone[0],
      influence: influenceOf(stack, layers, query),
    };
  },
  setup(app) {
    let peek; // the query that is pointed at
    const actions = {
      peek(row) {
        if (row === peek) return;
        peek = row;
        app.redraw("peek");
      },
      pick(i, j) {
        peek = undefined;
        app.set({ query: i, token: j });
      },
    };
    const judge = makeGoal(app);
    const tabs = app.knob("side", { hidden: true, into: app.picture });
    tabs.row.classList.add("sl-tabs");
    const cards = el("div", { className: "sl-cards" });
    app.picture.append(cards);
    const [left, right] = SIDES.map((side) => makeCard(app, side, actions));
    const panel = el("div", { className: "sl-side" });
    const panels = app.knob("panel", { hidden: true, into: panel });
    const [depth, cost] = [makeDepth(app, actions), makeCost(app)];
    panel.append(depth.root, cost.root);
    cards.append(left.root, right.root, panel);

    app.knob("view");
    const length = app.knob("L", {
      write: (L) => app.set({ L, left: fit(app.get("left"), L), right: fit(app.get("right"), L) }),
    });
    app.knobsOf("query", "token", "causal");
    const question = questionOf(app);

    return (state) => {
      const data = dataOf(state);
      const { L, stack: use, panels: some } = state;
      length.input.disabled = SIDES.some((side) => tableLength(state[side]));
      app.root.dataset.side = state.side;
      const at = { ...state, query: Math.min(peek ?? state.query, L - 1) };
      // the pictures give way to long lists of controls
      const most = Math.max(...SIDES.map((side) => linesOf(state[side])));
      at.tall = !app.narrow ? clamp(270 - 28 * (most - 3), 140, 270) : 300;
      const draw = (card, side) => card.draw({ ...at, data: data[side], spec: state[side] });
      const words = [draw(left, "left"), draw(right, "right")];
      const shown = some.includes(state.panel) ? state.panel : some[0];
      panel.hidden = !shown;
      panels.row.hidden = some.length < 2;
      depth.root.hidden = shown !== "depth";
      cost.root.hidden = shown !== "cost";
      let more = "";
      if (shown === "depth") {
        const held = question.open && question.most !== undefined;
        if (held) at.layers = Math.min(at.layers, question.most);
        more = ` ${depth.draw(data.stack, at, data.reach, held)}.`;
      }
      if (shown === "cost") cost.draw(data, state);
      app.say(`A: ${words[0]}. B: ${words[1].replace(/^query \d+ /, "")}.${more}`);
      judge(data, state);
    };
  },
  python: pythonOf,
  copies: { mask_mod: maskModOf },
});
// for tests
export const counted = {
  bits,
  coneOf,
  influenceOf,
  maskModOf,
  measure,
  pythonOf,
  reachOf,
  tiles: tilesOf,
  verdict,
};
