// Shares of a block's operations over the length: 8 L d², 4 L² d and 4 L d d_ff.

const flops = (L, d, factor) => ({ projections: 8 * L * d * d, scores: 4 * L * L * d, feed: 4 * L * d * d * factor });
const NAMES = { feed: "feed-forward", projections: "projections", scores: "scores and blend" };

function amount(x) {
  const units = ["", " thousand", " million", " billion", " trillion", " quadrillion"];
  let k = 0;
  while (x >= 999.5 && k < units.length - 1) { x /= 1000; k++; }
  return tf.sig(x) + units[k];
}

export default tf.explorer({
  setup(app) {
    const lengths = tf.declared.knobs.L.of;
    const picture = app.canvas(app.picture, { label: "", height: (w) => tf.clamp(w * 0.62, 230, 320), keys: true });
    app.knob("L", { format: tf.count });
    app.knob("d", { format: tf.count });
    app.knob("factor", { format: (x) => `${x} d` });
    const shown = Object.fromEntries(Object.entries(NAMES).map(([key, name]) => [key, app.readout(name)]));
    const total = app.readout("operations of one block");
    const crossing = app.readout("scores overtake the feed-forward at");
    const weights = app.readout("weights in the feed-forward");

    picture.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4, Home: -99, End: 99 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const L = app.get("L"), at = lengths.reduce((best, x, k) => (Math.abs(x - L) < Math.abs(lengths[best] - L) ? k : best), 0);
      app.set("L", lengths[tf.clamp(at + by, 0, lengths.length - 1)]);
    });

    function draw(L, d, factor) {
      const { ctx, width, height } = picture.begin(), c = app.colours;
      const [left, right, top, bottom] = [40, 12, 12, 34];
      const [low, high] = [Math.log2(lengths[0]), Math.log2(lengths.at(-1))];
      const x = (n) => left + ((width - left - right) * (Math.log2(n) - low)) / (high - low);
      const y = (share) => height - bottom - (height - top - bottom) * share;
      const N = 96, at = Array.from({ length: N + 1 }, (_, k) => 2 ** (low + ((high - low) * k) / N));
      const fill = { feed: tf.mix(c.page, c.ink, 0.3), projections: tf.mix(c.page, c.ink, 0.12), scores: c.attention };
      const below = at.map(() => 0), middle = {};
      for (const key of ["feed", "projections", "scores"]) {
        const share = at.map((n) => { const f = flops(n, d, factor); return f[key] / (f.feed + f.projections + f.scores); });
        ctx.fillStyle = fill[key];
        ctx.beginPath();
        at.forEach((n, k) => (k ? ctx.lineTo(x(n), y(below[k])) : ctx.moveTo(x(n), y(below[k]))));
        for (let k = N; k >= 0; k--) ctx.lineTo(x(at[k]), y(below[k] + share[k]));
        ctx.fill();
        const widest = share.reduce((best, s, k) => (k > 10 && k < N - 14 && s > share[best] ? k : best), key === "scores" ? N - 15 : 12);
        middle[key] = [x(at[widest]), y(below[widest] + share[widest] / 2), share[widest]];
        share.forEach((s, k) => { below[k] += s; });
      }
      ctx.strokeStyle = c.page;
      ctx.lineWidth = 1;
      ctx.font = `600 12px ${app.font}`;
      ctx.textBaseline = "middle";
      for (const [key, [px, py, share]] of Object.entries(middle)) {
        if (share < 0.09) continue;
        const wide = ctx.measureText(NAMES[key]).width;
        ctx.fillStyle = key === "scores" ? c.page : c.ink;
        ctx.textAlign = "left";
        ctx.fillText(NAMES[key], tf.clamp(px - wide / 2, left + 6, width - right - wide - 6), py);
      }
      ctx.font = `11px ${app.font}`;
      ctx.fillStyle = c.muted;
      ctx.textAlign = "right";
      for (const share of [0, 0.5, 1]) ctx.fillText(`${100 * share}%`, left - 6, y(share));
      ctx.textAlign = "center";
      for (const n of [16, 256, 4096, 65536]) ctx.fillText(tf.count(n), x(n), height - bottom + 11);
      ctx.fillText("length L (log)", (left + width - right) / 2, height - 7);
      const cross = factor * d; // 4 L² d = 4 L d d_ff
      if (cross >= lengths[0] && cross <= lengths.at(-1)) {
        ctx.strokeStyle = c.ink;
        ctx.setLineDash([4, 4]);
        ctx.lineWidth = 1.5;
        ctx.beginPath(); ctx.moveTo(x(cross), top); ctx.lineTo(x(cross), height - bottom); ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.strokeStyle = c.query;
      ctx.lineWidth = 2.5;
      ctx.beginPath(); ctx.moveTo(x(L), top - 4); ctx.lineTo(x(L), height - bottom + 4); ctx.stroke();
    }

    return {
      draw() {
        const [L, d, factor] = ["L", "d", "factor"].map((key) => app.get(key));
        const found = flops(L, d, factor), sum = found.feed + found.projections + found.scores;
        draw(L, d, factor);
        for (const key of Object.keys(NAMES)) shown[key](`${tf.sig((100 * found[key]) / sum)} %`);
        total(amount(sum));
        crossing(`L = ${tf.count(factor * d)}`);
        weights(`${tf.sig((100 * 2 * factor) / (2 * factor + 4))} % of the block`);
        app.root.dataset.flops = JSON.stringify(found);
        const words = Object.entries(NAMES).map(([key, name]) => `${name} ${Math.round((100 * found[key]) / sum)} %`).join(", ");
        picture.label(`Shares over the length; at L = ${L}: ${words}. Dashed: L = ${factor * d}, where scores and feed-forward cost the same. Arrow keys move L`);
        app.say(`L = ${tf.count(L)}, d = ${tf.count(d)}: ${words} of ${amount(sum)} operations.`);
      },
    };
  },
});
