// Sparse Lab. Formulas, ranges and words come from the library (tf.data); this file counts and draws.
const { el, clamp, keyed, mix, sig, word } = tf;
const SIDES = ["left", "right"],
  NAME = { left: "A", right: "B" };
const STACKS = { A: ["left"], B: ["right"], AB: ["left", "right"], BA: ["right", "left"] };
const LENGTHS = [
  8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448,
  512,
];
const TILES = [1, 2, 4, 8, 16, 32, 64, 128];

// --- canvases: the lab paints its own pixels ----------------------------------------------------------

function canvasOn(app, parent, { label, height, keys = false, className = "" }) {
  const canvas = el("canvas", {
    className: `tfx-canvas ${className}`,
    role: keys ? "application" : "img",
    "aria-label": label,
  });
  if (keys) {
    canvas.tabIndex = 0;
    canvas.dataset.lmSuppressShortcuts = "true";
  }
  parent.append(canvas);
  let wide = 300;
  const measure = () => {
    wide = Math.max(40, Math.floor(canvas.parentElement.clientWidth || 300));
    canvas.style.height = `${Math.round(height(wide))}px`;
  };
  app.measures.push(measure); // when setup is done and all is in its place
  const watch = new ResizeObserver(() => {
    const before = wide;
    measure();
    if (before !== wide) app.redraw("size");
  });
  watch.observe(parent);
  app.cleanup.push(() => watch.disconnect());
  const ctx = canvas.getContext("2d");
  return {
    canvas,
    label: (text) => {
      if (canvas.getAttribute("aria-label") !== text) canvas.setAttribute("aria-label", text);
    },
    begin: () => {
      const ratio = globalThis.devicePixelRatio || 1;
      const [w, h] = [wide, Math.round(height(wide))];
      const [pw, ph] = [Math.round(w * ratio), Math.round(h * ratio)];
      if (canvas.width !== pw || canvas.height !== ph) {
        canvas.width = pw;
        canvas.height = ph;
        canvas.style.height = `${h}px`;
      }
      ctx.setTransform(pw / w, 0, 0, ph / h, 0, 0);
      ctx.clearRect(0, 0, w, h);
      ctx.font = `11px ${app.font}`;
      return { ctx, width: w, height: h, ratio };
    },
    at: (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    },
  };
}

// A matrix picture: queries down, keys across, forbidden pairs hatched, allowed ones in the
// attention colour (bits) or on the ramp from the page to it (values in 0…1, NaN = forbidden).
function matrixOn(app, parent, { label, pick, hover, axes = ["i", "j"] }) {
  const LEFT = 30,
    TOP = 20,
    EDGE = 3;
  const view = canvasOn(app, parent, {
    label,
    height: (w) => w - LEFT + TOP,
    keys: Boolean(pick),
    className: "tfx-matrix",
  });
  const store = document.createElement("canvas"),
    store2d = store.getContext("2d");
  let cells,
    look,
    shown,
    place,
    hatch,
    hatchKey,
    at = [0, 0];

  function hatching(ctx, ratio) {
    const key = `${app.colours.grid}|${app.colours.page}|${ratio}`;
    if (key !== hatchKey) {
      const size = Math.round(6 * ratio),
        tile = document.createElement("canvas");
      tile.width = tile.height = size;
      const t = tile.getContext("2d");
      t.strokeStyle = mix(app.colours.page, app.colours.grid, 0.75);
      t.lineWidth = ratio;
      for (const shift of [-size, 0, size]) {
        t.moveTo(shift, size);
        t.lineTo(shift + size, 0);
      }
      t.stroke();
      hatch = ctx.createPattern(tile, "repeat");
      hatchKey = key;
    }
    return hatch;
  }

  function draw(
    /** @type {any} */ {
      rows,
      columns = rows,
      bits,
      values,
      row = -1,
      column = -1,
      marks,
      ramp,
      lit,
    },
  ) {
    const { ctx, width, height, ratio } = view.begin();
    const { colours } = app;
    const room = Math.min(width - LEFT - EDGE, height - TOP - EDGE) * ratio,
      n = Math.max(rows, columns);
    const fold = Math.max(1, Math.ceil(n / room)); // cells that share a pixel when there are too many
    const [w, h] = [Math.ceil(columns / fold), Math.ceil(rows / fold)];
    // whole pixels, unless that wastes much of the room: then cells differ by one pixel
    const whole = Math.max(1, Math.floor(room / Math.max(w, h)));
    const cell = (whole * Math.max(w, h)) / room > 0.88 ? whole : room / Math.max(w, h);
    // the cells, one pixel each, on a canvas of their own: painted anew only when they change
    const painted = [fold, w, h, colours.page, colours.attention, ramp ? Math.random() : 0].join();
    if (cells !== (bits ?? values) || look !== painted) {
      [cells, look] = [bits ?? values, painted];
      [store.width, store.height] = [w, h];
      const image = store2d.createImageData(w, h),
        pixels = new Uint32Array(image.data.buffer),
        shades = new Uint32Array(65);
      for (let k = 0; k <= 64; k++)
        shades[k] = word(ramp ? ramp(k / 64) : mix(colours.page, colours.attention, k / 64));
      if (fold === 1) {
        if (bits) for (let k = 0; k < w * h; k++) pixels[k] = bits[k] ? shades[64] : 0;
        else
          for (let k = 0; k < w * h; k++)
            pixels[k] =
              values[k] === values[k] ? shades[Math.round(clamp(values[k], 0, 1) * 64)] : 0;
      } else {
        for (let y = 0; y < h; y++)
          for (let x = 0; x < w; x++) {
            let sum = 0,
              some = 0;
            for (let a = 0; a < fold && y * fold + a < rows; a++)
              for (let b = 0; b < fold && x * fold + b < columns; b++) {
                const value = bits
                  ? bits[(y * fold + a) * columns + x * fold + b] || NaN
                  : values[(y * fold + a) * columns + x * fold + b];
                if (value === value) {
                  sum += value;
                  some++;
                }
              }
            // how many of the cells behind a pixel are kept shows as its strength, never below .4
            pixels[y * w + x] = !some
              ? 0
              : bits
                ? shades[Math.round(64 * (0.4 + (0.6 * some) / (fold * fold)))]
                : shades[Math.round(clamp(sum / some, 0, 1) * 64)];
          }
      }
      store2d.putImageData(image, 0, 0);
    }
    ctx.setTransform(1, 0, 0, 1, 0, 0); // from here in device pixels, whole numbers: crisp
    const [x0, y0] = [Math.round(LEFT * ratio), Math.round(TOP * ratio)];
    const [wide, high] = [Math.round(w * cell), Math.round(h * cell)];
    ctx.imageSmoothingEnabled = false;
    ctx.translate(x0, y0);
    ctx.fillStyle = hatching(ctx, ratio);
    ctx.fillRect(0, 0, wide, high);
    ctx.drawImage(store, 0, 0, w, h, 0, 0, wide, high);
    if (bits && row >= 0 && fold === 1) {
      // the key set of the query
      ctx.fillStyle = colours.key;
      const [top, bottom] = [Math.round(row * cell), Math.round((row + 1) * cell)];
      for (let j = 0; j < columns; j++)
        if (bits[row * columns + j]) {
          const left = Math.round(j * cell);
          ctx.fillRect(left, top, Math.round((j + 1) * cell) - left, bottom - top);
        }
    }
    if (lit) {
      // what one term of the formula brings
      ctx.fillStyle = colours.value;
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          if (!lit[i * columns + j]) continue;
          const from = j;
          while (j + 1 < columns && lit[i * columns + j + 1]) j++;
          const [left, top] = [from, i].map((k) => Math.round((k * cell) / fold));
          const [right, bottom] = [j + 1, i + 1].map((k) => Math.round((k * cell) / fold));
          ctx.fillRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
        }
    }
    if (n <= 32) {
      ctx.fillStyle = mix(colours.page, colours.grid, 0.8);
      const line = Math.max(1, Math.round(ratio * 0.75));
      for (let k = 1; k < w; k++) ctx.fillRect(Math.round(k * cell), 0, line, high);
      for (let k = 1; k < h; k++) ctx.fillRect(0, Math.round(k * cell), wide, line);
    }
    if (n <= 8 && values) {
      ctx.font = `${Math.round(Math.min(12 * ratio, cell * 0.36))}px ${app.font}`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      for (let y = 0; y < h; y++)
        for (let x = 0; x < w; x++) {
          const value = values[y * w + x];
          if (value !== value) continue;
          ctx.fillStyle = value > 0.45 ? colours.page : colours.ink;
          ctx.fillText(sig(value, 2), (x + 0.5) * cell, (y + 0.5) * cell);
        }
    }
    ctx.strokeStyle = colours.muted;
    ctx.lineWidth = Math.max(1, Math.round(ratio));
    ctx.strokeRect(-0.5, -0.5, wide + 1, high + 1);
    const unit = cell / fold,
      frame = Math.max(2, Math.round(2 * ratio));
    const framed = (x, y, fw, fh, colour) => {
      // ring outside the cells, with a gap of page colour
      const [a, b, c, d] = [x, y, x + fw, y + fh].map(Math.round);
      ctx.lineWidth = frame;
      ctx.strokeStyle = colour;
      ctx.strokeRect(a - frame / 2, b - frame / 2, c - a + frame, d - b + frame);
    };
    if (column >= 0) framed(column * unit, 0, Math.max(unit, 1), high, colours.key);
    if (row >= 0) framed(0, row * unit, wide, Math.max(unit, 1), colours.query);
    if (marks)
      for (const [i, j] of marks)
        framed(j * unit, i * unit, Math.max(unit, 1), Math.max(unit, 1), colours.ink);
    // axes: first and last index, the letters, and the selected ones
    ctx.setTransform(ratio, 0, 0, ratio, x0, y0);
    const u = unit / ratio,
      size = wide / ratio,
      tall = high / ratio;
    ctx.font = `11px ${app.font}`;
    const tick = (text, x, y, align, colour, bold) => {
      ctx.textAlign = align;
      ctx.textBaseline = "middle";
      ctx.font = `${bold ? "600 " : ""}11px ${app.font}`;
      ctx.fillStyle = colour;
      ctx.fillText(text, x, y);
    };
    const ri = row >= 0 ? (row + 0.5) * u : -99,
      cj = column >= 0 ? (column + 0.5) * u : -99;
    if (row >= 0) tick(String(row), -6, clamp(ri, 4, tall - 4), "right", colours.query, true);
    if (column >= 0) tick(String(column), clamp(cj, 6, size - 6), -10, "center", colours.key, true);
    const apart = 15;
    if (Math.abs(ri - u / 2) > apart) tick("0", -6, Math.max(5, u / 2), "right", colours.muted);
    if (Math.abs(ri - tall + u / 2) > apart && rows > 1)
      tick(String(rows - 1), -6, Math.min(tall - 5, tall - u / 2), "right", colours.muted);
    if (Math.abs(cj - u / 2) > apart) tick("0", Math.max(3, u / 2), -10, "center", colours.muted);
    if (Math.abs(cj - size + u / 2) > 22 && columns > 1)
      tick(String(columns - 1), Math.min(size - 8, size - u / 2), -10, "center", colours.muted);
    if (Math.abs(ri - tall / 2) > apart) tick(axes[0], -8, tall / 2, "right", colours.query, true);
    if (Math.abs(cj - size / 2) > apart) tick(axes[1], size / 2, -10, "center", colours.key, true);
    shown = { rows, columns };
    place = { x: x0 / ratio, y: y0 / ratio, u };
    at = [
      clamp(row < 0 ? at[0] : row, 0, rows - 1),
      clamp(column < 0 ? at[1] : column, 0, columns - 1),
    ];
    return { ctx, unit: u }; // in CSS pixels from the first cell's corner, for what is drawn on top
  }

  const cellAt = (event) => {
    if (!place) return null;
    const [x, y] = view.at(event);
    const [i, j] = [Math.floor((y - place.y) / place.u), Math.floor((x - place.x) / place.u)];
    return i >= 0 && j >= -LEFT / place.u && i < shown.rows && j < shown.columns
      ? [i, clamp(j, 0, shown.columns - 1)]
      : null;
  };
  if (hover) {
    view.canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") hover(cellAt(event));
    });
    view.canvas.addEventListener("pointerleave", () => hover(null));
  }
  if (pick) {
    view.canvas.addEventListener("click", (event) => {
      const cell = cellAt(event);
      if (cell) pick(...cell, "pointer");
    });
    view.canvas.addEventListener("keydown", (event) => {
      const moved = shown && keyed(event, at, shown.rows, shown.columns);
      if (!moved) return;
      at = moved; // the next key may come before the next frame
      pick(...at, "key");
    });
  }
  return { draw, canvas: view.canvas, label: view.label };
}

