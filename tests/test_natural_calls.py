"""Natural first calls: what a researcher types before reading anything works, or names the fix."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import of_no_kind
from torch import Tensor

import tfviz
from tfviz import (
    BERT,
    GPT,
    EncoderDecoder,
    MultiHeadAttention,
    _door,
    attention,
    attention_weights,
    generate,
    patterns,
    plots,
    sparse_attention,
)
from tfviz.cores import Sparse
from tfviz.longer_context import Alibi, Memorizing
from tfviz.position import XL, Learned, Rope, Sinusoidal, T5Bias

RESTS_ON = ("tfviz/**", "tests/**")  # it finds them by their names

TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
SIZES = 11, 16, 2, 2


def qkv(*shape: int) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    Q, K, V = torch.randn(3, *shape, generator=rng)
    return Q, K, V


# --- that work ------------------------------------------------------------------------------------


def test_1_everything_hangs_on_tfviz() -> None:
    assert tfviz.patterns.causal().mask(3).tolist()[0] == [True, False, False]
    assert tfviz.GPT is GPT and tfviz.attention is attention
    assert {"patterns", "attention", "sparse_attention", "GPT", "plots", "explorers"} <= {
        *dir(tfviz)
    }


def test_2_attention_of_three_tensors() -> None:
    Q, K, V = qkv(1, 2, 8, 4)
    out, A = tfviz.attention(Q, K, V)
    torch.testing.assert_close(out, torch.nn.functional.scaled_dot_product_attention(Q, K, V))
    assert A.shape == (1, 2, 8, 8)


def test_3_attention_with_a_pattern_a_mask_or_a_bias() -> None:
    Q, K, V = qkv(8, 4)
    causal = patterns.causal()
    assert attention(Q, K, V, causal)[1].equal(attention(Q, K, V, causal.mask(8))[1])
    near = attention(Q, K, V, bias=lambda i, j: -(i - j).abs())[1]
    assert near.diagonal().mean() > attention(Q, K, V)[1].diagonal().mean()


def test_4_sparse_attention_is_a_function() -> None:
    Q, K, V = qkv(1, 2, 200, 4)
    pattern = patterns.strided(stride=8)
    torch.testing.assert_close(sparse_attention(Q, K, V, pattern), attention(Q, K, V, pattern)[0])


def test_5_patterns_combine_and_count() -> None:
    pattern = patterns.sliding_window(lookback=2) | patterns.global_tokens(count=1)
    assert pattern.mask(6).sum() > patterns.sliding_window(lookback=2).mask(6).sum()
    assert pattern.cost(64, 16, 2).pairs == pattern.mask(64).sum()


def test_6_a_gpt_gives_logits_and_writes() -> None:
    assert GPT(*SIZES)(TOKENS).shape == (1, 8, 11)
    assert GPT(vocab=11, d=16, h=2, N=2)(TOKENS).shape == (1, 8, 11)
    assert generate(GPT(*SIZES), TOKENS, 3).shape == (1, 11)


@pytest.mark.parametrize("core", [Rope, Alibi, XL, T5Bias, Sparse])
def test_7_a_core_is_its_class(core: Any) -> None:
    model = GPT(*SIZES, core=core)
    assert model(TOKENS).isfinite().all()
    kinds = {type(m.core) for m in model.modules() if isinstance(m, MultiHeadAttention)}
    assert kinds == {core}


def test_8_a_core_is_a_function_with_or_without_the_sizes() -> None:
    def settings(model: GPT) -> list[str]:
        return [str(m.core) for m in model.modules() if isinstance(m, MultiHeadAttention)]

    with_sizes = GPT(*SIZES, core=lambda d_head, h: Rope(d_head, base=500.0))
    assert settings(with_sizes) == settings(GPT(*SIZES, core=lambda: Rope(8, base=500.0)))
    asked: list[int] = []
    GPT(*SIZES, core=lambda h: asked.append(h) or Alibi(h))  # type: ignore[func-returns-value]
    assert asked == [2, 2]


def test_9_positions_that_are_added() -> None:
    assert GPT(*SIZES, positions=Sinusoidal(16))(TOKENS).shape == (1, 8, 11)
    assert GPT(*SIZES, positions=Learned(8, 16))(TOKENS).shape == (1, 8, 11)


def test_10_a_gpt_with_a_pattern_and_shared_keys() -> None:
    model = GPT(*SIZES, pattern=patterns.strided(stride=3), h_kv=1, core=Sparse)
    assert model(TOKENS).shape == (1, 8, 11)


@pytest.mark.parametrize("model", [GPT, BERT, EncoderDecoder])
def test_11_help_names_every_option(model: type) -> None:
    parameters = inspect.signature(model).parameters
    assert {"positions", "core", "pattern", "order", "h_kv", "d_ff", "phi"} <= {*parameters}
    assert not [x for x in parameters.values() if x.kind in (x.VAR_KEYWORD, x.VAR_POSITIONAL)]
    shown = inspect.getdoc(GPT) or ""
    assert all(re.search(rf"\b{name}\b", shown) for name in parameters)


def test_12_look_at_the_attention_of_a_model() -> None:
    weights = attention_weights(GPT(*SIZES), TOKENS)
    A = weights["stack.blocks.0.attend"]
    assert A.shape == (1, 2, 8, 8)
    assert "attention weights of 8 queries over 8 keys" in plots.attention_map(A[0]).alt


def test_13_draw_a_mask_and_save_it(tmp_path: Path) -> None:
    figure = tfviz.plots.mask(patterns.strided(stride=4), L=16)
    for ending, begins in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        saved = figure.save(tmp_path / f"mask{ending}").read_bytes()
        assert saved.lstrip().startswith((begins, b"<svg"))


def test_14_draw_into_axes_of_matplotlib() -> None:
    import matplotlib.pyplot as plt

    picture, (left, right) = plt.subplots(1, 2)
    plots.mask(patterns.causal(), 8).draw(left)
    plots.positions(Rope, 8).draw(right)
    assert left.has_data() and right.has_data()
    plt.close(picture)


def test_15_an_explorer_by_its_name() -> None:
    assert "SparseLab" in dir(tfviz.explorers)
    assert "strided" in repr(tfviz.explorers.SparseLab(patterns.strided(stride=4)))


def test_16_a_bert_with_padding_and_an_encoder_decoder() -> None:
    assert BERT(*SIZES)(TOKENS, TOKENS != 6).shape == (1, 8, 11)
    assert EncoderDecoder(*SIZES)(TOKENS, TOKENS[:, :3]).shape == (1, 3, 11)
    attend = MultiHeadAttention(16, 2, pattern=patterns.causal())
    assert attend(torch.ones(1, 5, 16)).shape == (1, 5, 16)


# --- that name the fix ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("core is a Rope that is made already … core=Rope", {"core": Rope(8)}),
        ("core = 'rope' is a str … from tfviz.position import Rope", {"core": "rope"}),
        ("core = None … give the class of a core", {"core": None}),
        ("core = Memorizing needs m … functools.partial(Memorizing, m=…)", {"core": Memorizing}),
        ("core = attention takes Q, K and V … lambda: attention", {"core": attention}),
        ("positions = Rope acts inside of attention … core=Rope", {"positions": Rope}),
        ("positions = Rope acts inside of attention … core=Rope", {"positions": Rope(8)}),
        ("positions = Sinusoidal is a class … Sinusoidal(…)", {"positions": Sinusoidal}),
        ("positions is a str … Sinusoidal(d)", {"positions": "sinusoidal"}),
        ("pattern = 'causal' is a str … patterns.causal()", {"pattern": "causal"}),
        ("pattern = strided makes patterns; call it", {"pattern": patterns.strided}),
        ("pattern is a tensor … patterns.table(mask)", {"pattern": torch.ones(8, 8) > 0}),
    ],
)
def test_17_a_wrong_option_names_the_right_one(words: str, options: dict[str, Any]) -> None:
    of_no_kind(words, GPT, *SIZES, **options)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: tfviz.Rope, "from tfviz.position import Rope"),  # type: ignore[attr-defined]
        (lambda: tfviz.compare, "from tfviz_lab.compare import compare"),  # type: ignore[attr-defined]
        (lambda: tfviz.models.Alibi, "from tfviz.longer_context import Alibi"),  # type: ignore[attr-defined]
        (lambda: tfviz.longformer_attention, "from tfviz.sparse import longformer_attention"),  # type: ignore[attr-defined]
    ],
)
def test_18_a_name_at_the_wrong_door_names_the_right_one(
    ask: Callable[[], Any], words: str
) -> None:
    with pytest.raises(AttributeError, match=re.escape(words)):
        ask()


def test_the_names_that_errors_say_exist() -> None:
    from tfviz_lab.compare import compare

    assert {"compare": compare.__module__} == _door.BESIDE


def test_19_one_text_without_a_batch_says_how_to_make_one() -> None:
    with pytest.raises(ValueError, match=re.escape("t[None]")):
        GPT(*SIZES)(TOKENS[0])


def test_20_a_mask_in_the_place_of_a_pattern_says_how_to_make_one() -> None:
    with pytest.raises(TypeError, match=re.escape("tfviz.patterns.table(mask)")):
        sparse_attention(*qkv(8, 4), patterns.causal().mask(8))  # type: ignore[arg-type]


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/cores.py": [
        ("a core whose own sizes are overruled", "if x.default is x.empty and x.kind", "if x.kind"),
    ],
}
