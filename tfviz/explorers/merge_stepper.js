// Byte-pair merges of a short text: count pairs within pieces, merge the most frequent, repeat.

const PIECE = / ?[\p{L}\p{N}_]+| ?[^\p{L}\p{N}_\s]+|\s+/gu;
const utf8 = new TextEncoder();

function merged(row, [u, w], made) {
  const out = [];
  for (const token of row) {
    if (out.length && out.at(-1) === u && token === w) out[out.length - 1] = made;
    else out.push(token);
  }
  return out;
}

// Pairs by how often they occur, then by their numbers: the first is merged next.
function ranked(rows) {
  const counts = new Map();
  for (const row of rows) for (let k = 1; k < row.length; k++) {
    const key = row[k - 1] * 65536 + row[k];
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([key, often]) => [Math.floor(key / 65536), key % 65536, often]);
}

// All states from no merge to the last: rows of tokens, the pairs that compete, the pair merged.
function history(text, most) {
  let rows = (text.match(PIECE) || []).map((piece) => [...utf8.encode(piece)]);
  const steps = [{ rows, pairs: ranked(rows), merge: null }];
  while (steps.length <= most && steps.at(-1).pairs.length) {
    const [u, w, often] = steps.at(-1).pairs[0], made = 255 + steps.length;
    rows = rows.map((row) => merged(row, [u, w], made));
    steps.push({ rows, pairs: ranked(rows), merge: [u, w, often] });
  }
  return steps;
}

