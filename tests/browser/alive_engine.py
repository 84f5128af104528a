"""V8 alone, with a GPT of `shared/alive.js` in it: what tests and measurements ask it."""

from __future__ import annotations

import json
from typing import Any

from py_mini_racer import MiniRacer

from tfviz.explorers.base import HERE, KIT

KIT_PARTS = "clamp, range, keep, sum, dot, norm, plus, mean, best, softmax, product"
ATOB = """
function atob(text) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const sixes = [...text.replace(/=+$/, "")].map((x) => letters.indexOf(x));
  const byte = (k) => {
    const [n, left] = [Math.floor(k / 6), k % 6];
    return String.fromCharCode((((sixes[n] << 6) | (sixes[n + 1] ?? 0)) >> (4 - left)) & 255);
  };
  return Array.from({ length: Math.floor((sixes.length * 6) / 8) }, (_, k) => byte(8 * k)).join("");
}
"""
"""Of what a page has and V8 alone has not."""
ASK = """
function ask(model, tokens, off) {
  const start = alive(model);
  const run = start({ off });
  const plain = (_, x) => (ArrayBuffer.isView(x) ? Array.from(x) : x);
  const traces = tokens.map((token) => run.step(token));
  const lens = traces.map(({ stream }) => start.lens(stream.at(-1)));
  const early = start.lens(traces.at(-1).stream[1]).p;
  return JSON.stringify({ traces, lens, early, weights: start.weights }, plain);
}
"""
FILES = ("numbers", "parts", "more_parts", "alive")


def source(name: str) -> str:
    """A file of `shared/`."""
    return (HERE / "shared" / f"{name}.js").read_text("utf-8")


def engine(**broken: str) -> MiniRacer:
    """V8 with the runtime; `broken` has other text for some of its files."""
    v8 = MiniRacer()
    v8.eval((KIT / "maths.js").read_text("utf-8"))
    v8.eval(f"const tf = {{ {KIT_PARTS} }};{ATOB}{ASK}")
    v8.eval("\n".join(broken.get(name, source(name)) for name in FILES))
    return v8


def run(v8: MiniRacer, told: dict[str, Any], tokens: list[int], off: Any = ()) -> dict[str, Any]:
    """{traces, lens, early, weights} of a model that was handed over, reading these tokens."""
    answer: dict[str, Any] = json.loads(
        str(v8.eval(f"ask({json.dumps(told)}, {json.dumps(tokens)}, {json.dumps(list(off))})"))
    )
    return answer