// Row `query` of the product of ½ (I + D⁻¹ M) over the layers, from the top layer down.
function influenceOf(stack, layers, query) {
  let share = new Float64Array(stack[0].L);
  share[query] = 1;
  for (let n = layers - 1; n >= 0; n--) {
    const { starts, keys, L } = stack[n % stack.length],
      next = new Float64Array(L);
    for (let i = 0; i < L; i++) {
      const mine = share[i];
      if (!mine) continue;
      const [a, b] = [starts[i], starts[i + 1]];
      next[i] += a === b ? mine : mine / 2;
      for (let k = a; k < b; k++) next[keys[k]] += mine / 2 / (b - a);
    }
    share = next;
  }
  return share;
}

// Which positions matter to `query`, layer by layer from the top; and one shortest way to `token`.
function coneOf(stack, layers, query, token) {
  const { L } = stack[0],
    layer = (n) => stack[(n - 1) % stack.length];
  const cone = Array.from({ length: layers + 1 }, () => new Uint8Array(L)),
    hears = cone.map((row) => row.slice());
  cone[layers][query] = 1;
  for (let n = layers; n > 0; n--) {
    const { starts, keys } = layer(n),
      [above, below] = [cone[n], cone[n - 1]];
    for (let i = 0; i < L; i++) {
      if (!above[i]) continue;
      below[i] = 1;
      for (let k = starts[i]; k < starts[i + 1]; k++) below[keys[k]] = 1;
    }
  }
  hears[0][token] = 1;
  for (let n = 1; n <= layers; n++) {
    const { starts, keys } = layer(n),
      [below, above] = [hears[n - 1], hears[n]];
    for (let i = 0; i < L; i++) {
      let heard = below[i];
      for (let k = starts[i]; !heard && k < starts[i + 1]; k++) heard = below[keys[k]];
      above[i] = heard;
    }
  }
  let path = null;
  if (hears[layers][query]) {
    path = [query];
    for (let n = layers, at = query; n > 0; n--) {
      if (!hears[n - 1][at])
        at = layer(n)
          .keysOf(at)
          .find((j) => hears[n - 1][j]);
      path.unshift(at);
    }
  }
  return { cone, path };
}

