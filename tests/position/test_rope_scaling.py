"""Speeds for long texts: by hand, their limits, and what Hugging Face computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz.cores import given
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.rope import Rope, halves_order, speeds
from tfviz.position.rope_scaling import (
    interpolated,
    llama3,
    ntk_aware,
    ntk_by_parts,
    yarn,
    yarn_temperature,
)

close = torch.testing.assert_close
Make = Callable[..., Tensor]
WAYS: dict[str, Make] = {
    "interpolated": interpolated,
    "ntk_aware": ntk_aware,
    "ntk_by_parts": partial(ntk_by_parts, length=512),
    "yarn": partial(yarn, length=512),
    "yarn, not truncated": partial(yarn, length=512, truncate=False),
    "llama3": partial(llama3, length=512, base=10_000.0),
}


def float64(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# --- by hand --------------------------------------------------------------------------------------


def test_golden_interpolation() -> None:
    close(interpolated(4, 2.0), float64([0.5, 0.005]))
    close(interpolated(4, 4.0, base=100.0), float64([0.25, 0.025]))


def test_golden_larger_base() -> None:
    # d = 4 and s = 2: the base is multiplied by 2^{4/2} = 4, so the second speed is 1/√400.
    close(ntk_aware(4, 2.0, base=100.0), float64([1.0, 0.05]))


def test_golden_by_parts() -> None:
    # Speeds 1, 1/4 and 1/16, and a length of 32 · 2π: 32, 8 and 2 turns. From 4 turns to 10,
    # γ = 1, 2/3 and 0. Halved speeds are 1/2, 1/8 and 1/32.
    found = ntk_by_parts(6, 2.0, 201, base=64.0, alpha=4.0, beta=10.0)
    turns = 201 / (2 * math.pi)
    gamma = (turns / 4 - 4) / 6
    assert gamma == pytest.approx(2 / 3, abs=1e-3)
    close(found, float64([1.0, gamma / 4 + (1 - gamma) / 8, 1 / 32]))


def test_golden_yarn() -> None:
    # d = 8 and base 10^4: clock m has a speed of 10^{−m}. With 2π · 10^3 places in training, m = 3
    # made one turn and m = 1 made a hundred: clocks 0 and 1 stay, 2 is half way, 3 is divided.
    found = yarn(8, 4.0, round(2000 * math.pi), beta_fast=100.0, truncate=False)
    close(found, float64([1.0, 0.1, 0.01 * (1 / 2 + 1 / 8), 0.001 / 4]), rtol=1e-4, atol=0)
    # Rounded outward, from 32 turns (m = 1.49…) to one turn (m = 3): the ramp is from 1 to 3.
    close(yarn(8, 4.0, 6283)[1:3], float64([0.1, 0.01 * (1 / 2 + 1 / 8)]))


def test_golden_yarn_of_4096_places() -> None:
    changed = yarn(64, 4.0, 4096) / speeds(64)
    assert (changed == 1).nonzero().flatten().tolist() == [*range(11)]
    assert (changed == 1 / 4).nonzero().flatten().tolist() == [*range(23, 32)]


def test_golden_temperature() -> None:
    assert yarn_temperature(1.0) == 1.0
    assert 1 / yarn_temperature(math.e**10) == pytest.approx(4.0)  # 0.1 · 10 + 1, squared
    assert 1 / yarn_temperature(4.0) == pytest.approx(1.30, abs=5e-3)
    assert 1 / yarn_temperature(32.0) == pytest.approx(1.81, abs=5e-3)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("d", [4, 64, 128])
def test_every_way_lies_between_the_speeds_and_the_divided_ones(name: str, d: int) -> None:
    theta = speeds(d)
    close(WAYS[name](d, factor=1.0), theta)
    for s in (2.0, 7.5, 32.0):
        found = WAYS[name](d, factor=s)
        assert found.dtype == torch.float64 and found.shape == (d // 2,)
        assert (found <= theta * (1 + 1e-12)).all() and (found >= theta / s * (1 - 1e-12)).all()
        assert (found.diff() <= 0).all()  # a slower clock stays the slower one
        close(found[-1], theta[-1] / s)
        if name != "interpolated":
            close(found[0], theta[0])


def test_the_paper_s_ramp_and_that_of_its_code_differ_only_within() -> None:
    written, published = ntk_by_parts(64, 4.0, 4096), yarn(64, 4.0, 4096)
    assert not torch.allclose(written, published, rtol=0.1, atol=0)
    ends = [*range(11), *range(23, 32)]
    close(written[ends], published[ends])


def test_llama_is_by_parts() -> None:
    close(llama3(128), ntk_by_parts(128, 8.0, 8192, 500_000.0, alpha=1.0, beta=4.0))


def test_few_places_slow_down_all_clocks_but_the_first() -> None:
    for length in (1, 6):  # less than one turn of the fastest
        close(yarn(64, 2.0, length)[1:], speeds(64)[1:] / 2)


# --- third parties --------------------------------------------------------------------------------

HF: dict[str, tuple[str, dict[str, Any], Make]] = {
    "interpolated": ("linear", {"factor": 4.0}, partial(interpolated, factor=4.0)),
    "dynamic": ("dynamic", {"factor": 1.0}, partial(ntk_aware, factor=3.0)),
    "yarn": (
        "yarn",
        {"factor": 4.0, "original_max_position_embeddings": 1024},
        partial(yarn, factor=4.0, length=1024),
    ),
    "yarn, other turns": (
        "yarn",
        {
            **{"factor": 40.0, "original_max_position_embeddings": 4096},
            **{"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False},
        },
        partial(yarn, factor=40.0, length=4096, beta_fast=16.0, beta_slow=2.0, truncate=False),
    ),
    "llama3": (
        "llama3",
        {
            **{"factor": 8.0, "original_max_position_embeddings": 8192},
            **{"low_freq_factor": 1.0, "high_freq_factor": 4.0},
        },
        llama3,
    ),
    "llama3, 3.2": (
        "llama3",
        {
            **{"factor": 32.0, "original_max_position_embeddings": 2048},
            **{"low_freq_factor": 2.0, "high_freq_factor": 3.0},
        },
        partial(llama3, factor=32.0, length=2048, low_freq_factor=2.0, high_freq_factor=3.0),
    ),
}


def config(d: int, base: float, kind: str, more: dict[str, Any]) -> Any:
    llama = pytest.importorskip("transformers.models.llama")
    return llama.LlamaConfig(
        hidden_size=3 * d, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=1,
        max_position_embeddings=2048, attn_implementation="eager",
        rope_parameters={"rope_theta": base, "rope_type": kind} | more,
    )  # fmt: skip


@pytest.mark.parametrize("d", [8, 64, 128])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("name", HF)
def test_hugging_face_has_the_same_speeds(name: str, base: float, d: int) -> None:
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    kind, more, make = HF[name]
    theirs, length = rope.ROPE_INIT_FUNCTIONS[kind](config(d, base, kind, more), seq_len=3 * 2048)
    close(make(d, base=base), theirs.double(), atol=1e-6, rtol=0)
    close(make(d, base=base), theirs.double(), atol=0, rtol=5e-6)  # they compute in float32
    t = yarn_temperature(more["factor"]) if kind == "yarn" else 1.0
    assert length == pytest.approx(t**-0.5, abs=1e-12)


def test_llama_s_attention_with_yarn_is_ours() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    kind, more, make = HF["yarn"]
    told, d = config(8, 500.0, kind, more), 8
    X, places = torch.randn(2, 7, 24), torch.tensor([[0, 1, 2, 3, 40, 41, 9], [*range(5, 12)]])
    layer = llama.LlamaAttention(told, 0).eval()
    hands = llama.LlamaRotaryEmbedding(told)(X, places)
    theirs = layer(X, position_embeddings=hands, attention_mask=None)[0]

    def ours(**options: Any) -> Tensor:
        attend = MultiHeadAttention(24, 3, core=lambda: Rope(d, **options))
        columns = torch.cat([d * n + halves_order(d).argsort() for n in range(3)])
        W_q, W_k = (p.weight.data[columns] for p in (layer.q_proj, layer.k_proj))
        attend.W_qkv.weight.data = torch.cat([W_q, W_k, layer.v_proj.weight.data])
        attend.W_o.weight.data = layer.o_proj.weight.data
        for bias in (attend.W_qkv.bias, attend.W_o.bias):
            torch.nn.init.zeros_(bias)
        with given(positions=places):
            return attend(X)

    slowed = partial(make, base=500.0)
    close(ours(speeds=slowed, temperature=yarn_temperature(4.0)), theirs, atol=1e-6, rtol=1e-5)
    for other in ({"speeds": slowed}, {"base": 500.0, "temperature": yarn_temperature(4.0)}):
        assert (ours(**other) - theirs).abs().max() > 1e-4  # neither half alone


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    ranges(interpolated, d_head=(4, 2), factor=(2.0, 1.0), base=(100.0, 1.0))
    ranges(ntk_aware, d_head=(4, 4), factor=(2.0, 1.0), base=(100.0, 1.0))
    ranges(
        ntk_by_parts,
        **{"d_head": (4, 2), "factor": (2.0, 1.0), "length": (64, 1), "base": (100.0, 1.0)},
        **{"alpha": (1.0,), "beta": (32.0,)},
    )
    ranges(
        yarn,
        **{"d_head": (4, 2), "factor": (2.0, 1.0), "length": (64, 1), "base": (100.0,)},
        **{"beta_slow": (1.0,), "beta_fast": (32.0,)},
    )
    ranges(llama3, low_freq_factor=(1.0,), high_freq_factor=(4.0,), d_head=(4, 2))
    ranges(yarn_temperature, factor=(2.0, 1.0))
    refused("d = 5 is odd", yarn, 5, 2.0, 64)
    refused("base = 1.0 makes", yarn, 4, 2.0, 64, 1.0)
    refused("base = 0.5 is out of range", yarn, 4, 2.0, 64, 0.5)
    refused("beta_slow = 8, beta_fast = 8; choose", yarn, 4, 2, 64, beta_slow=8, beta_fast=8)
    refused("beta_slow = 0, beta_fast = 32.0", yarn, 4, 2, 64, beta_slow=0)
    refused("alpha = 9, beta = 8; choose 0 < alpha", ntk_by_parts, 4, 2, 64, alpha=9, beta=8)
    refused("low_freq_factor = 5, high_freq_factor = 4.0", llama3, 4, low_freq_factor=5)


CASE = Case(
    mutants=[
        ("NTK with the exponent of d", "(d_head / (d_head - 2))", "(d_head / (d_head - 1))"),
        ("turns in radians", "* theta / (2 * math.pi)", "* theta"),
        (
            "fast clocks slowed, slow ones kept",
            "gamma * theta + (1 - gamma) * theta /",
            "(1 - gamma) * theta + gamma * theta /",
        ),
        ("YaRN's range exchanged", "in (beta_fast, beta_slow)", "in (beta_slow, beta_fast)"),
        (
            "YaRN's range narrowed to whole numbers",
            "math.floor(first), math.ceil(last)",
            "math.ceil(first), math.floor(last)",
        ),
        ("a temperature of one side", ") + 1) ** -2", ") + 1) ** -1"),
        (
            "Llama's ends of the range exchanged for YaRN's",
            "alpha=low_freq_factor, beta=high_freq_factor",
            "alpha=low_freq_factor",
        ),
        ("no range of its own for a short text", "max(last - first, 1e-3)", "(last - first)"),
    ],
)
