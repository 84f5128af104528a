// From a budget to patterns: all that the library tries, counted by the code of the Sparse Lab.
const { space, random } = tf.data;
const { max_keys: KEYS, max_hops: HOPS } = tf.declared.knobs;

// 1, 2, 3, 4, 6, 8, 12, … below L
const sizes = (L) => {
  const power = (n) => (n & (n - 1)) === 0;
  return tf.range(L).filter((n) => n > 0 && (power(n) || (n % 3 === 0 && power(n / 3))));
};
const alone = (L, causal, block) =>
  space[causal ? "causal" : "open"].flatMap(([name, choices]) => {
    let all = [{}];
    for (const [key, said] of Object.entries(choices)) {
      const values = { sizes: sizes(L), block: [block], rest: [0] }[said] ?? said;
      all = all.flatMap((params) => values.map((value) => ({ ...params, [key]: value })));
    }
    const rest = (p) => Math.floor((L - 1) / p.dilation);
    return all
      .map((p) => (name === "dilated" ? { ...p, radius: p.radius || rest(p) } : p))
      .filter((p) => name !== "dilated" || p.radius * p.dilation < L)
      .map((params) => ({ name, params }))
      .filter((spec) => fitsAt(spec, L));
  });

// All of L² bytes, four at a time.
function either(a, b) {
  const [fours, more] = [new Uint32Array(a.slice().buffer), new Uint32Array(b.buffer)];
  for (let k = 0; k < fours.length; k++) fours[k] |= more[k];
  return new Uint8Array(fours.buffer);
}

// What `tfviz.patterns.search` finds: [{stack: [spec, …], numbers: [keys, hops, blocks, random]}]
const search = tf.keep((L, causal, block) => {
  const most = Math.min(KEYS.high, L);
  const counted = (mask, spec, sure) => {
    let chance = 0;
    if (sure !== mask) for (let k = 0; k < mask.length; k++) chance += Number(mask[k] && !sure[k]);
    return { ...counts(mask, L), spec, sure, chance, blocks: 0 };
  };
  const none = new Uint8Array(L * L);
  const singles = alone(L, causal, block).map((spec) => {
    const { mask } = measure(spec, L, causal);
    return counted(mask, spec, random.includes(spec.name) ? none : mask);
  });
  const stacks = new Map();
  const take = (stack) => {
    if (stack.some((layer) => layer.most > most)) return;
    const diameter = diameterOf(stack, HOPS.high);
    if (!diameter) return;
    for (const layer of stack) layer.blocks ||= tilesOf(layer, block).blocks;
    const worst = (name) => Math.max(...stack.map((layer) => layer[name]));
    const numbers = [worst("most"), diameter, worst("blocks"), worst("chance")];
    const key = numbers.join();
    if (!stacks.has(key)) stacks.set(key, { numbers, stack: stack.map((layer) => layer.spec) });
  };
  const pairs = singles.flatMap((a, n) =>
    singles.slice(n + 1).flatMap((b) => (a.spec.name === b.spec.name ? [] : [[a, b]])),
  );
  for (const one of singles) take([one]);
  const hopeful = pairs.filter(([a, b]) => {
    if (Math.max(a.most, b.most) > most) return false;
    const mask = either(a.mask, b.mask);
    const sure = a.sure === a.mask && b.sure === b.mask ? mask : either(a.sure, b.sure);
    const both = counted(mask, { op: "or", parts: [a.spec, b.spec] }, sure);
    take([both]);
    return diameterOf([both], HOPS.high); // two in turn reach no further than both at once
  });
  for (const pair of hopeful) for (const stack of [pair, pair.toReversed()]) take(stack);
  const tried = singles.length + 3 * pairs.length;
  const list = [...stacks.values()].sort((a, b) => byNumbers(a.numbers, b.numbers));
  return { tried, found: list };
});
const byNumbers = (a, b) => {
  const k = a.findIndex((x, n) => x !== b[n]);
  return k < 0 ? 0 : a[k] - b[k];
};
const beats = (a, b) => a.numbers.every((x, k) => x <= b.numbers[k]);

// With fewer keys no pattern can: a layer multiplies what a token knows by keys + 1 at most.
const least = (L, hops) => Math.ceil(L ** (1 / hops) - 1e-9) - 1;