// The same verdict, in the same words, as SparseLab.goal_report().
function verdict(goal, L, stack, reach) {
  const why = [],
    ahead = stack.find((p) => p.ahead)?.ahead;
  const worst = stack.reduce((a, b) =>
    b.most > a.most || (b.most === a.most && b.row < a.row) ? b : a,
  );
  const pairs = Math.max(...stack.map((p) => p.pairs));
  if ((goal.L ?? L) !== L) why.push(`L is ${L}, the goal is for L = ${goal.L}`);
  if (goal.causal && ahead)
    why.push(`query ${ahead[0]} sees token ${ahead[1]}, which is in its future`);
  if (worst.most > (goal.max_keys ?? L))
    why.push(`query ${worst.row} has ${worst.most} keys, ${goal.max_keys} are allowed`);
  if (pairs > (goal.max_pairs ?? L * L))
    why.push(`${pairs} pairs are used, ${goal.max_pairs} are allowed`);
  if (goal.max_hops !== undefined && reach.unreachable) {
    why.push(
      `${reach.unreachable} ${reach.unreachable === 1 ? "pair is" : "pairs are"} never connected, the first: query ${reach.lost[0]}, token ${reach.lost[1]}`,
    );
  } else if (goal.max_hops !== undefined && reach.far > goal.max_hops) {
    why.push(
      `query ${reach.farthest[0]} needs ${reach.far} hops to token ${reach.farthest[1]}, ${goal.max_hops} are allowed`,
    );
  }
  return {
    met: !why.length,
    message: why.length ? `Goal not met: ${why.join("; ")}.` : "Goal met.",
  };
}

// --- specs as text -----------------------------------------------------------------------------------

// What SparseLab says where it is given no prompt.
const ownPrompt = (query) =>
  `How many layers of A until query ${query} hears of token 0? Step through the layers, then let A and B take turns.`;

function pythonOf(app) {
  const s = app.all(),
    options = [`L=${s.L}`, `query=${s.query}`];
  if (s.token) options.push(`token=${s.token}`);
  if (s.causal) options.push("causal=True");
  if (s.stack !== "A") options.push(`stack="${s.stack}"`);
  if (s.layers !== 2) options.push(`layers=${s.layers}`);
  if (s.view !== "matrix") options.push(`view="${s.view}"`);
  if (s.block !== 16) options.push(`block=${s.block}`);
  const goal = app.get("goal"),
    panels = app.get("panels");
  if (goal)
    options.push(
      `goal={${Object.entries(goal)
        .map(
          ([name, value]) =>
            `"${name}": ${value === true ? "True" : value === false ? "False" : value}`,
        )
        .join(", ")}}`,
    );
  const [asked] = Object.entries(app.get("ask") ?? {});
  if (asked) options.push(`ask={"${asked[0]}": "${asked[1]}"}`);
  if (panels.length < 2) options.push(`panels=${JSON.stringify(panels)}`);
  const prompt = app.get("prompt");
  if (prompt && prompt !== ownPrompt(app.first.query))
    options.push(`prompt=${JSON.stringify(prompt)}`);
  return `from tfviz import patterns
from tfviz.explorers import SparseLab

left = ${expression(s.left)}
right = ${expression(s.right)}
lab = SparseLab(left=left, right=right, ${options.join(", ")})
lab`;
}

function maskModOf(app) {
  const { L, causal } = app.all(),
    helpers = [];
  const combine = (spec, letter) => {
    if (spec.op === "not") return `~${combine(spec.parts[0], letter)}`;
    if (spec.op)
      return `(${spec.parts.map((part) => combine(part, letter)).join(spec.op === "and" ? " & " : " | ")})`;
    const name = `${spec.table ? "table" : spec.name}_${letter}${helpers.length + 1}`;
    if (spec.table)
      helpers.push(
        `${name} = patterns.from_spec(${JSON.stringify(spec)})`,
        `${name} = ${name}.holds`,
      );
    else {
      const { python, args } = FAMILIES[spec.name];
      const lines = args.slice(2).map((arg) => {
        const value = arg === "length" ? L : spec.params[arg];
        return `    ${arg} = ${Array.isArray(value) ? `torch.tensor(${JSON.stringify(value)})` : value}`;
      });
      helpers.push(
        `def ${name}(i, j):\n${lines.map((line) => `${line}\n`).join("")}    return ${python}\n`,
      );
    }
    return `${name}(i, j)`;
  };
  const mods = SIDES.map((side) => {
    const letter = NAME[side].toLowerCase();
    const formula = combine(app.get(side), letter);
    return `def mask_mod_${letter}(b, h, i, j):\n    return ${causal ? `${formula} & (i >= j)` : formula}\n`;
  });
  const body = [...helpers, ...mods].join("\n");
  const imports = [
    "import torch",
    "from torch.nn.attention.flex_attention import create_block_mask",
  ];
  if (body.includes("patterns.")) imports.push("from tfviz import patterns");
  if (body.includes("hash_of(")) imports.push("from tfviz.formula import hash_of");
  return `${imports.join("\n")}\n\n${body}
block_mask_a = create_block_mask(mask_mod_a, None, None, ${L}, ${L}, device="cpu")`;
}

// Numbers as people write them: 3, 5, 9 to 12.
function runs(numbers) {
  const out = [];
  for (const n of numbers) {
    if (out.length && out.at(-1)[1] === n - 1) out.at(-1)[1] = n;
    else out.push([n, n]);
  }
  return out;
}
function spoken(numbers, most = 8) {
  const parts = runs(numbers).map(([a, b]) =>
    a === b ? `${a}` : b === a + 1 ? `${a} and ${b}` : `${a} to ${b}`,
  );
  if (!parts.length) return "no keys";
  if (parts.length > most)
    return `keys ${parts.slice(0, most - 1).join(", ")} and ${parts.length - most + 1} more runs`;
  return `${numbers.length === 1 ? "key" : "keys"} ${parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0]}`;
}

