// Binary partitioning of sixteen words: the tree, what a token reads of it, and the count of edges.
const { words, lengths, steps } = tf.data;
const L = words.length;
const log2 = Math.log2;

// [first, end, level at which it came] of each node that token i of n reads, as in the library
function reads(i, n, k, causal) {
  const found = [[i, i + 1, 0]];
  const sides = causal ? [-1] : [-1, 1];
  const at = sides.map((side) => i + side);
  const half = sides.map(() => false);
  for (let level = 0; 2 ** level < n; level++) {
    sides.forEach((side, s) => {
      for (let t = 0; t < k; t++) {
        // where its nearer child has been read, the other one
        const [node, size] = half[s]
          ? [2 * at[s] + Number(side > 0), 2 ** (level - 1)]
          : [at[s], 2 ** level];
        if (at[s] >= 0 && at[s] * 2 ** level < n)
          found.push([node * size, (node + 1) * size, level]);
        at[s] += side;
        half[s] = false;
      }
      half[s] = Math.abs(at[s] % 2) === Number(side > 0);
      at[s] = Math.floor(at[s] / 2);
    });
  }
  return found;
}
const edges = tf.keep((k, causal) =>
  lengths.map(
    (n) => n * log2(n) + tf.sum(tf.range(n, (i) => reads(i, n, k, causal === "true").length)),
  ),
);

function numbers({ token, speaker, k, causal }) {
  const found = reads(token, L, k, causal);
  const through = found.findIndex(([first, end]) => first <= speaker && speaker < end);
  return { reads: found, through, edges: edges(k, String(causal)) };
}

const WIDE = 2.6; // of the words' column, in columns of the tree
const column = (level) => (level ? [WIDE + level - 1, WIDE + level] : [0, WIDE]);
const box = (first, end) => {
  const level = log2(end - first);
  const [left, right] = column(level).map((x, side) => x + (side ? -0.06 : 0.06));
  const [top, low] = [L - first - 0.07, L - end + 0.07];
  const shape = [
    [left, top],
    [right, top],
    [right, low],
    [left, low],
  ];
  return { level, left, right, middle: (top + low) / 2, shape };
};
const tree = tf
  .range(5, (level) => tf.range(L >> level, (n) => [n << level, (n + 1) << level]))
  .flat();

export default tf.explorer({
  numbers,
  setup(app) {
    const both = app.split("3fr 2fr");
    const picture = app.plane({ height: () => 440, into: both });
    const count = app.plane({ height: () => 260, into: both });
    app.formula(
      "k nodes of {now:each level}, then the next one up; {message:a message} takes two layers",
    );
    const named = (n) => (n < 3 ? steps[n] : `layer 2: up to level ${n - 2}`);
    app.motion("step", { every: 1400, format: named });
    for (const key of ["token", "speaker"]) app.knob(key, { format: (i) => `${i}: ${words[i]}` });
    for (const key of ["k", "causal"]) app.knob(key);
    const question = app.ask({
      name: "how-many",
      question: `Sixteen words, k = 1. “${words[app.first.token]}” wants to hear of all of them. How many words and spans must it read, itself included?`,
      number: { near: 0 },
      truth: (n) => n.reads.length,
      then: { step: 5, k: 1, causal: false, token: app.first.token },
      because: "Spans double in size on the way out, so the number grows like the logarithm.",
    });

    return (k, n) => {
      const open = question.open;
      const read = open ? [] : n.reads.filter(([, , level]) => level <= k.step - 2);
      const heard = tf.sum(read.map(([first, end]) => end - first));
      const brought = open ? null : n.reads[n.through];
      const own = box(k.token, k.token + 1);
      const marks = tree.map(([first, end]) => {
        const { shape } = box(first, end);
        const mine = read.find(([a, b]) => a === first && b === end);
        const late = mine && mine[2] === k.step - 2;
        const said = k.step === 1 && end - first > 1;
        const colour = mine ? "attention" : said ? "value" : "muted";
        const strength = mine ? (late ? 0.62 : 0.36) : said ? 0.25 : 0.06;
        return { shape, colour, edge: true, strength, term: late ? "now" : undefined };
      });
      const texts = tree.map(([first, end]) => {
        const { left, right, middle, level } = box(first, end);
        const mine = end - first === 1 && first === k.token;
        return {
          ...{ text: level ? String(end - first) : words[first], at: [(left + right) / 2, middle] },
          ...{ colour: mine ? "query" : "ink", bold: mine, plain: true },
        };
      });
      const frame = (i, colour) => {
        const { shape } = box(i, i + 1);
        return { line: [...shape, shape[0]], colour, wide: 2.5 };
      };
      const path = [];
      if (brought && k.speaker !== k.token) {
        const by = box(brought[0], brought[1]);
        const from = box(k.speaker, k.speaker + 1);
        const arrow = (a, b) => ({ arrow: [a, b], colour: "value", wide: 2.5, term: "message" });
        if (by.level && k.step > 0)
          path.push(arrow([from.right - 0.3, from.middle], [by.left + 0.15, by.middle]));
        if (k.step > 1 && brought[2] <= k.step - 2)
          path.push(
            arrow(
              [by.level ? by.left + 0.15 : by.right - 0.5, by.middle],
              [own.right - 0.1, own.middle],
            ),
          );
      }
      picture.show({
        title: "words, and spans of 2, 4, 8, 16; violet is read",
        label: `“${words[k.token]}”, word ${k.token}, has read ${read.length} nodes, which cover ${heard} of 16 words`,
        x: { from: 0, to: WIDE + 4, bare: true },
        y: { from: 0, to: L, bare: true },
        marks: [...marks, frame(k.speaker, "value"), frame(k.token, "query"), ...texts, ...path],
      });
      const last = n.edges.at(-1);
      count.show({
        title: "edges in all, over the length of the text (both log)",
        label: open
          ? "Edges of full attention"
          : `At 1,024 tokens ${last} edges; full attention has 1,048,576`,
        x: { from: 16, to: 1024, log: true, label: "tokens L" },
        y: { from: 100, to: 1.2e6, log: true, format: tf.count },
        marks: [
          {
            line: lengths.map((l) => [l, k.causal ? (l * (l + 1)) / 2 : l * l]),
            colour: "ink",
            name: "full",
          },
          !open && {
            line: n.edges.map((e, m) => [lengths[m], e]),
            colour: "attention",
            wide: 2.5,
            name: "tree",
          },
        ],
      });
      const wanted = k.causal ? k.token + 1 : L;
      app.read({
        "nodes read so far": open ? "?" : read.length,
        "words covered": open ? "?" : `${heard} of ${wanted}, each once`,
        "edges at L = 1,024": open ? "?" : tf.count(last),
      });
      const way = !brought
        ? `“${words[k.speaker]}” is ahead and not heard`
        : k.speaker === k.token
          ? "it speaks to itself"
          : brought[1] - brought[0] === 1
            ? `“${words[k.speaker]}” is read directly`
            : `“${words[k.speaker]}” is heard through a span of ${brought[1] - brought[0]} words`;
      app.say(
        open
          ? `“${words[k.token]}” reads words close by and spans further off.`
          : `${named(k.step)}. “${words[k.token]}” has read ${read.length} nodes, ${heard} of ${wanted} words; ${way}.`,
      );
    };
  },
});
