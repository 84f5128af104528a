"""From a model's name to its parts: layers, masks, weights, caches, operations, and the lessons."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import traitlets as t

from tfviz import anatomy, catalogue, patterns
from tfviz.anatomy import CARDS, Anatomy, counting, stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob, own

FIRST = "gemma-3-27b"
LONGEST = 100_000
"""Characters of a configuration that is pasted, at most."""

STOPS = sorted({2**n for n in range(8, 21)} | {3 * 2**n for n in range(7, 19)})
PARTS = ("embedding", "position", "attention", "state", "feed", "norm", "head", "other")

REMAINS = "book/after_the_survey.html"
ROTARY = "chapters/position/rotary.html"
TODAY: dict[str, tuple[str, str]] = {
    "latent_attention": (
        "Multi-head latent attention",
        f"{REMAINS}#multi-head-latent-attention-a-short-note-for-each-token",
    ),
    "shared_layer_cache": ("Borrowed keys and values", ""),
    "attention_sink": ("Attention sinks", f"{REMAINS}#attention-sinks-and-sliding-windows"),
    "local_global_layers": (
        "Windows and full layers",
        f"{REMAINS}#attention-sinks-and-sliding-windows",
    ),
    "gated_attention": ("Gated attention", ""),
    "bounded_scores": ("Bounded scores", ""),
    "rope_scaling": ("Scaled RoPE", f"{ROTARY}#rope"),
    "partial_rope": ("Partial RoPE", f"{ROTARY}#rope"),
    "multimodal_rope": ("RoPE for pictures", f"{ROTARY}#rope"),
    "nope_layers": ("Layers without positions", f"{ROTARY}#rope"),
    "lightning_indexer": ("Indexer", f"{REMAINS}#native-sparse-attention"),
    "gated_linear_attention": (
        "Gated linear attention",
        f"{REMAINS}#linear-recurrences-and-state-spaces",
    ),
    "delta_rule": ("Delta rule", f"{REMAINS}#linear-recurrences-and-state-spaces"),
    "hybrid_layers": (
        "States beside attention",
        f"{REMAINS}#linear-recurrences-and-state-spaces",
    ),
    "mixture_of_experts": ("Mixture of experts", f"{REMAINS}#mixture-of-experts"),
    "expert_balance": ("Balanced experts", f"{REMAINS}#mixture-of-experts"),
    "hyper_connections": ("Hyper-connections", ""),
    "speculative_decoding": (
        "Speculative decoding",
        "chapters/basics/auxiliary_losses.html",
    ),
}
"""What no row of the catalogue has yet: its name, and the place in the book that explains it."""

STAGES = {
    "tokens and positions": "token_embedding vit_patches tokenise_anything encoder_decoder "
    "sinusoidal_pe learned_pe shaw_relative alibi rope rope_scaling partial_rope multimodal_rope "
    "nope_layers",
    "what mixes tokens": "",
    "what each token goes through": "pointwise_mlp mixture_of_experts expert_balance "
    "residual_connection layer_norm_pre_post hyper_connections",
    "how it learns and writes": "causal_masking lm_objectives speculative_decoding kv_cache "
    "decoding_strategies",
}
"""The stages of the forward pass, and the mechanisms in each; all others mix tokens."""

MASKS = ("causal", "sliding_window", "block_local", "band", "full")


def lessons() -> dict[str, Any]:
    """{id: [name, address in the book or "", stage]} of every mechanism that a model may use."""
    stages = {id: stage for stage, ids in STAGES.items() for id in ids.split()}
    rows = {row.id: (_name(row), _address(row)) for row in catalogue.MECHANISMS}
    every = {**TODAY, **rows}
    return {
        "lessons": {
            id: [*about, stages.get(id, "what mixes tokens")] for id, about in every.items()
        }
    }


def _name(row: catalogue.Mechanism) -> str:
    name = re.split(r"[:(]", row.name)[0].strip()
    return name if len(name) <= 24 else row.short


def _address(row: catalogue.Mechanism) -> str:
    return f"{row.document}.html#{row.id.replace('_', '-')}" if row.built else ""


class ModelAnatomy(Explorer):
    """A public model, or a config.json, taken apart: its layers with their masks, its weights, its
    cache against the length of the text, where prefill and decode stand on a card, and the lessons.

    model      its id in `tfviz.anatomy`, or its name
    config     the text of a config.json, used in place of `model` unless it is ""
    beside     the id of a second model that is compared, "" for none
    layer      the layer that is looked at, from 0
    """

    uses = ("shared/python", "shared/counted", "shared/anatomy")
    label = "From a model's name to its parts: layers, masks, weights, cache, speed, lessons"
    rem = 44.5, 44.5, 45.5, 70, 140.5
    data = handed(
        lessons,
        models=stored.models,
        families=stored.families,
        **{f"mask_{name}": patterns.FAMILIES[name].formula for name in MASKS},
        readings={name: patterns.FAMILIES[name].formula.text() for name in MASKS},
        most=LONGEST,
    )

    model = own(t.Unicode(FIRST))
    config = own(t.Unicode(""))
    beside = own(t.Unicode(""))
    layer = own(t.Int(5))
    L = knob(131072, of=STOPS, between=True, low=1, high=2**24, label="context", letter="L")
    batch = knob(1, of=[2**n for n in range(9)], between=True, label="texts at once", letter="B")
    bits = knob(16, of={4: "4 bits", 8: "8 bits", 16: "16 bits", 32: "32 bits"}, label="weights")
    cache_bits = knob(
        16, of={4: "4 bits", 8: "8 bits", 16: "16 bits", 32: "32 bits"}, label="cache"
    )
    state_bits = knob(32, of={8: "8 bits", 16: "16 bits", 32: "32 bits"}, label="state")
    card = knob("H100", of={name: name for name in CARDS}, label="card")

    @t.validate("model")
    def _model(self, proposal: Any) -> str:
        return _of(proposal["value"]).id

    @t.validate("beside")
    def _beside(self, proposal: Any) -> str:
        return _of(proposal["value"]).id if proposal["value"] else ""

    @t.validate("config")
    def _config(self, proposal: Any) -> str:
        text: str = proposal["value"]
        if len(text) > LONGEST:
            raise ValueError(
                f"config has {len(text)} characters; give at most {LONGEST}, without its labels"
            )
        if text:
            _read(text)
        return text

    @t.validate("layer")
    def _layer(self, proposal: Any) -> int:
        value: int = proposal["value"]
        if value < 0:
            raise ValueError(f"layer = {value}; give a whole number from 0")
        return value

    @property
    def anatomy(self) -> Anatomy:
        """The model that is looked at."""
        return _read(self.config) if self.config else _of(self.model)

    def numbers(self) -> Numbers:
        """Of the model and of the one beside it, if there is one: weights, bytes, operations; what
        is not counted is an empty list."""
        both = [self.anatomy, *([_of(self.beside)] if self.beside else [])]
        one = both[0]
        layer = min(self.layer, len(one.layers) - 1)
        return {
            "layer": layer,
            "layers": [x.parameters for x in one.layers],
            "kept": [_kept(one, n, self.L) for n in range(len(one.layers))],
            "models": [self._counts(a) for a in both],
        }

    def _counts(self, a: Anatomy) -> list[list[float]]:
        counted: list[Callable[[], list[float]]] = [
            lambda: [
                a.parameters.total,
                a.parameters.active,
                a.parameters.low,
                a.parameters.high,
                *(a.parameters.by_part[part] for part in PARTS),
            ],
            lambda: [*a.cache(self.L, self.batch, *self._bits[1:]).parts.values()],
            lambda: [a.convolutions(self.batch, self.cache_bits)],
            lambda: self._ghost(a.seeing_all()),
            lambda: self._ghost(a.with_every_head()),
            lambda: [a.longest(CARDS[self.card].memory, self.batch, *self._bits)],
            lambda: self._phase(a, "prefill"),
            lambda: self._phase(a, "decode"),
        ]
        return [_or_nothing(count) for count in counted]

    @property
    def _bits(self) -> tuple[int, int, int]:
        return self.bits, self.cache_bits, self.state_bits

    def _ghost(self, a: Anatomy | None) -> list[float]:
        return [] if a is None else [a.cache(self.L, self.batch, *self._bits[1:])]

    def _phase(self, a: Anatomy, phase: str) -> list[float]:
        point = a.point(phase, self.card, self.L, self.batch, *self._bits)
        return [point.operations, point.bytes, point.seconds]


def _or_nothing(count: Callable[[], list[float]]) -> list[float]:
    """What is counted; nothing where the library refuses, with reasons that the page says."""
    with suppress(ValueError):
        return count()
    return []


def _kept(a: Anatomy, n: int, L: int) -> int:
    return 0 if a.refused else sum(counting.kept_by(a.fields, n, L))


@lru_cache(4)
def _read(text: str) -> Anatomy:
    return anatomy.read(text)


def _of(model: str) -> Anatomy:
    try:
        return anatomy.of(model)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
