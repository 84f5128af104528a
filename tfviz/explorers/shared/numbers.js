// Numbers that travel as text, and a function of them that browsers lack.

const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// One number of half precision, from its two bytes.
function half(low, high) {
  const bits = low | (high << 8);
  const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
  const size = exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction;
  return bits >> 15 ? -size : size;
}

const halvesOf = (raw) =>
  Float64Array.from({ length: raw.length / 2 }, (_, k) => half(raw[2 * k], raw[2 * k + 1]));

// Numbers of two bytes, half precision, from base64.
const halves = (text) => halvesOf(bytesOf(text));

// What `tfviz.stored.weights.pack` has packed: the numbers of each matrix by its name, row after row.
function unpacked({ numbers, shapes, data }) {
  const raw = bytesOf(data);
  let at = 0;
  const next = (n) => raw.subarray(at, (at += n));
  const weights = {};
  for (const [name, [rows = 1, ...rest]] of shapes) {
    const wide = rest.reduce((all, n) => all * n, 1);
    const size = rows * wide;
    if (numbers === "exact") {
      weights[name] = new Float64Array(next(8 * size).slice().buffer);
    } else if (numbers === "half" || !rest.length) {
      weights[name] = halvesOf(next(2 * size));
    } else {
      const scales = halvesOf(next(2 * rows)); // one for each row of whole numbers
      const whole = new Int8Array(next(size).slice().buffer);
      weights[name] = Float64Array.from(whole, (x, k) => x * scales[Math.floor(k / wide)]);
    }
  }
  return weights;
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
