// A stream as a river: as wide as the size of the signal, with a stripe for the token's own part and one
// for what each block has added, as wide as their shares of the square.
const N = tf.data.blocks;

// The parts of the row after each block: its own one and those of the blocks before.
const stream = (gain, post) => {
  const states = [[1]];
  for (let n = 1; n <= N; n++) {
    const x = states.at(-1);
    const sum = [...x, gain * (post ? tf.norm(x) : 1)]; // pre-norm: what a block reads has size 1
    states.push(post ? sum.map((part) => part / tf.norm(sum)) : sum);
  }
  return states;
};
const own = (x) => (x[0] / tf.norm(x)) ** 2;

export default tf.explorer({
  numbers({ gain }) {
    const [pre, post] = [stream(gain, false), stream(gain, true)];
    return {
      pre_size: pre.map(tf.norm),
      pre_own: pre.map(own),
      post_size: post.map(tf.norm),
      post_own: post.map(own),
    };
  },
  setup(app) {
    const high = (width) => (width < 640 ? 324 : 440);
    const plane = app.plane({ long: true, height: high });

    return ({ gain }, numbers) => {
      const small = plane.width < 640;
      const [W, H] = [plane.width - 24, high(plane.width) - 22]; // one unit is one pixel
      const [unit, start, right] = small ? [36, -12, W - 50] : [52, -12, W - 86];
      const step = (right - start) / (N + 0.4);
      const at = (n) => start + step * (n + 0.4);
      const rows = small ? { pre: 104, post: 244 } : { pre: 140, post: 352 };
      const numerals = small ? 189 : 262;

      // A river along its middle. A block adds to both banks; with post-norm, the sum is then made narrow.
      const river = (name, post) => {
        const states = stream(gain, post);
        // half the width of the parts 0 … m
        const banks = (parts) => {
          let sum = 0;
          return parts.map((part) => (sum += part * part) * (unit / 2 / tf.norm(parts)));
        };
        const stops = [[start, banks(states[0])]];
        for (let n = 1; n <= N; n++) {
          const before = states[n - 1];
          if (post) stops.push([at(n - 0.45), banks([...before, gain * tf.norm(before)])]);
          stops.push([at(post ? n - 0.1 : n), banks(states[n])]);
        }
        stops.push([right, stops.at(-1)[1]]);
        const smooth = (m) =>
          stops.slice(1).flatMap(([x, to], k) => {
            const [x0, from] = stops[k];
            const half = (list) => list[Math.min(m, list.length - 1)];
            return tf.range(13, (c) => {
              const t = c / 12;
              const share = t * t * (3 - 2 * t);
              return [x0 + (x - x0) * t, half(from) * (1 - share) + half(to) * share];
            });
          });
        const middle = H - rows[name];
        return tf.range(N + 1, (m) => {
          const bank = smooth(m);
          const shape = [
            ...bank.map(([x, half]) => [x, middle + half]),
            ...bank.map(([x, half]) => [x, middle - half]).reverse(),
          ];
          return { shape, colour: m ? tf.faint("ink", m % 2 ? 11 : 19) : "attention", strength: 1 };
        });
      };
      const share = (name) => {
        const own = numbers[`${name}_own`].at(-1);
        return own < 0.001 ? "< 0.1 %" : tf.percent(own, own < 0.095 ? 1 : 0);
      };
      const end = (unit * numbers.pre_size.at(-1)) / 2;
      const tip = [right, H - rows.pre + end];
      const title = (text, y) => ({ text, at: [-12, H - y], align: "start", bold: true });
      const left = (name) => ({
        text: share(name),
        at: [right + 10, H - rows[name]],
        align: "start",
        colour: "attention",
        bold: true,
      });

      plane.show({
        label: `Two streams through ${N} blocks, each of which adds ${gain} times the size of what it reads`,
        hover: false,
        x: { from: 0, to: W, bare: true },
        y: { from: 0, to: H, bare: true },
        marks: [
          river("pre", false).reverse(),
          river("post", true).reverse(),
          tf.range(N, (n) => ({
            text: n ? String(n + 1) : small ? "1" : "block 1",
            at: [at(n + 0.5), H - numerals],
            colour: "muted",
          })),
          title("normalised before each block", rows.pre - (small ? 60 : 64)),
          title("normalised after each block", rows.post - (small ? 34 : 48)),
          left("pre"),
          left("post"),
          {
            text: "the token’s own",
            at: [start + 10, H - rows.pre],
            align: "start",
            colour: "page",
            plain: true,
          },
          {
            text: `${small ? "adds" : "each block adds"} × ${tf.fixed(gain)}`,
            at: tip,
            dx: -14,
            dy: -14,
            align: "end",
          },
          {
            handle: tip,
            knob: "gain",
            colour: "ink",
            text: `each block adds ${tf.fixed(gain)} times the size of what it reads`,
            to: (_, y) => {
              const wide = Math.max(1, (2 * (y - (H - rows.pre))) / unit);
              return { gain: app.snap("gain", Math.sqrt((wide ** 2 - 1) / N)) };
            },
          },
        ],
      });
      const [before, after] = [share("pre"), share("post")].map((text) =>
        text.replace("<", "under"),
      );
      app.say(
        before === after
          ? `After ${N} blocks that add little, ${before} of the signal is still the token’s own, whether normalised before or after each block.`
          : `After ${N} blocks, ${before} of the signal is still the token’s own if it is normalised before each block, but ${after} if after.`,
      );
    };
  },
});
