// From probabilities to text. View "token": p_τ ∝ p^{1/τ}, then top-k, then nucleus, each renormalised.
// View "beam": the B best log p(y) / ((5 + |y|) / 6)^α of all continuations, step by step.

const ROWS = 14;

function weights(logits, tau) {
  if (tau === 0) return logits.map((_, n) => Number(n === 0));
  const loud = logits.map((x) => Math.exp((x - logits[0]) / tau));
  const sum = loud.reduce((a, b) => a + b, 0);
  return loud.map((x) => x / sum);
}

// How many of the likeliest tokens stay: all, the k first, the smallest set with a share p of those.
function keptTokens(w, k, p) {
  const most = k ? Math.min(k, w.length) : w.length;
  let kept = w.findIndex((x, n) => n > 0 && x === 0); // τ = 0
  kept = kept < 0 ? most : Math.min(most, kept);
  if (p < 1) {
    let all = 0, before = 0, n = 0;
    for (let m = 0; m < kept; m++) all += w[m];
    while (n < kept && (n === 0 || before / all < p)) before += w[n++];
    kept = n;
  }
  return kept;
}

function chosen(logits, { tau, k, p }) {
  const hot = weights(logits, tau), kept = keptTokens(hot, k, p);
  const mass = hot.slice(0, kept).reduce((a, b) => a + b, 0);
  return { hot, kept, mass, after: hot.map((x, n) => (n < kept ? x / mass : 0)) };
}

const children = (node) => node.split(" ").map((pair) => pair.split(":").map(Number)).sort((a, b) => b[1] - a[1] || a[0] - b[0]);

// The beam after each step: a list of lists of hypotheses, each with its parent's place in the list before.
function search(tree, { width, alpha, steps }) {
  const ends = new Set(tree.ends);
  let beam = [{ tokens: [], logP: 0, score: 0, complete: false, parent: 0 }];
  const history = [beam];
  for (let n = 1; n <= steps && beam.some((y) => !y.complete); n++) {
    const found = [], penalty = ((5 + n) / 6) ** alpha;
    beam.forEach((y, place) => { if (y.complete) found.push({ ...y, parent: place, old: true }); });
    beam.forEach((y, place) => {
      if (y.complete) return;
      for (const [token, milli] of children(tree.nodes[y.tokens.join(" ")]).slice(0, width)) {
        const logP = y.logP + milli / 1000;
        found.push({ tokens: [...y.tokens, token], logP, score: logP / penalty, complete: ends.has(token), parent: place, p: Math.exp(milli / 1000) });
      }
    });
    beam = found.sort((a, b) => b.score - a.score).slice(0, width);
    history.push(beam);
  }
  return history;
}

const visible = (text) => text.replace(/\n/g, "↵").replace(/^ (?=\S)/, "").replace(/ /g, "␣");
const minus = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
const percent = (x) => (x >= 0.9995 ? "100 %" : x >= 0.0995 ? `${(100 * x).toFixed(0)} %` : x >= 0.00095 ? `${(100 * x).toFixed(1)} %` : x > 0 ? "< 0.1 %" : "0");

