// A block's work on the next token, 24 d² + 4 L d operations, as a whole: attention's share, and a window's.
const { width: d, window: D } = tf.data;
const work = (keys) => 24 * d * d + 4 * keys * d;
const attention = (L) => (4 * L * d) / work(L);
const saved = (L) => 1 - work(Math.min(L, D)) / work(L);
const [FIRST, LAST] = [128, 1048576];
const lengths = tf.range(131, (n) => FIRST * (LAST / FIRST) ** (n / 130));
const READ = { 512: "a page", 8192: "a chapter", 131072: "a book" }; // about so many tokens

export default tf.explorer({
  numbers: ({ L }) => ({ work: work(L), attention: attention(L), saved: saved(L) }),
  setup(app) {
    const high = (width) => (width < 640 ? 334 : 430);
    const plane = app.plane({ long: true, height: high });

    return ({ L }, { attention: share, saved: less }) => {
      const small = plane.width < 640;
      const tokens = `${tf.count(L)} tokens`;
      const window = `a window of ${tf.count(D)}`;
      const below = (pixels) => -pixels / (high(plane.width) * 0.84); // pixels, in units of y
      const [before, after] = [
        { dx: -14, align: "end" },
        { dx: 14, align: "start" },
      ];
      const early = L < 20000; // the share stands below the curve, later above it
      const aside = L < 1000 || (!early && L < 80000) ? after : before;
      const room = 2 ** ((13 * (small ? 62 : 80)) / plane.width); // for half of the words at L
      plane.show({
        label: `At ${tokens}, attention is ${tf.percent(share)} of the work of a block`,
        hover: false,
        x: { from: FIRST, to: LAST, log: true, bare: true },
        y: { from: below(52), to: 1, bare: true },
        marks: [
          {
            area: lengths.map((at) => [at, 0, 1 - attention(at)]),
            colour: "muted",
            strength: 0.16,
          },
          {
            area: lengths.map((at) => [at, 1 - attention(at), 1 - saved(at)]),
            colour: "attention",
            strength: 0.85,
          },
          {
            area: lengths.map((at) => [at, 1 - saved(at), 1]),
            colour: "attention",
            strength: 0.14,
          },
          {
            line: [
              [L, 0],
              [L, 1],
            ],
            colour: "ink",
            wide: 1,
            dash: "2 4",
          },
          {
            text: small ? "attention" : `${window} tokens saves the light part`,
            at: [LAST, 0.93],
            dx: -10,
            align: "end",
            colour: "attention",
            plain: true,
          },
          {
            text: small ? "all other work of a block" : "work of one block on the next token",
            at: [FIRST, 0.05],
            dx: 10,
            align: "start",
            colour: "muted",
            plain: true,
          },
          {
            text: `${small ? "" : "attention "}${tf.percent(share)}`,
            at: [L, early ? 1 - share - 0.1 : 0.78],
            colour: "attention",
            plain: true,
            ...aside,
          },
          share < 0.8 && {
            text: `${small ? "" : "all else "}${tf.percent(1 - share)}`,
            at: [L, (1 - share) / 2],
            plain: true,
            ...(L < 1000 ? after : before),
          },
          Object.entries(READ).map(([at, text]) => ({
            text,
            at: [Number(at), below(40)],
            colour: "muted",
          })),
          { text: tokens, at: [tf.clamp(L, FIRST * room, LAST / room), below(18)] },
          { handle: [L, 1 - share], knob: "L", colour: "attention", text: tokens },
        ],
      });
      const begin = `At ${tokens}, attention is ${tf.percent(share)} of a block’s work`;
      const left = Math.round(100 * (1 - less));
      const effect =
        left > 50
          ? `save ${tf.percent(less)} of the total`
          : left === 50
            ? "halve the total"
            : `cut the total to ${tf.percent(1 - less)}`;
      app.say(
        less > 0
          ? `${begin}; ${window} tokens would ${effect}.`
          : `${begin}: there is little that cheaper attention could save.`,
      );
    };
  },
});
