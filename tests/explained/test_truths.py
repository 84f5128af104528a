"""Masks that are numbers, masks the other way round, and rules that differ by head or text: what
was meant is recognised, or refused with the remedy. Never the opposite, and nothing in silence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from refusals import of_no_kind, refused
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import create_block_mask
from torch.nn.functional import scaled_dot_product_attention

from tfviz import attention, explain
from tfviz import patterns as P
from tfviz.explained import truths
from tfviz.explained.typed import LARGEST, TypedError, read_typed
from tfviz.longer_context.alibi import slopes
from tfviz.patterns import Pattern

L = 24
I, J = torch.arange(L)[:, None], torch.arange(L)
ZEROS = torch.zeros(L, L)
FUTURE = J > I

FILLS: dict[str, tuple[torch.dtype, float]] = {
    **{f"finfo({t}).min": (t, torch.finfo(t).min) for t in (torch.float32, torch.float64)},
    **{f"finfo({t}).min": (t, torch.finfo(t).min) for t in (torch.float16, torch.bfloat16)},
    **{f"{x}": (torch.float32, x) for x in (-1e9, -1e4, -1e3, -1e30, -65504.0, -math.inf)},
    **{f"{x}, half": (torch.float16, x) for x in (-1e4, -1e3, -math.inf)},
    **{f"{x}, bfloat16": (torch.bfloat16, x) for x in (-1e9, -1e4, -1e3)},
}
"""What people write in the place of −inf, and the type in which they do."""

MASKS: list[Pattern] = [
    P.causal(),
    P.sliding_window(lookback=3),
    P.band(radius=2),
    P.block_local(block=6),
    P.strided(stride=5),
]


def no_weight_left(bias: Tensor, mask: Tensor) -> bool:
    """What softmax itself says, with queries and keys of size 1."""
    torch.manual_seed(0)
    Q, K = torch.randn(2, L, 8).to(bias.dtype)
    weights = (Q.double() @ K.double().T / math.sqrt(8) + bias.double()).float().softmax(-1)
    return bool((weights[~mask] == 0).all())


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("pattern", MASKS, ids=repr)
def test_a_mask_of_numbers_is_a_mask(pattern: Pattern, fill: str) -> None:
    dtype, low = FILLS[fill]
    mask = pattern.mask(L)
    bias = torch.zeros(L, L, dtype=dtype).masked_fill(~mask, low)
    assert no_weight_left(bias, mask)
    for x in (bias, bias[None, None], bias.clone().requires_grad_(), bias.expand(3, L, L)):
        e = explain(x)
        assert e.bias is None and e.same_as == pattern
        assert e.mask(L).equal(mask)


@pytest.mark.parametrize("fill", [f for f in FILLS if "-inf" not in f])
def test_a_mask_of_numbers_is_one_under_a_bias_too(fill: str) -> None:
    """By tensor: filled in, or added, as in half precision, where the sum may be −inf."""
    dtype, low = FILLS[fill]
    m = slopes(4)
    alibi = (-m[:, None, None] * (I - J).abs()).to(dtype)
    added = alibi + torch.zeros(L, L, dtype=dtype).masked_fill(FUTURE, low)
    for bias in (alibi.masked_fill(FUTURE, low), added):
        e = explain(bias)
        assert e.bias is not None and e.bias.name == "alibi"
        assert e.bias.parameters["m"] == pytest.approx(m.tolist(), rel=1e-2)
        assert e.same_as == P.causal() and "is a mask" in e.why


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_alibi_is_known_in_every_type_and_form(dtype: torch.dtype) -> None:
    m = slopes(8)
    s = m[:, None, None]
    forms = {
        "alibi": -s * (I - J).abs(),
        "alibi with its sign": s * (J - I),
        "alibi by key": (s * J)[:, :1],  # as BLOOM adds it: (h, 1, L)
    }
    for name, bias in forms.items():
        e = explain(bias.to(dtype))
        assert e.bias is not None and e.bias.name == name, e
        assert e.bias.parameters["m"] == m.tolist(), "powers of two, which no rounding changes"
        masked = explain(bias.to(dtype).expand(8, L, L).masked_fill(FUTURE, -math.inf))
        assert masked.same_as == P.causal() and masked.bias is not None
        X = torch.zeros(8, L, 4)
        first, second = (
            attention(X, X, X, P.causal(), bias.tensor(L))[1] for bias in (e.bias, masked.bias)
        )
        torch.testing.assert_close(first, second)


def test_a_bias_far_below_a_hundred_is_no_mask() -> None:
    """ALiBi over a long text reaches −200, a Gaussian −3 · 10⁵, and all pairs are met."""
    i, j = torch.arange(400)[:, None], torch.arange(400)
    for bias in (-0.5 * (i - j).abs().float(), -2.0 * (i - j).float() ** 2):
        assert float(bias.min()) < -100
        assert explain(bias).same_as == P.full() and explain(bias).bias is not None
        noisy = bias + torch.rand(400, 400)  # no formula: its levels alone must say so
        assert not truths.left_out(noisy[None]).any()
    for query_alone in (-1000.0 * I, -1e9 * torch.ones(L, L), -5000.0 * I * (I > 3)):
        assert not truths.left_out(query_alone.expand(1, L, L)).any()


@pytest.mark.parametrize("low", [-50.0, -100.0, -500.0])
def test_a_low_number_that_is_no_mask_is_said(low: float) -> None:
    """Swin's −100: softmax leaves something there."""
    e = explain(ZEROS.masked_fill(FUTURE, low))
    assert e.same_as == P.full() and e.bias is not None
    assert f"only 0 and {low:g}, which is no mask" in e.why and "give −inf" in e.why
    assert "the same as" not in repr(e) and "no pair is left out" in repr(e)
    by_function = explain(lambda s, b, h, q, k: s + torch.where(q >= k, 0, low))
    assert "which is no mask" in by_function.why


