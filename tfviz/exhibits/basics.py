"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tfviz import patterns
from tfviz.basics.additive_attention import Additive, bahdanau_attention
from tfviz.basics.alrfou_auxiliary_losses import loss_weights
from tfviz.basics.decoding_strategies import temperature
from tfviz.basics.layer_norm_pre_post import layer_norm
from tfviz.basics.lm_objectives import prefix_lm
from tfviz.basics.pointwise_mlp import SwiGLU, gelu
from tfviz.basics.soft_dictionary import lookup
from tfviz.basics.token_embedding import embed
from tfviz.dense_attention import attention
from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, Part, curve, drawn, mask, spread
from tfviz.models.blocks import post_norm
from tfviz.position.sinusoidal_pe import sinusoids


def circle(turns: Tensor) -> Tensor:
    return torch.stack([turns.cos(), turns.sin()], -1)


def several() -> Tensor:
    """Four heads, each with its own part of the same vectors."""
    P = sinusoids(STEPS[:12], 32)
    looks = [attention(3 * x, 3 * x, x)[1] for x in (*P.split(8, -1),)]
    looks = [A / A.max() for A in looks]
    return torch.cat([torch.cat(looks[:2], 1), torch.cat(looks[2:], 1)])


def two_stacks() -> Tensor:
    """Who reads whom: the source all of itself, the text to be written its past and the source."""
    source, past = patterns.full().mask(N // 2), patterns.causal().mask(N // 2)
    return torch.cat([torch.cat([source, source & False], 1), torch.cat([source, past], 1)]).float()


def with_a_last_row() -> Tensor:
    """What a cache keeps, and the one row that a new token adds."""
    A = 0.3 * mask(patterns.causal())
    A[-1] = 1
    return A


def hotter() -> Tensor:
    """One distribution, from the coldest temperature to the hottest."""
    logits = drawn(N).sort(descending=True).values
    rows = [temperature(logits, tau).softmax(-1) for tau in (0.1 + 0.09 * STEPS).tolist()]
    return torch.stack([row / row.max() for row in rows])


def normed() -> Tensor:
    """Rows of very different sizes, and below them what layer normalisation makes of them."""
    X = drawn(N // 2, N) * 4.0 ** -(STEPS[: N // 2, None] % 4)
    Y = layer_norm(X, torch.ones(N), torch.zeros(N))
    return spread(torch.cat([X.clamp(-2, 2), Y.clamp(-2, 2)]))


def losses() -> Tensor:
    """Which of the layers is scored, from the first step of training to the last."""
    weights = [loss_weights(step, N, N)[:, 0] for step in range(N)]
    return torch.stack(weights, 1).clamp(0, 1)


# --- in the race ----------------------------------------------------------------------------------


def additive(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": lambda: Additive(gpt.d_head, gpt.d_head)}


def plain(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions()}


# --- in the story model ---------------------------------------------------------------------------


class Nothing(nn.Module):
    """In the place of a feed-forward network: it adds nothing to any row."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.zeros_like(X)


def no_positions(gpt: Gpt) -> dict[str, Any]:
    return {}


def one_head(gpt: Gpt) -> dict[str, Any]:
    return {"h": 1}


def after(gpt: Gpt) -> dict[str, Any]:
    return {"order": post_norm}


def layer_norms(gpt: Gpt) -> dict[str, Any]:
    return {"norm": nn.LayerNorm}


def gated(gpt: Gpt) -> dict[str, Any]:
    return {"feed": SwiGLU}


def no_feed(gpt: Gpt) -> dict[str, Any]:
    return {"feed": Nothing}


EXHIBITS = {
    "soft_dictionary": Exhibit(
        lambda: spread(lookup(circle(STEPS / 3.8), circle(STEPS / 3.8), torch.eye(N), beta=4.0)[1]),
        why_not="it is what every core begins with",
    ),
    "additive_attention": Exhibit(
        lambda: spread(
            bahdanau_attention(
                drawn(N, 6, seed=2), drawn(N, 6), drawn(6, 6), drawn(6, 6), drawn(6)
            )[1]
        ),
        race=additive,
        exactness="exact",
        own_positions=True,
    ),
    "scaled_dot_product_attention": Exhibit(
        lambda: spread(
            attention(2.5 * sinusoids(STEPS, 16), 2.5 * sinusoids(STEPS, 16), drawn(N, 16))[1]
        ),
        why_not="it is what every core begins with",
    ),
    "multi_head_attention": Exhibit(
        several,
        race=plain,
        raced="learned",
        encoder=plain,
        exactness="exact",
        story={"one head": Part("keys and values", one_head)},
    ),
    "token_embedding": Exhibit(
        lambda: spread(embed(STEPS % 9, drawn(9, N)).clamp(-2, 2)),
        why_not="it is a part of the block, not the attention",
    ),
    "pointwise_mlp": Exhibit(
        lambda: curve(gelu((STEPS - 15) / 4)),
        why_not="it is a part of the block, not the attention",
        story={"SwiGLU": Part("feed", gated), "no feed": Part("feed", no_feed)},
    ),
    "residual_connection": Exhibit(
        lambda: torch.maximum(curve(STEPS.float()), 0.35 * curve(STEPS + 9 * (STEPS / 3.5).sin())),
        why_not="it is a part of the block, not the attention",
    ),
    "layer_norm_pre_post": Exhibit(
        normed,
        why_not="it is a part of the block, not the attention",
        story={"post": Part("norm", after), "LayerNorm": Part("norm", layer_norms)},
    ),
    "encoder_decoder": Exhibit(two_stacks, why_not="it is an arrangement of two models"),
    "causal_masking": Exhibit(
        lambda: mask(patterns.causal()),
        why_not="the plain model has it",
        story={"none": Part("position", no_positions, turned=False)},
    ),
    "lm_objectives": Exhibit(
        lambda: mask(prefix_lm(prefix=9)), why_not="it changes what is trained for"
    ),
    "alrfou_auxiliary_losses": Exhibit(losses, why_not="it changes what is trained for"),
    "kv_cache": Exhibit(with_a_last_row, why_not="it changes how a text is written"),
    "decoding_strategies": Exhibit(hotter, why_not="it changes how a text is written"),
}
