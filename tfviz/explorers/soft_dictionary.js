// The soft dictionary: â_j = q·k_j, a = softmax(β â), z = Σ a_j v_j, for keys and values in the plane.

const softmax = (scores) => {
  const most = Math.max(...scores);
  const loud = scores.map((s) => Math.exp(s - most));
  const sum = loud.reduce((a, b) => a + b, 0);
  return loud.map((x) => x / sum);
};

function answer(q, beta, K, V) {
  const scores = K.map((k) => q[0] * k[0] + q[1] * k[1]);
  const weights = softmax(scores.map((s) => beta * s));
  const z = [0, 1].map((c) => weights.reduce((sum, a, j) => sum + a * V[j][c], 0));
  return { scores, weights, z };
}

// Convex hull of points in the plane, counter-clockwise (Andrew's monotone chain).
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const p of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), p) <= 0) chain.pop();
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const number = (x, digits = 2) => (Object.is(Number(x.toFixed(digits)), -0) ? 0 : x).toFixed(digits).replace("-", "−");
const longest = (K) => 2 * (Math.max(...K.map((k) => Math.hypot(...k))) || 0.5);

function shorten([x, y], most) {
  const length = Math.hypot(x, y), share = length > most ? most / length : 1;
  return [x, y].map((c) => Math.round(c * share * 1e4) / 1e4);
}

