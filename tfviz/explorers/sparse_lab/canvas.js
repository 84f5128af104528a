// Canvases: the lab paints its own pixels.

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
