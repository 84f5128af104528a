// An image of 8 × 8 pixels: what one of them may use, by the library's formulas, with a memory along
// the sequence of all pixels and with one in two dimensions; as images, and as matrices.

// (i, j, l_q, l_m) => allowed, (i, j, width, h_q, w_q, h_m, w_m) => allowed
const { image_1d: one, image_2d: two } = tf.data;
const SIDE = tf.declared.knobs.h_q.high;
const L = SIDE * SIDE;
const square = (of) => tf.range(L, (i) => tf.range(L, (j) => of(i, j)));
const mask1 = tf.keep((l_q, l_m) => square((i, j) => Number(one(i, j, l_q, l_m))));
const mask2 = tf.keep((...sizes) => square((i, j) => Number(two(i, j, SIDE, ...sizes))));
const row = (i) => Math.floor(i / SIDE);
const column = (i) => i % SIDE;
const start = (n, size) => n - (n % size);

// the pixels, block after block and row by row in each
const orderOf = tf.keep((h_q, w_q) => {
  const block = (i) => Math.floor(row(i) / h_q) * SIDE + Math.floor(column(i) / w_q);
  return tf.range(L).sort((a, b) => block(a) - block(b) || a - b);
});
const masks = (state) => [
  mask1(state.l_q, state.l_m),
  mask2(state.h_q, state.w_q, state.h_m, state.w_m),
];
const keys = (mask, i) => tf.range(L).filter((j) => mask[i][j]);
// the row of the highest pixel straight above one that it reads
const highest = (seen, pixel) =>
  Math.min(...seen.filter((j) => column(j) === column(pixel)).map(row));

function numbers(state) {
  const order = orderOf(state.h_q, state.w_q);
  const pixel = order[state.place];
  const both = masks(state);
  return {
    pixel,
    order,
    one: keys(both[0], pixel),
    two: keys(both[1], pixel),
    pairs: both.map((mask) => tf.sum(mask.flat())),
  };
}

