// A plane: axes with ticks, marks on it, handles that can be dragged. SVG, in CSS pixels.

// Ticks between low and high: never more than a dozen, at least three but on short axes of integers.
function ticksOf({ log, whole, ticks, names }, low, high, room) {
  if (names) return names.map((_, k) => k);
  if (ticks) return ticks.filter((v) => v >= low && v <= high);
  const wanted = Math.max(2, Math.floor(room));
  if (log) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const every = Math.max(1, Math.ceil((b - a) / wanted));
    for (const steps of every > 1 ? [[1]] : [[1], [1, 3], [1, 2, 5]]) {
      const out = [];
      for (let e = Math.ceil((Math.floor(a) - every) / every) * every; e <= b; e += every) {
        for (const m of steps) if (m * 10 ** e >= low && m * 10 ** e <= high) out.push(m * 10 ** e);
      }
      if (out.length >= 3) return out;
    }
  }
  const rough = (high - low) / wanted;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10].map((m) => m * ten);
  let at = steps.findIndex((one) => one >= rough * 0.999);
  let [step, first, many] = [0, 0, 0];
  do {
    step = whole ? Math.max(1, Math.round(steps[at])) : steps[at];
    first = Math.ceil(low / step - 1e-9);
    many = Math.floor(high / step + 1e-9) - first + 1;
  } while (many < 3 && !(whole && step === 1) && --at >= 0); // two say little of what is between
  return range(Math.min(many, 50), (k) => Number(((first + k) * step).toPrecision(12)));
}

// From values to pixels and back; `values` are what must be seen, `ends` the pixels.
function scaleOf(axis, values, ends, perTick) {
  const { log, names } = axis;
  const fine = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  let low = names ? -0.5 : (axis.from ?? (fine.length ? Math.min(...fine) : log ? 0.1 : 0));
  let high = names ? names.length - 0.5 : (axis.to ?? (fine.length ? Math.max(...fine) : 1));
  const map = (v) => (log ? Math.log10(clamp(v, 1e-300, 1e300)) : v);
  const un = (v) => (log ? 10 ** v : v);
  if (!(map(high) > map(low))) {
    if (axis.to === undefined) high = un(map(low) + 1);
    else low = un(map(high) - 1);
  }
  const room = Math.abs(ends[1] - ends[0]);
  const pad = (map(high) - map(low)) * 0.06;
  let [a, b] = [map(low), map(high)];
  if (axis.from === undefined && !names && !axis.tight) a -= pad;
  if (axis.to === undefined && !names && !axis.tight) b += pad;
  const at = (v) => ends[0] + ((map(v) - a) / (b - a)) * (ends[1] - ends[0]);
  const back = (px) => un(a + ((px - ends[0]) / (ends[1] - ends[0])) * (b - a));
  const format =
    axis.format ??
    ((v) => (log && (Math.abs(Math.log10(v)) > 3.5 || v < 0.01) ? short(v) : fixedTick(v)));
  const ticks = ticksOf(axis, un(a), un(b), room / perTick).map((v) => [
    v,
    names ? names[v] : format(v),
  ]);
  return { at, back, ticks, ends: [un(a), un(b)], map, un };
}
const fixedTick = (v) => String(Number(v.toPrecision(6))).replace("-", "−");

// Points [x, y] of a mark: a list of numbers stands at 0, 1, 2, … (or from `start`), or at `at`.
const pointsOf = (ys, /** @type {any} */ { at, start = 0 } = {}) =>
  Array.from(ys, (y, k) => (Array.isArray(y) ? y : [at ? at[k] : start + k, y]));

