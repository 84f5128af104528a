// Heads of a trained model on a text: a picker made of all maps, one map large, and arcs from a query to its keys.

const FULL = 65535;
const number = (x, digits = 2) => (Number(x.toFixed(digits)) === 0 ? 0 : x).toFixed(digits);
const shown = (letter) => (letter === " " ? "·" : letter);
const said = (letter) => (letter === " " ? "space" : `“${letter}”`);

// A of all heads from text: two bytes a weight, the causal half row after row; NaN where j > i.
function unpack(text, layers, heads, L) {
  const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  let at = 0;
  return [...Array(layers)].map(() => [...Array(heads)].map(() => {
    const A = new Float64Array(L * L).fill(NaN);
    for (let i = 0; i < L; i++) for (let j = 0; j <= i; j++, at += 2) A[i * L + j] = (raw[at] + 256 * raw[at + 1]) / FULL;
    return A;
  }));
}

// Of one map: the mean entropy of its rows in nats, the mean distance, the mean weight on the token before.
function facts(A, L) {
  let entropy = 0, distance = 0, before = 0;
  for (let i = 0; i < L; i++) for (let j = 0; j <= i; j++) {
    const a = A[i * L + j];
    if (a > 0) entropy -= a * Math.log(a);
    distance += a * (i - j);
    if (j === i - 1) before += a;
  }
  return { entropy: entropy / L, distance: distance / L, before: before / (L - 1) };
}

