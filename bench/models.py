"""Tokens per second of our GPT block, beside torch's and Hugging Face's of the same shape.

    python bench/models.py             several shapes (some minutes)
    python bench/models.py --quick     the two small ones

Pre-norm, causal, exact GELU, no dropout, float32, one thread, all in one process. Training is
forward and backward through weights and input. The contenders take turns, in another order each
round, so that a busy machine troubles all alike. Tokens per second are from the least processor
time; a ratio is the median over the rounds of theirs ÷ ours, to the fastest of the others. The
target is 1.0 or more.
"""

from __future__ import annotations

import argparse
import logging
import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfviz import patterns
from tfviz.measure import in_turns
from tfviz.models.blocks import Block

SHAPES = [
    (32, 64, 64, 4),
    (16, 128, 128, 4),
    (4, 256, 256, 4),
    (4, 512, 384, 6),
    (1, 1024, 768, 12),
]
"""(batch, length, width, heads); the first is what a lesson trains, the last one is GPT-2's."""

Call = Callable[[Tensor], Tensor]


def ours(d: int, h: int, L: int) -> tuple[nn.Module, Call]:
    block = Block(d, h, pattern=patterns.causal())
    return block, block


def torchs(d: int, h: int, L: int) -> tuple[nn.Module, Call]:
    layer = nn.TransformerEncoderLayer(d, h, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(L)
    return layer, lambda X: layer(X, mask, is_causal=True)


def torchs_without_fast_path(d: int, h: int, L: int) -> tuple[nn.Module, Call]:
    """In evaluation torch takes a path of its own, which with a mask is often the slower one."""
    layer, call = torchs(d, h, L)

    def slow(X: Tensor) -> Tensor:
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return call(X)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    return layer, slow


def hugging_faces(d: int, h: int, L: int) -> tuple[nn.Module, Call]:
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    config = GPT2Config(  # type: ignore[call-arg]
        n_embd=d, n_head=h, n_positions=L, activation_function="gelu",
        attn_pdrop=0.0, resid_pdrop=0.0, attn_implementation="sdpa",
    )  # fmt: skip
    block = GPT2Block(config, layer_idx=0)

    def call(X: Tensor) -> Tensor:
        out = block(X)
        return out[0] if isinstance(out, tuple) else out

    return block, call


CONTENDERS = {
    "tfviz Block": ours,
    "nn.TransformerEncoderLayer": torchs,
    "the same, fast path off": torchs_without_fast_path,
    "Hugging Face GPT2Block": hugging_faces,
}


def forward(module: nn.Module, call: Call, X: Tensor) -> Callable[[], None]:
    def run() -> None:
        module.eval()
        with torch.no_grad():
            call(X)

    return run


def training(module: nn.Module, call: Call, X: Tensor) -> Callable[[], None]:
    Y = X.clone().requires_grad_()

    def run() -> None:
        module.train()
        module.zero_grad()
        Y.grad = None
        call(Y).sum().backward()

    return run


def ratio(seconds_by_model: dict[str, list[float]]) -> float:
    """How much faster ours is than the fastest of the others."""
    mine, *others = seconds_by_model.values()
    return min(statistics.median(b / a for a, b in zip(mine, x, strict=True)) for x in others)


def is_causal(call: Call, d: int, L: int) -> bool:
    """Whoever looks ahead would be no contender."""
    X = torch.randn(1, L, d)
    changed = X.clone()
    changed[:, L // 2 :] += 1
    with torch.no_grad():
        before, after = call(X), call(changed)
    same = torch.allclose(before[:, : L // 2], after[:, : L // 2], atol=1e-5)
    return same and not torch.allclose(before[:, L // 2 :], after[:, L // 2 :], atol=1e-2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small shapes, fewer rounds")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    print(f"thousand tokens per second, 1 thread, torch {torch.__version__}")
    ratios = []
    for b, L, d, h in SHAPES[:2] if quick else SHAPES:
        torch.manual_seed(0)
        X = torch.randn(b, L, d)
        built = {name: make(d, h, L) for name, make in CONTENDERS.items()}
        for name, (module, call) in built.items():
            module.eval()
            assert is_causal(call, d, L), f"{name} is not causal"
        print(f"\nbatch {b}, length {L}, width {d}, {h} heads{'':12}forward   training")
        budget = 3.0 if quick else 15.0
        fast = in_turns({n: forward(m, c, X) for n, (m, c) in built.items()}, budget=budget)
        slow = in_turns({n: training(m, c, X) for n, (m, c) in built.items()}, budget=budget)
        for name in built:
            speed = [b * L / min(x[name]) / 1e3 for x in (fast, slow)]
            print(f"  {name:44}{speed[0]:9.1f}{speed[1]:11.1f}")
        ratios += [ratio(fast), ratio(slow)]
        print(
            f"  {'ours ÷ the fastest of the others':44}{ratios[-2]:9.2f}{ratios[-1]:11.2f}",
            flush=True,
        )
    least = min(ratios)
    print(f"\nleast ratio {least:.3f}, target 1.0: {'met' if least >= 1 else 'MISSED'}")


if __name__ == "__main__":
    main()
