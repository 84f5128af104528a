// Sparse Lab: two patterns under shared controls. Formulas, ranges and words come from the library
// (tf.data); `sparse_lab/` holds its parts.
const { el, clamp, keyed, mix, sig, word } = tf; // for its parts too
const LENGTHS = [
  8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448,
  512,
];

// The question that a lab is given with `ask`: the reader says it before the layers show it.
function questionOf(app) {
  const [what, stack] = Object.entries(app.get("ask") ?? {})[0] ?? [];
  if (!what) return { ...app.ask(null), stack };
  const { query, token } = app.first;
  const turns =
    stack.length > 1 ? `layers of ${[...stack].join(" and ")} in turn` : `layers of ${stack}`;
  const names = SIDES.map((side) => expression(app.first[side]).match(/\w+(?=\()/g)).flat();
  const question = app.ask({
    name: [what, stack, query, token, ...names].join("-"),
    question: `After how many ${turns} ${
      what === "hops" ? `does query ${query} hear of token ${token}` : "is every pair connected"
    }? (0 means never.)`,
    number: {},
    unit: "layers",
    truth: (_, s) => {
      const reach = reachOf(STACKS[stack].map((side) => measure(s[side], s.L, s.causal)));
      const hops = reach.hops[query * s.L + token];
      return what === "hops" ? Math.max(0, hops) : (reach.diameter ?? 0);
    },
    then: { stack },
    because: "Now let the layers use something else.",
  });
  return Object.assign(question, { stack });
}

// --- all together ----------------------------------------------------------------------------------------

export default tf.explorer({
  fit(values) {
    // what a link brings
    for (const side of SIDES)
      if (values[side] && !tableLength(values[side]))
        values[side] = fit(values[side], values.L ?? 512);
    return values;
  },
  setup(app) {
    let peek = null;
    const actions = {
      peek(row) {
        if (row !== peek) {
          peek = row;
          app.redraw("peek");
        }
      },
      pick(i, j) {
        peek = null;
        app.set({ query: i, token: j });
      },
    };
    const setLength = (L) => {
      const values = {
        L,
        query: Math.min(app.get("query"), L - 1),
        token: Math.min(app.get("token"), L - 1),
      };
      for (const side of SIDES) values[side] = fit(app.get(side), L);
      app.set(values);
    };

    const wanted = el("span"),
      judgement = el("b", { role: "status" }); // the verdict alone is spoken, when it changes
    const goal = el("p", { className: "sl-goal", hidden: true }, wanted, judgement);
    app.top.after(goal);
    const brief = el("b", { className: "sl-brief", "aria-hidden": "true", hidden: true }); // the same for the eye, where the last controls are
    const tabs = app.knob("side", { hidden: true, into: app.picture });
    tabs.row.classList.add("sl-tabs");
    const cards = el("div", { className: "sl-cards" });
    app.picture.append(cards);
    const card = Object.fromEntries(SIDES.map((side) => [side, null]));
    for (const side of SIDES) {
      card[side] = makeCard(app, side, actions);
      cards.append(card[side].root);
    }

    app.knob("view");
    const length = app.knob("L", { scale: LENGTHS, write: setLength });
    const query = app.knob("query", { max: 63 });
    const token = app.knob("token", { max: 63 });
    app.knob("causal");

    const depth = makeDepth(app, actions),
      cost = makeCost(app);
    app.readouts.before(depth.root, cost.root);
    app.readouts.hidden = true;
    const question = questionOf(app);

    const data = {};
    let reach;
    return {
      draw(changed) {
        const s = app.all();
        s.d = app.get("d");
        const anew = SIDES.filter(
          (side) => !data[side] || changed.has(side) || changed.has("L") || changed.has("causal"),
        );
        for (const side of anew) data[side] = measure(s[side], s.L, s.causal);
        const panels = app.get("panels") || [],
          aim = app.get("goal");
        const stack = STACKS[s.stack].map((side) => data[side]);
        if (changed.has("stack") || STACKS[s.stack].some((side) => anew.includes(side)))
          reach = null;
        if (!reach && (panels.includes("depth") || aim)) reach = reachOf(stack);
        const fixed = SIDES.map((side) => tableLength(s[side])).find(Boolean);
        length.input.disabled = Boolean(fixed);
        query.limit(0, s.L - 1);
        token.limit(0, s.L - 1);
        app.prompt(app.get("prompt"));
        app.root.dataset.side = s.side;

        const at = { ...s, query: Math.min(peek ?? s.query, s.L - 1) };
        const words = SIDES.map((side) =>
          card[side].draw({ ...at, data: data[side], spec: s[side], changed }),
        );
        depth.root.hidden = !panels.includes("depth");
        cost.root.hidden = !panels.includes("cost");
        const quiet = question.open && question.stack === s.stack;
        depth.root.toggleAttribute("data-quiet", quiet);
        const more = depth.root.hidden || quiet ? "" : ` ${depth.draw(stack, at, reach)}.`;
        if (
          !cost.root.hidden &&
          (anew.length ||
            [...changed].some((name) => ["block", "theme", "size", "panels", "d"].includes(name)))
        )
          cost.draw(data, s);
        app.say(`A: ${words[0]}. B: ${words[1].replace(/^query \d+ /, "")}.${more}`);
        goal.hidden = brief.hidden = !aim;
        if (aim) {
          const { met, message } = verdict(aim, s.L, stack, reach);
          const wants = [];
          if (aim.max_hops !== undefined)
            wants.push(
              `every ${aim.causal ? "earlier token" : "token"} in ≤ ${aim.max_hops} ${aim.max_hops === 1 ? "hop" : "hops"}`,
            );
          if (aim.max_keys !== undefined) wants.push(`≤ ${aim.max_keys} keys a row`);
          if (aim.max_pairs !== undefined) wants.push(`≤ ${aim.max_pairs} pairs`);
          if (aim.causal) wants.push("causal");
          if (aim.L !== undefined) wants.push(`L = ${aim.L}`);
          goal.dataset.met = String(met);
          wanted.textContent = `Goal: ${wants.join(", ")}; layers use ${[...s.stack].join(" and ")}${s.stack.length > 1 ? " in turn" : ""}.`;
          const text = `${met ? "✓" : "✗"} ${message}`;
          if (judgement.textContent !== text) judgement.textContent = text;
          brief.dataset.met = String(met);
          brief.textContent = met ? "✓ Goal met" : "✗ Goal not met yet";
          if (!brief.isConnected) app.footer.querySelector(".tfx-said").before(brief);
          app.judged(met);
        }
      },
      python: () => pythonOf(app),
      copies: [["copy mask_mod", () => maskModOf(app), "mask_mod"]],
      // for tests: the numbers behind the picture
      numbers: () => ({
        data,
        reach: reach ?? reachOf(STACKS[app.get("stack")].map((side) => data[side])),
      }),
    };
  },
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
