// Two scores of the same state and notes: e_j = tanh(s W_a + h_j U_a) v_aᵀ and s h_jᵀ / √d.

const times = (x, W) => W[0].map((_, m) => x.reduce((sum, value, a) => sum + value * W[a][m], 0));
const inner = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);
const softmax = (scores) => {
  const most = Math.max(...scores), loud = scores.map((s) => Math.exp(s - most));
  const sum = loud.reduce((a, b) => a + b, 0);
  return loud.map((x) => x / sum);
};
const number = (x, digits = 2) => (Number(x.toFixed(digits)) === 0 ? 0 : x).toFixed(digits).replace("-", "−");
const large = (x) => (x < 1e4 ? tf.sig(x) : x < 1e100 ? `10^${Math.floor(Math.log10(x))}` : "beyond 10^100");

export default tf.explorer({
  setup(app) {
    const { el } = tf;
    const names = app.get("names");
    const card = (title, formula, kind) => {
      const rows = names.map((name) => {
        const score = el("td"), bar = el("span", { className: "ad-bar" }), text = el("span", { className: "ad-number" });
        const cell = el("td", { className: "ad-weight" }, bar, text);
        return { row: el("tr", {}, el("th", { scope: "row" }, name), score, cell), score, bar, text, cell };
      });
      const table = el("table", { className: `ad-table ad-${kind}` }, el("caption", {}, el("b", {}, title), el("span", {}, formula)),
        el("thead", {}, el("tr", {}, ...["note", "score", "weight"].map((x) => el("th", { scope: "col" }, x)))), el("tbody", {}, ...rows.map((r) => r.row)));
      return { table, rows };
    };
    const additive = card("additive", "tanh(s W + h U) · v", "additive"), dot = card("scaled dot product", "s · h / √d", "dot");
    app.picture.append(el("div", { className: "ad-cards" }, additive.table, dot.table));
    app.knob("size");
    app.knob("sharpness");
    const shown = {
      bound: app.readout("no additive ratio beyond (e to the 2‖v‖₁)"),
      additive: app.readout("additive: largest ÷ smallest weight"),
      dot: app.readout("dot product: largest ÷ smallest weight"),
    };
    return {
      draw() {
        const [s, H, W, U, v, size, sharpness] = ["s", "H", "W_a", "U_a", "v_a", "size", "sharpness"].map((key) => app.get(key));
        const asks = times(s, W);
        const e = H.map((h) => times(h, U).reduce((sum, x, m) => sum + Math.tanh(size * (asks[m] + x)) * v[m] * sharpness, 0));
        const d = H.map((h) => (size * size * inner(s, h)) / Math.sqrt(s.length));
        const ratio = (scores) => Math.exp(Math.max(...scores) - Math.min(...scores));
        for (const [view, scores] of [[additive, e], [dot, d]]) {
          softmax(scores).forEach((a, j) => {
            const row = view.rows[j];
            row.score.textContent = number(scores[j], Math.abs(scores[j]) < 100 ? 2 : 0);
            row.bar.style.width = `calc((100% - 3.75rem) * ${a})`;
            row.text.textContent = number(a, 3);
            row.cell.dataset.weight = a;
          });
        }
        const bound = 2 * sharpness * v.reduce((sum, x) => sum + Math.abs(x), 0);
        shown.bound(large(Math.exp(bound)));
        shown.additive(large(ratio(e)));
        shown.dot(large(ratio(d)));
        const best = (scores) => { const a = softmax(scores), j = a.indexOf(Math.max(...a)); return `${number(a[j])} on “${names[j]}”`; };
        app.say(`States × ${size}: additive puts ${best(e)}, the dot product ${best(d)}.`);
      },
    };
  },
});
