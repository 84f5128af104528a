// The walk of a trained model that is asked for a return; beside it, what each of ten wishes earned.
const { names, places, paths, goal, walks, failure } = tf.data;
const rows = walks.map((walk) => [...walk].map((name) => names.indexOf(name)));
const minus = (n) => (n > 0 ? `−${n}` : String(-n));
const BEST = 4; // steps of the shortest walk
const LOST = 12; // where the dots of walks stand that never arrive

// The steps as bows to the right of their paths, wider when they are taken again. A step to a place
// without a path stays where it is: a ring, wider each time.
function steps(walk, spots, unit) {
  const taken = new Map();
  return tf.range(walk.length - 1, (t) => {
    const [from, to] = [walk[t], walk[t + 1]];
    const again = taken.get(`${from} ${to}`) ?? 0;
    taken.set(`${from} ${to}`, again + 1);
    const [[a, b], [c, d]] = [spots[from], spots[to]];
    if (from === to) return { line: tf.arc(a, b, (9 + 4 * again) * unit) };
    const long = Math.hypot(c - a, d - b);
    const [ux, uy] = [(c - a) / long, (d - b) / long];
    const wide = (9 + 13 * again) * unit;
    const line = tf.range(25, (n) => {
      const share = (11 * unit + ((long - 24 * unit) * n) / 24) / long;
      const aside = wide * Math.sin(Math.PI * share) ** 0.7;
      return [a + share * (c - a) + aside * uy, b + share * (d - b) - aside * ux];
    });
    return { line, arrow: [line.at(-6), line.at(-1)] };
  });
}

const sentence = (wish, cost, lost) => {
  const [asked, got] = [minus(wish), minus(cost)];
  if (lost)
    return `No walk from here earns ${asked}, so the model has nothing to copy: it gets stuck and earns ${got}.`;
  if (wish < BEST)
    return `No walk from here earns ${asked}: the model takes the shortest way and earns ${got}.`;
  if (wish === BEST)
    return `Asked for ${asked}, the model takes the shortest way, although it has only ever seen random walks.`;
  const more = `${wish - BEST} step${wish - BEST === 1 ? "" : "s"}`;
  return cost === wish
    ? `Asked for ${asked}, the model takes a detour of exactly ${more}; asked for ${minus(BEST)}, it would go straight.`
    : `Asked for ${asked}, the model takes a detour and comes close: it earns ${got}.`;
};

export default tf.explorer({
  numbers({ wish }) {
    const earned = (row) => -(row.length - 1) - (row.at(-1) === goal ? 0 : failure);
    return { walk: rows[wish - 1], returns: rows.map(earned) };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 334 : 430);
    const plane = app.plane({ long: true, height: high });

    return ({ wish }, { walk, returns }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const unit = small ? 0.7 : 1;
      const [left, top] = small ? [20, H - 26] : [36, H - 30];
      const [across, down] = small ? [(W - 58) / 4, 42] : [Math.min(145, (W * 0.53) / 4), 107];
      const spots = places.map(([x, y]) => [left + x * across, top - y * down]);
      const shown = steps(walk, spots, unit);
      const lost = walk.at(-1) !== goal;
      const earned = returns[wish - 1];

      // what each wish earned: from −10 on the left to −1 on the right, and as low as it cost
      const box = small
        ? { left: 86, right: W - 12, top: 112, low: 30 }
        : { left: Math.max(W * 0.68, W - 360), right: W - 20, top: H - 70, low: 70 };
      const x = (n) => box.right - ((n - 1) / 9) * (box.right - box.left);
      const y = (n) => box.top - ((Math.min(n, LOST) - 1) / (LOST - 1)) * (box.top - box.low);
      const dots = returns.map((earned, n) => [x(n + 1), y(-earned)]);
      const here = dots[wish - 1];

      plane.show({
        label: `Asked for ${minus(wish)}, the model walks ${walk.map((n) => names[n]).join(" ")}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          paths.map((path) => ({ line: path.map((n) => spots[n]), colour: "grid", wide: 2 })),
          { points: spots, size: small ? 3 : 4, colour: "muted" },
          shown.map(({ line, arrow }) => [
            { line, colour: "attention", wide: small ? 2 : 2.5 },
            arrow && { arrow, colour: "attention", wide: small ? 2 : 2.5 },
          ]),
          { points: [spots[walk[0]], spots[goal]], size: 8 * unit, colour: "page" },
          { points: [spots[walk[0]]], size: 6 * unit, colour: "ink" },
          { points: [spots[goal]], size: 6 * unit, colour: "value" },
          { text: "start", at: spots[walk[0]], dx: -14, dy: small ? -10 : -16, align: "end" },
          {
            text: "goal",
            at: spots[goal],
            dx: 16,
            dy: small ? 12 : 16,
            align: "start",
            colour: "value",
          },

          {
            text: "each step costs 1",
            at: small ? [-4, box.top + 12] : [left - 8, 12],
            align: "start",
            colour: "muted",
          },
          {
            line: [
              [x(10), y(10)],
              [x(1), y(1)],
            ],
            colour: "grid",
            wide: 2,
          },
          {
            text: "as asked",
            at: small ? [x(1), y(1)] : [x(2), y(2)],
            dx: small ? 8 : -14,
            dy: small ? -12 : -4,
            align: "end",
            colour: "muted",
          },
          {
            text: "never arrive",
            at: [x(1), y(LOST)],
            dx: 8,
            dy: small ? -14 : -20,
            align: "end",
            colour: "muted",
          },
          { points: dots, size: small ? 3 : 4, colour: "muted" },
          { line: [here, [here[0], box.low - 14]], colour: "query", wide: 1, dash: "2 4" },
          { line: [here, [box.left - 12, here[1]]], colour: "attention", wide: 1, dash: "2 4" },
          {
            text: `asked for ${minus(wish)}`,
            at: [Math.min(here[0], box.right - (small ? 24 : 30)), box.low - 14],
            dy: small ? 10 : 14,
            colour: "query",
          },
          {
            text: `earned ${minus(-earned)}`,
            at: [box.left - 12, here[1]],
            dx: -6,
            align: "end",
            colour: "attention",
          },
          {
            handle: here,
            knob: "wish",
            colour: "query",
            text: minus(wish),
            to: (a) => ({
              wish: app.snap("wish", 1 + (9 * (box.right - a)) / (box.right - box.left)),
            }),
          },
        ],
      });
      app.say(sentence(wish, -earned, lost));
    };
  },
});
