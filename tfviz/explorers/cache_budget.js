// What the past costs: bytes = 2 · batch · L · N · h_kv · d_head · b, and what is kept of one token.

const LENGTHS = tf.declared.knobs.L.of;
const { models } = tf.data;
const divisors = (n) => tf.range(n, (k) => k + 1).filter((k) => n % k === 0);
const cacheBytes = ({ L, N, h_kv, d_head, b, batch }) => 2 * batch * L * N * h_kv * d_head * b;
const publicModel = ({ model, N, h, d_head }) =>
  models.find((m) => m.name === model && m.N === N && m.h === h && m.d_head === d_head);

function numbers(k) {
  const model = publicModel(k);
  const tokens = k.L * k.h * (model?.d ?? k.h * k.d_head) * k.N;
  const [own, mha, mqa] = [k.h_kv, k.h, 1].map((h_kv) => cacheBytes({ ...k, h_kv }));
  const weights = model ? model.weights * k.b : 0;
  return { own, mha, mqa, weights, slide: tokens * k.b * k.batch };
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
    const curve = app.plane({ height: (w) => tf.clamp(w * 0.45, 200, 270) });
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
        truth: (n) => (n.own > n.weights ? 0 : 1),
        then: { batch: 32 },
        because: "The weights are kept once for all texts, a cache for each of them.",
      },
    );

    return (k, n) => {
      const model = publicModel(k);
      const title = model?.name ?? "sizes of your own";
      const list = divisors(k.h);
      shares.limit(0, list.length - 1);
      shares.update();
      const at = (L, h_kv) => cacheBytes({ ...k, L, h_kv });
      const line = (h_kv) => LENGTHS.map((L) => [L, at(L, h_kv)]);
      const drag = (L, bytes) => {
        const near = list.map((h_kv) => -Math.abs(Math.log(at(k.L, h_kv) / bytes)));
        return { L: app.snap("L", L), h_kv: list[tf.best(near)] };
      };
      const from = LENGTHS[0];
      const reach = [...line(k.h), ...line(1)].map(([, y]) => y);
      curve.show({
        title: "the cache while it fills: drag the dot, up and down shares heads",
        label: `${title}: ${tf.bytes(n.own)} after ${tf.count(k.L)} tokens`,
        x: { log: true, label: "tokens kept", format: tf.count, from, to: LENGTHS.at(-1) },
        y: {
          log: true,
          from: Math.min(...reach),
          to: Math.max(...reach, n.weights),
          format: tf.bytes,
          ticks: tf.range(12, (e) => 1024 * 8 ** (e + 1)),
        },
        marks: [
          { line: line(k.h), colour: "muted", dash: "5 3", name: "MHA", term: "heads" },
          { line: line(1), colour: "muted", dash: "2 3", name: "MQA", term: "heads" },
          n.weights > 0 &&
            !asked.open && [
              { rule: { y: n.weights }, colour: "ink", wide: 1.5 },
              { text: "weights", at: [from, n.weights], dx: 28, dy: -9 },
            ],
          {
            line: line(k.h_kv),
            colour: "attention",
            wide: 2.5,
            bold: true,
            name: "as set",
            term: "L",
          },
          {
            handle: [k.L, n.own],
            knob: "L",
            knobY: "h_kv",
            label: "tokens and heads",
            to: drag,
            text: `${tf.count(k.L)} tokens, ${tf.bytes(n.own)}`,
          },
        ],
        hover: (x, y, m) => `${m.name}, ${tf.count(x)} tokens: ${tf.bytes(y)}`,
      });
      const group = k.h / k.h_kv;
      token.show({
        title: `of one token, a pair of keys and values for each layer and ${group > 1 ? "group of heads; hatched: spared" : "head"}`,
        label: `One token: keys and values of ${k.N} layers with ${k.h_kv} key/value heads for ${k.h} query heads`,
        rows: k.h,
        columns: k.N,
        bits: (head) => head % group === 0, // the first of each group
        marks: [{ cells: tf.range(k.h_kv, (g) => [g * group, 0]), term: "heads" }],
      });
      const most = Math.max(n.mha, n.weights, k.slide ? n.slide : 0);
      const row = (head, bytes, colour = "muted") => ({
        head,
        mine: colour === "attention",
        cells: [{ bar: bytes, of: most, text: tf.bytes(bytes), colour }],
      });
      const some = k.h_kv === 1 ? "one for all" : `one for ${group} heads (GQA)`;
      const how = group === 1 ? "each head its own" : some;
      table.show([
        row(`each of ${k.h} heads (MHA)`, n.mha),
        row(`as set: ${how}`, n.own, "attention"),
        row("one for all heads (MQA)", n.mqa),
        ...(model && !asked.open ? [row(`the weights of ${title}`, n.weights, "ink")] : []),
        ...(k.slide ? [row("what the slide computes", n.slide)] : []),
      ]);
      const each = n.own / k.L / k.batch;
      app.read({
        cache: tf.bytes(n.own),
        "of it for one token": tf.bytes(each),
        "as large as the weights at": asked.tell(
          model ? `${tf.count(n.weights / each)} tokens in all` : "–",
        ),
      });
      const times = `, ${tf.sig(n.own / n.weights)} times the weights`;
      const state = `${title}, ${tf.count(k.L)} tokens, batch ${k.batch}, ${k.b} bytes`;
      const told = `keys and values take ${tf.bytes(n.own)}${model && !asked.open ? times : ""}`;
      app.say(`${state}: ${told}.`);
    };
  },
});
