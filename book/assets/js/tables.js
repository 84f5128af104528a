// Long lists as tools: the atlas, the claims, the headings of the surveys, the glossary, the errata. Words to search
// for, choices and jumps stand before the list, and the address keeps them. Without this file a list is complete.
(() => {
  "use strict";

  const make = (tag, props = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };
  const labelled = (text, control) => make("label", {}, text, control);
  const choice = (name, text, options) =>
    labelled(
      text,
      make(
        "select",
        { name },
        make("option", { value: "", textContent: "any" }),
        ...options.map(([value, textContent]) => make("option", { value, textContent })),
      ),
    );
  const search = () =>
    labelled(
      "search",
      make("input", { type: "search", name: "q", autocomplete: "off", spellcheck: false }),
    );

  // Puts a form before the node `before`; the address keeps it as #name?q=…
  // item: {nodes, text, data, holder?}: what is hidden together; a holder is hidden when all in it is.
  // A field other than q keeps the items whose data of that name is its value; rules[field] says otherwise.
  function filter({ before, name, noun, items, fields, rules = {}, below = [], shown }) {
    const form = make(
      "form",
      { className: "tfv-atlas-filter" },
      search(),
      ...fields,
      make("button", { type: "reset", textContent: "show all" }),
    );
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", `Filter the ${noun}`);
    const count = make("p", { className: "tfv-atlas-count" });
    count.setAttribute("role", "status");
    const tool = make("div", { className: "tfv-tool" }, form, ...below, count);
    const room = before.previousElementSibling; // kept for it, so that nothing moves
    if (room?.matches(".tfv-tool-room")) room.replaceWith(tool);
    else before.before(tool);
    // where it stays in view, what one jumps to begins below it
    const tall = () => tool.parentElement.style.setProperty("--tfv-tool", `${tool.offsetHeight}px`);
    new ResizeObserver(tall).observe(tool);
    for (const item of items) item.text = item.text.toLowerCase();
    const holders = [...new Set(items.map((item) => item.holder).filter(Boolean))];
    const controls = [...form.elements].filter((control) => /** @type {any} */ (control).name);

    const values = () =>
      Object.fromEntries(
        [...new FormData(form)]
          .map(([field, value]) => [field, String(value).trim()])
          .filter(([, value]) => value),
      );
    function show() {
      const { q = "", ...chosen } = values();
      const words = q.toLowerCase().split(/\s+/).filter(Boolean);
      for (const item of items) {
        item.hidden = !(
          words.every((word) => item.text.includes(word)) &&
          Object.entries(chosen).every(([field, value]) =>
            rules[field] ? rules[field](item.data, value) : item.data[field] === value,
          )
        );
        for (const node of item.nodes) node.hidden = item.hidden;
      }
      for (const holder of holders)
        holder.hidden = items.every((item) => item.hidden || !holder.contains(item.nodes[0]));
      const left = items.filter((item) => !item.hidden).length;
      count.textContent =
        left === items.length ? `All ${left} ${noun}` : `${left} of ${items.length} ${noun}`;
      shown?.();
    }
    let written = "";
    const query = () => new URLSearchParams(values()).toString();
    function write() {
      // whoever follows a link leaves the field, which is a change, too: the address is the link's
      if (written === query()) return;
      written = query();
      show();
      const here = location.pathname + location.search;
      history.replaceState(history.state, "", here + (written && `#${name}?${written}`));
    }
    function read() {
      const { hash } = location;
      const ours = hash.startsWith(`#${name}?`);
      if (!hash || ours) {
        const known = new URLSearchParams(ours ? hash.slice(name.length + 2) : "");
        for (const control of /** @type {any[]} */ (controls)) {
          if (control.type === "checkbox") control.checked = known.get(control.name) === "true";
          else control.value = known.get(control.name) ?? "";
        }
        written = query();
        show();
        return;
      }
      // a link to a place in the list: no filter may hide it
      show();
      const target = document.getElementById(hash.slice(1));
      if (!target?.closest("[hidden]")) return;
      form.reset();
      written = "";
      show();
      target.scrollIntoView();
    }
    form.addEventListener("input", write);
    form.addEventListener("change", write);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(write));
    addEventListener("hashchange", read);
    read();
    return tool;
  }

  // A row of links to where each group begins: its first item that is shown. Items have group and start.
  function jumps(what, items) {
    const groups = [...new Set(items.map((item) => item.group))];
    const links = groups.map((group) => {
      const members = items.filter((item) => item.group === group);
      const link = make("a", { href: "#", textContent: /^\d+(?=\. )/.exec(group)?.[0] ?? group });
      if (link.textContent !== group) {
        link.title = group;
        link.setAttribute("aria-label", group);
      }
      link.addEventListener("click", (event) => {
        event.preventDefault(); // the address keeps the filter
        const { start } = members.find((item) => !item.hidden);
        start.tabIndex = -1;
        start.scrollIntoView();
        start.focus({ preventScroll: true });
      });
      return { link, members };
    });
    const nav = make("nav", { className: "tfv-jumps" }, ...links.map(({ link }) => link));
    nav.setAttribute("aria-label", `Jump to a ${what}`);
    const shown = () => {
      for (const { link, members } of links) link.hidden = members.every((item) => item.hidden);
    };
    return { nav, shown };
  }

  // A list that is filtered and has jumps; `choices` are fields that take the values of the items' data.
  function list({ name, noun, what, items, before, choices = [] }) {
    if (!items.length) return;
    const many = (value = "") => value.split("|");
    const options = (field) =>
      [...new Set(items.flatMap((item) => many(item.data[field])))].sort().map((one) => [one, one]);
    const { nav, shown } = jumps(what, items);
    const has = (field) => [field, (data, value) => many(data[field]).includes(value)];
    filter({
      ...{ before, name, noun, items, shown },
      fields: choices.map((field) => choice(field, field, options(field))),
      rules: Object.fromEntries(choices.map(has)),
      below: [nav],
    });
  }

  const all = (what) => [...document.querySelectorAll(what)];
  const lists = {
    claims() {
      const items = all("table[data-chapter] tbody tr").map((row) => {
        const start = row.closest("table");
        const holder = start.closest(".tf-table");
        const group = start.dataset.chapter;
        const text = `${start.caption.textContent} ${row.textContent}`;
        return { nodes: [row], text, data: row.dataset, holder, group, start };
      });
      const before = document.querySelector(".tf-table:has(.tfv-claims)");
      list({
        name: "claims",
        noun: "claims",
        what: "chapter",
        items,
        before,
        choices: ["source", "verdict"],
      });
    },
    surveys() {
      if (!document.querySelector(".tfv-survey")) return;
      const items = all("main article section section tbody tr").map((row) => {
        const holder = row.closest("section");
        const start = holder.closest("section:has(> h2)");
        const group = start.querySelector("h2").firstChild.textContent.split(":")[0];
        return { nodes: [row], text: row.textContent, data: {}, holder, group, start };
      });
      list({ name: "surveys", noun: "headings", what: "source", items, before: items[0].start });
    },
    glossary() {
      const items = all("dl.glossary > dt").map((start) => {
        const nodes = [start];
        for (
          let next = start.nextElementSibling;
          next?.tagName === "DD";
          next = next.nextElementSibling
        )
          nodes.push(next);
        const text = nodes.map((node) => node.textContent).join(" ");
        const group = start.textContent.normalize("NFD")[0].toUpperCase();
        return { nodes, text, data: {}, group, start };
      });
      list({
        name: "glossary",
        noun: "words",
        what: "letter",
        items,
        before: document.querySelector("dl.glossary"),
      });
    },
    errata() {
      const items = all(".tfv-erratum").map((start, n) => {
        const group = `E${Math.max(1, 10 * Math.floor((n + 1) / 10))}`;
        return { nodes: [start], text: start.textContent, data: start.dataset, group, start };
      });
      const before = document.querySelector(".tfv-errata");
      list({ name: "errata", noun: "errata", what: "number", items, before, choices: ["source"] });
    },
  };
  window.tfvizTables = { make, labelled, choice, filter };
  const start = () => {
    for (const begin of Object.values(lists)) begin();
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
