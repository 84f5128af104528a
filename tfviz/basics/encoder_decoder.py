"""Encoder and decoder: one stack reads the source, the other writes and asks the first.

    encoder   H' = LN(X + MHA(X, X))          H = LN(H' + FFN(H'))
    decoder   Y' = LN(Y + MHA_causal(Y, Y))   Y″ = LN(Y' + MHA(Y', H))   LN(Y″ + FFN(Y″))
    output    p(z_i | z_{<i}, source) = softmax(y_i Eᵀ)

Vaswani et al. 2017 (arXiv 1706.03762), section 3.1; MHA(Y, H) has queries from Y, keys and values
from H. `tfviz.models.encoder_decoder` is the model; this room is its wiring, as literal as the
lines above, the one attention that is new in it, and what all of it weighs.

>>> pair_counts(L_x=4, L_y=3)
{'encoder': 16, 'decoder': 6, 'cross': 12}
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache
from tfviz.dense_attention import attention
from tfviz.models.blocks import Block
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.use import attention_weights

__all__ = ["cross_attention", "decoder_block", "encoder_block", "parameter_counts"]


@named
def cross_attention(
    Y: Float[Tensor, "*b Ly d"],
    H: Float[Tensor, "*b Lx d_h"],
    W_q: Float[Tensor, "d dk"],
    W_k: Float[Tensor, "d_h dk"],
    W_v: Float[Tensor, "d_h dv"],
) -> tuple[Float[Tensor, "*b Ly dv"], Float[Tensor, "*b Ly Lx"]]:
    """(output, A): the rows of Y ask, the rows of H are asked and answer. One head.

    Raises ValueError if a matrix does not fit the rows that it projects.
    """
    for name, W, rows, X in (("W_q", W_q, "Y", Y), ("W_k", W_k, "H", H), ("W_v", W_v, "H", H)):
        if W.ndim != 2 or W.shape[0] != X.shape[-1]:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}, but rows of {rows} have {X.shape[-1]} "
                f"numbers; queries come from Y, keys and values from H: give {name} the shape "
                f"({X.shape[-1]}, width)"
            )
    return attention(Y @ W_q, H @ W_k, H @ W_v)


@named
def encoder_block(X: Float[Tensor, "b Lx d"], block: Block) -> Float[Tensor, "b Lx d"]:
    """The two lines of an encoder's block, in the order of 2017 (normalise after adding)."""
    H = block.norms[0](X + block.attend(X))
    return block.norms[1](H + block.feed(H))


@named
def decoder_block(
    Y: Float[Tensor, "b Ly d"], H: Float[Tensor, "b Lx d"], block: Block
) -> Float[Tensor, "b Ly d"]:
    """The three lines of a decoder's block. `block.attend` is causal, `block.cross` is not."""
    if block.cross is None:
        raise ValueError("block.cross is None; a decoder's block is made with crosses=True")
    Y = block.norms[0](Y + block.attend(Y))
    Y = block.norms[1](Y + block.cross(Y, H))
    return block.norms[2](Y + block.feed(Y))


def three_maps(
    model: EncoderDecoder, s: Int[Tensor, "b Lx"], t: Int[Tensor, "b Ly"]
) -> dict[str, list[Float[Tensor, "b h Lq Lk"]]]:
    """The weights of one pass by kind, one tensor a layer: encoder (L_x, L_x), decoder (L_y, L_y),
    cross (L_y, L_x)."""
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}
    for name, A in attention_weights(model, s, t).items():  # such as decoder.blocks.0.cross
        maps["cross" if name.endswith("cross") else name.split(".")[0]].append(A)
    return maps


@torch.no_grad()
def write(
    model: EncoderDecoder, s: Int[Tensor, "b Lx"], steps: int, begin: int
) -> Int[Tensor, "b steps"]:
    """The likeliest token, `steps` times, from the source s: read once, then written one by one.

    Keys and values of what is written, and those of the source, are kept from step to step.
    """
    _arguments.integer("steps", steps, 1)
    memory = model.encode(s)
    cache: Cache = {}
    written = [torch.full_like(s[:, :1], begin)]
    for _ in range(steps):
        logits = model.decode(written[-1], memory, None, cache)
        written.append(logits[:, -1:].argmax(-1))
    return torch.cat(written[1:], 1)


# --- what it weighs ------------------------------------------------------------------------------


@named
def parameter_counts(vocab: int, d: int, d_ff: int, N: int) -> dict[str, int]:
    """How many numbers are trained, by part; N layers in each stack, post-norm, one shared table.

    Attention has four d × d matrices with biases, the feed-forward d·d_ff twice with biases, a norm
    2d numbers. A decoder's block has one attention and one norm more.
    """
    for name, size in (("vocab", vocab), ("d", d), ("d_ff", d_ff), ("N", N)):
        _arguments.integer(name, size, 1)
    mha, ffn, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    return {
        "embedding": vocab * d,
        "encoder attention": N * mha,
        "encoder feed-forward": N * ffn,
        "decoder attention": N * mha,
        "cross-attention": N * mha,
        "decoder feed-forward": N * ffn,
        "norms": N * (2 + 3) * norm,
    }


def pair_counts(L_x: int, L_y: int) -> dict[str, int]:
    """How many (query, key) pairs the three attentions of a layer look at."""
    L_x, L_y = _arguments.integer("L_x", L_x, 1), _arguments.integer("L_y", L_y, 1)
    return {"encoder": L_x * L_x, "decoder": L_y * (L_y + 1) // 2, "cross": L_y * L_x}