// The condition on i and j with numbers in place, the query's number and j in their colours.
function formulaText(spec) {
  if (spec.table) return "(i, j) is in the table";
  if (spec.op === "not") return `not (${formulaText(spec.parts[0])})`;
  if (spec.op)
    return spec.parts
      .map((part) =>
        part.op
          ? `(${formulaText(part)})`
          : / (and|or) /.test(formulaText(part))
            ? `(${formulaText(part)})`
            : formulaText(part),
      )
      .join(` ${spec.op} `);
  const { text, doc, params } = FAMILIES[spec.name];
  if (text.length > 170) {
    const said = doc
      .split(/\. | \(/)[0]
      .replace(/`(\w+)`/g, (_, name) => spec.params[name] ?? name);
    return `it is one of: ${said[0].toLowerCase()}${said.slice(1)}`;
  }
  return Object.keys(params).reduce((words, name) => {
    const value = spec.params[name];
    return Array.isArray(value)
      ? words.replaceAll(`${name}.length`, value.length).replaceAll(name, "π")
      : words.replace(new RegExp(`\\b${name}\\b`, "g"), value);
  }, text);
}
function formulaNodes(text, query) {
  return text
    .split(/\b([ij])\b/)
    .map((piece) =>
      piece === "i"
        ? el("b", { className: "sl-i" }, String(query))
        : piece === "j"
          ? el("b", { className: "sl-j" }, "j")
          : piece,
    );
}

// The parts that `and` or `or` join are terms: each lights up with its cells.
function termsOf(spec, text, query) {
  const parts = spec.op && spec.op !== "not" ? spec.parts.map(formulaText) : [];
  const out = [];
  let rest = text;
  parts.forEach((part, n) => {
    const at = rest.indexOf(part);
    if (at < 0) return;
    const props = { className: "tfx-term", tabIndex: 0, "data-part": String(n) };
    out.push(
      ...formulaNodes(rest.slice(0, at), query),
      el("span", props, ...formulaNodes(part, query)),
    );
    rest = rest.slice(at + part.length);
  });
  return [...out, ...formulaNodes(rest, query)];
}

// --- the pieces of the picture -------------------------------------------------------------------------

function makeCard(app, side, actions) {
  const letter = NAME[side];
  const root = el("div", {
    role: "group",
    className: "sl-card",
    "aria-label": `pattern ${letter}`,
  });
  root.dataset.side = side;
  const head = el(
    "div",
    { className: "sl-head" },
    el("span", { className: "sl-badge", "aria-hidden": "true" }, letter),
  );
  const stage = el("div", { className: "sl-stage" });
  const set = el("p", { className: "sl-set" }),
    formula = el("p", { className: "sl-formula" });
  const terms = el("div", { className: "sl-terms" });
  root.append(head, stage, set, formula, terms);

  const presets = Object.entries(tf.data.presets);
  const kind = ([title, _]) => (/^[A-Z]/.test(title) ? "From papers" : "Atomic");
  const options = { Atomic: [], "From papers": [], Other: [["*", "your own"]] };
  for (const preset of presets) options[kind(preset)].push([preset[0], preset[0]]);
  const current = () => {
    const spec = app.get(side);
    return presets.find(([, p]) => p.name && p.name === spec.name)?.[0] ?? "*";
  };
  // two presets of one family: keep the one that was chosen
  let chosen = null;
  app.select(`${side}-preset`, {
    label: `pattern ${letter}`,
    hidden: true,
    options,
    into: head,
    read: () =>
      chosen && tf.data.presets[chosen].name === app.get(side).name ? chosen : current(),
    write: (title) => {
      if (title === "*") return app.redraw();
      chosen = title;
      app.set(side, fit(tf.data.presets[title], app.get("L")));
    },
  });

  const matrix = matrixOn(app, stage, {
    label: `mask of pattern ${letter}`,
    pick: (i, j, how) => actions.pick(i, j, how, side),
    hover: (cell) => actions.peek(cell ? cell[0] : null),
  });
  const graph = makeGraph(app, stage, letter, actions);
  const editor = makeEditor(app, side, terms);
  let said; // what the words below the picture were made for
  let term = -1; // the part of the formula that lights up with its cells
  const over = (event) => {
    const now = Number(event?.target.closest("[data-part]")?.dataset.part ?? -1);
    if (now === term) return;
    term = now;
    app.redraw("term");
  };
  for (const type of ["pointerover", "focusin"]) formula.addEventListener(type, over);
  for (const type of ["pointerleave", "focusout"]) formula.addEventListener(type, () => over());

  return {
    root,
    draw({ data, query, token, view, L, spec, changed }) {
      matrix.canvas.hidden = view !== "matrix";
      graph.canvas.hidden = view !== "graph";
      const keys = data.keysOf(query);
      const lit = spec.op && spec.op !== "not" && spec.parts[term] && bits(spec.parts[term], L);
      if (view === "matrix")
        matrix.draw({ rows: L, bits: data.mask, row: query, column: token, lit });
      else graph.draw(data, query, token);
      const words = `query ${query} attends ${spoken(keys)}; ${keys.length} of ${L}`;
      const label = `Pattern ${letter}, ${view}, ${L} tokens. ${words}. Arrow keys move the query and the token.`;
      matrix.label(label);
      graph.label(label);
      editor.draw(spec, L);
      const now = words + JSON.stringify(spec) + app.get("causal");
      if (said === now) return words;
      said = now;
      const shown = runs(keys).map(([a, b]) =>
        a === b ? `${a}` : b === a + 1 ? `${a}, ${b}` : `${a} … ${b}`,
      );
      const list = shown.length > 9 ? [...shown.slice(0, 4), "…", ...shown.slice(-4)] : shown;
      set.replaceChildren(
        el("i", {}, "S"),
        el("sub", { className: "sl-i" }, String(query)),
        " = {",
        el("span", { className: "sl-j" }, list.join(", ")),
        "}",
        el("small", {}, ` ${keys.length} of ${L} keys`),
      );
      const limit = app.get("causal") ? `(${formulaText(spec)}) and i ≥ j` : formulaText(spec);
      formula.replaceChildren(
        el(
          "span",
          { className: "sl-when" },
          /[≤≥=<>]/.test(limit) ? "j is in it if " : "the rule: ",
        ),
        ...termsOf(spec, limit, query),
      );
      return words;
    },
  };
}

// One layer as a graph: queries above, keys below, an edge for every allowed pair.
function makeGraph(app, parent, letter, actions) {
  const view = canvasOn(app, parent, {
    label: `graph of pattern ${letter}`,
    height: (w) => w - 10,
    keys: true,
    className: "sl-graph",
  });
  const LEFT = 14,
    store = document.createElement("canvas");
  let key, place;
  const x = (j) => LEFT + (j + 0.5) * place.step;
  function draw(data, query, token) {
    const { ctx, width, height, ratio } = view.begin(),
      { L } = data,
      { colours } = app;
    place = { step: (width - 2 * LEFT) / L, L };
    const [top, bottom] = [30, height - 30];
    // all edges once per mask, on a canvas of their own
    const now = [width, ratio, colours.page, colours.attention].join();
    if (key?.data !== data || key.now !== now) {
      [store.width, store.height] = [width * ratio, height * ratio];
      const all = store.getContext("2d"),
        skip = Math.ceil(data.pairs / 4000);
      all.scale(ratio, ratio);
      all.strokeStyle = tf.mix(
        colours.page,
        colours.attention,
        clamp(1.1 - Math.log10(1 + data.pairs) / 4.4, 0.16, 0.5),
      );
      all.lineWidth = 0.6;
      for (let i = 0; i < L; i += skip)
        for (const j of data.keysOf(i)) {
          all.moveTo(x(i), top);
          all.lineTo(x(j), bottom);
        }
      all.stroke();
      key = { data, now, skip };
    }
    ctx.drawImage(store, 0, 0, width, height);
    ctx.strokeStyle = colours.attention;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const j of data.keysOf(query)) {
      ctx.moveTo(x(query), top);
      ctx.lineTo(x(j), bottom);
    }
    ctx.stroke();
    const size = clamp(place.step * 0.62, 1, 9);
    ctx.fillStyle = tf.mix(colours.page, colours.query, 0.55);
    for (let i = 0; i < L; i++) ctx.fillRect(x(i) - size / 2, top - size, size, size);
    ctx.fillStyle = tf.mix(colours.page, colours.key, 0.45);
    for (let j = 0; j < L; j++) ctx.fillRect(x(j) - size / 2, bottom, size, size);
    ctx.fillStyle = colours.key;
    for (const j of data.keysOf(query))
      ctx.fillRect(x(j) - Math.max(size, 3) / 2, bottom, Math.max(size, 3), Math.max(size, 3) + 2);
    ctx.fillStyle = colours.query;
    const big = Math.max(size, 5);
    ctx.fillRect(x(query) - big / 2, top - big - 2, big, big + 2);
    label(app, ctx, `query ${query}`, clamp(x(query), 34, width - 34), 12, colours.query);
    label(app, ctx, `token ${token}`, clamp(x(token), 30, width - 30), height - 8, colours.key);
    ctx.strokeStyle = colours.key;
    ctx.strokeRect(x(token) - big / 2 - 2, bottom - 2, big + 4, big + 5);
    if (key.skip > 1)
      label(app, ctx, `one query in ${key.skip} drawn`, width / 2, 12, colours.muted, 400);
  }
  const at = (event) => {
    const [px, py] = view.at(event);
    return {
      near: clamp(Math.floor((px - LEFT) / place.step), 0, place.L - 1),
      above: py < view.canvas.clientHeight / 2,
    };
  };
  view.canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") {
      const { near, above } = at(event);
      actions.peek(above ? near : null);
    }
  });
  view.canvas.addEventListener("pointerleave", () => actions.peek(null));
  view.canvas.addEventListener("click", (event) => {
    const { near, above } = at(event);
    app.set(above ? "query" : "token", near);
  });
  view.canvas.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(place.L / 8));
    const [name, by] =
      {
        ArrowLeft: ["query", -1],
        ArrowRight: ["query", 1],
        ArrowUp: ["token", -1],
        ArrowDown: ["token", 1],
        PageUp: ["query", -page],
        PageDown: ["query", page],
        Home: ["query", -1e9],
        End: ["query", 1e9],
      }[event.key] || [];
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    app.set(name, clamp(app.get(name) + by, 0, place.L - 1));
  });
  return { draw, canvas: view.canvas, label: view.label };
}