export default tf.explorer({
  fit(fine) {
    const size = "text" in fine ? utf8.encode(fine.text).length : 0;
    if (size < 1 || size > tf.data.letters) delete fine.text;
    return fine;
  },
  setup(app) {
    const { el } = tf;
    const chips = el("p", { className: "ms-chips" });
    app.picture.parentElement.before(chips);

    const body = el("tbody");
    const table = el("table", { className: "ms-pairs" }, el("caption", {}, "pairs that stand side by side most often"), body);
    app.picture.append(table, el("p", { className: "ms-title" }, "tokens after each merge"));
    const curve = app.canvas(app.picture, { label: "", height: () => 150, keys: true, className: "ms-curve" });

    let steps = [], of;
    const last = () => steps.length - 1;
    const now = () => tf.clamp(app.get("merges"), 0, last());
    const slider = app.knob("merges", { read: now });
    const buttons = el("div", { className: "ms-buttons" });
    app.controls.append(buttons);
    const back = app.button("← undo", () => app.set("merges", Math.max(0, now() - 1)), { into: buttons });
    const on = app.button("merge →", () => app.set("merges", Math.min(last(), now() + 1)), { into: buttons });
    const input = el("input", { type: "text", id: app.id("text"), maxLength: tf.data.letters, autocomplete: "off", spellcheck: false });
    input.dataset.lmSuppressShortcuts = "true";
    input.addEventListener("input", () => {
      const size = utf8.encode(input.value).length;
      if (size >= 1 && size <= tf.data.letters) app.set("text", input.value);
    });
    app.controls.append(el("div", { className: "tfx-field tfx-select" }, el("label", { htmlFor: input.id }, "your own text"), input));
    const shown = {
      tokens: app.readout("tokens", { into: app.controls }),
      each: app.readout("bytes in a token, on average", { into: app.controls }),
      table: app.readout("rows of the table (256 + merges)", { into: app.controls }),
    };

    let bytes = []; // of each token
    const name = (token) => {
      const text = new TextDecoder().decode(new Uint8Array(bytes[token]));
      if (text.includes("\ufffd")) return bytes[token].map((b) => b.toString(16).toUpperCase().padStart(2, "0")).join(" ");
      return text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");
    };

    curve.canvas.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: now() - 1, ArrowDown: now() - 1, ArrowRight: now() + 1, ArrowUp: now() + 1, PageDown: now() - 10, PageUp: now() + 10, Home: 0, End: last() }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      app.set("merges", tf.clamp(to, 0, last()));
    });

    function drawCurve(lengths, k) {
      const { ctx, width, height } = curve.begin(), c = app.colours;
      const [left, right, top, bottom] = [34, 14, 10, 22];
      const x = (n) => left + ((width - left - right) * n) / Math.max(1, last()), y = (v) => height - bottom - ((height - top - bottom) * v) / lengths[0];
      ctx.strokeStyle = c.grid;
      ctx.fillStyle = c.muted;
      ctx.lineWidth = 1;
      ctx.font = `11px ${app.font}`;
      ctx.textBaseline = "middle";
      for (const v of [0, lengths[0]]) {
        ctx.beginPath(); ctx.moveTo(left, y(v)); ctx.lineTo(width - right, y(v)); ctx.stroke();
        ctx.textAlign = "right";
        ctx.fillText(String(v), left - 6, y(v));
      }
      for (const n of [0, last()]) {
        ctx.textAlign = "center";
        ctx.fillText(n ? `${n} merges` : "0", n ? width - right - 24 : x(0), height - 9);
      }
      const line = (to, colour, wide) => {
        ctx.strokeStyle = colour;
        ctx.lineWidth = wide;
        ctx.beginPath();
        for (let n = 0; n <= to; n++) n ? ctx.lineTo(x(n), y(lengths[n])) : ctx.moveTo(x(0), y(lengths[0]));
        ctx.stroke();
      };
      line(last(), tf.mix(c.page, c.muted, 0.6), 1.5);
      line(k, c.attention, 2.5);
      ctx.fillStyle = c.attention;
      ctx.strokeStyle = c.page;
      ctx.lineWidth = 2;
      ctx.beginPath(); ctx.arc(x(k), y(lengths[k]), 6, 0, 2 * Math.PI); ctx.fill(); ctx.stroke();
    }

    return {
      draw() {
        const text = app.get("text");
        if (of !== text) {
          [of, steps] = [text, history(text, tf.declared.knobs.merges.high)];
          bytes = Array.from({ length: 256 }, (_, n) => [n]);
          for (const { merge } of steps.slice(1)) bytes.push([...bytes[merge[0]], ...bytes[merge[1]]]);
          slider.limit(0, last());
          if (input.value !== text) input.value = text;
        }
        const k = now(), { rows, pairs, merge } = steps[k], newest = 255 + k;
        back.disabled = k === 0;
        on.disabled = k === last();
        chips.replaceChildren(...rows.map((row) => el("span", { className: "ms-piece" }, ...row.map((token) =>
          el("span", { className: `ms-chip${token > 255 ? " is-merged" : ""}${k && token === newest ? " is-new" : ""}` }, name(token))))));
        const most = pairs.length ? pairs[0][2] : 1;
        body.replaceChildren(...Array.from({ length: tf.data.shown }, (_, n) => {
          if (!pairs[n]) return el("tr", {}, el("th", { scope: "row" }, "\u00a0"), el("td"));
          const [u, w, often] = pairs[n];
          const bar = el("span", { className: "ms-bar" });
          bar.style.width = `calc((100% - 6.5rem) * ${often / most})`;
          return el("tr", { className: n ? "" : "is-next" }, el("th", { scope: "row" }, `${name(u)} + ${name(w)}`),
            el("td", {}, bar, `${often}${n ? "" : " · next"}`));
        }));
        const lengths = steps.map((s) => s.rows.reduce((sum, row) => sum + row.length, 0));
        drawCurve(lengths, k);
        const size = lengths[0], each = tf.sig(size / lengths[k]);
        shown.tokens(`${lengths[k]} for ${size} bytes`);
        shown.each(each);
        shown.table(String(256 + k));
        curve.label(`Tokens after each merge: ${lengths[0]} at 0, ${lengths[k]} after ${k}, ${lengths[last()]} after all ${last()}; arrow keys merge and undo`);
        app.root.dataset.tokens = JSON.stringify(rows.flat());
        app.root.dataset.pairs = JSON.stringify(pairs.slice(0, tf.data.shown));
        const done = merge ? `Merge ${k}: “${name(merge[0])}” and “${name(merge[1])}”, ${merge[2]} times side by side, became one token.` : "No merge yet: every byte is a token.";
        app.say(`${done} The text has ${lengths[k]} tokens of ${each} bytes on average.`);
      },
    };
  },
});
