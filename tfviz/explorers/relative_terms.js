// Relative positions: Shaw's labels, the four terms of Transformer-XL and its shift, T5's buckets.

const labelOf = new Function(`return ${tf.data.label}`)();
const { longest, shifted, bucketed, steps } = tf.data.sizes;
const count = (n) => [...Array(n).keys()];
const dot = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);
const number = (x, digits = 2) => (Number(x.toFixed(digits)) === 0 ? 0 : x).toFixed(digits).replace("-", "−");
const sign = (n) => String(n).replace("-", "−");

// The smallest distance of every bucket, in whole numbers as in Python.
const known = new Map();
function edges(buckets, far) {
  const key = `${buckets},${far}`;
  if (!known.has(key)) {
    const e = buckets / 2, found = count(e), rest = BigInt(buckets - e);
    let n = BigInt(e);
    for (let m = 0n; m < rest; m++) {
      while (n ** rest < BigInt(far) ** m * BigInt(e) ** (rest - m)) n++;
      found.push(Number(n));
    }
    known.set(key, found);
  }
  return known.get(key);
}
function bucketOf(n, buckets, far, future) {
  if (future) return bucketOf(Math.abs(n), buckets / 2, far, false) + (n < 0 ? buckets / 2 : 0);
  const first = edges(buckets, far), distance = Math.max(0, n);
  let b = first.length - 1;
  while (first[b] > distance) b--;
  return b;
}

function fourTerms({ Q, K, R, u, v, terms }) {
  const L = Q.length, r = (i, j) => R[L - 1 - (i - j)];
  const table = (f) => Q.map((_, i) => K.map((_, j) => f(i, j)));
  const four = [
    table((i, j) => dot(Q[i], K[j])), table((i, j) => dot(Q[i], r(i, j))),
    table((i, j) => dot(u, K[j])), table((i, j) => dot(v, r(i, j))),
  ];
  const sum = table((i, j) => four.reduce((total, term, n) => total + (terms[n] ? term[i][j] : 0), 0) / Math.sqrt(u.length));
  return [...four, sum];
}

// The cells [query, distance] after `step`; null where a zero was padded.
function shift(step) {
  const n = shifted, rows = count(n).map((i) => count(n).map((c) => [i, n - 1 - c]));
  if (step === 0) return rows;
  const padded = rows.map((row) => [null, ...row]);
  if (step === 1) return padded;
  const flat = padded.flat(), cut = count(n + 1).map((i) => flat.slice(i * n, (i + 1) * n));
  return step === 2 ? cut : cut.slice(1);
}

const TERMS = [["q·k", "content"], ["q·r", "content, place"], ["u·k", "every query, content"], ["v·r", "every query, place"]];
const WORDS = ["each query by each distance", "a zero in front of every row", "the same numbers, cut into rows of 5", "first row dropped", "keys after the query masked"];

