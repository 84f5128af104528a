// Rows of Z pack six tokens, and the tokens read the packed rows; in matrices: A = A_unpack A_pack.
const { words, tokens, rows, loud } = tf.data;
const L = words.length;
const turned = (angle) => [Math.cos, Math.sin].map((side) => loud * side((angle * Math.PI) / 180));
const X = tokens.map(turned);
const shares = (from, to) =>
  from.map((q) => Array.from(tf.softmax(to.map((k) => tf.dot(q, k) / Math.SQRT2))));
const mixed = (weights, vectors) =>
  weights.map((row) => vectors[0].map((_, c) => tf.sum(row.map((w, n) => w * vectors[n][c]))));
const anglesOf = ({ l, angle }) => [angle, ...rows.slice(1, l)];
const full = shares(X, X);
function packed(state) {
  const pack = shares(anglesOf(state).map(turned), X);
  const unpack = shares(X, mixed(pack, X));
  return { pack, unpack, A: mixed(unpack, pack), full };
}
const asked = { l: 2, angle: rows[0], query: 0 };
const OF = 1; // the token whose share is asked for
const wanted = packed(asked);
const percent = (x) => tf.percent(x, 0);
const rowsOfZ = ({ length }) => `${length} row${length === 1 ? "" : "s"} of Z`;
const degrees = ([x, y]) => (Math.atan2(y, x) * 180) / Math.PI;

export default tf.explorer({
  numbers: packed,
  setup(app) {
    const above = app.split("1fr 1fr");
    const plane = app.plane({
      height: (width) => tf.clamp(width * 0.8, 220, 280),
      into: above,
      lead: true,
    });
    const packs = app.matrix({ axes: ["row of Z", "token"], tall: 150, into: above });
    const below = app.split("1fr 2fr");
    const pick = (i) => app.set({ query: i });
    const unpacks = app.matrix({ axes: ["query", "row of Z"], tall: 260, pick, into: below });
    const map = app.matrix({ axes: ["query", "token"], tall: 260, pick, into: below });
    app.formula("{map:𝐀} = {unpack:𝐀_unpack} {pack:𝐀_pack}");
    app.knobsOf("l", "angle", "query");
    const question = app.ask({
      name: "share",
      question: `The first row of Z gives “${words[OF]}” a weight of ${percent(wanted.pack[0][OF])}, the second ${percent(wanted.pack[1][OF])}. “${words[0]}” gives the first row ${percent(wanted.unpack[0][0])} and the second ${percent(wanted.unpack[0][1])}. What weight does “${words[0]}” end up giving “${words[OF]}”?`,
      about: map,
      ruler: { low: 0, high: 100 },
      format: (x) => percent(x / 100),
      near: 4,
      hides: ["weight of “blue” for “red”", "with full attention"],
      guards: [],
      truth: () => 100 * wanted.A[0][OF],
      then: asked,
      because: `One path leads through each row, and the two add up: ${percent(wanted.unpack[0][0])} of ${percent(wanted.pack[0][OF])} and ${percent(wanted.unpack[0][1])} of ${percent(wanted.pack[1][OF])}. Full attention gives “${words[OF]}” ${percent(full[0][OF])}.`,
    });

    return (state, numbers) => {
      const { pack, unpack, A } = numbers;
      const { query } = state;
      const angles = anglesOf(state);
      // the column: nearly the same share reaches the neighbours of the one that is asked for
      const hidden = (j) => question.open && j === OF;
      const names = angles.map((_, r) => `p${"₁₂₃"[r]}`);
      plane.show({
        title: "the directions of six tokens, and of the rows of Z",
        label: `Three colours, three numbers, and ${rowsOfZ(angles)}; the first row points to ${state.angle} degrees`,
        square: true,
        x: { from: -1.45, to: 1.45, bare: true },
        y: { from: -1.45, to: 1.45, bare: true },
        marks: [
          { line: tf.arc(0, 0, 1), colour: "muted", wide: 1 },
          X.map((x, j) => [
            {
              points: [x.map((u) => u / loud)],
              colour: j === query ? "query" : "key",
              size: j === query ? 7 : 5,
            },
            {
              text: words[j],
              at: x.map((u) => (1.25 * u) / loud),
              colour: j === query ? "query" : "key",
              bold: j === query,
            },
          ]),
          angles.map((angle, r) => [
            {
              arrow: [[0, 0], turned(angle).map((u) => (0.72 * u) / loud)],
              colour: "attention",
              wide: 2.5,
              term: "pack",
            },
            {
              text: names[r],
              at: turned(angle + 14).map((u) => (0.55 * u) / loud),
              colour: "attention",
            },
          ]),
          {
            handle: turned(state.angle).map((u) => (0.72 * u) / loud),
            knob: "angle",
            text: `${state.angle}°`,
            label: "the direction of the first row of Z",
            to: (x, y) => ({ angle: app.snap("angle", degrees([x, Math.max(y, 0)])) }),
          },
        ],
      });
      packs.show({
        title: "what each row of Z packs",
        label: `${rowsOfZ(angles)}, each with its weights for six tokens`,
        rows: angles.length,
        columns: L,
        values: pack,
        most: 1,
        text: (r, j) => tf.fixed(pack[r][j], 2),
        rowHeads: names,
        columnHeads: words,
      });
      unpacks.show({
        title: "what each token reads",
        label: `Six tokens, each with its weights for ${rowsOfZ(angles)}`,
        rows: L,
        columns: angles.length,
        values: unpack,
        most: 1,
        text: (i, r) => tf.fixed(unpack[i][r], 2),
        rowHeads: words,
        columnHeads: names,
        row: query,
      });
      map.show({
        title: "the product: what reaches each token",
        label: `Six queries, each with the weights of six tokens that reach it`,
        rows: L,
        columns: L,
        values: (i, j) => (hidden(j) ? Number.NaN : A[i][j]),
        most: 0.5,
        text: (i, j) => (hidden(j) ? "?" : tf.fixed(A[i][j], 2)),
        rowHeads: words,
        columnHeads: words.map((word) => word[0]),
        row: query,
      });
      const own = percent(tf.sum(A[query].slice(query < 3 ? 0 : 3, query < 3 ? 3 : 6)));
      const share = percent(A[0][OF]);
      app.read({
        "weight of “blue” for “red”": share,
        "with full attention": percent(full[0][OF]),
        "scores computed": `${2 * L * angles.length} (full: ${L * L})`,
      });
      app.say(
        `With ${angles.length} ${angles.length === 1 ? "row" : "rows"}, “${words[query]}” gets ${own} of its answer from the ${query < 3 ? "colours" : "numbers"}.`,
      );
    };
  },
});
