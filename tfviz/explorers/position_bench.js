// The position bench: the part of a score that comes from the two places alone, for several encodings.

const { words: WORDS, clocks: CLOCKS, hand } = tf.data; // hand(k, m, d, base) = cos(k ω_m)
const named = (name) => WORDS[name] ?? name;
const BRIEF = { none: "none", xl: "XL", t5: "T5" };
const DASHES = ["6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4", "12 3 2 3", "3 6", "1 4"];
const dash = (name) => DASHES[Math.max(0, Object.keys(WORDS).indexOf(name)) % DASHES.length];

// One number for each distance, for the encodings that know no other.
const byDistance = tf.keep((L, d, base) =>
  tf.range(L, (distance) => tf.mean(tf.range(d / 2, (m) => hand(distance, m, d, base)))),
);

// What the places add, NaN where the encoding has no row; and its reach at each distance j − i.
function scoresOf(name, table, L, d, base) {
  const at = CLOCKS.includes(name) && !table ? byDistance(L, d, base) : null;
  const score = (i, j) => {
    if (at) return at[Math.abs(i - j)];
    if (!table) return 0;
    if ("offset" in table) return table.values[j - i + table.offset];
    return Math.max(i, j) < table.side ? table.values[i * table.side + j] : Number.NaN;
  };
  const values = new Float64Array(L * L);
  const [low, high] = [1, -1].map((sign) => new Float64Array(2 * L - 1).fill(sign * 1e9));
  for (let i = 0; i < L; i++) {
    for (let j = 0; j < L; j++) {
      const v = score(i, j);
      const n = j - i + L - 1;
      values[i * L + j] = v;
      if (v < low[n]) low[n] = v;
      if (v > high[n]) high[n] = v;
    }
  }
  const spread = high.reduce((most, x, n) => Math.max(most, x - low[n]), 0);
  return { values, low, high, spread };
}
const caches = new WeakMap(); // by what an explorer was given
function matrixOf({ bias, length, d, base }, name) {
  if (!caches.has(bias))
    caches.set(
      bias,
      tf.keep((n, ...sizes) => scoresOf(n, bias[n], ...sizes)),
    );
  return caches.get(bias)(name, length, d, base);
}
const rowOf = (state, name, i) =>
  Array.from(matrixOf(state, name).values.subarray(i * state.length, (i + 1) * state.length));

function numbers(state) {
  const i = state.row;
  const rows = state.encodings.map((name) => rowOf(state, name, i));
  const mine = rows[state.encodings.indexOf(state.chosen)];
  // to the left, where a causal model looks
  const half = mine[i] > 0 ? tf.range(i + 1).find((m) => mine[i - m] < mine[i] / 2) : undefined;
  const seen = rows.map((row) => row.filter((x) => !Number.isNaN(x)));
  return { rows: seen, spread: matrixOf(state, state.chosen).spread, half: half ?? -1 };
}

const linesOf = (race, task) =>
  Object.entries(race.tasks[task]).map(([name, seeds]) => {
    const at = (of) => race.lengths.map((_, n) => of(seeds.map((seed) => seed[n] ?? Number.NaN)));
    const [low, high] = [Math.min, Math.max].map((of) => at((xs) => of(...xs)));
    return { name, mean: at(tf.mean), low, high };
  });

