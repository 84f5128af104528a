"""CALM: what is skipped is not computed, and what is written is what reading tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import ranges, refused
from torch import Generator, Tensor, nn

from tfviz.adaptive.calm_confidence import (
    Confidence,
    agreement_loss,
    classified,
    falling,
    next_logits,
    read_early,
    saturation,
    softmax_response,
    token_flops,
    write_early,
)
from tfviz.adaptive.depth_adaptive_training import leave_at, read, states
from tfviz.cores import Kept, Where
from tfviz.longer_context.alibi import Alibi
from tfviz.measure import flops
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.training import seeded

KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "learned": lambda: {"positions": Learned(64, 12)},
    "rotary": lambda: {"core": lambda: Rope(6)},
    "alibi, one key head": lambda: {"core": lambda: Alibi(2), "h_kv": 1},
}


def model_of(kind: str = "rotary", N: int = 4) -> GPT:
    model = seeded(2, lambda: GPT(11, 12, 2, N, **KINDS[kind]())).double()
    with torch.no_grad():
        for weights in model.stack.blocks.parameters():
            weights.mul_(3)  # blocks that change what is said
    return model


TEXT = torch.randint(11, (1, 6), generator=Generator().manual_seed(0))
HEAD = seeded(4, lambda: nn.Linear(12, 1)).double()
MEASURES: dict[str, tuple[Confidence, float]] = {
    "response": (softmax_response, 0.15),
    "saturation": (saturation, 0.93),
    "classifier": (classified(HEAD), 0.5),
}


def test_measures_typed_by_hand() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]).log()
    unseen: Any = None  # the state, which it does not look at
    response = softmax_response(unseen, None, lambda: logits)
    torch.testing.assert_close(response, torch.tensor([0.2, 0.7]))
    x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[-4.0, 3.0]])
    torch.testing.assert_close(saturation(x, y, lambda: x), torch.zeros(1))
    torch.testing.assert_close(saturation(x, 2 * x, lambda: x), torch.ones(1))
    assert saturation(x, None, lambda: x).item() == -1


def test_the_threshold_falls_by_a_tenth_at_most() -> None:
    levels = falling(0.8, T=100)
    assert levels[0] == pytest.approx(0.8) and (levels.diff() < 0).all()
    assert levels[50].item() == pytest.approx(0.8 * (0.9 + 0.1 * math.exp(-2)))
    assert levels.min() > 0.72


def test_limits() -> None:
    model = model_of()
    full, exits = read_early(model, TEXT, softmax_response, 1.01)
    torch.testing.assert_close(full, model(TEXT))
    assert (exits == 4).all()
    tokens, exits = write_early(model, TEXT, 8, softmax_response, threshold=1.12, tau=4.0)
    assert tokens.equal(generate(model, TEXT, 8)) and (exits == 4).all()
    first, exits = read_early(model, TEXT, softmax_response, 0.0)
    torch.testing.assert_close(first, read(model, states(model, TEXT)[0]))
    assert (exits == 1).all() and (read_early(model, TEXT, saturation, -0.99)[1] == 2).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measure", MEASURES)
def test_what_is_written_is_what_reading_tells(kind: str, measure: str) -> None:
    """Skipping blocks in a cache = the parallel definition on the text that came out."""
    model, (confidence, level) = model_of(kind), MEASURES[measure]
    tokens, exits = write_early(model, TEXT, 20, confidence, level, tau=4.0)
    given = TEXT.shape[1] - 1
    levels = torch.cat([torch.full((given,), math.inf), falling(level, 20)])
    logits, told = read_early(model, tokens[:, :-1], confidence, levels)
    assert told[0, given:].equal(exits) and (told[0, :given] == 4).all()
    assert logits[0, given:].argmax(-1).equal(tokens[0, given + 1 :])
    torch.testing.assert_close(read(model, leave_at(model, tokens[:, :-1], told)), logits)
    assert len(exits.unique()) > 1 or kind != "rotary"


def test_copied_states_are_not_those_of_the_full_model() -> None:
    model = model_of()
    n = torch.tensor([[1, 4, 4, 4, 4, 4]])
    assert not leave_at(model, TEXT, n)[:, 1:].allclose(states(model, TEXT)[-1][:, 1:])


def test_skipped_blocks_cost_their_keys_and_values_alone() -> None:
    model, cache = model_of(), dict[nn.Module, Kept]()
    model(TEXT, cache)
    new = torch.tensor([[3]])

    def one(confidence: object, level: float) -> int:
        return flops(next_logits, model, new, dict(cache), confidence, level)

    for n in (1, 2, 3, 4):  # a measure that stops at n, without and with a look at the logits
        seen = iter(range(1, 5))
        count = one(lambda X, before, logits: torch.tensor([[next(seen) == n]]).double(), 0.5)  # noqa: B023
        assert count == token_flops(n, 4, 12, 11, context=7)
    last = token_flops(4, 4, 12, 11, context=7)
    assert one(softmax_response, 2.0) == token_flops(4, 4, 12, 11, context=7, reads=4)
    assert one(softmax_response, 0.0) == token_flops(1, 4, 12, 11, context=7, reads=1) < last / 2
    assert one(classified(HEAD), 2.0) == last + 3 * 2 * 12
    whole = generate_flops(model)
    assert last == whole


def generate_flops(model: GPT) -> int:
    cache = dict[nn.Module, Kept]()
    model(TEXT, cache)
    return flops(model, torch.tensor([[3]]), cache)


def test_the_classifier_learns_whether_the_full_model_agrees() -> None:
    model, head = model_of(), seeded(0, lambda: nn.Linear(12, 1)).double()
    t = torch.randint(11, (4, 16), generator=Generator().manual_seed(1))

    def balanced(head: nn.Module) -> Tensor:  # by hand, block by block
        X = states(model, t)
        said, total = read(model, X).argmax(-1), []
        for n in range(3):
            yes = said[n] == said[-1]
            a = head(X[n])[..., 0]
            part = yes * (~yes).double().mean() * F.softplus(-a)
            total.append((part + ~yes * yes.double().mean() * F.softplus(a)).mean())
        return torch.stack(total).mean()

    torch.testing.assert_close(agreement_loss(model, head, t), balanced(head))
    adam, start = torch.optim.Adam(head.parameters(), 0.05), agreement_loss(model, head, t).item()
    for _ in range(40):
        loss = agreement_loss(model, head, t)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert loss.item() < 0.95 * start and all(p.grad is None for p in model.parameters())


def test_bad_input_is_named() -> None:
    two, text = TEXT.expand(2, -1), "t has shape (2, 6); give one text"
    refused(text, write_early, model_of(), two, 3, saturation, 0.5)

    def last(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, None]:
        return where.joined(K, V)[1][:, :, -Q.shape[2] :], None

    strange = GPT(11, 12, 2, 2, core=lambda: last)
    keeps = "does not keep plain keys and values"
    refused(keeps, write_early, strange, TEXT, 2, softmax_response, 0.0)
    ranges(partial(falling, 0.5), T=(3, 1))
    nan = "threshold holds NaN"
    refused(nan, write_early, model_of(), TEXT, 3, saturation, math.nan)
    refused(nan, read_early, model_of(), TEXT, saturation, torch.tensor([0.5] * 5 + [math.nan]))
    assert (write_early(model_of(), TEXT, 2, saturation, math.inf)[1] == 4).all()
    refused("no block to leave behind", write_early, model_of(N=0), TEXT, 3, saturation, 0.5)
    one = GPT(1, 12, 2, 2)
    refused("vocabulary has one token", write_early, one, 0 * TEXT, 3, softmax_response, 0.5)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "skipped blocks that forget the token",
            "    for skipped in blocks[n:]:\n        copy_up(skipped, X, cache)",
            "    for skipped in blocks[n:]:\n        skipped(X, None, None, cache)",
        ),
        (
            "copied states that are not normalised",
            "block.norms[0](X))  # nobody asks",
            "X)  # nobody asks",
        ),
    ],
)
