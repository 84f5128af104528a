"""How long a GPT in the page takes for a token, and how many bytes it weighs.

    PYTHONPATH=scripts:tests:book/_ext python bench/alive.py

A model as large as that of the stories, with random weights: 140 words, d = 64, h = 4, N = 3, RMS,
pre-norm, GELU, in V8 alone. A text is read five times; shown is the fastest of the last four, in ms
of processor time for a token, with all that the trace of a token holds.
"""

from __future__ import annotations

import gzip
import json
import time

import torch
from browser.alive_engine import FILES, engine, source
from py_mini_racer import MiniRacer

from tfviz.basics.layer_norm_pre_post import RMSNorm
from tfviz.basics.pointwise_mlp import SwiGLU
from tfviz.compressed.linear_transformer import LinearAttention
from tfviz.models.gpt import GPT
from tfviz.patterns import sliding_window
from tfviz.position.rope import Rope
from tfviz.stored.page_gpt import handed_over

VARIANTS = {
    "base": {"core": Rope},
    "last 8": {"core": Rope, "pattern": sliding_window(lookback=7)},
    "linear": {"core": LinearAttention},
    "SwiGLU": {"core": Rope, "feed": SwiGLU},
}
READ = """
function read(L) {
  const run = start();
  for (let i = 0; i < L; i++) run.step(i % 140);
}
"""


def a_token(v8: MiniRacer, L: int) -> float:
    """ms of processor time for a token of a text of L."""
    times = []
    for _ in range(5):
        before = time.process_time()
        v8.eval(f"read({L})")
        times.append(1000 * (time.process_time() - before) / L)
    return min(times[1:])


def main() -> None:
    torch.manual_seed(0)
    code = "".join(source(name) for name in FILES).encode()
    print(f"the runtime: {len(gzip.compress(code)) / 1024:.1f} KiB with gzip\n")
    print(f"{'':8} {'weights':>8} {'KiB':>6} {'gzip':>6} {'L = 64':>8} {'L = 128':>8}")
    for name, told in VARIANTS.items():
        model = GPT(140, 64, 4, 3, norm=RMSNorm, **told)  # type: ignore[arg-type]
        text = json.dumps(handed_over(model))
        v8 = engine()
        v8.eval(f"const start = alive({text});{READ}")
        times = [a_token(v8, L) for L in (64, 128)]
        size, packed = len(text) / 1024, len(gzip.compress(text.encode())) / 1024
        many = sum(x.numel() for x in model.parameters())
        print(f"{name:8} {many:8,} {size:6.0f} {packed:6.0f} {times[0]:8.2f} {times[1]:8.2f}")


if __name__ == "__main__":
    main()
