// The position bench: the part of a score that comes from the two places alone, for several encodings.

const { words: WORDS, clocks: CLOCKS, hand } = tf.data; // hand(k, m, d, base) = cos(k ω_m)
const named = (name) => WORDS[name] ?? name;
const BRIEF = { none: "none", xl: "XL", t5: "T5" };

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
  const most = values.reduce((most, x) => Math.max(most, Math.abs(x) || 0), 1e-9);
  return { values, low, high, spread, most };
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

// the means of the seeds by length, and the least and the greatest of them
function lossOf(race, task, name) {
  const seeds = race.tasks[task]?.[name];
  if (!seeds) return undefined;
  const at = (of) => race.lengths.map((_, n) => of(seeds.map((seed) => seed[n] ?? Number.NaN)));
  const [low, high] = [Math.min, Math.max].map((of) => at((xs) => of(...xs)));
  return { mean: at(tf.mean), low, high };
}
// the encoding beside the chosen one, if there is another
const rivalOf = ({ chosen, rival, encodings }) =>
  rival !== chosen ? rival : encodings.find((name) => name !== chosen);

export default tf.explorer({
  ends: ({ encodings, race }) => {
    const tasks = Object.keys(race.tasks ?? {});
    return {
      chosen: { of: encodings },
      rival: { of: encodings },
      task: { of: tasks.length ? tasks : ["text"] },
    };
  },
  numbers,
  setup(app) {
    const { encodings: names, race, bias } = app.values();
    const tasks = Object.keys(race.tasks ?? {});
    const trained = race.train_length ?? 64;
    const columns = Math.min(2, names.length);
    const curves = app.split(tasks.length ? "1fr 1fr" : "1fr");
    const tall = { into: curves, height: (width) => tf.clamp(width * 0.6, 170, 220) };
    const profile = app.plane({ ...tall, lead: true });
    const lost = tasks.length ? app.plane(tall) : null;
    const pair = app.split(`repeat(${columns}, 1fr)`, { keep: columns });
    const pick = (row, column) => app.set({ row, column });
    const map = () => app.matrix({ into: pair, lead: false, tall: 200, pick });
    const maps = tf.range(columns).map(map);
    const options = (list, text) => ({ options: list.map((x) => [x, text(x)]) });
    if (names.length > 1) app.knob("chosen", { as: "select", ...options(names, named) });
    if (names.length > 2) app.knob("rival", { as: "select", ...options(names, named) });
    app.knob("length");
    app.knob("row");
    app.knob("column");
    if (names.some((name) => CLOCKS.includes(name) && !bias[name])) {
      app.knob("d");
      app.knob("base", { format: tf.count });
    }
    if (tasks.length > 1) app.knob("task", options(tasks, String));

    const { chosen: first, task, row, column } = app.first;
    const longer = race.lengths.filter((n) => n > trained);
    const last = race.lengths.at(-1);
    const beyond = ({ chosen, task }) => lossOf(race, task, chosen)?.mean.slice(-longer.length);
    const shown = (x) => (x === undefined || Number.isNaN(x) ? "no row" : tf.fixed(x));
    const goesOn = (name) => beyond({ chosen: name, task })?.every(Number.isFinite);
    const ends = (name) => {
      const { mean } = lossOf(race, task, name);
      return [mean[race.lengths.indexOf(trained)], mean.at(-1)].map(shown);
    };
    const measured = lost && longer.length > 1 && goesOn(first);
    const beside = rivalOf(app.values());
    const comparison = goesOn(beside)
      ? `; with ${named(beside)} it is ${ends(beside).join(" and ")}`
      : "";
    const other = Math.floor(row / 2);
    const asked = app.ask(
      measured
        ? {
            name: `longer-${first}`,
            question: `Trained on texts of ${trained} tokens: what happens to the loss with ${named(first)} on longer ones?`,
            about: lost,
            curve: { at: longer },
            hides: ["longer", `loss at ${last}`],
            truth: (_, state) => beyond(state),
            then: { chosen: first, task },
            guards: [],
            because: `With ${named(first)} the loss is ${ends(first)[0]} at ${trained} tokens and ${ends(first)[1]} at ${last}${comparison}.`,
          }
        : {
            name: `another-query-${first}`,
            question: `With query ${other} in place of ${row}, does the violet curve (${named(first)}) keep its shape?`,
            chips: ["it keeps its shape", "it changes shape"],
            hides: ["band", "at one distance, rows differ by up to"],
            truth: (numbers) => Number(numbers.spread > 1e-3),
            then: { chosen: first, row: other, column: Math.max(0, column + other - row) },
            guards: ["row"],
            because:
              "The grey band spans the rows of all queries. If it has no width, the scores depend only on the distance.",
          },
    );
    const part = (name) => (measured && name === first ? "longer" : undefined);

    const view = (state, numbers) => {
      const { length: L, chosen } = state;
      const { row: i, column: j } = state;
      const rival = rivalOf(state);
      const { values, low, high } = matrixOf(state, chosen);
      const v = values[i * L + j];
      const said = shown(v);
      const titles = [`${named(chosen)}: violet above 0, grey below`, `${named(rival)}, the rival`];
      [chosen, rival].slice(0, columns).forEach((name, m) => {
        const { values: own, most } = matrixOf(state, name);
        const past = { from: [0, 0], to: [trained - 1, trained - 1], dash: "4 3" };
        maps[m].show({
          title: titles[m],
          label: `${named(name)}: scores by place, ${L} queries down, ${L} keys across; query ${i}, key ${j}: ${shown(own[i * L + j])}; arrow keys move the pair`,
          rows: L,
          values: own,
          signed: true,
          most,
          text: () => "",
          row: i,
          column: j,
          frames: L > trained && lost ? [past] : [],
        });
      });
      const look = (name) =>
        name === chosen
          ? { bold: true, colour: "attention", wide: 2.5 }
          : { bold: true, colour: "ink", wide: 1.5 };
      const line = (name, ys, at) => ({
        line: ys,
        name: BRIEF[name] ?? named(name),
        ...at,
        ...look(name),
      });
      const both = rival ? [rival, chosen] : [chosen]; // the chosen one above
      const band = tf
        .range(2 * L - 1, (m) => [m + 1 - L, low[m], high[m]])
        .filter(([x, a, b]) => a <= b && x >= -i && x <= L - 1 - i);
      profile.show({
        title: `scores of query ${i} by distance; grey band: those of all queries`,
        label: `Scores of query ${i} by distance, for ${both.map(named).join(" and ")}`,
        x: { from: -i, to: L - 1 - i, label: "distance j − i", whole: true },
        y: {},
        marks: [
          band.length && { area: band, colour: "ink", part: "band" },
          both.map((name) => line(name, rowOf(state, name, i), { start: -i })),
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
      let losses = [];
      if (lost) {
        const from = race.lengths.indexOf(trained);
        const at = { at: race.lengths };
        const drawn = both
          .map((name) => ({ name, ...lossOf(race, state.task, name) }))
          .filter(({ mean }) => mean);
        const me = drawn.find(({ name }) => name === chosen);
        // the same axis for all that were measured
        const all = Object.values(race.tasks[state.task]).flat(2).filter(Number.isFinite);
        const doubled = race.lengths.filter((n) => Number.isInteger(Math.log2(n)));
        const reach = me && race.lengths.map((x, m) => [x, me.low[m], me.high[m]]);
        const curveText = ({ name, mean }) => `${named(name)} ${mean.map(shown).join(", ")}`;
        const halves = ({ name, mean }) => {
          const held = asked.open && part(name);
          const to = mean.map((y, m) => (m <= from ? y : Number.NaN));
          const on = mean.map((y, m) => (m >= from ? y : Number.NaN));
          const ends = Number.isNaN(mean.at(-1));
          return [
            { ...line(name, to, at), ...(held || ends ? {} : { name: undefined }) },
            { ...line(name, on, at), ...(ends ? { name: undefined } : {}), part: part(name) },
          ];
        };
        lost.show({
          title: `measured loss, ${race.unit[state.task]}`,
          label: asked.open
            ? `Measured loss against length, trained at ${trained}`
            : `Measured loss against length, trained at ${trained}: ${drawn.map(curveText).join("; ")}`,
          x: { log: true, ticks: doubled, label: "length (log)" },
          y: { from: Math.min(...all), to: Math.max(...all) },
          marks: [
            { rule: { x: trained }, dash: "3 3", wide: 1.5 },
            reach && {
              area: reach.filter(([, a]) => !Number.isNaN(a)),
              colour: "attention",
              part: part(chosen),
            },
            drawn.map(halves),
          ],
        });
        losses = me ? [me.mean[from], me.mean.at(-1)].map(shown) : [];
      }
      const peak = values[i * L + i]; // a half of it has a meaning only above 0
      const half = numbers.half >= 0 ? numbers.half : peak > 0 ? "never" : "–";
      const seen = !(asked.open && part(chosen));
      app.read({
        "place-only score of i and j": said,
        "at one distance, rows differ by up to": tf.fixed(numbers.spread),
        "first below half its peak at distance": half,
        ...(lost
          ? {
              [`loss at ${trained}`]: losses[0] ?? "not measured",
              [`loss at ${last}`]: losses[1] ?? "not measured",
            }
          : {}),
      });
      const where = Number.isNaN(v)
        ? `no row for place ${Math.max(i, j)}`
        : `query ${i} and key ${j}, ${Math.abs(i - j)} apart, score ${said}`;
      const far = losses[1] === "no row" ? "none beyond the table" : losses[1];
      const lossText = losses.length
        ? `; loss ${losses[0]} at ${trained}${seen ? `, ${far} at ${last}` : ""}`
        : "";
      app.say(`${named(chosen)}: ${where}${lossText}.`);
    };
    const python = () => {
      const state = app.all();
      const given = Object.keys(bias).filter((name) => !tf.data.known.includes(name));
      const more = given.length ? `, bias={${given.map((name) => `"${name}": …`).join(", ")}}` : "";
      const knobs = Object.entries(state).map(([key, value]) => `${key}=${tf.python(value)}`);
      return `PositionEncodings(${tf.python(names)}, ${knobs.join(", ")}${more})`;
    };
    return Object.assign(view, { python });
  },
});