TRUTHS: dict[str, Any] = {
    "floats": (~FUTURE).float(),
    "half": (~FUTURE).half(),
    "bfloat16": (~FUTURE).bfloat16(),
    "the other way round": FUTURE.double(),
    "an array": (~FUTURE).double().numpy(),
    "a list": (~FUTURE).float().tolist(),
    "of texts": (~FUTURE).float().expand(2, 1, L, L),
    "of keys": (J < 20).float().expand(2, 1, 1, L),
    "a diagonal": torch.eye(L),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_zeros_and_ones_as_numbers_are_refused(name: str) -> None:
    refused("only 0 and 1 … x.bool() … x == 0", explain, TRUTHS[name])


def test_zeros_and_ones_from_a_function_are_refused() -> None:
    floats, whole = (~FUTURE).float(), (~FUTURE).long()
    for mod in (
        lambda b, h, q, k: floats[q, k],
        lambda b, h, q, k: whole[q, k],
        lambda b, h, q, k: torch.where(q >= k, 1, 0),
        lambda i, j: torch.where(i >= j, 1.0, 0.0),
    ):
        refused("the numbers 0 and 1 … q >= k", explain, mod)
    refused("only the values 0 and 1 … i >= j", read_typed("where(i >= j, 1, 0)").explain, 8)
    assert read_typed("where(i >= j, 1, 0)").pattern(8) == P.full(), "it is drawn as the bias it is"
    meant = explain(lambda s, b, h, q, k: s + floats[q, k])
    assert meant.bias is not None and meant.bias.tensor(L)[0].equal(floats)
    assert explain(lambda b, h, q, k: floats[q, k].bool()).mask(L).equal(~FUTURE)
    of_no_kind("int64 … x.bool() if 1 = may attend, x == 0", explain, whole)
    of_no_kind("uint8 … x.bool()", explain, whole.to(torch.uint8))
    of_no_kind("int64 … x.float()", explain, -10000 * FUTURE.long())


def test_attention_warns_of_zeros_and_ones_that_are_added() -> None:
    """They leak, as in torch. A learned bias may be so by chance, and is nobody's mask."""
    Q, K, V = torch.randn(3, 1, 2, L, 8)
    bias = (~FUTURE).float()
    with pytest.warns(UserWarning, match="only 0 and 1, .* pattern=mask.bool"):
        out = attention(Q, K, V, bias=bias)[0]
    torch.testing.assert_close(out, scaled_dot_product_attention(Q, K, V, bias))
    with pytest.warns(UserWarning, match="only 0 and 1"):
        attention(Q, K, V, bias=lambda i, j: (i >= j).long())
    attention(Q, K, V, bias=bias.clone().requires_grad_())
    attention(Q, K, V, bias=torch.ones(L, L))
    attention(Q, K, V, bias=ZEROS)
    of_no_kind("float32 … mask.bool() if 1 = allowed, mask == 0", attention, Q, K, V, bias)


LOW = torch.finfo(torch.float16).min
TABLE = ZEROS.masked_fill(FUTURE, -1e9)
ENDLESS = ZEROS.masked_fill(FUTURE, -math.inf)
TRUE = ~FUTURE

SAID_BY_FUNCTION: dict[str, Any] = {
    "a number in the place": lambda s, b, h, q, k: torch.where(q >= k, s, -1e9),
    "a name in the place": lambda s, b, h, q, k: torch.where(q >= k, s, LOW),
    "added": lambda s, b, h, q, k: s + torch.where(q >= k, 0.0, -1e4),
    "from the other side": lambda s, b, h, q, k: s + torch.where(q < k, LOW, 0.0),
    "of 1 − mask": lambda s, b, h, q, k: s + (1 - torch.where(q >= k, 1, 0)) * -1e9,
    "−inf": lambda s, b, h, q, k: torch.where(q >= k, s, -math.inf),
    "a bias of positions": lambda i, j: torch.where(i >= j, 0.0, -1e4),
    "a table": lambda s, b, h, q, k: s + TABLE[q, k],
    "a table of −inf": lambda s, b, h, q, k: s + ENDLESS[q, k],
    "a table of truths": lambda s, b, h, q, k: torch.where(TRUE[q, k], s, -1e9),
}


@pytest.mark.parametrize("name", SAID_BY_FUNCTION)
def test_a_score_function_that_masks_by_numbers_is_a_mask(name: str) -> None:
    e = explain(SAID_BY_FUNCTION[name])
    assert e.bias is None and e.same_as == P.causal() and e.mask(L).equal(~FUTURE)
    Q, K, V = torch.randn(3, 1, 2, L, 8)
    torch.testing.assert_close(
        e.attention(Q, K, V), scaled_dot_product_attention(Q, K, V, is_causal=True)
    )


@pytest.mark.parametrize("low", ["-inf", "-1e9", "-10000"])
def test_a_typed_formula_that_masks_by_numbers_is_a_mask(low: str) -> None:
    e = read_typed(f"where((i >= j) & (i - j < w), 0, {low})").explain(L, w=4)
    assert e.same_as == P.sliding_window(lookback=3) and e.bias is None
    with_bias = read_typed(f"where(i >= j, -m * (i - j), {low})").explain(L, m=0.5)
    assert with_bias.same_as == P.causal() and with_bias.bias is not None
    assert with_bias.bias.parameters == {"m": 0.5}


def test_a_bias_over_a_mask_names_both() -> None:
    for low in (-math.inf, -1e4):
        for mod in (
            lambda s, b, h, q, k, low=low: torch.where(q >= k, s - 0.5 * (q - k), low),
            lambda s, b, h, q, k, low=low: torch.where(q >= k, 20 * torch.tanh(s / 20), low),
        ):
            e = explain(mod)
            assert e.same_as == P.causal() and "where i ≥ j" in e.why
            assert "the same as causal()" in repr(e)


def test_numbers_that_are_none_are_refused() -> None:
    broken = ENDLESS.clone()
    broken[0, 0] = math.nan
    refused("NaN or +inf … masked_fill", explain, broken)
    refused("0 · −inf is NaN … masked_fill", explain, FUTURE.float() * -math.inf)
    refused("inf at q = 0, k = 0", explain, lambda s, b, h, q, k: s + 1 / (q - k))
    refused("on meta … CPU", explain, FUTURE.to("meta"))
    refused("on meta … CPU", explain, ZEROS.to("meta"))
    refused("sparse … to_dense()", explain, ZEROS.to_sparse())
    of_no_kind("a list … rows of one length", explain, [[True], [True, False]])
    of_no_kind("complex64 … x.float()", explain, ZEROS.to(torch.complex64))
    refused("(24,) … mask[…, None, None, :]", explain, J < 3)
    refused("(2, 24) … mask[…, None, None, :]", explain, (J < 3).expand(2, L))
    for given in (TRUE.numpy(), TRUE.tolist(), np.where(TRUE, 0.0, -1e9)):
        assert explain(given).same_as == P.causal()


# --- the other way round -------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", MASKS, ids=repr)
def test_an_inverted_mask_is_named_and_both_conventions_are(pattern: Pattern) -> None:
    bits = ~pattern.mask(L)
    for given in (bits, ZEROS.masked_fill(~bits, -1e9), bits.expand(2, 1, L, L)):
        e = explain(given)
        assert e.same_as == ~pattern and e.kind == "formula"
        assert f"the opposite of {pattern!r}" in e.why
        assert "nn.MultiheadAttention" in e.why and "F.scaled_dot_product" in e.why
        assert "give ~mask" in e.why
    assert explain(~bits).same_as == pattern and "opposite" not in explain(~bits).why


def test_an_inverted_function_is_named_too() -> None:
    for inverted in (
        lambda b, h, q, k: q < k,
        lambda b, h, q, k: ~(q >= k),
        lambda s, b, h, q, k: torch.where(q < k, s, -1e9),
    ):
        e = explain(inverted)
        assert e.same_as == ~P.causal() and "nn.MultiheadAttention" in e.why
    typed = read_typed("~((i >= j) & (i - j < w))").explain(L, w=4)
    assert typed.same_as == ~P.sliding_window(lookback=3) and "opposite" in typed.why


def test_rows_without_a_key_are_named() -> None:
    assert f"Without a key: row {L - 1}. " in explain(FUTURE).why
    assert "Without a key: rows 0, 1, 2 … 23. " in explain(torch.zeros(L, L).bool()).why
    assert explain(torch.zeros(L, L).bool()).same_as == ~P.full()
    e = explain(ZEROS.masked_fill(FUTURE | (I == 3), -1e9))  # HF: a row of padding
    assert "nothing else in row 3" in e.why and not e.mask(L)[3].any()


def test_padding_is_named() -> None:
    """torch's key_padding_mask of 22 tokens, two of them padding: True is padding."""
    padding = (J >= 20).expand(L, L)
    e = explain(padding)
    assert "the same keys, 20 to 23 of 24" in e.why
    assert "key_padding_mask" in e.why and "give ~mask" in e.why
    assert "0 to 19 of 24" in explain(~padding).why
    left = P.band(radius=2).mask(L) & (J >= 5)
    assert "Among the positions 5 to 23 it is band(radius=2)" in explain(left).why
    assert "the opposite of band(radius=2) among the positions 5 to 23" in explain(~left).why
    assert explain(padding[:1][None]).why == e.why, "(b, 1, L), as it is handed to attention"


# --- nothing is dropped --------------------------------------------------------------------------


def test_as_many_patterns_as_there_are_heads_and_texts() -> None:
    causal, band = P.causal().mask(L), P.band(radius=2).mask(L)
    three = torch.stack([causal, causal, band])  # the third differs from two that are equal
    for given in (three, ZEROS.masked_fill(~three, -1e9)):
        e = explain(given)
        assert e.same_as == P.per_head(P.causal(), P.causal(), P.band(radius=2))
        assert e.mask(L).equal(three) and "per_head" in repr(e)
    slope = torch.tensor([0.5, 0.5, 0.25])
    e = explain(-slope[:, None, None] * (I - J).abs())
    assert e.bias is not None and e.bias.parameters == {"m": slope.tolist()}
    texts = torch.stack([causal, causal, band])[:, None]  # (b, 1, L, L), as Hugging Face makes it
    for given in (texts, ZEROS.masked_fill(~texts, torch.finfo(torch.float32).min)):
        e = explain(given)
        assert e.patterns == (P.causal(), P.causal(), P.band(radius=2)) and "3 batch" in e.why
        assert e.mask(L).equal(texts[:, 0])
        refused("3 batch entries … .patterns[0]", lambda e=e: e.pattern)
    assert (
        explain(torch.stack([three, three.flip(0)]))
        .mask(L)
        .equal(torch.stack([three, three.flip(0)]))
    )
    refused("2 batch entries … bias[0]", explain, torch.randn(2, 3, L, L))


def shifted(q: Any, k: Any) -> Any:
    """No formula: shifts of bits."""
    return (q >> 1) == (k >> 1)


BY_HEAD: dict[str, Any] = {
    "compared": lambda b, h, q, k: shifted(q, k) & (k < h),
    "shifted": lambda b, h, q, k: (q >> h) == (k >> h),
    "branched": lambda b, h, q, k: shifted(q, k) if h == 0 else q >= k,
    "late": lambda b, h, q, k: shifted(q, k) & (h != 7),
    "of scores": lambda s, b, h, q, k: s + (q >> 1) * h,
}


@pytest.mark.parametrize("name", BY_HEAD)
def test_a_rule_without_a_formula_that_differs_by_head_asks_how_many_there_are(name: str) -> None:
    mod = BY_HEAD[name]
    refused("differs by head … heads=", explain, mod, L=8)
    e = explain(mod, L=8, heads=3)
    heads = e.bias.tensor(8) if e.bias else e.mask(8)
    for h in range(3):
        given = [torch.tensor(0), torch.tensor(h), torch.arange(8)[:, None], torch.arange(8)]
        given = [torch.tensor(0.0), *given] if "scores" in name else given
        assert heads[h].equal(mod(*given).to(heads.dtype).expand(8, 8))


def test_where_heads_or_texts_are_looked_up_there_are_as_many_as_entries() -> None:
    """In a list, or in a tensor inside of something that is no formula."""
    counts, tensor = [3, 1, 2], torch.tensor([3, 1, 2])
    for mod in (
        lambda b, h, q, k: (q >> 1) >= k - counts[h],
        lambda b, h, q, k: (q >> 1) >= k - tensor[h],
        lambda b, h, q, k: (q >> 1) >= k - counts[b],
    ):
        e = explain(mod, L=8)
        masks = torch.stack([(I[:8] >> 1) >= J[:8] - n for n in counts])
        assert e.mask(8).equal(masks)
    one = torch.zeros(1, 8, 8)  # a single text: nothing differs
    assert explain(lambda s, b, h, q, k: s + (q >> 1) * one[b, q, k], L=8).bias is None


def test_a_rule_without_a_formula_that_differs_by_text_asks_too() -> None:
    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return shifted(q, k) & (b != 2)

    refused("differs by batch entry … batch=", explain, mod, L=8)
    assert explain(mod, L=8, batch=3).mask(8).flatten(1).any(1).tolist() == [True, True, False]
    alike = explain(lambda b, h, q, k: b.new_ones((), dtype=torch.bool) & shifted(q, k), L=8)
    assert len(alike.patterns) == 1, "b says only where the tensor is"


IDS, DICT, ARRAY = [0, 0, 0, 1, 1, 1], {0: 1}, np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("says", "mod"),
    [
        ("IDS is a list … torch.tensor(IDS)", lambda b, h, q, k: IDS[q] == IDS[k]),
        (
            "DICT is a dict … torch.tensor([DICT[n] for n in range(1)])",
            lambda b, h, q, k: DICT[q] == k,
        ),
        ("ARRAY is a ndarray … torch.tensor(ARRAY)", lambda b, h, q, k: ARRAY[q] == ARRAY[k]),
        ("IDS is a list … torch.tensor(IDS)", lambda s, b, h, q, k: s + IDS[q]),
    ],
)
def test_a_list_that_positions_look_into_is_named(says: str, mod: Any) -> None:
    refused(says, explain, mod)
    refused(says, explain, mod, L=6)
    sizes = (3, 4)
    assert explain(lambda b, h, q, k: q // sizes[0] == k // sizes[0]).same_as, "by a number it may"


# --- operations without a value ------------------------------------------------------------------

HARD = [
    *("i % (j - 9) > 0", "i // (j - 9) > 0", "1 / (j - 9) > 0", "i / (j - 9) < i"),
    *("i ** -1 > j", "2 ** (i - 40) > j", "2.0 ** (i - 40) > j", "(i - 3) ** 0.5 > j"),
    *("sqrt(i - 3) > j", "log(i - 3) > j", "log(0 * i) < j", "exp(i * 99) > j", "exp(900 * i)"),
    *("i * 99999999 > j", "i ** 20 > j", "10.0 ** (i * 40) > j", "i << 2 > j", "i >> -1 > j"),
    *("i << -j > 2", "'i' > j", "i > '3'", "i @ j > 2", "i > None", "max(i, 'a') > j"),
    *("(" * 30 + "i" + ")" * 30 + " > j", "-" * 100 + "i > j", "~" * 60 + "(i > j)"),
    *("1e400 > i", "99999999999 > i", "i % 0 > j", "0 ** i > j", "i ** 0 > j", "i // 0.0 > j"),
    *("(i - j) % (i - j) > 0", "where(i > j, 1 // (i - j), 0) > 0", "inf > i", "i > -inf"),
    *("inf * i > j", "tanh(i / 0)", "min(i, inf) > j", "-inf + 0 * i", "0.0 ** -i > j"),
]


@pytest.mark.parametrize("text", HARD)
@pytest.mark.parametrize("length", [4, 12])
def test_an_operation_without_a_value_is_a_sentence_or_the_right_table(
    text: str, length: int
) -> None:
    """Its table is computed pair by pair; what is explained says the same, or nothing does."""
    try:
        table = read_typed(text).table(length)
    except TypedError as error:
        assert error.message
        return
    e = read_typed(text).explain(length)
    allowed = table if table.dtype == torch.bool else ~truths.left_out(table[None])[0]
    assert e.mask(length).equal(allowed), e


def test_a_callable_without_a_value_at_some_positions_is_a_table_or_a_sentence() -> None:
    for mod in (
        lambda b, h, q, k: q % (k - 9) > 0,
        lambda b, h, q, k: q // (k - 9) > 0,
        lambda s, b, h, q, k: s + q // (k - 9),
    ):
        refused("divides by 0 … L=", explain, mod)
        assert explain(mod, L=4).patterns[0].mask(4).shape == (4, 4)
        refused("cannot be called for L = 12 … ZeroDivision", explain, mod, L=12)


def no_end(b: Any, h: Any, q: Any, k: Any) -> Any:
    return no_end(b, h, q, k)


EMPTY: dict[str, int] = {}

STRANGE: dict[str, tuple[str, Any]] = {
    "nothing": ("returns a NoneType … q >= k", lambda b, h, q, k: None),
    "two": ("returns a tuple … q >= k", lambda b, h, q, k: (q, k)),
    "a text": ("returns a str … q >= k", lambda b, h, q, k: "q >= k"),
    "// 0": ("divides by 0 … not 0", lambda b, h, q, k: q // 0 > k),
    "/ 0": ("divides by 0 … not 0", lambda b, h, q, k: q / 0 > k),
    "% 0": ("divides by 0 … not 0", lambda b, h, q, k: q % 0 > k),
    "a text beside": ("own … L=", lambda b, h, q, k: q > "a"),
    "too large": ("int too big … tensors of positions", lambda b, h, q, k: q > 10**30),
    "shifted back": ("lshift … L=", lambda b, h, q, k: (q << -1) > k),
    "no end": ("recursion", no_end),
    "another error": ("'x' … L=", lambda b, h, q, k: EMPTY["x"]),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_callable_that_says_nothing_usable_is_answered_by_a_sentence(name: str) -> None:
    says, mod = STRANGE[name]
    refused(says, explain, mod)


def test_what_is_no_mask_at_all_is_named_in_one_line() -> None:
    of_no_kind("{'full': tensor … a dict; give mask_mod", explain, {"full": FUTURE})
    block_mask = create_block_mask(P.causal().mask_mod, None, None, L, L, device="cpu")
    of_no_kind("BlockMask; give its .mask_mod", explain, block_mask)
    of_no_kind("a CausalBias … tril().bool()", explain, causal_lower_right(L, L))
    of_no_kind("a tuple", explain, (FUTURE, FUTURE))
    tiny = explain(ZEROS.masked_fill(FUTURE, -1e-9))
    assert tiny.bias is not None and tiny.bias.name == "table", "alike to five digits of its own"


@pytest.mark.parametrize("over", [0, 1, LARGEST // 2, LARGEST - 1])
def test_a_whole_number_may_be_as_large_as_a_browser_and_torch_agree(over: int) -> None:
    """Up to 2³¹ − 1: in the text, and at every pair."""
    with pytest.raises(TypedError) as refusal:
        read_typed(f"i > {LARGEST + over}")
    assert refusal.value.code == "large"
    assert not read_typed(f"i > {LARGEST - 1}").table(3).any()
    with pytest.raises(TypedError) as refusal:
        read_typed(f"i * {LARGEST - 1} + j * {1 + over // LARGEST} + {over // 2} + 1 > 0").table(2)
    assert refusal.value.code == "large at"
    assert read_typed(f"i * {LARGEST - 1} >= j").table(2)[1].all()


BROKEN_LINES = {
    "tfviz/explained/truths.py": [
        ("−100 is a mask", "GAP = 800\n", "GAP = 100\n"),
        ("every low number is a mask", "(falls >= GAP) & (falls >= 3", "(falls > 0) & (falls >= 0"),
        ("numbers of a query alone mask", "(mixed | as_low)", "(mixed | True)"),
    ],
    "tfviz/explained/bring.py": [
        (
            "heads are compared by two",
            "(heads == heads[:1]).all()",
            "(heads[:2] == heads[:1]).all()",
        ),
        ("texts are compared by two", "for one in x[1:])", "for one in x[1:2])"),
    ],
    "tfviz/explained/typed.py": [
        (
            "whole numbers up to twice the limit",
            "int(piece) >= LARGEST",
            "int(piece) >= 2 * LARGEST",
        ),
        (
            "whole values up to twice the limit",
            "value.abs() >= LARGEST",
            "value.abs() >= 2 * LARGEST",
        ),
    ],
}
