// Over layers: what the query hears of, layer by layer, and the hops between all pairs.

function makeDepth(app, actions) {
  const root = el("div", { role: "group", className: "sl-depth", "aria-label": "over layers" });
  const head = el("div", { className: "sl-layers" });
  root.append(head);
  app.knob("stack", { into: head });
  app.motion("layers", { into: head, every: 900, verbs: ["down", "up"] });
  const cone = app.plane({ into: root, height: () => 215 });
  const below = el("div", { className: "sl-hops" });
  root.append(below);
  const map = app.matrix({ into: below, tall: 170, pick: actions.pick, hover: actions.peek });
  below.append(el("div", {}, app.readouts));
  let shades; // of the map of hops, for as long as they hold
  let shaded;

  // From the query down, without the layers in which nothing moves.
  const wayOf = (path) => path.toReversed().filter((j, k, all) => j !== all[k - 1]);

  // Nodes of a layer: one by one, or where there are many as runs.
  const nodesOf = (heard, y) => {
    const some = tf.range(heard.length).filter((j) => heard[j]);
    if (heard.length <= 64) return { points: some.map((j) => [j, y]) };
    return { line: runs(some).flatMap(([a, b]) => [[a - 0.4, y], [b + 0.4, y], GAP]) };
  };

  function drawCone(stack, { stack: use, layers, query, token }, { cone: heard, path }, share) {
    const short = path && path.length < 7 && wayOf(path).join(" → ");
    const way = short ? `; one way: ${short}` : "";
    const { L } = stack[0];
    const layer = (n) => stack[(n - 1) % stack.length];
    const at = (n) => n / layers;
    // edges: where the query looks, and where those look; thinned when there are very many
    let many = 0;
    const edges = [];
    const each = (visit) => {
      for (let n = layers; n > 0; n--)
        for (let i = 0; i < L; i++) if (heard[n][i]) visit(layer(n).keysOf(i), i, n);
    };
    each((keys) => {
      many += keys.length;
    });
    const skip = Math.ceil(many / 3000);
    let k = 0;
    each((keys, i, n) => {
      for (const j of keys) if (k++ % skip === 0) edges.push([i, at(n)], [j, at(n - 1)], GAP);
    });
    const faint = mix(app.colours.page, app.colours.attention, clamp(0.95 - many / 900, 0.22, 0.5));
    const size = clamp((0.3 * cone.width) / L, 1, 4);
    const colours = (n) => (n === layers ? "query" : n === 0 ? "key" : "attention");
    const nodes = heard.map((row, n) => {
      return { ...nodesOf(row, at(n)), colour: colours(n), size, wide: 2 * size };
    });
    const rest = L * layers < 1500 && tf.range(layers + 1, (n) => tf.range(L, (j) => [j, at(n)]));
    const most = Math.max(...share);
    const tall = (j) => FLOOR + (0.3 * share[j]) / most;
    const bars = tf.range(L, (j) => [[j, FLOOR], [j, tall(j)], GAP]).flat();
    // the layers that are named: the last one, and so many below it that they stand apart
    const every = Math.ceil(layers / 6);
    const named = tf
      .range(layers + 1)
      .filter((n) => !n || (n >= every && (layers - n) % every === 0));
    const names = new Map([
      [FLOOR, "influence"],
      [FLOOR + 0.3, sig(most, 2)],
    ]);
    for (const n of named) names.set(at(n), n ? `${n}: ${use[(n - 1) % use.length]}` : "tokens");
    cone.show({
      title: `What query ${query} hears of${way}${skip > 1 ? ` (one edge in ${skip})` : ""}`,
      label: `What query ${query} hears of, layer by layer, and its influence on every token`,
      x: { from: -0.5, to: L - 0.5, ticks: [0, L - 1] },
      y: { from: FLOOR, to: 1.12, ticks: [...names.keys()], format: (y) => names.get(y) },
      hover: (j, y) =>
        y < 0
          ? `token ${j}: influence ${sig(share[j], 2)}`
          : `position ${j}, layer ${Math.round(y * layers)}`,
      marks: [
        rest && { points: rest.flat(), colour: "grid", size: size / 2 },
        { line: edges, colour: faint, wide: 0.7 },
        nodes,
        path && {
          line: path.map((j, n) => [j, at(n)]),
          colour: "ink",
          wide: 2.25,
          dots: layers <= 16,
        },
        { line: bars, colour: "attention", wide: Math.max(1, (0.7 * cone.width) / L - 1) },
        endsOf("over layers", query, token, L, 1),
      ],
    });
  }

  // The hops as shades: full colour for one, fainter for more, blank beyond these layers.
  function shadesOf({ hops, causal }, L, layers) {
    const shade = (hop) => (hop < 0 || hop > layers ? 0 : hop < 2 ? 1 : 0.25 + 0.45 / (hop - 0.9));
    const known = tf.range(layers + 2, shade);
    const out = new Float32Array(hops.length).fill(Number.NaN);
    for (let i = 0; i < L; i++)
      for (let k = i * L, end = k + (causal ? i + 1 : L); k < end; k++)
        out[k] = hops[k] < 0 ? 0 : known[Math.min(hops[k], layers + 1)];
    return out;
  }

  return {
    root,
    // `held`: the hops are asked for, so the way to the token is not drawn
    draw(stack, state, reach, held) {
      const { L, query, token, layers } = state;
      const names = [...state.stack].join(" and ");
      const found = coneOf(stack, layers, query, token);
      if (held) found.path = null;
      const share = influenceOf(stack, layers, query);
      drawCone(stack, state, found, share);
      if (shaded?.reach !== reach || shaded.layers !== layers) {
        shades = shadesOf(reach, L, layers);
        shaded = { reach, layers };
      }
      const heard = found.cone[0].reduce((a, b) => a + b, 0);
      const able = reach.causal ? query + 1 : L;
      const hop = reach.hops[query * L + token];
      const far = hop < 0 ? "never" : String(hop);
      const within = `${layers} ${layers === 1 ? "layer" : "layers"}`;
      map.show({
        title: `Hops within ${within}`,
        label: `Hops between all pairs: full colour means one hop, blank means not reached after ${within}. Query ${query}, token ${token}: ${held ? "hidden until you answer" : far}.`,
        rows: L,
        values: shades,
        row: query,
        column: token,
        text: () => "",
      });
      const { diameter } = reach;
      app.read({
        "query hears of": `${heard} of ${able} tokens`,
        "hops to the token": hop > layers ? `${far} (more than ${layers})` : far,
        "influence of the token": share[token] ? sig(share[token], 2) : "0",
        diameter:
          diameter === null ? "not connected" : `${diameter} ${diameter === 1 ? "hop" : "hops"}`,
        "never connected": `${tf.count(reach.unreachable)} pairs`,
      });
      const way = found.path && wayOf(found.path);
      const link = way
        ? `; path to token ${token}: ${way.join(" → ")}`
        : `; token ${token} is not reached`;
      return `${within} of ${names}: query ${query} hears of ${heard} of ${able} tokens${held ? "" : link}`;
    },
  };
}
const FLOOR = -0.5; // where the bars of the influence stand, in heights of the layers
