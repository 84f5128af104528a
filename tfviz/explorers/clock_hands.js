// Place i as clock hands: hand m stands at (sin iω_m, cos iω_m), noon is place 0.

const PLACES = tf.declared.knobs.place.high + 1;
const entry = new Function(`return ${tf.data.entry}`)(); // (i, c, d, base) => p_ic
const hand = new Function(`return ${tf.data.hand}`)(); // (k, m, d, base) => cos(k ω_m)

const number = (x, digits = 2) => (Object.is(Number(x.toFixed(digits)), -0) ? 0 : x).toFixed(digits).replace("-", "−");
const row = (i, d, base) => Array.from({ length: d }, (_, c) => entry(i, c, d, base));

export default tf.explorer({
  setup(app) {
    const { el } = tf;
    const there = () => tf.clamp(app.get("place") + app.get("step"), 0, PLACES - 1);
    const part = (title) => {
      const box = el("div", { className: "ch-part" }, el("p", { className: "ch-title" }, title));
      app.picture.append(box);
      return box;
    };
    const perLine = (w) => Math.min(app.get("d") / 2, w < 430 ? 4 : app.get("d") > 16 ? 6 : 8);
    const size = (w) => Math.min(96, w / perLine(w));
    const dials = app.canvas(part("hand m, m = 0, 1, …: place i, and place i + k"), {
      label: "", keys: true, className: "ch-dials",
      height: (w) => Math.ceil(app.get("d") / 2 / perLine(w)) * (size(w) + 18),
    });
    const table = app.canvas(part("the same as numbers: places across, entries down; violet above 0, grey below"), {
      label: "", height: () => 12 * Math.min(12, app.get("d")) + 22,
    });
    const curve = app.canvas(part("product of the two rows, divided by d/2, against k"), { label: "", height: () => 130 });

    app.knob("place");
    app.knob("step", { format: (k) => number(k, 0), read: () => there() - app.get("place") });
    app.knob("d");
    app.knob("base", { format: tf.count });
    const shown = {
      product: app.readout("pᵢ · pᵢ₊ₖ"),
      mean: app.readout("divided by d/2"),
      length: app.readout("pᵢ · pᵢ"),
      slow: app.readout("slowest hand goes round in"),
    };

    const text = (ctx, words, x, y, colour, { align = "center", bold = false, px = 11 } = {}) => {
      ctx.font = `${bold ? "600 " : ""}${px}px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.fillStyle = colour;
      ctx.fillText(words, x, y);
    };
    const segment = (ctx, x, y, sine, cosine, length, colour, width) => {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.lineCap = "round";
      ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(x + length * sine, y - length * cosine); ctx.stroke();
      ctx.lineCap = "butt";
    };
    function drawDials(p, q, k, d, base) {
      const { ctx, width } = dials.begin(), c = app.colours, many = perLine(width), room = size(width), r = room / 2 - 8;
      for (let m = 0; m < d / 2; m++) {
        const x = (m % many + 0.5) * room, y = Math.floor(m / many) * (room + 18) + r + 4;
        const [a, b] = [Math.atan2(p[2 * m], p[2 * m + 1]), Math.atan2(q[2 * m], q[2 * m + 1])];
        const turned = k / base ** ((2 * m) / d); // may be more than once around; the sector shows the rest
        ctx.fillStyle = tf.mix(c.page, c.attention, 0.28);
        ctx.beginPath(); ctx.moveTo(x, y);
        ctx.arc(x, y, r - 3, a - Math.PI / 2, b - Math.PI / 2, turned < 0);
        ctx.fill();
        ctx.strokeStyle = c.muted;
        ctx.lineWidth = 1;
        ctx.beginPath(); ctx.arc(x, y, r, 0, 2 * Math.PI); ctx.stroke();
        segment(ctx, x, y - r + 4, 0, 1, 4, c.muted, 1); // noon
        segment(ctx, x, y, q[2 * m], q[2 * m + 1], 0.78 * r, c.key, 3);
        segment(ctx, x, y, p[2 * m], p[2 * m + 1], 0.62 * r, c.query, 4);
        text(ctx, `cos ${number(hand(k, m, d, base))}`, x, y + r + 10, c.ink);
      }
    }
    function drawTable(i, j, d, base) {
      const { ctx, width, height } = table.begin(), c = app.colours, left = 30, cell = (width - left - 4) / PLACES, tall = (height - 22) / d;
      const shades = Array.from({ length: 41 }, (_, n) => (n < 20 ? tf.mix(c.page, c.ink, 0.75 * (1 - n / 20)) : tf.mix(c.page, c.attention, n / 20 - 1)));
      for (let x = 0; x < PLACES; x++) for (let e = 0; e < d; e++) {
        ctx.fillStyle = shades[Math.round((entry(x, e, d, base) + 1) * 20)];
        ctx.fillRect(left + x * cell, 2 + e * tall, cell + 0.5, tall + 0.5);
      }
      ctx.strokeStyle = c.muted;
      ctx.lineWidth = 1;
      ctx.strokeRect(left, 2, cell * PLACES, tall * d);
      const frame = (x, colour) => { ctx.strokeStyle = colour; ctx.lineWidth = 2; ctx.strokeRect(left + x * cell - 1, 1, cell + 2, tall * d + 2); };
      frame(j, c.key);
      frame(i, c.query);
      text(ctx, "0", left - 6, 2 + tall / 2 + 2, c.muted, { align: "right" });
      text(ctx, String(d - 1), left - 6, 2 + tall * d - 6, c.muted, { align: "right" });
      const [xi, xj] = [i, j].map((n) => left + (n + 0.5) * cell);
      text(ctx, String(i), xi, height - 8, c.query, { bold: true });
      if (Math.abs(xi - xj) > 16) text(ctx, String(j), xj, height - 8, c.key, { bold: true });
      for (const n of [0, PLACES - 1]) if (Math.min(Math.abs(n - i), Math.abs(n - j)) * cell > 18) text(ctx, String(n), left + (n + 0.5) * cell, height - 8, c.muted);
    }
    function drawCurve(k, d, base) {
      const { ctx, width, height } = curve.begin(), c = app.colours, [left, top, right, bottom] = [30, 6, width - 8, height - 20];
      const mean = (x) => { let sum = 0; for (let m = 0; m < d / 2; m++) sum += hand(x, m, d, base); return sum / (d / 2); };
      const X = (v) => left + ((v + PLACES - 1) / (2 * PLACES - 2)) * (right - left), Y = (v) => bottom - ((v + 1) / 2) * (bottom - top);
      ctx.lineWidth = 1;
      ctx.strokeStyle = c.grid;
      for (const v of [-1, 0, 1]) {
        ctx.beginPath(); ctx.moveTo(left, Math.round(Y(v)) + 0.5); ctx.lineTo(right, Math.round(Y(v)) + 0.5); ctx.stroke();
        text(ctx, number(v, 0), left - 5, Y(v), c.muted, { align: "right" });
      }
      for (const v of [-60, -40, -20, 0, 20, 40, 60]) text(ctx, number(v, 0), X(v), bottom + 12, c.muted);
      ctx.strokeStyle = c.attention;
      ctx.lineWidth = 2;
      ctx.beginPath();
      for (let v = 1 - PLACES; v < PLACES; v++) ctx.lineTo(X(v), Y(mean(v)));
      ctx.stroke();
      ctx.fillStyle = c.key;
      ctx.strokeStyle = c.page;
      ctx.beginPath(); ctx.arc(X(k), Y(mean(k)), 6, 0, 2 * Math.PI); ctx.fill(); ctx.stroke();
      curve.label(`Product against k: 1 at k = 0, ${number(mean(k))} at k = ${number(k, 0)}`);
    }
    dials.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const [i, k] = [app.get("place"), there() - app.get("place")];
      const to = {
        ArrowLeft: ["place", i - 1], ArrowRight: ["place", i + 1], PageUp: ["place", i + 8], PageDown: ["place", i - 8],
        Home: ["place", 0], End: ["place", PLACES - 1], ArrowUp: ["step", k + 1], ArrowDown: ["step", k - 1],
      }[event.key];
      if (!to) return;
      event.preventDefault();
      event.stopPropagation();
      app.set(to[0], to[0] === "place" ? tf.clamp(to[1], 0, PLACES - 1) : tf.clamp(to[1], 1 - PLACES, PLACES - 1));
    });

    let drawn = null;
    return {
      draw() {
        const [i, d, base] = [app.get("place"), app.get("d"), app.get("base")], j = there(), k = j - i;
        if (drawn !== d) { // other heights
          drawn = d;
          for (const measure of app.measures) measure();
        }
        const [p, q] = [row(i, d, base), row(j, d, base)];
        const product = p.reduce((sum, x, c) => sum + x * q[c], 0), own = p.reduce((sum, x) => sum + x * x, 0);
        drawDials(p, q, k, d, base);
        drawTable(i, j, d, base);
        drawCurve(k, d, base);
        const slowest = 2 * Math.PI * base ** (1 - 2 / d);
        shown.product(number(product));
        shown.mean(number(product / (d / 2)));
        shown.length(number(own));
        shown.slow(`${slowest < 100 ? number(slowest, 1) : tf.count(slowest)} places`);
        app.root.dataset.shown = JSON.stringify({ p, q, product });
        dials.label(`${d / 2} clocks with the hands of place ${i} and place ${j}; left and right move i, up and down change k`);
        table.label(`Rows 0 to ${PLACES - 1} of the table P with ${d} numbers each; place ${i} and place ${j} are framed`);
        app.say(`Places ${i} and ${j}: the ${d / 2} pairs of hands stand apart by k = ${number(k, 0)} steps each; the product is ${number(product)} of at most ${number(d / 2, 0)}.`);
      },
    };
  },
});