function label(app, ctx, text, x, y, colour, weight = 600, align = "center") {
  ctx.font = `${weight} 11px ${app.font}`;
  ctx.textAlign = align;
  ctx.textBaseline = "middle";
  ctx.lineWidth = 3;
  ctx.lineJoin = "round";
  ctx.strokeStyle = app.colours.page;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
  ctx.lineWidth = 1;
}

// The pattern as a tree of terms joined by and / or, each perhaps negated. Rebuilt when its shape
// changes; a slider on its way only changes numbers.
function makeEditor(app, side, root) {
  let shape,
    controls = [],
    serial = 0;
  const leafName = (spec) =>
    spec.op === "not" ? leafName(spec.parts[0]) : spec.table ? "table" : spec.name;
  const shapeOf = (spec) =>
    spec.table ? "T" : spec.op ? `${spec.op}(${spec.parts.map(shapeOf).join()})` : spec.name;
  const at = (spec, path) => path.reduce((node, k) => node.parts[k], spec);
  function change(path, edit) {
    const replace = (node, /** @type {any[]} */ [k, ...rest]) =>
      k === undefined
        ? edit(node)
        : { ...node, parts: node.parts.map((part, n) => (n === k ? replace(part, rest) : part)) };
    const spec = replace(app.get(side), path);
    app.set(side, fit(spec, app.get("L")));
  }
  const without = (path) => {
    const parent = path.slice(0, -1),
      k = path.at(-1);
    change(parent, (node) => {
      const parts = node.parts.filter((_, n) => n !== k);
      return parts.length === 1 ? parts[0] : { ...node, parts };
    });
  };
  const add = (op) =>
    change([], (node) => {
      const next = fresh(op === "and" ? "causal" : "global_tokens", app.get("L"));
      return node.op === op ? { op, parts: [...node.parts, next] } : { op, parts: [node, next] };
    });

  function leaf(spec, path, into, many) {
    const key = `${side}-${serial++}`;
    const negated = spec.op === "not";
    const inner = negated ? [...path, 0] : path,
      plain = negated ? spec.parts[0] : spec;
    if (many || negated) {
      const row = el("div", { className: "sl-term" });
      into.append(row);
      if (plain.table) row.append(el("span", {}, "table"));
      else if (plain.op) row.append(el("span", {}, "not"));
      else {
        controls.push(
          app.select(`${key}-family`, {
            label: "term",
            hidden: true,
            into: row,
            options: Object.entries(FAMILIES).map(([name, { title }]) => [name, title]),
            read: () => at(app.get(side), inner).name ?? plain.name,
            write: (name) => change(inner, () => fresh(name, app.get("L"))),
          }),
        );
      }
      const not = app.button(
        "not",
        () =>
          change(path, (node) =>
            node.op === "not" ? node.parts[0] : { op: "not", parts: [node] },
          ),
        { into: row, title: "the pairs that this term leaves out" },
      );
      not.setAttribute("aria-pressed", String(negated));
      if (path.length)
        app
          .button("×", () => without(path), { into: row })
          .setAttribute("aria-label", `remove ${leafName(spec)}`);
    }
    if (plain.op) return node(plain, inner, into);
    if (plain.table) return;
    for (const [name, range] of parametersOf(plain.name)) {
      const value = () => at(app.get(side), inner).params?.[name] ?? range.default;
      if (range.type === "list") permutation(key, name, inner, value, into);
      else {
        const field = app.slider(`${key}-${name}`, {
          label: name,
          into,
          min: range.min,
          max: 64,
          read: value,
          write: (x) =>
            change(inner, (node) => ({ ...node, params: { ...node.params, [name]: x } })),
        });
        controls.push({
          ...field,
          fit: (L) =>
            field.limit(range.min, Math.max(range.min, highest(at(app.get(side), inner), name, L))),
        });
      }
    }
  }
  function permutation(key, name, path, value, into) {
    const id = app.id(`${key}-${name}`);
    const input = el("input", {
      type: "text",
      id,
      inputMode: "numeric",
      autocomplete: "off",
      spellcheck: false,
    });
    input.dataset.lmSuppressShortcuts = "true";
    input.dataset.key = `${key}-${name}`;
    const hint = el("small", { id: `${id}-hint` });
    input.setAttribute("aria-describedby", hint.id);
    const put = (order) =>
      change(path, (node) => ({ ...node, params: { ...node.params, [name]: order } }));
    input.addEventListener("input", () => {
      const order = input.value
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number);
      const good =
        order.length > 0 &&
        order.length <= app.get("L") &&
        [...order].sort((a, b) => a - b).every((n, k) => n === k);
      input.setAttribute("aria-invalid", String(!good));
      hint.textContent = good
        ? "query block b uses key block π(b)"
        : "write every number from 0 to n − 1 once";
      if (good) put(order);
    });
    const row = el(
      "div",
      { className: "tfx-field sl-order" },
      el("label", { htmlFor: id }, name, " ", el("i", {}, "π")),
      input,
      hint,
    );
    const buttons = el("div", { className: "sl-term" });
    app.button("shift", () => put([...value().slice(1), value()[0]]), { into: buttons });
    app.button("more blocks", () => put([...value(), value().length]), { into: buttons });
    app.button("fewer", () => put(value().filter((n) => n !== value().length - 1)), {
      into: buttons,
    });
    row.append(buttons);
    into.append(row);
    hint.textContent = "query block b uses key block π(b)";
    controls.push({
      fit: () => {
        if (document.activeElement !== input) input.value = value().join(", ");
      },
      remove() {},
    });
  }
  function node(spec, path, into) {
    if (spec.op !== "and" && spec.op !== "or") return leaf(spec, path, into, false);
    const group = el("div", { className: "sl-group" });
    into.append(group);
    spec.parts.forEach((part, k) => {
      if (k) {
        controls.push(
          app.choice(`${side}-op-${serial++}`, {
            label: "joined by",
            hidden: true,
            into: group,
            options: [
              ["and", "and"],
              ["or", "or"],
            ],
            read: () => at(app.get(side), path).op,
            write: (op) => change(path, (old) => ({ ...old, op })),
          }),
        );
      }
      if (part.op === "and" || part.op === "or") {
        node(part, [...path, k], group);
        const row = el("div", { className: "sl-term" });
        group.append(row);
        app.button("not", () => change([...path, k], (old) => ({ op: "not", parts: [old] })), {
          into: row,
        });
        app
          .button("×", () => without([...path, k]), { into: row })
          .setAttribute("aria-label", "remove the group");
      } else leaf(part, [...path, k], group, true);
    });
  }
  return {
    draw(spec, L) {
      const now = shapeOf(spec);
      if (now !== shape) {
        const focused = root.contains(document.activeElement)
          ? document.activeElement.textContent
          : null;
        for (const control of controls) control.remove?.();
        controls = [];
        serial = 0;
        root.replaceChildren();
        node(spec, [], root);
        const row = el(
          "div",
          { className: "sl-term" },
          el("span", { className: "sl-with" }, "with another pattern:"),
        );
        root.append(row);
        app.button("and", () => add("and"), { into: row, title: "only the pairs of both" });
        app.button("or", () => add("or"), { into: row, title: "the pairs of either" });
        if (!spec.op)
          app.button("not", () => change([], (old) => ({ op: "not", parts: [old] })), {
            into: row,
            title: "all other pairs",
          });
        shape = now;
        if (focused)
          [...root.querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
      }
      for (const control of controls) control.fit?.(L);
    },
  };
}

