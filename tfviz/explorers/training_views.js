// One sentence under four objectives: what each position reads, which inputs it sees, what it says.

const formula = (name) => new Function(`return ${tf.data[name]}`)();
const ALLOWED = { causal: formula("causal"), full: formula("full"), prefix: formula("prefix") };
const NAMES = { gpt: "GPT", prefix: "prefix LM", bert: "BERT", t5: "T5" };
const FATES = [["", "stays"], ["mask", "⟨mask⟩"], ["other", "a wrong word"], ["same", "itself"]];

function spansOf(fates) {
  const spans = [];
  fates.forEach((fate, i) => {
    if (!fate) return;
    if (spans.length && spans.at(-1)[1] === i) spans.at(-1)[1] = i + 1;
    else spans.push([i, i + 1]);
  });
  return spans;
}

// { inputs, targets, scored, mask, sources, word }: word[i] is the place in the sentence that row i reads, or −1
function views({ objective, words, prefix, fates, masked, other }) {
  const L = words.length, all = [...words.keys()], { begin, mask: hidden } = tf.data;
  const table = (n, allowed) => [...Array(n).keys()].map((i) => [...Array(n).keys()].map((j) => Boolean(allowed(i, j))));
  if (objective === "bert") {
    const become = { mask: hidden, other };
    return { inputs: words.map((w, i) => become[fates[i]] ?? w), targets: words, scored: fates.map(Boolean), mask: table(L, ALLOWED.full), sources: 0, word: all };
  }
  if (objective === "t5") {
    const spans = spansOf(fates), source = [], from = [], said = [];
    let at = 0;
    spans.forEach(([start, end], n) => {
      for (; at < start; at++) { source.push(words[at]); from.push(at); }
      source.push(`⟨${n}⟩`);
      from.push(-1);
      said.push(`⟨${n}⟩`, ...words.slice(start, end));
      at = end;
    });
    for (; at < L; at++) { source.push(words[at]); from.push(at); }
    said.push(`⟨${spans.length}⟩`);
    const sources = source.length, n = sources + said.length;
    return {
      inputs: [...source, begin, ...said.slice(0, -1)], targets: [...source.map(() => ""), ...said],
      scored: [...Array(n).keys()].map((i) => i >= sources), mask: table(n, (i, j) => ALLOWED.prefix(i, j, sources)), sources, word: from,
    };
  }
  const inputs = [begin, ...words.slice(0, -1)], word = all.map((i) => i - 1);
  if (objective === "prefix") return { inputs, targets: words, scored: all.map((i) => i >= prefix - 1), mask: table(L, (i, j) => ALLOWED.prefix(i, j, prefix)), sources: 0, word };
  return { inputs, targets: words, scored: all.map(() => true), mask: table(L, masked ? ALLOWED.causal : ALLOWED.full), sources: 0, word };
}

