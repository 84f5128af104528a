// The bar below the title of a chapter: cards only, code, everything open (book_reading.py).
(function () {
  "use strict";
  const page = document.documentElement;
  const all = (what) => [...document.querySelectorAll(what)];
  const CODE = "tf-code"; // whoever reads code wants it in every chapter

  // what stands at the top of the window stays there, whatever opens or closes above it
  function steady(change) {
    const mark = all(".tf-article :is(h2, h3, p)").find(
      (one) => one.getClientRects().length && one.getBoundingClientRect().bottom > 60,
    );
    const before = mark?.getBoundingClientRect().top;
    change();
    if (mark?.getClientRects().length && scrollY > 300)
      scrollBy({ top: mark.getBoundingClientRect().top - before, behavior: "instant" });
  }

  // --- the whole chapter, or its cards: what each mechanism is, in 90 seconds
  const views = all("[data-tf-view]");
  function view(name) {
    page.toggleAttribute("data-tf-cards", name === "cards");
    for (const one of views) one.setAttribute("aria-pressed", String(one.dataset.tfView === name));
  }
  for (const one of views)
    one.addEventListener("click", () => {
      const cards = one.dataset.tfView === "cards";
      steady(() => view(one.dataset.tfView));
      history.replaceState(null, "", cards ? "#cards" : location.pathname + location.search);
    });
  for (const ninety of all(".tf-90")) {
    const onward = document.createElement("a");
    onward.className = "tf-onward";
    onward.href = `#${ninety.parentElement.id}`;
    onward.textContent = "Read this section";
    ninety.append(onward);
  }
  // a link to a place leads out of the cards, where it may be hidden
  const named = () => location.hash && view(location.hash === "#cards" ? "cards" : "all");
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (link && link.hash !== "#cards") view("all");
  });
  addEventListener("hashchange", named);
  named();

  // --- code
  const [code] = all('[data-tf-show="code"]');
  const show = () => {
    for (const one of all("details.tf-code")) one.open = code.checked;
  };
  try {
    code.checked = localStorage.getItem(CODE) === "shown";
  } catch {
    /* a private window: nothing is remembered */
  }
  if (code.checked) show();
  code.addEventListener("change", () => {
    steady(show);
    try {
      if (code.checked) localStorage.setItem(CODE, "shown");
      else localStorage.removeItem(CODE);
    } catch {
      /* forgotten with the page */
    }
  });

  // --- all that folds, but code and what gives an exercise away
  const [everything] = all('[data-tf-show="folds"]');
  const KEPT = ".tf-code, .hint, .solution, .tag_hide-cell > details, .tf-letters > details";
  let opened = [];
  everything.addEventListener("click", () => {
    const open = everything.getAttribute("aria-pressed") !== "true";
    if (open) opened = all(`.tf-article details:not([open], ${KEPT})`);
    steady(() => {
      for (const one of opened) one.open = open;
    });
    everything.setAttribute("aria-pressed", String(open));
  });
})();
