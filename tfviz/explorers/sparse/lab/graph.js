// One layer as a graph: queries above, keys below, an edge for every allowed pair.
function makeGraph(app, parent, letter, actions) {
  let most = 300; // pixels
  const plane = app.plane({ into: parent, height: (width) => clamp(width - 10, 160, most) });
  plane.root.addEventListener("pointerleave", () => actions.peek());
  let edges; // of the mask at hand, thinned where there are very many
  let drawn;
  return {
    box: plane.box,
    draw(data, query, token, label, tall) {
      const { L } = data;
      most = tall;
      const skip = Math.ceil(data.pairs / 4000);
      const edge = (i, j) => [[i, 1], [j, 0], GAP];
      const from = (i) => Array.from(data.keysOf(i), (j) => edge(i, j)).flat();
      if (drawn !== data) edges = tf.range(Math.ceil(L / skip), (n) => from(n * skip)).flat();
      drawn = data;
      const faint = clamp(1.1 - Math.log10(1 + data.pairs) / 4.4, 0.16, 0.5);
      const size = clamp((0.36 * plane.width) / L, 0.75, 4.5);
      const row = (y) => tf.range(L, (j) => [j, y]);
      plane.show({
        label,
        title: skip > 1 ? `One query in ${skip} is drawn` : "",
        x: { from: -0.5, to: L - 0.5, bare: true },
        y: { from: -0.14, to: 1.14, bare: true },
        hover: (j, y) => {
          actions.peek(y > 0.5 ? j : undefined);
          return `${y > 0.5 ? "query" : "token"} ${j}`;
        },
        pick: (j, y) => app.set(y > 0.5 ? "query" : "token", j),
        marks: [
          { line: edges, colour: mix(app.colours.page, app.colours.attention, faint), wide: 0.6 },
          { line: from(query), colour: "attention", wide: 1.5 },
          { points: row(1), colour: mix(app.colours.page, app.colours.query, 0.55), size },
          { points: row(0), colour: mix(app.colours.page, app.colours.key, 0.45), size },
          { points: Array.from(data.keysOf(query), (j) => [j, 0]), colour: "key", size: size + 1 },
          endsOf(`graph ${letter}`, query, token, L, 1),
        ],
      });
    },
  };
}

// The query above and the token below, to be dragged, with their names.
function endsOf(where, query, token, L, top) {
  const name = (text, j, y, dy, colour) => {
    const align = j < 0.15 * L ? "start" : j > 0.85 * L ? "end" : "middle";
    return { text, at: [j, y], dy, align, colour, bold: true };
  };
  return [
    name(`query ${query}`, query, top, -12.5, "query"),
    name(`token ${token}`, token, 0, 17, "key"),
    { handle: [query, top], knob: "query", name: `query, ${where}`, colour: "query" },
    { handle: [token, 0], knob: "token", name: `token, ${where}`, colour: "key" },
  ];
}
