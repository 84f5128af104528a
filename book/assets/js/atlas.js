// The fields of the atlas' filter (tables.js), and the lines of the family tree. Without this file the table is
// complete and the tree is a picture; nothing here is needed to read them.
(() => {
  "use strict";

  const { make, labelled, choice, filter } = window.tfvizTables;

  function atlas(box) {
    const words = JSON.parse(box.dataset.words);
    const items = [...box.querySelector("table").tBodies[0].rows].map((row) => ({
      nodes: [row],
      hidden: false,
      data: row.dataset,
      text: `${row.textContent} ${row.dataset.text}`,
      mark: document.querySelector(`.tfv-mark[data-id="${row.id.replace("atlas-", "")}"]`),
    }));
    const years = items.map(({ data }) => Number(data.year));
    const min = Math.min(...years);
    const max = Math.max(...years);
    const choose = (name, text) => choice(name, text, Object.entries(words[name]));
    const year = (name, text, placeholder) =>
      labelled(
        text,
        make("input", { type: "number", name, min, max, placeholder, inputMode: "numeric" }),
      );
    const among = (name) => (data, value) => data[name].split(" ").includes(value);
    filter({
      before: box.firstElementChild,
      name: "atlas",
      noun: "mechanisms",
      items,
      fields: [
        choose("part", "part of the course"),
        choose("changes", "changes in the block"),
        choose("growth", "time grows"),
        choose("runs", "measured in"),
        year("from", "from year", String(min)),
        year("to", "to year", String(max)),
        make(
          "label",
          { className: "tfv-check" },
          make("input", { type: "checkbox", name: "formula", value: "true" }),
          "a formula of positions",
        ),
      ],
      rules: {
        changes: among("changes"),
        runs: among("runs"),
        from: ({ year }, value) => Number(year) >= Number(value),
        to: ({ year }, value) => Number(year) <= Number(value),
      },
      shown() {
        for (const { mark, hidden } of items) mark?.classList.toggle("is-out", hidden);
      },
    });
  }

  // Headings that sort: the first press puts the least on top, the next the most.
  function sortable(table) {
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const text = ({ cells }) => cells[column].textContent;
        const number = (row) => parseFloat(text(row).replaceAll(",", ""));
        const numbers = rows.some((row) => !isNaN(number(row)));
        // what was not measured stays at the bottom
        const missing = (row) => Number(numbers && isNaN(number(row)));
        const order = (a, b) =>
          numbers ? number(a) - number(b) || 0 : text(a).localeCompare(text(b), "en");
        rows.sort((a, b) => missing(a) - missing(b) || (up ? 1 : -1) * order(a, b));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // Which rows of what was measured are shown: scores of the two kinds of models are not to be
  // compared, so it begins with one of them.
  function choosable(table) {
    const rows = [...table.tBodies[0].rows];
    const kind = make(
      "select",
      { name: "kind" },
      ...["causal", "encoder", "both"].map((value) => make("option", { value }, value)),
    );
    const exact = make("input", { type: "checkbox", name: "exact" });
    const count = make("p", { className: "tfv-atlas-count" });
    count.setAttribute("role", "status");
    const form = make(
      "form",
      { className: "tfv-atlas-filter" },
      make("label", {}, "model", kind),
      make(
        "label",
        { className: "tfv-check" },
        exact,
        "only exact: a query may read every single key",
      ),
    );
    form.setAttribute("aria-label", "Filter what was measured");
    const show = () => {
      for (const row of rows) {
        const other = kind.value !== "both" && row.cells[1].textContent !== kind.value;
        row.hidden = other || (exact.checked && !row.classList.contains("tfv-exact"));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = `${shown} of ${rows.length} rows`;
    };
    form.addEventListener("change", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    table.parentElement.before(form, count);
    show();
  }

  function kin(tree) {
    const edges = [...tree.querySelectorAll(".tfv-edge")];
    const marks = new Map([...tree.querySelectorAll(".tfv-mark")].map((m) => [m.dataset.id, m]));
    // everything a mechanism rests on, and everything that rests on it
    const follow = (id, from, to, found) => {
      for (const edge of edges) {
        if (edge.dataset[from] !== id) continue;
        edge.classList.add("is-kin");
        const next = edge.dataset[to];
        if (!found.has(next)) {
          found.add(next);
          follow(next, from, to, found);
        }
      }
      return found;
    };
    const clear = () => {
      tree.classList.remove("has-focus");
      tree.querySelectorAll(".is-kin").forEach((node) => node.classList.remove("is-kin"));
    };
    const light = (event) => {
      const mark = event.target.closest(".tfv-mark");
      if (!mark) return;
      clear();
      tree.classList.add("has-focus");
      const id = mark.dataset.id;
      const all = [
        id,
        ...follow(id, "to", "from", new Set()),
        ...follow(id, "from", "to", new Set()),
      ];
      all.forEach((name) => marks.get(name).classList.add("is-kin"));
    };
    tree.addEventListener("pointerover", light);
    tree.addEventListener("focusin", light);
    tree.addEventListener("pointerleave", clear);
    tree.addEventListener("focusout", clear);
  }

  const start = () => {
    document.querySelectorAll(".tfv-atlas-box").forEach(atlas);
    document.querySelectorAll(".tfv-measured").forEach(sortable);
    document.querySelectorAll(".tfv-measured").forEach(choosable);
    document.querySelectorAll(".tfv-tree").forEach(kin);
    for (const box of document.querySelectorAll(".tfv-tree-box")) {
      // a phone sees three years at a time: begin where the Transformer does
      if (box.clientWidth < 600) box.scrollLeft = Number(box.dataset.start);
    }
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
