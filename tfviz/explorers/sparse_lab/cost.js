// Cost of one layer, in pairs, blocks, operations and bytes, and the pairs over the length.
const TILES = [1, 2, 4, 8, 16, 32, 64, 128];

function makeCost(app) {
  const root = el("div", { role: "group", className: "sl-panel sl-cost", "aria-label": "cost" });
  const head = el(
    "div",
    { className: "sl-panel-head" },
    el("p", { className: "sl-title" }, "Cost of one layer"),
  );
  const body = el("div", { className: "sl-panel-body" });
  const main = el("div", { className: "sl-scroll" }),
    side = el("div", {});
  body.append(main, side);
  root.append(head, body);
  app.knob("block", {
    scale: TILES,
    into: head,
    hint: "hardware computes a block of the matrix whole or not at all",
  });
  const names = ["A", "A, blocks", "B", "B, blocks", "full"];
  const cells = {};
  const line = (title) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, title),
      ...names.map((name) => (cells[`${title}/${name}`] = el("td", {}))),
    );
  const titles = ["pairs", "share", "blocks", "FLOPs", "scores"];
  const caption = el("caption", {});
  main.append(
    el(
      "table",
      { className: "sl-table" },
      caption,
      el(
        "thead",
        {},
        el("tr", {}, el("td", {}), ...names.map((name) => el("th", { scope: "col" }, name))),
      ),
      el("tbody", {}, ...titles.map(line)),
    ),
  );
  const put = (title, values) =>
    names.forEach((name, k) => {
      const cell = cells[`${title}/${name}`];
      if (cell.textContent !== values[k]) cell.textContent = values[k];
    });
  const curve = canvasOn(app, side, { label: "pairs over L", height: () => 190 });
  let timer, lines, lastKey;
  app.cleanup.push(() => clearTimeout(timer));

  function flops(n) {
    const units = ["", "k", "M", "G", "T"];
    let k = 0;
    while (n >= 1000 && k < 4) {
      n /= 1000;
      k++;
    }
    return `${tf.sig(n)} ${units[k]}`.trim();
  }

  function drawCurve() {
    const { ctx, width, height } = curve.begin(),
      { colours } = app;
    const [left, right, top, bottom] = [42, 44, 14, height - 30];
    const all = Object.values(lines).flat();
    const xs = all.map(([L]) => Math.log2(L)),
      [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const y0 = 4,
      y1 = 18.3;
    const x = (L) =>
      left + ((Math.log2(L) - x0) / Math.max(1e-9, x1 - x0)) * (width - left - right);
    const y = (p) => bottom - ((Math.log2(Math.max(16, p)) - y0) / (y1 - y0)) * (bottom - top);
    for (const power of [1e2, 1e3, 1e4, 1e5]) {
      ctx.strokeStyle = tf.mix(colours.page, colours.grid, 0.8);
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(left, y(power));
      ctx.lineTo(width - right, y(power));
      ctx.stroke();
      label(
        app,
        ctx,
        { 1e2: "100", 1e3: "1k", 1e4: "10k", 1e5: "100k" }[power],
        left - 6,
        y(power),
        colours.muted,
        400,
        "right",
      );
    }
    for (const L of [16, 64, 256, 512])
      if (Math.log2(L) >= x0 && Math.log2(L) <= x1)
        label(app, ctx, String(L), x(L), bottom + 10, colours.muted, 400);
    label(app, ctx, "L (log scale)", (left + width - right) / 2, height - 7, colours.muted, 400);
    label(app, ctx, "pairs (log scale)", left, 5, colours.muted, 400, "left");
    const ends = [];
    for (const [name, points] of Object.entries(lines)) {
      if (!points.length) continue;
      const colour = name === "full" ? colours.muted : colours.attention;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = 2;
      ctx.setLineDash(name === "B" ? [5, 4] : []);
      ctx.beginPath();
      for (const [L, p] of points) ctx.lineTo(x(L), y(p));
      ctx.stroke();
      ctx.setLineDash([]);
      for (const [L, p] of points) {
        ctx.beginPath();
        if (name === "B") ctx.rect(x(L) - 3, y(p) - 3, 6, 6);
        else ctx.arc(x(L), y(p), name === "full" ? 2 : 3, 0, 7);
        ctx.fill();
      }
      ends.push([name, y(points.at(-1)[1]), colour]);
    }
    ends.sort((a, b) => a[1] - b[1]);
    ends.forEach((end, k) => {
      if (k) end[1] = Math.max(end[1], ends[k - 1][1] + 13);
    });
    for (const [name, at, colour] of ends)
      label(app, ctx, name, width - right + 8, at, colour, 600, "left");
    const rise = (points) =>
      points.length > 1
        ? Math.log(points.at(-1)[1] / points.at(-2)[1]) /
          Math.log(points.at(-1)[0] / points.at(-2)[0])
        : NaN;
    curve.label(
      `Pairs over L with these parameters, both axes logarithmic. ${Object.entries(lines)
        .map(
          ([name, points]) =>
            `${name} ends at ${points.at(-1)?.[1] ?? "nothing"} with slope ${tf.sig(rise(points), 2)}`,
        )
        .join("; ")}.`,
    );
  }

  function count(s) {
    const lengths = [16, 32, 64, 128, 256, 512];
    const points = (side) => {
      const fixed = tableLength(s[side]);
      return (fixed ? [fixed] : lengths).flatMap((L) => {
        if (!fitsAt(s[side], L)) return []; // a parameter is out of range at this L
        return [[L, measure(s[side], L, s.causal).pairs]];
      });
    };
    lines = { full: lengths.map((L) => [L, L * L]), A: points("left"), B: points("right") };
  }

  return {
    root,
    draw(data, s) {
      const { L, block, d } = s,
        [a, b] = [data.left, data.right],
        [ta, tb] = [tilesOf(a, block), tilesOf(b, block)];
      const pairs = [a.pairs, ta.pairs, b.pairs, tb.pairs, L * L];
      put("pairs", pairs.map(tf.count));
      put(
        "share",
        pairs.map((p) => `${tf.sig((100 * p) / L / L)} %`),
      );
      put("blocks", [
        "",
        `${tf.count(ta.blocks)} of ${tf.count(ta.all)}`,
        "",
        `${tf.count(tb.blocks)} of ${tf.count(tb.all)}`,
        tf.count(ta.all),
      ]);
      put(
        "FLOPs",
        pairs.map((p) => flops(4 * d * p)),
      );
      put(
        "scores",
        pairs.map((p) => tf.bytes(4 * p)),
      );
      caption.textContent = `L = ${L}, one head of width ${d}, scores in float32. In blocks of ${block}: a block with one allowed pair is computed whole.`;
      const key = JSON.stringify([s.left, s.right, s.causal]);
      if (key !== lastKey) {
        lastKey = key;
        clearTimeout(timer);
        const work = () => {
          count(s);
          drawCurve();
        };
        if (lines)
          timer = setTimeout(work, 180); // not while a slider is moving
        else work();
      } else drawCurve();
    },
  };
}