export default tf.explorer({
  fit(fine) {
    if (!fine.fates?.every?.((f) => FATES.some(([name]) => name === f))) delete fine.fates;
    return fine;
  },
  setup(app) {
    const { el } = tf;
    const L = app.get("words").length;
    const state = () => {
      const now = Object.fromEntries(["objective", "words", "prefix", "fates", "masked", "other"].map((key) => [key, app.get(key)]));
      now.prefix = tf.clamp(now.prefix, 0, L); // a link may say anything
      now.fates = now.words.map((_, i) => now.fates[i] ?? "");
      return now;
    };
    const rowNow = (n) => tf.clamp(app.get("row"), 0, n - 1);

    app.knob("objective", { options: Object.entries(NAMES), write: (objective) => {
      const n = views({ ...state(), objective }).inputs.length;
      app.set({ objective, row: rowNow(n) });
    } });
    const step = app.knob("row", { max: L - 1, read: () => rowNow(views(state()).inputs.length) });
    const prefix = app.knob("prefix", { max: L, read: () => state().prefix });
    const masked = app.knob("masked");
    // what becomes of the word that the selected position reads
    const chosen = () => views(state()).word[rowNow(views(state()).inputs.length)];
    const setFate = (fate) => {
      const place = chosen();
      if (!(place >= 0)) return;
      const fates = state().fates.with(place, fate), n = views({ ...state(), fates }).inputs.length;
      app.set({ fates, row: rowNow(n) });
    };
    const fate = app.select("fate", { label: "this word", options: FATES, read: () => state().fates[chosen()] ?? "", write: setFate });
    const take = app.checkbox("take", { label: "take this word out", read: () => Boolean(state().fates[chosen()]), write: (on) => setFate(on ? "mask" : "") });
    const back = app.button("put all words back", () => app.set({ fates: state().words.map(() => ""), row: 0 }), { into: app.controls });

    const head = el("tr"), body = el("tbody");
    const table = el("table", { className: "tv-table" }, el("caption", { className: "tfx-hidden" }, "Rows are positions, columns are inputs"), el("thead", {}, head), body);
    const box = el("div", { className: "tv-box", role: "application", tabIndex: 0, "aria-label": "Mask: arrow keys choose a position" }, table);
    box.dataset.lmSuppressShortcuts = "true";
    box.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -4, PageDown: 4, Home: -99, End: 99 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const n = views(state()).inputs.length;
      app.set("row", tf.clamp(rowNow(n) + by, 0, n - 1));
    });
    const work = el("ul", { className: "tv-work" });
    app.picture.append(box, work);
    const shown = { scored: app.readout("scored"), pairs: app.readout("pairs allowed"), leaks: app.readout("scored and seeing the answer") };
    const piece = (role, text) => el("span", { className: `tv-${role}` }, text);
    const quoted = (text) => `“${text}”`;

    return {
      draw() {
        const now = state(), view = views(now), { inputs, targets, scored, mask, sources } = view, n = inputs.length, i = rowNow(n);
        const shifted = now.objective === "gpt" || now.objective === "prefix";
        const answer = (r) => shifted && r + 1 < n && mask[r][r + 1];
        step.limit(0, n - 1);
        prefix.row.hidden = now.objective !== "prefix";
        masked.row.hidden = now.objective !== "gpt";
        const place = view.word[i], hides = now.objective === "bert" || now.objective === "t5";
        fate.row.hidden = now.objective !== "bert";
        take.row.hidden = now.objective !== "t5";
        take.input.disabled = !(place >= 0);
        back.hidden = !hides;

        head.replaceChildren(
          el("th", { className: "tv-corner", scope: "col" }, el("span", {}, "reads")),
          ...inputs.map((x, j) => el("th", { className: `tv-key${j === sources && sources ? " tv-edge" : ""}${mask[i][j] ? " tv-on" : ""}`, scope: "col" }, el("span", {}, x))),
          el("th", { className: "tv-corner tv-right", scope: "col" }, el("span", {}, "says")),
        );
        body.replaceChildren(...inputs.map((x, r) => el("tr", { className: `${r === i ? "tv-row" : ""}${r === sources && sources ? " tv-edge" : ""}`, onclick: () => app.set("row", r) },
          el("th", { className: "tv-query", scope: "row" }, x),
          ...inputs.map((_, j) => {
            const own = answer(r) && j === r + 1;
            return el("td", { className: `${mask[r][j] ? "tv-open" : "tv-shut"}${j === sources && sources ? " tv-edge" : ""}` }, own ? (scored[r] ? "!" : "·") : "");
          }),
          el("td", { className: scored[r] ? "tv-say" : "tv-quiet" }, el("span", {}, scored[r] ? targets[r] : "–")),
        )));
        table.style.setProperty("--cells", n);

        const seen = inputs.filter((_, j) => mask[i][j]), side = !sources ? "" : i < sources ? "encoder, " : "decoder, ";
        const count = seen.length === n ? `all ${n} inputs` : `${seen.length} of ${n} inputs`;
        const say = piece("value", targets[i]), chosen = now.objective === "bert" ? now.fates[i] : "";
        const because = answer(i) ? `, which is its own input ${i + 1}: it can copy` : { same: ", which stands there, but any word might be a wrong one", other: ", although another word stands there" }[chosen] ?? "";
        const second = scored[i] ? ["must say ", say, because]
          : i < sources ? ["an encoder says nothing; the decoder reads it through cross-attention"]
          : shifted ? ["its answer ", say, " is among its inputs: not scored"]
          : ["not chosen: not scored"];
        const few = seen.length && seen.length < n ? `: ${seen.join(" ")}` : "";
        const lines = [[`${side}position ${i} reads `, piece("query", inputs[i]), " and sees ", piece("key", count), few], second];
        work.replaceChildren(...lines.map((line) => el("li", {}, ...line)));
        const pairs = mask.flat().filter(Boolean).length, points = scored.filter(Boolean).length, leaks = scored.filter((s, r) => s && answer(r)).length;
        shown.scored(`${points} of ${n} positions`);
        shown.pairs(`${pairs} of ${n * n}`);
        shown.leaks(shifted ? String(leaks) : "0");
        app.root.dataset.view = JSON.stringify({ inputs, targets, scored, mask, sources, leaks });
        app.say(`${NAMES[now.objective]}, ${side}position ${i} of ${n}: reads ${quoted(inputs[i])}, sees ${count}, ${scored[i] ? `must say ${quoted(targets[i])}` : "is not scored"}.${leaks ? ` ${leaks} positions can copy their answer.` : ""}`);
      },
      python: () => `TrainingViews(${JSON.stringify(app.get("words"))}, objective=${JSON.stringify(app.get("objective"))}, row=${rowNow(views(state()).inputs.length)}, prefix=${state().prefix}, fates=${JSON.stringify(state().fates)}, masked=${app.get("masked") ? "True" : "False"}, other=${JSON.stringify(app.get("other"))})`,
    };
  },
});
