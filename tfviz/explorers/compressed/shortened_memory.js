// Bars say how well each key fits the query; each group of c keys becomes one note, their mean.
const { length: L, seed, noise, passage, peak, fits, beta } = tf.data;
const within = (j) => j >= passage[0] && j <= passage[1];
const random = tf.uniforms(seed, L);
const keys = tf.range(L, (j) => {
  const fit = j === peak ? fits.peak : within(j) ? fits.passage : fits.anything;
  return fit + noise * random[j];
});

export default tf.explorer({
  numbers({ many }) {
    const c = L / many;
    const notes = tf.range(many, (s) => tf.mean(keys.slice(s * c, (s + 1) * c)));
    return { notes, weights: Array.from(tf.softmax(notes.map((x) => beta * x))) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 320 : 430);
    const plane = app.plane({ long: true, height: high });

    return ({ many: few }, { notes, weights }) => {
      const c = L / few;
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const margin = small ? 0 : 76;
      const pitch = (W - margin) / L;
      const tall = small ? 84 : 116; // a bar of height 1
      const row = { keys: H - tall - (small ? 34 : 40), notes: small ? 24 : 32 };
      const at = (j) => margin + j * pitch;
      const rim = small ? 1 : 4;
      const bar = (j, base, height, colour) => ({
        shape: tf.box(at(j) + rim, at(j + 1) - rim, base, base + Math.max(1, height * tall)),
        colour,
        strength: 1,
      });
      const named = (text, x, y, colour, align = "start") => ({
        text,
        at: [x, y],
        colour,
        align,
        plain: true,
      });
      const share = (s) => Math.round(100 * weights[s]);
      const roof = row.notes + tall * Math.max(...notes) + 10;
      const end = [at(notes.length), row.notes];
      const late = notes.length > (small ? 24 : 30);
      const line = small ? 12 : 20;
      const [from, to] = passage;

      plane.show({
        label: `${L} keys become ${notes.length} notes of ${c}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          keys.map((fit, j) =>
            bar(j, row.keys, fit, tf.faint("key", within(j) || j === peak ? 100 : 40)),
          ),
          notes.map((_, s) => ({
            shape: [
              [at(s * c) + rim, row.keys - 5],
              [at((s + 1) * c) - rim, row.keys - 5],
              [at(s + 1) - rim, row.notes + tall * notes[s] + 5],
              [at(s) + rim, row.notes + tall * notes[s] + 5],
            ],
            colour: tf.faint("attention", 6 + 0.5 * share(s)),
            strength: 1,
          })),
          notes.map((fit, s) =>
            bar(s, row.notes, fit, tf.faint("attention", 22 + 0.78 * share(s))),
          ),
          { line: [[margin, row.notes], end], colour: "attention", wide: 1 },
          named(
            "a passage that fits",
            (at(from) + at(to + 1)) / 2,
            row.keys + fits.passage * tall + line + 8,
            "key",
            "middle",
          ),
          named(
            "one key that fits best",
            at(peak + 0.5),
            row.keys + fits.peak * tall + line + 4,
            "key",
            "middle",
          ),
          !small && named("keys", -12, row.keys + tall / 4, "key"),
          !small && named("notes", -12, row.notes + tall / 4, "attention"),
          named(
            notes.length === 1 ? "1 note" : `${notes.length} notes`,
            late ? end[0] - 16 : end[0] + 18,
            late ? row.notes - (small ? 20 : 22) : row.notes,
            "attention",
            late ? "end" : "start",
          ),
          {
            handle: end,
            knob: "many",
            colour: "attention",
            text: `${notes.length} notes of ${c}`,
            to: (x) => ({ many: app.snap("many", (x - margin) / pitch) }),
          },
        ],
      });
      const one = tf.percent(weights[Math.floor(peak / c)], 0);
      const many = tf.percent(
        tf.sum(weights.filter((_, s) => tf.range(c, (m) => s * c + m).some(within))),
        0,
      );
      app.say(
        c === 1
          ? `Nothing is condensed: the one key that fits best gets ${one} of the attention, the passage ${many}.`
          : c === L
            ? "A single note holds the mean of all keys: whatever the query asks, it gets the same answer."
            : `${notes.length} notes of ${c} keys: the passage still gets ${many} of the attention; the one key that fits best sinks to ${one}.`,
      );
    };
  },
});
