// The position bench: the part of a score that comes from the two places alone, for several encodings.

const { words: WORDS, clocks: CLOCKS } = tf.data;
const hand = new Function(`return ${tf.data.hand}`)(); // (k, m, d, base) => cos(k ω_m)
const FAR = tf.declared.knobs.length.of.at(-1);

const number = (x, digits = 2) => (Object.is(Number(x.toFixed(digits)), -0) ? 0 : x).toFixed(digits).replace("-", "−");
const named = (name) => WORDS[name] ?? name;

// One number for each distance, for the encodings that know no other.
function byDistance(d, base) {
  const out = new Float64Array(FAR);
  for (let k = 0; k < FAR; k++) {
    let sum = 0;
    for (let m = 0; m < d / 2; m++) sum += hand(k, m, d, base);
    out[k] = sum / (d / 2);
  }
  return out;
}

// (i, j) -> what the places add, NaN where the encoding has no row.
function scores(name, table, d, base) {
  if (table && "offset" in table) return (i, j) => table.values[j - i + table.offset];
  if (table) return (i, j) => (i < table.side && j < table.side ? table.values[i * table.side + j] : NaN);
  if (!CLOCKS.includes(name)) return () => 0;
  const at = byDistance(d, base);
  return (i, j) => at[Math.abs(i - j)];
}

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

