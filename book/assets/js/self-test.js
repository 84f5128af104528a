// A mixed test of one part: ten of its questions, one at a time. What the reader knew is kept with the
// rest of the progress (progress.js comes before this script).
(function () {
  "use strict";
  const { all, one, el, today, change, known, shows, show, trouble } = window.tfvizProgress;
  const MOST = 10;
  const knew = (name) => Object.hasOwn(known().answers, name) && known().answers[name].said === 1;
  const button = (text, onclick, strong = false) =>
    el(
      "button",
      { type: "button", className: `tf-button${strong ? " tf-button-strong" : ""}`, onclick },
      text,
    );
  const copy = (node) =>
    el("div", { className: node.className }, ...node.cloneNode(true).childNodes);

  for (const dot of all("[data-tf-dot]")) {
    shows.push(() => dot.classList.toggle("is-known", knew(dot.dataset.tfDot)));
  }

  for (const part of all(".tf-test")) {
    const items = all("[data-tf-question]", part),
      count = one(`[data-tf-known="${part.dataset.tfTest}"]`),
      title = one("h2", part.parentElement).firstChild.textContent,
      place = el("div", { className: "tf-test-run" }),
      begin = button("Begin a test", () => run()),
      state = el("span"),
      news = el("p", { className: "tf-unseen" });
    news.setAttribute("role", "status");
    const start = el("p", { className: "tf-test-start" }, begin, state);
    part.prepend(start, place, news);
    begin.setAttribute("aria-label", `Begin a test: ${title}`);
    place.hidden = true;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `Test: ${title}`);

    const words = () =>
      `${items.filter((item) => knew(item.dataset.tfQuestion)).length} of ${items.length} known`;
    shows.push(() => {
      count.textContent = state.textContent = words();
    });

    function run() {
      const mixed = items
        .map((item) => ({ item, order: Number(knew(item.dataset.tfQuestion)) + Math.random() / 2 }))
        .sort((a, b) => a.order - b.order)
        .slice(0, MOST)
        .map(({ item }) => item);
      const missed = [];
      start.hidden = true;
      place.hidden = false;
      ask(0);

      // `heading` names what is shown, and the keyboard goes there
      function put(heading, ...nodes) {
        const head = el("p", { className: "tf-test-head", tabIndex: -1 }, heading);
        place.replaceChildren(head, ...nodes);
        head.focus();
      }
      function ask(n) {
        const item = mixed[n];
        const answer = copy(one(".tf-answer", item)),
          where = el("p", { className: "tf-test-from" }),
          verdict = el("p", { className: "tf-test-buttons" });
        const link = el("a", { href: item.dataset.tfPage }, item.dataset.tfTitle);
        where.append("From ", link);
        answer.hidden = true;
        answer.tabIndex = -1;
        const say = (said) => {
          if (!said) missed.push(item);
          change((p) => {
            p.answers[item.dataset.tfQuestion] = { done: today(), said: Number(said) };
          });
          news.textContent = `${said ? "Known" : "Not yet"}. ${words()}${trouble() ? `, but ${trouble()}` : ""}.`;
          if (n + 1 < mixed.length) ask(n + 1);
          else finish();
        };
        const open = button(
          "Show the answer",
          () => {
            answer.hidden = false;
            verdict.replaceChildren(
              button("I knew it", () => say(true), true),
              button("Not yet", () => say(false)),
              stop(),
            );
            answer.focus();
          },
          true,
        );
        verdict.append(open, stop());
        put(
          `Question ${n + 1} of ${mixed.length}`,
          where,
          copy(one(".tf-question", item)),
          answer,
          verdict,
        );
      }
      function stop() {
        return button("End the test", close);
      }
      function finish() {
        const nodes = [];
        if (missed.length) {
          const sections = new Map(missed.map(({ dataset: d }) => [d.tfExplained, d.tfSection]));
          const inOrder = [...sections].sort(([, a], [, b]) =>
            a.localeCompare(b, "en", { numeric: true }),
          );
          const links = inOrder.map(([href, text]) => el("li", {}, el("a", { href }, text)));
          nodes.push(el("p", {}, "Read again:"), el("ul", {}, ...links));
        }
        nodes.push(
          el("p", { className: "tf-test-buttons" }, button("Another test", run, true), stop()),
        );
        put(`You knew ${mixed.length - missed.length} of ${mixed.length}.`, ...nodes);
      }
    }
    function close() {
      place.hidden = true;
      place.replaceChildren();
      start.hidden = false;
      begin.focus();
    }
  }
  show();
})();
