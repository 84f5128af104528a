"""`examine` finds what is broken in anybody's attention, and blames nothing that is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz.cores import Sparse, Where
from tfviz.dense_attention import attention
from tfviz.examined import Examined, examine
from tfviz.examined.examples import ASKED, MADE
from tfviz.examined.laws import LAWS
from tfviz.models.blocks import Block, Mixer, MultiHeadAttention
from tfviz.patterns import causal, sliding_window
from tfviz.position import Rope

SOURCE = Path(__file__).with_name("plain_attention.py")


def plain(*changes: str) -> Any:
    """The plain attention, with some of its text replaced: old, new, old, new, …"""
    text = SOURCE.read_text("utf-8")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the source"
        text = text.replace(old, new)
    room: dict[str, Any] = {"__name__": "plain_attention"}
    exec(compile(text, str(SOURCE), "exec"), room)
    torch.manual_seed(0)
    return room["PlainAttention"]()


def kept(module: Any, parts: Any) -> list[Tensor]:
    """The plain attention's answers, part by part."""
    past, out = None, []
    for (X,) in parts:
        Y, past = module(X, past=past)
        out.append(Y)
    return out


def definition(X: Tensor) -> Tensor:
    """What the plain attention should say, by the library's own attention."""
    module = plain().double()
    Q, K, V = (Y.unflatten(-1, (2, -1)).transpose(1, 2) for Y in module.W_qkv(X).chunk(3, -1))
    i = torch.arange(X.shape[1])[:, None] * 0.3 ** torch.arange(2, dtype=torch.float64)

    def turned(Y: Tensor) -> Tensor:
        both = torch.complex(*Y.chunk(2, -1)) * torch.polar(torch.ones_like(i), i)
        return torch.cat([both.real, both.imag], -1)

    out = attention(turned(Q), turned(K), V, causal())[0]
    return module.W_o(out.transpose(1, 2).flatten(2))


def asked(module: Any, *laws: str) -> Examined:
    return examine(
        module,
        causal=True,
        padding="mask",
        definition=definition,
        in_parts=kept,
        exponent=2,
        only=laws or None,
    )


LATER = "later = torch.arange(start + L) > torch.arange(start, start + L)[:, None]"
SOFTMAX = "A = s.softmax(-1)"
PROJECTED = "Q, K, V = self.W_qkv(X).chunk(3, -1)"
PADDED = "s = s.masked_fill(~mask[:, None, None], -math.inf)"
KEPT = "K, V = torch.cat([past[0], K], 2), torch.cat([past[1], V], 2)"
OUT = "out = A @ V"
HALF_SQUARE = """class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g / 2


class PlainAttention(nn.Module):"""
MUTANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "the mask is off by one": ("future", (LATER, LATER.replace(" > ", " - 1 > "))),
    "the softmax runs over the queries": ("future", (SOFTMAX, "A = s.softmax(-2).nan_to_num()")),
    "the mask comes after the softmax": (
        "future",
        ("s = s.masked_fill(later, -math.inf)", "pass", OUT, "out = A.masked_fill(later, 0.0) @ V"),
    ),
    "the mask is a small number": (
        "future",
        ("s = s.masked_fill(later, -math.inf)", "s = s.masked_fill(later, -8.0)"),
    ),
    "a norm runs over the text": (
        "future",
        (PROJECTED, PROJECTED.replace("(X)", "(X / X.norm(dim=1, keepdim=True))")),
    ),
    "heads are viewed and not transposed": (
        "future",
        ("Y.unflatten(-1, (self.h, -1)).transpose(1, 2)", "Y.reshape(b, self.h, L, -1)"),
    ),
    "the keys are turned around": (
        "future",
        (
            "K = turned(Q, start), turned(K, start)",
            "K = turned(Q, start), turned(K, start).flip(2)",
        ),
    ),
    "padding is upside down": ("padding", (PADDED, PADDED.replace("~", ""))),
    "padding is only less loud": ("padding", (PADDED, PADDED.replace("-math.inf", "-1.0"))),
    "one head does not hear of padding": (
        "padding",
        (PADDED, "s[:, :1] = s[:, :1].masked_fill(~mask[:, None, None], -math.inf)"),
    ),
    "padding is taken for that of the queries": (
        "padding",
        (PADDED, "s = s.masked_fill(~mask[:, None, :, None], 0.0)"),
    ),
    "positions begin anew after a cache": ("cache", ("turned(K, start)", "turned(K, 0)")),
    "the first kept row is lost": (
        "cache",
        (
            KEPT,
            KEPT + "\n            K, V = K[:, :, 1:], V[:, :, 1:]",
            "later = torch.arange(start + L)",
            "later = torch.arange(K.shape[2])",
        ),
    ),
    "new keys are put before the kept ones": (
        "cache",
        (KEPT, "K, V = torch.cat([K, past[0]], 2), torch.cat([V, past[1]], 2)"),
    ),
    "the cache keeps values and no keys": ("cache", ("return Y, (K, V)", "return Y, (0 * K, V)")),
    "the mean of the batch is taken off": (
        "batch",
        (PROJECTED, PROJECTED.replace("(X)", "(X - X.mean(0))")),
    ),
    "the softmax runs over the batch, too": (
        "batch",
        (SOFTMAX, "A = s.exp() / s.exp().sum((0, -1), keepdim=True)"),
    ),
    "the values have no gradient": ("gradients", (OUT, "out = A @ V.detach()")),
    "a backward of its own forgets a factor": (
        "gradients",
        ("class PlainAttention(nn.Module):", HALF_SQUARE, SOFTMAX, "A = Half.apply(s.softmax(-1))"),
    ),
    "the softmax takes no maximum off": (
        "half precision",
        (SOFTMAX, "A = s.exp() / s.exp().sum(-1, keepdim=True)", "/ math.sqrt(Q.shape[-1])", "* 1"),
    ),
    "the root of d is missing": ("definition", (" / math.sqrt(Q.shape[-1])", "")),
    "pairs are turned the other way": (
        "definition",
        ("a * angle.cos() - b", "a * angle.cos() + b"),
    ),
    "memory is read as it lies": (
        "memory",
        (
            "b, L, d = X.shape",
            "b, L, d = X.shape\n        X = X.as_strided(X.shape, (L * d, d, 1))",
        ),
    ),
    "it makes L³ numbers": (
        "growth",
        (
            OUT,
            "out = A @ V + 0 * (A[..., None] * A[..., None, :]).sum()",
        ),
    ),
}


