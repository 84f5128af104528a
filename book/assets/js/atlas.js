// The filter of the atlas, and the lines of the family tree. Without this file the table is
// complete and the tree is a picture; nothing here is needed to read them.
(() => {
  "use strict";

  const make = (tag, props = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };

  function filter(box) {
    const table = box.querySelector("table");
    const words = JSON.parse(box.dataset.words);
    const rows = [...table.tBodies[0].rows].map((row) => ({
      ...row.dataset,
      row,
      text: (row.textContent + " " + row.dataset.text).toLowerCase(),
      year: Number(row.dataset.year),
    }));
    const years = rows.map((r) => r.year);
    const first = Math.min(...years);
    const last = Math.max(...years);
    const fields = {};

    const labelled = (name, text, input) => {
      fields[name] = input;
      input.name = name;
      return make("label", {}, text, input);
    };
    const choice = (name, text, options) =>
      labelled(
        name,
        text,
        make(
          "select",
          {},
          make("option", { value: "", textContent: "any" }),
          ...Object.entries(options).map(([value, textContent]) =>
            make("option", { value, textContent }),
          ),
        ),
      );
    const year = (name, text, placeholder) =>
      labelled(
        name,
        text,
        make("input", { type: "number", min: first, max: last, placeholder, inputMode: "numeric" }),
      );

    const form = make(
      "form",
      { className: "tfv-atlas-filter" },
      labelled(
        "q",
        "search",
        make("input", { type: "search", autocomplete: "off", spellcheck: false }),
      ),
      choice("part", "part of the course", words.part),
      choice("changes", "changes in the block", words.changes),
      choice("growth", "time grows", words.growth),
      choice("runs", "measured in", words.runs),
      year("from", "from year", String(first)),
      year("to", "to year", String(last)),
      make(
        "label",
        { className: "tfv-check" },
        (fields.formula = make("input", { type: "checkbox", name: "formula" })),
        "a formula of positions",
      ),
      make("button", { type: "reset", textContent: "show all" }),
    );
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", "Filter the atlas");
    const count = make("p", { className: "tfv-atlas-count" });
    count.setAttribute("role", "status");
    box.prepend(form, count);

    const values = () => {
      const all = {};
      for (const [name, field] of Object.entries(fields)) {
        const value =
          field.type === "checkbox" ? (field.checked ? "true" : "") : field.value.trim();
        if (value) all[name] = value;
      }
      return all;
    };
    const wanted = (v) => {
      const terms = (v.q || "").toLowerCase().split(/\s+/).filter(Boolean);
      return (r) =>
        terms.every((term) => r.text.includes(term)) &&
        (!v.part || r.part === v.part) &&
        (!v.growth || r.growth === v.growth) &&
        (!v.changes || r.changes.split(" ").includes(v.changes)) &&
        (!v.runs || r.runs.split(" ").includes(v.runs)) &&
        (!v.formula || r.formula === "true") &&
        (!v.from || r.year >= Number(v.from)) &&
        (!v.to || r.year <= Number(v.to));
    };
    const show = () => {
      const v = values();
      const test = wanted(v);
      let shown = 0;
      for (const r of rows) {
        r.row.hidden = !test(r);
        shown += Number(!r.row.hidden);
        const mark = document.querySelector(
          `.tfv-mark[data-id="${r.row.id.replace("atlas-", "")}"]`,
        );
        mark?.classList.toggle("is-out", r.row.hidden);
      }
      count.textContent =
        shown === rows.length ? `All ${shown} mechanisms` : `${shown} of ${rows.length} mechanisms`;
      return v;
    };
    const write = () => {
      const query = new URLSearchParams(show()).toString();
      const here = location.pathname + location.search;
      history.replaceState(history.state, "", here + (query ? "#atlas?" + query : ""));
    };
    const read = () => {
      const { hash } = location;
      const known = hash.startsWith("#atlas?")
        ? new URLSearchParams(hash.slice(7))
        : new URLSearchParams();
      if (!hash || hash.startsWith("#atlas?")) {
        for (const [name, field] of Object.entries(fields)) {
          if (field.type === "checkbox") field.checked = known.get(name) === "true";
          else field.value = known.get(name) ?? "";
        }
      } else {
        // a link to one row: it must not be hidden by a filter
        const target = document.getElementById(hash.slice(1));
        if (target && table.contains(target) && target.hidden) {
          form.reset();
          show();
          target.scrollIntoView();
        }
      }
      show();
    };

    form.addEventListener("input", write);
    form.addEventListener("change", write);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(write));
    addEventListener("hashchange", read);
    read();
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
    document.querySelectorAll(".tfv-atlas-box").forEach(filter);
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
