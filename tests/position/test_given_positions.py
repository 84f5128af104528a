"""Positions that come from outside: who reads them, and that who does not says so."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from cases import cases
from laws import Case
from public import VOCAB, D, H
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz import attention
from tfviz.basics.alrfou_auxiliary_losses import DeepCharacterModel
from tfviz.basics.decoding_strategies import beam_search, next_of
from tfviz.cores import Dense, Where, given, given_positions
from tfviz.current.latent_attention import LatentAttention
from tfviz.longer_context.transformer_xl_recurrence import Recurrent, transformer_xl
from tfviz.longer_context.universal_transformer import universal
from tfviz.longer_context.ut_act import halting_universal
from tfviz.longer_context.ut_time_position_signal import TimePosition
from tfviz.models.bert import BERT
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.patterns import causal, full
from tfviz.position.learned_pe import Learned, positions_in_every_layer
from tfviz.position.rope import Rope
from tfviz.position.sinusoidal_pe import Sinusoidal

close = partial(torch.testing.assert_close, atol=1e-10, rtol=0)
L = 8
TEXT = torch.randint(VOCAB, (2, L), generator=torch.Generator().manual_seed(1))
REAL = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1, 1, 1]]).bool()


def somewhere(*size: int) -> Tensor:
    """Real positions in rising order, with unequal steps."""
    rng = torch.Generator().manual_seed(3)
    return torch.rand(size, generator=rng, dtype=torch.float64).add(0.2).cumsum(-1) * 3


def randomly(model: nn.Module) -> Any:
    """In float64, with weights that hide nothing."""
    rng = torch.Generator().manual_seed(2)
    for p in model.parameters():
        p.data += 0.3 * torch.randn(p.shape, generator=rng)
    return model.double().eval()


def in_every_layer() -> GPT:
    model = GPT(VOCAB, D, H, 2)
    positions_in_every_layer(model.stack, lambda: Sinusoidal(D))
    return model


READERS: dict[str, Callable[[], nn.Module]] = {
    "rotary": lambda: GPT(VOCAB, D, H, 2, core=Rope),
    "rotary in one of two layers": lambda: GPT(
        VOCAB, D, H, 2, layer=lambda n: {"core": (Dense, Rope)[n]}
    ),
    "sinusoids": lambda: GPT(VOCAB, D, H, 2, positions=Sinusoidal(D)),
    "in every layer": in_every_layer,
    "universal": lambda: universal(GPT(VOCAB, D, H, 1), 3),
    "both": lambda: GPT(VOCAB, D, H, 1, positions=Sinusoidal(D), core=Rope),
}


@pytest.fixture(params=READERS)
def model(request: pytest.FixtureRequest) -> Any:
    return randomly(READERS[request.param]())


# --- who reads them -------------------------------------------------------------------------------


@torch.no_grad()
def test_the_places_themselves_change_nothing(model: Any) -> None:
    usual = model(TEXT)
    for P in (torch.arange(L), torch.arange(L)[None], torch.arange(L).expand(2, -1).float()):
        with given(positions=P):
            close(model(TEXT), usual, atol=1e-6)  # sinusoids are made in float32
    with given(positions=somewhere(L)):
        assert (model(TEXT) - usual).abs().max() > 1e-3


@torch.no_grad()
def test_each_text_has_its_own(model: Any) -> None:
    P = somewhere(2, L)
    with given(positions=P):
        both = model(TEXT)
    for n in range(2):
        with given(positions=P[n]):
            close(model(TEXT[n : n + 1])[0], both[n])
        with given(positions=P[1 - n]):
            assert (model(TEXT[n : n + 1])[0] - both[n]).abs().max() > 1e-3


@torch.no_grad()
def test_with_a_cache_they_are_those_of_the_whole_text(model: Any) -> None:
    with given(positions=somewhere(2, L)):
        whole, cache = model(TEXT), dict[nn.Module, Any]()
        parts = [model(part, cache) for part in TEXT.split([3, 1, 4], 1)]
    close(torch.cat(parts, 1), whole)


@torch.no_grad()
def test_a_text_is_written_at_the_positions_that_come_later(model: Any) -> None:
    P, t = somewhere(2, L + 4), TEXT
    with given(positions=P):
        written = generate(model, TEXT, 4)
        for _ in range(4):  # once more, without what is kept
            t = torch.cat([t, model(t)[:, -1:].argmax(-1)], 1)
    assert written.equal(t)
    with given(positions=P[:, : L + 2]):
        refused("positions has 10 columns, and 11 tokens are read by now", generate, model, TEXT, 4)


def test_rotary_positions_are_turned_to() -> None:
    X = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    with given(positions=torch.arange(20) / 4):
        close(Rope(8).turn_queries(X, Where(start=7)), Rope(8, interpolate=4.0).turn(X, 7))
    with given(positions=torch.arange(5)):
        assert Rope(8).turn_keys(X, Where()).equal(Rope(8).turn(X, 0))


def test_rows_of_a_table_are_looked_up() -> None:
    model, P = randomly(GPT(VOCAB, D, H, 1, positions=Learned(30, D, std=1.0))), TEXT + 11
    with given(positions=P):
        found = model.embed(TEXT)
    close(found, model.embed.weight[TEXT] + model.embed.positions.P[P])
    with given(positions=P / 2):
        of_no_kind("i is torch.float32; give whole numbers", model, TEXT)


@torch.no_grad()
def test_layers_with_tables_and_steps_with_signals_look_them_up() -> None:
    P = TEXT + 3
    deep = randomly(DeepCharacterModel(VOCAB, D, H, 2, 20))
    with given(positions=P):
        found = [*deep.states(TEXT)]
    X = deep.embed(TEXT)
    for table, block, out in zip(deep.P, deep.blocks, found, strict=True):
        X = block(X + table.P[P])
        close(out, X)
    stack = randomly(universal(GPT(VOCAB, D, H, 1), 2)).stack
    with given(positions=P):
        close(stack.norm(stack.states(X)[-1]), stack(X))


def test_a_gradient_reaches_them() -> None:
    P = somewhere(2, L).requires_grad_()
    with given(positions=P):
        out = randomly(GPT(VOCAB, D, H, 1, core=Rope))(TEXT)
    (grad,) = torch.autograd.grad(out.square().sum(), P)
    assert grad.abs().min() > 0


@torch.no_grad()
def test_source_and_target_are_given_their_own() -> None:
    model, (P, R) = randomly(EncoderDecoder(VOCAB, D, H, 1, core=Rope)), somewhere(2, 1, L)
    usual = model.decode(TEXT, model.encode(TEXT))
    with given(positions=P):
        memory = model.encode(TEXT)
    with given(positions=R):
        moved = model.decode(TEXT, memory)
    assert (moved - usual).abs().max() > 1e-3
    with given(positions=P + 5), given(positions=P):
        close(model.encode(TEXT), memory)


# --- padding --------------------------------------------------------------------------------------


@torch.no_grad()
def test_padding_takes_its_positions_along(model: Any) -> None:
    """Each text is read as if alone, at the positions of its own tokens; also where what is read
    ends within the text."""
    for P in (somewhere(2, L), somewhere(L), somewhere(1, L)):
        with given(positions=P):
            found, cache = model(TEXT, attention_mask=REAL), dict[nn.Module, Any]()
            parts = [
                model(TEXT[:, a:b], cache, attention_mask=REAL[:, :b]) for a, b in ((0, 5), (5, L))
            ]
        close(torch.cat(parts, 1), found)
        for n, there in enumerate(REAL):
            with given(positions=P.expand(2, -1)[n][there]):
                close(found[n, there], model(TEXT[n, there][None])[0])


@torch.no_grad()
def test_padding_before_what_is_written(model: Any) -> None:
    P = somewhere(2, L + 3)
    with given(positions=P):
        written = generate(model, TEXT, 3, attention_mask=REAL)
        with given(positions=P[0]):
            beams = beam_search(next_of(model), TEXT[0], 3, 3, attention_mask=REAL[0])
    for n, there in enumerate(REAL):
        with given(positions=torch.cat([P[n, :L][there], P[n, L:]])):
            alone = TEXT[n, there]
            assert written[n, L:].equal(generate(model, alone[None], 3)[0, -3:])
            assert n or beams == beam_search(next_of(model), alone, 3, 3)


@torch.no_grad()
def test_an_encoder_and_a_plane_too() -> None:
    bert = randomly(BERT(VOCAB, D, H, 1, core=lambda: Rope(D // H, axes=2)))
    P = torch.stack([somewhere(2, L), somewhere(2, L).flip(0)], -1)
    with given(positions=P):
        found = bert(TEXT, REAL)
    for n, there in enumerate(REAL):
        with given(positions=P[n : n + 1, there]):
            close(found[n, there], bert(TEXT[n, there][None])[0])


def test_padding_needs_a_position_for_every_column() -> None:
    model = GPT(VOCAB, D, H, 1, core=Rope)
    for P, says in (
        (somewhere(6), "positions has 6 columns, and 8 tokens are read by now"),
        (somewhere(3, L), "positions has shape (3, 8), and b = 2; give (b, L)"),
        (torch.tensor(1.0), "positions has shape (), and b = 2"),
        (torch.ones(2, L, 2), "positions has shape … give (b, L)"),
    ):
        with given(positions=P):
            refused(says, partial(model, attention_mask=REAL), TEXT)
    with given(positions=[0.0] * L):  # type: ignore[arg-type]
        of_no_kind("positions is a list", partial(model, attention_mask=REAL), TEXT)


# --- who does not, says so ------------------------------------------------------------------------

DENSE: dict[str, Case] = {
    name: case
    for name, case in cases().items()
    if case.make and isinstance(case.make(), Dense) and case.answers != "whole"
}


@pytest.mark.parametrize("name", DENSE)
@torch.no_grad()
def test_a_core_that_counts_places_reads_given_ones_or_refuses_them(name: str) -> None:
    """Whoever counts is known by this: another order of the keys changes what the last query says,
    though it sees them all."""
    case = DENSE[name]
    core, (Q, K, V, *_) = case.core(), case.drawn()
    others = torch.randperm(case.length - 1, generator=torch.Generator().manual_seed(1))
    order = torch.cat([others, torch.tensor([case.length - 1])])
    usual = core(Q, K, V, Where(causal()))[0][:, :, -1]
    counts = not torch.allclose(
        core(Q, K[:, :, order], V[:, :, order], Where(causal()))[0][:, :, -1], usual
    )
    with given(positions=somewhere(case.length)):
        if not counts:
            close(core(Q, K, V, Where(causal()))[0][:, :, -1], usual)
        elif isinstance(core, Rope | LatentAttention):
            assert not torch.allclose(core(Q, K, V, Where(causal()))[0][:, :, -1], usual)
        else:
            refused("positions are given … counts places itself", core, Q, K, V, Where(causal()))


class Yours(Dense):
    def turn(self, X: Tensor, start: int) -> Tensor:
        return X * (start + 1)


def test_others_that_count_refuse_too() -> None:
    X = torch.randn(1, L, D)
    calls: list[Callable[[], object]] = [
        lambda: GPT(VOCAB, D, H, 1, core=Yours)(TEXT),
        lambda: transformer_xl(VOCAB, D, H, 1, 4)(TEXT, {}),
        lambda: Recurrent(D, H, m=4, core=Rope)(X, cache={}),
        lambda: halting_universal(GPT(VOCAB, D, H, 1), 3, TimePosition(D))(TEXT),
    ]
    for call in calls:
        call()
        with given(positions=torch.arange(L)):
            refused("positions are given … counts places itself; use an encoding", call)


# --- queries and keys -----------------------------------------------------------------------------


class LongQueries(Dense):
    """Queries that grow with their place, as Llama 4 has them, and keys that do not."""

    def turn_queries(self, X: Tensor, where: Where) -> Tensor:
        i = torch.arange(where.start, where.start + X.shape[2], dtype=X.dtype)
        return X * (1 + i[:, None])


@torch.no_grad()
def test_queries_may_be_turned_otherwise_than_keys() -> None:
    Q, K, V = torch.randn(3, 2, H, 5, 4, dtype=torch.float64).unbind(0)
    grown = (1 + torch.arange(5.0))[:, None] * Q
    for pattern in (full(), causal()):
        found = LongQueries()(Q, K, V, Where(pattern, need_weights=True))
        for one, other in zip(found, attention(grown, K, V, pattern), strict=True):
            close(one, other)
    model = randomly(GPT(VOCAB, D, H, 2, core=LongQueries))
    cache: dict[nn.Module, Any] = {}
    close(torch.cat([model(t, cache) for t in TEXT.split([3, 1, 4], 1)], 1), model(TEXT))


class LongKeys(Dense):
    def turn_keys(self, X: Tensor, where: Where) -> Tensor:
        return 2 * X


def test_keys_are_kept_as_they_were_turned() -> None:
    Q, K, V = torch.randn(3, 2, H, 5, 4, dtype=torch.float64).unbind(0)
    kept: list[Any] = []
    close(LongKeys()(Q, K, V, Where(keep=kept.append))[0], attention(Q, 2 * K, V)[0])
    close(kept[0][0], 2 * K)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("P", "says"),
    [
        (torch.ones(4), "positions has 4 columns, and 5 tokens are read by now; give a position"),
        (torch.ones(2, 4), "positions has 4 columns"),
        (torch.ones(3, 5), "positions has shape (3, 5), and b = 2; give (b, L) or, for all texts"),
        (torch.ones(2, 5, 2), "positions has shape (2, 5, 2), and b = 2; give (b, L)"),
        (torch.tensor(1.0), "positions has shape (), and b = 2"),
        (torch.tensor([0.0, 1.0, 2.0, 3.0, math.nan]), "positions holds NaN or infinity"),
        (torch.full((2, 5), math.inf), "positions holds NaN or infinity"),
    ],
    ids=str,
)
def test_positions_that_do_not_fit_are_refused(P: Tensor, says: str) -> None:
    with given(positions=P):
        refused(says, given_positions, 3, 2, 2)
        refused(says, Rope(4), *torch.randn(3, 2, 1, 5, 4), Where())


def test_positions_that_are_no_numbers_are_refused() -> None:
    wrong: list[tuple[Any, str]] = [
        ([0, 1, 2], "positions is a list; give a tensor of real numbers, (b, L)"),
        (torch.ones(5).bool(), "positions is torch.bool; give"),
        (torch.ones(5) * 1j, "positions is torch.complex64; give"),
    ]
    for P, says in wrong:
        with given(positions=P):
            of_no_kind(says, given_positions, 0, 2, 2)


def test_in_a_plane_every_token_has_as_many_as_there_are_axes() -> None:
    X = torch.randn(3, 2, 1, 5, 8)
    for P in (torch.ones(5), torch.ones(2, 5), torch.ones(2, 5, 3), torch.ones(3, 5, 2)):
        with given(positions=P):
            refused("give (b, L, 2), or 1 in the place of b", Rope(8, axes=2), *X, Where())
    with given(positions=torch.ones(1, 5, 2)):
        Rope(8, axes=2)(*X, Where())


BROKEN_LINES = {
    "tfviz/cores.py": [
        (
            "positions from the first token on",
            "P.narrow(column, start, L)",
            "P.narrow(column, 0, L)",
        ),
        (
            "positions that an encoding of one's own does not hear of",
            "if type(self).turn is not Dense.turn:",
            "if False:",
        ),
        (
            "positions that a bias does not hear of",
            '    refuse_given_positions("a bias or prior of i and j")\n',
            "",
        ),
        ("positions for too few tokens", "P.shape[column] < start + L", "P.shape[column] < start"),
        (
            "keys turned as queries",
            "return Dense.turn_queries(self, X, where)",
            "return self.turn_queries(X, where)",
        ),
    ],
    "tfviz/models/padding.py": [
        (
            "padding that keeps its positions",
            "there.to(P.device)",
            "there.sort()[0] * 0 + torch.arange(len(there))",
        ),
        ("no positions after the padding", "torch.arange(n, P.shape[column])", "torch.arange(0)"),
        ("a beam at the places of its padding", "**_given_to(torch.tensor([0]), real.cpu())", ""),
    ],
    "tfviz/models/blocks.py": [
        (
            "rows of places that were given otherwise",
            "places(past, b, L, t.device)",
            "torch.arange(past, past + L)",
        ),
    ],
    "tfviz/position/rope.py": [
        (
            "keys that are not where queries are",
            "return self.turn_queries(X, where)",
            "return self.turn(X, where.start)",
        ),
    ],
    "tfviz/position/xl_relative.py": [
        ("XL counts in silence", '        refuse_given_positions("XL")\n', ""),
    ],
    "tfviz/basics/alrfou_auxiliary_losses.py": [
        ("tables by count", "places(0, len(t), t.shape[1], t.device)", "torch.arange(t.shape[1])"),
    ],
    "tfviz/longer_context/alibi.py": [
        ("ALiBi counts in silence", '        refuse_given_positions("Alibi")\n', ""),
    ],
    "tfviz/adaptive/adaptive_span.py": [
        ("a span counts in silence", "        refuse_given_positions(type(self).__name__)\n", ""),
    ],
    "tfviz/longer_context/transformer_xl_recurrence.py": [
        (
            "a memory counts in silence",
            '        refuse_given_positions("a memory of segments")\n',
            "",
        ),
    ],
    "tfviz/longer_context/ut_act.py": [
        (
            "what halts counts in silence",
            '            refuse_given_positions("Halting")\n',
            "            pass\n",
        ),
    ],
    "tfviz/longer_context/universal_transformer.py": [
        (
            "every step counts",
            "places(kept.length, len(X), X.shape[1], X.device)",
            "torch.arange(kept.length, kept.length + X.shape[1])",
        ),
    ],
    "tfviz/position/learned_pe.py": [
        (
            "every layer counts",
            "places(past, len(X), X.shape[1], X.device)",
            "torch.arange(past, past + X.shape[1])",
        ),
    ],
}
