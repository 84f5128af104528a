// Over layers: what the query hears of, layer by layer, and the hops between all pairs.

function makeDepth(app, actions) {
  const root = el("div", {
    role: "group",
    className: "sl-panel sl-depth",
    "aria-label": "over layers",
  });
  const head = el(
    "div",
    { className: "sl-panel-head" },
    el("p", { className: "sl-title" }, "Over layers"),
  );
  const body = el("div", { className: "sl-panel-body" });
  const main = el("div", {}),
    side = el("div", {});
  const facts = el("div", { className: "tfx-readouts" });
  body.append(main, side);
  root.append(head, body, facts);
  app.knob("stack", {
    into: head,
    options: [
      ["A", "A", "A in every layer"],
      ["B", "B", "B in every layer"],
      ["AB", "A, B, …", "A in the lowest layer, then B, in turn"],
      ["BA", "B, A, …", "B in the lowest layer, then A, in turn"],
    ],
  });
  app.motion("layers", { into: head, every: 900, verbs: ["layer down", "layer up"] });
  const cone = canvasOn(app, main, {
    label: "what the query hears of, layer by layer",
    height: () => 268,
  });
  const map = matrixOn(app, side, {
    label: "hops between all pairs",
    hover: (cell) => actions.peek(cell ? cell[0] : null),
    pick: (i, j) => actions.pick(i, j),
  });
  let shades,
    shaded = {}; // of the map of hops, for as long as they hold
  const note = el("p", { className: "sl-note" });
  side.append(note);
  main.append(
    el(
      "p",
      { className: "sl-note" },
      "What the query hears of, layer by layer, and one shortest way to the token. Bars: influence, how much of each token is in the query's vector if attention is uniform.",
    ),
  );
  const show = {
    heard: app.readout("query hears of", {
      into: facts,
      title: "tokens that the query depends on after this many layers, residual included",
    }),
    hops: app.readout("hops to the token", { into: facts }),
    weight: app.readout("influence of the token", {
      into: facts,
      title: "powers of ½ (I + D⁻¹M): uniform attention with residual",
    }),
    diameter: app.readout("diameter", { into: facts, title: "the most hops any pair needs" }),
    lost: app.readout("never connected", { into: facts }),
  };

  function drawCone(stack, names, s, coneOfQuery, share) {
    const { ctx, width } = cone.begin(),
      { L } = stack[0],
      { colours } = app,
      { layers, query, token } = s;
    const [left, right, top, bottom, bars] = [76, 10, 18, 176, 236];
    const step = (width - left - right) / L,
      x = (j) => left + (j + 0.5) * step;
    const y = (n) => bottom - (n * (bottom - top)) / layers;
    const size = clamp(step * 0.7, 1, 8);
    // edges: where the query looks, and where those look; thinned when there are very many
    let edges = 0;
    for (let n = layers; n > 0; n--)
      for (let i = 0; i < L; i++)
        if (coneOfQuery.cone[n][i]) edges += stack[(n - 1) % stack.length].keysOf(i).length;
    const skip = Math.ceil(edges / 3000);
    ctx.strokeStyle = tf.mix(colours.page, colours.attention, clamp(0.95 - edges / 900, 0.22, 0.5));
    ctx.lineWidth = 0.7;
    ctx.beginPath();
    for (let n = layers, k = 0; n > 0; n--)
      for (let i = 0; i < L; i++)
        if (coneOfQuery.cone[n][i]) {
          for (const j of stack[(n - 1) % stack.length].keysOf(i))
            if (k++ % skip === 0) {
              ctx.moveTo(x(i), y(n));
              ctx.lineTo(x(j), y(n - 1));
            }
        }
    ctx.stroke();
    for (let n = 0; n <= layers; n++) {
      for (let j = 0; j < L; j++) {
        const on = coneOfQuery.cone[n][j];
        ctx.fillStyle = on
          ? n === layers
            ? colours.query
            : n === 0
              ? colours.key
              : colours.attention
          : tf.mix(colours.page, colours.ink, 0.16);
        const mark = on ? Math.max(size, 2) : Math.max(size * 0.6, 1);
        ctx.fillRect(x(j) - mark / 2, y(n) - mark / 2, mark, mark);
      }
      const name = n === 0 ? "tokens" : `${n}: ${names[(n - 1) % names.length]}`;
      label(
        app,
        ctx,
        name,
        left - 12,
        y(n),
        n === 0 ? colours.key : colours.muted,
        n === 0 ? 600 : 400,
        "right",
      );
    }
    if (coneOfQuery.path) {
      ctx.strokeStyle = colours.ink;
      ctx.lineWidth = 2.25;
      ctx.beginPath();
      coneOfQuery.path.forEach((j, n) => (n ? ctx.lineTo(x(j), y(n)) : ctx.moveTo(x(j), y(n))));
      ctx.stroke();
      ctx.fillStyle = colours.ink;
      coneOfQuery.path.forEach((j, n) => {
        ctx.beginPath();
        ctx.arc(x(j), y(n), 3.5, 0, 7);
        ctx.fill();
      });
    }
    label(app, ctx, `query ${query}`, clamp(x(query), left + 26, width - 34), 7, colours.query);
    ctx.strokeStyle = colours.key;
    ctx.lineWidth = 2;
    const mark = Math.max(size, 4);
    ctx.strokeRect(x(token) - mark / 2 - 2, bottom - mark / 2 - 2, mark + 4, mark + 4);
    label(
      app,
      ctx,
      `token ${token}`,
      clamp(x(token), left + 26, width - 34),
      bottom + 15,
      colours.key,
    );
    // influence: how much of each token is in the query's vector
    const most = Math.max(...share);
    ctx.fillStyle = colours.muted;
    ctx.fillRect(left, bars + 0.5, width - left - right, 1);
    for (let j = 0; j < L; j++) {
      const tall = (share[j] / most) * 40;
      ctx.fillStyle = colours.attention;
      if (share[j] > 0)
        ctx.fillRect(
          x(j) - Math.max(step * 0.7, 1) / 2,
          bars - Math.max(tall, 0.75),
          Math.max(step * 0.7, 1),
          Math.max(tall, 0.75),
        );
    }
    label(app, ctx, "influence", left - 12, bars - 8, colours.attention, 600, "right");
    label(app, ctx, tf.sig(most, 2), left - 12, bars - 38, colours.muted, 400, "right");
    label(app, ctx, "0", left, bars + 13, colours.muted, 400);
    label(app, ctx, String(L - 1), x(L - 1), bars + 13, colours.muted, 400);
    label(app, ctx, "token j", left + (width - left - right) / 2, bars + 13, colours.muted, 400);
    if (skip > 1)
      label(app, ctx, `one edge in ${skip} drawn`, width - right, 7, colours.muted, 400, "right");
  }

  return {
    root,
    draw(stack, s, reach) {
      const { L } = stack[0],
        { query, token, layers } = s,
        names = STACKS[s.stack].map((side) => NAME[side]);
      const found = coneOf(stack, layers, query, token),
        share = influenceOf(stack, layers, query);
      drawCone(stack, names, s, found, share);
      if (shaded.reach !== reach || shaded.layers !== layers) {
        shades = new Float32Array(L * L);
        for (let i = 0, k = 0; i < L; i++)
          for (let j = 0; j < L; j++, k++) {
            const hop = reach.hops[k];
            shades[k] =
              reach.causal && j > i
                ? NaN
                : hop < 0 || hop > layers
                  ? 0
                  : hop < 2
                    ? 1
                    : 0.25 + 0.45 / (hop - 0.9);
          }
        shaded = { reach, layers };
      }
      map.draw({ rows: L, values: shades, row: query, column: token });
      const heard = found.cone[0].reduce((a, b) => a + b, 0),
        able = reach.causal ? query + 1 : L;
      const hop = reach.hops[query * L + token];
      const far = hop < 0 ? "none: never" : String(hop);
      const words = `${layers} ${layers === 1 ? "layer" : "layers"} of ${names.join(", ")}: query ${query} hears of ${heard} of ${able} tokens`;
      const link = found.path
        ? `path to token ${token}: ${[...found.path]
            .reverse()
            .filter((at, k, all) => at !== all[k - 1])
            .join(" → ")}`
        : `token ${token} is not reached`;
      cone.label(`${words}; ${link}`);
      map.label(
        `Hops between all pairs, full colour is one hop, blank is not reached after ${layers} layers. Query ${query}, token ${token}: ${far}.`,
      );
      note.textContent = `Hops between all pairs: full colour 1, fainter more, blank not within ${layers} ${layers === 1 ? "layer" : "layers"}.`;
      show.heard(`${heard} of ${able} tokens`);
      show.hops(hop > layers ? `${far} (more than ${layers} layers)` : far);
      show.weight(share[token] ? tf.sig(share[token], 2) : "0");
      show.diameter(
        reach.diameter === null
          ? "none"
          : `${reach.diameter} ${reach.diameter === 1 ? "hop" : "hops"}`,
      );
      show.lost(`${tf.count(reach.unreachable)} pairs`);
      return `${words}; ${link}`;
    },
  };
}
