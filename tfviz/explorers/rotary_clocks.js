// Rotary positions: θ_m = base^(−2m/d); pair m of q and k as complex numbers q_m, k_m.
// Score = Re Σ_m q_m conj(k_m) e^{i (i−j) θ_m / s}: arrows of fixed length whose shadows add up.

const speeds = (d, base) => Array.from({ length: d / 2 }, (_, m) => base ** ((-2 * m) / d));
const polar = (x, m) => [Math.hypot(x[2 * m], x[2 * m + 1]), Math.atan2(x[2 * m + 1], x[2 * m])];

// Each clock's arrow at a distance: [length, angle].
function arrows(q, k, distance, theta) {
  return theta.map((w, m) => {
    const [a, alpha] = polar(q, m), [b, beta] = polar(k, m);
    return [a * b, alpha - beta + distance * w];
  });
}
const shadow = (list) => list.reduce((sum, [r, angle]) => sum + r * Math.cos(angle), 0);

// The same number the way a model computes it: turn both vectors, then the dot product.
function turned(x, place, theta) {
  return theta.flatMap((w, m) => {
    const [cos, sin] = [Math.cos(place * w), Math.sin(place * w)], [a, b] = [x[2 * m], x[2 * m + 1]];
    return [a * cos - b * sin, a * sin + b * cos];
  });
}