// What fits a budget; what beats another comes before it in the list.
const answerOf = tf.keep((L, causal, block, most, hops, prefer) => {
  const { tried, found: stacks } = search(L, causal, block);
  const kept = stacks.filter(({ numbers }) => numbers[0] <= most && numbers[1] <= hops);
  const front = [];
  for (const f of kept) if (!front.some((g) => beats(g, f))) front.push(f);
  const by = ["keys", "hops", "blocks"].indexOf(prefer);
  const first = (a, b) => a.numbers[by] - b.numbers[by] || byNumbers(a.numbers, b.numbers);
  return { tried, found: stacks, kept, front, best: [...kept].sort(first)[0] };
});
const answer = (state) =>
  answerOf(state.L, state.causal, state.block, state.max_keys, state.max_hops, state.prefer);
const CAUSAL = { name: "causal", params: {} };
const shown = ({ stack }, { causal, L }) => {
  const ahead = (spec) => causal && measure(spec, L, false).ahead;
  const cut = (spec) => (ahead(spec) ? { op: "and", parts: [spec, CAUSAL] } : spec);
  const words = stack.map((spec) => expression(cut(spec)));
  return words.join(", then ").replaceAll("patterns.", "");
};
// each place once
const points = (some) => {
  const places = some.map(({ numbers: [keys, hops] }) => [`${keys} ${hops}`, [keys, hops]]);
  return [...new Map(places).values()];
};

const keysOf = (n) => `${n} key${n === 1 ? "" : "s"}`;
const hopsOf = (n) => `${n} hop${n === 1 ? "" : "s"}`;

