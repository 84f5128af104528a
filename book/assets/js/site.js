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
    try {
      localStorage.setItem("theme", page.dataset.theme);
    } catch {
      /* private window: forgotten with the page */
    }
  });

  // --- equations wider than their place shrink, to two thirds at most; then they can be scrolled.
  // Each is measured when it comes near: to measure all at once would lay out all of the page.
  const measured = new Set();
  function shrink(some) {
    for (const math of some) measured.add(math);
    for (const math of some) math.style.fontSize = "";
    let wide = some.map((math) => ({ math, size: 1 }));
    // some parts of a formula do not shrink with the rest: what is still too wide shrinks again
    for (let round = 0; round < 3; round += 1) {
      wide = wide.filter(({ math }) => math.scrollWidth > math.clientWidth);
      for (const one of wide)
        one.size *= Math.min(0.985, (0.985 * one.math.clientWidth) / one.math.scrollWidth);
      for (const { math, size } of wide)
        math.style.fontSize = `${Math.max(2 / 3, size).toFixed(3)}em`;
    }
  }
  const again = (what = (_) => true) => shrink([...measured].filter(what));
  const coming = new IntersectionObserver(
    (seen) => {
      const here = seen.filter((one) => one.isIntersecting).map((one) => one.target);
      for (const math of here) coming.unobserve(math);
      shrink(here);
    },
    { rootMargin: "1000px" },
  );
  const chapter = ".tf-lesson .tf-article > section";
  const part = `${chapter} > section > section, ${chapter} > section:not(:has(> section)), .tfv-card`;
  const drawn = [null, ...all(part).slice(0, 2)]; // what stands in no part, or in the first two, is drawn at once
  shrink(all(".katex-display").filter((math) => drawn.includes(math.closest(part))));
  for (const math of all(".katex-display")) if (!measured.has(math)) coming.observe(math);
  document.fonts.ready.then(() => again());
  addEventListener("resize", () => again());
  addEventListener("beforeprint", () => shrink(all(".katex-display")));
  const inside = ({ target }) => again((math) => /** @type {Node} */ (target).contains(math));
  document.addEventListener("toggle", inside, true);

  // --- text and exercises that fold are printed whole, and fold again
  /** @type {HTMLDetailsElement[]} */
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = all(":is(.tf-optional, .tf-more, .tf-deeper > details):not([open])");
    for (const fold of unfolded) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of unfolded) fold.open = false;
    unfolded = [];
  });

  // --- what an address names is seen, though it may fold
  function reveal() {
    const named = all("[id]").find((some) => `#${some.id}` === location.hash);
    if (!named) return;
    const section = named.matches("section") ? named : named.parentElement; // which a label names
    const own = section.querySelector(":scope > .tf-more, :scope.tf-deeper > details");
    let fold = (own ?? named).closest("details:not([open])");
    if (!fold) return;
    for (; fold; fold = fold.parentElement.closest("details:not([open])")) fold.open = true;
    named.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // --- contents, where they are a drawer
  const menu = one(".tf-menu"),
    side = one(".tf-side");
  function drawer(open) {
    page.classList.toggle("tf-open", open);
    menu.setAttribute("aria-expanded", String(open));
    if (open) (side.querySelector("[aria-current]") || side.querySelector("a")).focus();
  }
  menu.addEventListener("click", () => drawer(!page.classList.contains("tf-open")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && page.classList.contains("tf-open")) {
      drawer(false);
      menu.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!page.classList.contains("tf-open") || menu.contains(event.target)) return;
    if (!side.contains(event.target) || event.target.closest("a")) drawer(false);
  });
  const current = side.querySelector("a.current");
  if (current && side.scrollHeight > side.clientHeight) side.scrollTop = current.offsetTop - 120;

  // --- where one is on the page
  const links = all(".tf-sections > li > a, .tf-sections > li > ul > li > a").filter(
    (link) => link.hash,
  );
  const places = links.map((link) =>
    document.getElementById(decodeURIComponent(link.hash.slice(1))),
  );
  let waiting = false;
  function here() {
    waiting = false;
    let found = -1;
    places.forEach((place, index) => {
      if (place && place.getBoundingClientRect().top < 140) found = index;
    });
    links.forEach((link, index) => {
      link.classList.toggle("is-here", index === found);
      if (index === found) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }
  // a section that is chosen shows its headings; while one scrolls nothing moves
  for (const item of all(".tf-sections > li")) {
    item.addEventListener("click", () => {
      all(".tf-sections > .is-open").forEach((other) => other.classList.remove("is-open"));
      item.classList.add("is-open");
    });
  }
  if (links.length) {
    requestAnimationFrame(here);
    addEventListener(
      "scroll",
      () => {
        if (!waiting) {
          waiting = true;
          requestAnimationFrame(here);
        }
      },
      { passive: true },
    );
  }

  // --- a report of a mistake names the section in view; the form on GitHub has a field of this name
  for (const link of all("a.tf-report")) {
    link.addEventListener("click", () => {
      here();
      const section = links.filter((place) => place.matches(".is-here")).pop();
      const address = new URL(link.href);
      if (section) address.searchParams.set("section", section.textContent.trim());
      else address.searchParams.delete("section");
      link.href = address.href;
    });
  }

  // --- what comes into view: code can be copied; what scrolls sideways is reached by the keyboard
  function copier(block) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "tf-copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").innerText;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
    block.append(button);
  }
  const widths = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const near = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        if (target.matches(".highlight")) {
          if (!target.closest(".cell_output")) copier(target);
        } else widths.observe(target);
      }
    },
    { rootMargin: "400px" },
  );
  for (const box of all(".highlight, pre, .tf-formula, .tf-table, .cell_output > .output")) {
    if (!box.matches(".highlight")) box.tabIndex = 0; // what may scroll is within reach until it is known not to
    near.observe(box);
  }

  // --- search: every section with its text, fetched when it is first wanted (book_search.py)
  const dialog = one(".tf-search"),
    field = dialog.querySelector("input");
  const list = dialog.querySelector("ol"),
    count = dialog.querySelector("[role=status]");
  const MOST = 40,
    AROUND = 70; // places shown, letters around what was found
  let ready = null;
  const plain = (text) =>
    text
      .toLowerCase()
      .normalize("NFD")
      .replace(/[\u0300-\u036f]/g, "")
      .replace(/[²³¹\u2070-\u209c\u1d2c-\u1d6a\u2c7c]/g, (small) =>
        small.normalize("NFKD").toLowerCase(),
      );
  const normal = (text) => plain(text).replace(/_/g, " ").trim().replace(/\s+/g, " ");
  const index = () =>
    new Promise((done, failed) => {
      const node = document.createElement("script");
      node.src = root + "_static/search.js";
      node.onload = () =>
        done(
          window.tfvizSearch.flatMap(([page, chapter, sections]) =>
            sections.map(([anchor, title, around, text, names]) => ({
              address: `${root}${page}.html${anchor && "#" + anchor}`,
              title: title || chapter,
              chapter: [title && chapter, around].filter(Boolean).join(" · "),
              text,
              plain: plain(text),
              head: plain(title || chapter),
              names: Object.entries(names).map(([name, worth]) => [normal(name), worth]),
              weight: page.startsWith("chapters/") ? 2 : 1,
            })),
          ),
        );
      node.onerror = () => failed(new Error("cannot load the index"));
      document.head.append(node);
    });
  // Whoever types a heading of a survey, or the name of a pattern, wants its section. Else a title counts more
  // than a text, a word's beginning more than its middle. Without `some`, every word has to be there.
  function score(place, words, some) {
    let sum = place.weight;
    let missing = 0;
    const named = place.names.find(([name]) => name === words.join(" "));
    if (named) sum += named[1];
    for (const word of words) {
      const start = (text) => text.startsWith(word) || text.includes(" " + word);
      const inside = place.plain.includes(word);
      if (place.head === word) sum += 40;
      else if (start(place.head)) sum += 20;
      else if (place.head.includes(word)) sum += 8;
      else if (place.names.some(([name]) => start(name))) sum += 6;
      else if (!inside && !plain(place.chapter).includes(word)) missing += 1;
      if (inside) sum += start(place.plain) ? 4 : 1;
    }
    if (named || !missing) return sum;
    return some && missing < words.length ? sum / (1 + missing) : 0;
  }
  function snippet(place, words) {
    const at = Math.min(...words.map((word) => place.plain.indexOf(word)).filter((k) => k >= 0));
    const from = Math.max(0, Number.isFinite(at) ? at - AROUND : 0);
    const begin = from && place.text.indexOf(" ", from) + 1;
    const rest = place.text.slice(begin);
    const whole = rest.slice(0, 3 * AROUND + 1).lastIndexOf(" "); // no word is cut
    const cut = rest.length > 3 * AROUND && whole > 0 ? rest.slice(0, whole) : rest;
    const box = document.createElement("small");
    if (begin) box.append("… ");
    const same = plain(cut).length === cut.length ? plain(cut) : "";
    let done = 0;
    for (let k = 0; k < same.length; k++) {
      const word = words.find((one) => same.startsWith(one, k));
      if (!word) continue;
      const mark = document.createElement("mark");
      mark.textContent = cut.slice(k, k + word.length);
      box.append(cut.slice(done, k), mark);
      done = k + word.length;
      k = done - 1;
    }
    box.append(cut.slice(done), cut.length < rest.length ? " …" : "");
    return box;
  }
  function find(places) {
    const words = normal(field.value).split(" ").filter(Boolean);
    list.replaceChildren();
    if (!words.length) {
      count.textContent = "Type a word, a name or a symbol.";
      return;
    }
    const ranked = (some) =>
      places
        .map((place) => [score(place, words, some), place])
        .filter(([sum]) => sum)
        .sort((a, b) => b[0] - a[0]);
    const withAll = ranked(false);
    const hits = withAll.length ? withAll : ranked(true);
    for (const [, place] of hits.slice(0, MOST)) {
      const item = document.createElement("li"),
        link = document.createElement("a");
      const title = document.createElement("b");
      link.href = place.address;
      title.textContent = place.title;
      link.append(title);
      if (place.chapter) {
        const chapter = document.createElement("span");
        chapter.textContent = place.chapter;
        link.append(chapter);
      }
      link.append(snippet(place, words));
      item.append(link);
      list.append(item);
    }
    const n = hits.length;
    const counted =
      n > MOST ? `${n} places, the first ${MOST}` : `${n} ${n === 1 ? "place" : "places"}`;
    count.textContent = !n
      ? "Nothing found."
      : withAll.length
        ? counted
        : `No place has all of these words. ${counted} with some of them`;
  }
  async function search() {
    if (!dialog.open) dialog.showModal();
    field.select();
    try {
      find(await (ready ??= index()));
    } catch (error) {
      ready = null;
      count.textContent = error.message;
    }
  }
  for (const button of all(".tf-search-open")) button.addEventListener("click", search);
  field.addEventListener("input", () => {
    if (ready) ready.then(find);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("ol a")) dialog.close();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      dialog.close();
    }
    if (event.key === "Enter") {
      event.preventDefault();
      list.querySelector("a")?.click();
    }
    if (event.key === "ArrowDown") {
      event.preventDefault();
      list.querySelector("a")?.focus();
    }
  });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const next =
      event.key === "ArrowDown"
        ? item.nextElementSibling
        : event.key === "ArrowUp"
          ? item.previousElementSibling
          : null;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      (next ? next.firstChild : field).focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
      event.preventDefault();
      search();
    }
  });
})();
