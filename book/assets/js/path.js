// The path that the reader has chosen walks along: a bar below the header says which stop this is, and leads to the
// next one, or back from a page off the path. It is set by links with data-tf-path, and kept in this browser.
(function () {
  "use strict";
  const KEY = "tfviz-path"; // layout.html asks for it, too, before the page is drawn
  const page = document.documentElement;
  const root = page.dataset.content_root || "./";
  const el = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };
  function keep(mine) {
    try {
      if (mine) localStorage.setItem(KEY, JSON.stringify(mine));
      else localStorage.removeItem(KEY);
    } catch {
      /* a private window: forgotten with the page */
    }
  }
  function kept() {
    try {
      return JSON.parse(localStorage.getItem(KEY));
    } catch {
      return null;
    }
  }
  for (const link of document.querySelectorAll("[data-tf-path]"))
    link.addEventListener("click", () => keep({ path: link.dataset.tfPath, at: 0 }));

  const leave = () => page.classList.remove("tf-pathed");
  const mine = kept();
  if (!mine) return leave();
  const script = el("script", { src: `${root}_static/js/paths-data.js` });
  script.addEventListener("error", leave);
  script.addEventListener("load", () => {
    const path = Object.hasOwn(window.tfvizPaths, mine.path) && window.tfvizPaths[mine.path];
    if (path && path.stops[mine.at]) walk(path);
    else leave();
  });
  document.head.append(script);

  function walk({ title, stops }) {
    const bar = document.querySelector(".tf-path");
    const step = el("span");
    const at = el("span", { className: "tf-path-at" }, el("span", {}, `${title}, `), step);
    const next = el("a", { className: "tf-path-next" });
    const dots = el("span", { className: "tf-path-dots" }, ...stops.map(() => el("i")));
    const away = el("button", { type: "button" }, "Leave", el("span", {}, " the path"));
    away.setAttribute("aria-label", "Leave the path");
    dots.setAttribute("aria-hidden", "true");
    bar.setAttribute("aria-label", `Your path: ${title}`);
    bar.append(dots, at, next, away);
    away.addEventListener("click", () => {
      keep(null);
      leave();
      bar.replaceChildren();
      document.getElementById("main-content").focus({ preventScroll: true });
    });

    // the stops on this page, each with the heading where it begins
    const here = new URL(location.href).pathname.replace(/\/(index\.html)?$/, "/book/index.html");
    const places = stops.flatMap(([address], n) => {
      const [file, anchor] = address.split("#");
      if (!here.endsWith(`/${file}`)) return [];
      return [{ n, top: document.getElementById(anchor || "main-content") }];
    });
    function show() {
      const reached = places.filter(
        ({ top }, k) => !k || (top && top.getBoundingClientRect().top < innerHeight * 0.4),
      );
      const now = places.length ? reached.pop().n : mine.at;
      if (now !== mine.at) keep({ path: mine.path, at: (mine.at = now) });
      step.textContent = `step ${now + 1} of ${stops.length}`;
      const stop = stops[places.length ? now + 1 : now];
      const lead = places.length ? "Next" : "Back to";
      next.textContent = stop
        ? `${lead}: ${stop[1]} (${stop[2]} min)`
        : "You are at the end: other paths";
      next.href = root + (stop ? stop[0] : "book/paths.html");
      dots.childNodes.forEach((dot, n) => {
        dot.className = n < now ? "is-done" : n === now ? "is-here" : "";
      });
    }
    let waiting = false;
    function soon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        show();
      });
    }
    show();
    addEventListener("scroll", soon, { passive: true });
  }
})();