// --- handles: what can be taken hold of, on a plane or on a matrix. A list of
//   {handle: [x, y], name, label, text, knob: "x", knobY: "y", to(x, y) -> {trait: value}, by: [dx, dy],
//    shape: "dot" | "across" | "down", colour, term}
// A handle is a slider for the keyboard; a finger that holds one does not scroll the page. The reader's
// answer is a ghost: a dashed ring with "?".
const PROBE = 48; // pixels to both sides, to see which way a knob moves a handle
function handlesOn(app, layer, place) {
  const known = new Map();
  let scales;
  const move = (one, x, y) => {
    if (one.put) return one.put(x, y);
    if (one.to) return app.set(one.to(x, y) ?? {});
    if (one.knob) app.set(one.knob, app.snap(one.knob, x));
    if (one.knobY) app.set(one.knobY, app.snap(one.knobY, y));
  };
  const handleOf = (name) => {
    const hit = svg("circle", { r: 22, class: "tfx-hit" });
    const dotted = svg("circle", { r: 7 });
    const sign = svg("text", { class: "tfx-sign", "text-anchor": "middle", y: 4 });
    const look = { class: "tfx-handle", tabindex: 0, role: "slider" };
    const node = svg("g", look, hit, dotted, sign);
    node.dataset.name = name;
    node.dataset.lmSuppressShortcuts = "true";
    const entry = { node, dotted, sign, one: null };
    node.addEventListener("pointerdown", (event) => {
      node.setPointerCapture(event.pointerId);
      node.toggleAttribute("data-held", true);
      const [px, py] = place(event);
      const [x, y] = entry.one.handle;
      entry.grip = [scales.x.at(x) - px, scales.y.at(y) - py];
      node.focus({ preventScroll: true });
      event.preventDefault();
      event.stopPropagation();
    });
    node.addEventListener("pointermove", (event) => {
      if (!node.hasPointerCapture(event.pointerId)) return;
      const [px, py] = place(event);
      move(entry.one, scales.x.back(px + entry.grip[0]), scales.y.back(py + entry.grip[1]));
    });
    for (const type of ["pointerup", "pointercancel"])
      node.addEventListener(type, () => node.toggleAttribute("data-held", false));
    node.addEventListener("keydown", (event) => {
      const go = {
        ArrowLeft: [-1, 0],
        ArrowRight: [1, 0],
        ArrowDown: [0, -1],
        ArrowUp: [0, 1],
        PageDown: [-5, -5],
        PageUp: [5, 5],
        Home: [-1e6, -1e6],
        End: [1e6, 1e6],
      }[event.key];
      if (!go || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      app.settle();
      const { one } = entry;
      if (one.knob || one.knobY) {
        const arrow = event.key.startsWith("Arrow");
        const key = (go[0] ? one.knob : one.knobY) ?? one.knob ?? one.knobY;
        app.step(key, arrow ? facing(one, key, go) : go[0] || go[1]);
      } else {
        if (typeof one.by === "function") {
          const to = one.by(one.handle, go); // a place, or an x alone
          return Array.isArray(to) ? one.put(...to) : one.put(to, 0);
        }
        const near = (v, scale) => clamp(v, ...[...scale.ends].sort((a, b) => a - b));
        const [dx, dy] = one.by ?? [1, 1];
        // what moves along one axis alone is moved by all arrows: right and up are more
        const [right, more] = [dy ? go[0] : go[0] || go[1], dx ? go[1] : go[1] || go[0]];
        const up = scales.down ? -1 : 1;
        const x = clamp(right, -1e3, 1e3) * dx + one.handle[0];
        const y = clamp(more, -1e3, 1e3) * dy * up + one.handle[1];
        move(one, near(x, scales.x), near(y, scales.y));
      }
    });
    return entry;
  };
  // One step of a knob for an arrow key: the way in which the handle follows the arrow on the screen; for
  // an arrow across its way, right and up are more.
  const facing = (one, key, [right, up]) => {
    const turn = (dx, dy) => {
      const [px, py] = [scales.x.at(one.handle[0]), scales.y.at(one.handle[1])];
      const at = (n) => [scales.x.back(px + n * dx), scales.y.back(py + n * dy)];
      const value = (n) =>
        one.to ? one.to(...at(n))?.[key] : at(n)[one.knobY === key && one.knob !== key ? 1 : 0];
      return Math.sign(value(PROBE) - value(-PROBE)) || 0;
    };
    const [across, along] = [turn(1, 0), turn(0, -1)];
    return right ? right * (across || along || 1) : up * (along || across || 1);
  };
  return (list, X, Y, down = false) => {
    scales = { x: X, y: Y, down };
    const names = new Set();
    list.forEach((one, k) => {
      const name = one.name ?? one.knob ?? one.knobY ?? String(k);
      names.add(name);
      if (!known.has(name)) {
        const entry = handleOf(name);
        known.set(name, entry);
        layer.append(entry.node);
      }
      const { node, dotted, sign } = known.get(name);
      known.get(name).one = one;
      node.toggleAttribute("data-ghost", Boolean(one.ghost));
      sign.textContent = one.ghost ? "?" : "";
      const [x, y] = one.handle;
      node.setAttribute("transform", `translate(${X.at(x).toFixed(2)} ${Y.at(y).toFixed(2)})`);
      const key = one.knob ?? one.knobY;
      const declared = key ? app.about[key] : {};
      node.setAttribute("aria-label", one.label ?? declared.label ?? name);
      node.setAttribute("aria-valuenow", key ? Number(app.get(key)) : Number(x.toFixed(3)));
      node.setAttribute("aria-valuetext", one.text ?? `${sig(x)}, ${sig(y)}`);
      node.dataset.shape = one.shape ?? "dot";
      dotted.setAttribute("style", `fill: ${paint(one.colour ?? "attention")}`);
      if (one.term) node.dataset.term = one.term;
    });
    for (const [name, { node }] of known) {
      if (names.has(name)) continue;
      node.remove();
      known.delete(name);
    }
  };
}

// --- a picture: an SVG as wide as its place, drawn anew when that changes
// On a phone the first picture is small enough to stay in view, unless what it says is `long`.
const SMALL = 300;
const FLATTEST = 140; // pixels to which a picture is squeezed at most
// What fit() chose for a desk is not for a phone that the window has just become.
const squeezed = (app, high) =>
  app.narrow ? high : Math.max(Math.min(high, FLATTEST), high * app.squeeze);
function pictureOn(app, options) {
  const { into = app.picture, label = "", height, lead, long, className = "" } = options;
  const frame = el("div", { className: `tfx-frame ${className}` });
  const box = el("div", { className: "tfx-figure" }, frame);
  if (lead ?? !app.lead) {
    app.lead?.toggleAttribute("data-lead", false); // one picture stays in view, not two
    app.lead = box;
  }
  box.toggleAttribute("data-lead", app.lead === box);
  const title = el("p", { className: "tfx-title", hidden: true });
  box.prepend(title);
  into.append(box);
  const root = svg("svg", { role: "group", "aria-label": label });
  // The sheet is as high as the drawing, where the frame may keep room for a higher one: what lies under or
  // over the drawing has its place on the sheet.
  const sheet = el("div", { className: "tfx-sheet" }, root);
  frame.append(sheet);
  const out = { box, frame, sheet, root, width: 300, height: 200, phone: false };
  const measure = () => {
    out.width = Math.max(40, Math.floor(frame.clientWidth || 300));
    out.phone = app.narrow;
  };
  app.measures.push(measure);
  const watch = new ResizeObserver(() => {
    const before = out.width;
    measure();
    box.toggleAttribute("data-tall", box.offsetHeight > 0.45 * innerHeight);
    if (before !== out.width) app.redraw("size");
  });
  watch.observe(frame);
  app.cleanup.push(() => watch.disconnect());
  out.sized = (tall) => {
    const small = out.width < 480;
    const wanted = (height ?? ((w) => clamp(w * 0.6, 190, 340)))(out.width, small);
    const high = tall ?? squeezed(app, wanted);
    out.height = Math.round(out.phone && app.lead === box && !long ? Math.min(high, SMALL) : high);
    root.setAttribute("viewBox", `0 0 ${out.width} ${out.height}`);
    root.setAttribute("height", out.height);
  };
  // the one that a phone keeps in view
  out.lead = () => {
    app.lead?.toggleAttribute("data-lead", false);
    app.lead = box;
    box.toggleAttribute("data-lead", true);
  };
  out.place = (event) => {
    const box = root.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  out.named = (text, words) => {
    title.hidden = !text;
    if (text) tell(title, text);
    if (words) put(root, "aria-label", words);
  };
  return out;
}

const LETTER = 6.3; // pixels, on average, of 12 px text in our faces
const GRIP = 12; // pixels around the middle of a handle
const ruler = document.createElement("canvas").getContext("2d");

// How wide a text is in the face at hand, and at least in ours, which may not be there yet. All digits are
// as wide as a 0.
function widthOf(app, text, bold = false) {
  const words = plainly(text);
  ruler.font = `${bold ? 600 : 400} 12px ${app.font}`;
  const drawn = ruler.measureText(words.replace(/\d/g, "0")).width;
  return Math.max(drawn, words.length * (LETTER + (bold ? 0.4 : 0)));
}

// The marks that are drawn point by point; each gives SVG for the scales x and y.
const drawn = {
  line(m, x, y, log) {
    let path = "";
    let on = false;
    for (const [a, b] of pointsOf(m.line, m)) {
      const fine = Number.isFinite(a) && Number.isFinite(b) && (b > 0 || !log);
      if (fine) path += `${on ? "L" : "M"}${x.at(a).toFixed(2)} ${y.at(b).toFixed(2)}`;
      on = fine;
    }
    const style = `stroke: ${paint(m.colour)}; stroke-width: ${m.wide ?? 2}`;
    const out = [mark("path", { d: path, style, fill: "none", "stroke-dasharray": m.dash })];
    if (m.dots) out.push(...drawn.points({ ...m, points: m.line, size: 3 }, x, y, log));
    return out;
  },
  // one path: a line of no length with round ends is a dot
  points(m, x, y, log) {
    const fine = pointsOf(m.points, m).filter(([, b]) => Number.isFinite(b) && (b > 0 || !log));
    const d = fine.map(([a, b]) => `M${x.at(a).toFixed(2)} ${y.at(b).toFixed(2)}h0`).join("");
    const style = `stroke: ${paint(m.colour)}; stroke-width: ${2 * (m.size ?? 4)}`;
    return [mark("path", { d, style, "stroke-linecap": "round" })];
  },
  // upright from 0, or lying with `lying`
  bars(m, x, y) {
    const one = (a, b) => {
      const [p, q] = m.lying ? [y, x] : [x, y];
      const room = Math.abs(p.at(1) - p.at(0)) * (m.wide ?? 0.7);
      const [from, to] = [q.at(q.ends[0] > 0 ? q.ends[0] : 0), q.at(b)];
      const [at, size] = [Math.min(from, to), Math.abs(to - from)];
      const start = p.at(a) - room / 2 + (m.shift ?? 0) * room;
      const style = `fill: ${paint(m.colour)}`;
      return m.lying
        ? mark("rect", { x: at, y: start, width: size, height: room, rx: 2, style })
        : mark("rect", { x: start, y: at, width: room, height: size, rx: 2, style });
    };
    return pointsOf(m.bars, m).map(([a, b]) => one(a, b));
  },
  // [[x, low, high], …]
  area(m, x, y) {
    const up = m.area.map(([a, , b]) => `${x.at(a).toFixed(2)} ${y.at(b).toFixed(2)}`);
    const down = m.area.map(([a, b]) => `${x.at(a).toFixed(2)} ${y.at(b).toFixed(2)}`).reverse();
    const style = `fill: ${paint(m.colour)}; opacity: ${m.strength ?? 0.18}`;
    return [mark("path", { d: `M${up.join("L")}L${down.join("L")}Z`, style })];
  },
  // a closed outline, filled; several with a gap between them
  shape(m, x, y) {
    const corners = m.shape.map(([a, b]) => `${x.at(a).toFixed(2)} ${y.at(b).toFixed(2)}`);
    const d = `M${corners.join("L").replaceAll("LNaN NaNL", "ZM")}Z`;
    const style = `fill: ${paint(m.colour)}; fill-opacity: ${m.strength ?? 0.18}; stroke: ${m.edge ? paint(m.colour) : "none"}`;
    return [mark("path", { d, style, "stroke-dasharray": m.dash })];
  },
  rule(m, x, y, _, [left, right, top, bottom]) {
    const style = `stroke: ${paint(m.colour ?? "muted")}; stroke-width: ${m.wide ?? 1}`;
    const dash = { style, "stroke-dasharray": m.dash };
    return "x" in m.rule
      ? [mark("line", { x1: x.at(m.rule.x), x2: x.at(m.rule.x), y1: top, y2: bottom, ...dash })]
      : [mark("line", { x1: left, x2: right, y1: y.at(m.rule.y), y2: y.at(m.rule.y), ...dash })];
  },
  arrow(m, x, y) {
    const [[a, b], [c, d]] = m.arrow.map(([u, v]) => [x.at(u), y.at(v)]);
    const style = `stroke: ${paint(m.colour)}; stroke-width: ${m.wide ?? 2}`;
    const turn = Math.atan2(d - b, c - a);
    const tip = [2.6, -2.6].map(
      (t) =>
        `${(c + 9 * Math.cos(turn + t)).toFixed(2)} ${(d + 9 * Math.sin(turn + t)).toFixed(2)}`,
    );
    const long = !m.held && Math.hypot(c - a, d - b) > 4;
    return [
      mark("line", { x1: a, y1: b, x2: c, y2: d, style, "stroke-dasharray": m.dash }),
      ...(long
        ? [
            mark("path", {
              d: `M${tip[0]}L${c.toFixed(2)} ${d.toFixed(2)}L${tip[1]}`,
              style,
              fill: "none",
            }),
          ]
        : []),
    ];
  },
  text: (m, x, y) => [
    mark(
      "text",
      {
        x: x.at(m.at[0]) + (m.dx ?? 0),
        y: y.at(m.at[1]) + (m.dy ?? 0),
        "text-anchor": m.align ?? "middle",
        "dominant-baseline": "middle",
        class: m.bold ? "tfx-bold" : "",
        style: `fill: ${paint(m.colour)}${m.plain ? "; stroke: none" : ""}`,
      },
      m.text,
    ),
  ],
};
const kindOf = (m) => Object.keys(drawn).find((kind) => kind in m);

// Lines, or opaque outlines, that follow one another and look alike become one path: less to lay out.
const GAP = [Number.NaN, Number.NaN];
function together(list) {
  const out = [];
  let before;
  for (const m of list) {
    const kind = kindOf(m);
    const { line, shape, at, start, ...rest } = m;
    const simple = (line && !m.dots) || (shape && (m.strength === 0 || m.strength === 1));
    const look = simple && JSON.stringify([kind, rest]);
    if (look && look === before) out.at(-1)[kind].push(GAP, ...pointsOf(m[kind], m));
    else out.push(look ? { ...rest, [kind]: [...pointsOf(m[kind], m)] } : m);
    before = look;
  }
  return out;
}

// What a mark must have room for, as [x, y].
function spanOf(m) {
  if (m.line) return pointsOf(m.line, m);
  if (m.points) return pointsOf(m.points, m);
  if (m.bars) {
    return [...pointsOf(m.bars, m), [0, 0]].map(([a, b]) => (m.lying ? [b, a] : [a, b]));
  }
  if (m.area)
    return m.area.flatMap(([a, b, c]) => [
      [a, b],
      [a, c],
    ]);
  if (m.arrow || m.shape) return m.arrow ?? m.shape;
  if (m.rule) return [[m.rule.x ?? Number.NaN, m.rule.y ?? Number.NaN]];
  return m.handle ? [m.handle] : [];
}

// app.plane({label, height(width, small), into, lead, long}) -> {show({title, label, x, y, square, marks, hover, pick, sketch})}
// pick(x, y) takes the point of a mark that is clicked; keys need a handle for it
function plane(app, options) {
  const view = pictureOn(app, { className: "tfx-plane", ...options });
  const layers = ["axes", "marks", "sketch", "hover", "handles"].map((name) =>
    svg("g", { class: `tfx-${name}` }),
  );
  const [axes, marks, pencil, over, top] = layers;
  view.root.append(...layers);
  const hold = handlesOn(app, top, view.place);
  let now;

  function show(spec) {
    view.sized();
    view.named(spec.title, spec.label);
    const { width, height } = view;
    const asked = view.question;
    const all = [spec.marks, asked?.marks(), asked?.handles()].flat(4).filter(Boolean);
    const points = all.flatMap(spanOf); // with what is held back: the axes stay
    const list = all.filter((m) => !app.hides(m.part));
    const [ax, ay] = [spec.x ?? {}, spec.y ?? {}];
    const names = all.filter((m) => m.name && m.line);
    const bare = asked?.spec.ghost || all.some((m) => m.handle) ? GRIP : 8;
    const up = ay.label ? 24 : 10;
    const low = height - (ax.bare ? bare : ax.label ? 38 : 22);
    const y = scaleOf(
      ay,
      points.map((p) => p[1]),
      [low, up],
      34,
    );
    // the left margin holds the ticks of y, the right one the names of lines
    const widest = Math.max(0, ...y.ticks.map(([, text]) => widthOf(app, text)));
    const left = ay.bare ? bare : Math.min(width * 0.3, 14 + widest);
    const longest = Math.max(0, ...names.map((m) => widthOf(app, m.name, m.bold)));
    const right = width - Math.max(12, longest && 10 + longest);
    const box = [left, right, up, low];
    let x = scaleOf(
      ax,
      points.map((p) => p[0]),
      [left, right],
      56,
    );
    if (spec.square) {
      // the same length for 1 on both axes, the middle in the middle
      const unit = Math.min(
        (right - left) / (x.ends[1] - x.ends[0]),
        (low - up) / (y.ends[1] - y.ends[0]),
      );
      const squared = (s, middle, sign) => {
        const centre = (s.ends[0] + s.ends[1]) / 2;
        return {
          ...s,
          at: (v) => middle + sign * (v - centre) * unit,
          back: (px) => centre + (sign * (px - middle)) / unit,
        };
      };
      x = squared(x, (left + right) / 2, 1);
      Object.assign(y, squared(y, (up + low) / 2, -1));
    }
    now = { x, y, box, list, spec: { ...spec, sketch: spec.sketch ?? asked?.sketch } };
    const grid = [];
    const write = (text, px, py, anchor, kind = "") =>
      grid.push(mark("text", { x: px, y: py, "text-anchor": anchor, class: kind }, text));
    if (!ay.bare) {
      for (const [v, text] of y.ticks) {
        const py = y.at(v);
        if (!ay.names) grid.push(mark("line", { x1: left, x2: right, y1: py, y2: py }));
        write(text, left - 6, py + 4, "end");
      }
    }
    if (ay.label) write(ay.label, 2, 12, "start", "tfx-axis");
    if (!ax.bare) {
      const wide = Math.max(...x.ticks.map(([, text]) => widthOf(app, text))) + 10;
      let end = -Infinity;
      for (const [v, text] of x.ticks) {
        const px = x.at(v);
        if (px - end < wide) continue;
        end = px;
        grid.push(mark("line", { x1: px, x2: px, y1: low, y2: low + 4 }));
        const half = widthOf(app, text) / 2;
        write(text, clamp(px, half, width - half), low + 16, "middle");
      }
      grid.push(mark("line", { x1: left, x2: right, y1: low, y2: low }));
    }
    if (ax.label) write(ax.label, (left + right) / 2, height - 6, "middle", "tfx-axis");
    redrawn(axes, grid);
    // where a handle lies on the tip of an arrow, it is the tip
    const held = list.filter((m) => m.handle).map((m) => m.handle);
    const onTip = ([a, b], [c, d]) => Math.hypot(x.at(c) - x.at(a), y.at(d) - y.at(b)) < 2;
    const shown = list.flatMap((m) => {
      if (m.handle) return [];
      return m.arrow && held.some((one) => onTip(one, m.arrow[1])) ? { ...m, held: true } : m;
    });
    const nodes = together(shown).map((m) => {
      const look = { "data-term": m.term, class: `tfx-mark-${kindOf(m)}` };
      return mark("g", look, ...drawn[kindOf(m)](m, x, y, ay.log, box));
    });
    nodes.push(...endNames(names.filter((m) => list.includes(m))));
    redrawn(marks, nodes);
    hold(
      list.filter((m) => m.handle),
      x,
      y,
    );
    redrawn(over, []);
    drawSketch();
  }

  // names at the ends of lines, moved apart
  function endNames(lines) {
    const { x, y, box, spec } = now;
    const ends = lines
      .map((m) => {
        const fine = pointsOf(m.line, m).filter(
          ([, b]) => Number.isFinite(b) && (b > 0 || !spec.y?.log),
        );
        return fine.length ? { m, x: x.at(fine.at(-1)[0]), y: y.at(fine.at(-1)[1]) } : null;
      })
      .filter(Boolean)
      .sort((a, b) => Math.round(a.y) - Math.round(b.y)); // of one height: as they are given
    for (let k = 1; k < ends.length; k++) ends[k].y = Math.max(ends[k].y, ends[k - 1].y + 14);
    for (let k = ends.length - 1, floor = box[3]; k >= 0; k--) {
      ends[k].y = Math.min(ends[k].y, floor);
      floor = ends[k].y - 14;
    }
    return ends.map(({ m, x: px, y: py }) =>
      mark(
        "text",
        {
          x: Math.min(px + 10, box[1] + 8),
          y: py + 4,
          class: m.bold ? "tfx-name tfx-bold" : "tfx-name",
          style: `fill: ${paint(m.colour)}`,
          "data-term": m.term,
        },
        m.name,
      ),
    );
  }

  // --- hover: what stands nearest, said in the picture; leaving restores
  const nearest = (event) => {
    const [px, py] = view.place(event);
    const { x, y, list, spec } = now;
    let best = null;
    for (const m of list) {
      if (!m.line && !m.points) continue;
      for (const [a, b] of pointsOf(m.line ?? m.points, m)) {
        if (!Number.isFinite(b) || (spec.y?.log && !(b > 0))) continue;
        const far = Math.hypot(x.at(a) - px, y.at(b) - py);
        if (far < 40 && (!best || far < best.far)) best = { far, a, b, m };
      }
    }
    return best;
  };
  const hovered = (event) => {
    if (!now || now.spec.hover === false || view.root.querySelector("[data-held]")) return;
    const { x, y, spec, box } = now;
    const best = nearest(event);
    if (!best) return redrawn(over, []);
    const { a, b, m } = best;
    const words =
      spec.hover?.(a, b, m) ?? `${m.name ? `${m.name}: ` : ""}${fixedTick(a)}, ${short(b)}`;
    const [cx, cy] = [x.at(a), y.at(b)];
    const half = widthOf(app, words, true) / 2 + 4;
    redrawn(over, [
      mark("circle", { cx, cy, r: 6, style: `stroke: ${paint(m.colour)}` }),
      mark(
        "text",
        {
          x: clamp(cx, half, view.width - half),
          y: cy < box[2] + 22 ? cy + 22 : cy - 12,
          "text-anchor": "middle",
        },
        words,
      ),
    ]);
  };
  view.root.addEventListener("pointermove", hovered);
  view.root.addEventListener("pointerdown", hovered);
  view.root.addEventListener("pointerleave", () => redrawn(over, []));
  view.root.addEventListener("click", (event) => {
    if (now && view.question?.picks()) {
      const [px, py] = view.place(event);
      if (!event.target.closest(".tfx-handle")) view.question.to(now.x.back(px), now.y.back(py));
      return;
    }
    const best = now?.spec.pick && nearest(event);
    if (best) now.spec.pick(best.a, best.b);
  });

  // --- a curve that the reader draws: sketch {at: [x, …], ys: [y or undefined, …], changed()}
  const board = svg("rect", { class: "tfx-board", role: "slider", tabindex: 0 });
  let before = null;
  let cursor = 0;
  const put = (event) => {
    const { at, ys, changed } = now.spec.sketch;
    const [px, py] = view.place(event);
    const value = now.y.back(clamp(py, now.box[2], now.box[3]));
    const near = at.reduce(
      (best, v, k) => (Math.abs(now.x.at(v) - px) < Math.abs(now.x.at(at[best]) - px) ? k : best),
      0,
    );
    const [k0, v0] = before ?? [near, value];
    const many = Math.abs(near - k0);
    for (let n = 0; n <= many; n++) {
      const share = many ? n / many : 1;
      const mapped = now.y.map(v0) + (now.y.map(value) - now.y.map(v0)) * share;
      ys[k0 + Math.sign(near - k0) * n] = now.y.un(mapped);
    }
    before = [near, value];
    cursor = near;
    drawSketch();
    changed();
  };
  board.addEventListener("pointerdown", (event) => {
    board.setPointerCapture(event.pointerId);
    before = null;
    put(event);
    event.preventDefault();
  });
  board.addEventListener("pointermove", (event) => {
    if (board.hasPointerCapture(event.pointerId)) put(event);
  });
  board.addEventListener("keydown", (event) => {
    const { at, ys, changed } = now.spec.sketch;
    const go = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
      event.key
    ];
    if (!go) return;
    event.preventDefault();
    event.stopPropagation();
    const [low, high] = now.y.ends.map(now.y.map);
    const last = ys[cursor] ?? now.y.un((low + high) / 2);
    cursor = clamp(cursor + go[0], 0, at.length - 1);
    const value = go[0] ? (ys[cursor] ?? last) : last;
    ys[cursor] = now.y.un(clamp(now.y.map(value) + (go[1] * (high - low)) / 40, low, high));
    drawSketch();
    changed();
  });
  function drawSketch() {
    const { sketch } = now.spec;
    if (!sketch) {
      board.remove();
      return redrawn(pencil, []);
    }
    const [left, right, up, low] = now.box;
    const shape = { x: left, y: up, width: right - left + 8, height: low - up };
    for (const [name, value] of Object.entries(shape)) board.setAttribute(name, value);
    const done = sketch.ys.filter((v) => v !== undefined).length;
    board.setAttribute(
      "aria-label",
      "the curve that you expect: arrow keys draw it point by point",
    );
    board.setAttribute("aria-valuenow", cursor);
    const value = sketch.ys[cursor];
    const height = value === undefined ? "not drawn" : short(value);
    board.setAttribute("aria-valuetext", `at ${fixedTick(sketch.at[cursor])}: ${height}`);
    const line = sketch.at.map((v, k) => [v, sketch.ys[k] ?? Number.NaN]);
    const mark = { line, colour: "key", wide: 3, dots: true };
    const out = drawn.line(mark, now.x, now.y, now.spec.y?.log);
    const middle = { at: [0, 0], align: "middle", colour: "muted", text: "draw here" };
    const nothing = { at: () => 0 };
    const hint = done
      ? []
      : drawn.text(
          { ...middle, dx: left + 0.3 * (right - left), dy: up + 0.25 * (low - up) },
          nothing,
          nothing,
        );
    redrawn(pencil, [...out, ...hint]);
    if (!board.isConnected) view.root.insertBefore(board, top);
  }
  return Object.assign(view, { show });
}
