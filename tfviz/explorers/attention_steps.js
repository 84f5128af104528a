// One attention, every number: S = Q Kᵀ, divided by √d_k, masked, softmax over each row, Z = A V.

const number = (x, digits = 2) => (Number(x.toFixed(digits)) === 0 ? 0 : x).toFixed(digits).replace("-", "−");
const dot = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);

// Black or white, whichever is easier to read on a colour like "rgb(1 2 3)" (WCAG luminance).
function readable(background) {
  const [r, g, b] = background.match(/\d+/g).map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

function steps({ Q, K, V, scale, causal }) {
  const by = scale ? Math.sqrt(Q[0].length) : 1;
  const S = Q.map((q) => K.map((k) => dot(q, k)));
  const allowed = (i, j) => !causal || j <= i;
  const A = S.map((row, i) => {
    const most = Math.max(...row.filter((_, j) => allowed(i, j)));
    const loud = row.map((s, j) => (allowed(i, j) ? Math.exp((s - most) / by) : 0));
    const sum = loud.reduce((a, b) => a + b, 0);
    return loud.map((x) => x / sum);
  });
  const Z = A.map((a) => V[0].map((_, c) => a.reduce((sum, x, j) => sum + x * V[j][c], 0)));
  return { S, A, Z, by, allowed };
}

export default tf.explorer({
  setup(app) {
    const { el } = tf;
    const words = app.get("words"), L = words.length;
    const widths = { Q: app.get("Q")[0].length, V: app.get("V")[0].length };
    const count = (n) => [...Array(n).keys()];

    // A small table. kind: the role that gives its colour; cells are kept to be filled in.
    function matrix(title, kind, rows, columns, { left = null, top = null, live = false } = {}) {
      const cells = rows.map(() => columns.map(() => el("td", {})));
      const head = top && el("tr", {}, ...(left ? [el("td", { className: "as-corner" })] : []), ...columns.map((c) => el("th", { className: "as-key", scope: "col" }, el("span", {}, top[c]))));
      const body = rows.map((r, i) => el("tr", {}, ...(left ? [el("th", { className: "as-query", scope: "row" }, left[r])] : []), ...cells[i]));
      const table = el("table", { className: `as-table as-${kind}` }, el("caption", {}, title), ...(head ? [el("thead", {}, head)] : []), el("tbody", {}, ...body));
      const box = el("div", { className: "as-box" }, table);
      if (live) {
        cells.forEach((line, i) => line.forEach((cell, j) => {
          cell.className = "as-live";
          cell.addEventListener("click", () => app.set({ row: i, column: j }));
          cell.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") glance(i, j); });
        }));
        table.addEventListener("pointerleave", () => glance(null));
      }
      return { box, cells, table, caption: table.caption };
    }
    const all = count(L), dq = count(widths.Q), dv = count(widths.V);
    const Kt = matrix("Kᵀ", "k", dq, all, { top: words });
    const Q = matrix("Q", "q", all, dq, { left: words });
    const S = matrix("S = Q Kᵀ", "s", all, all, { live: true });
    const V = matrix("V", "v", all, dv, { left: words });
    const A = matrix("A", "a", all, all, { left: words, top: words, live: true });
    const Z = matrix("Z = A V", "v", all, dv);
    const group = (label, ...parts) => el("div", { className: "as-group", role: "application", tabIndex: 0, "aria-label": label }, ...parts);
    const scores = group("Scores: arrow keys choose a query and a key", el("span", { className: "as-blank" }), Kt.box, Q.box, S.box);
    const blend = group("Weights and output: arrow keys choose a query and a key", A.box, V.box, Z.box);
    scores.classList.add("as-scores");
    blend.classList.add("as-blend");
    for (const node of [scores, blend]) {
      node.dataset.lmSuppressShortcuts = "true";
      node.addEventListener("keydown", (event) => {
        const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-L, 0], PageDown: [L, 0], Home: [0, -L], End: [0, L] }[event.key];
        if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        app.set({ row: tf.clamp(app.get("row") + move[0], 0, L - 1), column: tf.clamp(app.get("column") + move[1], 0, L - 1) });
      });
    }
    app.root.querySelector(".tfx-main").classList.add("as-main");
    const work = el("ol", { className: "as-work" }), side = el("div", { className: "as-side" }, work);
    app.picture.append(scores, side, blend);
    app.checkbox("scale", { label: `divide by √${widths.Q}`, into: side });
    app.checkbox("causal", { label: "causal mask: only j ≤ i", into: side });
    app.controls.remove();

    let pointed = null; // the cell under the mouse, if any: looked at, not chosen
    function glance(i, j) {
      pointed = i === null ? null : [i, j];
      app.redraw("glance");
    }
    const piece = (role, text) => el("span", { className: `as-${role}` }, text);
    const vector = (x) => `(${x.map((v) => number(v)).join(", ")})`;

    return {
      draw() {
        const state = Object.fromEntries(["Q", "K", "V", "scale", "causal"].map((key) => [key, app.get(key)]));
        const result = steps(state), { by, allowed } = result;
        const [i, j] = (pointed ?? [app.get("row"), app.get("column")]).map((x) => tf.clamp(x, 0, L - 1));
        const fill = (view, values) => values.forEach((line, r) => line.forEach((x, c) => { view.cells[r][c].textContent = number(x); }));
        fill(Q, state.Q);
        fill(Kt, dq.map((c) => all.map((r) => state.K[r][c])));
        fill(V, state.V);
        fill(Z, result.Z);
        all.forEach((r) => all.forEach((c) => {
          const s = S.cells[r][c], a = A.cells[r][c], open = allowed(r, c), weight = result.A[r][c];
          s.textContent = open ? number(result.S[r][c] / by) : "−∞";
          a.textContent = open ? number(weight) : "";
          for (const cell of [s, a]) cell.classList.toggle("as-shut", !open);
          const shade = tf.mix(app.colours.page, app.colours.attention, weight);
          a.style.background = open ? shade : "";
          a.style.color = open ? readable(shade) : "";
          a.dataset.weight = weight;
        }));
        S.caption.textContent = state.scale ? `S = Q Kᵀ / √${widths.Q}` : "S = Q Kᵀ";
        A.caption.textContent = "A = softmax of each row of S";

        // linked cells: the query, the key, the pair, the value, the output
        const light = (view, test) => view.cells.forEach((line, r) => line.forEach((cell, c) => cell.classList.toggle("as-on", test(r, c))));
        light(Q, (r) => r === i);
        light(Kt, (_, c) => c === j);
        light(V, (r) => r === j);
        light(Z, (r) => r === i);
        for (const view of [S, A]) view.cells.forEach((line, r) => line.forEach((cell, c) => {
          cell.classList.toggle("as-row", r === i);
          cell.classList.toggle("as-column", c === j);
          cell.classList.toggle("as-chosen", r === i && c === j);
        }));

        const [q, k, s] = [state.Q[i], state.K[j], result.S[i][j]], a = result.A[i][j];
        const open = all.filter((r) => allowed(i, r));
        const terms = q.map((x, c) => `${number(x)}·${number(k[c])}`).join(" + ");
        const lines = [[piece("query", words[i]), " asks, ", piece("key", words[j]), ` is asked: ${terms} = ${number(s)}`]];
        if (state.scale) lines.push([`divided by √${widths.Q} = ${number(by)}: ${number(s / by)}`]);
        if (allowed(i, j)) {
          const sum = open.reduce((total, r) => total + Math.exp(result.S[i][r] / by), 0);
          lines.push([`softmax over ${open.length} key${open.length > 1 ? "s" : ""}: e^${number(s / by)} / ${number(sum)} = `, piece("attention", number(a, 3))]);
          lines.push([piece("attention", number(a, 3)), " · ", piece("value", vector(state.V[j])), ` goes into ${vector(result.Z[i])}, the output of `, piece("query", words[i])]);
        } else {
          lines.push(["j > i: forbidden, the score is −∞ and the weight exactly 0"]);
        }
        work.replaceChildren(...lines.map((line) => el("li", {}, ...line)));
        const best = open.reduce((top, r) => (result.A[i][r] > result.A[i][top] ? r : top), open[0]);
        app.root.dataset.output = JSON.stringify(result.Z);
        if (!pointed) app.say(`${words[i]} → ${words[j]}: ${allowed(i, j) ? `weight ${number(a, 3)}` : "forbidden"}. “${words[i]}” listens most to “${words[best]}” (${number(result.A[i][best])}).`);
      },
    };
  },
});
