// A place i: the hands (sin iω_m, cos iω_m), above them the waves that they trace, below how alike all places are.
const { places, hands, base } = tf.data;
const speeds = tf.range(hands, (m) => base ** (-m / hands));

export default tf.explorer({
  numbers({ place }) {
    return {
      hands: speeds.map((speed) => [Math.sin(place * speed), Math.cos(place * speed)]),
      alike: tf.range(places, (j) => tf.mean(speeds.map((speed) => Math.cos((j - place) * speed)))),
    };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 336 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ place }, { hands: now, alike }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const radius = small ? 13 : 20;
      const [first, row] = small ? [26, 31] : [30, 44]; // the middle of the first wave, and the next
      const [foot, tall] = small ? [298, 66] : [398, 86]; // of the bars
      const margin = small ? 42 : 110; // for the names of the rows
      const step = (W - margin - (small ? 4 : 24)) / (places - 1);
      const at = (j) => margin + j * step;
      const middle = (m) => H - first - m * row;
      const around = at(place);
      const bar = Math.max(2, 0.62 * step);
      const bars = (list, colour) =>
        list.map((j) => ({
          shape: tf.box(at(j) - bar / 2, at(j) + bar / 2, H - foot, H - foot + alike[j] * tall),
          colour,
          strength: 1,
        }));
      const others = tf.range(places).filter((j) => j !== place);
      const named = (text, y, colour) => ({ text, at: [-12, y], align: "start", colour });
      const ends = { align: around > W - 90 ? "end" : "start", dx: around > W - 90 ? -16 : 16 };

      plane.show({
        label: `Six hands at place ${place}, the waves that they trace, and how alike ${places} places are to it`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          speeds.map((speed, m) => ({
            line: tf.range(Math.ceil(W - margin) + 1, (n) => {
              const i = Math.min(n / step, places - 1);
              return [at(i), middle(m) + radius * Math.sin(i * speed)];
            }),
            colour: tf.faint("key", 60),
            wide: small ? 1.2 : 1.5,
          })),
          {
            line: [
              [around, middle(0)],
              [around, H - foot + tall],
            ],
            colour: "query",
            wide: 1,
            dash: "2 4",
          },
          now.map(([sine, cosine], m) => {
            const tip = [around + radius * cosine, middle(m) + radius * sine];
            return [
              { shape: tf.arc(around, middle(m), radius), colour: "page", strength: 1 },
              { line: tf.arc(around, middle(m), radius), colour: "key", wide: 1.2 },
              { line: [[around, middle(m)], tip], colour: "query", wide: small ? 2 : 3 },
            ];
          }),
          bars(others, tf.faint("attention", 42)),
          bars([place], "attention"),
          named(small ? "fast" : "fast hand", middle(0), "key"),
          named(small ? "slow" : "slow hand", middle(hands - 1), "key"),
          named(small ? "alike" : "how alike", H - foot + tall / 2, "attention"),
          { text: `place ${place}`, at: [around, H - foot + tall], colour: "query", ...ends },
          {
            handle: [around, H - foot + tall],
            knob: "place",
            colour: "query",
            text: `place ${place}`,
            to: (x) => ({ place: app.snap("place", (x - margin) / step) }),
          },
        ],
      });
      const beside = [place - 1, place + 1].filter((j) => j >= 0 && j < places);
      const who = beside.length > 1 ? "its neighbours come" : "its only neighbour comes";
      app.say(
        `No other place sets its six hands like place ${place}: ${who} closest, ${tf.percent(alike[beside[0]])} alike, and far places much less.`,
      );
    };
  },
});
