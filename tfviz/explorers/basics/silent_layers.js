// A plate for each layer, with the loss that it is asked for on top, and a thread from its foot to the
// time at which that loss is switched off: n/(2N) of training for layer n, the end for the last one.
const { layers: N, steps: T } = tf.data;
const stepOf = (progress) => Math.floor((progress * T) / 100);
const isOn = (n, step) => n === N || 2 * N * step < n * T;

export default tf.explorer({
  numbers: ({ progress }) => ({
    on: tf.range(N, (m) => Number(isOn(m + 1, stepOf(progress)))),
    until: tf.range(N, (m) => (m + 1 === N ? 1 : Math.ceil(((m + 1) * T) / (2 * N)) / T)),
  }),
  setup(app) {
    const high = (width) => (width < 640 ? 324 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ progress }, { on, until }) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const rows = small
        ? { names: 14, lamps: 44, head: 56, foot: 112, time: 256, ticks: 286 }
        : { names: 16, lamps: 56, head: 70, foot: 152, time: 356, ticks: 388 };
      const step = W / N;
      const at = (m) => step * (m + 0.5);
      const time = (share) => share * W;
      const [foot, line] = [H - rows.foot - 4, H - rows.time];

      const thread = (m) => {
        const [a, b] = [at(m), time(until[m])];
        return tf.range(21, (k) => {
          const t = k / 20;
          return [a + (b - a) * t * t * (3 - 2 * t), foot + (line - foot) * t];
        });
      };
      const colour = (m) => (on[m] ? "attention" : tf.faint("ink", 18));
      const order = tf.range(N).sort((a, b) => on[a] - on[b]);
      const many = tf.sum(on);
      const word = (text, x, y, align, colour = "muted") => ({
        text,
        at: [x, H - y],
        align,
        colour,
      });

      plane.show({
        label: `${many} of ${N} layers have losses of their own after ${progress} % of training`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          order.map((m) => ({
            line: thread(m),
            colour: on[m] ? tf.faint("attention", m + 1 === N ? 100 : 45) : tf.faint("ink", 12),
            wide: m + 1 === N ? 2.5 : 1,
          })),
          order.map((m) => ({
            shape: tf.box(at(m) - 0.33 * step, at(m) + 0.33 * step, H - rows.foot, H - rows.head),
            colour: colour(m),
            strength: 1,
          })),
          order.map(
            (m) =>
              on[m] && {
                points: [[at(m), H - rows.lamps]],
                colour: "attention",
                size: small ? 2 : 3.5,
              },
          ),
          word("layer 1", -12, rows.names, "start"),
          word(`layer ${N}`, W + 12, rows.names, "end"),
          {
            line: [
              [0, line],
              [W, line],
            ],
            colour: "grid",
            wide: 2,
          },
          {
            line: [
              [0, line],
              [time(progress / 100), line],
            ],
            colour: "ink",
            wide: 3,
          },
          word("training begins", -12, rows.ticks, "start"),
          word("half", W / 2, rows.ticks, "middle"),
          word("ends", W + 12, rows.ticks, "end"),
          {
            text: `${progress} %`,
            at: [time(progress / 100), line],
            dx: progress < 5 ? -12 : progress > 95 ? 12 : 0,
            dy: -18,
            align: progress < 5 ? "start" : progress > 95 ? "end" : "middle",
            bold: true,
          },
          {
            handle: [time(progress / 100), line],
            knob: "progress",
            colour: "ink",
            text: `${progress} %`,
            to: (x) => ({ progress: app.snap("progress", (100 * x) / W) }),
          },
        ],
      });
      app.say(
        many === 1
          ? `In the second half of training, only layer ${N} is asked: layer 1 hears of its mistakes through ${N - 1} layers.`
          : many === N
            ? `When training begins, each of the ${N} layers is asked to predict, so each learns from a loss of its own.`
            : `After ${progress} % of training, ${many} of ${N} layers are still asked to predict; the others have fallen silent, the lowest first.`,
      );
    };
  },
});