export default tf.explorer({
  setup(app) {
    const { el } = tf;
    const [layers, heads] = app.get("shape");
    let pointed = null; // the letter under the mouse: looked at, not chosen

    const arcs = app.canvas(app.picture, { label: "", height: (w) => Math.max(126, Math.min(190, w * 0.28)), keys: true, className: "th-arcs" });
    const frame = el("div", { className: "th-frame" });
    app.picture.append(frame);
    const big = app.matrix(frame, { label: "", pick: (i) => choose(i) });
    const note = el("p", { className: "th-note" }, "Rows ask, columns are asked; hatched: not allowed. The shade is the root of the weight, so that small weights show.");
    app.picture.append(note);

    app.knob("text", {
      as: "select", options: app.get("texts").map((text, n) => [n, text]),
      write: (n) => app.set({ text: Number(n), row: app.get("texts")[n].length - 1 }),
    });
    // the picker: a radio button for every head, with its map as the label
    const group = el("fieldset", { className: "tfx-field th-picker" }, el("legend", {}, "head"));
    const name = app.id("pick");
    const picks = [...Array(layers)].map((_, m) => {
      const line = el("div", { className: "th-line", style: `--heads: ${heads}` }, el("span", { className: "th-layer" }, `layer ${m}`));
      group.append(line);
      return [...Array(heads)].map((_, n) => {
        const input = el("input", { type: "radio", name, id: `${name}-${m}-${n}`, className: "tfx-hidden", "aria-label": `layer ${m}, head ${n}` });
        input.dataset.lmSuppressShortcuts = "true";
        input.addEventListener("change", () => app.set({ layer: m, head: n }));
        const canvas = el("canvas", { className: "th-small" });
        line.append(input, el("label", { htmlFor: input.id, title: `layer ${m}, head ${n}` }, canvas, String(n)));
        return { input, canvas };
      });
    });
    app.controls.append(group);
    const box = el("div", { className: "th-facts" });
    app.controls.append(box);
    const out = {
      entropy: app.readout("entropy of a row", { into: box }),
      distance: app.readout("mean distance", { into: box }),
      before: app.readout("weight on the letter before", { into: box }),
    };
    const lost = Object.keys(app.get("whole")).length
      ? Object.fromEntries(Object.keys(app.get("whole")).map((task) => [task, app.readout(`loss on ${task}, without this head`, { into: box })]))
      : {};

    const length = () => app.get("texts")[app.get("text")].length;
    const choose = (i) => app.set("row", tf.clamp(i, 0, length() - 1));
    let maps, of;
    const table = () => {
      const packed = app.get("maps")[app.get("text")];
      if (of !== packed) [of, maps] = [packed, unpack(packed, layers, heads, length())];
      return maps;
    };

    const shade = (a) => tf.mix(app.colours.page, app.colours.attention, Math.sqrt(a));
    function small(canvas, A, L) {
      canvas.width = canvas.height = L;
      const ctx = canvas.getContext("2d"), image = ctx.createImageData(L, L), pixels = new Uint32Array(image.data.buffer);
      const shades = [...Array(65)].map((_, k) => tf.word(shade(k / 64))), shut = tf.word(tf.mix(app.colours.page, app.colours.grid, 0.35));
      for (let k = 0; k < L * L; k++) pixels[k] = A[k] === A[k] ? shades[Math.round(Math.min(1, A[k]) * 64)] : shut;
      ctx.putImageData(image, 0, 0);
    }

    let step = 12, left = 0; // of the letters in the arcs
    function drawArcs(text, A, i) {
      const { ctx, width, height } = arcs.begin(), c = app.colours, L = text.length;
      step = Math.min(26, (width - 8) / L);
      left = (width - step * L) / 2;
      const x = (k) => left + (k + 0.5) * step, base = height - 34, size = Math.min(20, Math.max(10, step * 1.05));
      for (let j = 0; j <= i; j++) {
        const a = A[i * L + j];
        ctx.fillStyle = shade(a);
        ctx.fillRect(x(j) - step / 2 + 0.5, base + 2, step - 1, size + 8);
      }
      // arcs from the query back to its keys, the strongest on top
      const order = [...Array(i + 1).keys()].sort((p, q) => A[i * L + p] - A[i * L + q]);
      for (const j of order) {
        const a = A[i * L + j];
        if (a < 0.01) continue;
        ctx.strokeStyle = c.attention;
        ctx.globalAlpha = 0.25 + 0.75 * a;
        ctx.lineWidth = 0.75 + 7 * a;
        ctx.beginPath();
        if (j === i) ctx.arc(x(i), base - 7, 6, 0.75 * Math.PI, 2.25 * Math.PI);
        else {
          const half = (x(i) - x(j)) / 2, tall = Math.min(half, 18 + ((base - 26) * (i - j)) / Math.max(1, L - 1));
          ctx.ellipse((x(i) + x(j)) / 2, base, half, tall, 0, Math.PI, 2 * Math.PI);
        }
        ctx.stroke();
      }
      ctx.globalAlpha = 1;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      for (let k = 0; k < L; k++) {
        const strong = k <= i && A[i * L + k] > 0.35;
        ctx.font = `${k === i ? "700 " : "500 "}${size}px ui-monospace, "DejaVu Sans Mono", monospace`;
        ctx.fillStyle = k > i ? tf.mix(c.page, c.muted, 0.6) : strong ? c.page : k === i ? c.query : c.ink;
        ctx.fillText(shown(text[k]), x(k), base + 6 + size / 2);
      }
      ctx.strokeStyle = c.query;
      ctx.lineWidth = 2.5;
      ctx.strokeRect(x(i) - step / 2, base + 1, step, size + 10);
    }
    const letterAt = (event) => tf.clamp(Math.floor((arcs.at(event)[0] - left) / step), 0, length() - 1);
    arcs.canvas.addEventListener("click", (event) => choose(letterAt(event)));
    arcs.canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse") return;
      const found = letterAt(event);
      if (found !== pointed) { pointed = found; app.redraw("glance"); }
    });
    arcs.canvas.addEventListener("pointerleave", () => { pointed = null; app.redraw("glance"); });
    arcs.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, PageUp: -5, PageDown: 5, Home: -99, End: 99 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      choose(app.get("row") + by);
    });

    return {
      draw(changed) {
        const text = app.get("texts")[tf.clamp(app.get("text"), 0, app.get("texts").length - 1)], L = text.length;
        const m = tf.clamp(app.get("layer"), 0, layers - 1), n = tf.clamp(app.get("head"), 0, heads - 1);
        const all = table(), A = all[m][n], chosen = tf.clamp(app.get("row"), 0, L - 1), i = pointed ?? chosen;
        if (["text", "maps", "theme"].some((key) => changed.has(key))) picks.forEach((line, r) => line.forEach(({ canvas }, k) => small(canvas, all[r][k], L)));
        picks.forEach((line, r) => line.forEach(({ input }, k) => { input.checked = r === m && k === n; }));
        drawArcs(text, A, i);
        big.draw({ rows: L, values: A, row: i, ramp: shade });
        const { entropy, distance, before } = facts(A, L);
        out.entropy(`${number(entropy)} nats ≈ ${number(Math.exp(entropy), 1)} keys`);
        out.distance(`${number(distance, 1)} letters`);
        out.before(number(before));
        for (const [task, show] of Object.entries(lost)) show(`${number(app.get("whole")[task])} → ${number(app.get("removed")[m][n][task])} nats`);
        app.root.dataset.facts = JSON.stringify({ entropy, distance, before });
        app.root.dataset.weights = JSON.stringify([...A.slice(i * L, i * L + i + 1)]);
        const best = [...Array(i + 1).keys()].sort((p, q) => A[i * L + q] - A[i * L + p]).slice(0, 2);
        const where = (j) => (j === i ? "itself" : `${said(text[j])} ${i - j} back`);
        const words = `Layer ${m}, head ${n}: letter ${i}, ${said(text[i])}, puts ${best.map((j) => `${number(A[i * L + j])} on ${where(j)}`).join(" and ")}.`;
        arcs.label(`Text ${text}: arcs from the query to its keys; arrow keys choose the query. ${words}`);
        big.label(`Attention weights of layer ${m}, head ${n}, ${L} by ${L}; arrow keys choose the query`);
        if (pointed === null) app.say(words);
      },
    };
  },
});
