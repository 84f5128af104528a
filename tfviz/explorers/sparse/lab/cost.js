// Cost of one layer, in pairs, blocks, operations and bytes, and the pairs over the length.

const COUNTED = [16, 32, 64, 128, 256, 512]; // lengths of the curves

function makeCost(app) {
  const root = el("div", { role: "group", className: "sl-cost", "aria-label": "cost" });
  const note = el("p", { className: "sl-note" });
  const columns = ["", "pairs", "share", "blocks", "FLOPs", "scores"];
  const table = app.table({ caption: "One layer, one head", columns, into: root });
  root.append(note);
  app.knob("block", { into: root });
  const curve = app.plane({ into: root, height: (width) => Math.min(260, 110 + 0.35 * width) });
  let timer;
  let lines;
  let counted;
  app.cleanup.push(() => clearTimeout(timer));

  function flops(n) {
    const units = ["", "k", "M", "G", "T"];
    let k = 0;
    while (n >= 1000 && k < 4) {
      n /= 1000;
      k++;
    }
    return `${sig(n)} ${units[k]}`.trim();
  }

  // The pairs at several lengths, but where a parameter is out of range.
  function linesOf(state) {
    const points = (spec) => {
      const fixed = tableLength(spec);
      return (fixed ? [fixed] : COUNTED)
        .filter((L) => fitsAt(spec, L))
        .map((L) => [L, measure(spec, L, state.causal).pairs]);
    };
    return { full: COUNTED.map((L) => [L, L * L]), A: points(state.left), B: points(state.right) };
  }

  function drawCurve() {
    const look = {
      full: { colour: "muted" },
      A: { colour: "attention" },
      B: { colour: "attention", dash: "5 4" },
    };
    const rise = ([[L0, p0], [L1, p1]]) => Math.log(p1 / p0) / Math.log(L1 / L0);
    const ends = Object.entries(lines).map(([name, points]) => {
      if (!points.length) return `${name} fits none of these lengths`;
      const slope = points.length > 1 ? ` with slope ${sig(rise(points.slice(-2)), 2)}` : "";
      return `${name} ends at ${points.at(-1)[1]}${slope}`;
    });
    curve.show({
      label: `Pairs for each length L with these parameters; both axes are logarithmic. ${ends.join("; ")}.`,
      x: { label: "L (log scale)", log: true, from: 14, to: 560, ticks: [16, 64, 256, 512] },
      y: {
        label: "pairs (log scale)",
        log: true,
        from: 14,
        to: 3e5,
        ticks: [100, 1e3, 1e4, 1e5],
        format: (pairs) => (pairs < 1e3 ? String(pairs) : `${pairs / 1e3}k`),
      },
      marks: Object.entries(lines).map(([name, line]) => {
        return line.length > 0 && { line, name, bold: true, dots: true, ...look[name] };
      }),
    });
  }

  return {
    root,
    draw(data, state) {
      const { L, block, d } = state;
      const row = (head, pairs, blocks) => ({
        head,
        cells: [
          tf.count(pairs),
          `${sig((100 * pairs) / L / L)} %`,
          blocks,
          flops(4 * d * pairs),
          tf.bytes(4 * pairs),
        ],
      });
      const rows = SIDES.flatMap((side) => {
        const tiles = tilesOf(data[side], block);
        const blocks = `${tf.count(tiles.blocks)} of ${tf.count(tiles.all)}`;
        return [
          row(NAME[side], data[side].pairs, ""),
          row(`${NAME[side]}, blocks`, tiles.pairs, blocks),
        ];
      });
      table.show([...rows, row("full", L * L, tf.count(Math.ceil(L / block) ** 2))]);
      note.textContent = `L = ${L}, one head of width ${d}, scores in float32. In blocks of ${block}, a block with even one allowed pair is computed in full.`;
      const key = JSON.stringify([state.left, state.right, state.causal]);
      const work = () => {
        lines = linesOf(state);
        drawCurve();
      };
      if (key !== counted) {
        counted = key;
        clearTimeout(timer);
        if (lines)
          timer = setTimeout(work, 180); // not while a slider is moving
        else work();
      } else drawCurve();
    },
  };
}
