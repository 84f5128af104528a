// The reader's progress: exercises ticked, goals met in the explorers, chapters read. It is kept in this
// browser under one key, and nowhere else; nothing is kept before the reader does something.
// A plain script, not a module: a browser that has opened the page from a folder loads no modules.
(function () {
  "use strict";
  const VERSION = 1,
    MOST = 256 * 1024,
    NAME = /^[A-Za-z0-9][\w./-]{0,99}$/,
    DAY = /^\d{4}-\d\d-\d\d$/;
  const site = new URL(document.documentElement.dataset.content_root || "./", location.href);
  /** An address as people read it; as it stands, where its bytes are no UTF-8. */
  function readable(address) {
    try {
      return decodeURI(address);
    } catch {
      return address;
    }
  }
  const KEY = `tfviz-progress/${VERSION}:${readable(site.pathname)}`;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what, within = document) => within.querySelector(what);
  const names = (node) => (node.dataset.tfLabels || "").split(" ").filter(Boolean);
  const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  function el(tag, props = {}, ...children) {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  }
  function today() {
    const now = new Date(),
      two = (n) => String(n).padStart(2, "0");
    return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  }
  function day(text) {
    return new Date(`${text}T12:00`).toLocaleDateString("en-GB", {
      day: "numeric",
      month: "long",
      year: "numeric",
    });
  }

  // --- what is known, and where it is kept
  const nothing = () => ({
    course: "tfviz",
    version: VERSION,
    exercises: {},
    chapters: {},
    answers: {},
  });
  const size = (progress) =>
    ["exercises", "chapters", "answers"].reduce(
      (all, kind) => all + Object.keys(progress[kind]).length,
      0,
    );
  let known = nothing(),
    trouble = ""; // trouble: why what is known here is not kept

  // Progress from outside, complete and of the right types; an Error says what is wrong with it.
  function checked(text) {
    const table = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
    const answer = (x) =>
      Number.isFinite(x) || (Array.isArray(x) && x.length <= 64 && x.every(Number.isFinite));
    if (text.length > MOST)
      throw new Error(`it is longer than the ${MOST / 1024} KiB that progress may have`);
    let found;
    try {
      found = JSON.parse(text);
    } catch {
      throw new Error("it is not JSON");
    }
    if (!table(found) || found.course !== "tfviz")
      throw new Error("it is JSON, but no progress of this course");
    if (found.version !== VERSION)
      throw new Error(
        `its version is ${JSON.stringify(found.version)}, and this page reads version ${VERSION}`,
      );
    const out = nothing();
    for (const kind of ["exercises", "chapters", "answers"]) {
      if (kind === "answers" && found[kind] === undefined) continue; // kept before questions were asked
      if (!table(found[kind])) throw new Error(`its “${kind}” is not a table of names`);
      for (const [name, entry] of Object.entries(found[kind])) {
        const wrong = (what) => new Error(`in “${kind}”, “${name.slice(0, 40)}” ${what}`);
        if (!NAME.test(name)) throw wrong("is not a name that this course uses");
        if (
          !table(entry) ||
          typeof entry.done !== "string" ||
          !DAY.test(entry.done) ||
          Number.isNaN(Date.parse(entry.done))
        ) {
          throw wrong("has no day such as “done”: “2026-11-21”");
        }
        out[kind][name] = { done: entry.done };
        if (kind === "answers") {
          if (!answer(entry.said))
            throw wrong("has a “said” that is neither a number nor a list of numbers");
          out[kind][name].said = entry.said;
          continue;
        }
        if (entry.state === undefined) continue;
        if (kind === "chapters" || !table(entry.state))
          throw wrong("has a “state” that is none of an explorer");
        out[kind][name].state = entry.state;
      }
    }
    return out;
  }
  function read() {
    let text = null;
    try {
      text = localStorage.getItem(KEY);
    } catch {
      trouble = "this browser keeps nothing for this site";
      return;
    }
    try {
      known = text === null ? nothing() : checked(text);
      trouble = "";
    } catch (error) {
      trouble = `what is stored cannot be read: ${error.message}`;
    }
  }
  const unreadable = () => trouble.startsWith("what is stored");
  // as it is kept and exported: a table of answers only where there are some
  const kept = () => {
    const { answers, ...without } = known;
    return Object.keys(answers).length ? known : without;
  };
  function keep() {
    if (unreadable()) return; // somebody else's, or of a later edition: not ours to write over
    try {
      if (size(known)) localStorage.setItem(KEY, JSON.stringify(kept()));
      else localStorage.removeItem(KEY);
      trouble = "";
    } catch {
      trouble = "this browser keeps nothing for this site, or its store is full";
    }
  }
  function change(edit) {
    if (!trouble) read(); // another tab may have written
    edit(known);
    keep();
    show();
  }
  const done = (label) => (Object.hasOwn(known.exercises, label) ? known.exercises[label] : null);
  const seen = (page) => (Object.hasOwn(known.chapters, page) ? known.chapters[page] : null);
  const lasting = (when) => (trouble ? "until you leave this page" : day(when));
  function mark(kind, name, is) {
    change((p) => {
      if (is) p[kind][name] ??= { done: today() };
      else delete p[kind][name];
    });
    say(
      is
        ? trouble
          ? `Done, but ${trouble}.`
          : "Kept in your progress on this device."
        : "Taken back.",
    );
  }

  // --- what is said, to everybody or to those who listen only
  const voice = el("p", { className: "tf-unseen" });
  voice.setAttribute("role", "status");
  (one("main") || document.body).append(voice);
  function say(text) {
    voice.textContent = "";
    setTimeout(() => {
      voice.textContent = text;
    }, 50);
  }

  // --- an exercise
  const WORDS = {
    code: "I solved it in the notebook",
    tried: "I solved it, here or in the notebook",
    written: "I wrote an answer and compared it",
  };
  const shows = []; // functions that bring what the page shows up to date
  for (const row of all(".tf-done")) {
    const box = row.closest(".exercise"),
      title = one(".admonition-title", box),
      label = box.id;
    const note = el("span", { className: "tf-done-note" });
    title.id ||= `${label}-title`;
    if (row.dataset.kind === "explorer") {
      const text = el("span"),
        host = one(".tfviz-explorer", box);
      const mine = el(
        "button",
        {
          type: "button",
          className: "tf-button",
          onclick: () => {
            host.dispatchEvent(new CustomEvent("tfviz:show", { detail: done(label).state || {} }));
            host.tabIndex = -1;
            host.focus({ preventScroll: true });
            host.scrollIntoView();
            say("Your answer is shown.");
          },
        },
        "Show my answer",
      );
      const forget = el(
        "button",
        {
          type: "button",
          className: "tf-button",
          onclick: () => {
            mark("exercises", label, false);
            row.tabIndex = -1; // the button goes: the focus stays in its place
            row.focus();
          },
        },
        "Forget it",
      );
      row.append(el("span", { className: "tf-done-text" }, text, note), mine, forget);
      shows.push(() => {
        const entry = done(label);
        text.textContent = entry
          ? "Goal met"
          : "Checked while you move: reach the goal, and it counts as done.";
        mine.hidden = forget.hidden = !entry;
      });
    } else {
      const tick = el("input", {
        type: "checkbox",
        onchange: () => mark("exercises", label, tick.checked),
      });
      tick.setAttribute("aria-describedby", title.id);
      const kind = one(".tf-try", box) ? "tried" : row.dataset.kind;
      row.append(el("label", {}, tick, WORDS[kind]), note);
      shows.push(() => {
        tick.checked = Boolean(done(label));
      });
    }
    shows.push(() => {
      const entry = done(label);
      box.classList.toggle("is-done", Boolean(entry));
      note.textContent = entry ? lasting(entry.done) : "";
      note.title = entry ? trouble : "";
    });
  }
  const moved = new WeakSet(); // explorers that the reader has touched: a link to an answer does not count
  for (const type of ["input", "click"]) {
    document.addEventListener(
      type,
      ({ target }) => {
        const host = target.closest?.(".tfviz-explorer");
        if (host) moved.add(host);
      },
      true,
    );
  }
  let later;
  document.addEventListener("tfviz:goal", ({ target, detail }) => {
    const box = target.closest(".exercise");
    clearTimeout(later); // the answer kept is the last one that met the goal, not each on its way
    if (!box || !detail.met || !moved.has(target)) return;
    const put = () =>
      change((p) => {
        p.exercises[box.id] = { done: done(box.id)?.done || today(), state: detail.state };
      });
    if (done(box.id))
      later = setTimeout(() => {
        if (JSON.stringify(done(box.id)?.state) !== JSON.stringify(detail.state)) put();
      }, 600);
    else {
      put();
      say(
        `${one(".admonition-title", box).textContent.trim()} is done. ${trouble ? `But ${trouble}.` : "Kept on this device."}`,
      );
    }
  });

  // --- predictions: what the reader said before an explorer showed it; null takes it back
  document.addEventListener("tfviz:answer", ({ detail: { name, said } }) => {
    change((p) => {
      if (said === null) delete p.answers[name];
      else p.answers[name] = { done: today(), said };
    });
  });
  document.addEventListener("tfviz:asked", ({ detail }) => {
    if (Object.hasOwn(known.answers, detail.name)) detail.said = known.answers[detail.name].said;
  });

  // --- a chapter: how many of its exercises, and whether it was read
  const early = []; // pages that were ticked before this script came
  for (const place of all("[data-tf-chapter]")) {
    const page = place.dataset.tfChapter,
      labels = names(place),
      tick = one("[data-tf-read]", place),
      count = one("[data-tf-count]", place) || place;
    tick?.addEventListener("change", () => mark("chapters", page, tick.checked));
    if (tick?.checked) early.push(page);
    shows.push(() => {
      const ready = labels.filter(done).length,
        read = seen(page),
        total = many(labels.length, "exercise");
      if (tick) tick.checked = Boolean(read);
      const words = labels.length
        ? [
            !ready
              ? total
              : ready < labels.length
                ? `${ready} of ${total} done`
                : `all ${total} done`,
          ]
        : [];
      if (read && !tick) words.unshift("read");
      else if (read && trouble) words.push("until you leave this page");
      count.textContent = words.join(" · ");
      place.classList.toggle("is-begun", ready > 0 || Boolean(read));
    });
  }

  // --- a list of exercises
  for (const item of all("[data-tf-exercise]")) {
    const state = item.appendChild(el("span", { className: "tf-state" }));
    shows.push(() => {
      const entry = done(item.dataset.tfExercise);
      item.classList.toggle("is-done", Boolean(entry));
      state.textContent = entry ? `done, ${lasting(entry.done)}` : "open";
    });
  }
  // --- together, also with what another tab has done
  function show() {
    for (const update of shows) update();
  }
  function again() {
    if (!trouble || unreadable()) {
      read();
      show();
    }
  }
  addEventListener("storage", (event) => {
    if (event.key === KEY || event.key === null) again();
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) again();
  });
  function clear() {
    try {
      localStorage.removeItem(KEY);
      trouble = "";
    } catch {
      /* nothing is kept there anyway */
    }
    known = nothing();
    show();
  }
  // for progress-page.js
  window.tfvizProgress = {
    KEY,
    MOST,
    all,
    one,
    el,
    many,
    today,
    checked,
    change,
    clear,
    size,
    done,
    unreadable,
    shows,
    show,
    known: () => known,
    kept,
    trouble: () => trouble,
  };
  read();
  for (const page of early) if (!seen(page)) mark("chapters", page, true);
  show();
})();
