// A letter of a formula that is pointed at, tapped, or reached with the arrow keys says what it means.
//
// The build names the letters (class "tf-letter", then the name) and writes their meanings into the page
// once. Formulas of explorers are plain text: they get their names when one comes to them.
(function () {
  "use strict";
  const meanings = JSON.parse(document.querySelector(".tf-legend").textContent);
  const NEAR = 18; // so far from a letter a finger may land, in px
  const hint = document.createElement("div");
  hint.className = "tf-hint";
  hint.setAttribute("role", "status");
  hint.hidden = true;
  document.body.append(hint);
  let shown = null;

  const nameOf = (letter) =>
    [...letter.classList].at([...letter.classList].indexOf("tf-letter") + 1);
  const meaningOf = (letter) => meanings[nameOf(letter)];
  const spoken = (name) => name.replace(/^[~^¯´˙]?(?:[bcB]:)?/, "").replace(/[_^]/g, " ");

  function hide() {
    shown?.classList.remove("tf-pointed");
    shown = null;
    hint.hidden = true;
  }

  function show(letter) {
    const meaning = letter && meaningOf(letter);
    if (letter === shown) return;
    hide();
    if (!meaning) return;
    shown = letter;
    letter.classList.add("tf-pointed");
    const name = document.createElement("span");
    name.className = "tf-unseen";
    name.textContent = `${spoken(nameOf(letter))}: `;
    hint.replaceChildren(name, meaning);
    hint.hidden = false;
    place();
  }

  /** Put the hint beside its letter; a letter that has left the screen has none. */
  function place() {
    if (!shown) return;
    const at = shown.getBoundingClientRect();
    hint.hidden = at.bottom < 0 || at.top > window.innerHeight;
    const box = hint.getBoundingClientRect();
    const most = document.documentElement.clientWidth - box.width - 8;
    const below = at.bottom + 8 + box.height < window.innerHeight;
    hint.style.left = `${Math.max(8, Math.min(most, at.left + at.width / 2 - box.width / 2))}px`;
    hint.style.top = `${below ? at.bottom + 6 : at.top - box.height - 6}px`;
  }

  const lettersIn = (formula) =>
    [...formula.querySelectorAll(".tf-letter")].filter((letter) => meaningOf(letter));

  /** The letter of a formula that is nearest to a point, if one is near. */
  function nearest(formula, x, y) {
    const distance = (letter) => {
      const box = letter.getBoundingClientRect();
      const beside = Math.max(box.left - x, 0, x - box.right);
      return Math.hypot(beside, Math.max(box.top - y, 0, y - box.bottom));
    };
    const near = lettersIn(formula).filter((letter) => distance(letter) < NEAR);
    return near.sort((a, b) => distance(a) - distance(b))[0];
  }

  // --- formulas of explorers: letters that stand alone, with what stands lower behind them
  const LONE = /(?<![\p{L}\d])(\p{L})(?![\p{L}\d])/u;
  function nameLetters(formula) {
    if (formula.dataset.named) return;
    formula.dataset.named = "yes";
    const walker = document.createTreeWalker(formula, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = text.data.split(new RegExp(LONE, "gu"));
      const lower = text.nextSibling?.nodeName === "SUB" ? `_${text.nextSibling.textContent}` : "";
      const nodes = parts.map((part, n) => {
        const last = n === parts.length - 2 && parts.at(-1) === "";
        const names = [...(last ? [part + lower] : []), part].flatMap((name) => [
          name,
          `b:${name}`,
        ]);
        const name = n % 2 ? names.find((name) => meanings[name]) : undefined;
        if (name === undefined) return part;
        const letter = document.createElement("span");
        letter.classList.add("tf-letter", name);
        letter.textContent = part;
        return letter;
      });
      text.replaceWith(...nodes);
    }
  }

  // --- by pointer
  const at = (event, what) => (event.target instanceof Element ? event.target.closest(what) : null);
  document.addEventListener("pointerover", (event) => {
    const formula = at(event, ".tfx-formula");
    if (formula) nameLetters(formula);
    if (event.pointerType !== "touch") show(at(event, ".tf-letter"));
  });
  document.addEventListener("click", (event) => {
    const formula = at(event, ".katex-html, .tfx-formula");
    if (formula) show(at(event, ".tf-letter") ?? nearest(formula, event.clientX, event.clientY));
    else hide();
  });
  document.addEventListener("scroll", place, { passive: true, capture: true });

  // --- by keyboard: an equation takes the focus, its letters are reached with the arrows
  /** @type {NodeListOf<HTMLElement>} */
  const equations = document.querySelectorAll(".tf-equation");
  for (const equation of equations) {
    if (!equation.querySelector(".tf-letter")) continue;
    equation.tabIndex = 0;
    equation.setAttribute("role", "group");
    equation.setAttribute("aria-label", "Equation. The arrow keys say what its letters mean.");
    equation.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const letters = lettersIn(equation);
      if (!letters.length) return;
      const before = letters.indexOf(shown);
      const next = before < 0 && step < 0 ? letters.length - 1 : before + step;
      const letter = letters[Math.max(0, Math.min(letters.length - 1, next))];
      letter.scrollIntoView({ block: "nearest", inline: "nearest" });
      show(letter);
    });
    equation.addEventListener("blur", hide);
  }
})();
