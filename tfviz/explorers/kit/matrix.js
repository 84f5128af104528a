// A matrix: queries down, keys across. Cells on a canvas, so that 512 × 512 is quick; heads, frames,
// handles and what lights up in SVG above it. Forbidden pairs are hatched.

// Paints the cells, a pixel for each (or for several, where there are too many), and scales them up.
function painter(app) {
  const store = document.createElement("canvas");
  const pen = store.getContext("2d");
  let last = "";
  let cells;
  return ({ rows, columns, bits, values, most = 1, signed, colour = "attention" }, room, ratio) => {
    const fold = Math.max(1, Math.ceil(Math.max(rows / room[1], columns / room[0]) / ratio));
    const [w, h] = [Math.ceil(columns / fold), Math.ceil(rows / fold)];
    const { colours } = app;
    const look = [rows, columns, fold, most, signed, colour, colours.page, colours.ink].join();
    if (cells === (bits ?? values) && look === last) return store;
    [cells, last] = [bits ?? values, look];
    [store.width, store.height] = [w, h];
    const image = pen.createImageData(w, h);
    const pixels = new Uint32Array(image.data.buffer);
    const ramp = (to) => range(65, (k) => word(mix(colours.page, to, k / 64)));
    const more = ramp(colours[colour] ?? colour);
    const less = signed ? ramp(mix(colours.page, colours.ink, 0.8)) : more;
    const shade = (v) => (v < 0 ? less : more)[Math.round(clamp(Math.abs(v) / most, 0, 1) * 64)];
    for (let y = 0; y < h; y++) {
      for (let x = 0; x < w; x++) {
        let all = 0;
        let some = 0;
        for (let a = y * fold; a < Math.min(rows, (y + 1) * fold); a++) {
          for (let b = x * fold; b < Math.min(columns, (x + 1) * fold); b++) {
            const k = a * columns + b;
            const value = bits ? bits[k] || Number.NaN : values[k];
            if (Number.isNaN(value)) continue;
            all += value;
            some++;
          }
        }
        if (!some) continue;
        // how many of the cells behind a pixel are kept shows as its strength, never below .4
        const kept = 0.4 + (0.6 * some) / (fold * fold);
        pixels[y * w + x] = bits ? more[Math.round(64 * kept)] : shade(all / some);
      }
    }
    pen.putImageData(image, 0, 0);
    return store;
  };
}

const SMALLEST = 8; // pixels: the size of the smallest numbers in cells
const EDGE = 8; // pixels beside and below the cells: as many as a handle there needs

