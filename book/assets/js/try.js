// An exercise that plain Python can answer is tried here, in the page: written into a box, judged by
// the checks that stand below it. Here is only the button; what it opens is loaded when a reader
// first presses one (try-here.js, and Python itself).
(function () {
  "use strict";
  const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
  const LOADS =
    "Python runs in your browser. It is loaded when you first press this (5 MB); what you write " +
    "goes nowhere and is not kept.";
  const LOST = "The file that this needs cannot be loaded. Press again when you are connected.";
  const el = (name, given = {}, ...children) => {
    const node = Object.assign(document.createElement(name), given);
    node.append(...children);
    return node;
  };

  let held;
  const opened = () =>
    (held ??= new Promise((done, failed) => {
      const script = el("script", { src: src.replace(/try\.js/, "try-here.js") });
      script.onload = () => done(window.tfvizTryHere);
      script.onerror = () => {
        held = null;
        failed(new Error(LOST));
      };
      document.head.append(script);
    }));

  for (const box of document.querySelectorAll(".tf-try")) {
    const task = JSON.parse(box.querySelector("script").textContent);
    const button = el("button", { type: "button", textContent: "Try it here" });
    const note = el("p", { className: "tf-try-note", textContent: LOADS });
    button.addEventListener("click", async () => {
      try {
        const open = await opened();
        open(box, task);
      } catch (error) {
        note.textContent = error.message;
      }
    });
    box.append(button, note);
  }
})();