export default tf.explorer({
  ends: ({ encodings, race }) => {
    const tasks = Object.keys(race.tasks ?? {});
    return { chosen: { of: encodings }, task: { of: tasks.length ? tasks : ["text"] } };
  },
  numbers,
  setup(app) {
    const { encodings: names, race, bias } = app.values();
    const tasks = Object.keys(race.tasks ?? {});
    const trained = race.train_length ?? 64;
    const columns = names.length === 4 ? 2 : names.length;
    const beside = app.split(`repeat(${columns}, 1fr)`, { keep: Math.min(2, columns) });
    const maps = names.map((chosen) => {
      const pick = (row, column) => app.set({ chosen, row, column });
      return app.matrix({ into: beside, lead: false, pick });
    });
    const below = app.split(tasks.length ? "1fr 1fr" : "1fr");
    const tall = { into: below, height: (width) => tf.clamp(width * 0.7, 180, 230) };
    const profile = app.plane({ ...tall, lead: true });
    const lost = tasks.length ? app.plane(tall) : null;
    const options = (list, text) => ({ options: list.map((x) => [x, text(x)]) });
    if (names.length > 1) app.knob("chosen", { as: "select", ...options(names, named) });
    app.knob("length");
    app.motion("row", { every: 90 });
    app.knob("column");
    if (names.some((name) => CLOCKS.includes(name) && !bias[name])) {
      app.knob("d");
      app.knob("base", { format: tf.count });
    }
    if (tasks.length > 1) app.knob("task", options(tasks, String));
    const { chosen: first } = app.first;
    const asked = app.ask({
      name: "another-query",
      question: `Another query is chosen: what does the curve of ${named(first)} do, by distance?`,
      chips: ["it stays the same", "it changes"],
      truth: (numbers) => Number(numbers.spread > 1e-3),
      locks: ["row"],
      because:
        "The grey band holds the rows of all queries: a band without width knows only distance.",
    });

    const view = (state, numbers) => {
      const L = state.length;
      const { row: i, column: j } = state;
      const { values, low, high } = matrixOf(state, state.chosen);
      const v = values[i * L + j];
      const shown = (x) => (x === undefined || Number.isNaN(x) ? "no row" : tf.fixed(x));
      const said = shown(v);
      names.forEach((name, m) => {
        const mine = name === state.chosen;
        const own = matrixOf(state, name).values;
        const past = { from: [0, 0], to: [trained - 1, trained - 1], dash: "4 3" };
        maps[m].show({
          title: `${named(name)}${mine ? " (chosen)" : ""}`,
          label: `${named(name)}: scores by place, ${L} queries down, ${L} keys across; query ${i}, key ${j}: ${shown(own[i * L + j])}; arrow keys move`,
          rows: L,
          values: own,
          signed: true,
          most: 1,
          text: () => "",
          ...(mine ? { row: i, column: j } : {}),
          frames: [
            ...(mine ? [{ colour: "attention" }] : []),
            ...(L > trained && lost ? [past] : []),
          ],
        });
      });
      const line = (name, ys, at, mine) => ({
        line: ys,
        name: BRIEF[name] ?? named(name),
        ...at,
        bold: mine,
        ...(mine ? { colour: "attention", wide: 2.5 } : { wide: 1.25, dash: dash(name) }),
      });
      const others = names.filter((name) => name !== state.chosen);
      const band = tf
        .range(2 * L - 1, (m) => [m + 1 - L, low[m], high[m]])
        .filter(([, a, b]) => a <= b);
      profile.show({
        title: `scores of query ${i}: drag the dot; band: all queries`,
        label: `Scores of query ${i} by distance, for ${names.map(named).join(", ")}`,
        x: { from: -i, to: L - 1 - i, label: "distance j − i", whole: true },
        y: {},
        marks: [
          !asked.open &&
            band.length && { area: band.filter(([x]) => x >= -i && x <= L - 1 - i), colour: "ink" },
          [...others, state.chosen].map((name) =>
            line(name, rowOf(state, name, i), { start: -i }, name === state.chosen),
          ),
          lost && i > trained && { rule: { x: -trained }, dash: "4 3" },
          !Number.isNaN(v) && {
            handle: [j - i, v],
            knob: "column",
            colour: "key",
            text: `key ${j}`,
            to: (x) => ({ column: app.snap("column", x + i) }),
          },
        ],
      });
      let loss = "";
      let ends;
      if (lost) {
        const all = linesOf(race, state.task);
        const me = all.find((x) => x.name === state.chosen);
        const at = { at: race.lengths };
        const doubled = race.lengths.filter((n) => Number.isInteger(Math.log2(n)));
        const reach = me && race.lengths.map((x, m) => [x, me.low[m], me.high[m]]);
        const curveText = (x) => `${named(x.name)} ${x.mean.map(shown).join(", ")}`;
        lost.show({
          title: `measured: ${race.unit[state.task]}`,
          label: `Measured loss against length, trained at ${trained}: ${all.map(curveText).join("; ")}`,
          x: { log: true, ticks: doubled, label: "length (log)" },
          y: {},
          marks: [
            { rule: { x: trained }, dash: "3 3", wide: 1.5 },
            reach && { area: reach.filter(([, a]) => !Number.isNaN(a)), colour: "attention" },
            [...all.filter((x) => x !== me), ...(me ? [me] : [])].map((x) =>
              line(x.name, x.mean, at, x === me),
            ),
          ],
        });
        ends = me && [me.mean[race.lengths.indexOf(trained)], me.mean.at(-1)];
        const last = race.lengths.at(-1);
        const far = Number.isNaN(ends?.[1]) ? "none beyond the table" : shown(ends?.[1]);
        if (ends && !Number.isNaN(ends[0]))
          loss = `; loss ${shown(ends[0])} at ${trained}, ${far} at ${last}`;
      }
      const measured = ends ? ends.map(shown).join(" → ") : "not measured";
      app.read({
        "score of i and j by place": said,
        ...(asked.open ? {} : { "rows differ at one distance by up to": tf.fixed(numbers.spread) }),
        "first below half its peak at distance": numbers.half < 0 ? "never" : numbers.half,
        ...(lost ? { [`loss at ${trained} → longest`]: measured } : {}),
      });
      const where = Number.isNaN(v)
        ? `has no row for ${Math.max(i, j)}`
        : `query ${i} and key ${j}, ${Math.abs(i - j)} apart, score ${said}`;
      const differ = `; at one distance rows differ by up to ${tf.fixed(numbers.spread)}`;
      app.say(`${named(state.chosen)}: ${where}${asked.open ? "" : differ}${loss}.`);
    };
    const python = () => {
      const state = app.all();
      const given = Object.keys(bias).filter((name) => !tf.data.known.includes(name));
      const more = given.length ? `, bias={${given.map((name) => `"${name}": …`).join(", ")}}` : "";
      const knobs = Object.entries(state).map(([key, value]) => `${key}=${tf.python(value)}`);
      return `PositionBench(${tf.python(names)}, ${knobs.join(", ")}${more})`;
    };
    return Object.assign(view, { python });
  },
});