// --- over layers -----------------------------------------------------------------------------------------

function makeDepth(app, actions) {
  const root = el("div", {
    role: "group",
    className: "sl-panel sl-depth",
    "aria-label": "over layers",
  });
  const head = el(
    "div",
    { className: "sl-panel-head" },
    el("p", { className: "sl-title" }, "Over layers"),
  );
  const body = el("div", { className: "sl-panel-body" });
  const main = el("div", {}),
    side = el("div", {});
  const facts = el("div", { className: "tfx-readouts" });
  body.append(main, side);
  root.append(head, body, facts);
  app.knob("stack", {
    into: head,
    options: [
      ["A", "A", "A in every layer"],
      ["B", "B", "B in every layer"],
      ["AB", "A, B, …", "A in the lowest layer, then B, in turn"],
      ["BA", "B, A, …", "B in the lowest layer, then A, in turn"],
    ],
  });
  app.motion("layers", { into: head, every: 900, verbs: ["layer down", "layer up"] });
  const cone = canvasOn(app, main, {
    label: "what the query hears of, layer by layer",
    height: () => 268,
  });
  const map = matrixOn(app, side, {
    label: "hops between all pairs",
    hover: (cell) => actions.peek(cell ? cell[0] : null),
    pick: (i, j) => actions.pick(i, j),
  });
  let shades,
    shaded = {}; // of the map of hops, for as long as they hold
  const note = el("p", { className: "sl-note" });
  side.append(note);
  main.append(
    el(
      "p",
      { className: "sl-note" },
      "What the query hears of, layer by layer, and one shortest way to the token. Bars: influence, how much of each token is in the query's vector if attention is uniform.",
    ),
  );
  const show = {
    heard: app.readout("query hears of", {
      into: facts,
      title: "tokens that the query depends on after this many layers, residual included",
    }),
    hops: app.readout("hops to the token", { into: facts }),
    weight: app.readout("influence of the token", {
      into: facts,
      title: "powers of ½ (I + D⁻¹M): uniform attention with residual",
    }),
    diameter: app.readout("diameter", { into: facts, title: "the most hops any pair needs" }),
    lost: app.readout("never connected", { into: facts }),
  };

  function drawCone(stack, names, s, coneOfQuery, share) {
    const { ctx, width } = cone.begin(),
      { L } = stack[0],
      { colours } = app,
      { layers, query, token } = s;
    const [left, right, top, bottom, bars] = [76, 10, 18, 176, 236];
    const step = (width - left - right) / L,
      x = (j) => left + (j + 0.5) * step;
    const y = (n) => bottom - (n * (bottom - top)) / layers;
    const size = clamp(step * 0.7, 1, 8);
    // edges: where the query looks, and where those look; thinned when there are very many
    let edges = 0;
    for (let n = layers; n > 0; n--)
      for (let i = 0; i < L; i++)
        if (coneOfQuery.cone[n][i]) edges += stack[(n - 1) % stack.length].keysOf(i).length;
    const skip = Math.ceil(edges / 3000);
    ctx.strokeStyle = tf.mix(colours.page, colours.attention, clamp(0.95 - edges / 900, 0.22, 0.5));
    ctx.lineWidth = 0.7;
    ctx.beginPath();
    for (let n = layers, k = 0; n > 0; n--)
      for (let i = 0; i < L; i++)
        if (coneOfQuery.cone[n][i]) {
          for (const j of stack[(n - 1) % stack.length].keysOf(i))
            if (k++ % skip === 0) {
              ctx.moveTo(x(i), y(n));
              ctx.lineTo(x(j), y(n - 1));
            }
        }
    ctx.stroke();
    for (let n = 0; n <= layers; n++) {
      for (let j = 0; j < L; j++) {
        const on = coneOfQuery.cone[n][j];
        ctx.fillStyle = on
          ? n === layers
            ? colours.query
            : n === 0
              ? colours.key
              : colours.attention
          : tf.mix(colours.page, colours.ink, 0.16);
        const mark = on ? Math.max(size, 2) : Math.max(size * 0.6, 1);
        ctx.fillRect(x(j) - mark / 2, y(n) - mark / 2, mark, mark);
      }
      const name = n === 0 ? "tokens" : `${n}: ${names[(n - 1) % names.length]}`;
      label(
        app,
        ctx,
        name,
        left - 12,
        y(n),
        n === 0 ? colours.key : colours.muted,
        n === 0 ? 600 : 400,
        "right",
      );
    }
    if (coneOfQuery.path) {
      ctx.strokeStyle = colours.ink;
      ctx.lineWidth = 2.25;
      ctx.beginPath();
      coneOfQuery.path.forEach((j, n) => (n ? ctx.lineTo(x(j), y(n)) : ctx.moveTo(x(j), y(n))));
      ctx.stroke();
      ctx.fillStyle = colours.ink;
      coneOfQuery.path.forEach((j, n) => {
        ctx.beginPath();
        ctx.arc(x(j), y(n), 3.5, 0, 7);
        ctx.fill();
      });
    }
    label(app, ctx, `query ${query}`, clamp(x(query), left + 26, width - 34), 7, colours.query);
    ctx.strokeStyle = colours.key;
    ctx.lineWidth = 2;
    const mark = Math.max(size, 4);
    ctx.strokeRect(x(token) - mark / 2 - 2, bottom - mark / 2 - 2, mark + 4, mark + 4);
    label(
      app,
      ctx,
      `token ${token}`,
      clamp(x(token), left + 26, width - 34),
      bottom + 15,
      colours.key,
    );
    // influence: how much of each token is in the query's vector
    const most = Math.max(...share);
    ctx.fillStyle = colours.muted;
    ctx.fillRect(left, bars + 0.5, width - left - right, 1);
    for (let j = 0; j < L; j++) {
      const tall = (share[j] / most) * 40;
      ctx.fillStyle = colours.attention;
      if (share[j] > 0)
        ctx.fillRect(
          x(j) - Math.max(step * 0.7, 1) / 2,
          bars - Math.max(tall, 0.75),
          Math.max(step * 0.7, 1),
          Math.max(tall, 0.75),
        );
    }
    label(app, ctx, "influence", left - 12, bars - 8, colours.attention, 600, "right");
    label(app, ctx, tf.sig(most, 2), left - 12, bars - 38, colours.muted, 400, "right");
    label(app, ctx, "0", left, bars + 13, colours.muted, 400);
    label(app, ctx, String(L - 1), x(L - 1), bars + 13, colours.muted, 400);
    label(app, ctx, "token j", left + (width - left - right) / 2, bars + 13, colours.muted, 400);
    if (skip > 1)
      label(app, ctx, `one edge in ${skip} drawn`, width - right, 7, colours.muted, 400, "right");
  }

  return {
    root,
    draw(stack, s, reach) {
      const { L } = stack[0],
        { query, token, layers } = s,
        names = STACKS[s.stack].map((side) => NAME[side]);
      const found = coneOf(stack, layers, query, token),
        share = influenceOf(stack, layers, query);
      drawCone(stack, names, s, found, share);
      if (shaded.reach !== reach || shaded.layers !== layers) {
        shades = new Float32Array(L * L);
        for (let i = 0, k = 0; i < L; i++)
          for (let j = 0; j < L; j++, k++) {
            const hop = reach.hops[k];
            shades[k] =
              reach.causal && j > i
                ? NaN
                : hop < 0 || hop > layers
                  ? 0
                  : hop < 2
                    ? 1
                    : 0.25 + 0.45 / (hop - 0.9);
          }
        shaded = { reach, layers };
      }
      map.draw({ rows: L, values: shades, row: query, column: token });
      const heard = found.cone[0].reduce((a, b) => a + b, 0),
        able = reach.causal ? query + 1 : L;
      const hop = reach.hops[query * L + token];
      const far = hop < 0 ? "none: never" : String(hop);
      const words = `${layers} ${layers === 1 ? "layer" : "layers"} of ${names.join(", ")}: query ${query} hears of ${heard} of ${able} tokens`;
      const link = found.path
        ? `path to token ${token}: ${[...found.path]
            .reverse()
            .filter((at, k, all) => at !== all[k - 1])
            .join(" → ")}`
        : `token ${token} is not reached`;
      cone.label(`${words}; ${link}`);
      map.label(
        `Hops between all pairs, full colour is one hop, blank is not reached after ${layers} layers. Query ${query}, token ${token}: ${far}.`,
      );
      note.textContent = `Hops between all pairs: full colour 1, fainter more, blank not within ${layers} ${layers === 1 ? "layer" : "layers"}.`;
      show.heard(`${heard} of ${able} tokens`);
      show.hops(hop > layers ? `${far} (more than ${layers} layers)` : far);
      show.weight(share[token] ? tf.sig(share[token], 2) : "0");
      show.diameter(
        reach.diameter === null
          ? "none"
          : `${reach.diameter} ${reach.diameter === 1 ? "hop" : "hops"}`,
      );
      show.lost(`${tf.count(reach.unreachable)} pairs`);
      return `${words}; ${link}`;
    },
  };
}

