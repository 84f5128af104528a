// Six heads divide their shares between outputs A and B, by products (dynamic) or by distances (EM).
const { A, B, floor } = tf.data;
const sharpness = 0.01; // λ of EM routing, as in the library
const heads = tf.range(B.length);
const votesOf = ({ x, y }) => [[[x, y], ...A], B];
const mixed = (votes, weights) =>
  [0, 1].map(
    (k) =>
      tf.dot(
        weights,
        votes.map((v) => v[k]),
      ) / tf.sum(weights),
  );

// r = softmax of the agreement so far; ω = mean of the votes; agreement += ω · vote
function dynamic(votes, rounds) {
  const agreed = heads.map(() => [0, 0]);
  let [shares, out] = [[], []];
  for (let n = 0; n < rounds; n++) {
    shares = agreed.map((row) => tf.softmax(row)[0]);
    out = votes.map((own, c) => mixed(own, c === 0 ? shares : shares.map((r) => 1 - r)));
    for (const m of heads) votes.forEach((own, c) => (agreed[m][c] += tf.dot(out[c], own[m])));
  }
  return { shares, out, spread: [] };
}

// M-step: a Gaussian for each output, from the votes and their shares
function fitted(votes, shares) {
  return votes.map((own, c) => {
    const weights = c === 0 ? shares : shares.map((r) => 1 - r);
    const mean = mixed(own, weights);
    const squares = own.map((vote) => vote.map((u, k) => (u - mean[k]) ** 2));
    const variance = mixed(squares, weights).map((v) => v + floor);
    const height = tf.sum(variance.map((v) => Math.log(v) / 2));
    const sure = -Math.log1p(Math.exp(sharpness * height * tf.sum(weights)));
    const log = (vote) =>
      sure - height - tf.sum(vote.map((u, k) => (u - mean[k]) ** 2 / (2 * variance[k])));
    return { mean, variance, log };
  });
}

// E-step: shares by density, in logarithms
function em(votes, rounds) {
  let shares = heads.map(() => 0.5);
  let fit = fitted(votes, shares);
  for (let n = 1; n < rounds; n++) {
    const logs = (m) => votes.map((own, c) => fit[c].log(own[m]));
    shares = heads.map((m) => tf.softmax(logs(m))[0]);
    fit = fitted(votes, shares);
  }
  const spread = fit.map(({ variance }) => variance.map(Math.sqrt));
  return { shares, out: fit.map(({ mean }) => mean), spread };
}
const routed = (state, rounds) =>
  (state.way === "em" ? em : dynamic)(votesOf(state), rounds ?? state.rounds);

