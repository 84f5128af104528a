"""Everyday slips, given to everything public: a right answer, or an error that names an argument
and says what to do; no IndexError, RuntimeError, AttributeError or KeyError from within."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from public import VOCAB, D, H, example, modules, public
from refusals import of_no_kind, refused
from slips import arguments, clear, slips
from torch import Tensor, nn

from tfviz._arguments import named
from tfviz.basics.layer_norm_pre_post import rms_norm
from tfviz.models.bert import BERT
from tfviz.models.blocks import Block, Embedding, MultiHeadAttention, Stack
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import generate

X, T = torch.randn(2, 6, D), torch.randint(VOCAB, (2, 6))

ELSEWHERE = {
    "explain": "tests/explained",
    "heads.without_heads": "a context",
    "heads.values": "a context",
    "models.watched": "a context",
    "basics.without_heads": "a context",
    "priors.bell": "a formula of i and j",
    "priors.bell_around": "a formula of i and j",
    "priors.beside": "a formula of i and j",
    "priors.share": "a formula of i and j",
    "longer_context.Halting": "what `universal` makes",
    "adaptive.Span": "what AdaptiveSpan and DynamicSpan are made of",
}
"""What is tried elsewhere, or looks at its arguments only when it is entered."""

FUNCTIONS = {n: f for n, f in public().items() if inspect.isfunction(f) and n not in ELSEWHERE}
MODULES = {n: kind for n, kind in modules().items() if n not in ELSEWHERE}


def none_is_raw(call: Callable[..., Any], good: dict[str, Any]) -> None:
    """Neither with these arguments, nor with a slip in one of them."""
    tried = [good] + [good | {name: x} for name in good for _, x in slips(good[name])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in tried:
            try:
                call(**given)
            except Exception as error:
                assert clear(error, given), f"{error!r} is not clear, for {given}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_what_does_not_fit(name: str) -> None:
    none_is_raw(FUNCTIONS[name], arguments(FUNCTIONS[name]))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_names_what_does_not_fit(name: str) -> None:
    module = example(MODULES[name])
    none_is_raw(module, arguments(module.forward))


@pytest.mark.parametrize("name", sorted(modules().keys() - ELSEWHERE.keys()))
def test_a_module_is_made_with_what_fits(name: str) -> None:
    kind = modules()[name]
    none_is_raw(kind, arguments(kind.__init__))


ATTEND, GPT_ = MultiHeadAttention(D, H), GPT(VOCAB, D, H, 1)
SAID: list[tuple[str, Callable[[], Any]]] = [
    ("X has shape (6, 16); give (b, L, d), X[None] for one", lambda: ATTEND(X[0])),
    ("X has shape (6, 16); give (b, L, d), X[None] for one", lambda: Block(D, H)(X[0])),
    ("X has shape (6, 16); give (b, L, d), X[None] for one", lambda: Stack(1, D, H)(X[0])),
    ("X of shape (2, 6, 8); look", lambda: ATTEND(X[..., :8])),
    ("memory has shape (6, 16); give", lambda: ATTEND(X, X[0])),
    ("t holds 11, and vocab = 11: give numbers from 0 to 10", lambda: GPT_(T * 0 + VOCAB)),
    ("t holds -100, and vocab = 11 … labels", lambda: GPT_(T * 0 - 100)),
    ("t holds 12, and vocab = 11", lambda: BERT(VOCAB, D, H, 1)(T * 0 + 12)),
    ("t holds 29", lambda: EncoderDecoder(VOCAB, D, H, 1)(T, T * 0 + 29)),
    ("t holds 40", lambda: generate(GPT_, T * 0 + 40, 2)),
    ("segment holds 2, and segments = 2", lambda: BERT(VOCAB, D, H, 1)(T, None, 2)),
    ("segment has shape (2, 3); give", lambda: BERT(VOCAB, D, H, 1)(T, None, T[:, :3])),
    ("d = -16 is out of range", lambda: MultiHeadAttention(-D, H)),
]
OF_NO_KIND: list[tuple[str, Callable[[], Any]]] = [
    ("t is a list; give a tensor of shape (b, L)", lambda: generate(GPT_, T.tolist(), 1)),
    ("model is the class GPT; give a GPT", lambda: generate(GPT, T, 1)),
    ("phi = ReLU() is made already; give its class", lambda: GPT(VOCAB, D, H, 1, phi=nn.ReLU())),
    ("order = 'pre'; give", lambda: Block(D, H, "pre")),  # type: ignore[arg-type]
    ("cache is a list; give a dict", lambda: GPT_(T, [])),
    ("X is a list; give a tensor of shape (*L, d)", lambda: rms_norm(X.tolist())),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("says", "call"), SAID, ids=[x for x, _ in SAID])
def test_it_says_which_and_what_to_do(says: str, call: Callable[[], Any]) -> None:
    refused(says, call)


@pytest.mark.parametrize(("says", "call"), OF_NO_KIND, ids=[x for x, _ in OF_NO_KIND])
def test_it_says_of_which_kind(says: str, call: Callable[[], Any]) -> None:
    of_no_kind(says, call)


def test_small_whole_numbers_are_tokens_too() -> None:
    assert Embedding(VOCAB, D)(T.short()).shape == (*T.shape, D)


def raw(x: Tensor) -> Any:
    return x[99]


def own(x: Tensor) -> Any:
    raise RuntimeError("mine")


def test_what_others_raise_stays_as_it_is() -> None:
    """An error of a function that somebody gave, and of code that is not the library's."""
    for function, error in ((raw, IndexError), (own, RuntimeError)):
        with pytest.raises(error):
            named(function)(X)
        with pytest.raises(error):
            generate(GPT_, T, 1, pick=function)


def test_a_walk_finds_out_what_is_raw() -> None:
    def attend(X: Tensor) -> Tensor:
        return X @ torch.ones(D, D)

    with pytest.raises(AssertionError, match="is not clear"):
        none_is_raw(attend, {"X": X})
