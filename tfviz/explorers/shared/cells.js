// The cells of a matrix as marks of a plane: what is alike in shade is one outline, so that many cells are few
// marks. `at` is the upper left corner on a plane whose y runs upwards, and `cell` the side, or [width, height].
function cells(values, { at: [left, top], cell, gap = 1, colour = "attention", most = 1 }) {
  const [wide, high] = Array.isArray(cell) ? cell : [cell, cell];
  const shades = new Map();
  values.forEach((row, i) => {
    row.forEach((value, j) => {
      const share = Math.round(25 * tf.clamp(value / most, -1, 1)) * 4; // per cent; below 0 in ink
      const corner = [left + j * wide, top - i * high];
      const outline = tf.box(corner[0], corner[0] + wide - gap, corner[1] - high + gap, corner[1]);
      if (!shades.has(share)) shades.set(share, []);
      shades.get(share).push(...outline, [Number.NaN, Number.NaN]);
    });
  });
  return [...shades].map(([share, shape]) => ({
    shape: shape.slice(0, -1),
    colour: tf.faint(share < 0 ? "ink" : colour, Math.max(6, Math.abs(share))),
    strength: 1,
  }));
}
