// The weights of one query over its past, newest on the right, under the mask m_z(x) = clip((R + z − x) / R, 0, 1).
const { scores, ramp } = tf.data;
const past = scores.length;
const name = tf.best(scores.map((s, x) => (x > past / 2 ? s : -9)));

export default tf.explorer({
  numbers({ z }) {
    const mask = scores.map((_, x) => tf.clamp((ramp + z - x) / ramp, 0, 1));
    const plain = tf.softmax(scores);
    const kept = tf.dot(plain, mask);
    const weights = plain.map((a, x) => (a * mask[x]) / kept);
    return { mask, plain, weights, kept, keys: mask.filter((m) => m > 0).length };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ z }, { mask, plain, kept, keys }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const unit = W / past;
      const at = (x) => W - (x + 0.5) * unit;
      const base = small ? 108 : 132;
      const tall = H - base - (small ? 34 : 46); // of the mask where it is 1
      const most = Math.max(...plain);
      const [strip, thick] = small ? [62, 16] : [76, 22]; // the keys that are computed

      const bar = (x, height, colour) => ({
        shape: [
          [at(x) - 0.36 * unit, base],
          [at(x) - 0.36 * unit, base + height],
          [at(x) + 0.36 * unit, base + height],
          [at(x) + 0.36 * unit, base],
        ],
        colour,
        strength: 1,
      });
      const heights = plain.map((a) => Math.max(1, (0.86 * tall * a) / most));
      const band = (from, to, colour) => ({
        shape: [
          [W - to * unit, strip - thick],
          [W - to * unit, strip],
          [W - from * unit, strip],
          [W - from * unit, strip - thick],
        ],
        colour,
        strength: 1,
      });
      const edge = W - (z + 0.5) * unit;
      const outline = [
        [W, 1],
        [edge, 1],
        [at(z + ramp), 0],
        [0, 0],
      ].map(([x, share]) => [x, base + tall * share]);

      plane.show({
        label: `The weights of one query over ${past} tokens; the span is ${z}, and ${keys} keys are computed`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          { area: outline.map(([x, y]) => [x, base, y]), colour: "attention", strength: 0.1 },
          heights.map((height, x) => bar(x, height, tf.faint("key", 24))),
          heights.map((height, x) => mask[x] > 0 && bar(x, height * mask[x], "attention")),
          { line: outline, colour: "attention", wide: 2 },
          {
            text: "a name",
            at: [at(name), base + heights[name] + (small ? 12 : 16)],
            colour: mask[name] > 0.5 ? "attention" : "muted",
          },
          band(0, past, tf.faint("key", 12)),
          band(0, keys, tf.faint("attention", 55)),
          {
            text: `${keys} of ${past} keys computed`,
            at: [W, strip - thick - (small ? 14 : 20)],
            align: "end",
            colour: "attention",
          },
          {
            text: `${past} tokens back`,
            at: [0, base - 14],
            align: "start",
            colour: "muted",
            plain: true,
          },
          { text: "now", at: [W, base - 14], align: "end", colour: "query", plain: true },
          {
            text: `span ${z}`,
            at: [tf.clamp(edge, 30, W - 30), base + tall + (small ? 20 : 26)],
            colour: "attention",
          },
          {
            handle: [edge, base + tall],
            knob: "z",
            colour: "attention",
            text: `${z} tokens`,
            to: (x) => ({ z: app.snap("z", (W - x) / unit - 0.5) }),
          },
        ],
      });
      const [cost, share] = [keys / past, kept].map((part) => tf.percent(part));
      app.say(
        mask[name] === 1
          ? `To see the whole name, the head has to compute ${cost} of its keys; it keeps ${share} of its attention.`
          : `The head computes only ${cost} of its keys and keeps ${share} of its attention, but ${mask[name] ? "the name is fading" : "it no longer sees the name"}.`,
      );
    };
  },
});
