"""Public models: shapes and parameters of their configurations, bytes of their cache, windows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from refusals import refused

from tfviz import anatomy
from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

GIB = 2**30

BROKEN_LINES = {
    "tfviz/basics/public_models.py": [
        ("one token more is kept", "= L - self.window", "= L - self.window - 1"),
        ("windows everywhere", "near=len(reaches)", "near=len(a.layers)"),
    ]
}


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


def test_no_heads_are_no_cache() -> None:
    refused("h_kv = 0", MODELS["GPT-2"].cache_bytes, 4, h_kv=0)


@pytest.mark.parametrize("name", MODELS)
def test_the_cache_is_that_of_the_anatomy_windows_and_all(name: str) -> None:
    shape = MODELS[name]
    for L in (0, 1, 1024, 1025, 4096, 4097, 131_072):
        for b, batch in ((2, 1), (1, 3)):
            whole = anatomy.of(name).cache(L, batch, bits=8 * b)
            assert shape.cache_bytes(L, b, batch) == whole, (L, b, batch)


def test_windows_of_gemma_keep_their_last_tokens() -> None:
    two, three = MODELS["Gemma 2 9B"], MODELS["Gemma 3 27B (text)"]
    assert two.cache_bytes(8192) / GIB == 1.96875 == 2.625 - 21 / 42 * 2.625 / 2
    assert two.cache_bytes(8192, h_kv=16) == 2 * two.cache_bytes(8192)
    full, near = (cache_bytes(L, N, 16, 128) for L, N in ((131_072, 10), (1024, 52)))
    assert three.cache_bytes(131_072) == full + near


def test_public_models_have_the_shapes_of_their_configurations() -> None:
    from transformers import (
        AutoModelForCausalLM,
        FalconConfig,
        Gemma2Config,
        Gemma3TextConfig,
        GPT2Config,
        LlamaConfig,
        Qwen3Config,
    )

    llama: Any = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
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
        "Llama 3.1 405B": LlamaConfig(
            vocab_size=128256,
            hidden_size=16384,
            intermediate_size=53248,
            num_hidden_layers=126,
            num_attention_heads=128,
            num_key_value_heads=8,
        ),
        "Qwen3 32B": Qwen3Config(
            hidden_size=5120,
            intermediate_size=25600,
            num_hidden_layers=64,
            num_attention_heads=64,
            num_key_value_heads=8,
            head_dim=128,
        ),
        "Gemma 2 9B": Gemma2Config(
            hidden_size=3584,
            intermediate_size=14336,
            num_hidden_layers=42,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=256,
        ),
        "Gemma 3 27B (text)": Gemma3TextConfig(
            vocab_size=262144,
            hidden_size=5376,
            intermediate_size=21504,
            num_hidden_layers=62,
            num_attention_heads=32,
            num_key_value_heads=16,
            head_dim=128,
            sliding_window=1024,
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
        kinds = getattr(config, "layer_types", None) or []
        near = kinds.count("sliding_attention")
        assert (ours.near, ours.window) == (near, config.sliding_window if near else 0)
        with torch.device("meta"):  # no memory
            model = AutoModelForCausalLM.from_config(config)
        assert model.num_parameters() == ours.weights, name
