// What the past costs: bytes = 2 · batch · L · N · h_kv · d_head · b, beside the weights of the model.
// Layers of a public model that have a window keep no more than its tokens.

const { models } = tf.data;
const divisors = (n) => tf.range(n, (k) => k + 1).filter((k) => n % k === 0);
const publicModel = ({ model, N, h, d_head }) =>
  models.find((m) => m.name === model && m.N === N && m.h === h && m.d_head === d_head);
const forgets = (model, L) => model && model.near > 0 && L > model.window;
// tokens that all layers keep together
const keptTokens = (model, { L, N }) =>
  forgets(model, L) ? L * N - (L - model.window) * model.near : L * N;
// the length at which they keep so many; as long as a window is not full, every layer keeps all
function lengthOf(model, { N }, kept) {
  if (!forgets(model, kept / N)) return kept / N;
  return (kept - model.window * model.near) / (N - model.near);
}

function numbers(state) {
  const model = publicModel(state);
  const tokens = state.L * state.h * (model?.d ?? state.h * state.d_head) * state.N;
  const each = 2 * state.batch * state.d_head * state.b * keptTokens(model, state);
  const [own, mha, mqa] = [state.h_kv, state.h, 1].map((h_kv) => h_kv * each);
  const weights = model ? model.weights * state.b : 0;
  return { own, mha, mqa, weights, slide: tokens * state.b * state.batch };
}
const textsOf = (n) => `${tf.count(n)} text${n === 1 ? "" : "s"}`;