export default tf.explorer({
  numbers(state) {
    const { tried, found: results, kept, front, best } = answer(state);
    return {
      tried,
      least: tf.range(HOPS.high, (n) => Math.max(1, least(state.L, n + 1))),
      found: results.map((f) => f.numbers),
      kept: kept.length,
      front: front.map((f) => f.numbers),
      best: best?.numbers ?? [],
      pairs: best ? best.stack.map((spec) => measure(spec, state.L, state.causal).pairs) : [],
    };
  },
  setup(app) {
    const both = app.split("5fr 3fr");
    const cloud = app.plane({ height: (width) => tf.clamp(width * 1.1, 240, 440), into: both });
    const side = tf.el("div");
    both.append(side);
    const masks = [0, 1].map(() => app.matrix({ tall: 190, into: side }));
    const table = app.table({
      caption: "Patterns that no other beats in one number without losing in another",
      wrap: true,
      columns: ["keys", "hops", "blocks", "random", "pattern"],
      widths: ["2.4rem", "2.4rem", "3rem", "3.4rem", ""],
      pick: (n) => choose(front[n]),
    });
    let front = [];
    let picked; // the point that was selected, until a knob is moved
    const choose = (one) => {
      picked = one;
      app.redraw("picked");
    };
    app.knobsOf("max_keys", "max_hops", "L", "block", "prefer", "causal");
    // the next lab below, else the last one
    const labs = [...document.querySelectorAll('[data-explorer="sparse_lab"]')];
    const below = labs.findIndex(
      (node) => app.host.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING,
    );
    const lab = labs.at(below);
    const its = labs.indexOf(lab) > 0 ? `sparse_lab-${labs.indexOf(lab) + 1}` : "sparse_lab";
    const state = () => {
      const { L, causal, block } = app.all();
      const [left, right] = (picked ?? answer(app.all()).best).stack;
      const stack = right ? "AB" : "A";
      const query = Math.floor((2 * L) / 3);
      return { left, right: right ?? left, L, query, causal, block, stack };
    };
    const go = app.button("show it in the Sparse Lab", () => {
      const others = location.hash.slice(1).split("&");
      const rest = others.filter((part) => part && !part.startsWith(`${its}=`));
      location.hash = [`${its}=${tf.pack(state())}`, ...rest].join("&");
      lab.scrollIntoView({ block: "nearest" });
    });
    go.style.visibility = lab ? "" : "hidden"; // its line is kept
    const ASKED = 2; // hops
    const fewest = (hops) =>
      search(64, true, app.first.block).found.find(({ numbers }) => numbers[1] === hops).numbers[0];
    const question = app.ask({
      name: "keys",
      question: `64 tokens, causal: to connect them in three hops, the patterns tried here need at least ${fewest(3)} keys in a row. How many do they need for two hops?`,
      about: cloud,
      hides: ["asked"],
      ghost: {
        first: 20,
        at: (keys) => [keys, ASKED],
        to: (keys) => Math.round(tf.clamp(keys, 1, KEYS.high)),
        by: [1, 0],
        draw: (keys) => ({ points: [[keys, ASKED]], size: 5, colour: "ink" }),
        label: "the fewest keys for two hops",
      },
      format: keysOf,
      near: 0,
      truth: ({ best }) => best[0],
      then: { L: 64, causal: true, max_keys: KEYS.high, max_hops: ASKED, prefer: "keys" },
      guards: [],
      because:
        "Each of 8 keys can have read 8 tokens: 8 · 8 = 64. Two patterns in turn do it: first blocks of 8, then one token of each block.",
    });

    return (state, numbers, changed) => {
      const all = answer(state);
      if (Object.keys(state).some((name) => changed.has(name))) picked = undefined;
      // while the question is open, what needs as many hops as it asks about is not shown
      const told = (some) =>
        question.open ? some.filter(({ numbers }) => numbers[1] !== ASKED) : some;
      const by = ["keys", "hops", "blocks"].indexOf(state.prefer);
      const order = (a, b) => a.numbers[by] - b.numbers[by] || byNumbers(a.numbers, b.numbers);
      const kept = told(all.kept);
      const best = picked ?? [...kept].sort(order)[0];
      front = told(all.front);
      const never = numbers.least.flatMap((keys, h) =>
        keys > 1 ? [[h + 1, Math.min(KEYS.high, keys)]] : [],
      );
      const axis = { from: 1, to: KEYS.high };
      const budget = tf.box(1, state.max_keys, 0.5, state.max_hops);
      cloud.show({
        title: `${tf.count(numbers.tried)} tried: the keys and hops they need to connect ${state.L} tokens`,
        label: `Cloud of ${all.found.length} results by keys and hops; ${numbers.kept} fit the budget of ${keysOf(state.max_keys)} and ${hopsOf(state.max_hops)}`,
        x: { ...axis, label: "most keys in a row", log: true, ticks: [1, 2, 4, 8, 16, 32] },
        y: { label: "hops", from: 0.5, to: HOPS.high, whole: true },
        pick: (keys, hops) =>
          choose(told(all.found).find(({ numbers }) => numbers[0] === keys && numbers[1] === hops)),
        marks: [
          // by counting alone, no pattern can be here: grey
          never.map(([h, keys]) => {
            const shape = tf.box(1, keys - 0.5, h - 0.5, h + 0.5);
            return { shape, colour: "grid", strength: 1 };
          }),
          { text: "no pattern can", at: [2, 1], colour: "muted" },
          { shape: budget, colour: "key", edge: true, strength: 0.08 },
          { points: points(told(all.found)), colour: "muted", size: 3 },
          { points: points(kept), colour: "attention", size: 4 },
          best && { points: points([best]), colour: "query", size: 7 },
          {
            handle: [state.max_keys, state.max_hops],
            knob: "max_keys",
            knobY: "max_hops",
            colour: "key",
            label: "the budget",
            text: `${keysOf(state.max_keys)}, ${hopsOf(state.max_hops)}`,
          },
        ],
      });
      masks.forEach((matrix, n) => {
        const spec = best?.stack[n];
        const layers = best?.stack[1] ? `layers ${n ? "2, 4, …" : "1, 3, …"}` : "every layer";
        matrix.box.hidden = !spec && !question.open; // until then there is room for both
        matrix.show({
          title: spec ? layers : "no second kind of layer",
          label: spec ? `Mask of ${expression(spec)}` : "The best pattern has one kind of layer",
          rows: state.L,
          bits: spec ? measure(spec, state.L, state.causal).mask : () => 0,
        });
      });
      const row = (f) => ({
        head: String(f.numbers[0]),
        cells: [...f.numbers.slice(1), shown(f, state)],
        mine: f === best,
      });
      table.show(front.slice(0, 8).map(row));
      // rows of one height, however long the patterns are: no row moves when another pattern comes
      for (const { style } of table.node.tBodies[0].rows)
        style.height = cloud.phone ? "6.5rem" : "";
      const most = (state.max_keys + 1) ** state.max_hops;
      const why =
        most < state.L
          ? `No pattern can: after ${hopsOf(state.max_hops)} a token has heard of at most (${state.max_keys} + 1)^${state.max_hops} = ${most} of ${state.L} tokens.`
          : `None of the ${tf.count(numbers.tried)} tried does, although the bound allows it.`;
      go.disabled = !best;
      app.read({
        tried: tf.count(numbers.tried),
        "fit the budget": tf.count(kept.length),
        "keys, hops": best ? best.numbers.slice(0, 2).join(", ") : "–",
        blocks: best ? String(best.numbers[2]) : "–",
      });
      const count = `${tf.count(kept.length)} result${kept.length === 1 ? " fits" : "s fit"} the budget. ${picked ? "Selected" : "Best"}`;
      const open = question.open && all.kept.length > kept.length && !kept.length;
      const none = open ? "What two hops need appears once you have answered." : why;
      app.say(best ? `${count}: ${keysOf(best.numbers[0])}, ${shown(best, state)}.` : none);
    };
  },
});