export default tf.explorer({
  numbers: (state) => routed(state),
  setup(app) {
    const both = app.split("1.5fr 1fr");
    const plane = app.plane({
      height: (w) => tf.clamp(w * 0.85, 260, 380),
      lead: true,
      into: both,
    });
    const matrix = app.matrix({ axes: ["head", "output"], tall: 330, into: both });
    app.formula(
      "share of head m that goes to A:  dynamic: softmax of Σ {product:ω · vote};   EM: by the {distance:distance to each ellipse}",
    );
    app.motion("rounds", { every: 700 });
    app.knob("way", { as: "select" });
    app.knobsOf("x", "y");
    const place = (p) => `(${p.map((u) => tf.fixed(u, 1)).join(", ")})`;
    const { way, x, y } = app.first;
    const begins = { way, x, y };
    const last = 4;
    const question = app.ask({
      name: "moves",
      question:
        way === "em"
          ? "Vote 0 for A lies far below the other votes. In round 1, all votes count alike, so vote 0 pulls the mean of A down. Where will A be after 4 rounds of EM routing?"
          : "Vote 0 for A lies opposite the other votes. In round 1, all votes count alike, and A is their mean. Where will A be after 4 rounds of dynamic routing?",
      about: plane,
      ghost: {
        first: routed(begins, 1).out[0],
        at: (p) => p,
        to: (x, y) => [x, y].map((u) => Math.round(20 * tf.clamp(u, -2.6, 2.6)) / 20),
        by: [0.1, 0.1],
        draw: (p) => ({ points: [p], size: 6, colour: "ink" }),
        label: `output A after ${last} rounds`,
      },
      format: place,
      near: 0.2,
      guards: ["rounds", "way", "x", "y"],
      truth: (numbers) => numbers.out[0],
      then: { rounds: last, ...begins },
      because:
        way === "em"
          ? "Vote 0 is far outside what A expects, while head 0's other vote fits B. So head 0 gives its influence to B, and the ellipse of A shrinks around the other five votes."
          : "Vote 0 points away from A, so its product with A is negative. Each round lowers its share, until A is the mean of the other five votes.",
    });

    return (state, numbers) => {
      const votes = votesOf(state);
      const [a, b] = numbers.out;
      const name = ["A", "B"];
      const colours = ["query", "key"];
      const at = (r) => tf.percent(r, 0);
      const rounds = `${state.rounds} round${state.rounds === 1 ? "" : "s"}`;
      plane.show({
        title: `round ${state.rounds}: votes (numbers of their heads) and outputs (arrows)`,
        label: `After ${rounds}, A is at ${place(a)} and B at ${place(b)}`,
        x: { from: -3, to: 3, whole: true },
        y: { from: -3, to: 3, whole: true },
        square: true,
        marks: [
          numbers.spread.map((s, c) => ({
            shape: tf.range(48, (n) => {
              const angle = (2 * Math.PI * n) / 48;
              return [
                numbers.out[c][0] + 2 * s[0] * Math.cos(angle),
                numbers.out[c][1] + 2 * s[1] * Math.sin(angle),
              ];
            }),
            colour: colours[c],
            strength: 0.15,
            edge: true,
            term: "distance",
          })),
          numbers.out.map((p, c) => ({
            arrow: [[0, 0], p],
            colour: colours[c],
            wide: 3,
            term: "product",
          })),
          votes.map((own, c) => {
            // the numbers stand around their group
            const still = c === 0 ? own.slice(1) : own;
            const middle = [0, 1].map((k) => tf.mean(still.map((v) => v[k])));
            return own.map((v, m) => {
              const angle = Math.atan2(v[1] - middle[1], v[0] - middle[0]);
              const far = c === 0 && m === 0 ? 17 : 10;
              return [
                { points: [v], size: 2, colour: colours[c] },
                {
                  text: String(m),
                  at: v,
                  dx: far * Math.cos(angle),
                  dy: -far * Math.sin(angle),
                  colour: colours[c],
                  plain: true,
                },
              ];
            });
          }),
          numbers.out.map((p, c) => ({
            text: name[c],
            at: p.map((u) => 0.45 * u),
            dx: c === 0 ? 0 : -14,
            dy: c === 0 ? 16 : 0,
            colour: colours[c],
            bold: true,
          })),
          {
            handle: [state.x, state.y],
            knob: "x",
            knobY: "y",
            colour: "query",
            label: "the vote of head 0 for A",
            to: (x, y) => ({ x: app.snap("x", x), y: app.snap("y", y) }),
          },
        ],
        hover: false,
      });
      matrix.show({
        title: "how each head splits its influence",
        label: `Head 0 gives ${at(numbers.shares[0])} of its influence to A; heads 1 to 5 give A ${numbers.shares.slice(1).map(at).join(", ")}`,
        rows: heads.length,
        columns: 2,
        values: numbers.shares.map((r) => [r, 1 - r]),
        most: 1,
        text: (m, c) => at(c === 0 ? numbers.shares[m] : 1 - numbers.shares[m]),
        rowHeads: heads.map(String),
        columnHeads: name,
        row: 0,
      });
      app.read({
        "output A": place(a),
        "share of head 0 for A": at(numbers.shares[0]),
      });
      app.say(
        `After ${rounds} of ${state.way === "em" ? "EM" : "dynamic"} routing, head 0 gives ${at(numbers.shares[0])} of its influence to A, which is at ${place(a)}.`,
      );
    };
  },
});