export default tf.explorer({
  fit(fine, app) {
    // the key/value heads must divide the heads; those of the first state do it, if they can
    const h = fine.h ?? app.first.h;
    const { h_kv = h % app.first.h_kv ? h : app.first.h_kv } = fine;
    if (h_kv >= 1 && h % h_kv === 0) fine.h_kv = h_kv;
    else delete fine.h_kv;
    return fine;
  },
  numbers,
  setup(app) {
    const gauge = app.plane({ height: () => 170 });
    app.formula("bytes = 2 · {batch:B} · {L:L} · {N:N} · {heads:hₖᵥ} · dₕ · b");
    app.knob("model", {
      as: "select",
      options: [...models.map((m) => [m.name, m.name]), ["", "your own sizes"]],
      read: () => publicModel(app.all())?.name ?? "",
      write(name) {
        const m = models.find((x) => x.name === name);
        if (m) app.set({ model: name, N: m.N, h: m.h, h_kv: m.h_kv, d_head: m.d_head });
        else app.redraw("N");
      },
    });
    app.knob("L", { format: tf.count });
    app.knob("batch", { format: tf.count });
    const into = tf.el("div"); // what is folded
    const summary = tf.el("summary", {}, "shared heads, bytes, your own sizes");
    app.picture.append(tf.el("details", { className: "tfx-fold" }, summary, into));
    const shares = app.slider("h_kv", {
      label: "key/value heads",
      letter: "hₖᵥ",
      read: () => divisors(app.get("h")).indexOf(app.get("h_kv")),
      write: (n) => app.set("h_kv", divisors(app.get("h"))[n]),
      format: (n) => `${divisors(app.get("h"))[n] ?? 1} of ${app.get("h")}`,
      into,
    });
    app.knob("b", { as: "choice", into });
    app.knob("N", { into });
    app.knob("h", {
      write(h) {
        // the same number of heads in a group, if it still divides
        const group = app.get("h") / app.get("h_kv");
        app.set({ h, h_kv: h % group ? h : h / group });
      },
      into,
    });
    app.knob("d_head", { into });
    app.knob("slide", { into });
    const table = app.table({ columns: ["what is kept", "bytes"], into });
    const first = { ...app.values(), batch: 1 };
    const { own: each, weights } = numbers(first);
    const texts = Math.ceil(weights / each); // that pass the weights
    app.ask(
      weights > 0 &&
        texts <= app.about.batch.high && {
          name: "passes",
          question: `${first.model} has ${tf.bytes(weights)} of weights, kept once, and a cache of ${tf.bytes(each)} for each text of ${tf.count(first.L)} tokens that it writes. How many texts at a time does it take for the cache to outgrow the weights?`,
          about: gauge,
          ruler: { low: 1, high: Math.max(40, Math.ceil((1.3 * texts) / 10) * 10) },
          format: textsOf,
          hides: ["equals the weights at"],
          near: Math.max(2, Math.round(0.15 * texts)),
          truth: (numbers, state) => Math.ceil(numbers.weights / (numbers.own / state.batch)),
          then: { batch: texts },
          because: "The weights are kept once; each text needs a cache that grows with its tokens.",
        },
    );

    return (state, numbers) => {
      const model = publicModel(state);
      const title = model?.name ?? "your own sizes";
      const list = divisors(state.h);
      shares.limit(0, list.length - 1);
      shares.update();
      const { own, mha, mqa, weights } = numbers;
      const one = own / state.batch;
      const end = Math.max(1.5 * weights, 1.3 * own);
      const bar = (row, from, to, look) => ({
        shape: tf.box(from, to, row - 0.3, row + 0.3),
        strength: 1,
        ...look,
      });
      gauge.show({
        title: `${title}: ${textsOf(state.batch)} of ${tf.count(state.L)} tokens`,
        label: `Cache ${tf.bytes(own)}${weights ? `, weights ${tf.bytes(weights)}` : ""}`,
        x: { from: 0, to: end, ticks: tf.range(4, (n) => (n * end) / 3), format: tf.bytes },
        y: { names: weights ? ["cache", "weights"] : ["cache"] },
        marks: [
          weights > 0 && [
            bar(1, 0, weights, { colour: "ink" }),
            { text: tf.bytes(weights), at: [weights, 1], dx: 8, align: "start" },
            { rule: { x: weights }, colour: "ink", dash: "4 4" },
          ],
          // a piece for each text
          tf.range(state.batch, (n) =>
            bar(0, n * one, (n + 1) * one, {
              colour: "attention",
              strength: n % 2 ? 0.7 : 0.9,
              term: "batch L N heads",
            }),
          ),
          {
            text: tf.bytes(own),
            at: [own, 0],
            dx: 8,
            align: "start",
            colour: "attention",
            bold: true,
          },
        ],
        hover: false,
      });
      const most = Math.max(mha, weights, state.slide ? numbers.slide : 0);
      const row = (head, bytes, colour = "muted") => ({
        head,
        mine: colour === "attention",
        cells: [{ bar: bytes, of: most, text: tf.bytes(bytes), colour }],
      });
      const group = state.h / state.h_kv;
      const kind = group === 1 ? "MHA" : state.h_kv === 1 ? "MQA" : "GQA";
      const heads = (n) => `${n} key/value head${n === 1 ? "" : "s"}`;
      table.show([
        row(`${heads(state.h)} (MHA)`, mha),
        row(`as set: ${heads(state.h_kv)} (${kind})`, own, "attention"),
        row(`${heads(1)} (MQA)`, mqa),
        ...(model ? [row(`the weights of ${title}`, weights, "ink")] : []),
        ...(state.slide ? [row("by the slide's formula", numbers.slide)] : []),
      ]);
      const each = 2 * state.h_kv * state.d_head * state.b; // for a token of one layer
      app.read({
        cache: tf.bytes(own),
        "cache per token": tf.bytes(one / state.L),
        "equals the weights at": model
          ? `${tf.count(lengthOf(model, state, weights / each))} tokens`
          : "–",
      });
      const times = model ? `, ${tf.sig(own / weights)} times the weights` : "";
      const near = forgets(model, state.L)
        ? ` In ${model.near} of its ${state.N} layers, L counts as ${tf.count(model.window)}: they keep no more tokens.`
        : "";
      app.say(
        `${title}, ${textsOf(state.batch)} of ${tf.count(state.L)} tokens, ${state.b} byte${state.b === 1 ? "" : "s"} per number: keys and values take ${tf.bytes(own)}${times}.${near}`,
      );
    };
  },
});
