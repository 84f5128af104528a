// Layer n of N is scored while n = N or s/T < n/2N; s and T are whole numbers, so this is exact.

const WHOLE = tf.data.whole;
const isOn = (n, s, N, everyLayer) => n === N || (everyLayer && 2 * N * s < n * WHOLE);
const until = (n, N, everyLayer) => (n === N ? 1 : everyLayer ? n / (2 * N) : 0);
const percent = (x) => `${Number((100 * x).toFixed(1))} %`;

// forward FLOPs of a window: N blocks with d_ff = 4d, and so many classifiers at so many positions
const flops = (L, d, V, N, classifiers, positions) => N * (24 * L * d * d + 4 * L * L * d) + classifiers * 2 * positions * d * V;

function state(get) {
  const [N, s, L, d, V, a, b, c] = ["N", "progress", "L", "d", "vocab", "every_position", "every_layer", "two_targets"].map(get);
  const targets = c ? 2 : 1, positions = a ? L : 1;
  const on = Array.from({ length: N }, (_, k) => isOn(k + 1, s, N, b));
  const count = on.filter(Boolean).length;
  const plain = flops(L, d, V, N, 1, L);
  const work = (layers) => flops(L, d, V, N, layers * targets, positions) / plain;
  return {
    N, s, L, d, V, b, targets, positions, on, count, work,
    predictions: count * targets * positions,
    weight: count * tf.data.weights.slice(0, targets).reduce((sum, x) => sum + x, 0),
    now: work(count), mean: work(b ? 1 + (N - 1) / 4 : 1), most: work(b ? N : 1),
    share: (count * targets * 2 * positions * d * V) / flops(L, d, V, N, count * targets, positions),
  };
}

