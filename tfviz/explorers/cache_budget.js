// What the past costs: bytes = 2 · batch · L · N · h_kv · d_head · b, and what is kept of one token.

const divisors = (n) => [...Array(n).keys()].map((k) => k + 1).filter((k) => n % k === 0);
const cacheBytes = ({ L, N, h_kv, d_head, b, batch }) => 2 * batch * L * N * h_kv * d_head * b;
const { models } = tf.data;
const publicModel = ({ model, N, h, d_head }) => models.find((m) => m.name === model && m.N === N && m.h === h && m.d_head === d_head);
const SIZES = ["N", "h", "h_kv", "d_head", "b", "batch", "L"];

export default tf.explorer({
  fit(fine) {
    if (fine.h && fine.h_kv && fine.h % fine.h_kv) delete fine.h_kv;
    if (fine.h && !fine.h_kv) fine.h_kv = fine.h;
    return fine;
  },
  setup(app) {
    const { el } = tf;
    const sizes = () => Object.fromEntries(["model", ...SIZES].map((key) => [key, app.get(key)]));

    // --- pictures: one token, then the bars
    const title = el("p", { className: "cb-title" });
    app.picture.append(title);
    const token = app.canvas(app.picture, { label: "", height: (w) => Math.min(190, w * 0.42) });
    const bars = el("div", { className: "cb-bars" });
    app.picture.append(bars);
    const bar = (className) => {
      const name = el("span", { className: "cb-name" }), fill = el("span", { className: `cb-fill ${className}` }), size = el("span", { className: "cb-size" });
      const row = el("div", { className: "cb-bar" }, name, el("span", { className: "cb-track" }, fill, size));
      bars.append(row);
      return { row, name, fill, size };
    };
    const rows = { mha: bar("cb-other"), own: bar("cb-own"), mqa: bar("cb-other"), weights: bar("cb-weights"), slide: bar("cb-slide") };

    // --- controls
    app.knob("model", {
      as: "select",
      options: [...models.map((m) => [m.name, m.name]), ["", "sizes of your own"]],
      read: () => publicModel(sizes())?.name ?? "",
      write: (name) => {
        const m = models.find((x) => x.name === name);
        if (m) app.set({ model: name, N: m.N, h: m.h, h_kv: m.h_kv, d_head: m.d_head });
        else app.redraw("N");
      },
    });
    app.knob("L", { format: tf.count });
    app.knob("batch");
    const shares = app.knob("h_kv", {
      read: () => divisors(app.get("h")).indexOf(app.get("h_kv")),
      write: (k) => app.set("h_kv", divisors(app.get("h"))[k]),
      format: (k) => `${divisors(app.get("h"))[k] ?? 1} of ${app.get("h")}`,
    });
    app.knob("b", { as: "choice" });
    app.knob("N");
    app.knob("h", {
      write: (h) => { // the same number of heads in a group, if it still divides
        const group = app.get("h") / app.get("h_kv");
        app.set({ h, h_kv: h % group ? h : h / group });
      },
    });
    app.knob("d_head");
    app.knob("slide");

    const shown = {
      bytes: app.readout("cache"),
      token: app.readout("of it for one token"),
      even: app.readout("as large as the weights at"),
    };

    function drawToken({ N, h, h_kv }) {
      const { ctx, width, height } = token.begin(), c = app.colours, left = 2, top = 2;
      const w = (width - 2 * left) / N, hh = (height - 2 * top) / h, group = h / h_kv;
      const gap = w > 5 ? 1 : 0.4, low = hh > 4 ? 1 : 0;
      for (let n = 0; n < N; n++) for (let k = 0; k < h; k++) {
        const x = left + n * w, y = top + k * hh, wide = w - gap, high = Math.max(hh - low, 0.8);
        if (k % group === 0) {
          ctx.fillStyle = c.key;
          ctx.fillRect(x, y, wide / 2, high);
          ctx.fillStyle = c.value;
          ctx.fillRect(x + wide / 2, y, wide / 2, high);
        } else {
          ctx.fillStyle = tf.mix(c.page, c.grid, 0.45);
          ctx.fillRect(x, y, wide, high);
        }
      }
      title.replaceChildren("kept of one token: ", el("b", { className: "cb-k" }, "keys"), " and ", el("b", { className: "cb-v" }, "values"),
        h_kv < h ? " of each layer (column) and group of heads (rows); what grouping saves is grey" : " of each layer (column) and each head (row)");
      token.label(`One token: keys and values of ${N} layers with ${h_kv} key/value heads for ${h} query heads`);
    }

    return {
      draw() {
        const now = sizes(), model = publicModel(now), name = model?.name ?? "sizes of your own";
        const own = cacheBytes(now), mha = cacheBytes({ ...now, h_kv: now.h }), mqa = cacheBytes({ ...now, h_kv: 1 });
        const weights = model ? model.weights * now.b : 0;
        const slide = now.L * now.h * (model?.d ?? now.h * now.d_head) * now.N * now.b * now.batch;
        const asked = app.get("slide"), largest = Math.max(mha, weights, asked ? slide : 0);
        shares.limit(0, divisors(now.h).length - 1);
        shares.update();
        drawToken(now);
        const fill = (row, text, size, there = true) => {
          row.row.hidden = !there;
          row.name.textContent = text;
          row.size.textContent = tf.bytes(size);
          row.fill.style.width = `${(100 * size) / largest}%`;
          row.row.dataset.bytes = size;
          // the number stands inside the bar where there is no room behind it
          row.size.classList.toggle("cb-inside", size / largest > 0.75);
          row.size.style.left = `${(100 * size) / largest}%`;
        };
        fill(rows.mha, `each of ${now.h} heads keeps its own (MHA)`, mha);
        fill(rows.own, now.h_kv === now.h ? "as set: each head its own" : now.h_kv === 1 ? "as set: one for all heads" : `as set: one for ${now.h / now.h_kv} heads (GQA)`, own);
        fill(rows.mqa, "one for all heads (MQA)", mqa);
        fill(rows.weights, `the weights of ${name}`, weights, Boolean(model));
        fill(rows.slide, "what the slide computes", slide, asked);
        shown.bytes(tf.bytes(own));
        shown.token(tf.bytes(own / now.L / now.batch));
        const tokens = weights / (own / now.L / now.batch);
        shown.even(model ? `${tf.count(tokens)} tokens in all` : "–");
        app.root.dataset.bytes = own;
        const against = model ? `, ${tf.sig(own / weights)} times the weights` : "";
        app.say(`${name}, ${tf.count(now.L)} tokens, batch ${now.batch}, ${now.b} bytes: keys and values take ${tf.bytes(own)}${against}.`);
      },
    };
  },
});
