"""Texts with padding in one batch: each model answers to every text what it answers to it alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from public import VOCAB, D, H, example, modules, store
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz import patterns
from tfviz.basics.alrfou_auxiliary_losses import DeepCharacterModel
from tfviz.basics.cache_cost import kept_bytes
from tfviz.basics.decoding_strategies import beam_search, next_of, sample
from tfviz.cores import given
from tfviz.longer_context.knn_lm import KnnLM
from tfviz.longer_context.spalm import Spalm
from tfviz.longer_context.universal_transformer import universal
from tfviz.models.bert import BERT
from tfviz.models.blocks import Embedding
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights, generate
from tfviz.position.learned_pe import Learned, positions_in_every_layer
from tfviz.position.rope import Rope
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz_lab import family
from tfviz_lab.compare import TASKS, told

close = partial(torch.testing.assert_close, atol=1e-12, rtol=0)
L, LONG = 8, 64
REAL = torch.tensor(
    [
        [0, 0, 0, 1, 1, 1, 1, 1],  # left
        [1, 1, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 1, 0, 0],  # right
        [0, 1, 1, 0, 0, 1, 0, 1],  # within
    ]
).bool()


def texts(b: int = len(REAL), length: int = L) -> Tensor:
    return torch.randint(VOCAB, (b, length), generator=torch.Generator().manual_seed(1))


def randomly(model: nn.Module) -> Any:
    """In float64, with weights that hide nothing."""
    rng = torch.Generator().manual_seed(2)
    for p in model.parameters():
        p.data += 0.1 * torch.randn(p.shape, generator=rng)
    return model.double().eval()


def each_alone(model: Any, t: Tensor, real: Tensor, *more: Any) -> Tensor:
    """The answers to the texts one by one, zeros at padding."""
    answers = [model(row[there][None], *more)[0] for row, there in zip(t, real, strict=True)]
    out = answers[0].new_zeros(*t.shape, answers[0].shape[-1])
    for n, (answer, there) in enumerate(zip(answers, real, strict=True)):
        out[n, there] = answer
    return out


def in_every_layer() -> GPT:
    model = GPT(VOCAB, D, H, 2)
    positions_in_every_layer(model.stack, lambda: Learned(2 * L, D, std=1.0))
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "no positions": lambda: GPT(VOCAB, D, H, 2),
    "sinusoids": lambda: GPT(VOCAB, D, H, 2, positions=Sinusoidal(D)),
    "learned": lambda: GPT(VOCAB, D, H, 2, positions=Learned(2 * L, D, std=1.0)),
    "learned in every layer": in_every_layer,
    "universal": lambda: universal(GPT(VOCAB, D, H, 1), 3),
    "blocks of positions": lambda: GPT(VOCAB, D, H, 2, pattern=patterns.fixed(3, 1)),
    "a pattern of the length": lambda: GPT(
        VOCAB, D, H, 2, pattern=patterns.causal() & patterns.blockwise((1, 0))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_each_text_is_read_as_if_alone(name: str) -> None:
    model, t = randomly(MODELS[name]()), texts()
    close(model(t, attention_mask=REAL), each_alone(model, t, REAL))
    other = torch.where(REAL, t, (t + 1) % VOCAB)
    assert model(other, attention_mask=REAL).equal(model(t, attention_mask=REAL))


@pytest.mark.parametrize("name", family.MECHANISMS)
@torch.no_grad()
def test_with_every_mechanism_too_also_step_by_step(name: str) -> None:
    """Whatever a core is, recurrent, learned for its places or deaf to padding: what it says of a
    text alone, and where it keeps nothing it says so."""
    model = randomly(TASKS["text"].model(**told(lambda: family.variant(name, LONG))))
    t = texts(2, LONG)
    real = torch.arange(LONG) >= torch.tensor([[LONG // 2], [0]])
    try:
        wanted = each_alone(model, t, real)
    except ValueError:  # it is made for one length
        with pytest.raises(ValueError):
            model(t, attention_mask=real)
        return
    close(model(t, attention_mask=real), wanted)
    try:
        model(t[1:, :4], {})
    except ValueError:
        return
    cache: dict[nn.Module, Any] = {}
    parts = []
    for start, end in ((0, 4), (4, LONG // 2 + 3), (LONG // 2 + 3, LONG)):
        parts.append(model(t[:, start:end], cache, attention_mask=real[:, :end]))
    torch.testing.assert_close(torch.cat(parts, 1), wanted, atol=1e-9, rtol=0)


POSITIONS = ("no positions", "sinusoids", "learned", "learned in every layer", "universal")


@pytest.mark.parametrize("name", POSITIONS)
def test_each_text_is_written_as_if_alone(name: str) -> None:
    model, t = randomly(MODELS[name]()), texts()
    written = generate(model, t, 5, attention_mask=REAL)
    assert written[:, :L].equal(t)
    for n, row in enumerate(t):
        assert written[n, L:].equal(generate(model, row[REAL[n]][None], 5)[0, -5:])
    assert generate(model, t[:1], 2, attention_mask=REAL[:1])[:, L:].equal(written[:1, L : L + 2])


def test_sampling_draws_for_all_texts_at_once() -> None:
    """In the order of the texts in the batch, as without padding."""
    model, t = randomly(GPT(VOCAB, D, H, 1, core=Rope)), texts()
    seen = []

    def pick(logits: Tensor) -> Tensor:
        seen.append(logits)
        return sample(logits, rng)

    rng = torch.Generator().manual_seed(3)
    written = generate(model, t, 3, pick, attention_mask=REAL)
    rng = torch.Generator().manual_seed(3)
    for logits, new in zip(seen, written[:, L:].T, strict=True):
        assert sample(logits, rng).equal(new)


def test_a_beam_leaves_out_the_padding_of_its_prompt() -> None:
    model, (row, *_) = randomly(GPT(VOCAB, D, H, 1, positions=Sinusoidal(D))), texts()
    alone = beam_search(next_of(model), row[REAL[0]], 4, 3)
    assert beam_search(next_of(model), row, 4, 3, attention_mask=REAL[0]) == alone


@torch.no_grad()
def test_a_cache_goes_on_where_padding_was_and_may_get_more() -> None:
    """Of four texts, in three parts, with padding at the end of the second; the last part says
    nothing about padding and holds none."""
    model, t = randomly(GPT(VOCAB, D, H, 2, positions=Sinusoidal(D), core=Rope)), texts()
    real = REAL.clone()
    real[:, 6:] = True
    cache: dict[nn.Module, Any] = {}
    first = model(t[:, :2], cache, attention_mask=real[:, :2])
    second = model(t[:, 2:6], cache, attention_mask=real[:, :6])
    last = model(t[:, 6:], cache)
    close(torch.cat([first, second, last], 1), each_alone(model, t, real))
    keys = 2 * 2 * D * 8 * int(real.sum())  # of the tokens alone: K and V, two layers
    assert keys <= kept_bytes(cache) < keys + 8 * (2 * len(t) + real.numel())
    goes_on, other = partial(model, t[:, :1], cache), ~real[:, :1].repeat(1, 9)
    refused("attention_mask has other padding", goes_on, attention_mask=other)
    refused("(5, 9), for the 8 tokens in the cache", goes_on, attention_mask=real[:, :1])


@torch.no_grad()
def test_encoders_count_from_the_first_token_too() -> None:
    t, segment = texts(), torch.arange(L).ge(4).long()
    model = randomly(BERT(VOCAB, D, H, 2, positions=Learned(L, D, std=1.0)))
    got = model(t, REAL, segment)
    for n, there in enumerate(REAL):
        close(got[n, there], model(t[n : n + 1, there], None, segment[there])[0])
    pair = randomly(EncoderDecoder(VOCAB, D, H, 2, positions=Sinusoidal(D)))
    out = pair(t, t, REAL)
    for n, there in enumerate(REAL):
        close(out[n], pair(t[n : n + 1, there], t[n : n + 1])[0])


@torch.no_grad()
def test_padding_on_the_right_alone_is_still_answered_by_an_encoder_itself() -> None:
    """In one pass, with what it says at padding, as Hugging Face's does."""
    model, right = randomly(BERT(VOCAB, D, H, 1)), REAL.sort(1, descending=True)[0]
    calls = []
    model.stack.register_forward_hook(lambda *_: calls.append(1))
    assert model(texts(), right)[~right].any() and len(calls) == 1