export default tf.explorer({
  setup(app) {
    const LEFT = 46, RIGHT = 14, TOP = 22, AXIS = 40, STRIP = 62;
    const view = app.canvas(app.picture, { label: "", height: (w) => tf.clamp(w * 0.62, 250, 360) + STRIP + 30, keys: true, className: "ls-picture" });
    app.knob("progress", { format: (x) => percent(x / WHOLE) });
    app.knob("N");
    app.knob("every_position");
    app.knob("every_layer");
    app.knob("two_targets");
    app.knob("vocab", { format: tf.count });
    const shown = {
      layers: app.readout("layers scored now"),
      predictions: app.readout("predictions per window"),
      weight: app.readout("sum of weights"),
      share: app.readout("classifiers' share"),
      now: app.readout("this step ÷ plain step"),
      mean: app.readout("all steps ÷ plain steps"),
    };
    let place = null;

    function write(ctx, text, x, y, colour, align = "center", bold = false) {
      ctx.font = `${bold ? "600 " : ""}11px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.fillStyle = colour;
      ctx.fillText(text, x, y);
    }

    function draw() {
      const now = state((key) => app.get(key)), { N, s, on } = now, layer = Math.min(app.get("layer"), N);
      const { ctx, width, height } = view.begin(), c = app.colours;
      const wide = width - LEFT - RIGHT, tall = height - TOP - AXIS - STRIP, row = tall / N;
      const x = (share) => LEFT + share * wide, y = (n) => TOP + tall - n * row; // top edge of layer n
      place = { x0: LEFT, wide, tall, row };
      const gap = row > 7 ? 2 : row > 4 ? 1 : 0, cursor = x(s / WHOLE);

      write(ctx, "layer n", 4, 9, c.muted, "left");
      ctx.fillStyle = tf.mix(c.page, c.grid, 0.35);
      ctx.fillRect(LEFT, TOP, wide, tall);
      for (let n = 1; n <= N; n++) { // where a layer is scored; stronger where it is scored now
        const edge = x(until(n, N, now.b)), top = y(n) + gap / 2, high = Math.max(row - gap, 0.75);
        ctx.fillStyle = tf.mix(c.page, c.attention, on[n - 1] ? 0.85 : 0.3);
        ctx.fillRect(LEFT, top, edge - LEFT, high);
        if (on[n - 1]) { // what is still to come of it
          ctx.fillStyle = tf.mix(c.page, c.attention, 0.5);
          ctx.fillRect(cursor, top, Math.max(edge - cursor, 0), high);
        }
      }
      ctx.strokeStyle = c.ink; // the layer that is looked at
      ctx.lineWidth = 1.5;
      ctx.strokeRect(LEFT - 1, y(layer) - 1, wide + 2, Math.max(row, 2) + 2);
      const label = TOP + tall - (layer - 0.5) * row;
      write(ctx, String(layer), LEFT - 8, tf.clamp(label, TOP + 5, TOP + tall - 5), c.ink, "right", true);
      for (const n of N === 1 ? [] : [1, N]) {
        const at = tf.clamp(TOP + tall - (n - 0.5) * row, TOP + 5, TOP + tall - 5);
        if (Math.abs(at - label) > 13) write(ctx, String(n), LEFT - 8, at, c.muted, "right");
      }

      // below: the work of a step, in plain steps
      const base = height - 20, high = STRIP - 26, [low, most] = [Math.min(1, now.work(1)), Math.max(now.most, 1)];
      const up = (work) => base - 4 - ((work - low) / (most - low || 1)) * (high - 8);
      ctx.beginPath();
      ctx.moveTo(x(0), base);
      for (let n = 0; n < N; n++) { // n layers have left
        const layers = now.b ? N - n : 1, [from, to] = now.b ? [n / (2 * N), n === N - 1 ? 1 : (n + 1) / (2 * N)] : [0, 1];
        ctx.lineTo(x(from), up(now.work(layers)));
        ctx.lineTo(x(to), up(now.work(layers)));
        if (!now.b) break;
      }
      ctx.lineTo(x(1), base);
      ctx.closePath();
      ctx.fillStyle = tf.mix(c.page, c.attention, 0.3);
      ctx.strokeStyle = c.attention;
      ctx.lineWidth = 1.5;
      ctx.fill();
      ctx.stroke();
      ctx.setLineDash([3, 3]);
      ctx.strokeStyle = c.muted;
      ctx.beginPath();
      ctx.moveTo(LEFT, up(1));
      ctx.lineTo(LEFT + wide, up(1));
      ctx.stroke();
      ctx.setLineDash([]);
      write(ctx, "1", LEFT - 8, up(1), c.muted, "right");
      if (up(1) - up(most) > 13) write(ctx, tf.sig(most), LEFT - 8, up(most), c.muted, "right");
      write(ctx, "work of a step ÷ plain step", LEFT + wide, base - high - 4, c.muted, "right");

      for (const share of [0, 0.25, 0.5, 0.75, 1]) {
        ctx.fillStyle = c.muted;
        ctx.fillRect(x(share) - 0.5, TOP + tall, 1, 4);
        write(ctx, `${100 * share} %`, x(share), TOP + tall + 12, c.muted, share === 1 ? "right" : "center");
      }
      write(ctx, "training done", x(0.5), height - 8, c.muted);
      ctx.strokeStyle = c.ink;
      ctx.fillStyle = c.ink;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(cursor, TOP - 2);
      ctx.lineTo(cursor, base);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(cursor, TOP - 6, 5, 0, 2 * Math.PI);
      ctx.fill();

      shown.layers(`${now.count} of ${N}`);
      shown.predictions(tf.count(now.predictions));
      shown.weight(tf.sig(now.weight, 4));
      shown.share(percent(now.share));
      shown.now(tf.sig(now.now, 4));
      shown.mean(tf.sig(now.mean, 4));
      Object.assign(app.root.dataset, { on: JSON.stringify(on), now: now.now, mean: now.mean });
      const first = on.indexOf(true) + 1, end = until(layer, N, now.b);
      const which = first === N ? `only layer ${N} is scored` : `layers ${first} to ${N} are scored`;
      const about = layer === N ? `Layer ${layer}, the last one, is always scored.`
        : !now.b ? `Layer ${layer} is never scored.`
        : `Layer ${layer} ${on[layer - 1] ? "will be" : "was"} scored until ${percent(end)}.`;
      const words = `At ${percent(s / WHOLE)} of training ${which}. ${about}`;
      app.say(words);
      view.label(`${words} Arrow keys left and right move in time, up and down choose a layer.`);
    }

    const pick = (event) => {
      const [px, py] = view.at(event), N = app.get("N");
      const chosen = { progress: Math.round(tf.clamp((px - place.x0) / place.wide, 0, 1) * WHOLE) };
      const n = Math.ceil((TOP + place.tall - py) / place.row);
      if (n >= 1 && n <= N) chosen.layer = n;
      app.set(chosen);
    };
    view.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      view.canvas.setPointerCapture(event.pointerId);
      pick(event);
    });
    view.canvas.addEventListener("pointermove", (event) => { if (view.canvas.hasPointerCapture(event.pointerId)) pick(event); });
    view.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const s = app.get("progress"), N = app.get("N"), n = Math.min(app.get("layer"), N);
      const [time, which] = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], PageUp: [100, 0], PageDown: [-100, 0], Home: [-WHOLE, 0], End: [WHOLE, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
      if (time === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      app.set({ progress: tf.clamp(s + time, 0, WHOLE), layer: tf.clamp(n + which, 1, N) });
    });

    return {
      draw,
    };
  },
});
