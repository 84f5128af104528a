// N means of k samples on top of each other: what they make of a signal, and the share of each sample in output i.
const { signal: SIGNAL, peaks: PEAKS } = tf.data;
const L = SIGNAL.length;
const ASKED = { blocks: 3, k: 9, i: 24 };
const offsets = (k) => [-Math.floor((k - 1) / 2), Math.floor(k / 2)];
// y_i is the mean of x_{i + o} over all o from first to last, 0 beyond the ends
const mean = (values, first, last) =>
  tf.range(L, (i) =>
    tf.sum(tf.range(last - first + 1, (n) => (values[i + first + n] ?? 0) / (last - first + 1))),
  );
const repeated = (values, first, last, blocks) =>
  tf.range(blocks).reduce((now) => mean(now, first, last), values);
const seenBy = (i, k, blocks) => {
  const [first, last] = offsets(k);
  return [Math.max(i + blocks * first, 0), Math.min(i + blocks * last, L - 1)];
};
// below the signal, on the same samples: their shares, as bars from a floor of their own
const [FLOOR, TALL] = [-1.6, 2.6];
const over = (share) => FLOOR + TALL * share;
const samples = { from: -0.5, to: L - 0.5, whole: true, label: "sample" };

export default tf.explorer({
  numbers({ blocks, k, i }) {
    const [first, last] = offsets(k);
    const alone = tf.range(L, (j) => Number(j === i));
    return {
      made: repeated(SIGNAL, first, last, blocks),
      shares: repeated(alone, -last, -first, blocks),
      seen: seenBy(i, k, blocks),
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.46, 290, 400), lead: true });
    app.knobsOf("blocks", "k", "i");
    const question = app.ask({
      name: "seen",
      question:
        "Through the convolution of one block, output 24 sees samples 20 to 28. What is the first sample that it sees through three blocks?",
      about: plane,
      ghost: {
        first: 17,
        at: (x) => [x, 1.55],
        to: (x) => tf.clamp(Math.round(x), 0, 24),
        draw: (x) => ({ rule: { x }, colour: "ink", dash: true }),
        by: [1, 0],
        label: "the first sample that output 24 sees through three blocks",
      },
      near: 0,
      format: (x) => `sample ${x}`,
      guards: ["blocks", "k", "i"],
      truth: () => seenBy(ASKED.i, ASKED.k, ASKED.blocks)[0],
      then: ASKED,
      because:
        "Each block adds 4 samples on each side: 24 − 3 · 4 = 12. The first peak, at sample 6, is still out of sight. Attention sees it in one block.",
    });

    return (state, numbers) => {
      const { blocks, k, i } = state;
      const [first, last] = numbers.seen;
      const shown = `${first} to ${last}`;
      const most = Math.max(...numbers.shares);
      const middle = tf.mean(tf.range(L).filter((j) => numbers.shares[j] > most - 1e-9));
      const far =
        i < L / 2
          ? { at: [L - 1, over(1 / L)], align: "end" }
          : { at: [0, over(1 / L)], align: "start" };
      plane.show({
        title:
          "above: signal (grey) and means of k samples (violet); below: the share of each sample in output i",
        label: `Output ${i} sees samples ${shown} of ${L} through ${blocks} convolution${blocks > 1 ? "s" : ""}; the largest share of a sample is ${tf.percent(most)}`,
        x: samples,
        y: { from: FLOOR, to: 1.8, ticks: [0, 0.5, 1] },
        marks: [
          {
            area: [
              [first - 0.5, FLOOR, 1.8],
              [last + 0.5, FLOOR, 1.8],
            ],
            colour: "attention",
            term: "near",
          },
          numbers.shares.map((share, j) => ({
            shape: tf.box(j - 0.35, j + 0.35, FLOOR, over(share)),
            colour: "attention",
            strength: 1,
          })),
          {
            line: [
              [0, over(1 / L)],
              [L - 1, over(1 / L)],
            ],
            colour: "key",
            wide: 2,
          },
          { text: tf.percent(most), at: [middle, over(most)], dy: -10 },
          { text: `attention: ${tf.percent(1 / L)}`, ...far, dy: -12, colour: "key" },
          { line: SIGNAL.map((x, j) => [j, x]), colour: "muted" },
          { line: numbers.made.map((x, j) => [j, x]), colour: "attention", wide: 2.5 },
          { text: "first peak", at: [PEAKS[0], 1.15] },
          {
            handle: [i, numbers.made[i]],
            knob: "i",
            text: `output ${i}`,
            to: (x) => ({ i: app.snap("i", x) }),
          },
        ],
      });
      app.read({
        "seen through convolutions": shown,
        "seen through attention": `0 to ${L - 1}`,
      });
      app.say(
        `Through ${blocks} convolution${blocks > 1 ? "s" : ""} of size ${k}, output ${i} sees from sample ${first} to sample ${last}. Through attention, it sees all ${L}.`,
      );
    };
  },
});
