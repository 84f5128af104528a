// One sentence under four objectives: what each position reads, which inputs it sees, what it says.

const NAMES = { gpt: "GPT", prefix: "prefix LM", bert: "BERT", t5: "T5" };
const FATES = {
  "": "not chosen",
  mask: "⟨mask⟩",
  other: "a wrong word",
  same: "chosen, unchanged",
};
const { begin: BEGIN, mask: HIDDEN } = tf.data;

// T5: runs of words with a fate leave a sentinel, and the decoder says them.
function holes(words, fates) {
  const [source, from, said] = [[], [], []];
  const put = (word, at) => [source.push(word), from.push(at)];
  let many = 0;
  words.forEach((word, at) => {
    if (!fates[at]) return put(word, at);
    if (!at || !fates[at - 1]) {
      put(`⟨${many}⟩`, -1);
      said.push(`⟨${many++}⟩`);
    }
    said.push(word);
  });
  return { source, from, said: [...said, `⟨${many}⟩`] };
}

// What each position reads (inputs), must say (targets, if scored) and sees (mask). word[i] is the place
// in the sentence that row i reads, or −1; copies[i]: row i sees its own answer as an input.
function viewOf({ objective, words, prefix, fates, masked, other }) {
  const L = words.length;
  const all = tf.range(L);
  const view = (inputs, targets, scored, allowed, word, sources = 0) => {
    const mask = inputs.flatMap((_, i) => inputs.map((_, j) => Number(allowed(i, j))));
    const shifted = objective === "gpt" || objective === "prefix";
    const copies = inputs.map((_, i) => shifted && i + 1 < L && mask[i * L + i + 1] > 0);
    return { inputs, targets, scored: scored.map(Number), mask, word, sources, copies };
  };
  if (objective === "bert") {
    const inputs = words.map((w, i) => ({ mask: HIDDEN, other })[fates[i]] ?? w);
    return view(inputs, words, fates.map(Boolean), tf.data.full, all);
  }
  if (objective === "t5") {
    const { source, from, said } = holes(words, fates);
    const inputs = [...source, BEGIN, ...said.slice(0, -1)];
    const [n, targets] = [source.length, [...source.map(() => ""), ...said]];
    const scored = inputs.map((_, i) => i >= n);
    return view(inputs, targets, scored, (i, j) => tf.data.prefix(i, j, n), from, n);
  }
  const inputs = [BEGIN, ...words.slice(0, -1)];
  const before = all.map((i) => i - 1);
  const gpt = objective === "gpt";
  const free = masked ? tf.data.causal : tf.data.full;
  const allowed = gpt ? free : (i, j) => tf.data.prefix(i, j, prefix);
  const scored = all.map((i) => gpt || i >= prefix - 1);
  return view(inputs, words, scored, allowed, before);
}

function numbers(state) {
  const { scored, mask, sources, copies } = viewOf(state);
  return { scored, mask, sources, leaks: tf.sum(copies.map((copy, i) => copy && scored[i])) };
}

const HINTS = {
  prefix: "Count the rows that cannot see their answer.",
  bert: "Count the chosen words.",
  t5: "Count the sentinels and the words that the decoder must say.",
};
const REASONS = {
  prefix: "Here, a row is scored only if it cannot see its answer.",
  bert: "BERT scores the chosen words, even one that is left unchanged.",
  t5: "T5 scores every row of its decoder: those of the sentinels, too.",
};

function question({ objective, masked, words }) {
  const name = `after-${objective}`;
  if (objective === "gpt") {
    return {
      name,
      number: { hint: "Count the rows that can see their answer among the inputs." },
      truth: (numbers) => numbers.leaks,
      then: { masked: !masked },
      question: `${masked ? "Without the mask" : "With the mask on"}, how many rows can copy their answer?`,
      because: masked
        ? "A row's answer is the next row's input; only the last row's answer is no input at all."
        : "A row's answer is the next row's input, and the mask hides that from it.",
    };
  }
  const otherObjective = objective === "bert" ? "t5" : "bert";
  const to = objective === "prefix" ? { prefix: words.length } : { objective: otherObjective };
  const aim = objective === "prefix" ? "prefix" : otherObjective; // the objective that is asked about
  return {
    name,
    number: { hint: HINTS[aim] },
    truth: (numbers) => tf.sum(numbers.scored),
    then: { ...to, row: 0 },
    guards: Object.keys(to),
    question:
      objective === "prefix"
        ? `If all rows may see all ${words.length} inputs, how many rows are scored?`
        : `If the same words are chosen for ${NAMES[otherObjective]}, how many rows are scored?`,
    because: REASONS[aim],
  };
}

