"""`tfviz.explain`: what people bring becomes what the callable itself says, or a clear error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from explained.public import PUBLIC, every, table
from refusals import of_no_kind, refused
from torch import Tensor
from torch.nn.attention.flex_attention import and_masks, create_mask, flex_attention, noop_mask

from tfviz import attention, explain, patterns
from tfviz.explorers.sparse.sparse_lab import _brought
from tfviz.formula import FormulaError
from tfviz.longer_context.alibi import slopes

RESTS_ON = ("tfviz/**", "tests/**")  # it finds them by their names

L = 24


def window(size: int) -> Any:
    return lambda b, h, q, k: (q >= k) & (q - k < size)


def grid(length: int = L) -> tuple[Tensor, Tensor]:
    return torch.arange(length)[:, None], torch.arange(length)


def said_by_flex(mod: Any, length: int, batch: int | None = None, heads: int | None = None) -> Any:
    """(b, h, L, L), by torch's own evaluation of a mask_mod."""
    return create_mask(mod, batch, heads, length, length, device="cpu")


# --- mask_mods -----------------------------------------------------------------------------------


def test_a_window_by_hand() -> None:
    e = explain(window(3))
    assert e.key_sets(5) == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert e.text() == "i ≥ j and i − j < 3"
    assert e.latex == r"i \geq j \land i - j < \mathrm{size}"
    assert (e.kind, e.parameters, e.same_as) == (
        "formula",
        {"size": 3},
        patterns.sliding_window(lookback=2),
    )
    assert e.cost(5).pairs == 12
    assert e.reach(5).diameter == 2


@pytest.mark.parametrize("name", [n for n, one in PUBLIC.items() if not one.options])
def test_a_formula_is_what_torch_makes_of_the_callable(name: str) -> None:
    e = next(answer for one, answer in every() if one.name == name)
    if isinstance(e, Exception) or e.kind not in ("formula", "table"):
        pytest.skip("refused, or a function of the scores: they have tests of their own")
    length = e.patterns[0]._fixed_length() or 40
    by_torch = said_by_flex(PUBLIC[name].make(), length, len(e.patterns), 1)[:, 0]
    assert torch.equal(e.mask(length).reshape(by_torch.shape), by_torch)
    if e.same_as:
        assert torch.equal(e.same_as.mask(200), e.pattern.mask(200))


def test_four_of_five_public_masks_are_explained_and_the_others_refused_clearly() -> None:
    rows = every()
    errors = [answer for _, answer in rows if isinstance(answer, Exception)]
    assert len(rows) >= 45
    assert len({one.source for one, _ in rows}) > 10
    assert len(errors) <= len(rows) / 5
    for error in errors:
        assert isinstance(error, FormulaError), error
        assert "no symbolic form" in str(error) or "formula" in str(error)


def test_the_guide_lists_them_all_with_what_came_out() -> None:
    guide = Path(__file__).parents[2] / "book" / "how_to_use.md"
    assert table() in guide.read_text("utf8"), f"book/how_to_use.md shows another table:\n{table()}"


def test_numbers_of_the_closure_are_sliders() -> None:
    family = explain(window(3)).pattern.family  # type: ignore[attr-defined]
    assert torch.equal(family(size=5).mask(L), explain(window(5)).mask(L))
    assert torch.equal(explain(window(3)).with_values(size=5).mask(L), family(size=5).mask(L))
    assert explain(window(3)).pattern == explain(window(3)).pattern
    assert explain(window(3)).pattern != explain(window(4)).pattern
    of_no_kind("no width", explain(window(3)).with_values, width=4)


