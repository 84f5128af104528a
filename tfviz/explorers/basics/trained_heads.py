"""Heads of a really trained model on a sentence: all maps at a glance, one of them large, arcs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import traitlets as t
from jaxtyping import Float

from tfviz import _arguments
from tfviz import stored as results
from tfviz.basics.multi_head_attention import mean_distance, weight_at
from tfviz.basics.scaled_dot_product_attention import row_entropy
from tfviz.explorers.base import Explorer, Knob, Numbers, given, handed, knob, own
from tfviz.stored import letter_gpt as experiment
from tfviz.stored import letter_page

TEXTS = (
    "the value of the expression",
    "crwth crwth crwth crwth",
    "the cat sleeps because it purrs",
)
LONGEST, MOST_LAYERS, MOST_HEADS = 40, 4, 4


EXAMPLES: dict[str, Numbers] = {
    "": {"texts": ["crwth crwth crwth", "the value of them"], "layer": 1, "row": 13}
}


class TrainedHeads(Explorer):
    """Every layer and head of a small GPT that reads letters.

    texts    of letters a to z and spaces, 2 to 40 characters each; a character is a token
    yours    a text of the reader's own in place of texts[text]; the stored model only
    model    a GPT over `experiments.head_ablation.ALPHABET`; None: the stored one, with what it
             loses when a head is removed
    """

    uses = ("shared/numbers", "shared/parts", "shared/alive", "shared/gpt")
    data = handed(model=letter_page.for_page)
    label = "Heads of a trained model: where each of them looks"
    rem = 44, 44, 44, 44.5, 100

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
        Knob(0, low=0, high=lambda e: len(e.shown) - 1, label="query", letter="i"), optional=True
    )
    extra: ClassVar = {"model": None}
    examples = EXAMPLES
    asks = "Choose another head, then move along the text."

    _stands: list[str] | None = None  # the texts whose maps came with a state

    def prepare(self, said: Numbers) -> Numbers:
        if self._stands is not None:
            if list(said["texts"]) != self._stands:
                raise ValueError(
                    f"texts = {list(said['texts'])!r:.80}, but the maps of this explorer came with "
                    "its state; make another one: TrainedHeads(texts)"
                )
            return said
        texts = said.pop("texts", TEXTS)
        texts = [texts] if isinstance(texts, str) else list(texts)
        _arguments.integer("number of texts", len(texts), 1, 6)
        whole, removed, model = {}, [], said.pop("model", None)
        if model is None:
            model, kept = experiment.trained(), results.load("head_ablation")["gpt"]
            whole, removed = {k: kept[k] for k in ("text", "repeats")}, kept["without"]
        for one in texts:
            letter_page.readable(repr(one), one, 2, LONGEST)
        maps = [experiment.of_text(model, one) for one in texts]
        N, h = maps[0].shape[:2]
        _arguments.integer("number of layers", N, 1, MOST_LAYERS)
        _arguments.integer("number of heads", h, 1, MOST_HEADS)
        text = texts[_arguments.integer("text", said.get("text", 0), 0, len(texts) - 1)]
        last = len(said.get("yours") or text) - 1
        packed = {"texts": texts, "maps": [letter_page.pack_maps(A) for A in maps], "shape": [N, h]}
        return {"row": last} | said | packed | {"whole": whole, "removed": removed}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TrainedHeads:
        """What a model gave is taken as it stands there, whatever model it was."""
        given = ("texts", "text", "layer", "head", "yours", "row", "prompt")
        one = cls(**{name: state[name] for name in given if name in state})
        one._begun = False
        for name in state.keys() - set(given):
            one.set_trait(name, state[name])
        one._begun, one._stands = True, list(one.texts)
        return one

    @t.validate("yours")
    def _yours(self, proposal: Any) -> str:
        text: str = proposal["value"]
        if text and not self.whole:
            raise ValueError(
                f"yours = {text!r}, but the page has the weights of the stored model only; give "
                "texts to another one"
            )
        return letter_page.readable("yours", text, 2, LONGEST) if text else text

    @property
    def shown(self) -> str:
        """The text that is looked at."""
        return self.yours or self.texts[self.text]

    @property
    def weights(self) -> Float[torch.Tensor, "layers heads L L"]:
        """A of every head on the text that is shown, as the page has it."""
        if self.yours:
            return experiment.of_text(letter_page.exact(), self.yours)
        return letter_page.unpack_maps(self.maps[self.text], self.shape, len(self.texts[self.text]))

    def numbers(self) -> Numbers:
        """Of the head that is shown: the weights of the row, and over all rows the mean entropy in
        nats, distance, and weight on the token before."""
        A = self.weights[self.layer, self.head]
        habits = {"distance": mean_distance(A), "before": weight_at(A, 1)}
        weights = A[self.row, : self.row + 1]
        return {"weights": weights, "entropy": row_entropy(A).mean(), **habits}
