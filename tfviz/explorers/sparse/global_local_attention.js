// ETC in one picture: the four pieces of the matrix, masks, and one softmax against two.
const { Q, K } = tf.data;
const MOST = tf.declared.knobs.sentences.of.length;
const WORDS = Q.length - MOST;
const PIECES = ["g2g", "g2l", "l2g", "l2l"];

// A row is a token: n global ones first, then the words; the vectors of the words begin at MOST.
const at = (t, n) => (t < n ? t : t - n + MOST);
const owner = (t, n) => (t < n ? t : Math.floor((t - n) / (WORDS / n)));
const piece = (i, j, n) => 2 * Number(i >= n) + Number(j >= n);
const open = (i, j, { sentences: n, radius, hard }) => {
  if (i >= n && j >= n) return Math.abs(i - j) <= radius;
  return (i < n && j < n) || !hard || owner(i, n) === owner(j, n);
};

const weights = tf.keep((sentences, radius, hard, apart) => {
  const n = sentences;
  const all = tf.range(n + WORDS);
  const score = (i, j) => tf.dot(Q[at(i, n)], K[at(j, n)]) / Math.sqrt(Q[0].length);
  return all.map((i) => {
    const keys = all.filter((j) => open(i, j, { sentences, radius, hard }));
    const parts = !apart ? [keys] : [true, false].map((g) => keys.filter((j) => j < n === g));
    const row = all.map(() => 0);
    for (const part of parts)
      for (const [m, a] of tf.softmax(part.map((j) => score(i, j))).entries()) row[part[m]] = a;
    return row;
  });
});
// the row of the matrix: 0 to 3 are global tokens, if there are so many, then come the words
const rowOf = ({ query, sentences: n }) =>
  query < MOST ? Math.min(query, n - 1) : query - MOST + n;
const use = (state) => weights(state.sentences, state.radius, state.hard, state.apart);

// after how many layers the first word has reached the last
function hops(A, n) {
  let known = new Set([A.length - 1]);
  for (let layers = 0; layers <= A.length; layers += 1) {
    if (known.has(n)) return layers;
    known = new Set([...known].flatMap((i) => tf.range(A.length).filter((j) => A[i][j] > 0)));
  }
  return null;
}

export default tf.explorer({
  numbers(state) {
    const n = state.sentences;
    const A = use(state);
    const row = A[rowOf(state)];
    const pairs = [0, 0, 0, 0];
    for (const [i, each] of A.entries())
      for (const [j, a] of each.entries()) pairs[piece(i, j, n)] += Number(a > 0);
    return {
      pairs,
      row,
      hops: hops(A, n),
      keys: tf.range(row.length).filter((j) => row[j] > 0),
      to_globals: tf.sum(row.slice(0, n)),
      to_words: tf.sum(row.slice(n)),
    };
  },
  setup(app) {
    const pick = (i) => app.set({ query: at(i, app.get("sentences")) });
    const matrix = app.matrix({ pick, tall: 400 });
    app.formula(
      "global token reads {g2g:global tokens} + {g2l:words}; word reads {l2g:global tokens} + {l2l:nearby words}",
    );
    app.knobsOf("sentences", "radius", "hard", "apart");
    app.knob("query", { format: (i) => (i < MOST ? `token ${i}` : `word ${i - MOST}`) });
    const question = app.ask({
      name: "hops",
      question:
        "With hard masks and w = 0, a word reads only itself and its sentence token. After how many layers has the first word reached the last?",
      chips: ["2", "3", "5", "never"],
      truth: ({ hops }) => [2, 3, 5, null].indexOf(hops),
      then: { sentences: 3, radius: 0, hard: true },
      because:
        "The first word's sentence token reads it, then the last word's sentence token reads that token, and then the last word reads its own sentence token.",
    });

    return (state, numbers) => {
      const g = state.sentences;
      const size = g + WORDS;
      const letter = (t) => String.fromCharCode((t < g ? 65 : 97) + owner(t, g));
      const name = (t) => (t < g ? `sentence token ${letter(t)}` : `word ${t - g} (${letter(t)})`);
      const A = use(state);
      const row = rowOf(state);
      // all cells of a piece that are read, to light up with its term
      const cells = (p) =>
        tf
          .range(size * size, (m) => [Math.floor(m / size), m % size])
          .filter(([i, j]) => piece(i, j, g) === p && A[i][j] > 0);
      const heads = tf.range(size, letter);
      matrix.show({
        title: "weights; hatched: not read; capitals: global tokens",
        label: `Row of ${name(row)}: ${numbers.keys.length} keys; arrow keys move it`,
        rows: size,
        values: (i, j) => A[i][j] || Number.NaN,
        most: 0.6,
        row,
        rowHeads: heads,
        columnHeads: heads,
        frames: PIECES.map((term, p) => ({
          from: [p < 2 ? 0 : g, p % 2 ? g : 0],
          colour: "key",
          term,
          to: [p < 2 ? g - 1 : size - 1, p % 2 ? size - 1 : g - 1],
        })),
        marks: PIECES.map((term, p) => ({ cells: cells(p), term })),
      });
      const hops =
        numbers.hops === null
          ? "never"
          : `after ${numbers.hops} layer${numbers.hops === 1 ? "" : "s"}`;
      app.read({
        "first word reaches the last": question.tell(hops),
        "weight on global tokens": tf.fixed(numbers.to_globals, 2),
        "weight on words": tf.fixed(numbers.to_words, 2),
        "sum of the row": tf.fixed(numbers.to_globals + numbers.to_words, 2),
        "pairs by piece": `${numbers.pairs.join(" + ")} = ${tf.sum(numbers.pairs)}`,
      });
      app.say(
        `${name(row)} reads ${numbers.keys.length} tokens: ${tf.fixed(numbers.to_globals, 2)} of its weight goes to global tokens, ${tf.fixed(numbers.to_words, 2)} to words.`,
      );
    };
  },
});
