"""Heads of a really trained model on a sentence: all maps at a glance, one of them large, arcs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import traitlets as t
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz import stored as results
from tfviz.basics.multi_head_attention import mean_distance, weight_at
from tfviz.basics.scaled_dot_product_attention import row_entropy
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import Knob, given, knob, own
from tfviz.stored import letter_gpt as experiment
from tfviz.stored import letter_page

TEXTS = ("the value of the expression", "crwth crwth crwth crwth", "the cat sat on the mat")
LONGEST, MOST_LAYERS, MOST_HEADS = 40, 4, 4
FULL = 65535  # a weight travels as a whole number of this size


class TrainedHeads(Explorer):
    """Every layer and head of a small GPT that reads letters.

    texts      of letters a to z and spaces, 2 to 40 characters each; a character is a token
    text, layer, head, row   what is shown, and the query that is looked at
    yours      a text of the reader's own in place of texts[text]; the stored model only
    model      a GPT over `experiments.head_ablation.ALPHABET`; None: the stored one, with what it
               loses when a head is removed

    Raises ValueError for other characters, lengths and numbers.
    """

    module: ClassVar[str] = "trained_heads"
    uses: ClassVar[tuple[str, ...]] = ("gpt",)
    label: ClassVar[str] = "Heads of a trained model: where each of them looks"
    min_height: ClassVar[str] = "61rem"
    min_height_narrow: ClassVar[str] = "111.5rem"
    narrow: ClassVar[int] = 676

    texts = given(t.List(t.Unicode(), list(TEXTS)), optional=True)
    maps = given(t.List(t.Unicode()), argument=False)
    shape = given(t.List(t.Int()), argument=False)
    removed = given(t.List(t.List(t.Dict())), argument=False)
    whole = given(t.Dict(), argument=False)
    text = knob(0, low=0, high=lambda e: len(e.texts) - 1, label="text")
    layer = knob(0, low=0, high=lambda e: e.shape[0] - 1, label="layer")
    head = knob(0, low=0, high=lambda e: e.shape[1] - 1, label="head")
    yours = own(t.Unicode(""), optional=True)
    row = own(
        Knob(0, low=0, high=lambda e: len(e.shown) - 1, label="query", letter="i"),
        optional=True,
    )
    extra: ClassVar = {"model": None}
    asks = (
        "Predict: which of these heads looks at the letter before, which at what came next the "
        "last time? Choose a head, then move along the text."
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        texts = said.pop("texts", TEXTS)
        texts = [texts] if isinstance(texts, str) else list(texts)
        _arguments.integer("number of texts", len(texts), 1, 6)
        for one in texts:
            _arguments.integer(f"length of {one!r}", len(one), 2, LONGEST)
        whole, removed, model = {}, [], said.pop("model", None)
        if model is None:
            model = experiment.trained()
            stored = results.load("head_ablation")["gpt"]
            whole, removed = {k: stored[k] for k in ("text", "repeats")}, stored["without"]
        found = [experiment.of_text(model, one) for one in texts]
        N, h = found[0].shape[:2]
        _arguments.integer("number of layers", N, 1, MOST_LAYERS)
        _arguments.integer("number of heads", h, 1, MOST_HEADS)
        text = texts[_arguments.integer("text", said.get("text", 0), 0, len(texts) - 1)]
        last = len(said.get("yours") or text) - 1
        made = {
            "texts": texts, "maps": [_packed(A) for A in found], "shape": [N, h],
            "whole": whole, "removed": removed,
        }  # fmt: skip
        return {"row": last} | said | made

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TrainedHeads:
        """What a model gave is taken as it stands there, whatever model it was."""
        given = ("texts", "text", "layer", "head", "yours", "row", "prompt")
        one = cls(**{name: state[name] for name in given if name in state})
        for name in state.keys() - set(given):
            one.set_trait(name, state[name])
        return one

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"model": letter_page.for_page()}

    @t.validate("yours")
    def _yours(self, proposal: Any) -> str:
        text: str = proposal["value"]
        if not text:
            return text
        if not self.whole:
            raise ValueError(
                f"yours = {text!r}, but the page has the weights of the stored model only; give "
                "texts to another one"
            )
        _arguments.integer("length of yours", len(text), 2, LONGEST)
        experiment.ALPHABET.encode(text)
        return text

    @property
    def shown(self) -> str:
        """The text that is looked at."""
        return self.yours or self.texts[self.text]

    @property
    def weights(self) -> Float[Tensor, "layers heads L L"]:
        """A of every head on the text that is shown, as the page has it."""
        N, h = self.shape
        if self.yours:
            return experiment.of_text(letter_page.exact(), self.yours)
        return _unpacked(self.maps[self.text], N, h, len(self.texts[self.text]))

    def numbers(self) -> dict[str, Any]:
        """Of the head that is shown: the weights of the row, and over all rows the mean entropy in
        nats, distance, and weight on the token before."""
        A = self.weights[self.layer, self.head]
        return {
            "weights": A[self.row, : self.row + 1].tolist(),
            "entropy": row_entropy(A).mean().item(),
            "distance": mean_distance(A).item(),
            "before": weight_at(A, 1).item(),
        }


def _packed(A: Float[Tensor, "layers heads L L"]) -> str:
    """The causal half, row after row, two bytes for a weight."""
    i, j = torch.tril_indices(*A.shape[-2:]).unbind()
    whole = (A[..., i, j] * FULL).round().int()
    return base64.b64encode(whole.numpy().astype("<u2").tobytes()).decode()


def _unpacked(text: str, N: int, h: int, L: int) -> Tensor:
    raw = bytearray(base64.b64decode(text))
    A: Tensor = torch.zeros(N, h, L, L, dtype=torch.float64)
    i, j = torch.tril_indices(L, L).unbind()
    A[..., i, j] = torch.frombuffer(raw, dtype=torch.uint16).double().view(N, h, -1) / FULL
    return A
