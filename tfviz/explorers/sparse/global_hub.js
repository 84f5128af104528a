// Token 0 is global. Word i hears of word 1 after ⌈(i − 1) / radius⌉ layers, and through token 0 after two.
const { words, radius } = tf.data;
const L = 1 + words;
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six"];
const layers = (count) => (count === 1 ? "one layer" : `${NUMBERS[count] ?? count} layers`);

export default tf.explorer({
  numbers({ word }) {
    const along = Math.ceil((word - 1) / radius);
    const window = L * (2 * radius + 1) - radius * (radius + 1);
    const row = 2 * L - 1 - (2 * radius + 1); // of token 0, and its column; some are in the window
    return { hops: [along, Math.min(along, 2)], pairs: [window, window + row] };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ word }, { hops: [along, through], pairs }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const [left, right] = small ? [6, W - 10] : [40, W - 40];
      const gap = (right - left) / (words - 1);
      const line = small ? 96 : 124; // how high the words stand
      const at = (i) => left + (i - 1) * gap;
      const hub = [(left + right) / 2, H - (small ? 34 : 40)];
      const named = line - (small ? 42 : 62);
      const soon = along <= 2;

      // a stitch from one word to another, below the line
      const stitch = (i, j) => {
        const [middle, half] = [(at(i) + at(j)) / 2, Math.abs(at(j) - at(i)) / 2];
        return tf
          .arc(middle, line - 8, 1, Math.PI, 2 * Math.PI, 16)
          .map(([x, y]) => [
            middle + (x - middle) * half,
            line - 8 + (y - line + 8) * Math.min(half, 30) * 1.1,
          ]);
      };
      const every = tf.range(words, (k) => k + 1);
      const stops = [...tf.range(along, (n) => 1 + n * radius), word];
      const ray = (i) => ({
        line: [[at(i), line + 8], hub],
        colour: tf.faint("attention", 30),
        wide: 1,
      });

      plane.show({
        label: `${words} words in a row and one global token; from the first word to word ${word}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          every.map(ray),
          every
            .filter((i) => i + radius <= words)
            .map((i) => ({ line: stitch(i, i + radius), colour: tf.faint("muted", 30), wide: 1 })),
          {
            line: [[at(1), line + 8], hub, [at(word), line + 8]],
            colour: soon ? tf.faint("attention", 60) : "attention",
            wide: soon ? 2 : 5,
          },
          stops.slice(1).map((stop, n) => ({
            line: stitch(stops[n], stop),
            colour: "ink",
            wide: soon ? 4 : 2,
          })),
          every.map((i) => ({
            points: [[at(i), line]],
            colour: i === 1 ? "key" : "muted",
            size: i === 1 ? 7 : small ? 2 : 3,
          })),
          { points: [hub], colour: "attention", size: small ? 8 : 11 },
          {
            text: `one global token: ${layers(2)}`,
            at: [hub[0], hub[1] + (small ? 24 : 28)],
            colour: "attention",
          },
          {
            text: `${radius} neighbours on each side: ${layers(along)}`,
            at: [hub[0], line - (small ? 66 : 96)],
          },
          {
            text: "first word",
            at: [at(1) - 6, named],
            align: "start",
            colour: "key",
          },
          {
            text: `word ${word}`,
            at: [tf.clamp(at(word), at(1) + (small ? 94 : 132), right - 10), named],
            colour: "query",
          },
          {
            handle: [at(word), line],
            knob: "word",
            colour: "query",
            text: `word ${word}`,
            to: (x) => ({ word: app.snap("word", 1 + (x - left) / gap) }),
          },
        ],
      });
      app.say(
        soon
          ? `Word ${word} is near: the window brings it news of the first word in ${layers(along)}, ${along === 2 ? "as soon as the global token does" : "before the global token could"}.`
          : `The window alone needs ${layers(along)} to bring the first word to word ${word}; one global token needs ${NUMBERS[through]}, for ${pairs[1] - pairs[0]} more pairs.`,
      );
    };
  },
});