function tokenView(app) {
  const { el } = tf, stored = app.get("stored");
  const logits = stored.map((x) => x.log_p.split(" ").map((n) => Number(n) / 100));
  const V = logits[0].length;
  const heading = el("p", { className: "de-title" }), body = el("tbody"), tail = el("p", { className: "de-tail" });
  const lines = [...Array(ROWS)].map(() => {
    const name = el("th", { scope: "row" }), before = el("span", { className: "de-before" }), after = el("span", { className: "de-after" }), text = el("td", { className: "de-number" });
    const row = el("tr", {}, name, el("td", { className: "de-bars" }, before, after), text);
    body.append(row);
    return { row, name, before, after, text };
  });
  const list = el("div", { className: "de-half" }, heading,
    el("table", { className: "de-table" }, el("caption", { className: "tfx-hidden" }, "The likeliest next tokens: what the model says, and after the cut"),
      el("colgroup", {}, ...["de-first", "", "de-last"].map((className) => el("col", { className }))), body), tail);
  const plot = el("div", { className: "de-half" }, el("p", { className: "de-title" }, "share held by the likeliest n tokens, for every beginning"));
  app.picture.append(el("div", { className: "de-halves" }, list, plot));
  const curve = app.canvas(plot, { label: "", height: (w) => Math.min(330, Math.max(240, w * 0.95)) });

  app.knob("which", { as: "select", options: stored.map((x, n) => [n, `${x.prompt} …`]), write: (x) => app.set("which", Number(x)) });
  app.knob("tau", { format: (x) => x.toFixed(2) });
  const ks = [0, ...[...Array(20).keys()].map((n) => n + 1), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000];
  app.knob("k", { scale: [...ks.slice(1), 0], format: (x) => (x ? String(x) : "off"), read: () => app.get("k") || 0, write: (x) => app.set("k", x) });
  app.knob("p", { format: (x) => (x < 1 ? x.toFixed(2) : "off") });
  const shown = { kept: app.readout("tokens that can come"), mass: app.readout("they held"), matter: app.readout("tokens that matter (e to the entropy)") };

  function draw() {
    const now = { tau: app.get("tau"), k: app.get("k"), p: app.get("p") }, which = app.get("which");
    const all = logits.map((x) => chosen(x, now)), mine = all[which], names = stored[which].names, plain = weights(logits[which], 1);
    heading.replaceChildren("after “", el("b", {}, stored[which].prompt), "”: the model’s p (outline), and what is drawn from (violet)");
    const most = Math.max(plain[0], mine.after[0]);
    lines.forEach((line, n) => {
      const out = n >= mine.kept;
      line.name.textContent = visible(names[n]);
      line.row.classList.toggle("de-out", out);
      line.row.classList.toggle("de-cut", n === mine.kept);
      line.before.style.width = `${(100 * plain[n]) / most}%`;
      line.after.style.width = `${(100 * mine.after[n]) / most}%`;
      line.text.textContent = out ? "cut" : percent(mine.after[n]);
    });
    const rest = mine.after.slice(ROWS).reduce((a, b) => a + b, 0), before = plain.slice(ROWS).reduce((a, b) => a + b, 0);
    tail.textContent = `… and ${tf.count(V - ROWS)} more, which hold ${percent(before)} in the model and ${percent(rest)} now`;
    const entropy = -mine.after.reduce((sum, x) => sum + (x > 0 ? x * Math.log(x) : 0), 0);
    shown.kept(`${tf.count(mine.kept)} of ${tf.count(V)}`);
    shown.mass(percent(mine.mass));
    shown.matter(tf.sig(Math.exp(entropy)));
    app.root.dataset.after = JSON.stringify(mine.after.slice(0, 40));
    app.root.dataset.kept = JSON.stringify(all.map((x) => x.kept));
    drawCurves(all, which, now);
    app.say(`After “${stored[which].prompt}”, ${tf.count(mine.kept)} tokens can come; “${visible(names[0])}” comes with ${percent(mine.after[0])}.`);
  }

  function drawCurves(all, which, { k, p }) {
    const { ctx, width, height } = curve.begin(), c = app.colours;
    const [left, right, top, bottom] = [34, 10, 8, 34], w = width - left - right, h = height - top - bottom;
    const x = (n) => left + (Math.log(n) / Math.log(V)) * w, y = (s) => top + (1 - s) * h;
    const line = (points, colour, wide, dash = []) => {
      ctx.strokeStyle = colour; ctx.lineWidth = wide; ctx.setLineDash(dash);
      ctx.beginPath();
      points.forEach((q, n) => (n ? ctx.lineTo(...q) : ctx.moveTo(...q)));
      ctx.stroke(); ctx.setLineDash([]);
    };
    const write = (text, px, py, align, colour = c.muted) => {
      ctx.font = `11px ${app.font}`; ctx.textAlign = align; ctx.textBaseline = "middle";
      ctx.strokeStyle = c.page; ctx.lineWidth = 3; ctx.lineJoin = "round"; ctx.strokeText(text, px, py);
      ctx.fillStyle = colour; ctx.fillText(text, px, py);
    };
    for (const s of [0, 0.5, 1]) { line([[left, y(s)], [left + w, y(s)]], c.grid, 1); write(String(s), left - 6, y(s), "right"); }
    for (const n of [1, 10, 100, 1000]) if (n <= V) { line([[x(n), top], [x(n), top + h]], c.grid, 1); write(tf.count(n), x(n), top + h + 11, n === 1 ? "left" : "center"); }
    write("n (log)", left + w, top + h + 26, "right");
    if (k) { line([[x(k), top], [x(k), top + h]], c.query, 1.5, [5, 3]); write(`k = ${k}`, tf.clamp(x(k) + 4, left, left + w - 46), top + h - 9, "left", c.query); }
    if (p < 1) { line([[left, y(p)], [left + w, y(p)]], c.key, 1.5, [2, 2]); write(`p = ${p.toFixed(2)}`, left + 4, tf.clamp(y(p) - 9, 8, top + h), "left", c.key); }
    const order = [...all.keys()].filter((n) => n !== which).concat(which);
    for (const m of order) {
      const points = [];
      let sum = 0, next = 1;
      const stop = { at: null };
      all[m].hot.forEach((share, n) => {
        sum += share;
        if (n + 1 >= next) { points.push([x(n + 1), y(Math.min(1, sum))]); next *= 1.02; }
        if (n + 1 === all[m].kept) stop.at = [x(n + 1), y(Math.min(1, sum))];
      });
      const own = m === which;
      line(points, own ? c.attention : c.muted, own ? 3 : 1.25);
      if (stop.at && all[m].kept < V) { // where the cut falls
        ctx.fillStyle = own ? c.attention : c.page; ctx.strokeStyle = own ? c.page : c.muted; ctx.lineWidth = 1.5;
        ctx.beginPath(); ctx.arc(...stop.at, own ? 6 : 4, 0, 2 * Math.PI); ctx.fill(); ctx.stroke();
      }
    }
    curve.label(`Share of the likeliest n tokens; kept after each beginning: ${stored.map((s, n) => `“${s.prompt}” ${all[n].kept}`).join(", ")}`);
  }
  return {
    draw,
    python: () => `Decoding(which=${app.get("which")}, tau=${app.get("tau")}, k=${app.get("k")}, p=${app.get("p")})`,
  };
}

