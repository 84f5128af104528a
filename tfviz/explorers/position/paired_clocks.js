// Query at j + n and key at j: hand m of each turned by its place times θ_m; the score is Σ cos of the angles between.
const { query, key, distance, places, base } = tf.data;
const radians = (degrees) => (degrees * Math.PI) / 180;
const speeds = query.map((_, m) => base ** (-m / query.length));
const turned = (hands, place) => hands.map((angle, m) => radians(angle) + place * speeds[m]);

export default tf.explorer({
  numbers({ place }) {
    const [q, k] = [turned(query, place + distance), turned(key, place)];
    const points = (angles) => angles.map((angle) => [Math.cos(angle), Math.sin(angle)]);
    return {
      query: points(q),
      key: points(k),
      between: query.map((_, m) => query[m] - key[m] + (distance * speeds[m] * 180) / Math.PI),
      score: tf.sum(q.map((angle, m) => Math.cos(angle - k[m]))),
    };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 296 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ place }, { between, score }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const column = W / query.length;
      const radius = small ? 40 : Math.min(116, 0.42 * column);
      const row = small
        ? { clocks: 58, angles: 116, adds: 136, score: 214, rail: 242 }
        : { clocks: 128, angles: 268, adds: 294, score: 362, rail: 394 };
      const [margin, rest] = small ? [52, 66] : [70, 90]; // for the names of the pair
      const step = (W - margin - rest) / (places - 1);
      const at = (j) => margin + j * step;
      const [left, right] = [at(place), at(place + distance)];
      const rail = H - row.rail;
      const named = small ? 82 : 108; // pixels for a name beside the pair

      const clock = (m, j, now) => {
        const [x, y] = [(m + 0.5) * column, H - row.clocks];
        const [q, k] = [turned(query, j + distance)[m], turned(key, j)[m]];
        const short =
          ((((q - k + Math.PI) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)) - Math.PI;
        const wedge = [[x, y], ...tf.arc(x, y, 0.62 * radius, k, k + short)];
        const hand = (angle, colour) => ({
          line: [
            [x, y],
            [x + 0.93 * radius * Math.cos(angle), y + 0.93 * radius * Math.sin(angle)],
          ],
          colour: now ? colour : tf.faint(colour, 30),
          wide: now ? (small ? 2.5 : 4) : 1.5,
        });
        return [
          now && { line: tf.arc(x, y, radius, 0, 2 * Math.PI, 90), colour: "grid", wide: 1.5 },
          { shape: wedge, colour: tf.faint("attention", now ? 50 : 16), strength: 1 },
          hand(k, "key"),
          hand(q, "query"),
        ];
      };

      plane.show({
        label: `Four clocks with a hand of the query at place ${place + distance} and one of the key at place ${place}`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          query.map((_, m) => [clock(m, 0, false), clock(m, place, true)]),
          between.map((angle, m) => [
            {
              text: `${tf.fixed(Math.abs(angle), 0)}°`,
              at: [(m + 0.5) * column, H - row.angles],
              colour: "attention",
            },
            {
              text: `${small ? "" : "adds "}${tf.fixed(Math.cos(radians(angle)))}`,
              at: [(m + 0.5) * column, H - row.adds],
              colour: "muted",
            },
          ]),
          // the rail, but for the names of the pair
          [
            [at(0), left - named],
            [right + named, at(places - 1)],
          ]
            .filter(([from, to]) => from < to)
            .map((ends) => ({ line: ends.map((x) => [x, rail]), colour: "grid", wide: 2 })),
          {
            line: [
              [left, rail],
              [right, rail],
            ],
            colour: "attention",
            wide: 4,
          },
          { points: [[left, rail]], colour: "key", size: small ? 5 : 7 },
          { points: [[right, rail]], colour: "query", size: small ? 5 : 7 },
          { text: `key ${place}`, at: [left, rail], dx: -14, align: "end", colour: "key" },
          {
            text: `query ${place + distance}`,
            at: [right, rail],
            dx: 14,
            align: "start",
            colour: "query",
          },
          {
            text: `score ${tf.fixed(score)}`,
            at: [(left + right) / 2, H - row.score],
            colour: "attention",
          },
          {
            handle: [(left + right) / 2, rail],
            knob: "place",
            colour: "attention",
            text: `key at place ${place}, query at place ${place + distance}`,
            to: (x) => ({ place: app.snap("place", (x - margin) / step - distance / 2) }),
          },
        ],
      });
      app.say(
        place
          ? `All hands have turned since places 0 and ${distance}, but the four angles have not changed: the score is ${tf.fixed(score)}, wherever the pair stands.`
          : `At places 0 and ${distance}, the four angles make a score of ${tf.fixed(score)}, and the pair keeps them wherever it moves.`,
      );
    };
  },
});
