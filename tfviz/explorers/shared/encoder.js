// A stack of the library in the page: pre-norm blocks over a whole sequence at once, GELU.

// The numbers of each matrix by its name, from what `pack` made: encoder(model)(weights) -> tools.
// `model` is {shapes, d, h, layers}; `at` stands in front of the names of the stack.
function encoder({ shapes, d, h, layers }, at = "stack") {
  const wide = d / h;
  return tf.keep((text) => {
    const numbers = halves(text);
    const W = {};
    let start = 0;
    for (const [name, size] of shapes) {
      W[name] = numbers.subarray(start, start + size);
      start += size;
    }
    // Rows X (L × the width of the matrix) times a matrix, plus its bias if it has one.
    const affine = (X, name, L) => {
      const [matrix, bias] = [W[`${name}.weight`], W[`${name}.bias`]];
      const p = bias?.length ?? matrix.length / (X.length / L);
      const Y = tf.product(X, matrix, L, X.length / L, p, { right: true });
      return bias ? Y.map((y, k) => y + bias[k % p]) : Y;
    };
    const normed = (X, name, L) => {
      const [scale, shift] = [W[`${name}.weight`], W[`${name}.bias`]];
      return tf.layerNorm(X, L, d).Y.map((y, k) => y * scale[k % d] + shift[k % d]);
    };
    // What each head finds, side by side, times W^o; and the map of each head.
    const attend = (X, name, L, may) => {
      const qkv = affine(X, `${name}.W_qkv`, L);
      const row = (i, part, m) => {
        const first = i * 3 * d + part * d + m * wide;
        return qkv.subarray(first, first + wide);
      };
      const Z = new Float64Array(L * d);
      const A = tf.range(h, (m) =>
        tf.range(L, (i) => {
          const score = (j) => tf.dot(row(i, 0, m), row(j, 1, m)) / Math.sqrt(wide);
          const scores = tf.range(L, (j) => (may(i, j) ? score(j) : Number.NEGATIVE_INFINITY));
          const weights = Array.from(tf.softmax(scores));
          weights.forEach((weight, j) => {
            const value = row(j, 2, m);
            for (let c = 0; c < wide; c++) Z[i * d + m * wide + c] += weight * value[c];
          });
          return weights;
        }),
      );
      return { Y: affine(Z, `${name}.W_o`, L), A };
    };
    // Rows that enter -> the rows that leave, normed, and all maps, [block][head][i][j].
    const stack = (X, L, may = () => true) => {
      const maps = tf.range(layers, (n) => {
        const block = `${at}.blocks.${n}`;
        const { Y, A } = attend(normed(X, `${block}.norms.0`, L), `${block}.attend`, L, may);
        X = tf.plus(X, Y);
        const inner = affine(normed(X, `${block}.norms.1`, L), `${block}.feed.W_1`, L);
        const loud = inner.map((x) => x * normalBelow(x));
        X = tf.plus(X, affine(loud, `${block}.feed.W_2`, L));
        return A;
      });
      return { X: normed(X, `${at}.norm`, L), maps };
    };
    return { W, affine, stack };
  });
}

// Pixels of a square image, row by row -> patches of P × P, one after the other in one list.
function patchesOf(pixels, side, P) {
  const across = side / P;
  return tf.range(pixels.length, (k) => {
    const [n, inside] = [Math.floor(k / (P * P)), k % (P * P)];
    const y = Math.floor(n / across) * P + Math.floor(inside / P);
    return pixels[y * side + (n % across) * P + (inside % P)];
  });
}
