// A GPT of the library in the page: pre-norm blocks, GELU, the table of tokens also as its last matrix.

// Numbers of two bytes, half precision, from base64.
function halves(text) {
  const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from({ length: raw.length / 2 }, (_, k) => {
    const bits = raw[2 * k] | (raw[2 * k + 1] << 8);
    const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction;
    return bits >> 15 ? -size : size;
  });
}

// The share of the normal distribution that lies below x.
function normalBelow(x) {
  if (Math.abs(x) > 8) return Number(x > 0);
  let [term, all] = [x, x]; // x + x³/3 + x⁵/(3·5) + …, all of one sign
  for (let n = 3; Math.abs(term) > 1e-17 * Math.abs(all); n += 2) {
    term *= (x * x) / n;
    all += term;
  }
  return 0.5 + (all * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

// What is wrong with a text for a model that knows these letters only; "" if nothing is.
function unread(text, letters, least, most) {
  const strange = [...new Set(text)].filter((x) => !letters.includes(x)).map((x) => `“${x}”`);
  if (strange.length) {
    const some = strange.slice(0, 3).join(", ");
    return `The model has never read ${some}: only small letters a to z, and spaces.`;
  }
  if (text.length < least) return `The model needs ${least > 1 ? `${least} letters` : "a letter"}.`;
  return text.length > most ? `${most} letters are the most.` : "";
}

// What a GPT makes of tokens, one after the other: gpt(it)() -> (token) => {logits, maps}, of each
// attention the weights of this row, [layer][head]. `it` is what `letter_page.for_page` gives: all
// weights in the order of `shapes`, and the formula of its positions. Keys and values are kept.
function gpt({ weights, shapes, d, h, layers, scale, entry }) {
  const position = new Function(`return ${entry}`)(); // (i, c, d, base) => p_ic
  const numbers = halves(weights);
  const W = {};
  let at = 0;
  for (const [name, size] of shapes) {
    W[name] = numbers.subarray(at, at + size);
    at += size;
  }
  const table = W["embed.weight"];
  const times = (x, M) => tf.product(x, M, 1, x.length, M.length / x.length, { right: true });
  const affine = (x, name) => tf.plus(times(x, W[`${name}.weight`]), W[`${name}.bias`]);
  const normed = (x, name) => {
    const { Y } = tf.layerNorm(x, 1, d);
    return Y.map((y, c) => y * W[`${name}.weight`][c] + W[`${name}.bias`][c]);
  };
  const wide = d / h;
  const attend = (x, name, kept) => {
    const qkv = affine(x, `${name}.W_qkv`);
    kept.push({ K: qkv.subarray(d, 2 * d), V: qkv.subarray(2 * d) });
    const Z = new Float64Array(d);
    const A = tf.range(h, (n) => {
      const part = (row) => row.subarray(n * wide, (n + 1) * wide);
      const weights = tf.softmax(kept.map(({ K }) => tf.dot(part(qkv), part(K)) / Math.sqrt(wide)));
      for (let j = 0; j < kept.length; j++) {
        const V = part(kept[j].V);
        for (let c = 0; c < wide; c++) Z[n * wide + c] += weights[j] * V[c];
      }
      return weights;
    });
    return { Y: affine(Z, `${name}.W_o`), A };
  };
  return () => {
    const kept = tf.range(layers, () => []);
    return (token) => {
      const i = kept[0].length;
      const maps = [];
      let X = table
        .slice(token * d, (token + 1) * d)
        .map((x, c) => x + scale * position(i, c, d, 10_000));
      for (let n = 0; n < layers; n++) {
        const block = `stack.blocks.${n}`;
        const { Y, A } = attend(normed(X, `${block}.norms.0`), `${block}.attend`, kept[n]);
        maps.push(A);
        X = tf.plus(X, Y);
        const H = affine(normed(X, `${block}.norms.1`), `${block}.feed.W_1`);
        const loud = H.map((x) => x * normalBelow(x));
        X = tf.plus(X, affine(loud, `${block}.feed.W_2`));
      }
      return { logits: times(normed(X, "stack.norm"), table), maps };
    };
  };
}