export default tf.explorer({
  fit(fine) {
    if (fine.buckets % 4) delete fine.buckets;
    if (fine.terms?.length !== 4) delete fine.terms;
    return fine;
  },
  setup(app) {
    const words = app.get("words"), own = app.get("prompt"), first = app.get("view");
    const views = [["labels", "labels"], ...(words.length ? [["terms", "terms"]] : []), ["shift", "shift"], ["buckets", "buckets"]];
    const side = () => ({ labels: app.get("L"), terms: words.length, shift: shifted, buckets: bucketed })[app.get("view")];
    const picture = app.canvas(app.picture, {
      label: "Relative positions", keys: true,
      height: (width) => {
        const view = app.get("view");
        if (view === "terms") return width >= 460 ? Math.min(width, 620) * 0.5 + 30 : width * 2 + 60;
        return Math.min(width, 470) + (view === "shift" ? 0 : 62);
      },
    });
    app.knob("view", {
      options: views,
      write: (view) => app.set({ view, ...{ labels: { row: 7, column: 2 }, terms: { row: Math.min(4, words.length - 1), column: 1 }, shift: { row: 2, column: 1 }, buckets: { row: 36, column: 14 } }[view] }),
    });
    const only = {
      labels: [
        app.knob("L"),
        app.knob("k"),
        app.knob("causal"),
      ],
      terms: TERMS.map(([name, what], n) => app.checkbox(`term${n}`, {
        label: `${name}  (${what})`, read: () => app.get("terms")[n],
        write: (on) => app.set("terms", app.get("terms").map((x, m) => (m === n ? on : x))),
      })),
      shift: [app.knob("step")],
      buckets: [
        app.knob("buckets"),
        app.knob("far", { scale: [20, 24, 32, 48, 64, 96, 128] }),
        app.knob("future"),
      ],
    };
    const shown = [0, 1, 2].map(() => {
      const before = app.readouts.children.length, set = app.readout("");
      const node = app.readouts.children[before];
      return (label, text) => { node.hidden = !label; if (label) { node.querySelector("dt").textContent = label; set(text); } };
    });

    let places = []; // of the matrices on the canvas: {x, y, cell, rows, columns}
    const choose = (i, j) => app.set({ row: tf.clamp(i, 0, side() - 1), column: tf.clamp(j, 0, side() - 1) });
    picture.canvas.addEventListener("click", (event) => {
      const [x, y] = picture.at(event);
      for (const p of places) {
        const [i, j] = [Math.floor((y - p.y) / p.cell), Math.floor((x - p.x) / p.cell)];
        if (i >= 0 && j >= 0 && i < p.rows && j < p.columns) return choose(i, j);
      }
    });
    picture.canvas.addEventListener("keydown", (event) => {
      const L = side(), page = Math.max(1, Math.round(L / 4));
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0], PageDown: [page, 0], Home: [0, -L], End: [0, L] }[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      choose(Math.min(app.get("row"), L - 1) + move[0], Math.min(app.get("column"), L - 1) + move[1]);
    });

    const text = (ctx, words_, x, y, colour, { size = 12, align = "center", bold = false } = {}) => {
      ctx.font = `${bold ? "600 " : ""}${size}px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.fillStyle = colour;
      ctx.fillText(words_, x, y);
    };
    const signed = (share) => (share >= 0 ? tf.mix(app.colours.page, app.colours.attention, share) : tf.mix(app.colours.page, app.colours.ink, -0.62 * share));
    const readable = (background) => {
      const [r, g, b] = tf.rgb(background).map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
    };
    function hatch(ctx, x, y, w, h) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(x, y, w, h);
      ctx.clip();
      ctx.strokeStyle = app.colours.grid;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (let s = -h; s < w; s += 5) { ctx.moveTo(x + s, y + h); ctx.lineTo(x + s + h, y); }
      ctx.stroke();
      ctx.restore();
    }

    // One matrix: fill(i, j) → colour or null for hatched, mark(i, j) → text.
    function matrix(ctx, x, y, cell, rows, columns, { fill, mark, frame = true, faint }) {
      const c = app.colours, row = Math.min(app.get("row"), rows - 1), column = Math.min(app.get("column"), columns - 1);
      for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
        const [a, b] = [x + j * cell, y + i * cell], colour = fill(i, j);
        if (colour === null) hatch(ctx, a, b, cell, cell);
        else { ctx.fillStyle = colour; ctx.fillRect(a, b, cell, cell); }
        const words_ = mark?.(i, j);
        if (words_) text(ctx, words_, a + cell / 2, b + cell / 2 + 0.5, colour === null || faint?.(i, j) ? c.muted : readable(colour), { size: Math.min(13, cell * (words_.length > 3 ? 0.27 : 0.42)) });
      }
      ctx.strokeStyle = tf.mix(c.page, c.grid, 0.8);
      ctx.lineWidth = 1;
      if (cell > 7) {
        ctx.beginPath();
        for (let n = 1; n < columns; n++) { ctx.moveTo(x + n * cell, y); ctx.lineTo(x + n * cell, y + rows * cell); }
        for (let n = 1; n < rows; n++) { ctx.moveTo(x, y + n * cell); ctx.lineTo(x + columns * cell, y + n * cell); }
        ctx.stroke();
      }
      ctx.strokeStyle = c.muted;
      ctx.strokeRect(x, y, columns * cell, rows * cell);
      if (frame) {
        ctx.lineWidth = 2;
        ctx.strokeStyle = c.key;
        ctx.strokeRect(x + column * cell, y, cell, rows * cell);
        ctx.strokeStyle = c.query;
        ctx.strokeRect(x, y + row * cell, columns * cell, cell);
        ctx.strokeStyle = c.ink;
        ctx.lineWidth = 2.5;
        ctx.strokeRect(x + column * cell, y + row * cell, cell, cell);
      }
      places.push({ x, y, cell, rows, columns });
      return { row, column };
    }
    function ticks(ctx, x, y, cell, L, row, column) {
      const c = app.colours;
      for (const n of new Set([0, L - 1, row])) if (n === row || Math.abs(n - row) * cell > 13) text(ctx, String(n), x - 5, y + (n + 0.5) * cell, n === row ? c.query : c.muted, { size: 11, align: "right", bold: n === row });
      for (const n of new Set([0, L - 1, column])) if (n === column || Math.abs(n - column) * cell > 15) text(ctx, String(n), x + (n + 0.5) * cell, y - 8, n === column ? c.key : c.muted, { size: 11, bold: n === column });
      const half = (L * cell) / 2;
      if (Math.abs((row + 0.5) * cell - half) > 20) text(ctx, "i", x - 8, y + half, c.query, { bold: true, align: "right" });
      if (Math.abs((column + 0.5) * cell - half) > 20) text(ctx, "j", x + half, y - 8, c.key, { bold: true });
    }
    // A row of boxes below: what is stored, once for all pairs.
    function strip(ctx, x, y, width, boxes, title) {
      const c = app.colours, w = width / boxes.reduce((sum, b) => sum + b.wide, 0);
      text(ctx, title, x, y - 8, c.muted, { size: 11, align: "left" });
      let at = x;
      for (const box of boxes) {
        const wide = box.wide * w;
        if (box.colour === null) hatch(ctx, at, y, wide, 22);
        else { ctx.fillStyle = box.colour; ctx.fillRect(at, y, wide, 22); }
        ctx.strokeStyle = tf.mix(c.page, c.grid, 0.8);
        ctx.lineWidth = 1;
        ctx.strokeRect(at, y, wide, 22);
        if (box.text && wide > 7 * box.text.length) text(ctx, box.text, at + wide / 2, y + 11.5, box.colour === null ? c.muted : readable(box.colour), { size: 11 });
        if (box.chosen) { ctx.strokeStyle = c.ink; ctx.lineWidth = 2.5; ctx.strokeRect(at + 1, y - 1, Math.max(3, wide - 2), 24); }
        at += wide;
      }
    }
    const place = (ctx, width, height, L) => {
      const size = Math.min(width - 26, height - 84), cell = size / L;
      return { x: Math.max(24, (width - size) / 2), y: 20, cell, size };
    };

    const draw = {
      labels(ctx, width, height) {
        const L = app.get("L"), k = app.get("k"), causal = app.get("causal"), c = app.colours;
        const table = count(L).map((i) => count(L).map((j) => labelOf(i, j, k)));
        const { x, y, cell, size } = place(ctx, width, height, L);
        const shade = (n) => signed(k ? (n / k) * 0.9 : 0);
        const { row, column } = matrix(ctx, x, y, cell, L, L, { fill: (i, j) => (causal && j > i ? null : shade(table[i][j])), mark: (i, j) => (cell > 17 && !(causal && j > i) ? sign(table[i][j]) : "") });
        ticks(ctx, x, y, cell, L, row, column);
        const used = (n) => Math.abs(n) < L && !(causal && n > 0), n = table[row][column], shut = causal && column > row;
        strip(ctx, x, y + size + 26, size, count(2 * k + 1).map((m) => ({ wide: 1, text: sign(m - k), colour: used(m - k) ? shade(m - k) : null, chosen: m - k === n && !shut })), `Pᵏ: one row for each label −k … k`);
        const pairs = table.flatMap((r, i) => r.filter((_, j) => !causal || j <= i));
        const edge = pairs.filter((m) => Math.abs(m) === k).length;
        shown[0]("rows in each table", `${2 * k + 1}`);
        shown[1]("of them in use here", String(count(2 * k + 1).filter((m) => used(m - k)).length));
        shown[2]("pairs with an outermost label", `${Math.round((100 * edge) / pairs.length)} %`);
        const same = table[row].filter((m, j) => m === n && (!causal || j <= row)).length;
        app.say(shut ? `Query ${row}, key ${column}: after the query, not allowed.`
          : `Query ${row}, key ${column}: j − i = ${sign(column - row)}${n !== column - row ? `, clipped to ${sign(n)}` : `, label ${sign(n)}`}. ${same > 1 ? `${same} keys of this query share that row of the table.` : "No other key of this query has that label."}`);
        picture.label(`Labels of ${L} by ${L} pairs for k = ${k}; query ${row}, key ${column} has label ${n}. Arrow keys choose a pair`);
        return table;
      },
      terms(ctx, width) {
        const state = Object.fromEntries(["Q", "K", "R", "u", "v", "terms"].map((key) => [key, app.get(key)]));
        const all = fourTerms(state), L = words.length, wide = width >= 460, c = app.colours;
        const room = Math.min(width, wide ? 620 : width), left = (width - room) / 2;
        const small = wide ? (room - 104) / 4 : (room - 14) / 2, big = wide ? 2 * small + 26 : room - 30;
        const top = Math.max(...all.slice(0, 4).flat(2).map(Math.abs), 1e-9), most = Math.max(...all[4].flat().map(Math.abs), 1e-9);
        let at;
        TERMS.forEach(([name], n) => {
          const [px, py] = [left + (n % 2) * (small + 12), 20 + Math.floor(n / 2) * (small + 26)], on = state.terms[n];
          text(ctx, on ? name : `${name}  off`, px, py - 9, on ? c.ink : c.muted, { align: "left", bold: on });
          ctx.globalAlpha = on ? 1 : 0.3;
          at = matrix(ctx, px, py, small / L, L, L, { fill: (i, j) => signed(all[n][i][j] / top) });
          ctx.globalAlpha = 1;
        });
        const [bx, by] = wide ? [left + 2 * small + 12 + 62, 20] : [left + 24, 20 + 2 * (small + 26) + 6], cell = Math.min(big, width - bx - 4) / L;
        text(ctx, `sum / √${state.u.length}`, bx, by - 9, c.attention, { align: "left", bold: true });
        matrix(ctx, bx, by, cell, L, L, { fill: (i, j) => signed(all[4][i][j] / most), mark: (i, j) => (cell > 28 ? number(all[4][i][j], 1) : "") });
        const { row, column } = at;
        count(L).forEach((i) => text(ctx, wide ? words[i] : String(i), bx - 6, by + (i + 0.5) * cell, i === row ? c.query : c.muted, { size: 11, align: "right", bold: i === row }));
        count(L).forEach((j) => text(ctx, wide ? words[j] : String(j), bx + (j + 0.5) * cell, by + L * cell + 10, j === column ? c.key : c.muted, { size: wide ? 10 : 11, bold: j === column }));
        const four = all.slice(0, 4).map((t) => t[row][column]);
        shown[0](`“${words[row]}” asks “${words[column]}”, distance ${sign(row - column)}`, four.map((x, n) => (state.terms[n] ? number(x) : "off")).join(" + "));
        shown[1](`sum / √${state.u.length}`, number(all[4][row][column]));
        shown[2]("");
        const best = all[4][row].indexOf(Math.max(...all[4][row]));
        app.say(`“${words[row]}” asks “${words[column]}”: ${TERMS.map(([name], n) => (state.terms[n] ? `${name} ${number(four[n])}` : `${name} off`)).join(", ")}. Highest score of “${words[row]}”: “${words[best]}”.`);
        picture.label(`Four terms and their sum for ${words.join(", ")}; arrow keys choose a pair`);
        return all;
      },
      shift(ctx, width, height) {
        const step = app.get("step"), table = shift(step), c = app.colours;
        const row = Math.min(app.get("row"), shifted - 1);
        const cell = Math.min(64, (Math.min(width, 470) - 70) / (shifted + 1)), x = (width - cell * (step === 1 ? shifted + 1 : shifted)) / 2, y = 46;
        const [rows, columns] = [table.length, table[0].length];
        const masked = (i, j) => step === 4 && j > i;
        matrix(ctx, x, y, cell, rows, columns, {
          frame: false,
          fill: (i, j) => { const at = table[i][j]; if (masked(i, j)) return null; return !at ? tf.mix(c.page, c.grid, 0.6) : at[0] === row ? tf.mix(c.page, c.attention, 1 - 0.17 * at[1]) : c.page; },
          mark: (i, j) => (masked(i, j) ? "" : table[i][j] ? `q${table[i][j][0]}·r${table[i][j][1]}` : "0"),
          faint: (i, j) => table[i][j] && table[i][j][0] !== row,
        });
        if (step >= 3) count(columns).forEach((j) => text(ctx, `key ${j}`, x + (j + 0.5) * cell, y - 10, c.key, { size: 11, bold: true }));
        else if (step === 0) count(columns).forEach((j) => text(ctx, `r${shifted - 1 - j}`, x + (j + 0.5) * cell, y - 10, c.muted, { size: 11 }));
        if (step !== 2) count(rows).forEach((i) => text(ctx, `q${i}`, x - 8, y + (i + 0.5) * cell, i === row ? c.query : c.muted, { size: 12, align: "right", bold: i === row }));
        text(ctx, `${step}. ${WORDS[step]}`, width / 2, 14, c.ink, { size: 14, bold: true });
        if (step === 2) { ctx.strokeStyle = c.ink; ctx.setLineDash([5, 4]); ctx.lineWidth = 2; ctx.beginPath(); ctx.moveTo(x - 14, y + cell); ctx.lineTo(x + columns * cell + 14, y + cell); ctx.stroke(); ctx.setLineDash([]); text(ctx, "goes", x - 18, y + cell / 2, c.muted, { size: 11, align: "right" }); }
        const right = table.flatMap((r, i) => r.filter((at, j) => step >= 3 && at && j <= i && at[0] === i && at[1] === i - j)).length;
        shown[0]("numbers in memory", String(rows * columns));
        shown[1]("pairs j ≤ i that stand under their key", `${right} of ${(shifted * (shifted + 1)) / 2}`);
        shown[2]("");
        app.say(`Step ${step} of ${steps}: ${WORDS[step]}. ${step >= 3 ? `Query ${row} now has distance ${row} under key 0 and distance 0 under key ${row}.` : `Query ${row} must move left by ${shifted - 1 - row}.`}`);
        picture.label(`Rel-shift, step ${step}: ${WORDS[step]}. Up and down choose the query to follow`);
        return table;
      },
      buckets(ctx, width, height) {
        const L = bucketed, [buckets, far, future] = ["buckets", "far", "future"].map((key) => app.get(key)), c = app.colours;
        const table = count(L).map((i) => count(L).map((j) => bucketOf(i - j, buckets, far, future)));
        const half = future ? buckets / 2 : buckets, first = edges(half, far);
        const shade = (b) => { const n = b % half, s = 1 - 0.92 * (n / (half - 1)); return future && b >= half ? signed(-s) : signed(s); };
        const { x, y, cell, size } = place(ctx, width, height, L);
        const { row, column } = matrix(ctx, x, y, cell, L, L, { fill: (i, j) => (!future && j > i ? null : shade(table[i][j])) });
        ticks(ctx, x, y, cell, L, row, column);
        const b = table[row][column], shut = !future && column > row;
        const end = Math.max(first.at(-1) + 6, L);
        const distinct = first.map((n, m) => ({ wide: (m + 1 < half ? first[m + 1] : end) - n, text: String(m + (future && b >= half ? half : 0)), colour: shade(m + (future && b >= half ? half : 0)), chosen: m === b % half && !shut })).filter((box) => box.wide > 0);
        strip(ctx, x, y + size + 26, size, distinct, `buckets over distances 0 … ${end - 1} ${future ? (b >= half ? "after" : "before") + " the query" : ""}`);
        const low = first[b % half], high = b % half + 1 < half ? first[b % half + 1] - 1 : Infinity, n = Math.abs(row - column);
        const range = high === Infinity ? `${low} and beyond` : high === low ? `${low} alone` : `${low} to ${high}`;
        shown[0]("learned numbers for each head", String(buckets));
        shown[1]("distance", shut ? "–" : String(n));
        shown[2](`bucket ${b} holds the distances`, shut ? "–" : range);
        app.say(shut ? `Query ${row}, key ${column}: after the query, not allowed.` : `Query ${row}, key ${column}: distance ${n} is in bucket ${b}, with the distances ${range}.`);
        picture.label(`Buckets of ${L} by ${L} pairs; query ${row}, key ${column}, bucket ${b}. Arrow keys choose a pair`);
        return table;
      },
    };

    return {
      draw() {
        const view = app.get("view"), { ctx, width, height } = picture.begin();
        app.prompt(view === first && own ? own : tf.data.prompts[view]);
        for (const [name, fields] of Object.entries(only)) for (const field of fields) field.row.hidden = name !== view;
        places = [];
        app.root.dataset.shown = JSON.stringify(draw[view](ctx, width, height));
      },
    };
  },
});
