// One layer as a graph: queries above, keys below, an edge for every allowed pair.
function makeGraph(app, parent, letter, actions) {
  const view = canvasOn(app, parent, {
    label: `graph of pattern ${letter}`,
    height: (w) => w - 10,
    keys: true,
    className: "sl-graph",
  });
  const LEFT = 14,
    store = document.createElement("canvas");
  let key, place;
  const x = (j) => LEFT + (j + 0.5) * place.step;
  function draw(data, query, token) {
    const { ctx, width, height, ratio } = view.begin(),
      { L } = data,
      { colours } = app;
    place = { step: (width - 2 * LEFT) / L, L };
    const [top, bottom] = [30, height - 30];
    // all edges once per mask, on a canvas of their own
    const now = [width, ratio, colours.page, colours.attention].join();
    if (key?.data !== data || key.now !== now) {
      [store.width, store.height] = [width * ratio, height * ratio];
      const all = store.getContext("2d"),
        skip = Math.ceil(data.pairs / 4000);
      all.scale(ratio, ratio);
      all.strokeStyle = tf.mix(
        colours.page,
        colours.attention,
        clamp(1.1 - Math.log10(1 + data.pairs) / 4.4, 0.16, 0.5),
      );
      all.lineWidth = 0.6;
      for (let i = 0; i < L; i += skip)
        for (const j of data.keysOf(i)) {
          all.moveTo(x(i), top);
          all.lineTo(x(j), bottom);
        }
      all.stroke();
      key = { data, now, skip };
    }
    ctx.drawImage(store, 0, 0, width, height);
    ctx.strokeStyle = colours.attention;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const j of data.keysOf(query)) {
      ctx.moveTo(x(query), top);
      ctx.lineTo(x(j), bottom);
    }
    ctx.stroke();
    const size = clamp(place.step * 0.62, 1, 9);
    ctx.fillStyle = tf.mix(colours.page, colours.query, 0.55);
    for (let i = 0; i < L; i++) ctx.fillRect(x(i) - size / 2, top - size, size, size);
    ctx.fillStyle = tf.mix(colours.page, colours.key, 0.45);
    for (let j = 0; j < L; j++) ctx.fillRect(x(j) - size / 2, bottom, size, size);
    ctx.fillStyle = colours.key;
    for (const j of data.keysOf(query))
      ctx.fillRect(x(j) - Math.max(size, 3) / 2, bottom, Math.max(size, 3), Math.max(size, 3) + 2);
    ctx.fillStyle = colours.query;
    const big = Math.max(size, 5);
    ctx.fillRect(x(query) - big / 2, top - big - 2, big, big + 2);
    label(app, ctx, `query ${query}`, clamp(x(query), 34, width - 34), 12, colours.query);
    label(app, ctx, `token ${token}`, clamp(x(token), 30, width - 30), height - 8, colours.key);
    ctx.strokeStyle = colours.key;
    ctx.strokeRect(x(token) - big / 2 - 2, bottom - 2, big + 4, big + 5);
    if (key.skip > 1)
      label(app, ctx, `one query in ${key.skip} drawn`, width / 2, 12, colours.muted, 400);
  }
  const at = (event) => {
    const [px, py] = view.at(event);
    return {
      near: clamp(Math.floor((px - LEFT) / place.step), 0, place.L - 1),
      above: py < view.canvas.clientHeight / 2,
    };
  };
  view.canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") {
      const { near, above } = at(event);
      actions.peek(above ? near : null);
    }
  });
  view.canvas.addEventListener("pointerleave", () => actions.peek(null));
  view.canvas.addEventListener("click", (event) => {
    const { near, above } = at(event);
    app.set(above ? "query" : "token", near);
  });
  view.canvas.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(place.L / 8));
    const [name, by] =
      {
        ArrowLeft: ["query", -1],
        ArrowRight: ["query", 1],
        ArrowUp: ["token", -1],
        ArrowDown: ["token", 1],
        PageUp: ["query", -page],
        PageDown: ["query", page],
        Home: ["query", -1e9],
        End: ["query", 1e9],
      }[event.key] || [];
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    app.set(name, clamp(app.get(name) + by, 0, place.L - 1));
  });
  return { draw, canvas: view.canvas, label: view.label };
}
