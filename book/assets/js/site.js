// What every page can do: change its colours, open its contents, search, copy code.
(function () {
  "use strict";
  const page = document.documentElement;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what) => document.querySelector(what);
  const root = page.dataset.content_root || "./";

  // --- colours
  const theme = one(".tf-theme");
  function paint(name) {
    page.dataset.theme = name;
    theme.setAttribute("aria-pressed", String(name === "dark"));
  }
  paint(page.dataset.theme || "light");
  theme.addEventListener("click", () => {
    paint(page.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("theme", page.dataset.theme); } catch { /* private window: forgotten with the page */ }
  });

  // --- contents, where they are a drawer
  const menu = one(".tf-menu"), side = one(".tf-side");
  function drawer(open) {
    page.classList.toggle("tf-open", open);
    menu.setAttribute("aria-expanded", String(open));
    if (open) (side.querySelector("[aria-current]") || side.querySelector("a")).focus();
  }
  menu.addEventListener("click", () => drawer(!page.classList.contains("tf-open")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && page.classList.contains("tf-open")) { drawer(false); menu.focus(); }
  });
  document.addEventListener("click", (event) => {
    if (!page.classList.contains("tf-open") || menu.contains(event.target)) return;
    if (!side.contains(event.target) || event.target.closest("a")) drawer(false);
  });
  const current = side.querySelector("a.current");
  if (current && side.scrollHeight > side.clientHeight) side.scrollTop = current.offsetTop - 120;

  // --- where one is on the page
  const links = all(".tf-sections > li > a").filter((link) => link.hash);
  const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let waiting = false;
  function here() {
    waiting = false;
    let found = -1;
    places.forEach((place, index) => { if (place && place.getBoundingClientRect().top < 140) found = index; });
    links.forEach((link, index) => {
      link.classList.toggle("is-here", index === found);
      if (index === found) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
  }
  if (links.length) {
    requestAnimationFrame(here);
    addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(here); } }, { passive: true });
  }

  // --- what comes into view: code can be copied; what scrolls sideways is reached by the keyboard
  function copier(block) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tf-copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").innerText;
      try { await navigator.clipboard.writeText(text); } catch {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
  const widths = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0; else target.removeAttribute("tabindex");
    }
  });
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      if (target.matches(".highlight")) { if (!target.closest(".cell_output")) copier(target); }
      else widths.observe(target);
    }
  }, { rootMargin: "400px" });
  for (const box of all(".highlight, pre, .tf-formula, .tf-table, .cell_output > .output")) {
    if (!box.matches(".highlight")) box.tabIndex = 0; // what may scroll is within reach until it is known not to
    near.observe(box);
  }

  // --- search: Sphinx's index, fetched when it is first wanted
  const dialog = one(".tf-search"), field = dialog.querySelector("input");
  const list = dialog.querySelector("ol"), count = dialog.querySelector("[role=status]");
  let ready = null;
  const script = (name) => new Promise((done, failed) => {
    const node = document.createElement("script");
    node.src = root + name;
    node.onload = done;
    node.onerror = () => failed(new Error(`cannot load ${name}`));
    document.head.append(node);
  });
  async function index() {
    window.SPHINX_HIGHLIGHT_ENABLED = false; // else a search writes to the browser's store, and fails where that is forbidden
    for (const name of ["documentation_options", "doctools", "language_data", "searchtools"]) await script(`_static/${name}.js`);
    await script("searchindex.js");
  }
  function find() {
    const query = field.value.trim();
    list.replaceChildren();
    if (query.length < 2) { count.textContent = "Type a word, a name or a symbol."; return; }
    /* global Search */
    const results = Search._performSearch(...Search._parseQuery(query)).reverse();
    const seen = new Set();
    for (const [name, title, anchor] of results) {
      const address = `${root}${name}.html${anchor || ""}`;
      if (seen.has(address) || seen.size >= 40) continue;
      seen.add(address);
      const item = document.createElement("li"), link = document.createElement("a");
      const [chapter, section] = title.split(" > ");
      link.href = address;
      link.textContent = section || chapter;
      if (section) { const small = document.createElement("small"); small.textContent = chapter; link.append(small); }
      item.append(link);
      list.append(item);
    }
    count.textContent = seen.size ? `${seen.size} ${seen.size === 1 ? "place" : "places"}` : "Nothing found.";
  }
  async function search() {
    if (!dialog.open) dialog.showModal();
    field.select();
    try { await (ready ??= index()); find(); } catch (error) { ready = null; count.textContent = error.message; }
  }
  for (const button of all(".tf-search-open")) button.addEventListener("click", search);
  field.addEventListener("input", () => { if (ready) ready.then(find); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.closest("ol a")) dialog.close(); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.preventDefault(); dialog.close(); }
    if (event.key === "Enter") { event.preventDefault(); list.querySelector("a")?.click(); }
    if (event.key === "ArrowDown") { event.preventDefault(); list.querySelector("a")?.focus(); }
  });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next = event.key === "ArrowDown" ? item.nextElementSibling : event.key === "ArrowUp" ? item.previousElementSibling : null;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); (next ? next.firstChild : field).focus(); }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) { event.preventDefault(); search(); }
  });
})();
