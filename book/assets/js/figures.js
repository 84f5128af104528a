// Figures that come to life: a button puts plotly's figure in the place of the picture, and back.
//
// Expects beside itself (…/_static/js/figures.js) …/_static/vendor/plotly.min.js, which is fetched
// when the first button is pressed. Specifications name colours by role, "role:attention" or
// "role:grid/0.5" (with opacity): they are replaced by the page's CSS variables, again when the
// theme changes. The titles of a chart and what its legend does are HTML around the plot, so that
// they wrap, and that keyboard and screen readers reach them.
(function () {
  "use strict";
  const root = /** @type {HTMLScriptElement} */ (document.currentScript).src.replace(
    /js\/figures\.js.*$/,
    "",
  );
  const OPEN = "Explore this figure";
  const CLOSE = "Back to the picture";
  const HELP = "Left and right read the values, plus and minus zoom, 0 shows all again.";
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  const redraws = [];
  let bundle;

  function plotly() {
    bundle ??= new Promise((done, failed) => {
      const node = document.createElement("script");
      node.src = `${root}vendor/plotly.min.js`;
      node.onload = () => done(window.Plotly);
      node.onerror = () => {
        bundle = undefined; // the next press tries again
        failed(new Error("plotly cannot be loaded"));
      };
      document.head.append(node);
    });
    return bundle;
  }

  function make(tag, properties = {}, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  // --- colours

  function role(name, opacity) {
    const style = getComputedStyle(document.documentElement);
    const value = style.getPropertyValue(`--tfviz-${name}`).trim();
    if (!opacity) return value;
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = value;
    probe.fillRect(0, 0, 1, 1);
    return `rgba(${[...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(",")},${opacity})`;
  }

  function themed(part) {
    if (typeof part === "string")
      return part.startsWith("role:") ? role(...part.slice(5).split("/")) : part;
    if (Array.isArray(part)) return part.map(themed);
    if (part && typeof part === "object")
      return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, themed(value)]));
    return part;
  }

  // --- the live figure

  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const touch = () => matchMedia("(pointer: coarse)").matches;

  function layout(spec, height) {
    const look = { autosize: true, ...spec.layout, height };
    look.font = { family: getComputedStyle(document.body).fontFamily, ...look.font };
    look.hoverlabel = { ...look.hoverlabel, namelength: -1 };
    look.dragmode = touch() ? false : "zoom"; // a finger scrolls the page; buttons zoom
    if (calm()) look.transition = { duration: 0 };
    if (look.title) {
      delete look.title; // stands above the plot, as the name of the x axis stands below
      look.xaxis = { ...look.xaxis, title: undefined };
      look.yaxis = { ...look.yaxis, title: undefined, automargin: true };
      look.showlegend = false;
      look.margin = { l: 48, r: 14, t: 10, b: 30 };
      for (const name of ["x", "y"])
        if (look[`${name}axis`].type === "log")
          Object.assign(look[`${name}axis`], ticks(spec, name));
    }
    return themed(look);
  }

  // 1, 2, 5, … with their noughts: plotly's own ticks of a log axis are single digits
  function ticks(spec, name) {
    const values = spec.data.flatMap((trace) => trace[name]).map(Math.log10);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const subs = high - low > 4 ? [1] : high - low > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    const tickvals = [];
    for (let power = Math.floor(low) - 1; power <= high + 1; power += 1)
      for (const sub of subs) tickvals.push(Number(`${sub}e${power}`));
    return { tickmode: "array", tickvals, ticktext: tickvals.map(plain) };
  }

  function plain(value) {
    if (value < 1e5 && value >= 1e-3) return String(value);
    const [lead, power] = value.toExponential().split("e");
    return `${lead === "1" ? "" : `${lead}·`}10<sup>${Number(power)}</sup>`;
  }

  // one label beside a point; where all of an x are shown together, plotly's own lines
  function hover(spec, trace) {
    if (!spec.layout.title || spec.layout.hovermode !== "closest") return undefined;
    return `${trace.name}: %{y:.3~g} at %{x}<extra></extra>`;
  }

  function sample(trace) {
    const colour = themed(trace.line?.color ?? trace.marker?.color ?? "role:ink");
    const dashes = { dash: "6 3", dot: "2 2", dashdot: "6 3 2 3", longdashdot: "4 2 1 2 1 2" };
    const line = `<line x2="24" y1="6" y2="6" stroke-dasharray="${dashes[trace.line?.dash] ?? ""}"/>`;
    const box = make("span", { className: "tfviz-live-sample" });
    box.style.color = colour;
    box.innerHTML =
      '<svg width="24" height="12" aria-hidden="true" stroke="currentColor" stroke-width="2">' +
      `${trace.line ? line : '<circle cx="12" cy="6" r="4" fill="currentColor"/>'}</svg>`;
    return box;
  }

  class Live {
    constructor(host, still, spec, Plotly) {
      this.host = host;
      this.spec = spec;
      this.Plotly = Plotly;
      this.hidden = new Set(); // names of what is switched off
      this.at = -1; // which value of x is being read
      this.plot = make("div", { className: "tfviz-live-plot", tabIndex: 0 });
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-label", `${host.dataset.alt} ${HELP}`);
      this.plot.addEventListener("keydown", (event) => this.key(event));
      this.words = make("p", { className: "tfviz-live-words" });
      this.words.setAttribute("role", "status");
      this.height = Math.min(480, Math.max(280, still.offsetHeight - 60));
      if (!spec.layout.title) this.height = spec.layout.height;
      this.body = make("div", { className: "tfviz-live" });
      if (spec.layout.title) this.body.append(make("p", {}, spec.layout.title.text));
      this.body.append(this.plot);
      if (spec.layout.title)
        this.body.append(make("p", { className: "tfviz-live-x" }, spec.layout.xaxis.title.text));
      this.controls = this.bar();
      this.body.append(this.controls, this.words);
    }

    bar() {
      const bar = make("div", { className: "tfviz-live-bar" });
      bar.setAttribute("role", "group");
      bar.setAttribute("aria-label", "What the figure shows");
      this.samples = [];
      for (const trace of this.spec.data) {
        if (!trace.name || !this.spec.layout.title) continue;
        const button = make("button", { type: "button" }, sample(trace), trace.name);
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => {
          if (!this.hidden.delete(trace.name)) this.hidden.add(trace.name);
          button.setAttribute("aria-pressed", String(!this.hidden.has(trace.name)));
          this.draw();
        });
        this.samples.push([button, trace]);
        bar.append(button);
      }
      for (const [name, factor] of [
        ["Zoom in", 0.6],
        ["Zoom out", 1 / 0.6],
        ["Show all", 0],
      ]) {
        const button = make("button", { type: "button" }, name);
        button.addEventListener("click", () => this.zoom(factor));
        bar.append(button);
      }
      return bar;
    }

    draw() {
      for (const [button, trace] of this.samples)
        button.querySelector(".tfviz-live-sample").replaceWith(sample(trace));
      const data = this.spec.data.map((trace) => ({
        hovertemplate: hover(this.spec, trace),
        ...trace,
        visible: !this.hidden.has(trace.legendgroup ?? trace.name),
      }));
      const look = layout(this.spec, this.height);
      return this.Plotly.react(this.plot, themed(data), { ...look, uirevision: "kept" }, options);
    }

    zoom(factor) {
      if (!factor) {
        const { xaxis, yaxis } = this.spec.layout; // some axes begin with a range of their own
        const whole = (name, axis) =>
          axis?.range ? { [`${name}.range`]: [...axis.range] } : { [`${name}.autorange`]: true };
        return this.Plotly.relayout(this.plot, {
          ...whole("xaxis", xaxis),
          ...whole("yaxis", yaxis),
        });
      }
      const axis = this.plot._fullLayout.xaxis; // its range is in decades on a log axis
      const [low, high] = axis.range;
      const x = this.stops()[this.at]?.x;
      const read = x === undefined ? (low + high) / 2 : axis.type === "log" ? Math.log10(x) : x;
      const range = [low, high].map((end) => read + (end - read) * factor);
      return this.Plotly.relayout(this.plot, { "xaxis.range": range });
    }

    // every value of x that something visible has, with what stands there
    stops() {
      const found = new Map();
      this.spec.data.forEach((trace, curveNumber) => {
        if (!trace.name || this.hidden.has(trace.name)) return;
        trace.x.forEach((x, pointNumber) => {
          if (!found.has(x)) found.set(x, []);
          found
            .get(x)
            .push({ curveNumber, pointNumber, name: trace.name, y: trace.y[pointNumber] });
        });
      });
      return [...found].map(([x, points]) => ({ x, points })).sort((a, b) => a.x - b.x);
    }

    read(step) {
      const stops = this.stops();
      if (!stops.length) return;
      this.at = Math.min(stops.length - 1, Math.max(0, step(this.at, stops.length)));
      const { x, points } = stops[this.at];
      const together = this.spec.layout.hovermode === "x unified";
      const where = points.map(({ curveNumber, pointNumber }) => ({ curveNumber, pointNumber }));
      this.Plotly.Fx.hover(this.plot, together ? { xval: x, yval: points[0].y } : where, "xy");
      const values = points.map(({ name, y }) => `${name} ${y}`).join("; ");
      this.words.textContent = `At ${x}: ${values}.`;
    }

    key(event) {
      const act = {
        ArrowRight: () => this.read((at) => at + 1),
        ArrowLeft: () => this.read((at) => at - 1),
        Home: () => this.read(() => 0),
        End: () => this.read((at, count) => count - 1),
        "+": () => this.zoom(0.6),
        "=": () => this.zoom(0.6),
        "-": () => this.zoom(1 / 0.6),
        0: () => this.zoom(0),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }
  }

  function prepare(host) {
    const button = host.querySelector("button");
    const still = host.closest("figure").querySelector(".tfviz-panels");
    const spec = JSON.parse(host.querySelector("script").textContent);
    const said = make("span", { className: "tfviz-live-said" });
    said.setAttribute("role", "status");
    button.after(said);
    host.hidden = false;
    let live;
    button.addEventListener("click", async () => {
      const open = button.textContent === OPEN;
      if (open && !live) {
        said.textContent = "Loading …";
        try {
          live = new Live(host, still, spec, await plotly());
        } catch (error) {
          said.textContent = `This figure cannot come to life: ${error.message}.`;
          return;
        }
        host.prepend(live.body);
        redraws.push(() => live.draw());
      }
      still.hidden = open;
      live.body.hidden = !open;
      button.textContent = open ? CLOSE : OPEN;
      said.textContent = open ? HELP : "";
      if (open) {
        await live.draw();
        host.dataset.ready = "true";
      } else delete host.dataset.ready;
      button.scrollIntoView({ block: "nearest" });
    });
  }

  function start() {
    document.querySelectorAll(".tfviz-plotly").forEach(prepare);
    new MutationObserver(() => redraws.forEach((draw) => draw())).observe(
      document.documentElement,
      { attributes: true, attributeFilter: ["data-theme"] },
    );
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