// --- cost ------------------------------------------------------------------------------------------------

function makeCost(app) {
  const root = el("div", { role: "group", className: "sl-panel sl-cost", "aria-label": "cost" });
  const head = el(
    "div",
    { className: "sl-panel-head" },
    el("p", { className: "sl-title" }, "Cost of one layer"),
  );
  const body = el("div", { className: "sl-panel-body" });
  const main = el("div", { className: "sl-scroll" }),
    side = el("div", {});
  body.append(main, side);
  root.append(head, body);
  app.knob("block", {
    scale: TILES,
    into: head,
    hint: "hardware computes a block of the matrix whole or not at all",
  });
  const names = ["A", "A, blocks", "B", "B, blocks", "full"];
  const cells = {};
  const line = (title) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, title),
      ...names.map((name) => (cells[`${title}/${name}`] = el("td", {}))),
    );
  const titles = ["pairs", "share", "blocks", "FLOPs", "scores"];
  const caption = el("caption", {});
  main.append(
    el(
      "table",
      { className: "sl-table" },
      caption,
      el(
        "thead",
        {},
        el("tr", {}, el("td", {}), ...names.map((name) => el("th", { scope: "col" }, name))),
      ),
      el("tbody", {}, ...titles.map(line)),
    ),
  );
  const put = (title, values) =>
    names.forEach((name, k) => {
      const cell = cells[`${title}/${name}`];
      if (cell.textContent !== values[k]) cell.textContent = values[k];
    });
  const curve = canvasOn(app, side, { label: "pairs over L", height: () => 190 });
  let timer, lines, lastKey;
  app.cleanup.push(() => clearTimeout(timer));

  function flops(n) {
    const units = ["", "k", "M", "G", "T"];
    let k = 0;
    while (n >= 1000 && k < 4) {
      n /= 1000;
      k++;
    }
    return `${tf.sig(n)} ${units[k]}`.trim();
  }

  function drawCurve() {
    const { ctx, width, height } = curve.begin(),
      { colours } = app;
    const [left, right, top, bottom] = [42, 44, 14, height - 30];
    const all = Object.values(lines).flat();
    const xs = all.map(([L]) => Math.log2(L)),
      [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const y0 = 4,
      y1 = 18.3;
    const x = (L) =>
      left + ((Math.log2(L) - x0) / Math.max(1e-9, x1 - x0)) * (width - left - right);
    const y = (p) => bottom - ((Math.log2(Math.max(16, p)) - y0) / (y1 - y0)) * (bottom - top);
    for (const power of [1e2, 1e3, 1e4, 1e5]) {
      ctx.strokeStyle = tf.mix(colours.page, colours.grid, 0.8);
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(left, y(power));
      ctx.lineTo(width - right, y(power));
      ctx.stroke();
      label(
        app,
        ctx,
        { 1e2: "100", 1e3: "1k", 1e4: "10k", 1e5: "100k" }[power],
        left - 6,
        y(power),
        colours.muted,
        400,
        "right",
      );
    }
    for (const L of [16, 64, 256, 512])
      if (Math.log2(L) >= x0 && Math.log2(L) <= x1)
        label(app, ctx, String(L), x(L), bottom + 10, colours.muted, 400);
    label(app, ctx, "L (log scale)", (left + width - right) / 2, height - 7, colours.muted, 400);
    label(app, ctx, "pairs (log scale)", left, 5, colours.muted, 400, "left");
    const ends = [];
    for (const [name, points] of Object.entries(lines)) {
      if (!points.length) continue;
      const colour = name === "full" ? colours.muted : colours.attention;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = 2;
      ctx.setLineDash(name === "B" ? [5, 4] : []);
      ctx.beginPath();
      for (const [L, p] of points) ctx.lineTo(x(L), y(p));
      ctx.stroke();
      ctx.setLineDash([]);
      for (const [L, p] of points) {
        ctx.beginPath();
        if (name === "B") ctx.rect(x(L) - 3, y(p) - 3, 6, 6);
        else ctx.arc(x(L), y(p), name === "full" ? 2 : 3, 0, 7);
        ctx.fill();
      }
      ends.push([name, y(points.at(-1)[1]), colour]);
    }
    ends.sort((a, b) => a[1] - b[1]);
    ends.forEach((end, k) => {
      if (k) end[1] = Math.max(end[1], ends[k - 1][1] + 13);
    });
    for (const [name, at, colour] of ends)
      label(app, ctx, name, width - right + 8, at, colour, 600, "left");
    const rise = (points) =>
      points.length > 1
        ? Math.log(points.at(-1)[1] / points.at(-2)[1]) /
          Math.log(points.at(-1)[0] / points.at(-2)[0])
        : NaN;
    curve.label(
      `Pairs over L with these parameters, both axes logarithmic. ${Object.entries(lines)
        .map(
          ([name, points]) =>
            `${name} ends at ${points.at(-1)?.[1] ?? "nothing"} with slope ${tf.sig(rise(points), 2)}`,
        )
        .join("; ")}.`,
    );
  }

  function count(s) {
    const lengths = [16, 32, 64, 128, 256, 512];
    const points = (side) => {
      const fixed = tableLength(s[side]);
      return (fixed ? [fixed] : lengths).flatMap((L) => {
        if (!fitsAt(s[side], L)) return []; // a parameter is out of range at this L
        return [[L, measure(s[side], L, s.causal).pairs]];
      });
    };
    lines = { full: lengths.map((L) => [L, L * L]), A: points("left"), B: points("right") };
  }

  return {
    root,
    draw(data, s) {
      const { L, block, d } = s,
        [a, b] = [data.left, data.right],
        [ta, tb] = [tilesOf(a, block), tilesOf(b, block)];
      const pairs = [a.pairs, ta.pairs, b.pairs, tb.pairs, L * L];
      put("pairs", pairs.map(tf.count));
      put(
        "share",
        pairs.map((p) => `${tf.sig((100 * p) / L / L)} %`),
      );
      put("blocks", [
        "",
        `${tf.count(ta.blocks)} of ${tf.count(ta.all)}`,
        "",
        `${tf.count(tb.blocks)} of ${tf.count(tb.all)}`,
        tf.count(ta.all),
      ]);
      put(
        "FLOPs",
        pairs.map((p) => flops(4 * d * p)),
      );
      put(
        "scores",
        pairs.map((p) => tf.bytes(4 * p)),
      );
      caption.textContent = `L = ${L}, one head of width ${d}, scores in float32. In blocks of ${block}: a block with one allowed pair is computed whole.`;
      const key = JSON.stringify([s.left, s.right, s.causal]);
      if (key !== lastKey) {
        lastKey = key;
        clearTimeout(timer);
        const work = () => {
          count(s);
          drawCurve();
        };
        if (lines)
          timer = setTimeout(work, 180); // not while a slider is moving
        else work();
      } else drawCurve();
    },
  };
}