export default tf.explorer({
  fit(fine) {
    if (!(fine.chosen in WORDS)) delete fine.chosen;
    if (!["text", "recall"].includes(fine.task)) delete fine.task;
    return fine;
  },
  setup(app) {
    const { el } = tf;
    const names = app.get("encodings"), race = app.get("race"), bias = app.get("bias");
    const tasks = Object.keys(race.tasks ?? {});
    const trained = race.train_length ?? 64;
    const clocks = names.some((name) => CLOCKS.includes(name) && !bias[name]);

    // --- pictures
    const maps = el("div", { className: "pb-maps", "data-count": names.length });
    app.picture.append(maps);
    const pick = (name) => (i, j) => app.set({ chosen: name, row: i, column: j });
    const panels = Object.fromEntries(names.map((name) => {
      const title = el("button", { type: "button", className: "pb-title", onclick: () => app.set("chosen", name) }, named(name));
      const box = el("div", { className: "pb-map" }, title);
      maps.append(box);
      return [name, { title, map: app.matrix(box, { label: "", pick: pick(name) }) }];
    }));
    const chart = (title) => {
      const box = el("div", { className: "pb-chart" }, el("p", { className: "pb-caption" }, title));
      return { box, view: app.canvas(box, { label: "", height: (w) => Math.min(230, Math.max(180, w * 0.6)) }) };
    };
    const charts = el("div", { className: "pb-charts" });
    app.picture.append(charts);
    const profile = chart("row i by distance; band: all rows");
    charts.append(profile.box);
    const lost = tasks.length ? chart("") : null;
    if (lost) charts.append(lost.box);
    const lostTitle = lost?.box.firstChild;

    // --- controls
    if (names.length > 1) app.knob("chosen", { as: "select", options: names.map((name) => [name, named(name)]) });
    app.knob("length");
    const row = app.knob("row", { read: () => Math.min(app.get("row"), app.get("length") - 1) });
    const column = app.knob("column", { read: () => Math.min(app.get("column"), app.get("length") - 1) });
    if (clocks) {
      app.knob("d");
      app.knob("base", { format: tf.count });
    }
    if (tasks.length > 1) app.knob("task", { options: tasks.map((task) => [task, task]) });

    const shown = {
      pair: app.readout("score of i and j by place"),
      spread: app.readout("rows differ at one distance by up to"),
      half: app.readout("first below half its peak at distance"),
      far: lost && app.readout(`loss at ${trained} → longest`),
    };

    // --- what is drawn
    let made = {}, key = {};
    const matrixOf = (name, L) => { // kept until something changes: the picture is painted anew for a new array
      const own = JSON.stringify([L, bias[name] ? 0 : [app.get("d"), app.get("base")]]);
      if (key[name] === own) return made[name];
      const f = scores(name, bias[name], app.get("d"), app.get("base"));
      const values = new Float64Array(L * L), low = new Float64Array(2 * L - 1).fill(Infinity), high = new Float64Array(2 * L - 1).fill(-Infinity);
      for (let i = 0; i < L; i++) for (let j = 0; j < L; j++) {
        const v = (values[i * L + j] = f(i, j)), at = j - i + L - 1;
        if (v < low[at]) low[at] = v;
        if (v > high[at]) high[at] = v;
      }
      key[name] = own;
      return (made[name] = { values, shades: values.map((v) => (v + 1) / 2), low, high });
    };
    const ramp = (share) => share >= 0.5 ? tf.mix(app.colours.page, app.colours.attention, 2 * share - 1) : tf.mix(app.colours.page, app.colours.ink, 0.75 * (1 - 2 * share));

    const DASHES = [[6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [10, 4], [4, 4], [12, 3, 2, 3]];
    const ORDER = Object.keys(WORDS); // one dash for an encoding in both charts
    const look = (name, chosen) => name === chosen
      ? { colour: app.colours.attention, width: 2.5, dash: [] }
      : { colour: app.colours.ink, width: 1.25, dash: DASHES[Math.max(0, ORDER.indexOf(name)) % DASHES.length] };
    const brief = { none: "none", xl: "XL", t5: "T5" };
    // names at the right end of lines, apart from each other
    function labels(ctx, ends, right, top, bottom, chosen) {
      ends.sort((a, b) => a.y - b.y);
      for (let n = 0, least = top; n < ends.length; n++, least = ends[n - 1].y + 12) ends[n].y = Math.max(ends[n].y, least);
      for (let n = ends.length - 1, most = bottom; n >= 0; n--, most = ends[n + 1].y - 12) ends[n].y = Math.min(ends[n].y, most);
      for (const { name, y } of ends) text(ctx, brief[name] ?? named(name), right + 6, y, look(name, chosen).colour, { bold: name === chosen });
    }
    const text = (ctx, words, x, y, colour, { align = "left", bold = false, turn = false } = {}) => {
      ctx.font = `${bold ? "600 " : ""}11px ${app.font}`;
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.fillStyle = colour;
      ctx.save();
      ctx.translate(x, y);
      if (turn) {
        ctx.rotate(-Math.PI / 2);
        ctx.strokeStyle = app.colours.page;
        ctx.lineWidth = 4;
        ctx.strokeText(words, 0, 0);
      }
      ctx.fillText(words, 0, 0);
      ctx.restore();
    };
    // axes of a chart, and functions from numbers to pixels
    function frame(view, { x, y, xticks, yticks, labels = 8, below = 32, xname }) {
      const { ctx, width, height } = view.begin(), c = app.colours;
      const [left, top, right, bottom] = [36, 8, width - labels, height - below];
      const X = (v) => left + ((v - x[0]) / (x[1] - x[0])) * (right - left);
      const Y = (v) => bottom - ((v - y[0]) / (y[1] - y[0])) * (bottom - top);
      ctx.lineWidth = 1;
      ctx.strokeStyle = c.grid;
      for (const [v, words] of yticks) {
        ctx.beginPath(); ctx.moveTo(left, Math.round(Y(v)) + 0.5); ctx.lineTo(right, Math.round(Y(v)) + 0.5); ctx.stroke();
        text(ctx, words, left - 5, Y(v), c.muted, { align: "right" });
      }
      let last = -99;
      for (const [v, words] of xticks) {
        if (X(v) - last < 24) continue;
        last = X(v);
        ctx.beginPath(); ctx.moveTo(X(v), bottom); ctx.lineTo(X(v), bottom + 4); ctx.stroke();
        text(ctx, words, X(v), bottom + 11, c.muted, { align: "center" });
      }
      text(ctx, xname, (left + right) / 2, height - 7, c.muted, { align: "center" });
      return { ctx, X, Y, left, top, right, bottom };
    }
    function line(ctx, points, { colour, width, dash }) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.setLineDash(dash);
      ctx.beginPath();
      let pen = false;
      for (const [x, y] of points) {
        if (Number.isNaN(y)) { pen = false; continue; }
        if (pen) ctx.lineTo(x, y); else ctx.moveTo(x, y);
        pen = true;
      }
      ctx.stroke();
      ctx.setLineDash([]);
    }

    function drawProfile(L, i, chosen) {
      const tick = L <= 16 ? 4 : L / 4;
      const xticks = [-3, -1.5, 0, 1.5, 3].map((k) => [k * tick, number(k * tick, 0)]);
      const low = names.some((n) => made[n].values.some((v) => v < -0.05)) ? -1 : 0;
      const yticks = (low < 0 ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((v) => [v, number(v, low < 0 ? 1 : 2)]);
      const { ctx, X, Y, top, right, bottom } = frame(profile.view, { x: [1 - L, L - 1], y: [low - 0.04, 1.04], xticks, yticks, labels: 74, xname: "distance j − i" });
      const band = made[chosen];
      ctx.fillStyle = tf.mix(app.colours.page, app.colours.attention, 0.25);
      for (let at = 0; at < 2 * L - 1; at++) if (band.low[at] <= band.high[at]) {
        const [a, b] = [Y(band.high[at]), Y(band.low[at])];
        ctx.fillRect(X(at - L + 0.5), a, X(at - L + 1.5) - X(at - L + 0.5) + 0.5, Math.max(b - a, 0));
      }
      const order = [...names].sort((a, b) => (a === chosen) - (b === chosen)); // the one in colour on top
      const ends = [];
      for (const name of order) {
        const points = [];
        for (let j = 0; j < L; j++) points.push([X(j - i), Y(made[name].values[i * L + j])]);
        line(ctx, points, look(name, chosen));
        const end = points.findLast(([, y]) => !Number.isNaN(y));
        if (end) ends.push({ name, y: end[1] });
      }
      labels(ctx, ends, right, top + 4, bottom - 2, chosen);
      const j = Math.min(app.get("column"), L - 1), v = made[chosen].values[i * L + j];
      if (!Number.isNaN(v)) {
        ctx.fillStyle = app.colours.key;
        ctx.strokeStyle = app.colours.page;
        ctx.lineWidth = 2;
        ctx.beginPath(); ctx.arc(X(j - i), Y(v), 5, 0, 2 * Math.PI); ctx.fill(); ctx.stroke();
      }
      profile.view.label(`Scores of query ${i} by distance, for ${names.map(named).join(", ")}; ${named(chosen)} in colour, its band is ${number(spread(chosen))} wide at most`);
    }
    function spread(name) {
      let most = 0;
      const { low, high } = made[name];
      for (let at = 0; at < low.length; at++) if (high[at] > low[at]) most = Math.max(most, high[at] - low[at]);
      return most;
    }
    function halfway(name, L, i) { // to the left, where a causal model looks
      const { values } = made[name], peak = values[i * L + i];
      if (!(peak > 0)) return null;
      for (let k = 1; k <= i; k++) if (values[i * L + i - k] < peak / 2) return k;
      return null;
    }

    const lines = (task) => Object.entries(race.tasks[task]).map(([name, seeds]) => ({
      name,
      mean: race.lengths.map((_, n) => (seeds.every((s) => typeof s[n] === "number") ? mean(seeds.map((s) => s[n])) : NaN)),
      low: race.lengths.map((_, n) => Math.min(...seeds.map((s) => s[n] ?? NaN))),
      high: race.lengths.map((_, n) => Math.max(...seeds.map((s) => s[n] ?? NaN))),
    }));
    function drawLoss(task, chosen) {
      const all = lines(task), c = app.colours;
      const values = all.flatMap((l) => [...l.low, ...l.high]).filter((v) => !Number.isNaN(v));
      const low = Math.min(...values), high = Math.max(...values), pad = 0.06 * (high - low || 1);
      const step = [0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5].find((s) => (high - low) / s <= 5) ?? 10;
      const yticks = [];
      for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) yticks.push([v, step < 0.1 ? v.toFixed(2) : v.toFixed(1)]);
      const log = race.lengths.map(Math.log2);
      const { ctx, X, Y, top, right, bottom } = frame(lost.view, {
        x: [log[0], log.at(-1)], y: [low - pad, high + pad], xticks: log.map((v, n) => [v, String(race.lengths[n])]), yticks, labels: 74,
        xname: "length of the text (log)",
      });
      const mark = Math.log2(trained);
      line(ctx, [[X(mark), top], [X(mark), bottom]], { colour: c.muted, width: 1.5, dash: [3, 3] });
      text(ctx, "trained to here", X(mark) - 5, top + 44, c.muted, { turn: true, align: "center" });
      const me = all.find((l) => l.name === chosen);
      if (me) {
        const fine = me.mean.map((v, n) => n).filter((n) => !Number.isNaN(me.mean[n]));
        ctx.fillStyle = tf.mix(c.page, c.attention, 0.25);
        ctx.beginPath();
        for (const n of fine) ctx.lineTo(X(log[n]), Y(me.high[n]));
        for (const n of [...fine].reverse()) ctx.lineTo(X(log[n]), Y(me.low[n]));
        ctx.fill();
      }
      const ends = [];
      for (const l of [...all].sort((a, b) => (a.name === chosen) - (b.name === chosen))) {
        const style = look(l.name, chosen);
        line(ctx, l.mean.map((v, n) => [X(log[n]), Y(v)]), style);
        const n = l.mean.findLastIndex((v) => !Number.isNaN(v));
        if (n < 0) continue;
        const [x, y] = [X(log[n]), Y(l.mean[n])];
        if (n < log.length - 1) { // it ends here: a bar
          ctx.fillStyle = style.colour;
          ctx.fillRect(x - 1.5, y - 6, 3, 12);
        }
        ends.push({ name: l.name, y });
      }
      labels(ctx, ends, right, top + 4, bottom - 2, chosen);
      lostTitle.textContent = `measured: ${race.unit[task]}`;
      lost.view.label(`Measured loss against length, trained at ${trained}: ` + all.map((l) => `${named(l.name)} ${l.mean.map((v, n) => (Number.isNaN(v) ? `no row at ${race.lengths[n]}` : `${number(v)} at ${race.lengths[n]}`)).join(", ")}`).join("; "));
      return me;
    }

    return {
      draw() {
        const L = app.get("length"), last = L - 1;
        const chosen = names.includes(app.get("chosen")) ? app.get("chosen") : names[0];
        const [i, j] = [Math.min(app.get("row"), last), Math.min(app.get("column"), last)];
        row.limit(0, last);
        column.limit(0, last);
        for (const name of names) {
          const { values, shades } = matrixOf(name, L), { title, map } = panels[name], mine = name === chosen;
          const { ctx, unit } = map.draw({ rows: L, values: shades, ramp, row: mine ? i : -1, column: mine ? j : -1 });
          if (L > trained && lost) { // where training ended
            line(ctx, [[0, trained * unit], [trained * unit, trained * unit], [trained * unit, 0]], { colour: app.colours.ink, width: 1.25, dash: [4, 3] });
          }
          title.setAttribute("aria-pressed", String(mine));
          const v = values[i * L + j];
          map.label(`${named(name)}: scores by place, ${L} queries down, ${L} keys across; query ${i}, key ${j}: ${Number.isNaN(v) ? "no row" : number(v)}; arrow keys move`);
        }
        drawProfile(L, i, chosen);
        const v = made[chosen].values[i * L + j], half = halfway(chosen, L, i), apart = spread(chosen);
        shown.pair(Number.isNaN(v) ? "no row" : number(v));
        shown.spread(number(apart));
        shown.half(half === null ? "never" : String(half));
        let told = "";
        if (lost) {
          const task = tasks.includes(app.get("task")) ? app.get("task") : tasks[0], me = drawLoss(task, chosen);
          const ends = me && [me.mean[race.lengths.indexOf(trained)], me.mean.at(-1)];
          shown.far(ends ? ends.map((x) => (x === undefined || Number.isNaN(x) ? "no row" : number(x))).join(" → ") : "not measured");
          if (ends && !Number.isNaN(ends[0])) told = `; loss ${number(ends[0])} at ${trained}, ${Number.isNaN(ends[1]) ? `none beyond the table at` : `${number(ends[1])} at`} ${race.lengths.at(-1)}`;
        }
        app.root.dataset.shown = JSON.stringify({ chosen, row: Object.fromEntries(names.map((n) => [n, Array.from(made[n].values.subarray(i * L, (i + 1) * L), (x) => (Number.isNaN(x) ? null : x))])), spread: apart, half });
        const where = Number.isNaN(v) ? `has no row for ${Math.max(i, j)}` : `query ${i} and key ${j}, ${Math.abs(i - j)} apart, score ${number(v)}`;
        app.say(`${named(chosen)}: ${where}; at one distance rows differ by up to ${number(apart)}${told}.`);
      },
      python: () => {
        const given = Object.keys(bias).filter((name) => name !== "learned");
        const more = given.length ? `, bias={${given.map((name) => `"${name}": …`).join(", ")}}` : "";
        return `PositionBench(${JSON.stringify(names)}, "${app.get("chosen")}", length=${app.get("length")}, row=${app.get("row")}, column=${app.get("column")}, d=${app.get("d")}, base=${app.get("base")}, task="${app.get("task")}"${more})`;
      },
    };
  },
});
