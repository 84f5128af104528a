// Binary partitioning of sixteen words: the tree, what a token reads of it, and the count of edges.
const { words, lengths, steps } = tf.data;
const L = words.length;

// [first, end, level at which it came] of each node that token i of n reads, as in the library
function reads(i, n, k, causal) {
  const nodesRead = [[i, i + 1, 0]];
  for (const side of causal ? [-1] : [-1, 1]) {
    let [at, half, size] = [i + side, false, 1];
    for (let level = 0; size < n; level++) {
      for (let t = 0; t < k; t++) {
        // where its nearer child has been read, the other one
        const [node, long] = half ? [2 * at + Number(side > 0), size / 2] : [at, size];
        if (at >= 0 && at * size < n) nodesRead.push([node * long, (node + 1) * long, level]);
        [at, half] = [at + side, false];
      }
      half = Math.abs(at % 2) === Number(side > 0);
      [at, size] = [Math.floor(at / 2), 2 * size];
    }
  }
  return nodesRead.sort((a, b) => a[2] - b[2]);
}
const edges = tf.keep((k, causal) =>
  lengths.map((n) => n * Math.log2(n) + tf.sum(tf.range(n, (i) => reads(i, n, k, causal).length))),
);

// where the box of a node stands: the words' column is as wide as 2.6 of the others
const box = (first, end) => {
  const level = Math.log2(end - first);
  const [left, right] = [level && level + 1.66, level + 2.54];
  const shape = tf.box(left, right, L - end + 0.07, L - first - 0.07);
  return { level, left, right, shape, at: [(left + right) / 2, L - (first + end) / 2] };
};
const level = (a) => tf.range(L >> a, (n) => [n << a, (n + 1) << a]);
const tree = tf.range(5, level).flat();

export default tf.explorer({
  numbers({ token, speaker, k, causal }) {
    const nodesRead = reads(token, L, k, causal);
    const through = nodesRead.findIndex(([first, end]) => first <= speaker && speaker < end);
    return { reads: nodesRead, through, edges: edges(k, causal) };
  },
  setup(app) {
    const both = app.split("3fr 2fr");
    const picture = app.plane({ height: () => 440, into: both });
    const count = app.plane({ height: () => 260, into: both });
    app.formula(
      "{now:k nodes of a level}, then of the next level; {message:a message} takes two layers",
    );
    const named = (n) => (n < 3 ? steps[n] : `layer 2: up to level ${n - 2}`);
    app.motion("step", { every: 1400, format: named });
    for (const key of ["token", "speaker"]) app.knob(key, { format: (i) => `${i}: ${words[i]}` });
    app.knobsOf("k", "causal");
    const { token } = app.first;
    const question = app.ask({
      name: "how-many",
      question: `There are sixteen words, and k = 1. How many words and spans does “${words[token]}” read to cover all of them, itself included?`,
      number: { hint: "Near words are read one by one, far ones in spans of 2, 4 and 8." },
      near: 0,
      truth: (numbers) => numbers.reads.length,
      then: { step: 5, k: 1, causal: false, token },
      because:
        "Spans double in size with distance, so their number grows like the logarithm of the length.",
    });

    return (state, numbers) => {
      const { open } = question;
      const read = open ? [] : numbers.reads.filter(([, , level]) => level <= state.step - 2);
      const heard = tf.sum(read.map(([first, end]) => end - first));
      const wanted = state.causal ? state.token + 1 : L;
      const frame = (i, colour) => {
        const { shape } = box(i, i + 1);
        return { line: [...shape, shape[0]], colour, wide: 2.5 };
      };
      // the tree: a box a node, filled by whether the token has read it, and when
      const boxes = tree.map(([first, end]) => {
        const mine = read.find(([a, b]) => a === first && b === end);
        const now = mine && mine[2] === state.step - 2;
        const said = state.step === 1 && end - first > 1; // spans have just read
        const colour = mine ? "attention" : said ? "value" : "muted";
        const strength = mine ? (now ? 0.62 : 0.36) : said ? 0.25 : 0.06;
        return { shape: box(first, end).shape, colour, edge: true, strength, term: now && "now" };
      });
      // in the boxes: words in the first column, then how many words a span holds
      const texts = tree.map(([first, end]) => {
        const { level, at } = box(first, end);
        const mine = !level && first === state.token;
        const text = level ? String(end - first) : words[first];
        return { text, at, colour: mine ? "query" : "ink", bold: mine, plain: true };
      });
      const [a, b, level] = numbers.reads[numbers.through] ?? [];
      const by = a >= 0 && box(a, b);
      // the message goes from the speaker's word into that node, and from there to the reader
      const door = by && [by.level ? by.left + 0.15 : by.right - 0.5, by.at[1]];
      const apart = by && !open && state.speaker !== state.token;
      const message = { colour: "value", wide: 2.5, term: "message" };
      picture.show({
        title: "words, and spans of 2, 4, 8, 16; violet: read so far; arrows: the message",
        label: `“${words[state.token]}”, word ${state.token}, has read ${read.length} nodes, which cover ${heard} of 16 words`,
        x: { from: 0, to: 6.6, bare: true },
        y: { from: 0, to: L, bare: true },
        marks: [
          [boxes, frame(state.speaker, "value"), frame(state.token, "query"), texts],
          apart &&
            by.level &&
            state.step > 0 && { arrow: [[2.2, L - state.speaker - 0.5], door], ...message },
          apart &&
            level <= state.step - 2 && { arrow: [door, [2.4, L - state.token - 0.5]], ...message },
        ],
      });
      const last = numbers.edges.at(-1);
      const full = lengths.map((l) => (state.causal ? (l * (l + 1)) / 2 : l * l));
      count.show({
        title: "total number of edges, by length of the text (log scales)",
        label: `Edges at 1,024 tokens: ${full.at(-1)} in full attention${open ? "" : `, ${last} in the tree`}`,
        x: { from: 16, to: 1024, log: true, label: "words L" },
        y: { from: 100, to: 1.2e6, log: true, format: tf.count },
        marks: [
          { line: full, at: lengths, colour: "ink", name: "full" },
          !open && {
            line: numbers.edges,
            at: lengths,
            colour: "attention",
            wide: 2.5,
            name: "tree",
          },
        ],
      });
      app.read({
        "nodes read so far": question.tell(read.length),
        "words covered": question.tell(`${heard} of ${wanted}, each once`),
        "edges at 1,024, full": tf.count(full.at(-1)),
        "edges at 1,024, tree": question.tell(tf.count(last)),
      });
      const speaker = `“${words[state.speaker]}”`;
      const way =
        b - a === 1
          ? `${speaker} is read directly`
          : `${speaker} is heard through a span of ${b - a} words`;
      app.say(
        open
          ? `“${words[state.token]}” reads nearby words one by one, and distant words in spans.`
          : `${named(state.step)}. “${words[state.token]}” has read ${read.length} nodes, ${heard} of ${wanted} words; ${by ? way : `${speaker} comes later and is never heard`}.`,
      );
    };
  },
});
