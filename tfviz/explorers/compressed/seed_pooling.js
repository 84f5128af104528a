// Seeds of length β weigh points by softmax(β s · x) and pool them; points read what was pooled in the same way.
const { points, moved } = tf.data;
const n = points.length;
const weigh = (q, K, beta) => Array.from(tf.softmax(K.map((k) => beta * tf.dot(q, k))));
const mixed = (weights, X) => X[0].map((_, a) => tf.sum(weights.map((w, j) => w * X[j][a])));
const cloud = ({ x, y }) => points.map((p, j) => (j === moved ? [x, y] : p));
const place = ([x, y]) => `(${tf.fixed(x, 2)}, ${tf.fixed(y, 2)})`;
const DASHES = [undefined, "6 4", "2 3"];

export default tf.explorer({
  numbers(state) {
    const X = cloud(state);
    const seeds = tf.range(state.k, (c) => {
      const turn = (state.angle * Math.PI) / 180 + (2 * Math.PI * c) / state.k;
      return [Math.cos(turn), Math.sin(turn)];
    });
    const weights = seeds.map((s) => weigh(s, X, state.beta));
    const pooled = weights.map((w) => mixed(w, X));
    const map = X.map((x) => mixed(weigh(x, pooled, state.beta), weights));
    return { seeds, weights, pooled, map };
  },
  setup(app) {
    const both = app.split("5fr 4fr");
    const plane = app.plane({
      height: (width) => tf.clamp(width * 0.9, 260, 360),
      into: both,
      lead: true,
    });
    const side = tf.el("div");
    both.append(side);
    const rows = app.matrix({ axes: ["seed", "point"], tall: 90, into: side });
    const map = app.matrix({
      axes: ["point that reads", "point that is read"],
      tall: 240,
      into: side,
    });
    app.formula("{pool:pooled} = Σ_j softmax_j({seed:𝐬} · 𝐱_j) 𝐱_j");
    app.knobsOf("k", "angle", "beta", "x", "y");
    const question = app.ask({
      name: "pooled",
      question:
        "The arrow is a seed: the further a point lies in its direction, the larger its weight and its dot. Where is the weighted mean that the seed pools?",
      about: plane,
      ghost: {
        first: [0, 0],
        at: (p) => p,
        to: (x, y) => [x, y].map((a) => Math.round(100 * tf.clamp(a, -1, 1)) / 100),
        by: [0.1, 0.1],
        draw: (p) => ({ points: [p], size: 4, colour: "ink" }),
        label: "the mean that the seed pools",
      },
      format: place,
      near: 0.25,
      hides: ["pooled", "pooled vectors"],
      guards: [],
      truth: (numbers) => numbers.pooled[0],
      then: { k: 1, angle: 30, beta: 3, x: -0.5, y: 0.5 },
      because:
        "Two or three points hold nearly all of the weight, and the mean lies among them. The order in which the points are listed does not matter.",
    });

    return (state, numbers) => {
      const X = cloud(state);
      const { seeds, weights, pooled } = numbers;
      const sizes = X.map((_, j) => Math.max(...weights.map((w) => w[j])));
      plane.show({
        title: "dots: points, sized by their largest weight; squares: pooled vectors",
        label: `${n} points; ${seeds.map((_, c) => `seed ${c + 1} gives point ${tf.best(weights[c])} the most weight`).join("; ")}`,
        x: { from: -1.25, to: 1.25, bare: true },
        y: { from: -1.25, to: 1.25, bare: true },
        square: true,
        marks: [
          seeds.map((s, c) => ({
            arrow: [[0, 0], s],
            colour: "query",
            wide: 2.5,
            dash: DASHES[c],
            term: "seed",
          })),
          X.map((p, j) => ({
            points: [p],
            size: 2.5 + 9 * sizes[j],
            colour: "key",
            name: `point ${j}`,
          })),
          X.map(([x, y], j) => ({ text: String(j), at: [x, y + 0.13], colour: "muted" })),
          pooled.map(([x, y]) => ({
            shape: tf.box(x - 0.05, x + 0.05, y - 0.05, y + 0.05),
            colour: "value",
            strength: 1,
            edge: true,
            term: "pool",
            part: "pooled",
          })),
          {
            handle: seeds[0].map((a) => 1.12 * a),
            knob: "angle",
            text: `${state.angle}°`,
            by: [0.15, 0.15],
            to: (x, y) => ({
              angle: app.snap("angle", ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360),
            }),
          },
          {
            handle: [state.x, state.y],
            knob: "x",
            knobY: "y",
            label: `point ${moved}`,
            to: (x, y) => ({ x: app.snap("x", x), y: app.snap("y", y) }),
          },
        ],
      });
      rows.show({
        title: "weights of the seeds",
        label: `Weights of ${seeds.length} seeds on ${n} points`,
        rows: state.k,
        columns: n,
        values: weights,
        most: 1,
        rowHeads: seeds.map((_, c) => String(c + 1)),
        columnHeads: tf.range(n, String),
      });
      map.show({
        title: "what points read of each other through the seeds",
        label: `A matrix of ${n} by ${n} weights, of rank ${state.k} at most`,
        rows: n,
        values: numbers.map,
        most: 0.6,
        rowHeads: tf.range(n, String),
        columnHeads: tf.range(n, String),
      });
      const told = question.tell(pooled.map(place).join(", "));
      app.read({
        "pooled vectors": told,
        "weights with seeds": `2 · ${n} · ${state.k} = ${2 * n * state.k}`,
        "weights without seeds": `${n} · ${n} = ${n * n}`,
      });
      app.say(
        seeds
          .map((_, c) => {
            const best = tf.best(weights[c]);
            return `Seed ${c + 1} gives point ${best} the most weight: ${tf.percent(weights[c][best], 0)}.`;
          })
          .join(" "),
      );
    };
  },
});
