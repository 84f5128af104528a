// Each raced method is a dot: time of a step ÷ full attention's, and loss; the first reason against it decides.
const { rows, lengths, reasons, plain, hidden } = tf.data;
const HEADS = Object.values(reasons);
const ORDER = ["any", "linear", "exact"];
const MOST = 30; // what is slower is drawn at the edge

function objection(row, at, state) {
  if (row.sees_future) return "sees the future";
  if (ORDER.indexOf(row.exactness) < ORDER.indexOf(state.exactness)) return "not exact enough";
  if (row.time[at] === null || row.memory[at] === null) return "not measured";
  if (row.memory[at] > state.memory) return "too much memory";
  return row.time[at] > 1 ? "slower" : "";
}
// that no other is at least as fast and as good, and better in one of the two
const front = (points) =>
  points.filter(([, x, y]) => !points.some(([, a, b]) => a <= x && b <= y && (a !== x || b !== y)));
const spoken = ([x, y]) => `${tf.fixed(x, 2)} ×, ${tf.fixed(y, 2)} nats`;

export default tf.explorer({
  numbers(state) {
    const at = lengths.indexOf(state.L);
    const shown = rows[state.kind];
    const list = Object.values(shown);
    const found = list.map((row) => Object.keys(reasons).indexOf(objection(row, at, state)));
    const left = list.flatMap((row, n) => (found[n] ? [] : [[n, row.time[at], row.loss]]));
    return {
      reasons: found,
      front: front(left).map(([n]) => n),
      better: left.filter(([, time, loss]) => time < 1 && loss <= shown[plain].loss).length,
    };
  },
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.5, 250, 400), lead: true });
    app.knob("kind", { as: "select" });
    app.knobsOf("L", "memory");
    app.knob("exactness", { as: "select" });
    const lists = app.lines();
    const { time, loss, name } = rows.causal[hidden];
    const question = app.ask({
      name: "linear",
      question: `One dot is missing. ${name} replaces all keys by a small table of sums. Where does its dot lie at 2,048 tokens, compared with full attention?`,
      about: plane,
      ghost: {
        first: [4, rows.causal[plain].loss + 0.4],
        at: (p) => p,
        to: (x, y) => [tf.clamp(x, 0.1, MOST), y].map((a) => Math.round(100 * a) / 100),
        by: [0.05, 0.05],
        draw: (p) => ({ points: [p], size: 4, colour: "ink" }),
        label: name,
      },
      format: spoken,
      near: 0.2,
      hides: ["linear"],
      guards: [],
      truth: () => [time[lengths.indexOf(2048)], loss],
      then: { L: 2048, memory: 2, kind: "causal", exactness: "any" },
      because: `The sums save most of attention's work at this length. But ${name.toLowerCase()} predicts text worse: its loss is ${tf.fixed(loss - rows.causal[plain].loss, 2)} nats above full attention's.`,
    });

    return (state, numbers) => {
      const at = lengths.indexOf(state.L);
      const shown = rows[state.kind];
      const names = Object.keys(shown);
      const held = (n) => question.open && names[n] === hidden;
      const some = names.flatMap((name, n) => (held(n) ? [] : [{ ...shown[name], id: name, n }]));
      const left = some.filter(({ n }) => !numbers.reasons[n]);
      const best = left.filter(({ n }) => numbers.front.includes(n));
      const measured = names
        .map((name, n) => ({ ...shown[name], id: name, n, x: shown[name].time[at] }))
        .filter(({ x, sees_future }) => x !== null && !sees_future);
      const losses = Object.values(shown).map((row) => row.loss);
      const [low, high] = [Math.min(...losses) - 0.12, Math.max(...losses) + 0.08];
      const named = ({ id, n }) => id === plain || id === hidden || numbers.front.includes(n);
      const labelled = measured.filter(named);
      const place = ({ x, loss }) => [Math.min(x, MOST), loss];
      const ends = { from: 0.08, to: MOST * 1.2 };
      // a name stands above its dot, or where it has room; in pixels, the axes left out
      const taken = [];
      const beside = (row) => {
        const [x, loss] = place(row);
        const left = (Math.log(x / ends.from) / Math.log(ends.to / ends.from)) * (plane.width - 55);
        const middle = ((high - loss) / (high - low)) * (plane.height - 62);
        const long = 7 * row.name.length + 8;
        const free = (dy) =>
          taken.every(
            (one) =>
              Math.abs(one.y - middle - dy) >= 12 ||
              one.left > left + long ||
              left > one.left + one.long,
          );
        const dy = (row.id === plain ? [15, -8] : [-8, 15, -22, 29, -36]).find(free) ?? 15;
        taken.push({ left, long, y: middle + dy });
        return dy;
      };
      plane.show({
        title: "violet: fits your case; named: full attention, linear attention, best trade-offs",
        label: `${some.length} methods by time and loss at ${tf.count(state.L)} tokens; best trade-offs: ${best.map((row) => row.name).join(", ") || "none"}`,
        x: {
          ...ends,
          log: true,
          ticks: [0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
          label: "time of a step ÷ full attention's",
        },
        y: { from: low, to: high, label: "loss on text, nats" },
        marks: [
          { rule: { x: 1 }, dash: "4 4" },
          { rule: { y: shown[plain].loss }, dash: "4 4" },
          measured.map((row) => ({
            points: [place(row)],
            size: row.id === plain ? 5 : 3.5,
            colour: numbers.reasons[row.n] ? "muted" : "attention",
            name: row.name,
            part: row.id === hidden ? "linear" : undefined,
          })),
          labelled.map((row) => ({
            text: row.name,
            at: place(row),
            align: "start",
            dx: 7,
            dy: beside(row),
            bold: row.id !== plain,
            colour: row.id === plain ? "ink" : numbers.reasons[row.n] ? "muted" : "attention",
            part: row.id === hidden ? "linear" : undefined,
          })),
        ],
      });
      const other = some.filter(({ id }) => id !== hidden);
      lists.show([
        ...HEADS.flatMap((head, k) => {
          const these = other.filter(({ n }) => numbers.reasons[n] === k);
          const which = these.map((row) => row.name).join("; ");
          return which || !k ? `${k ? head : `{attention:${head}}`}: ${which || "none"}` : [];
        }),
        `${name}: ${question.tell(HEADS[numbers.reasons[names.indexOf(hidden)]])}`,
      ]);
      const better = left.filter((row) => row.time[at] < 1 && row.loss <= shown[plain].loss);
      app.read({
        "fit your case": `${left.length} of ${some.length} methods`,
        "faster and no worse on text": String(better.length),
        [name]: question.tell(
          shown[hidden].time[at] === null
            ? "not measured"
            : spoken([shown[hidden].time[at], shown[hidden].loss]),
        ),
      });
      app.say(
        `At ${tf.count(state.L)} tokens, ${left.length} of ${some.length} methods fit; ${better.length} of these are faster than full attention and no worse on text.`,
      );
    };
  },
});