@torch.no_grad()
def test_models_with_a_store_and_with_many_exits_take_it() -> None:
    t, reader = texts(), randomly(GPT(VOCAB, D, H, 2))
    models = (
        KnnLM(reader, store(reader), k=2),
        Spalm(reader, reader, store(reader), k=2).double(),
        randomly(DeepCharacterModel(VOCAB, D, H, 2, L)),
    )
    for model in models:
        close(model(t, attention_mask=REAL), each_alone(model, t, REAL))


@torch.no_grad()
def test_what_is_given_from_outside_is_the_texts_own() -> None:
    from tfviz.priors.camtl_prior import TaskPrior

    model = randomly(GPT(VOCAB, D, H, 1, core=lambda: TaskPrior(L, 2, 3)))
    t, task = texts(), torch.randn(len(REAL), 3).double()
    with given(task=task):
        got = model(t, attention_mask=REAL)
    for n, there in enumerate(REAL):
        with given(task=task[n : n + 1]):
            close(got[n, there], model(t[n : n + 1, there])[0])


@torch.no_grad()
def test_maps_lie_where_the_tokens_are() -> None:
    model, t = randomly(GPT(VOCAB, D, H, 2, core=Rope)), texts()
    for name, A in attention_weights(model, t, attention_mask=REAL).items():
        assert A.shape == (len(t), H, L, L)
        for n, there in enumerate(REAL):
            alone = attention_weights(model, t[n : n + 1, there])[name][0]
            close(A[n][:, there][:, :, there], alone)
            assert not A[n][:, ~there].any() and not A[n][:, :, ~there].any()


