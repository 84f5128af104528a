"""Layers without positions: which they are, what they cannot see, and queries that grow."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import laws
import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, patterns
from tfviz.cores import Dense, Where
from tfviz.current.nope_layers import ScaledQueries, SoftmaxOfLength, by_floors, every
from tfviz.models.blocks import Block, MultiHeadAttention
from tfviz.patterns import causal
from tfviz.position.rope import Rope

# --- which layers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "without"), [(1, {0, 1, 2, 3, 4, 5}), (2, {1, 3, 5}), (4, {3}), (7, set())]
)
def test_every_kth_layer_is_without(k: int, without: set[int]) -> None:
    model = GPT(7, 8, 2, 6, layer=every(k))
    cores = [x.attend.core for x in model.modules() if isinstance(x, Block)]
    assert {n for n, core in enumerate(cores) if type(core) is Dense} == without
    assert {n for n, core in enumerate(cores) if isinstance(core, Rope)} == {*range(6)} - without


def test_the_layers_of_transformers_are_told_the_other_way_round() -> None:
    """In SmolLM 3 and Llama 4 `no_rope_layers[n] = 1` says that layer n has rotary positions."""
    config = pytest.importorskip("transformers").SmolLM3Config(num_hidden_layers=8)
    layer = every(4)
    assert [layer(n)["core"] is Rope for n in range(8)] == [x == 1 for x in config.no_rope_layers]


# --- what a layer without positions cannot see ----------------------------------------------------


@torch.no_grad()
def changed_by_order(N: int, pattern: Any) -> float:
    """How much the last row changes when the tokens before it change places."""
    torch.manual_seed(0)
    model = GPT(20, 16, 2, N, layer=every(1), pattern=pattern).double()
    t = torch.randperm(20)[None, :9]
    other = torch.cat([t[:, [3, 0, 7, 1, 6, 2, 5, 4]], t[:, 8:]], 1)
    return float((model(t) - model(other))[0, -1].abs().max())


def test_the_causal_mask_tells_order_from_the_second_layer_on() -> None:
    assert changed_by_order(1, causal()) < 1e-12
    assert changed_by_order(2, causal()) > 1e-3
    assert changed_by_order(3, patterns.full()) < 1e-12


# --- queries that grow ----------------------------------------------------------------------------


def test_by_hand() -> None:
    i = torch.tensor([0, 2, 3, 7, 8191, 16383])
    found = by_floors(i, c=0.5, n=4)
    right = [1, 1, *(1 + 0.5 * math.log1p(m) for m in (1, 2, 2048, 4096))]
    assert found.tolist() == pytest.approx(right)
    assert by_floors(i)[:4].eq(1).all() and by_floors(i)[4].item() == 1 + 0.1 * math.log(2)


@torch.no_grad()
@pytest.mark.parametrize("kept", [0, 5])
def test_it_is_the_attention_of_llama_4(kept: int) -> None:
    """Its layer without rotary positions, whose queries are made longer every third token."""
    llama = pytest.importorskip("transformers.models.llama4.modeling_llama4")
    config = llama.Llama4TextConfig(
        **{"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8},
        **{"num_hidden_layers": 4, "attn_scale": 0.7, "floor_scale": 3},
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    theirs = llama.Llama4TextAttention(config, 3).double().eval()
    assert not theirs.use_rope
    scale = partial(by_floors, c=0.7, n=3)
    ours = MultiHeadAttention(24, 3, core=lambda: ScaledQueries(scale), pattern=causal()).double()
    W = torch.cat([x.weight for x in (theirs.q_proj, theirs.k_proj, theirs.v_proj)])
    ours.W_qkv.load_state_dict({"weight": W, "bias": torch.zeros(len(W))})
    ours.W_o.load_state_dict({"weight": theirs.o_proj.weight, "bias": torch.zeros(24)})
    X = torch.randn(2, 11, 24).double()
    ahead = torch.full((11, 11), -torch.inf).double().triu(1)[None, None]
    right = theirs(X, position_embeddings=None, attention_mask=ahead)[0]
    cache: Any = {}
    parts = (X[:, :kept], X[:, kept:]) if kept else (X,)
    found = torch.cat([ours(part, cache=cache) for part in parts], 1)
    torch.testing.assert_close(found, right, atol=1e-6, rtol=1e-5)  # their softmax is float32


@torch.no_grad()
def test_a_key_that_leads_keeps_its_weight_in_a_long_text() -> None:
    """One key scores 5 more than all others. Among n keys a softmax gives it e⁵/(e⁵ + n − 1), and
    the scalable one, with s = 1/ln 64, as if e were a power of n: n^{5s}/(n^{5s} + n − 1)."""
    for n in (64, 1024, 16384):
        K = torch.zeros(1, 1, n, 1).double()
        K[..., 3, :] = 5.0
        Q, V = torch.ones_like(K), (K > 0).double()
        where = Where(causal())
        plain = Dense()(Q, K, V, where)[0][0, 0, -1].item()
        grown = SoftmaxOfLength(1, 1, start=64).double()(Q, K, V, where)[0][0, 0, -1].item()
        assert plain == pytest.approx(math.exp(5) / (math.exp(5) + n - 1))
        power = n ** (5 / math.log(64))
        assert grown == pytest.approx(power / (power + n - 1), rel=1e-6)
    assert plain < 0.01 < 0.5 < grown


def test_a_model_of_it_learns() -> None:
    torch.manual_seed(0)
    model = GPT(11, 12, 2, 4, layer=every(2, plain=SoftmaxOfLength))
    model(torch.tensor([[3, 1, 4, 1, 5, 9]])).log_softmax(-1)[..., 2].sum().backward()
    s = [x.s.grad for x in model.modules() if isinstance(x, SoftmaxOfLength)]
    assert len(s) == 2 and all(x is not None and x.abs().min() > 0 for x in s)


def test_bad_input_is_named() -> None:
    ranges(every, k=(2, 1))
    i = torch.arange(3)
    ranges(partial(by_floors, i), n=(3, 1))
    refused("c = nan", by_floors, i, c=math.nan)
    ranges(partial(SoftmaxOfLength, 4), h=(2, 1), start=(9, 2))
    Q = torch.ones(1, 3, 2, 4)
    core = SoftmaxOfLength(4, 2)
    refused("Q has 3 heads, … make it SoftmaxOfLength(d_head, 3)", core, Q, Q, Q, Where(causal()))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def _weighed(s: Tensor, V: Tensor, mask: Tensor) -> Any:
    s = s.masked_fill(~mask, -math.inf)
    none = ~mask.any(-1, keepdim=True)
    A = s.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)
    return A @ V, A


def by_floors_of_three(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    longer = [1 + 0.5 * math.log(1 + (i + 1) // 3) for i in range(Q.shape[-2])]
    s = torch.tensor(longer, dtype=Q.dtype)[:, None] * (Q @ K.mT) / math.sqrt(Q.shape[-1])
    return _weighed(s, V, mask)


def by_powers(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    """Weights n^{s z} over their sum, as the paper writes them."""
    n = torch.arange(1, Q.shape[-2] + 1).to(Q)[:, None]
    s = core.s.to(Q)[:, None, None]
    return _weighed(s * n.log() * (Q @ K.mT) / math.sqrt(Q.shape[-1]), V, mask)


CASE = Case(
    lambda: ScaledQueries(partial(by_floors, c=0.5, n=3)),
    by_floors_of_three,
    variants={"scalable": Case(lambda: SoftmaxOfLength(laws.D, laws.H, 4), by_powers)},
    mutants=[
        ("the layers with positions", "plain if (n + 1) % k == 0", "core if (n + 1) % k == 0"),
        ("the first of a period", "(n + 1) % k == 0 else", "n % k == 0 else"),
        ("counted from 0", "((i + 1) // n)", "(i // n)"),
        (
            "places that a cache forgets",
            "torch.arange(where.start, where.start +",
            "torch.arange(0, 0 +",
        ),
        (
            "ln of keys before",
            "torch.arange(where.start + 1, where.start + 1 +",
            "torch.arange(where.start, where.start +",
        ),
    ],
)
