// The box in which an answer is written, and the checks that judge it. try.js loads this file when a
// reader first asks for a box, and this file loads Python (Pyodide).
(function () {
  "use strict";
  const SECONDS = 10; // an answer may take; the checks of the book need a fraction of one
  const root = /** @type {HTMLScriptElement} */ (document.currentScript).src.replace(
    /js\/try-here\.js.*$/,
    "",
  );
  const CHECKS =
    "Judged by the checks that you can read below. Hidden checks, and all that needs PyTorch, " +
    "run only in the notebook.";
  const el = (name, given = {}, ...children) => {
    const node = Object.assign(document.createElement(name), given);
    node.append(...children);
    return node;
  };

  // --- Python: one worker at a time, for one check. An answer can change whatever a module, a class
  // or Python itself holds, so the next one begins with another Python, which starts meanwhile.
  let held, worker, starting, ready, busy;
  const DEEP = /call stack|too much recursion|stack overflow/i; // as browsers say it
  const loaded = () =>
    (held ??= new Promise((done, failed) => {
      const script = el("script", { src: `${root}vendor/python.js` });
      script.onload = () => done(window.tfvizPython);
      script.onerror = () => {
        held = null;
        failed(new Error("its file cannot be loaded"));
      };
      document.head.append(script);
    }));

  function end() {
    worker?.terminate();
    worker = starting = ready = null;
  }

  /** The next message of the worker; after `seconds` it is ended, and so is what it does. */
  function answered(message, seconds = 0) {
    return new Promise((done, failed) => {
      const ended = (error) => {
        end();
        failed(error);
      };
      const limit = seconds && setTimeout(() => ended(new Error("too long")), seconds * 1000);
      worker.onmessage = ({ data }) => {
        clearTimeout(limit);
        if (data.broken) ended(new Error(data.broken));
        else done(data);
      };
      worker.onerror = (event) => {
        clearTimeout(limit);
        event.preventDefault();
        ended(new Error(event.message || "this browser starts no worker here"));
      };
      worker.postMessage(message);
    });
  }

  function started() {
    if (starting) return starting;
    starting = (async () => {
      const python = await loaded();
      // From a folder, Chromium starts a module worker from a data: address, but not from a blob: one.
      const text = encodeURIComponent(python.worker);
      worker = new Worker(`data:text/javascript;charset=utf-8,${text}`, { type: "module" });
      const { memory } = await answered({ held: python });
      python.snapshot ??= memory;
      ready = true;
    })();
    starting.catch(() => {
      starting = null;
    });
    return starting;
  }

  async function judged(task) {
    try {
      await started();
    } catch (error) {
      return { verdict: "error", text: `✗ Python could not start: ${error.message}.`, masks: [] };
    }
    try {
      return (await answered(task, SECONDS)).verdict;
    } catch ({ message }) {
      let text = `✗ Python broke down: ${message}.`;
      if (message === "too long")
        text = `✗ Stopped after ${SECONDS} seconds. Is there a loop that never ends?`;
      else if (DEEP.test(message))
        text = "✗ Stopped: calls are nested too deeply. Does something call itself without end?";
      return { verdict: "error", text, masks: [] };
    } finally {
      end();
      started().catch(() => {}); // for the next check
    }
  }

  // --- two masks side by side; a pair that differs is framed and crossed
  function drawn({ what, target, yours }) {
    const [queries, keys] = [target.length, target[0]?.length || 0];
    const wrong = target.flatMap((row, i) =>
      row.flatMap((pair, j) => (pair === yours[i][j] ? [] : [[i, j]])),
    );
    const svg = (name, given) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(given)) node.setAttribute(key, value);
      return node;
    };
    const panel = (title, mask, marked) => {
      const picture = svg("svg", {
        viewBox: `-0.1 -0.1 ${keys + 0.2} ${queries + 0.2}`,
        role: "img",
        "aria-label": `${title}: ${mask.flat().filter(Boolean).length} of ${queries * keys} pairs`,
      });
      mask.forEach((row, i) =>
        row.forEach((pair, j) =>
          picture.append(
            svg("rect", {
              x: j + 0.06,
              y: i + 0.06,
              width: 0.88,
              height: 0.88,
              class: pair ? "is-pair" : "",
            }),
          ),
        ),
      );
      for (const [i, j] of marked)
        picture.append(
          svg("path", {
            d: `M${j + 0.06} ${i + 0.06}h.88v.88h-.88zl.88 .88m-.88 0l.88-.88`,
            class: "is-wrong",
          }),
        );
      return el("figure", {}, el("figcaption", { textContent: title }), picture);
    };
    const first = wrong.length
      ? `first wrong at query ${wrong[0][0]}, key ${wrong[0][1]}; ${wrong.length} differ, marked ×.`
      : "the same.";
    const words = `${what}: ${first} Rows are queries, columns are keys, counted from 0.`;
    return el(
      "div",
      { className: "tf-try-masks" },
      panel("expected", target, []),
      panel("yours", yours, wrong),
      el("p", { textContent: words.charAt(0).toUpperCase() + words.slice(1) }),
    );
  }

  // --- an exercise
  /** Enter keeps the indentation, and adds to it after a colon; Tab stays the browser's. */
  function indent(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    const area = event.target;
    const line = area.value.slice(0, area.selectionStart).split("\n").at(-1);
    const blank = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
    if (!blank) return;
    event.preventDefault();
    // as if typed, so that it can be undone
    if (!document.execCommand("insertText", false, `\n${blank}`))
      area.setRangeText(`\n${blank}`, area.selectionStart, area.selectionEnd, "end");
  }

  function open(box, task) {
    const label = box.dataset.try;
    const title = box.closest(".exercise")?.querySelector(".admonition-title");
    const named = title ? `: ${title.textContent.trim()}` : "";
    const area = el("textarea", {
      value: task.stub,
      rows: Math.max(8, task.stub.split("\n").length + 3),
      spellcheck: false,
      autocapitalize: "off",
      autocomplete: "off",
      ariaLabel: `Your answer in Python${named}`,
    });
    area.setAttribute("autocorrect", "off");
    const verdict = el("pre", { className: "tf-try-verdict" });
    verdict.setAttribute("role", "status");
    const masks = el("div");
    const check = el("button", { type: "submit", textContent: "Run the checks" });
    const again = el("button", { type: "button", textContent: "Start again" });
    const form = el(
      "form",
      {},
      area,
      el("div", { className: "tf-try-buttons" }, check, again),
      verdict,
      masks,
      el("p", { className: "tf-try-note", textContent: `${CHECKS} Ctrl + Enter runs them.` }),
    );
    again.addEventListener("click", () => {
      if (area.value !== task.stub && !confirm("Replace what you wrote by the stub?")) return;
      [area.value, verdict.textContent] = [task.stub, ""];
      masks.replaceChildren();
      delete box.dataset.verdict;
      area.focus();
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      } else indent(event);
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (busy) {
        if (busy !== box) verdict.textContent = "Another answer is being checked.";
        return;
      }
      busy = box;
      check.setAttribute("aria-disabled", "true"); // not disabled: the focus stays
      delete box.dataset.verdict;
      masks.replaceChildren();
      verdict.textContent = ready ? "The checks run …" : "Python starts, then the checks run …";
      try {
        const { given, tests } = task;
        const found = await judged({ answer: area.value, given, tests, label });
        verdict.textContent = found.text;
        masks.replaceChildren(...found.masks.map(drawn));
        box.dataset.verdict = found.verdict;
      } finally {
        busy = null;
        check.removeAttribute("aria-disabled");
      }
    });
    box.replaceChildren(form);
    area.focus();
    const at = task.stub.indexOf("# your code here");
    if (at >= 0) area.setSelectionRange(at, task.stub.length);
    verdict.textContent = "Python starts; you can write already.";
    started().then(
      () => {
        if (verdict.textContent.startsWith("Python starts"))
          verdict.textContent = "Python is ready.";
      },
      (error) => {
        verdict.textContent = `✗ Python could not start: ${error.message}.`;
        box.dataset.verdict = "error";
      },
    );
  }

  window.tfvizTryHere = open;
})();