export default tf.explorer({
  numbers,
  setup(app) {
    let over; // the pixel under the mouse
    const seen = () => orderOf(app.get("h_q"), app.get("w_q"));
    const at = (pixel) => app.set({ place: seen().indexOf(pixel) });
    // another size of the blocks is another order: the pixel stays, not its place
    const resized = (change) => {
      const { h_q, w_q } = { h_q: app.get("h_q"), w_q: app.get("w_q"), ...change };
      return { ...change, place: orderOf(h_q, w_q).indexOf(seen()[app.get("place")]) };
    };
    const hover = (y, x) => {
      over = y === undefined || (inOrder && question.open) ? undefined : y * SIDE + x;
      app.redraw("hover");
    };
    const images = app.split("1fr 1fr", { keep: 2 });
    const image = { pick: (y, x) => at(y * SIDE + x), hover, axes: ["row", "column"], tall: 200 };
    const image1 = app.matrix({ ...image, into: images });
    const image2 = app.matrix({ ...image, into: images });
    const matrices = app.split("1fr 1fr", { keep: 2 });
    const matrix1 = app.matrix({ pick: at, tall: 190, into: matrices });
    const matrix2 = app.matrix({
      tall: 190,
      into: matrices,
      pick: (i) => at(app.get("in_order") ? seen()[i] : i),
    });
    app.motion("place", { every: 250 });
    app.knobsOf("l_q", "l_m");
    for (const key of ["h_q", "w_q"])
      app.knob(key, { write: (value) => app.set(resized({ [key]: value })) });
    app.knobsOf("h_m", "w_m", "in_order");
    const { pixel: asked, pairs, one: line } = numbers(app.first);
    const { place: made, h_q, w_q, h_m, in_order: inOrder } = app.first;
    const [askedRow, askedColumn] = [row(asked), column(asked)];
    const cell = (x) => tf.clamp(Math.floor(x), 0, SIDE - 1);
    const above = pairs[0] === pairs[1] &&
      askedRow > 1 && {
        name: "above",
        question: `In 1-D, the framed pixel reads straight up to row ${highest(line, asked)}. In 2-D, it reads its block so far (blue) and ${h_m === 1 ? "the row" : `${h_m} rows`} above it. How far straight up is that?`,
        about: image2,
        ghost: {
          first: askedRow,
          at: (y) => [askedColumn + 0.5, y + 0.5],
          to: (_, y) => Math.min(cell(y), askedRow),
          by: [0, 1],
          draw: (y) => ({
            from: [y, askedColumn],
            to: [askedRow, askedColumn],
            colour: "query",
            dash: "5 4",
          }),
          label: "the highest pixel that it reads",
        },
        format: (y) => `row ${y}`,
        hides: ["memory", "straight above, 2-D"],
        truth: ({ two, pixel }) => highest(two, pixel),
        then: { place: made },
        guards: [],
        because: `In the sequence of all pixels, two rows up is 16 back, and in 1-D the framed pixel looks ${(asked % app.first.l_q) + app.first.l_m} back. A rectangle spends its memory on pixels that are near on the canvas.`,
      };
    const next = made < L - 1 && {
      name: "next",
      question: `Blocks of ${h_q} × ${w_q} are made one after the other, and the pixels of each block line by line. The framed pixel was made last. Which pixel is next?`,
      about: image2,
      ghost: {
        first: [askedColumn, askedRow],
        at: ([x, y]) => [x + 0.5, y + 0.5],
        to: (x, y) => [cell(x), cell(y)],
        draw: ([x, y]) => ({ cell: [y, x], colour: "query", dash: "5 4" }),
        label: "the pixel that is made next",
      },
      format: ([x, y]) => `row ${y}, column ${x}`,
      truth: ({ pixel }) => [column(pixel), row(pixel)],
      then: { place: made + 1 },
      because: "The pixels of one block are made line by line. The blocks to its right come later.",
    };
    const question = app.ask(inOrder ? next : above);

    return (state, numbers, changed) => {
      if (changed.has("place")) over = undefined; // keys and play are followed, wherever the mouse is
      const picked = numbers.pixel;
      const at = [row(picked), column(picked)]; // where arrow keys move from
      const grid = { rows: SIDE, columns: SIDE, text: () => "", at };
      const pixel = over ?? picked;
      const [bits1, bits2] = masks(state);
      const place = numbers.order.indexOf(pixel);
      const [y, x] = [row(pixel), column(pixel)];
      // NaN, hatched: not made yet; 0: made, and out of reach; 1: may be used
      const shown = (mask, isMade) =>
        mask[pixel].map((on, j) => (on ? 1 : isMade(j) ? 0 : Number.NaN));
      const mine = [start(row(picked), state.h_q), start(column(picked), state.w_q)]; // its block's corner
      const own = { cell: [y, x], colour: "query" };
      const [top, left] = [start(y, state.h_q), start(x, state.w_q)];
      const end = [Math.min(SIDE, top + state.h_q) - 1, Math.min(SIDE, left + state.w_q) - 1];
      const [keys1, keys2] = [keys(bits1, pixel), keys(bits2, pixel)];
      const [count1, count2] = [keys1.length, keys2.length];
      const isMade = (j) => numbers.order.indexOf(j) <= place;
      const inBlock = (r, c) => r >= top && r <= end[0] && c >= left && c <= end[1];
      const held = app.hides("memory"); // it would tell where the memory's corner is
      const words = `Pixel ${pixel}, row ${y}, column ${x}, is number ${pixel} line by line and number ${place} block by block.`;
      image1.show({
        title: "1-D: violet is read, hatched is not made yet",
        label: `1-D memory in the image. ${words} It reads ${count1} pixels.`,
        ...grid,
        values: shown(bits1, (j) => j <= pixel),
        frames: [own],
      });
      image2.show({
        title: "2-D: drag the blue or the violet corner",
        label: `2-D memory in the image. ${words} It reads ${count2} pixels.`,
        ...grid,
        values: shown(bits2, isMade),
        part: (r, c) => isMade(r * SIDE + c) && !inBlock(r, c) && "memory",
        frames: [{ from: [top, left], to: end, colour: "key" }, own],
        handles: [
          {
            handle: [state.w_q, state.h_q],
            knob: "w_q",
            knobY: "h_q",
            colour: "key",
            name: "block",
            label: "corner of the first block",
            text: `rows: ${state.h_q}, columns: ${state.w_q}`,
            to: (u, v) => resized({ w_q: app.snap("w_q", u), h_q: app.snap("h_q", v) }),
          },
          !held && {
            handle: [Math.max(0, mine[1] - state.w_m), Math.max(0, mine[0] - state.h_m)],
            knob: "w_m",
            knobY: "h_m",
            name: "memory",
            label: "corner of the memory",
            text: `rows above: ${state.h_m}, columns beside: ${state.w_m}`,
            to: (u, v) => ({
              w_m: app.snap("w_m", mine[1] - u),
              h_m: app.snap("h_m", mine[0] - v),
            }),
          },
        ].filter(Boolean),
      });
      const first = start(picked, state.l_q);
      matrix1.show({
        title: "1-D, one row per pixel",
        label: `1-D memory as a matrix, row ${pixel}: ${count1} keys`,
        rows: L,
        bits: (i, j) => bits1[i][j],
        row: pixel,
        handles: [
          {
            handle: [state.l_q, state.l_q],
            knob: "l_q",
            colour: "key",
            text: `${state.l_q} pixels`,
            to: (u) => ({ l_q: app.snap("l_q", u) }),
          },
          {
            handle: [Math.max(0, first - state.l_m), picked + 0.5],
            knob: "l_m",
            text: `${state.l_m} pixels`,
            to: (u) => ({ l_m: app.snap("l_m", first - u) }),
          },
        ],
      });
      const drawn = (i, j) =>
        state.in_order ? bits2[numbers.order[i]][numbers.order[j]] : bits2[i][j];
      const second = state.in_order ? place : pixel; // its row in the matrix of 2-D
      matrix2.show({
        title: state.in_order ? "2-D, in the order of making" : "2-D, pixels line by line",
        label: `2-D memory as a matrix, row ${second}: ${count2} keys`,
        rows: L,
        bits: drawn,
        row: second,
        part: (i) => i === second && "memory",
      });
      app.read({
        "this pixel reads, 1-D": count1,
        "this pixel reads, 2-D": count2,
        "straight above, 1-D": `up to row ${highest(keys1, pixel)}`,
        "straight above, 2-D": `up to row ${highest(keys2, pixel)}`,
        "mean, 1-D": tf.fixed(numbers.pairs[0] / L, 1),
        "mean, 2-D": tf.fixed(numbers.pairs[1] / L, 1),
      });
      app.say(`${words} It reads ${count1} pixels in 1-D and ${count2} in 2-D.`);
    };
  },
});
