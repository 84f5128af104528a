// A walk for each start and wish, as a trained model took it; steps over the same path stand side by side.
const { names, places, paths, goal, away, walks, cloned, horizon, failure } = tf.data;
const starts = [...names].filter((_, n) => n !== goal);
const spots = places.map(([x, y]) => [x, -y]);
const minus = (n) => (n > 0 ? `−${n}` : String(-n));
const stepsOf = (n) => `${n} step${n === 1 ? "" : "s"}`;
const ASKED = { start: "K", wish: 4, cloning: false };
const AFTER = 3;

function numbers({ start, wish, cloning }) {
  const row = cloning ? cloned : walks[wish - 1];
  const walk = [...row[starts.indexOf(start)]].map((name) => names.indexOf(name));
  const arrived = walk.at(-1) === goal;
  return {
    walk,
    left: tf.range(walk.length - 1, (t) => t - wish),
    achieved: -(walk.length - 1) - (arrived ? 0 : failure),
    away: away[names.indexOf(start)],
  };
}

const nearest = (x, y) =>
  tf
    .range(spots.length)
    .reduce((a, b) =>
      Math.hypot(spots[b][0] - x, spots[b][1] - y) < Math.hypot(spots[a][0] - x, spots[a][1] - y)
        ? b
        : a,
    );

// the place that lies most nearly that way
function beyond([x, y], [right, up]) {
  const far = (n) => {
    const [dx, dy] = [spots[n][0] - x, spots[n][1] - y];
    const along = dx * right + dy * up;
    const across = Math.abs(dx * up - dy * right);
    return along > 0.15 ? along + 2 * across : Number.POSITIVE_INFINITY;
  };
  const best = tf.range(spots.length).reduce((a, b) => (far(b) < far(a) ? b : a));
  return far(best) < Number.POSITIVE_INFINITY ? spots[best] : [x, y];
}

// the steps of a walk as arrows, to the right of their path, and further if they are taken again
function arrows(walk) {
  const taken = new Map();
  return tf.range(walk.length - 1, (t) => {
    const [from, to] = [walk[t], walk[t + 1]];
    if (from === to) return null; // there was no such path
    const key = `${from} ${to}`;
    const again = taken.get(key) ?? 0;
    taken.set(key, again + 1);
    const [[a, b], [c, d]] = [spots[from], spots[to]];
    const long = Math.hypot(c - a, d - b);
    const [ux, uy] = [(c - a) / long, (d - b) / long];
    const aside = 0.07 + 0.1 * again;
    const at = (share) => [a + share * (c - a) + aside * uy, b + share * (d - b) - aside * ux];
    const ends = 0.2 / long;
    return { t, line: [at(ends), at(1 - ends)], number: at(0.5) };
  });
}

export default tf.explorer({
  numbers,
  setup(app) {
    const graph = app.plane({
      height: (width) => tf.clamp(width * 0.72, 260, 430),
      lead: true,
      long: true,
    });
    const tokens = app.matrix({ axes: ["", "step"], tall: 120 });
    app.formula("{wish:what is left of the wish}, {state:state} → {action:action}");
    app.motion("step", {
      last: () => numbers(app.values()).walk.length - 1,
      every: 500,
    });
    app.knob("wish", { format: minus });
    app.knob("start", { as: "select" });
    app.knob("cloning");
    const question = app.ask({
      name: "after three",
      question:
        "Asked for −8, the model starts at K, makes a detour and reaches O at step eight. Now we ask for −4, so it cannot waste a step. Where is it after three steps?",
      about: graph,
      ghost: {
        first: 11,
        at: (n) => spots[n],
        to: nearest,
        by: beyond,
        draw: (n) => ({ points: [spots[n]], size: 9, colour: "ink" }),
        label: "where it is after three steps",
      },
      format: (n) => names[n],
      near: 0,
      guards: ["wish"],
      truth: ({ walk }) => walk[AFTER],
      then: { ...ASKED, step: AFTER },
      because:
        "The shortest path from K has four steps, and the model takes it: K, Q, R, S, O. Yet it learned from random walks alone.",
    });

    return (state, { walk, left, achieved, away: least }) => {
      const last = walk.length - 1;
      const step = Math.min(state.step, last);
      const here = walk[step];
      const word = state.cloning ? "the clone gets no wish" : `asked for ${minus(state.wish)}`;
      const walker = state.cloning
        ? "The clone gets no wish. It"
        : `Asked for ${minus(state.wish)}, the model`;
      const sofar = walk
        .slice(0, step + 1)
        .map((n) => names[n])
        .join(" ");
      const ended = step === last;
      graph.show({
        title: `${word}, from ${state.start}: at ${names[here]} after ${stepsOf(step)}`,
        label: `The walk so far: ${sofar}`,
        x: { from: -0.4, to: 4.4, bare: true },
        y: { from: -3.45, to: 0.35, bare: true },
        marks: [
          paths.map((path) => ({ line: path.map((n) => spots[n]), colour: "muted", wide: 1 })),
          arrows(walk.slice(0, step + 1)).map(
            (one) =>
              one && [
                {
                  arrow: one.line,
                  colour: "attention",
                  wide: one.t === step - 1 ? 3.5 : 2,
                  term: "action",
                },
              ],
          ),
          { points: spots, size: 10, colour: "page" },
          spots.map((spot, n) => ({
            text: names[n],
            at: spot,
            bold: n === here || n === goal,
            colour: n === here ? "attention" : n === goal ? "query" : "ink",
            term: n === here ? "state" : undefined,
          })),
          { text: "goal", at: spots[goal], dy: 16, colour: "query" },
        ],
      });
      tokens.show({
        title: "what the model reads, three tokens per step (✗: no such path)",
        label: tf
          .range(step, (t) => {
            const wish = state.cloning ? "" : `wish ${minus(-left[t])}, `;
            const action =
              walk[t] === walk[t + 1] ? "no such path" : `action ${names[walk[t + 1]]}`;
            return `${wish}state ${names[walk[t]]}, ${action}`;
          })
          .join("; "),
        rows: 3,
        columns: horizon,
        values: (i, t) => (t < step ? (i === 2 ? 0.45 : 0.12) : 0),
        most: 1,
        text: (i, t) => {
          if (t >= step) return "";
          if (i === 0) return state.cloning ? "–" : minus(-left[t]);
          return i === 2 && walk[t] === walk[t + 1] ? "✗" : names[walk[t + i - 1]];
        },
        rowHeads: ["wish", "state", "action"],
        columnHeads: tf.range(horizon, (t) => String(t + 1)),
        frames: step > 0 ? [{ column: step - 1 }] : [],
      });
      app.read({
        "asked for": state.cloning ? "nothing" : minus(state.wish),
        achieved: ended ? minus(-achieved) : "not yet",
        "best possible": minus(least),
      });
      app.say(
        ended
          ? `${walker} walks ${sofar} and achieves a return of ${minus(-achieved)}; the best possible is ${minus(least)}.`
          : `${walker} has taken ${stepsOf(step)} so far: ${sofar}.`,
      );
    };
  },
});