// The question that a lab is given with `ask`: the reader says it before the layers show it.
function questionOf(app) {
  const [what, stack] = Object.entries(app.get("ask") ?? {})[0] ?? [];
  if (!what) return { ...app.ask(null), stack };
  const { query, token } = app.first;
  const turns =
    stack.length > 1 ? `layers of ${[...stack].join(" and ")} in turn` : `layers of ${stack}`;
  const names = SIDES.map((side) => expression(app.first[side]).match(/\w+(?=\()/g)).flat();
  const question = app.ask({
    name: [what, stack, query, token, ...names].join("-"),
    question: `After how many ${turns} ${
      what === "hops" ? `does query ${query} hear of token ${token}` : "is every pair connected"
    }? (0 means never.)`,
    number: {},
    unit: "layers",
    truth: (_, s) => {
      const reach = reachOf(STACKS[stack].map((side) => measure(s[side], s.L, s.causal)));
      const hops = reach.hops[query * s.L + token];
      return what === "hops" ? Math.max(0, hops) : (reach.diameter ?? 0);
    },
    then: { stack },
    because: "Now let the layers use something else.",
  });
  return Object.assign(question, { stack });
}

// --- all together ----------------------------------------------------------------------------------------

export default tf.explorer({
  fit(values) {
    // what a link brings
    for (const side of SIDES)
      if (values[side] && !tableLength(values[side]))
        values[side] = fit(values[side], values.L ?? 512);
    return values;
  },
  setup(app) {
    let peek = null;
    const actions = {
      peek(row) {
        if (row !== peek) {
          peek = row;
          app.redraw("peek");
        }
      },
      pick(i, j) {
        peek = null;
        app.set({ query: i, token: j });
      },
    };
    const setLength = (L) => {
      const values = {
        L,
        query: Math.min(app.get("query"), L - 1),
        token: Math.min(app.get("token"), L - 1),
      };
      for (const side of SIDES) values[side] = fit(app.get(side), L);
      app.set(values);
    };

    const wanted = el("span"),
      judgement = el("b", { role: "status" }); // the verdict alone is spoken, when it changes
    const goal = el("p", { className: "sl-goal", hidden: true }, wanted, judgement);
    app.top.after(goal);
    const brief = el("b", { className: "sl-brief", "aria-hidden": "true", hidden: true }); // the same for the eye, where the last controls are
    const tabs = app.knob("side", { hidden: true, into: app.picture });
    tabs.row.classList.add("sl-tabs");
    const cards = el("div", { className: "sl-cards" });
    app.picture.append(cards);
    const card = Object.fromEntries(SIDES.map((side) => [side, null]));
    for (const side of SIDES) {
      card[side] = makeCard(app, side, actions);
      cards.append(card[side].root);
    }

    app.knob("view");
    const length = app.knob("L", { scale: LENGTHS, write: setLength });
    const query = app.knob("query", { max: 63 });
    const token = app.knob("token", { max: 63 });
    app.knob("causal");

    const depth = makeDepth(app, actions),
      cost = makeCost(app);
    app.readouts.before(depth.root, cost.root);
    app.readouts.hidden = true;
    const question = questionOf(app);

    const data = {};
    let reach;
    return {
      draw(changed) {
        const s = app.all();
        s.d = app.get("d");
        const anew = SIDES.filter(
          (side) => !data[side] || changed.has(side) || changed.has("L") || changed.has("causal"),
        );
        for (const side of anew) data[side] = measure(s[side], s.L, s.causal);
        const panels = app.get("panels") || [],
          aim = app.get("goal");
        const stack = STACKS[s.stack].map((side) => data[side]);
        if (changed.has("stack") || STACKS[s.stack].some((side) => anew.includes(side)))
          reach = null;
        if (!reach && (panels.includes("depth") || aim)) reach = reachOf(stack);
        const fixed = SIDES.map((side) => tableLength(s[side])).find(Boolean);
        length.input.disabled = Boolean(fixed);
        query.limit(0, s.L - 1);
        token.limit(0, s.L - 1);
        app.prompt(app.get("prompt"));
        app.root.dataset.side = s.side;

        const at = { ...s, query: Math.min(peek ?? s.query, s.L - 1) };
        const words = SIDES.map((side) =>
          card[side].draw({ ...at, data: data[side], spec: s[side], changed }),
        );
        depth.root.hidden = !panels.includes("depth");
        cost.root.hidden = !panels.includes("cost");
        const quiet = question.open && question.stack === s.stack;
        depth.root.toggleAttribute("data-quiet", quiet);
        const more = depth.root.hidden || quiet ? "" : ` ${depth.draw(stack, at, reach)}.`;
        if (
          !cost.root.hidden &&
          (anew.length ||
            [...changed].some((name) => ["block", "theme", "size", "panels", "d"].includes(name)))
        )
          cost.draw(data, s);
        app.say(`A: ${words[0]}. B: ${words[1].replace(/^query \d+ /, "")}.${more}`);
        goal.hidden = brief.hidden = !aim;
        if (aim) {
          const { met, message } = verdict(aim, s.L, stack, reach);
          const wants = [];
          if (aim.max_hops !== undefined)
            wants.push(
              `every ${aim.causal ? "earlier token" : "token"} in ≤ ${aim.max_hops} ${aim.max_hops === 1 ? "hop" : "hops"}`,
            );
          if (aim.max_keys !== undefined) wants.push(`≤ ${aim.max_keys} keys a row`);
          if (aim.max_pairs !== undefined) wants.push(`≤ ${aim.max_pairs} pairs`);
          if (aim.causal) wants.push("causal");
          if (aim.L !== undefined) wants.push(`L = ${aim.L}`);
          goal.dataset.met = String(met);
          wanted.textContent = `Goal: ${wants.join(", ")}; layers use ${[...s.stack].join(" and ")}${s.stack.length > 1 ? " in turn" : ""}.`;
          const text = `${met ? "✓" : "✗"} ${message}`;
          if (judgement.textContent !== text) judgement.textContent = text;
          brief.dataset.met = String(met);
          brief.textContent = met ? "✓ Goal met" : "✗ Goal not met yet";
          if (!brief.isConnected) app.footer.querySelector(".tfx-said").before(brief);
          app.judged(met);
        }
      },
      python: () => pythonOf(app),
      copies: [["copy mask_mod", () => maskModOf(app), "mask_mod"]],
      // for tests: the numbers behind the picture
      numbers: () => ({
        data,
        reach: reach ?? reachOf(STACKS[app.get("stack")].map((side) => data[side])),
      }),
    };
  },
});
// for tests
export const counted = { bits, measure, reachOf, tiles: tilesOf };
export { coneOf, influenceOf, maskModOf, pythonOf, verdict };
