// Byte-pair merges of a short text: count pairs within pieces, merge the most frequent, repeat.

const PIECE = / ?[\p{L}\p{N}_]+| ?[^\p{L}\p{N}_\s]+|\s+/gu;
const pieces = (text) => text.match(PIECE) || [];
const utf8 = new TextEncoder();
const size = (text) => utf8.encode(text).length;
const wellFormed = (text) => text.isWellFormed?.() ?? true; // no half of a character
const fine = (text) => size(text) >= 1 && size(text) <= tf.data.letters && wellFormed(text);

const history = tf.keep((text) =>
  tf.bytePairs(
    pieces(text).map((piece) => [...utf8.encode(piece)]),
    tf.declared.knobs.merges.high,
  ),
);
const stepAt = (state) =>
  history(state.text)[Math.min(state.merges, history(state.text).length - 1)];

function numbers(state) {
  const { rows, pairs } = stepAt(state);
  const lengths = history(state.text).map((step) => tf.sum(step.rows.map((row) => row.length)));
  return { tokens: rows.flat(), pairs: pairs.slice(0, tf.data.shown), lengths };
}

// The frequent words of a text, and the first of them that becomes one token, after which merge.
function question({ text, merges: done }) {
  const all = pieces(text);
  const often = new Map();
  for (const word of all.map((piece) => piece.trim()).filter((word) => /\p{L}{3}/u.test(word))) {
    often.set(word, (often.get(word) || 0) + 1);
  }
  const words = [...often.keys()].sort((x, y) => often.get(y) - often.get(x)).slice(0, 4);
  const whole = ({ rows }, word) =>
    rows.some((row, n) => row.length === 1 && all[n].trim() === word);
  const merges = history(text).findIndex((step) => words.some((word) => whole(step, word)));
  if (words.length < 2 || merges <= done) return null;
  return {
    name: "first-word",
    question: "Which of these words becomes a single token first?",
    chips: words.map((word) => `“${tf.token(word)}”`),
    truth: () => words.findIndex((word) => whole(history(text)[merges], word)),
    then: { merges },
    because: `That took ${merges} merges: what counts is not only how often a word occurs, but also how long it is.`,
  };
}

export default tf.explorer({
  fit(values) {
    if ("text" in values && !fine(values.text)) delete values.text;
    return values;
  },
  numbers,
  setup(app) {
    const last = () => history(app.get("text")).length - 1;
    const chips = app.chips({ label: "the text, cut into tokens" });
    const curve = app.plane({ height: () => 170, lead: true });
    const pairs = app.table({ caption: "most frequent pairs of neighbouring tokens" });
    app.motion("merges", { last, verbs: ["undo", "merge"], every: 600 });
    app.text("text", { label: "your own text", most: tf.data.letters, fine });
    const asked = app.ask(question(app.first));

    return (state, numbers) => {
      const { rows, merge } = stepAt(state);
      const now = Math.min(state.merges, last());
      const bytes = Array.from({ length: 256 }, (_, b) => [b]);
      for (const step of history(state.text).slice(1))
        bytes.push(step.merge.slice(0, 2).flatMap((token) => bytes[token]));
      const name = (token) => {
        const text = new TextDecoder().decode(new Uint8Array(bytes[token]));
        if (!text.includes("\ufffd")) return tf.token(text);
        return bytes[token].map((b) => b.toString(16).toUpperCase().padStart(2, "0")).join(" ");
      };
      const kind = (token) => (token < 256 ? null : token === 255 + now ? "new" : "made");
      // a token lights up with the pairs that it is part of
      const term = (row, at) => {
        const part = ([u, w]) =>
          (row[at] === u && row[at + 1] === w) || (row[at - 1] === u && row[at] === w);
        const names = numbers.pairs.map((pair, p) => (part(pair) ? `pair${p}` : ""));
        return names.filter(Boolean).join(" ") || undefined;
      };
      chips.show(
        rows.map((row) =>
          row.map((token, at) => ({ text: name(token), kind: kind(token), term: term(row, at) })),
        ),
      );
      pairs.show(
        tf.range(tf.data.shown, (p) => {
          if (!numbers.pairs[p]) return { head: "\u00a0", cells: [""] };
          const [u, w, often] = numbers.pairs[p];
          const mine = !p && !asked.open;
          const bar = {
            bar: often,
            of: numbers.pairs[0][2],
            text: `${often}${mine ? " · next" : ""}`,
          };
          return { head: `${name(u)} + ${name(w)}`, cells: [bar], mine, term: `pair${p}` };
        }),
      );
      const tokens = numbers.lengths[now];
      const each = tf.sig(numbers.lengths[0] / tokens);
      curve.show({
        title: "tokens after each merge: drag the dot",
        label: `Tokens after each merge: ${numbers.lengths[0]} at 0, ${tokens} after ${now}`,
        x: { from: 0, to: Math.max(1, last()), whole: true, label: "merges" },
        y: { from: 0, to: numbers.lengths[0], ticks: [0, numbers.lengths[0]] },
        marks: [
          { line: numbers.lengths, colour: "grid" },
          { line: numbers.lengths.slice(0, now + 1), colour: "attention", wide: 2.5 },
          {
            handle: [now, numbers.lengths[now]],
            knob: "merges",
            text: `${now} merge${now === 1 ? "" : "s"}, ${tokens} tokens`,
          },
        ],
        hover: (x, y) => `${x} merge${x === 1 ? "" : "s"}: ${y} tokens`,
      });
      app.read({
        tokens: `${numbers.lengths[now]} for ${numbers.lengths[0]} bytes`,
        "bytes per token, on average": each,
        "rows of the table (256 + merges)": 256 + now,
      });
      const done = merge
        ? `Merge ${now}: “${name(merge[0])}” and “${name(merge[1])}”, side by side ${merge[2]} times, became one token.`
        : "No merge yet: every byte is a token.";
      app.say(`${done} The text has ${numbers.lengths[now]} tokens of ${each} bytes on average.`);
    };
  },
});