// app.matrix({label, axes: ["i", "j"], tall, most: largest cell in pixels, pick(i, j), hover(i, j),
//   press(), paint(i, j, begun), move(i, j), bare: without heads})
//   -> {show({title, label, tall, rows, columns, bits | values, signed, most, colour, text(i, j) | true,
//        rowHeads, rowTails, columnHeads, rowColour, columnColour, row, column, at, over, frames, marks,
//        handles})}; keys move from (row, column), or from `at` where no row is framed
// paint is called for the cells under a pointer that is held down, and by the space bar for the cell to
// which arrow keys have led, which move is told.
// values, bits: all cells in one list, a list of rows, or (i, j) => number; NaN: a forbidden pair
// frames: [{row} | {column} | {cell: [i, j]} | {from: [i, j], to: [i, j]} | {}: all, with colour, term]
// over: [{runs: [[i, first j, last j], …], colour}] are painted over the cells, any number of them.
// marks: [{cells: [[i, j], …], term, colour}] are filled while their term is lit.
// A handle stands at [column, row] in cells: 3 is the edge before column 3, 3.5 its middle.
function matrix(app, options) {
  // where an axis has its name: in the middle, or beside the numbers that stand there, or nowhere
  const free = (start, size, taken, room) =>
    [0.5, 0.28, 0.72]
      .map((share) => start + share * size)
      .find((at) => taken.every((one) => Math.abs(at - one) > room));
  // the first and the last index, where the selected one leaves room
  const endsOf = (many, scale, selected, room) =>
    (many > 1 ? [0, many - 1] : [0]).filter((n) => Math.abs(selected - scale.at(n + 0.5)) > room);
  const {
    axes = ["i", "j"],
    pick,
    hover,
    press,
    paint: draw,
    move: led,
    bare: headless,
    most: largest = 44,
    tall,
  } = options;
  const view = pictureOn(app, { className: "tfx-grid", ...options });
  const canvas = el("canvas", { className: "tfx-cells", ariaHidden: "true" });
  view.sheet.prepend(canvas);
  const [outside, inside, top] = ["axes", "marks", "handles"].map((name) =>
    svg("g", { class: `tfx-${name}` }),
  );
  view.root.append(outside, inside, top);
  const hold = handlesOn(app, top, view.place);
  const paintCells = painter(app);
  let now;
  let at = [0, 0];
  if (pick || draw) {
    view.root.setAttribute("role", "application");
    view.root.setAttribute("tabindex", "0");
    view.root.dataset.lmSuppressShortcuts = "true";
  }

  if (press) {
    // a button with words in it would be called by these
    view.root.setAttribute("role", headless ? "button" : "application");
    view.root.setAttribute("tabindex", "0");
    view.root.addEventListener("click", press);
    view.root.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press();
    });
  }

  function show(spec) {
    const { rows, columns = rows } = spec;
    const filled = (x, kind) => {
      if (typeof x !== "function") return x?.[0]?.length ? kind.from(x.flat()) : x;
      return kind.from({ length: rows * columns }, (_, n) =>
        x(Math.floor(n / columns), n % columns),
      );
    };
    const [values, bits] = [filled(spec.values, Float64Array), filled(spec.bits, Uint8Array)];
    const { rowColour = "query", columnColour = "key" } = spec;
    view.root.toggleAttribute("data-paint", Boolean(draw));
    view.named(spec.title, spec.label);
    const rowHeads = spec.rowHeads ?? [String(rows - 1), axes[0]];
    const long = Math.max(...rowHeads.map((text) => widthOf(app, text, true)));
    const left = headless ? 3 : Math.min(view.width * 0.42, (spec.rowHeads ? 14 : 20) + long);
    const slanted = spec.columnHeads && Math.max(...spec.columnHeads.map((t) => t.length)) > 5;
    const up = headless ? 3 : slanted ? 56 : 26;
    const tails = (spec.rowTails ?? []).map((text) => 8 + widthOf(app, text, true));
    const heads = spec.columnHeads ?? [String(columns - 1)];
    const half = (widthOf(app, heads.at(-1), true) - (view.width - left) / columns) / 2;
    const right = Math.max(EDGE, slanted ? 0 : half) + Math.max(0, ...tails);
    const room = view.width - left - right;
    const limit = Math.min(
      spec.tall ?? tall ?? (view.width < 480 ? SMALL : 420),
      view.phone && app.lead === view.box ? SMALL - EDGE : 420,
    );
    const cell = Math.min(room / columns, (squeezed(app, limit) - up) / rows, largest);
    const [wide, high] = [cell * columns, cell * rows];
    view.sized(up + high + EDGE);
    // the cells, in whole device pixels
    const ratio = globalThis.devicePixelRatio || 1;
    const size = { width: Math.round(wide * ratio), height: Math.round(high * ratio) };
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    // in shares of the sheet, so that the cells stay under their lines on narrower paper too
    const share = (part, whole) => `${((100 * part) / whole).toFixed(4)}%`;
    Object.assign(canvas.style, {
      left: share(left, view.width),
      top: share(up, view.height),
      width: share(wide, view.width),
      height: share(high, view.height),
    });
    const ctx = canvas.getContext("2d");
    const store = paintCells({ ...spec, columns, values, bits }, [wide, high], ratio);
    ctx.clearRect(0, 0, canvas.width, canvas.height); // the hatching lets through what was there
    ctx.fillStyle = hatched(app, ctx, ratio);
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(store, 0, 0, canvas.width, canvas.height);
    const edge = (k) => Math.round(k * cell * ratio);
    for (const { runs, colour } of spec.over ?? []) {
      ctx.fillStyle = app.colours[colour];
      for (const [i, from, to] of runs) {
        const width = Math.max(1, edge(to + 1) - edge(from));
        ctx.fillRect(edge(from), edge(i), width, Math.max(1, edge(i + 1) - edge(i)));
      }
    }
    if (Math.max(rows, columns) <= 32 && cell > 6) {
      ctx.fillStyle = mix(app.colours.page, app.colours.grid, 0.8);
      const thin = Math.max(1, Math.round(ratio * 0.75));
      for (let k = 1; k < columns; k++)
        ctx.fillRect(Math.round(k * cell * ratio), 0, thin, canvas.height);
      for (let k = 1; k < rows; k++)
        ctx.fillRect(0, Math.round(k * cell * ratio), canvas.width, thin);
    }
    const X = { at: (j) => left + j * cell, back: (px) => (px - left) / cell, ends: [0, columns] };
    const Y = { at: (i) => up + i * cell, back: (py) => (py - up) / cell, ends: [0, rows] };
    now = { rows, columns, cell, left, up };
    const [i, j] = spec.at ?? [spec.row ?? at[0], spec.column ?? at[1]];
    at = [clamp(i, 0, rows - 1), clamp(j, 0, columns - 1)];

    const out = [];
    const ofRow = (i) => ({ "data-row": i });
    const ofColumn = (j) => ({ "data-column": j });
    const sized = (colour, size) =>
      `fill: ${paint(colour)}${size < 12 ? `; font-size: ${size.toFixed(1)}px` : ""}`;
    const write = (text, x, y, anchor, colour, bold, /** @type {any} */ options = {}) => {
      const { size = 12, ...more } = options;
      const look = { class: bold ? "tfx-bold" : "", style: sized(colour, size) };
      out.push(mark("text", { x, y, "text-anchor": anchor, ...look, ...more }, text));
    };
    // heads: words, or the first and last index, the letters, and the selected ones
    const ri = spec.row === undefined ? -99 : Y.at(spec.row + 0.5);
    const cj = spec.column === undefined ? -99 : X.at(spec.column + 0.5);
    // words that are too large for their cells are set smaller, down to a size that can be read
    const fitting = (wanted) => clamp((12 * cell) / wanted, SMALLEST, 12);
    const rowSize = fitting(11);
    // those of words that have room, with the selected one
    const roomy = (texts, room, selected) => {
      const every = Math.ceil(room / cell);
      const near = (n) => n !== selected && Math.abs(n - selected) < every;
      return texts.map((text, n) => (n === selected || (n % every === 0 && !near(n)) ? text : ""));
    };
    if (spec.rowHeads) {
      roomy(spec.rowHeads, rowSize - 2, spec.row).forEach((text, i) => {
        const y = Y.at(i + 0.5) + rowSize / 3;
        const more = { ...ofRow(i), size: rowSize };
        write(text, left - 8, y, "end", rowColour, i === spec.row, more);
      });
    } else {
      if (ri >= 0) write(String(spec.row), left - 8, ri + 4, "end", "query", true, ofRow(spec.row));
      const ends = endsOf(rows, Y, ri, 14);
      for (const i of ends)
        write(String(i), left - 8, Y.at(i + 0.5) + 4, "end", "muted", false, ofRow(i));
      const taken = [ri, ...ends.map((i) => Y.at(i + 0.5))];
      const y = free(up, high, taken, 12);
      if (y) write(axes[0], left - 8, y + 4, "end", "query", true);
    }
    if (spec.columnHeads) {
      const widest = Math.max(...heads.map((text) => widthOf(app, text)));
      const size = slanted ? 12 : fitting(widest);
      const room = slanted ? 10 : (widest * size) / 12;
      roomy(heads, Math.floor(room), spec.column).forEach((text, j) => {
        const x = X.at(j + 0.5);
        const turn = slanted && `rotate(-45 ${x} ${up - 8})`;
        const more = { ...ofColumn(j), transform: turn, size };
        write(text, x, up - 8, slanted ? "start" : "middle", "key", j === spec.column, more);
      });
    } else {
      if (cj >= 0)
        write(String(spec.column), cj, up - 8, "middle", columnColour, true, ofColumn(spec.column));
      const ends = endsOf(columns, X, cj, 22);
      for (const j of ends)
        write(String(j), X.at(j + 0.5), up - 8, "middle", "muted", false, ofColumn(j));
      const taken = [cj, ...ends.map((j) => X.at(j + 0.5))];
      const x = free(left, wide, taken, 12 + widthOf(app, axes[1], true) / 2);
      if (x) write(axes[1], x, up - 8, "middle", "key", true);
    }
    roomy(spec.rowTails ?? [], rowSize - 2, spec.row).forEach((text, i) => {
      const y = Y.at(i + 0.5) + rowSize / 3;
      const more = { ...ofRow(i), size: rowSize };
      write(text, left + wide + 8, y, "start", "value", i === spec.row, more);
    });
    redrawn(outside, headless ? [] : out);

    const nodes = [];
    const rect = (i, j, tallness, width, props) =>
      mark("rect", {
        x: X.at(j),
        y: Y.at(i),
        width: Math.max(1, width * cell),
        height: Math.max(1, tallness * cell),
        ...props,
      });
    const rim = { class: "tfx-rim", "data-rows": rows, "data-columns": columns };
    nodes.push(rect(0, 0, rows, columns, rim));
    for (const { cells, term, colour, part } of spec.marks ?? []) {
      if (app.hides(part)) continue;
      const style = `fill: ${paint(colour ?? "key")}`;
      const inner = cells.map(([i, j]) => rect(i, j, 1, 1, {}));
      nodes.push(mark("g", { class: "tfx-some", "data-term": term, style }, ...inner));
    }
    // what a question holds back: a soft field instead of the cell
    const held = (i, j) => spec.part && app.hides(spec.part(i, j));
    const covered = [];
    for (let i = 0; spec.part && i < rows; i++)
      for (let j = 0; j < columns; j++) if (held(i, j)) covered.push([i, j]);
    for (const [i, j] of covered) {
      nodes.push(rect(i, j, 1, 1, { class: "tfx-held" }));
      if (cell < 16 && covered.length > 1) continue;
      const at = { x: X.at(j + 0.5), y: Y.at(i + 0.5) + 4, "text-anchor": "middle" };
      nodes.push(mark("text", at, "?"));
    }
    const text = spec.text ?? (Math.max(rows, columns) <= 8 && values ? true : null);
    if (text && cell >= (text === true ? 22 : 12)) {
      const most = spec.most ?? 1;
      const written = [];
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          const value = (values ?? bits)[i * columns + j];
          if (Number.isNaN(value) || held(i, j)) continue;
          const ink = Math.abs(value) / most > 0.5 ? "page" : "ink";
          const words = text === true ? sig(value, 2).replace("-", "−") : text(i, j);
          if (words) written.push({ words, ink, x: (j + 0.5) * cell, y: (i + 0.5) * cell });
        }
      }
      // all in one size, in which the widest fits its cell; none where that would be too small to read
      const different = [...new Set(written.map(({ words }) => words))];
      const widest = Math.max(0, ...different.map((words) => widthOf(app, words)));
      const size = Math.min(12, (12 * (cell - 2)) / widest);
      if (size < SMALLEST) written.length = 0;
      for (const one of written) one.y += size / 3;
      if (written.length > 64) {
        // into the picture: to place so many words would take longer
        Object.assign(ctx, { font: `${size * ratio}px ${app.font}`, textAlign: "center" });
        for (const { words, ink, x, y } of written) {
          ctx.fillStyle = app.colours[ink];
          ctx.fillText(words, x * ratio, y * ratio);
        }
      } else {
        for (const { words, ink, x, y } of written) {
          const style = sized(ink, size);
          const props = { x: left + x, y: up + y, "text-anchor": "middle", style };
          nodes.push(mark("text", props, words));
        }
      }
    }
    const frames = [...(spec.frames ?? [])].filter(({ part }) => !app.hides(part));
    if (spec.column !== undefined) frames.push({ column: spec.column, colour: columnColour });
    if (spec.row !== undefined) frames.push({ row: spec.row, colour: "query" });
    frames.push(...(view.question?.marks() ?? []));
    for (const { row, column, cell: one, from, to, colour, term, dash } of frames) {
      const style = `stroke: ${paint(colour ?? "ink")}`;
      const props = { class: "tfx-ring", style, "data-term": term, "stroke-dasharray": dash };
      const place =
        row !== undefined
          ? [row, 0, 1, columns]
          : column !== undefined
            ? [0, column, rows, 1]
            : one
              ? [...one, 1, 1]
              : from
                ? [...from, to[0] - from[0] + 1, to[1] - from[1] + 1]
                : [0, 0, rows, columns];
      const ring = rect(...place, props);
      if (cell < 8) {
        // around small cells, not over them
        ring.props.x -= 1.25;
        ring.props.y -= 1.25;
        ring.props.width += 2.5;
        ring.props.height += 2.5;
      }
      nodes.push(ring);
    }
    redrawn(inside, nodes);
    hold([...(spec.handles ?? []), ...(view.question?.handles() ?? [])], X, Y, true);
  }

  /** @returns {[number, number] | null} */
  const cellAt = (event) => {
    if (!now) return null;
    const [x, y] = view.place(event);
    const [i, j] = [Math.floor((y - now.up) / now.cell), Math.floor((x - now.left) / now.cell)];
    const near = i >= 0 && i < now.rows && j < now.columns && x >= 0;
    return near ? [i, Math.max(0, j)] : null;
  };
  if (hover) {
    view.root.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && !view.root.querySelector("[data-held]"))
        hover(...(cellAt(event) ?? []));
    });
    view.root.addEventListener("pointerleave", () => hover());
  }
  view.root.addEventListener("click", (event) => {
    if (!now || !view.question?.picks() || event.target.closest(".tfx-handle")) return;
    const [x, y] = view.place(event);
    view.question.to((x - now.left) / now.cell, (y - now.up) / now.cell);
  });
  if (pick) {
    view.root.addEventListener("click", (event) => {
      if (view.question?.picks()) return;
      const cell = event.target.closest(".tfx-handle") ? null : cellAt(event);
      if (cell) pick(...cell);
    });
    view.root.addEventListener("keydown", (event) => {
      app.settle();
      const moved = now && keyed(event, at, now.rows, now.columns);
      if (!moved) return;
      at = moved; // the next key may come before the next frame
      pick(...at);
    });
  }
  if (draw) {
    let last = "";
    const drawn = (event, begun) => {
      const cell = cellAt(event);
      if (!cell || (!begun && String(cell) === last)) return;
      [at, last] = [cell, String(cell)];
      draw(...cell, begun);
    };
    view.root.addEventListener("pointerdown", (event) => {
      if (event.button || !cellAt(event)) return;
      view.root.setPointerCapture(event.pointerId);
      drawn(event, true);
    });
    view.root.addEventListener("pointermove", (event) => {
      if (view.root.hasPointerCapture(event.pointerId)) drawn(event, false);
    });
    view.root.addEventListener("keydown", (event) => {
      app.settle();
      const moved = now && keyed(event, at, now.rows, now.columns);
      if (moved) {
        at = moved;
        led?.(...at);
      } else if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        draw(...at, true);
      }
    });
  }
  return Object.assign(view, { canvas, show });
}

const tiles = new Map();
function hatched(app, ctx, ratio) {
  const colour = mix(app.colours.page, app.colours.grid, 0.75);
  const key = `${colour}|${ratio}`;
  if (!tiles.has(key)) {
    const size = Math.round(6 * ratio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour;
    pen.lineWidth = ratio;
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift, size);
      pen.lineTo(shift + size, 0);
    }
    pen.stroke();
    tiles.set(key, tile);
  }
  return ctx.createPattern(tiles.get(key), "repeat");
}
