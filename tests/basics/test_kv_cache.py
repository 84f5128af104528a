"""The cache: the same outputs as recomputing, one row a step, bytes and operations as counted."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tfviz import patterns
from tfviz.attention import attention
from tfviz.basics.kv_cache import (
    MODELS,
    Rows,
    attend_next,
    cache_bytes,
    kept_bytes,
    token_flops,
)
from tfviz.cores import Cache
from tfviz.measure import flops
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal

close = torch.testing.assert_close
Step = Callable[..., tuple[Tensor, Rows]]


def tensors(L: int = 6, d: int = 5, d_k: int = 3, d_v: int = 4) -> tuple[Tensor, ...]:
    return tuple(
        torch.randn(*s, dtype=torch.float64) for s in ((L, d), (d, d_k), (d, d_k), (d, d_v))
    )


def run(step: Step, X: Tensor, *W: Tensor) -> tuple[Tensor, list[int]]:
    """All outputs, and how many rows were kept after each step."""
    kept, out, rows = None, [], []
    for x in X:
        z, kept = step(x, *W, kept)
        out.append(z)
        rows.append(len(kept[0]))
    return torch.stack(out), rows


def is_causal_attention(step: Step) -> None:
    X, *W = tensors()
    Q, K, V = (X @ w for w in W)
    out, rows = run(step, X, *W)
    close(out, attention(Q, K, V, patterns.causal())[0])
    assert rows == [1, 2, 3, 4, 5, 6]


def test_token_by_token_is_causal_attention() -> None:
    is_causal_attention(attend_next)


def forgets_the_new(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    _, new = attend_next(x, W_q, W_k, W_v, kept)
    return attention((x @ W_q)[None], *(kept or new))[0][0], new


def puts_it_in_front(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    z, (K, V) = attend_next(x, W_q, W_k, W_v, kept)
    return z, (K.flip(0), V)


def keeps_the_input(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, kept: Rows | None) -> object:
    return attend_next(x, W_q, W_k, W_v, None)


@pytest.mark.parametrize("wrong", [forgets_the_new, puts_it_in_front, keeps_the_input])
def test_wrong_caches_are_noticed(wrong: Step) -> None:
    with pytest.raises(AssertionError):
        is_causal_attention(wrong)


def test_golden_numbers() -> None:
    # keys 0 and 1, query 1: the second token weighs the values 0 and 6 as 1 : e
    one = torch.ones(1, 1, dtype=torch.float64)
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    _, kept = attend_next(x[0], one, one, one)
    z, (K, V) = attend_next(x[1], one, one, 6 * one, kept)
    close(K, torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    close(z[0], torch.tensor(6 * math.e / (1 + math.e), dtype=torch.float64))
    close(V, torch.tensor([[0.0], [6.0]], dtype=torch.float64))


def test_keys_of_other_weights_are_refused() -> None:
    X, *W = tensors()
    with pytest.raises(ValueError, match=r"kept has shapes \(1, 2\), \(1, 4\)"):
        attend_next(X[0], *W, (torch.zeros(1, 2), torch.zeros(1, 4)))


def test_one_token_at_a_time() -> None:
    X, *W = tensors()
    with pytest.raises(ValueError, match="give the row of one token"):
        attend_next(X, *W)  # rows would look ahead


# --- the same in a model --------------------------------------------------------------------------


@pytest.mark.parametrize("h_kv", [1, 2, 4])
def test_a_gpt_with_a_cache_says_what_it_says_without(h_kv: int) -> None:
    model = GPT(11, 16, 4, 3, Sinusoidal(16), h_kv=h_kv).double()
    t = torch.randint(11, (2, 9))
    cache: Cache = {}
    with torch.no_grad():
        whole = model(t)
        for n in range(9):
            close(model(t[:, n : n + 1], cache)[:, 0], whole[:, n])
            assert kept_bytes(cache) == cache_bytes(n + 1, 3, h_kv, 4, b=8, batch=2)


def test_an_empty_cache_holds_nothing() -> None:
    assert kept_bytes({}) == kept_bytes(None) == cache_bytes(0, 3, 2, 4) == 0


# --- bytes ----------------------------------------------------------------------------------------

GIB = 2**30


@pytest.mark.parametrize(
    ("h_kv", "b", "gib"),
    [(16, 4, 5.25), (16, 2, 2.625), (8, 4, 2.625), (8, 2, 1.3125), (1, 4, 0.328125)],
)
def test_gemma_at_4096_tokens(h_kv: int, b: int, gib: float) -> None:
    assert MODELS["Gemma 2 9B"].cache_bytes(4096, b, h_kv=h_kv) == gib * GIB


def test_the_slide_is_seven_times_too_large_at_equal_type() -> None:
    slide = 4096 * 16 * 3584 * 42 * 4  # sequence × heads × d_model × layers × bytes
    assert slide == 39_460_012_032 == 36.75 * GIB
    gemma = MODELS["Gemma 2 9B"]
    assert slide == 7 * gemma.cache_bytes(4096, 4, h_kv=16) == 28 * gemma.cache_bytes(4096)


def test_bytes_are_proportional_to_everything() -> None:
    base = cache_bytes(10, 2, 3, 4, 2, 5)
    assert base == 2 * 10 * 2 * 3 * 4 * 2 * 5
    for k in range(6):
        sizes = [10, 2, 3, 4, 2, 5]
        sizes[k] *= 3
        assert cache_bytes(*sizes) == 3 * base


def test_no_heads_are_no_cache() -> None:
    with pytest.raises(ValueError, match="h_kv = 0"):
        MODELS["GPT-2"].cache_bytes(4, h_kv=0)


@pytest.mark.parametrize("name", ["N", "h_kv", "d_head", "b", "batch"])
def test_bad_sizes_are_named(name: str) -> None:
    good = {"L": 4, "N": 2, "h_kv": 2, "d_head": 8}
    with pytest.raises(ValueError, match=f"{name} = 0"):
        cache_bytes(**(good | {name: 0}))


def test_public_models_have_the_shapes_of_their_configurations() -> None:
    from transformers import (
        AutoModelForCausalLM,
        FalconConfig,
        Gemma2Config,
        GPT2Config,
        LlamaConfig,
    )

    llama = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
    found = {
        "GPT-2": GPT2Config(),
        "GPT-2 XL": GPT2Config(n_embd=1600, n_layer=48, n_head=25),
        "Llama 2 7B": LlamaConfig(),
        "Llama 2 70B": LlamaConfig(
            hidden_size=8192,
            intermediate_size=28672,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
        ),
        "Llama 3 8B": LlamaConfig(
            vocab_size=128256, hidden_size=4096, intermediate_size=14336, **llama
        ),
        "Gemma 2 9B": Gemma2Config(
            hidden_size=3584,
            intermediate_size=14336,
            num_hidden_layers=42,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=256,
        ),
        "Falcon 7B": FalconConfig(),  # multi_query
    }
    assert set(found) == set(MODELS)
    for name, config in found.items():
        ours = MODELS[name]
        assert (ours.N, ours.h, ours.d) == (
            config.num_hidden_layers,
            config.num_attention_heads,
            config.hidden_size,
        )
        h_kv = 1 if getattr(config, "multi_query", False) else None
        h_kv = h_kv or getattr(config, "num_key_value_heads", ours.h)
        assert ours.h_kv == h_kv
        assert ours.d_head == getattr(config, "head_dim", ours.d // ours.h)
        with torch.device("meta"):  # no memory
            model = AutoModelForCausalLM.from_config(config)
        assert model.num_parameters() == ours.weights, name


# --- operations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("h", "h_kv"), [(4, 4), (4, 1)])
def test_operations_are_those_that_torch_counts(h: int, h_kv: int) -> None:
    N, d, vocab = 2, 32, 7
    model = GPT(vocab, d, h, N, h_kv=h_kv)
    logits = 2 * d * vocab

    def expect(t: int, cached: bool) -> int:
        return token_flops(t, N, d, h, h_kv, 4 * d, cached=cached)

    with torch.no_grad():
        for t in (0, 1, 20):
            tokens = torch.randint(vocab, (1, t + 1))
            assert flops(lambda: model(tokens)) == expect(t, False) + (t + 1) * logits  # noqa: B023
            cache: Cache = {}
            if t:
                model(tokens[:, :-1], cache)
            assert flops(lambda: model(tokens[:, -1:], cache)) == expect(t, True) + logits  # noqa: B023


def test_the_gain_grows_in_proportion_to_the_place() -> None:
    sizes = (6, 512, 8, 8, 2048)
    for t in (0, 9, 999):
        assert token_flops(t, *sizes, cached=False) == (t + 1) * token_flops(t, *sizes)


@pytest.mark.parametrize("wrong", [{"t": -1}, {"h": 3}, {"h_kv": 3}, {"N": 0}])
def test_bad_shapes_are_named(wrong: dict[str, int]) -> None:
    good = {"t": 3, "N": 2, "d": 16, "h": 4, "h_kv": 2, "d_ff": 64}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        token_flops(**(good | wrong))