def test_gradients_are_those_of_the_texts_alone() -> None:
    model, t = randomly(GPT(VOCAB, D, H, 1, core=Rope)), texts()
    weights = list(model.parameters())
    aim = torch.randn(*t.shape, VOCAB).double()
    ways = [
        torch.autograd.grad((aim * out).sum(), weights)
        for out in (model(t, attention_mask=REAL), each_alone(model, t, REAL))
    ]
    for a, b in zip(*ways, strict=True):
        close(a, b, atol=1e-10)


def test_one_pass_for_each_kind_of_padding_and_none_more() -> None:
    model, t, calls = GPT(VOCAB, D, H, 1), texts(), []
    model.stack.register_forward_hook(lambda *_: calls.append(1))
    model(t, attention_mask=REAL)
    assert len(calls) == 4  # texts 0 and 2 are padded alike
    model(t, attention_mask=torch.ones_like(REAL))
    assert len(calls) == 5


def test_what_is_no_mask_of_the_texts_is_refused() -> None:
    model, t = GPT(VOCAB, D, H, 1), texts()
    for call in (model, partial(generate, model, steps=1), BERT(VOCAB, D, H, 1)):
        for mask in (REAL.long(), REAL.float()):
            of_no_kind(f"attention_mask is {mask.dtype}", call, t, attention_mask=mask)
        of_no_kind("attention_mask is list", call, t, attention_mask=REAL.tolist())
        refused("attention_mask has shape (5, 7), t (5, 8)", call, t, attention_mask=REAL[:, 1:])
        refused("attention_mask has shape (4, 8), t (5, 8)", call, t, attention_mask=REAL[1:])
        refused("attention_mask has shape (8,), t (5, 8)", call, t, attention_mask=REAL[0])
        refused("meta device", call, t, attention_mask=REAL.to("meta"))
    refused("attention_mask … False throughout", model, t, attention_mask=REAL & False)
    none = REAL.clone()
    none[3] = False
    assert not model(t, attention_mask=none)[3].any()
    refused("attention_mask[3] … text 3 has no token", generate, model, t, 1, attention_mask=none)


def test_whatever_takes_tokens_and_a_cache_takes_padding() -> None:
    """By a walk over what is public: a model that reads numbers of tokens."""
    t, real = torch.tensor([[0, 3, 1], [2, 7, 1]]), torch.tensor([[0, 1, 1], [1, 1, 1]]).bool()
    read = []
    for name, kind in modules().items():
        first = inspect.signature(kind.forward).parameters.get("t")
        reads = first is not None and first.annotation == "Tokens"
        if reads and kind not in (Embedding, EncoderDecoder, KnnLM, Spalm):
            model = randomly(example(kind))
            with torch.no_grad():
                close(model(t, attention_mask=real), each_alone(model, t, real))
            read.append(name)
    assert {"GPT", "BERT", "basics.DeepCharacterModel"} <= {*read}
