// The three attentions of an encoder–decoder: who asks whom, with which shapes, and at which step.

const PARTS = ["encoder", "decoder", "cross"];
const TITLES = { encoder: "encoder self-attention", decoder: "causal self-attention", cross: "cross-attention" };

export default tf.explorer({
  setup(app) {
    const { el } = tf;
    const source = app.get("source"), written = app.get("written"), said = app.get("said");
    const [Lx, Ly, h, d] = [source.length, written.length, app.get("encoder").length, app.get("d")];
    const step = () => tf.clamp(app.get("step"), 0, Ly - 1), head = () => tf.clamp(app.get("head"), -1, h - 1);
    const rows = { encoder: source, decoder: written, cross: written }, columns = { encoder: source, decoder: written, cross: source };
    const shown = (part) => {
      const A = app.get(part), n = head();
      return n >= 0 ? A[n] : A[0].map((row, i) => row.map((_, j) => A.reduce((sum, one) => sum + one[i][j], 0) / h));
    };

    // the two sequences, above the maps
    const strip = (label, tokens, role) => {
      const cells = tokens.map((x) => el("span", { className: `tm-token tm-${role}` }, x));
      return { row: el("div", { className: "tm-strip" }, el("span", { className: "tm-label" }, label), el("span", { className: "tm-tokens" }, ...cells)), cells };
    };
    const reads = strip("source", source, "key"), writes = strip("written", said, "value");
    app.picture.append(el("div", { className: "tm-strips" }, reads.row, writes.row));

    const maps = el("div", { className: "tm-maps" });
    const views = Object.fromEntries(PARTS.map((part) => {
      const box = el("div", { className: "tm-map" }), title = el("button", { type: "button", className: "tm-title", onclick: () => app.set("part", part) }, TITLES[part]);
      const size = el("p", { className: "tm-size" });
      box.append(title);
      const view = app.matrix(box, { label: TITLES[part], pick: (i) => app.set(part === "encoder" ? { part } : { part, step: i }) });
      box.append(size);
      maps.append(box);
      return [part, { ...view, box, title, size }];
    }));
    // the plan: two columns of parts from bottom to top, with the shapes between them
    const plan = el("div", { className: "tm-plan", role: "group", "aria-label": "Plan of the model: choose an attention" });
    const press = (name, text) => el("button", { type: "button", className: "tm-part", onclick: () => app.set("part", name), "data-part": name }, text);
    const shape = (text) => el("span", { className: "tm-shape" }, text);
    const column = (name, ...parts) => el("div", { className: `tm-column tm-${name}` }, ...parts);
    plan.append(
      column("left", shape(`H: ${Lx} × ${d}`), el("span", { className: "tm-box" }, "feed-forward"), press("encoder", "self-attention"), shape(`source: ${Lx} × ${d}`)),
      column("right", shape(`says: ${Ly} tokens`), el("span", { className: "tm-box" }, "feed-forward"), press("cross", "cross-attention"), press("decoder", "causal self-attention"), shape(`written: ${Ly} × ${d}`)),
    );
    const buttons = [...plan.querySelectorAll("button")];
    maps.prepend(plan);
    const work = el("ul", { className: "tm-work" });
    app.picture.append(maps, work);

    app.knob("step", { max: Ly - 1, read: step });
    app.knob("head", { max: h - 1, read: head, format: (n) => (n < 0 ? "mean" : String(n)) });
    app.knob("part");
    const readout = { pairs: app.readout("pairs of this attention"), all: app.readout("of all three"), best: app.readout("read most at this step") };
    const piece = (role, text) => el("span", { className: `tm-${role}` }, text);
    let flat = {}, flatKey;

    return {
      draw() {
        const i = step(), n = head(), part = app.get("part");
        if (flatKey !== n) { // painted anew only when another head is chosen
          flat = Object.fromEntries(PARTS.map((name) => [name, shown(name).flatMap((row, r) => row.map((a, c) => (name === "decoder" && c > r ? NaN : a)))]));
          flatKey = n;
        }
        const cross = flat.cross.slice(i * Lx, (i + 1) * Lx), best = cross.indexOf(Math.max(...cross));
        for (const name of PARTS) {
          const view = views[name], asks = rows[name].length, asked = columns[name].length;
          view.draw({ rows: asks, columns: asked, values: flat[name], row: name === "encoder" ? -1 : i });
          view.size.textContent = `A: ${asks} × ${asked}`;
          view.box.classList.toggle("tm-on", name === part);
          view.title.setAttribute("aria-pressed", String(name === part));
          view.label(`${TITLES[name]}, ${asks} queries by ${asked} keys; arrow keys choose a position`);
        }
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.part === part));
        reads.cells.forEach((cell, j) => {
          cell.style.background = tf.mix(app.colours.page, app.colours.attention, 0.6 * cross[j]);
          cell.classList.toggle("tm-best", j === best);
        });
        writes.cells.forEach((cell, j) => { // what is not yet said is not yet known
          cell.textContent = j <= i ? said[j] : "·";
          cell.classList.toggle("tm-now", j === i);
        });
        const asks = part === "encoder" ? "the source" : "what is written", who = part === "decoder" ? "what is written" : "the source";
        const [a, b] = [rows[part].length, columns[part].length];
        const pairs = { encoder: Lx * Lx, decoder: (Ly * (Ly + 1)) / 2, cross: Ly * Lx };
        const lines = [
          [piece("query", "Q"), ` from ${asks}: ${a} × ${d};  `, piece("key", "K"), ", ", piece("value", "V"), ` from ${who}: ${b} × ${d}`],
          [`${h} heads of ${d / h}; each has weights `, piece("attention", `A: ${a} × ${b}`), part === "decoder" ? ", of which the future is hatched" : part === "cross" ? ", and nothing is masked: the whole source is there" : ", in both directions"],
          [`Step ${i}: the decoder reads `, piece("query", written[i]), ", looks most at ", piece("key", `${source[best]} (source ${best})`), ` with ${cross[best].toFixed(2)}, says `, piece("value", said[i])],
        ];
        work.replaceChildren(...lines.map((line) => el("li", {}, ...line)));
        readout.pairs(String(pairs[part]));
        readout.all(String(pairs.encoder + pairs.decoder + pairs.cross));
        readout.best(`source ${best}: ${source[best]}`);
        app.root.dataset.maps = JSON.stringify({ weights: Object.fromEntries(PARTS.map((name) => [name, shown(name)])), pairs, best });
        app.say(`Step ${i}, ${n < 0 ? "mean over heads" : `head ${n}`}: reads “${written[i]}”, looks at source ${best} “${source[best]}” with ${cross[best].toFixed(2)}, says “${said[i]}”.`);
      },
    };
  },
});
