// What the past costs: bytes = 2 · batch · L · N · h_kv · d_head · b, and what is kept of one token.

const LENGTHS = tf.declared.knobs.L.of;
const { models } = tf.data;
const divisors = (n) => tf.range(n, (k) => k + 1).filter((k) => n % k === 0);
const cacheBytes = ({ L, N, h_kv, d_head, b, batch }) => 2 * batch * L * N * h_kv * d_head * b;
const publicModel = ({ model, N, h, d_head }) =>
  models.find((m) => m.name === model && m.N === N && m.h === h && m.d_head === d_head);

function numbers(state) {
  const model = publicModel(state);
  const tokens = state.L * state.h * (model?.d ?? state.h * state.d_head) * state.N;
  const [own, mha, mqa] = [state.h_kv, state.h, 1].map((h_kv) => cacheBytes({ ...state, h_kv }));
  const weights = model ? model.weights * state.b : 0;
  return { own, mha, mqa, weights, slide: tokens * state.b * state.batch };
}

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
    const curve = app.plane({ height: (width) => tf.clamp(width * 0.45, 200, 270) });
    const token = app.matrix({ axes: ["head", "layer"], tall: 230, most: 14 });
    app.formula("bytes = 2 · {batch:B} · {L:L} · {N:N} · {heads:hₖᵥ} · dₕ · b");
    const table = app.table({ columns: ["who keeps", "bytes"] });
    app.knob("model", {
      as: "select",
      options: [...models.map((m) => [m.name, m.name]), ["", "sizes of your own"]],
      read: () => publicModel(app.all())?.name ?? "",
      write(name) {
        const m = models.find((x) => x.name === name);
        if (m) app.set({ model: name, N: m.N, h: m.h, h_kv: m.h_kv, d_head: m.d_head });
        else app.redraw("N");
      },
    });
    app.motion("L", { every: 500, format: tf.count });
    app.knob("batch");
    const shares = app.slider("h_kv", {
      label: "key/value heads",
      letter: "hₖᵥ",
      read: () => divisors(app.get("h")).indexOf(app.get("h_kv")),
      write: (n) => app.set("h_kv", divisors(app.get("h"))[n]),
      format: (n) => `${divisors(app.get("h"))[n] ?? 1} of ${app.get("h")}`,
    });
    app.knob("b", { as: "choice" });
    app.knob("N");
    app.knob("h", {
      write(h) {
        // the same number of heads in a group, if it still divides
        const group = app.get("h") / app.get("h_kv");
        app.set({ h, h_kv: h % group ? h : h / group });
      },
    });
    app.knobsOf("d_head", "slide");
    const { model: name, L } = app.first;
    const asked = app.ask(
      publicModel(app.first) && {
        name: "larger",
        question: `${name}, ${tf.count(L)} tokens, 32 texts at a time: is the cache larger than the weights?`,
        chips: ["larger", "smaller"],
        truth: (numbers) => (numbers.own > numbers.weights ? 0 : 1),
        then: { batch: 32 },
        because: "The weights are kept once for all texts, a cache for each of them.",
      },
    );

    return (state, numbers) => {
      const model = publicModel(state);
      const title = model?.name ?? "sizes of your own";
      const list = divisors(state.h);
      shares.limit(0, list.length - 1);
      shares.update();
      const at = (L, h_kv) => cacheBytes({ ...state, L, h_kv });
      const line = (h_kv) => LENGTHS.map((L) => [L, at(L, h_kv)]);
      const drag = (L, bytes) => {
        const near = list.map((h_kv) => -Math.abs(Math.log(at(state.L, h_kv) / bytes)));
        return { L: app.snap("L", L), h_kv: list[tf.best(near)] };
      };
      const from = LENGTHS[0];
      const reach = [...line(state.h), ...line(1)].map(([, y]) => y);
      curve.show({
        title: "the cache while it fills: drag the dot, up and down shares heads",
        label: `${title}: ${tf.bytes(numbers.own)} after ${tf.count(state.L)} tokens`,
        x: { log: true, label: "tokens kept", format: tf.count, from, to: LENGTHS.at(-1) },
        y: {
          log: true,
          from: Math.min(...reach),
          to: Math.max(...reach, numbers.weights),
          format: tf.bytes,
          ticks: tf.range(12, (e) => 1024 * 8 ** (e + 1)),
        },
        marks: [
          { line: line(state.h), colour: "muted", dash: "5 3", name: "MHA", term: "heads" },
          { line: line(1), colour: "muted", dash: "2 3", name: "MQA", term: "heads" },
          numbers.weights > 0 &&
            !asked.open && [
              { rule: { y: numbers.weights }, colour: "ink", wide: 1.5 },
              { text: "weights", at: [from, numbers.weights], dx: 28, dy: -9 },
            ],
          {
            line: line(state.h_kv),
            colour: "attention",
            wide: 2.5,
            bold: true,
            name: "as set",
            term: "L",
          },
          {
            handle: [state.L, numbers.own],
            knob: "L",
            knobY: "h_kv",
            label: "tokens and heads",
            to: drag,
            text: `${tf.count(state.L)} tokens, ${tf.bytes(numbers.own)}`,
          },
        ],
        hover: (x, y, mark) => `${mark.name}, ${tf.count(x)} tokens: ${tf.bytes(y)}`,
      });
      const group = state.h / state.h_kv;
      token.show({
        title: `of one token, a pair of keys and values for each layer and ${group > 1 ? "group of heads; hatched: spared" : "head"}`,
        label: `One token: keys and values of ${state.N} layers with ${state.h_kv} key/value heads for ${state.h} query heads`,
        rows: state.h,
        columns: state.N,
        bits: (head) => head % group === 0, // the first of each group
        marks: [{ cells: tf.range(state.h_kv, (g) => [g * group, 0]), term: "heads" }],
      });
      const most = Math.max(numbers.mha, numbers.weights, state.slide ? numbers.slide : 0);
      const row = (head, bytes, colour = "muted") => ({
        head,
        mine: colour === "attention",
        cells: [{ bar: bytes, of: most, text: tf.bytes(bytes), colour }],
      });
      const some = state.h_kv === 1 ? "one for all" : `one for ${group} heads (GQA)`;
      const how = group === 1 ? "each head its own" : some;
      table.show([
        row(`each of ${state.h} heads (MHA)`, numbers.mha),
        row(`as set: ${how}`, numbers.own, "attention"),
        row("one for all heads (MQA)", numbers.mqa),
        ...(model && !asked.open ? [row(`the weights of ${title}`, numbers.weights, "ink")] : []),
        ...(state.slide ? [row("what the slide computes", numbers.slide)] : []),
      ]);
      const each = numbers.own / state.L / state.batch;
      app.read({
        cache: tf.bytes(numbers.own),
        "of it for one token": tf.bytes(each),
        "as large as the weights at": asked.tell(
          model ? `${tf.count(numbers.weights / each)} tokens in all` : "–",
        ),
      });
      const times = `, ${tf.sig(numbers.own / numbers.weights)} times the weights`;
      const summary = `${title}, ${tf.count(state.L)} tokens, batch ${state.batch}, ${state.b} bytes`;
      const cacheText = `keys and values take ${tf.bytes(numbers.own)}${model && !asked.open ? times : ""}`;
      app.say(`${summary}: ${cacheText}.`);
    };
  },
});
