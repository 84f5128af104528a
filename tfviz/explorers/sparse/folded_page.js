// Lines of `stride` words. The last word reads the `stride` words before it, and every stride-th one.
const L = tf.data.length;
const last = L - 1;
const MOST = 20; // words a line, and lines

// where a word stands: its line, and its place in the line
const placed = (j, stride) => [j % stride, Math.floor(j / stride)];

export default tf.explorer({
  numbers({ stride }) {
    const inLine = (i, j) => j <= i && i - j <= stride;
    const inColumn = (j) => (last - j) % stride === 0;
    const all = tf.range(L);
    const column = all.filter(inColumn);
    return {
      keys: all.filter((j) => inLine(last, j) || inColumn(j)),
      heard: all.filter((j) => column.some((m) => inLine(m, j))).length,
      relay: last % stride,
    };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ stride }, { keys, heard, relay }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const [left, top] = [0, H - (small ? 42 : 34)];
      const [wide, tall] = [(W - (small ? 14 : 226)) / MOST, (top - (small ? 34 : 30)) / MOST];
      const gap = small ? 1.5 : 3;
      const corner = (column, line) => [left + column * wide, top - line * tall];
      const brick = (j) => {
        const [x, y] = corner(...placed(j, stride));
        return tf.box(x, x + wide - gap, y - tall + gap, y);
      };
      const middle = (j) => {
        const [x, y] = corner(...placed(j, stride));
        return [x + (wide - gap) / 2, y - (tall - gap) / 2];
      };
      const read = new Set(keys);
      const bricks = (list, colour) => list.map((j) => ({ shape: brick(j), colour, strength: 1 }));
      // all pages of L words have their corner on one curve
      const off = small ? 3 : 6;
      const end = (width) => [left + width * wide + off, top - (L / width) * tall - off];
      const [x, y] = end(stride);
      const beside = Math.min(x + (small ? 14 : 18), W - (small ? 130 : 180)); // for the words at the handle
      const low = beside < x + 12;
      const [direct, rest] = [keys.length, heard - keys.length];

      plane.show({
        label: `${L} words in lines of ${stride}; the last word reads ${direct} of them`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          { line: tf.range(76, (n) => end(5 + n / 5)), colour: "grid", wide: 1.5 },
          bricks(
            tf.range(L).filter((j) => !read.has(j)),
            tf.faint("attention", 16),
          ),
          bricks(
            keys.filter((j) => j !== last),
            tf.faint("attention", 62),
          ),
          bricks([last], "query"),
          { line: [middle(0), middle(relay), middle(last)], colour: "ink", wide: 2 },
          { points: [middle(0), middle(relay)], colour: "ink", size: small ? 3 : 4 },
          small
            ? {
                text: "layer 1 along a line, layer 2 down a column",
                at: [left, top + 20],
                align: "start",
              }
            : [
                { text: "layer 1: along a line", at: [left, top + 17], align: "start" },
                {
                  text: "layer 2: down a column",
                  at: [left + stride * wide + 8, middle(0)[1]],
                  align: "start",
                },
              ],
          {
            text: `${stride} a line: ${direct} to read`,
            at: [beside, y - (small ? 12 : 14) - (low ? 20 : 0)],
            align: "start",
            colour: "query",
          },
          {
            handle: [x, y],
            knob: "stride",
            colour: "query",
            text: `${stride} words a line`,
            to: (at) => ({ stride: app.snap("stride", (at - off - left) / wide) }),
          },
        ],
      });
      app.say(
        `The last word reads ${direct} words: its line and its column. They have read the other ${rest}, so two layers bring it all ${heard}.`,
      );
    };
  },
});