const TURN = 2 * Math.PI;
const number = (x, digits = 2) => (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");
const degrees = (angle) => Math.round((((angle % TURN) + TURN) % TURN) * 360 / TURN) % 360;

export default tf.explorer({
  setup(app) {
    const { el } = tf, far = tf.declared.knobs.i.high;
    const box = (title, className) => {
      const node = el("div", { className: `rc-box ${className}` }, el("p", { className: "rc-title" }, title));
      app.picture.append(node);
      return node;
    };
    const vectors = () => app.get("pairs")[app.get("pair")] || Object.values(app.get("pairs"))[0];
    const clocks = () => vectors()[0].length / 2;
    const rows = (w) => Math.ceil(clocks() / Math.max(2, Math.floor(w / 74)));
    const across = (w) => Math.ceil(clocks() / rows(w));
    const dial = (w) => Math.min(150, w / across(w));
    const faces = app.canvas(box("one clock for each pair of features: hands of query and key, violet the angle between", "rc-dials"), {
      label: "", keys: true, height: (w) => rows(w) * (dial(w) + 34), className: "rc-faces",
    });
    const sum = app.canvas(box("the violet arrows put end to end: how far right they get is the score", "rc-sum"), { label: "", height: () => 200 });
    const graph = app.canvas(box("score by distance i − j", "rc-graph"), { label: "", height: () => 200, className: "rc-curve" });

    app.knob("i");
    app.knob("j");
    app.knob("shift", { format: (x) => `+${x}` });
    app.knob("base", { format: tf.count });
    app.knob("interpolate", { format: (x) => tf.sig(x) });
    const names = Object.keys(app.get("pairs"));
    if (names.length > 1) app.knob("pair", { as: "select", options: names.map((name) => [name, name]) });
    const shown = {
      distance: app.readout("distance i − j"),
      score: app.readout("score, from the distance"),
      product: app.readout("score, from the turned vectors"),
      slow: app.readout("slowest clock: one turn in"),
    };

    const arrow = (ctx, [x0, y0], [x1, y1], colour, width, head = 8) => {
      const size = Math.hypot(x1 - x0, y1 - y0);
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = width;
      ctx.lineCap = "round";
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
      if (size < 2) return;
      const h = Math.min(head, size / 2), [ux, uy] = [(x1 - x0) / size, (y1 - y0) / size];
      ctx.beginPath();
      ctx.moveTo(x1, y1);
      ctx.lineTo(x1 - h * ux + 0.5 * h * uy, y1 - h * uy - 0.5 * h * ux);
      ctx.lineTo(x1 - h * ux - 0.5 * h * uy, y1 - h * uy + 0.5 * h * ux);
      ctx.fill();
    };
    const write = (ctx, text, x, y, colour, { align = "center", bold = false, size = 11, halo = true } = {}) => {
      ctx.font = `${bold ? "600 " : ""}${size}px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      if (halo) {
        ctx.strokeStyle = app.colours.page;
        ctx.lineWidth = 3;
        ctx.lineJoin = "round";
        ctx.strokeText(text, x, y);
      }
      ctx.fillStyle = colour;
      ctx.fillText(text, x, y);
    };

    function drawClocks(q, k, at, theta, list) {
      const { ctx, width } = faces.begin(), c = app.colours, n = across(width), size = dial(width);
      const left = (width - n * size) / 2;
      const longest = Math.max(...list.map((_, m) => Math.max(polar(q, m)[0], polar(k, m)[0]))) || 1;
      theta.forEach((w, m) => {
        const [x, y] = [left + ((m % n) + 0.5) * size, Math.floor(m / n) * (size + 34) + size / 2 + 2], r = size / 2 - 8;
        ctx.strokeStyle = c.grid;
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.arc(x, y, r, 0, TURN);
        ctx.stroke();
        ctx.beginPath();
        for (let hour = 0; hour < 12; hour++) {
          const [ux, uy] = [Math.cos((hour * TURN) / 12), Math.sin((hour * TURN) / 12)];
          ctx.moveTo(x + ux * (r - 4), y + uy * (r - 4));
          ctx.lineTo(x + ux * r, y + uy * r);
        }
        ctx.stroke();
        const hands = [[k, at.j, c.key], [q, at.i, c.query]].map(([v, place, colour]) => {
          const [length, start] = polar(v, m);
          return [(length / longest) * (r - 8), start + place * w, colour];
        });
        const between = ((list[m][1] % TURN) + 1.5 * TURN) % TURN - TURN / 2; // −π … π
        ctx.fillStyle = tf.mix(c.page, c.attention, 0.3);
        ctx.beginPath(); // from the key's hand to the query's, angles counter-clockwise
        ctx.moveTo(x, y);
        ctx.arc(x, y, r * 0.45, -hands[0][1], -hands[0][1] - between, between > 0);
        ctx.fill();
        hands.forEach(([length, angle, colour], hand) => arrow(ctx, [x, y], [x + length * Math.cos(angle), y - length * Math.sin(angle)], colour, hand ? 3 : 2.5));
        hands.forEach(([length, angle, colour], hand) => { // a letter on the outer side of each hand
          const side = Boolean(hand) === between >= 0 ? 9 : -9, out = 0.66 * length;
          if (length > 20) write(ctx, hand ? "q" : "k", x + out * Math.cos(angle) - side * Math.sin(angle), y - out * Math.sin(angle) - side * Math.cos(angle), colour, { bold: true });
        });
        ctx.fillStyle = c.ink;
        ctx.beginPath();
        ctx.arc(x, y, 2.5, 0, TURN);
        ctx.fill();
        write(ctx, `clock ${m}`, x, y + r + 12, c.muted);
        write(ctx, `${degrees(between) > 180 ? number(degrees(between) - 360, 0) : degrees(between)}°`, x, y + r + 25, c.attention, { bold: true, size: 12 });
      });
    }

    function drawSum(list) {
      const { ctx, width, height } = sum.begin(), c = app.colours, all = list.reduce((s, [r]) => s + r, 0) || 1;
      const unit = (width / 2 - 14) / all, x0 = width / 2, y0 = height / 2 - 10;
      let [up, highest] = [0, 0]; // smaller only where the path would leave the picture
      for (const [r, angle] of list) { up += r * Math.sin(angle); highest = Math.max(highest, Math.abs(up)); }
      const tall = Math.min(1, (height / 2 - 26) / (highest * unit || 1)), scale = unit * tall;
      ctx.strokeStyle = c.grid;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(4, y0);
      ctx.lineTo(width - 4, y0);
      ctx.moveTo(x0, 6);
      ctx.lineTo(x0, height - 26);
      ctx.stroke();
      ctx.setLineDash([2, 4]); // the farthest that these arrows can get
      ctx.beginPath();
      for (const side of [-1, 1]) { ctx.moveTo(x0 + side * all * scale, 6); ctx.lineTo(x0 + side * all * scale, height - 26); }
      ctx.stroke();
      ctx.setLineDash([]);
      let at = [x0, y0];
      const score = shadow(list);
      list.forEach(([r, angle], m) => {
        const to = [at[0] + r * scale * Math.cos(angle), at[1] - r * scale * Math.sin(angle)];
        arrow(ctx, at, to, c.attention, 3);
        if (r * scale > 16) write(ctx, String(m), (at[0] + to[0]) / 2 + 8 * Math.sin(angle), (at[1] + to[1]) / 2 + 8 * Math.cos(angle), c.ink, { size: 10 });
        at = to;
      });
      ctx.strokeStyle = c.muted;
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      ctx.moveTo(...at);
      ctx.lineTo(at[0], height - 22);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillStyle = c.attention; // the score as a bar from zero
      ctx.fillRect(Math.min(x0, at[0]), height - 24, Math.abs(at[0] - x0), 6);
      write(ctx, "0", x0, height - 8, c.muted);
      write(ctx, number(all, 1), x0 + all * scale, height - 8, c.muted, { align: tall < 1 ? "center" : "right" });
      write(ctx, number(-all, 1), x0 - all * scale, height - 8, c.muted, { align: tall < 1 ? "center" : "left" });
      if (Math.abs(at[0] - x0) > 26 && all * scale - Math.abs(at[0] - x0) > 30) write(ctx, number(score), at[0], height - 8, c.attention, { bold: true, size: 12 });
      sum.label(`Arrows of ${list.length} clocks end to end; they reach ${number(score)} to the right, of at most ${number(all)}`);
    }

    let place = null;
    function drawGraph(q, k, distance, base, s) {
      const { ctx, width, height } = graph.begin(), c = app.colours, theta = speeds(q.length, base);
      const all = arrows(q, k, 0, theta).reduce((sum, [r]) => sum + r, 0) || 1;
      const left = 8, right = width - 8, top = 8, bottom = height - 34;
      const x = (n) => left + ((n + far) / (2 * far)) * (right - left), y = (v) => (top + bottom) / 2 - (v / all) * ((bottom - top) / 2 - 4);
      place = { left, right };
      ctx.fillStyle = tf.mix(c.page, c.ink, 0.05);
      ctx.fillRect(left, top, x(0) - left, bottom - top);
      ctx.strokeStyle = c.grid;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(left, y(0)); ctx.lineTo(right, y(0));
      ctx.moveTo(x(0), top); ctx.lineTo(x(0), bottom);
      ctx.stroke();
      write(ctx, "key comes later", left + 6, bottom - 8, c.muted, { align: "left", halo: false });
      const line = (factor, colour, wide, dash) => {
        ctx.strokeStyle = colour;
        ctx.lineWidth = wide;
        ctx.lineJoin = "round";
        ctx.setLineDash(dash);
        ctx.beginPath();
        for (let n = -far; n <= far; n += 0.25) ctx[n === -far ? "moveTo" : "lineTo"](x(n), y(shadow(arrows(q, k, n / factor, theta))));
        ctx.stroke();
        ctx.setLineDash([]);
      };
      const trained = app.get("trained");
      if (trained) {
        ctx.strokeStyle = c.ink;
        ctx.setLineDash([5, 4]);
        ctx.beginPath();
        ctx.moveTo(x(trained), top); ctx.lineTo(x(trained), bottom);
        ctx.stroke();
        ctx.setLineDash([]);
        write(ctx, `trained to ${trained}`, Math.min(x(trained) + 4, right - 70), bottom - 8, c.ink, { align: "left" });
      }
      if (s > 1) line(1, tf.mix(c.page, c.ink, 0.35), 1, []);
      line(s, c.attention, 2, []);
      const score = shadow(arrows(q, k, distance / s, theta));
      ctx.fillStyle = c.attention;
      ctx.strokeStyle = c.page;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(x(distance), y(score), 6, 0, TURN);
      ctx.fill();
      ctx.stroke();
      for (const n of [-far, -far / 2, 0, far / 2, far]) {
        if (Math.abs(x(n) - x(distance)) > 24) write(ctx, number(n, 0), tf.clamp(x(n), left + 12, right - 12), bottom + 10, c.muted);
      }
      write(ctx, number(distance, 0), tf.clamp(x(distance), left + 12, right - 12), bottom + 10, c.attention, { bold: true, size: 12 });
      write(ctx, "distance i − j", (left + right) / 2, bottom + 25, c.muted);
      graph.label(`Score for distances ${-far} to ${far}; at ${distance} it is ${number(score)}`);
    }

    // the distance can be chosen in the graph, the positions by the arrow keys on the clocks
    const go = (distance) => {
      const j = app.get("j"), n = tf.clamp(Math.round(distance), -far, far);
      const key = tf.clamp(j, Math.max(0, -n), Math.min(far, far - n));
      app.set({ i: key + n, j: key });
    };
    const pull = (event) => go(((graph.at(event)[0] - place.left) / (place.right - place.left)) * 2 * far - far);
    graph.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      graph.canvas.setPointerCapture(event.pointerId);
      pull(event);
    });
    graph.canvas.addEventListener("pointermove", (event) => { if (graph.canvas.hasPointerCapture(event.pointerId)) pull(event); });
    faces.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const by = event.shiftKey ? 10 : 1;
      const to = {
        ArrowUp: ["i", by], ArrowDown: ["i", -by], ArrowRight: ["j", by], ArrowLeft: ["j", -by],
        PageUp: ["shift", 10], PageDown: ["shift", -10], Home: ["shift", -1e9], End: ["shift", 1e9],
      }[event.key];
      if (!to) return;
      event.preventDefault();
      event.stopPropagation();
      app.set(to[0], tf.clamp(app.get(to[0]) + to[1], 0, to[0] === "shift" ? tf.declared.knobs.shift.high : far));
    });

    return {
      draw() {
        const [i, j, shift, base, s] = ["i", "j", "shift", "base", "interpolate"].map((key) => app.get(key));
        const [q, k] = vectors(), distance = i - j, theta = speeds(q.length, base);
        const at = { i: (i + shift) / s, j: (j + shift) / s };
        const list = arrows(q, k, distance / s, theta), score = shadow(list);
        const [tq, tk] = [turned(q, at.i, theta), turned(k, at.j, theta)];
        const product = tq.reduce((sum, x, n) => sum + x * tk[n], 0);
        drawClocks(q, k, at, theta, list);
        drawSum(list);
        drawGraph(q, k, distance, base, s);
        shown.distance(number(distance, 0));
        shown.score(number(score, 3));
        shown.product(number(product, 3));
        shown.slow(`${tf.count((TURN * s) / theta.at(-1))} positions`);
        app.root.dataset.numbers = JSON.stringify({ list, score, product });
        faces.label(`${theta.length} clocks, query at ${i + shift}, key at ${j + shift}. Arrow keys up and down move the query, left and right the key, page keys both`);
        app.say(`Query at ${i + shift}, key at ${j + shift}: distance ${number(distance, 0)}, score ${number(score)}`);
      },
    };
  },
});