export default tf.explorer({
  ends: ({ words }) => ({ prefix: { high: words.length } }),
  fit(fine, app) {
    if (!fine.fates?.every?.((f) => f in FATES)) delete fine.fates;
    const state = { ...app.values(), ...app.first, ...fine };
    if (fine.row > viewOf(state).inputs.length - 1) delete fine.row;
    return fine;
  },
  numbers,
  setup(app) {
    const now = () => viewOf(app.values());
    const rowNow = (view = now()) => Math.min(app.get("row"), view.inputs.length - 1);
    let pointed;
    const hover = (i) => {
      pointed = i;
      app.redraw("glance");
    };
    const matrix = app.matrix({ most: 30, pick: (row) => app.set({ row }), hover });
    const lines = app.lines();
    // what makes another view may leave fewer rows
    const put = (values) =>
      app.set({ ...values, row: rowNow(viewOf({ ...app.values(), ...values })) });
    app.knob("objective", {
      options: Object.entries(NAMES),
      write: (objective) => put({ objective }),
    });
    app.motion("row", { last: () => now().inputs.length - 1, every: 900 });
    const prefix = app.knob("prefix");
    const masked = app.knob("masked");
    // what becomes of the word that the selected position reads
    const place = () => now().word[rowNow()];
    const become = (fate) =>
      put({ fates: app.get("fates").map((old, i) => (i === place() ? fate : old)) });
    const fate = app.select("fate", {
      label: "the word here",
      options: Object.entries(FATES),
      read: () => app.get("fates")[place()] ?? "",
      write: become,
    });
    const take = app.checkbox("take", {
      label: "take this word out",
      read: () => Boolean(app.get("fates")[place()]),
      write: (out) => become(out ? "mask" : ""),
    });
    const all = () => app.set({ fates: app.get("fates").map(() => ""), row: 0 });
    const back = app.button("put all words back", all, { into: app.controls });
    app.ask(question(app.values()));

    return (state, numbers) => {
      const view = viewOf(state);
      const { scored, sources, copies } = view;
      const [inputs, targets] = [view.inputs, view.targets].map((words) => words.map(tf.token));
      const many = inputs.length;
      const i = Math.min(pointed ?? rowNow(view), many - 1);
      const open = (r, c) => numbers.mask[r * many + c] > 0;
      prefix.row.hidden = state.objective !== "prefix";
      masked.row.hidden = state.objective !== "gpt";
      fate.row.hidden = state.objective !== "bert";
      take.row.hidden = state.objective !== "t5";
      take.input.disabled = !(view.word[i] >= 0);
      back.hidden = state.objective !== "bert" && state.objective !== "t5";
      const part = (from, to) => ({ from: [from, from], to: [to, to], colour: "ink" });
      const edge = { handle: [state.prefix, 0.5], knob: "prefix", shape: "across" };
      matrix.show({
        title: "a row reads (orange), sees (violet), must say (green)",
        label: `${NAMES[state.objective]}: ${many} positions; arrow keys choose one`,
        rows: many,
        rowHeads: inputs,
        columnHeads: inputs,
        row: i,
        rowTails: targets.map((word, r) => (scored[r] ? word : "–")),
        values: (r, c) => (open(r, c) ? (r === i ? 1 : 0.45) : Number.NaN),
        text: (r, c) => (copies[r] && c === r + 1 ? (scored[r] ? "!" : "·") : ""),
        frames: sources ? [part(0, sources - 1), part(sources, many - 1)] : [],
        handles: state.objective === "prefix" ? [{ ...edge, text: `${state.prefix} inputs` }] : [],
      });
      const seen = inputs.filter((_, j) => open(i, j));
      const side = !sources ? "" : i < sources ? "encoder, " : "decoder, ";
      const whole = seen.length === many;
      const count = whole ? `all ${many} inputs` : `${seen.length} of ${many} inputs`;
      const few = seen.length && !whole ? `: ${seen.join(" ")}` : "";
      const wrong = {
        same: ", which it also reads, but any word might be a wrong one",
        other: ", although it reads another word",
      };
      const because = copies[i]
        ? `, which it sees as input ${i + 1}: it can copy it`
        : (state.objective === "bert" && wrong[state.fates[i]]) || "";
      const seldom =
        state.objective === "prefix"
          ? `its answer {value:${targets[i]}} is among its inputs, so it is not scored`
          : "not chosen, so not scored";
      const reader = "the encoder says nothing; the decoder reads it through cross-attention";
      const idle = i < sources ? reader : seldom;
      lines.show([
        `${side}position ${i} reads {query:${inputs[i]}} and sees {key:${count}}${few}`,
        scored[i] ? `must say {value:${targets[i]}}${because}` : idle,
      ]);
      app.read({
        scored: `${tf.sum(scored)} of ${many} positions`,
        "pairs allowed": `${tf.sum(numbers.mask)} of ${many * many}`,
        "positions that can copy": numbers.leaks,
      });
      const scoredText = scored[i] ? `must say “${targets[i]}”` : "is not scored";
      const leak = numbers.leaks ? ` ${numbers.leaks} positions can copy their answer.` : "";
      if (pointed === undefined)
        app.say(
          `${NAMES[state.objective]}, ${side}position ${i} of ${many}: reads “${inputs[i]}”, sees ${count}, ${scoredText}.${leak}`,
        );
    };
  },
});
