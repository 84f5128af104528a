// The page of progress: what is stored, in full; export, import, clear. After progress.js.
(function () {
  "use strict";
  const {
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
    known,
    kept,
    trouble,
  } = window.tfvizProgress;
  const place = (name) => one(`[data-tf-${name}]`);
  const [sum, next, read, stored, where, news] = [
    "sum",
    "next",
    "read",
    "stored",
    "where",
    "news",
  ].map(place);
  const items = all("[data-tf-exercise]"),
    chapters = all(".tf-chapter"),
    dialog = one(".tf-clear"),
    file = one(".tf-progress-file");
  const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");
  const readable = () =>
    JSON.stringify(kept(), null, 2).replace(/\{\s+("done": "[^"]+")\s+\}/g, "{ $1 }");
  function linked(chapter) {
    const link = el("a", { href: one(".tf-go a", chapter).href });
    link.append(...one("h3", chapter).cloneNode(true).childNodes);
    return link;
  }
  const number = (kind) => Object.keys(known()[kind]).length;

  function button(name, action) {
    const node = one(`[data-tf-do="${name}"]`);
    node.addEventListener("click", action);
    return node;
  }
  function tell(text, wrong = false) {
    news.textContent = text;
    news.classList.toggle("is-wrong", wrong);
  }

  const exporter = button("export", () => {
    const blob = new Blob([`${readable()}\n`], { type: "application/json" });
    const link = el("a", {
      download: `tfviz-progress-${today()}.json`,
      href: URL.createObjectURL(blob),
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    tell(`Exported to ${link.download}.`);
  });

  button("import", () => file.click());
  file.addEventListener("change", async () => {
    const [given] = file.files;
    if (!given) return;
    try {
      if (given.size > MOST)
        throw new Error(`it is longer than the ${MOST / 1024} KiB that progress may have`);
      const other = checked(await given.text());
      let fresh = 0;
      change((mine) => {
        // what is in only one of the two is kept; of two days, the earlier
        for (const kind of ["exercises", "chapters", "answers"])
          for (const [name, entry] of Object.entries(other[kind])) {
            const had = Object.hasOwn(mine[kind], name) ? mine[kind][name] : null;
            if (!had) fresh++;
            mine[kind][name] = had
              ? { ...entry, ...had, done: [had.done, entry.done].sort()[0] }
              : entry;
          }
      });
      tell(
        `${given.name} is added: ${fresh} new, ${size(other) - fresh} that you had already.${trouble() ? ` But ${trouble()}.` : ""}`,
      );
    } catch (error) {
      tell(`${given.name} was not imported: ${error.message}. Nothing has changed.`, true);
    }
    file.value = "";
  });

  const clearer = button("clear", () => {
    one("[data-tf-much]", dialog).textContent = unreadable()
      ? "What is stored, which this page cannot read,"
      : `${many(number("exercises"), "exercise")} done and ${many(number("chapters"), "chapter")} read`;
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    const sure = dialog.returnValue === "clear";
    dialog.returnValue = "";
    if (!sure) return;
    clear();
    tell("Cleared. Nothing is stored on this device.");
    news.focus(); // the button that was pressed is off now
  });

  shows.push(() => {
    const ready = items.filter((item) => done(item.dataset.tfExercise)).length,
      some = size(known()) > 0;
    const open = items.find((item) => !done(item.dataset.tfExercise));
    sum.textContent = some
      ? `${ready} of ${many(items.length, "exercise")} done, ${many(number("chapters"), "chapter")} read.`
      : "Nothing is done yet, and nothing is stored.";
    const link = open && one("a", open).cloneNode(true);
    next.replaceChildren(
      ...(open
        ? [ready ? "Next: " : "Begin with ", link, /[?!…]\s*$/.test(link.textContent) ? "" : "."]
        : ["Nothing is left to do."]),
    );
    const unread = chapters.find((it) => !Object.hasOwn(known().chapters, it.dataset.tfChapter));
    read.replaceChildren(...(unread ? ["Read next: ", linked(unread), "."] : []));
    stored.textContent = unreadable() ? localStorage.getItem(KEY) : some ? readable() : "nothing";
    where.textContent =
      sentence(trouble()) ||
      (some ? `${new Blob([JSON.stringify(kept())]).size} bytes under the name ${KEY}` : "");
    exporter.disabled = !some;
    clearer.disabled = !some && !unreadable();
  });
  show();
})();
