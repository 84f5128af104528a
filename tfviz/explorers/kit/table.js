// A table: app.table({caption, columns: ["note", "score", "weight"], wrap: true for long texts, pick(n),
//   widths: ["4rem", ""], which then do not follow the texts})
//   -> {show([{head, cells: [text | {text, part} | {bar, of, text, colour, part}, …], mine, term}, …])}
// A bar is as long as its share of `of`. Rows stay in place: only what changed is written.
function table(
  app,
  /** @type {any} */ { caption, columns, into = app.picture, pick, wrap, widths } = {},
) {
  const body = el("tbody");
  const head = columns?.map((text) => el("th", { scope: "col" }, text));
  const node = el(
    "table",
    { className: `tfx-table${wrap ? " tfx-wrap" : ""}` },
    caption ? el("caption", {}, caption) : "",
    head ? el("thead", {}, el("tr", {}, ...head)) : "",
    body,
  );
  widths?.forEach((width, n) => {
    node.style.tableLayout = "fixed";
    head[n].style.width = width;
  });
  into.append(node);
  const filled = (value) => {
    const held = app.hides(value.part);
    if (typeof value !== "object" || value.bar === undefined) {
      const text = held ? "?" : String(value.text ?? value);
      return el("td", { className: text.length < 9 ? "tfx-short" : "" }, text);
    }
    const bar = el("span", { className: "tfx-bar" });
    const share = clamp(value.bar / (value.of ?? 1), 0, 1);
    bar.style.width = `${held ? 0 : (100 * share).toFixed(2)}%`;
    if (value.colour) bar.style.background = paint(value.colour);
    const track = el("span", { className: "tfx-track" }, bar);
    return el("td", {}, track, el("span", { className: "tfx-number" }, held ? "?" : value.text));
  };
  let known = [];
  return {
    node,
    show(rows) {
      const texts = rows.map((row) =>
        JSON.stringify([row, row.cells.map(({ part }) => app.hides(part))]),
      );
      if (rows.length !== known.length) {
        body.replaceChildren(...rows.map(() => el("tr")));
        known = [];
      }
      rows.forEach((row, n) => {
        if (texts[n] === known[n]) return;
        const line = body.children[n];
        line.className = row.mine ? "is-mine" : "";
        if (row.term) line.dataset.term = row.term;
        const name = el("th", { scope: "row" }, row.head);
        if (pick) line.onclick = () => pick(n);
        line.replaceChildren(name, ...row.cells.map(filled));
      });
      known = texts;
    },
  };
}