function beamView(app) {
  const { el } = tf, trees = app.get("stored");
  const text = (tree, tokens) => tokens.map((n) => tree.names[n]).join("");
  const heading = el("p", { className: "de-title" });
  app.picture.append(heading);
  const STEP = 42, TOP = 24, HIGH = 31;
  const canvas = app.canvas(app.picture, { label: "", height: () => TOP + 10 * STEP + 8 });
  app.knob("which", { as: "select", options: trees.map((x, n) => [n, `${x.prompt} …`]), write: (x) => app.set("which", Number(x)) });
  app.knob("width");
  app.knob("alpha", { format: (x) => x.toFixed(2) });
  app.knob("steps");
  const body = el("tbody");
  const table = el("table", { className: "de-found" }, el("caption", { className: "tfx-hidden" }, "What the search has found, the best first"),
    el("thead", {}, el("tr", {}, ...["place", "text", "log p", "score"].map((x) => el("th", { scope: "col" }, x)))), body);
  app.readouts.before(table);
  const shown = { best: app.readout("highest log p in the beam"), looked: app.readout("distributions asked for") };

  function draw() {
    const tree = trees[app.get("which")], now = { width: app.get("width"), alpha: app.get("alpha"), steps: app.get("steps") };
    const history = search(tree, now), found = history.at(-1), greedy = search(tree, { ...now, width: 1 }).at(-1)[0];
    const asked = history.slice(0, -1).reduce((sum, beam) => sum + beam.filter((y) => !y.complete).length, 0);
    heading.replaceChildren("after “", el("b", {}, tree.prompt), "”: what the beam holds after each token, with its p. Violet leads to what is left at the end, filled to the best; dashed is greedy’s way");
    const { ctx, width } = canvas.begin(), c = app.colours, B = now.width;
    const cell = Math.min(140, width / B), left = (width - cell * B) / 2;
    const at = (step, place) => [left + (place + 0.5) * cell, step ? TOP + (step - 0.5) * STEP : 10];
    // which of each step leads to something that is still there, and which to the best
    const alive = history.map(() => new Set()), best = history.map(() => -1);
    found.forEach((_, place) => { for (let n = history.length - 1, q = place; n >= 0; q = history[n][q].parent, n--) { alive[n].add(q); if (place === 0) best[n] = q; } });
    const isGreedy = (y) => y.tokens.length && y.tokens.every((token, n) => token === greedy.tokens[n]);
    const root = [width / 2, 10];
    for (let n = 1; n < history.length; n++) history[n].forEach((y, place) => {
      const from = n === 1 ? root : at(n - 1, y.parent), to = at(n, place), lives = alive[n].has(place), wins = best[n] === place;
      ctx.strokeStyle = lives ? c.attention : c.grid;
      ctx.lineWidth = wins ? 4 : lives ? 1.5 : 1;
      ctx.beginPath();
      ctx.moveTo(from[0], from[1] + (n === 1 ? 4 : HIGH / 2));
      ctx.lineTo(to[0], to[1] - HIGH / 2);
      ctx.stroke();
    });
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = c.ink;
    ctx.beginPath(); ctx.arc(...root, 4, 0, 2 * Math.PI); ctx.fill();
    for (let n = 1; n < history.length; n++) history[n].forEach((y, place) => {
      const [px, py] = at(n, place), lives = alive[n].has(place), wins = best[n] === place, wide = Math.min(cell - 6, 118);
      ctx.fillStyle = wins ? c.attention : c.page;
      ctx.strokeStyle = lives ? c.attention : c.grid;
      ctx.lineWidth = 1.25;
      ctx.setLineDash([]);
      ctx.beginPath(); ctx.roundRect(px - wide / 2, py - HIGH / 2, wide, HIGH, 5); ctx.fill(); ctx.stroke();
      if (isGreedy(y) && !y.old) { ctx.setLineDash([3, 2]); ctx.strokeStyle = wins ? c.page : c.ink; ctx.beginPath(); ctx.roundRect(px - wide / 2 + 2, py - HIGH / 2 + 2, wide - 4, HIGH - 4, 4); ctx.stroke(); ctx.setLineDash([]); }
      ctx.fillStyle = wins ? c.page : lives ? c.ink : c.muted;
      const word = y.old ? "(complete)" : visible(tree.names[y.tokens.at(-1)]);
      let size = 12;
      do ctx.font = `600 ${size}px ${app.font}`; while (ctx.measureText(word).width > wide - 8 && --size > 6);
      ctx.fillText(word, px, py - (y.old ? 0 : 5.5));
      if (!y.old) { ctx.font = `9.5px ${app.font}`; ctx.fillText(y.p.toFixed(y.p < 0.1 ? 3 : 2), px, py + 8.5); }
    });
    const line = (mark, y) => el("tr", {}, el("th", { scope: "row" }, mark), el("td", {}, `${tree.prompt}${text(tree, y.tokens)}`.replace(/\n/g, "↵") + (y.complete ? "" : " …")), el("td", {}, minus(y.logP)), el("td", {}, minus(y.score)));
    const blank = () => el("tr", { "aria-hidden": "true" }, ...[0, 1, 2, 3].map(() => el("td", {}, "\u00a0")));
    body.replaceChildren(...found.map((y, n) => line(String(n + 1), y)), line("greedy", greedy), ...[...Array(6 - found.length)].map(blank));
    body.children[found.length].classList.add("de-greedy");
    shown.best(minus(Math.max(...found.map((y) => y.logP)), 3));
    shown.looked(String(asked));
    app.root.dataset.found = JSON.stringify(found.map((y) => ({ tokens: y.tokens, logP: y.logP, score: y.score, complete: y.complete })));
    const same = text(tree, found[0].tokens) === text(tree, greedy.tokens);
    canvas.label(`A beam of ${B} after ${history.length - 1} tokens; best: “${tree.prompt}${text(tree, found[0].tokens)}”, ${same ? "as greedy has it" : `greedy has “${text(tree, greedy.tokens)}”`}`);
    app.say(`B = ${B}: “${text(tree, found[0].tokens).trim().replace(/\s+/g, " ")}” with log p ${minus(found[0].logP)}; greedy ${same ? "finds the same" : `has ${minus(greedy.logP)}`}.`);
  }
  return {
    draw,
    python: () => `Decoding("beam", which=${app.get("which")}, width=${app.get("width")}, alpha=${app.get("alpha")}, steps=${app.get("steps")})`,
  };
}

export default tf.explorer({
  fit(fine) {
    if (fine.alpha) fine.alpha = Math.round(4 * fine.alpha) / 4; // only these are stored
    return fine;
  },
  setup(app) {
    return app.get("view") === "beam" ? beamView(app) : tokenView(app);
  },
});