def test_a_number_may_stand_in_a_default_a_partial_a_module_or_a_function_beside() -> None:
    def by_default(b: Any, h: Any, q: Any, k: Any, size: int = 4) -> Any:
        return (q >= k) & (q - k < size)

    def by_keyword(b: Any, h: Any, q: Any, k: Any, *, size: int) -> Any:
        return (q >= k) & (q - k < size)

    def by_a_helper(b: Any, h: Any, q: Any, k: Any) -> Any:
        return both(q, k)

    inner = 4

    def both(q: Any, k: Any) -> Any:
        return (q >= k) & (q - k < inner)

    for mod in (by_default, partial(by_keyword, size=4), by_a_helper, _of_the_module):
        e = explain(mod)
        assert e.same_as == patterns.sliding_window(lookback=3)
        assert [*e.parameters.values()] == [4]


class Settings:
    """As a configuration, or the object whose method is the mask."""

    def __init__(self, size: int) -> None:
        self.size, self.documents, self.words = size, torch.tensor([0, 0, 1, 1, 1, 2]), 50_000

    def mask(self, b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (q - k < self.size)

    def inside(self, b: Any, h: Any, q: Any, k: Any) -> Any:
        return self.documents[q] == self.documents[k]

    def __call__(self, b: Any, h: Any, q: Any, k: Any) -> Any:
        return self.mask(b, h, q, k)


def test_a_number_may_stand_in_an_object() -> None:
    settings = Settings(4)

    def of_settings(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (q - k < settings.size)

    for mod in (of_settings, settings.mask):
        e = explain(mod)
        assert e.parameters == {"size": 4}
        assert torch.equal(e.with_values(size=6).mask(L), explain(window(6)).mask(L))
    assert explain(settings).same_as == patterns.sliding_window(lookback=3)
    assert settings.size == 4
    e = explain(settings.inside)
    assert [*e.inputs] == ["documents"] and e.key_sets(6)[3] == [2, 3, 4]


SIZE = 4


def _of_the_module(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & (q - k < SIZE)


def test_a_large_number_is_found_again_without_a_large_mask() -> None:
    assert explain(window(4096)).same_as == patterns.sliding_window(lookback=4095)
    chunked = and_masks(window(10**6), lambda b, h, q, k: q // 1024 == k // 1024)
    assert explain(chunked).same_as != patterns.own_block(block=1024)  # two numbers, only one in it


def test_two_functions_of_one_name_are_two_patterns() -> None:
    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return q >= k

    first = explain(mod).pattern

    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:  # type: ignore[no-redef]
        return q > k

    second = explain(mod).pattern
    assert first != second
    assert patterns.from_spec(first.spec()) == first
    assert patterns.from_spec(second.spec()) == second
    assert not bool(second.mask(4).diagonal().any()) and bool(first.mask(4).diagonal().all())


def test_what_python_branches_on_stays_as_it_is_or_is_refused() -> None:
    e = explain(PUBLIC["every second layer a window"].make())
    assert e.fixed == {"layer_idx": 0} and [*e.parameters] == ["sliding_window"]
    refused(
        "return q >= k if q > 3 else k < 4 … L=", explain, PUBLIC["an if on the position"].make()
    )


def test_a_function_that_does_more_than_its_formula_is_caught() -> None:
    seen = []

    def twofaced(b: Any, h: Any, q: Any, k: Any) -> Any:
        seen.append(1)
        return q >= k if isinstance(q, torch.fx.Proxy) else q > k

    refused("q = 0, k = 0 … does more", explain, twofaced)
    assert seen


def test_the_refusal_names_the_operation_and_a_length_gives_a_table() -> None:
    def bits(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >> 2) == (k >> 2)

    refused("rshift … L=…", explain, bits)
    e = explain(bits, L=16)
    assert e.kind == "table" and "rshift" in e.why
    assert torch.equal(e.mask(16), said_by_flex(bits, 16)[0, 0])


def test_numbers_that_divide_are_at_least_one_and_a_quotient_of_none_is_said() -> None:
    family = explain(PUBLIC["NATTEN by tiles"].make()).pattern.family  # type: ignore[attr-defined]
    refused("tile = 0", family, width=8, height=6, size=3, tile=0)
    refused("divides by 0 … tile = 5", family(width=4, height=6, size=3, tile=5).mask, 24)


@pytest.mark.parametrize(
    "name", ["NATTEN", "staircase", "shifted windows", "local, from the bottom right"]
)
def test_the_browser_computes_the_same_mask(page: Any, name: str) -> None:
    """What a lab is handed for a formula from outside: its rows, by the library's printer."""
    pattern = explain(PUBLIC[name].make()).pattern
    rows = _brought(pattern)[pattern.name]["rows"]
    script = f"([L, values]) => {{ const row = {rows}; const out = []; "
    script += "for (let i = 0; i < L; i++) { const [, allowed] = row(i, ...values); "
    script += "for (let j = 0; j < L; j++) out.push(Boolean(allowed(j))); } return out; }"
    theirs = page.evaluate(script, [48, list(pattern.parameters.values())])
    assert theirs == pattern.mask(48).flatten().tolist()


# --- batch entries, heads, tensors ---------------------------------------------------------------


def test_documents_become_a_table_and_are_its_input() -> None:
    documents = torch.tensor([0, 0, 0, 1, 1, 2])

    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (documents[q] == documents[k]) & (q >= k)

    e = explain(mod)
    assert e.kind == "table" and [*e.inputs] == ["documents"]
    assert e.key_sets(6) == [[0], [0, 1], [0, 1, 2], [3], [3, 4], [5]]
    assert e.latex.startswith(r"{\mathrm{documents}}_{i} = {\mathrm{documents}}_{j}")
    other = e.with_values(documents=torch.tensor([0, 0, 1, 1]))
    assert other.key_sets(4) == [[0], [0, 1], [2], [2, 3]]
    refused("L = 6; L = 7", e.mask, 7)


def test_a_prefix_of_each_batch_entry_is_a_formula_of_each() -> None:
    prefix = torch.tensor([2, 5, 0])

    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) | (k < prefix[b])

    e = explain(mod)
    assert e.kind == "formula" and len(e.patterns) == 3
    assert torch.equal(e.mask(L), said_by_flex(mod, L, 3)[:, 0])
    refused("3 batch entries … .patterns[0]", lambda: e.pattern)
    Q, K, V = (torch.randn(3, 2, L, 8) for _ in range(3))
    torch.testing.assert_close(e.attention(Q, K, V), attention(Q, K, V, e.mask(L)[:, None])[0])
    refused("3 batch entries … (3, h, L, d)", e.attention, Q[:2], K[:2], V[:2])


def test_a_mask_may_differ_by_head() -> None:
    def mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q >= k) & (q - k <= 2 * h)

    refused("differs by head … heads=", explain, mod)
    e = explain(mod, heads=3)
    assert torch.equal(e.mask(L), said_by_flex(mod, L, None, 3)[0])
    widths = torch.tensor([1, 4])
    looked_up = explain(lambda b, h, q, k: abs(q - k) <= widths[h])
    assert torch.equal(looked_up.mask(L)[1], patterns.band(radius=4).mask(L))


def test_hugging_faces_padding_and_packed_sequences_are_tables_of_each_batch_entry() -> None:
    for name in ("padding", "packed sequences"):
        mod = PUBLIC[name].make()
        e = explain(mod)
        assert e.kind == "table" and len(e.patterns) == 2
        assert torch.equal(e.mask(16), said_by_flex(mod, 16, 2)[:, 0])


# --- attention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sinks and a window", "shifted windows", "block diffusion"])
def test_sub_quadratic_attention_is_flex_attention(name: str) -> None:
    """Longer than the length up to which one masked product is taken; with gradients."""
    length, mod = 200, PUBLIC[name].make()
    e = explain(mod)
    q, k, v = (torch.randn(1, 2, length, 8, dtype=torch.float64) for _ in range(3))
    ours = [x.clone().requires_grad_() for x in (q, k, v)]
    mask = said_by_flex(mod, length)
    want = [x.clone().requires_grad_() for x in (q, k, v)]
    out, dense = e.attention(*ours), attention(want[0], want[1], want[2], mask)[0]
    torch.testing.assert_close(out, dense)
    for a, b in zip(
        torch.autograd.grad(out.sum(), ours), torch.autograd.grad(dense.sum(), want), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_its_mask_mod_is_one_for_flex_attention() -> None:
    pattern = explain(PUBLIC["NATTEN"].make()).pattern
    assert torch.equal(said_by_flex(pattern.mask_mod, 48)[0, 0], pattern.mask(48))


# --- score_mods ----------------------------------------------------------------------------------


def flex(mod: Any, Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    out = flex_attention(Q, K, V, score_mod=mod)
    assert isinstance(out, Tensor)
    return out


SCORES = ["ALiBi", "tanh soft cap", "sigmoid in place of the softmax", "decay", "logarithmic"]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", [*SCORES, "Sandwich", "relative bias", "ALiBi on both sides"])
def test_a_score_mod_is_what_flex_attention_computes(name: str) -> None:
    one = PUBLIC[name]
    e = explain(one.make(), **one.options)
    heads = e.bias.heads if e.bias else 2
    length = one.options.get("L", L)
    Q, K, V = (torch.randn(1, heads, length, 8) for _ in range(3))
    torch.testing.assert_close(
        e.attention(Q, K, V), flex(one.make(), Q, K, V), atol=1e-5, rtol=1e-4
    )


def test_alibi_by_hand() -> None:
    e = explain(PUBLIC["ALiBi"].make(), heads=4)
    assert e.kind == "bias" and e.bias is not None
    m = slopes(4)
    i, j = grid(5)
    torch.testing.assert_close(e.bias.tensor(5), m[:, None, None] * (j - i))
    assert e.latex.startswith("s_{ij} +")


def test_minus_infinity_is_a_mask() -> None:
    def mod(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return torch.where((q >= k) & (q - k < 4), score, -float("inf"))

    e = explain(mod)
    assert torch.equal(e.mask(L), explain(window(4)).mask(L))
    decay = explain(PUBLIC["decay"].make())
    assert torch.equal(decay.mask(L), patterns.causal().mask(L))


def test_what_a_score_function_must_not_do_is_said() -> None:
    table = torch.rand(L, L)
    refused(
        "does more with the score",
        explain,
        lambda score, b, h, q, k: score * table[q, k],
    )
    refused("never uses the score", explain, lambda score, b, h, q, k: q - k)
    by_batch = torch.tensor([1.0, 2.0])
    refused("each batch entry", explain, lambda score, b, h, q, k: score + by_batch[b] * (q - k))


# --- masks and biases ----------------------------------------------------------------------------

FOUND = [
    patterns.causal(),
    patterns.full(),
    patterns.band(radius=5),
    patterns.sliding_window(lookback=7),
    patterns.dilated(radius=3, dilation=4),
    patterns.column(stride=6),
    patterns.own_block(block=8),
    patterns.block_local(block=6),
    patterns.global_tokens(count=3),
    patterns.strided(stride=9),
    patterns.fixed(block=8, summary=2),
    patterns.longformer(radius=4, n_global=2),
    patterns.block_window(block=4, window=2),
    patterns.global_blocks(block=4, count=1),
    patterns.band(radius=3) & patterns.causal() | patterns.summary_columns(block=12, summary=2),
]


@pytest.mark.parametrize("pattern", FOUND, ids=repr)
def test_the_family_of_a_mask_is_found(pattern: Any) -> None:
    """Perhaps another than the one that made it: at one length two may be the same."""
    length = 100
    mask = pattern.mask(length)
    e = explain(mask)
    assert e.kind == "formula" and e.same_as is not None, e.why
    assert torch.equal(e.same_as.mask(length), mask)


def test_a_mask_of_no_family_is_honestly_a_table() -> None:
    torch.manual_seed(0)
    bits = torch.rand(L, L) < 0.3
    e = explain(bits)
    assert e.kind == "table" and e.same_as is None and "no formula" in e.why
    assert torch.equal(e.mask(L), bits)
    nearly = patterns.causal().mask(L).clone()
    nearly[20, 3] = False
    assert explain(nearly).kind == "table"


def test_heads_of_a_mask_are_found_one_by_one() -> None:
    masks = torch.stack([patterns.causal().mask(L), patterns.band(radius=2).mask(L)])
    e = explain(masks)
    assert torch.equal(e.mask(L), masks)
    assert e.pattern.parts == (patterns.causal(), patterns.band(radius=2))


def test_the_formula_of_a_bias_is_found() -> None:
    i, j = grid(40)
    alibi = -slopes(4)[:, None, None] * (i - j).abs()
    e = explain(alibi.masked_fill(i < j, -torch.inf))
    assert e.bias is not None and e.bias.name == "alibi"
    assert e.bias.parameters["m"] == pytest.approx(slopes(4).tolist())
    assert e.same_as == patterns.causal()
    bell = explain(-(0.1 * (i - j) ** 2 - 0.5).abs())
    assert bell.bias is not None and bell.bias.name == "gaussian_transformer"
    assert bell.bias.parameters == pytest.approx({"w": 0.1, "b": -0.5}, abs=1e-3)


def test_a_bias_without_a_formula_says_what_it_is() -> None:
    i, j = grid(40)
    by_distance = torch.randn(79)[i - j + 39]
    assert "79 numbers by the distance" in explain(by_distance).why
    from tfviz.position.t5_relative_bias import bucket

    buckets = torch.randn(32)[bucket(i - j)].masked_fill(i < j, -torch.inf)
    assert "T5's buckets" in explain(buckets).why
    assert "no formula of the library" in explain(torch.randn(40, 40)).why
    masked = torch.zeros(40, 40).masked_fill(i < j, -torch.inf)
    assert explain(masked).same_as == patterns.causal() and explain(masked).bias is None


# --- ours, and what is none ----------------------------------------------------------------------


def test_ours_are_explained_too() -> None:
    e = explain(patterns.strided(stride=8))
    assert e.text() == patterns.strided(stride=8).text()
    assert explain(patterns.band).pattern == patterns.band(radius=3)
    own = explain(lambda i, j: abs(i - j) < 3)
    assert own.same_as == patterns.band(radius=2)
    assert explain(noop_mask).same_as == patterns.full()
    flexed = explain(patterns.longformer(radius=3, n_global=2).mask_mod)
    assert torch.equal(flexed.mask(L), patterns.longformer(radius=3, n_global=2).mask(L))


def test_bad_input() -> None:
    of_no_kind("'causal' … mask_mod(b, h, q, k)", explain, "causal")
    of_no_kind("3 positional arguments", explain, lambda a, b, c: a)
    of_no_kind("int64", explain, torch.ones(4, 4).long())
    refused("(4, 5) … queries must be the keys", explain, torch.ones(4, 5).bool())
    refused("(1, 2, 1, 4, 4) … (b, h, L, L)", explain, torch.ones(1, 2, 1, 4, 4).bool())
    refused("NaN", explain, torch.full((4, 4), torch.nan))
    refused("L = 0", explain, window(3), L=0)
    refused("heads = 0", explain, window(3), heads=0)
    prefix = torch.tensor([3])
    refused("L=…", explain, lambda b, h, q, k: prefix[q * 0 + k // 99] < k)
    refused("image (8,)", explain, PUBLIC["Flamingo, text to images"].make(), L=24)


# --- the explorer --------------------------------------------------------------------------------


def test_the_lab_shows_a_brought_formula() -> None:
    def my_window(b: Any, h: Any, q: Any, k: Any, size: int = 5) -> Any:
        return (q >= k) & (q - k < size)

    e = explain(my_window)
    lab = e.explore(32)
    assert lab.pattern == e.pattern
    assert lab.from_state(lab.state).pattern == e.pattern
    assert e.pattern.name in lab._esm
    assert lab.numbers()["pairs"][0] == e.cost(32).pairs
    from tfviz.explorers import SparseLab

    assert e.pattern.name not in SparseLab()._esm
    assert explain(torch.rand(20, 20) > 0.5).explore().L == 20