def test_a_right_one_is_blamed_for_nothing() -> None:
    found = asked(plain())
    assert not found.broken, found
    assert {x.law for x in found} == {*LAWS} and all(x.status != "not asked" for x in found)


@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_broken_is_found_with_the_smallest_example(name: str) -> None:
    law, changes = MUTANTS[name]
    found = asked(plain(*changes), law)[law]
    assert found.status == "broken", found
    if found.example is not None and found.example.pair and found.example.wrong is not None:
        assert found.example.wrong[found.example.pair]


# --- other people's modules -----------------------------------------------------------------------


def hugging_face(kind: str, **more: Any) -> Any:
    """A tiny random model of Hugging Face's transformers."""
    transformers = pytest.importorskip("transformers")
    sizes = {
        "vocab_size": 20,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}Model")(
        getattr(transformers, f"{kind}Config")(**sizes | more)
    )


def x_transformers(name: str, *sizes: int, **more: Any) -> Any:
    room = pytest.importorskip("x_transformers").x_transformers
    torch.manual_seed(0)
    return getattr(room, name)(*sizes, **more)


TWO = {"num_key_value_heads": 1}
OTHERS: dict[str, Callable[[], Any]] = {
    "torch, attention": lambda: nn.MultiheadAttention(16, 2, batch_first=True),
    "torch, length first": lambda: nn.MultiheadAttention(16, 2, bias=False),
    "torch, encoder layer": lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
    "transformers, Llama": lambda: hugging_face("Llama", **TWO),
    "transformers, Llama's attention": lambda: hugging_face("Llama").layers[1].self_attn,
    "transformers, Mistral": lambda: hugging_face("Mistral", sliding_window=4, **TWO),
    "transformers, Qwen3": lambda: hugging_face("Qwen3", head_dim=8, **TWO),
    "transformers, GPT-NeoX's attention": lambda: hugging_face("GPTNeoX").layers[0].attention,
    "transformers, GPT-2": lambda: hugging_face("GPT2", n_embd=16, n_layer=2, n_head=2),
    "transformers, BERT": lambda: hugging_face("Bert"),
    "transformers, BERT's attention": lambda: hugging_face("Bert").encoder.layer[0].attention.self,
    "transformers, DistilBERT": lambda: hugging_face(
        "DistilBert", dim=16, n_heads=2, hidden_dim=32
    ),
    "x-transformers, causal": lambda: x_transformers(
        "Attention", 16, heads=2, dim_head=8, causal=True
    ),
    "x-transformers, both ways": lambda: x_transformers("Attention", 16, heads=2, dim_head=8),
    "x-transformers, one key head and QK norm": lambda: x_transformers(
        "Attention", 16, heads=2, dim_head=8, causal=True, kv_heads=1, qk_norm=True
    ),
    "x-transformers, talking heads": lambda: x_transformers(
        "Attention", 16, heads=2, dim_head=8, pre_talking_heads=True
    ),
    "ours": lambda: MultiHeadAttention(16, 2, core=Rope, pattern=causal()),
    "ours, sparse": lambda: MultiHeadAttention(
        16, 2, core=Sparse, pattern=sliding_window(lookback=2)
    ),
    "our block": lambda: Block(16, 2, pattern=causal()),
    "ours of Q, K, V": lambda: lambda Q, K, V: attention(Q, K, V, causal()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nobody_who_is_right_is_blamed(name: str) -> None:
    found = examine(OTHERS[name]())
    assert not found.broken, found
    both_ways = name.endswith(("both ways", "heads", "BERT", "BERT's attention", "layer", "first"))
    both_ways = both_ways or name == "torch, attention"
    assert found["future"].status == ("noted" if both_ways else "holds"), found
    if not name.startswith("ours of"):
        assert found["padding"].status == "holds", found
    if not both_ways and not name.startswith("ours of"):
        assert found["cache"].status == "holds", found


def ignores(module: Any, argument: str) -> Any:
    """The module, deaf to one of its arguments."""
    forward = type(module).forward

    class Deaf(type(module)):  # type: ignore[misc]
        def forward(self, *args: Any, **told: Any) -> Any:
            return forward(self, *args, **told | {argument: None})

    module.__class__ = Deaf
    Deaf.__module__ = type(module).__mro__[1].__module__
    Deaf.forward.__signature__ = __import__("inspect").signature(forward)  # type: ignore[attr-defined]
    return module


def reads(module: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The module, reading something else than it is given."""
    module.register_forward_pre_hook(
        lambda _, args, told: (
            tuple(change(x) if isinstance(x, Tensor) and n == 0 else x for n, x in enumerate(args)),
            {
                name: change(x) if name in ("inputs_embeds", "hidden_states") else x
                for name, x in told.items()
            },
        ),
        with_kwargs=True,
    )
    return module


OTHERS_BROKEN: dict[str, tuple[str, Callable[[], Any]]] = {
    "Llama's attention without its mask": (
        "future",
        lambda: ignores(hugging_face("Llama").layers[1].self_attn, "attention_mask"),
    ),
    "Llama reads a normed text": (
        "future",
        lambda: reads(hugging_face("Llama"), lambda x: x / x.norm(dim=1, keepdim=True)),
    ),
    "Llama forgets": ("cache", lambda: ignores(hugging_face("Llama"), "past_key_values")),
    "GPT-2 reads the mean of its batch": (
        "batch",
        lambda: reads(
            hugging_face("GPT2", n_embd=16, n_layer=2, n_head=2), lambda x: x - x.mean(0)
        ),
    ),
    "BERT does not hear of padding": (
        "padding",
        lambda: ignores(hugging_face("Bert"), "attention_mask"),
    ),
    "x-transformers does not hear of padding": (
        "padding",
        lambda: ignores(OTHERS["x-transformers, both ways"](), "mask"),
    ),
    "x-transformers forgets": (
        "cache",
        lambda: ignores(OTHERS["x-transformers, causal"](), "cache"),
    ),
    "torch's attention stops gradients": (
        "gradients",
        lambda: reads(nn.MultiheadAttention(16, 2, batch_first=True), lambda x: x.detach()),
    ),
}


@pytest.mark.parametrize("name", OTHERS_BROKEN)
def test_other_peoples_modules_broken_on_purpose(name: str) -> None:
    law, made = OTHERS_BROKEN[name]
    found = examine(made(), causal=True if law == "future" else None, only=[law])
    assert found[law].status == "broken", found


# --- what is shown, and what is refused -----------------------------------------------------------


def leaky() -> Any:
    return plain(LATER, LATER.replace(" > ", " - 1 > "))


def test_a_leak_is_drawn_in_a_terminal_in_a_notebook_and_is_json() -> None:
    found = asked(leaky(), "future", "padding")
    assert "    ○ ●\n    ○ ○" in repr(found) and "it sees the future" in repr(found)
    page = found._repr_html_()
    assert page.count("<tr>") == 3 and "<svg" in page and "it sees the future" in page
    told = json.loads(found.json())["laws"]
    assert told["future"]["status"] == "broken"
    assert told["future"]["example"] == {"L": 2, "seed": 0, "pair": [0, 1], "wrong": [[0, 1]]}
    assert found.figures().keys() == {"future"}
    again = found["future"].example
    assert again is not None and again.matrix is not None and again.matrix[0, 1] > 0.01


def test_nothing_of_the_module_or_of_the_dice_is_changed() -> None:
    module = plain().train()
    before = {name: x.clone() for name, x in module.state_dict().items()}
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    examine(module, causal=True, padding="mask", in_parts=kept)
    assert torch.rand(2).equal(wanted) and module.training
    assert all(x.equal(before[name]) for name, x in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())


def test_what_cannot_be_told_is_said() -> None:
    found = examine(lambda Q, K, V: V.flip(-2), causal=True)
    assert found["future"].status == "broken"
    assert "keeps nothing" in found["cache"].says and found["cache"].status == "not asked"
    assert found["definition"].says == "no definition was given"
    drops = nn.Sequential(nn.Linear(8, 8))
    drops.append(type("Always", (nn.Module,), {"forward": lambda _, x: nn.functional.dropout(x)})())
    assert "random" in examine(drops, only=["chance"])["chance"].says

    def even(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        if Q.shape[2] % 2:
            raise ValueError("L must be even")
        return attention(Q, K, V)[0]

    found = examine(even, only=["lengths", "batch"])
    assert "texts of 1, 3, 5, 7, 9, 33: ValueError: L must be even" in found["lengths"].says
    assert found["batch"].status == "holds"
    with pytest.raises(KeyError, match="the laws are chance"):
        found["colour"]


def test_what_is_no_attention_is_refused() -> None:
    of_no_kind("what is MultiHeadAttention", examine, MultiHeadAttention)
    of_no_kind("what is Tensor", examine, torch.ones(3))
    refused("the width of what", examine, nn.Identity())
    refused("no such law; choose of", examine, plain(), only=["colour"])
    with pytest.raises(TypeError, match="without a tensor"):
        examine(lambda Q, K, V: None)


def test_a_terminal_examines_a_class_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    from tfviz.__main__ import main

    torch_one = ["examine", "torch.nn:MultiheadAttention", "--kwargs"]
    torch_one.append('{"embed_dim": 16, "num_heads": 2, "batch_first": true}')
    assert main([*torch_one, "--only", "future", "padding"]) == 0
    assert "✓ padding" in capsys.readouterr().out
    assert main([*torch_one, "--causal", "--only", "future", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["laws"]["future"]["status"] == "broken"
    for words, says in {
        ("torch.nn.MultiheadAttention",): "write package.module:Class",
        ("no_such_module:A",): "cannot be imported",
        ("torch.nn:Nothing",): "has no Nothing",
        ("torch.nn:Linear", "--kwargs", "{"): "is no JSON",
        ("torch.nn:Linear", "--kwargs", "[1]"): "names nothing",
        ("torch.nn:Linear",): "fails: TypeError",
        ("tfviz:attention", "--kwargs", '{"d": 1}'): "takes no kwargs",
        ("torch.nn:Identity",): "say it: d=",
    }.items():
        with pytest.raises(SystemExit):
            main(["examine", *words])
        assert says in capsys.readouterr().err, words


@pytest.mark.parametrize(
    ("name", "law"),
    [("next_token_too", "future"), ("QuietPadding", "padding"), ("Forgetful", "cache")],
)
def test_the_pages_examples_break_one_law_each(name: str, law: str) -> None:
    torch.manual_seed(0)
    assert [x.law for x in examine(MADE[name](), **ASKED[name]).broken] == [law]


def test_a_definition_of_another_shape_is_another_one() -> None:
    found = examine(plain(), padding="mask", definition=lambda X: X[:, :1, :3], only=["definition"])
    assert found["definition"].status == "broken"


def test_a_module_of_others_keeps_its_settings() -> None:
    module = hugging_face("Llama").layers[1].self_attn
    before = module.config
    examine(module, only=["batch"])
    assert module.config is before


def test_a_function_around_a_module_is_asked_in_its_type() -> None:
    module = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    found = examine(lambda X: module(X, X, X)[0], d=16)
    assert not found.broken and found["gradients"].status == "holds", found


class Remembering(Mixer):
    """Each token with half of the one before it."""

    def __init__(self, forgets: bool) -> None:
        super().__init__(causal())
        self.forgets = forgets

    def mixed(self, X: Tensor, memory: Any, where: Where) -> Tensor:
        empty = where.state is None or self.forgets
        before = torch.zeros_like(X[:, :1]) if empty else where.state
        if where.keep:
            where.keep(X[:, -1:])
        seen = torch.ones_like(X[..., :1], dtype=torch.bool)
        if where.attention_mask is not None:
            seen = where.attention_mask[:, where.start :, None]
        return X + torch.cat([before, X.masked_fill(~seen, 0.0)], 1)[:, :-1] / 2


def test_a_mixer_that_somebody_writes_is_asked_with_its_cache() -> None:
    """As ours are, wherever it is written."""
    found = examine(Remembering(False), causal=True, d=8)
    assert not found.broken and found["padding"].status == found["cache"].status == "holds", found
    assert [x.law for x in examine(Remembering(True), causal=True, d=8).broken] == ["cache"]