export default tf.explorer({
  fit(fine) {
    if (fine.query?.length !== 2 || !fine.query.every(Number.isFinite)) delete fine.query;
    return fine;
  },
  setup(app) {
    const { el } = tf;
    const pictures = el("div", { className: "sd-pictures" });
    const [left, right] = ["keys and query", "values and answer"].map((title) => {
      const box = el("div", { className: "sd-picture" }, el("p", { className: "sd-title" }, title));
      pictures.append(box);
      return box;
    });
    app.picture.append(pictures);
    const tall = (w) => Math.min(w, 260);
    const plane = app.canvas(left, { label: "", height: tall, keys: true, className: "sd-plane" });
    const shape = app.canvas(right, { label: "", height: tall });

    app.knob("beta", { format: (x) => x.toFixed(1) });
    const polar = () => {
      const [x, y] = app.get("query");
      return [Math.hypot(x, y), (Math.atan2(y, x) * 180) / Math.PI];
    };
    const turned = (length, degrees) => {
      const angle = (degrees * Math.PI) / 180;
      app.set("query", shorten([length * Math.cos(angle), length * Math.sin(angle)], longest(app.get("K"))));
    };
    let facing = polar()[1]; // a query of length 0 still knows where it looked
    const length = app.slider("length", {
      label: "length of the query", letter: "|q|", min: 0, max: 2, step: 0.01, format: (x) => x.toFixed(2),
      read: () => polar()[0], write: (x) => turned(x, facing),
    });
    app.slider("angle", {
      label: "direction of the query", min: -180, max: 180, step: 1, format: (x) => `${Math.round(x)}°`,
      read: () => facing, write: (x) => { facing = x; turned(polar()[0], x); app.redraw("query"); },
    });

    const body = el("tbody");
    const table = el("table", { className: "sd-table" },
      el("caption", { className: "tfx-hidden" }, "Score and weight of each entry"),
      el("thead", {}, el("tr", {}, ...["entry", "q·k", "β q·k", "weight"].map((t) => el("th", { scope: "col" }, t)))), body);
    app.readouts.before(table);
    const shown = {
      z: app.readout("answer z"),
      lead: app.readout("best entry is ahead of the next by a factor"),
      speakers: app.readout("entries that matter (e to the entropy)"),
    };
    let rows = [];
    function build(names) {
      rows = names.map((name) => {
        const score = el("td"), hot = el("td"), bar = el("span", { className: "sd-bar" }), text = el("span", { className: "sd-number" });
        const cell = el("td", { className: "sd-weight" }, bar, text);
        const row = el("tr", {}, el("th", { scope: "row" }, name), score, hot, cell);
        return { row, score, hot, bar, text, cell };
      });
      body.replaceChildren(...rows.map((r) => r.row));
    }

    let place = null; // of the plane: centre and pixels for one unit
    const arrow = (ctx, from, to, colour, width) => {
      const [dx, dy] = [to[0] - from[0], to[1] - from[1]], size = Math.hypot(dx, dy);
      if (size < 1) return;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = width;
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.lineTo(...to);
      ctx.stroke();
    };
    const write = (ctx, text, x, y, colour, { align = "center", bold = false, size = 12, halo } = {}) => {
      ctx.font = `${bold ? "600 " : ""}${size}px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      if (halo) {
        ctx.strokeStyle = halo;
        ctx.lineWidth = 4;
        ctx.lineJoin = "round";
        ctx.strokeText(text, x, y);
      }
      ctx.fillStyle = colour;
      ctx.fillText(text, x, y);
    };

    function drawPlane(q, K, names, weights) {
      const { ctx, width, height } = plane.begin(), c = app.colours;
      const most = longest(K), unit = (Math.min(width, height) / 2 - 14) / most;
      const [x0, y0] = [width / 2, height / 2];
      place = { x0, y0, unit };
      const at = ([x, y]) => [x0 + x * unit, y0 - y * unit];
      ctx.strokeStyle = c.grid;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(0, y0); ctx.lineTo(width, y0);
      ctx.moveTo(x0, 0); ctx.lineTo(x0, height);
      ctx.stroke();
      for (const r of [most / 2, most]) {
        ctx.setLineDash(r === most ? [2, 4] : []);
        ctx.beginPath();
        ctx.arc(x0, y0, r * unit, 0, 2 * Math.PI);
        ctx.stroke();
      }
      ctx.setLineDash([]);
      K.forEach((k, j) => { // the halo's area is the weight
        const [x, y] = at(k);
        ctx.fillStyle = tf.mix(c.page, c.attention, 0.55);
        ctx.beginPath();
        ctx.arc(x, y, Math.sqrt(weights[j]) * 30, 0, 2 * Math.PI);
        ctx.fill();
      });
      K.forEach((k, j) => {
        const [x, y] = at(k);
        arrow(ctx, [x0, y0], [x, y], c.key, 2);
        ctx.fillStyle = c.key;
        ctx.fillRect(x - 5, y - 5, 10, 10);
        const size = Math.hypot(...k) || 1; // the name stands outside, where the key points
        write(ctx, names[j], tf.clamp(x + (34 * k[0]) / size, 26, width - 26), tf.clamp(y - (22 * k[1]) / size, 10, height - 10), c.key, { bold: true, halo: c.page });
      });
      const tip = at(q);
      arrow(ctx, [x0, y0], tip, c.query, 3);
      ctx.fillStyle = c.query;
      ctx.strokeStyle = c.page;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(...tip, 9, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
      write(ctx, "query", tf.clamp(tip[0] + 14, 6, width - 46), tf.clamp(tip[1] - 15, 9, height - 9), c.query, { align: "left", bold: true, halo: c.page });
    }

    function drawValues(V, names, weights, z) {
      const { ctx, width, height } = shape.begin(), c = app.colours, pad = 38;
      const low = [0, 1].map((d) => Math.min(...V.map((v) => v[d]))), high = [0, 1].map((d) => Math.max(...V.map((v) => v[d])));
      const span = [0, 1].map((d) => high[d] - low[d] || 1);
      const at = (v) => [pad + ((v[0] - low[0]) / span[0]) * (width - 2 * pad), height - pad - ((v[1] - low[1]) / span[1]) * (height - 2 * pad)];
      ctx.strokeStyle = c.grid;
      ctx.lineWidth = 1;
      ctx.strokeRect(8.5, 8.5, width - 17, height - 17);
      const border = hull(V).map(at);
      ctx.fillStyle = tf.mix(c.page, c.value, 0.14);
      ctx.strokeStyle = tf.mix(c.page, c.value, 0.6);
      ctx.beginPath();
      border.forEach((p, k) => (k ? ctx.lineTo(...p) : ctx.moveTo(...p)));
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
      const dot = at(z);
      V.forEach((v, j) => { // how strongly each value pulls
        ctx.strokeStyle = c.attention;
        ctx.globalAlpha = 0.7;
        ctx.lineWidth = 7 * weights[j];
        if (weights[j] > 0.004) { ctx.beginPath(); ctx.moveTo(...at(v)); ctx.lineTo(...dot); ctx.stroke(); }
        ctx.globalAlpha = 1;
      });
      V.forEach((v, j) => {
        const [x, y] = at(v);
        ctx.fillStyle = c.value;
        ctx.beginPath();
        ctx.moveTo(x, y - 7); ctx.lineTo(x + 7, y); ctx.lineTo(x, y + 7); ctx.lineTo(x - 7, y);
        ctx.fill();
        write(ctx, names[j], tf.clamp(x, 30, width - 30), y < height / 2 ? y - 17 : y + 17, c.value, { bold: true, halo: c.page });
      });
      ctx.fillStyle = c.attention;
      ctx.strokeStyle = c.page;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(...dot, 8, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
      write(ctx, "z", dot[0], dot[1] - 17, c.attention, { bold: true, size: 14, halo: c.page });
      const [across, up] = app.get("axes");
      write(ctx, `${across} →`, width - 14, height - 18, c.muted, { align: "right", size: 11, halo: c.page });
      write(ctx, `↑ ${up}`, 14, 20, c.muted, { align: "left", size: 11, halo: c.page });
    }

    // the query can be dragged, or moved by the arrow keys
    const pull = (event) => {
      const [x, y] = plane.at(event);
      app.set("query", shorten([(x - place.x0) / place.unit, (place.y0 - y) / place.unit], longest(app.get("K"))));
    };
    plane.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      plane.canvas.setPointerCapture(event.pointerId);
      pull(event);
    });
    plane.canvas.addEventListener("pointermove", (event) => { if (plane.canvas.hasPointerCapture(event.pointerId)) pull(event); });
    plane.canvas.addEventListener("keydown", (event) => {
      const [size, degrees] = polar(), by = event.shiftKey ? 5 : 1;
      const to = {
        ArrowLeft: [size, degrees + 3 * by], ArrowRight: [size, degrees - 3 * by],
        ArrowUp: [size + 0.05 * by, facing], ArrowDown: [Math.max(0, size - 0.05 * by), facing],
        PageUp: [size + 0.5, facing], PageDown: [Math.max(0, size - 0.5), facing],
        Home: [0, facing], End: [longest(app.get("K")), facing],
      }[event.key];
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key.endsWith("Left") || event.key.endsWith("Right")) facing = ((to[1] + 540) % 360) - 180;
      turned(...to);
    });

    return {
      draw(changed) {
        const [q, beta, K, V, names] = ["query", "beta", "K", "V", "names"].map((key) => app.get(key));
        if (changed.has("names") || rows.length !== names.length) build(names);
        if (Math.hypot(...q) > 1e-6) facing = polar()[1];
        length.limit(0, longest(K));
        const { scores, weights, z } = answer(q, beta, K, V);
        drawPlane(q, K, names, weights);
        drawValues(V, names, weights, z);
        rows.forEach((row, j) => {
          row.score.textContent = number(scores[j]);
          row.hot.textContent = number(beta * scores[j]);
          row.bar.style.width = `calc((100% - 3.75rem) * ${weights[j]})`;
          row.text.textContent = number(weights[j], 3);
          row.cell.dataset.weight = weights[j];
        });
        const order = weights.map((a, j) => [a, j]).sort((a, b) => b[0] - a[0]);
        const entropy = -weights.reduce((sum, a) => sum + (a > 0 ? a * Math.log(a) : 0), 0);
        const ratio = order.length > 1 ? Math.exp(beta * (scores[order[0][1]] - scores[order[1][1]])) : 1;
        shown.z(`(${z.map((x) => number(x)).join(", ")})`);
        shown.lead(ratio < 1e5 ? tf.sig(ratio) : ratio.toExponential(1));
        shown.speakers(number(Math.exp(entropy)));
        app.root.dataset.z = JSON.stringify(z);
        const [size, degrees] = polar();
        plane.label(`Keys ${names.join(", ")} and the query, direction ${Math.round(degrees)}°, length ${number(size)}; arrow keys turn and stretch it`);
        shape.label(`Values of ${names.join(", ")} and the answer z = (${z.map((x) => number(x)).join(", ")}) inside their hull`);
        const talk = order.slice(0, 2).map(([a, j]) => `${names[j]} answers with ${number(a)}`).join(", ");
        app.say(`β = ${beta.toFixed(1)}: ${talk}; z = (${z.map((x) => number(x)).join(", ")})`);
      },
    };
  },
});
