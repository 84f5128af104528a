"""Public models: shapes and parameters of their configurations, bytes of their cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from refusals import refused

from tfviz.basics.public_models import MODELS

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

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


def test_no_heads_are_no_cache() -> None:
    refused("h_kv = 0", MODELS["GPT-2"].cache_bytes, 4, h_kv=0)


def test_public_models_have_the_shapes_of_their_configurations() -> None:
    from transformers import (
        AutoModelForCausalLM,
        FalconConfig,
        Gemma2Config,
        GPT2Config,
        LlamaConfig,
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
