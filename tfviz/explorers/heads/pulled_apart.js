// S_b = apart · J_b + (1 − apart) · mean of all J; the threads are softmax(S_b), as wide as their weights.
const { words, query, heads } = tf.data;
const names = Object.keys(heads);
const h = names.length;
const own = names.map((name) => words.map((word) => heads[name][word] ?? 0));
const mean = words.map((_, j) => tf.mean(own.map((row) => row[j])));
const cosine = (a, b) => tf.dot(a, b) / (tf.norm(a) * tf.norm(b));
const widths = words.map((word) => Math.max(3, word.length) + 1.8);
const middles = widths.map((width, j) => tf.sum(widths.slice(0, j)) + width / 2);

// a thread that leaves one place and reaches the other upright
const thread = ([a, b], [c, d]) =>
  tf.range(25, (k) => {
    const part = k / 24;
    return [a + (c - a) * part * part * (3 - 2 * part), b + (d - b) * part];
  });

export default tf.explorer({
  numbers({ apart }) {
    const weights = own.map((row) =>
      Array.from(tf.softmax(row.map((score, j) => apart * score + (1 - apart) * mean[j]))),
    );
    const pairs = weights.flatMap((a, m) => weights.slice(m + 1).map((b) => cosine(a, b)));
    return { weights, alike: tf.mean(pairs) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ apart }, { weights, alike }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const unit = W / tf.sum(widths);
      const at = middles.map((x) => x * unit);
      const rows = small
        ? { words: 300, heads: 118, query: 16 }
        : { words: 400, heads: 156, query: 20 };
      const [wide, near, far] = small ? [13, 24, W / 4 - 8] : [24, 44, W / 4];
      const centre = W / 2;
      const headAt = (m) => [
        centre + (m - (h - 1) / 2) * (near + apart * (far - near)),
        rows.heads,
      ];
      const [last, edge] = [headAt(h - 1), (h - 1) / 2];
      const most = words.map((_, j) => Math.max(...weights.map((row) => row[j])));
      const threads = weights.flatMap((row, m) => {
        // side by side where they leave the head, as wide together as all of its weight
        const starts = row.map((a, j) => wide * (tf.sum(row.slice(0, j)) + a / 2 - 0.5));
        return row.map((weight, j) => ({
          line: thread([headAt(m)[0] + starts[j], rows.heads + 6], [at[j], rows.words - 16]),
          wide: Math.max(0.75, wide * weight),
          colour: tf.faint("attention", 20 + 75 * weight),
          weight,
        }));
      });

      const named = (text, x, align, colour) => ({ text, at: [x, rows.query], align, colour });

      plane.show({
        label: `Four heads of “${words[query]}” and the words that they find; the mean cosine of two heads is ${tf.fixed(alike, 2)}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          threads.sort((a, b) => a.weight - b.weight),
          words.map((text, j) => ({
            text,
            at: [at[j], rows.words],
            colour: j === query ? "query" : tf.faint("ink", 45 + 55 * Math.min(1, 2 * most[j])),
            plain: true,
          })),
          tf.range(h, (m) => ({
            line: thread([headAt(m)[0], rows.heads - 6], [centre, rows.query + 14]),
            colour: tf.faint("query", 45),
            wide: 2,
          })),
          { points: tf.range(h, headAt), colour: "attention", size: small ? 6 : 9 },
          // what they ask, while they ask different things
          last[0] - headAt(h - 2)[0] > (small ? 72 : 100) &&
            names.map((text, m) => ({
              text,
              at: headAt(m),
              dx: small ? -10 : -16,
              align: "end",
              colour: tf.faint("ink", 100 * apart),
            })),
          named(
            apart > 0.5 ? "push heads together" : "pull heads apart",
            -12,
            "start",
            "attention",
          ),
          named(`${small ? "" : "mean "}cosine of two: ${tf.fixed(alike, 2)}`, W, "end", "muted"),
          { text: words[query], at: [centre, rows.query], colour: "query" },
          {
            handle: last,
            knob: "apart",
            colour: "attention",
            text: `the mean cosine of two heads is ${tf.fixed(alike, 2)}`,
            to: (x) => ({ apart: app.snap("apart", ((x - centre) / edge - near) / (far - near)) }),
          },
        ],
      });
      const shared = `the mean cosine of two heads is ${tf.fixed(alike, 2)}`;
      app.say(
        alike < 0.15
          ? `Each head finds words of its own: ${shared}, so four heads find four different things.`
          : alike > 0.95
            ? `All four heads find the same blur of words: ${shared}, and one head would do.`
            : `The heads share part of what they find: ${shared}, where 1 means the same and 0 nothing in common.`,
      );
    };
  },
});
