"""A GPT in the page is the library's: every part against torch in double precision, in V8 alone."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
import torch
from browser.alive_engine import engine, run, source
from py_mini_racer import JSEvalException, MiniRacer
from torch import Tensor, nn

from tfviz.basics.cache_cost import cache_bytes_of
from tfviz.basics.layer_norm_pre_post import RMSNorm, no_norm
from tfviz.basics.pointwise_mlp import SwiGLU
from tfviz.compressed.linear_transformer import LinearAttention
from tfviz.compressed.performer import Performer
from tfviz.cores import Bias, Dense, Sparse, Where
from tfviz.current import HyperConnections, OutputGate, gated_delta_net, mla
from tfviz.heads.grouped_query_attention import Grouped
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.universal_transformer import universal
from tfviz.models.bert import BERT
from tfviz.models.blocks import post_norm
from tfviz.models.gpt import GPT
from tfviz.models.use import watched
from tfviz.patterns import (
    band,
    causal,
    column,
    full,
    global_tokens,
    per_head,
    sliding_window,
    strided,
)
from tfviz.position.learned_pe import Learned, positions_in_every_layer
from tfviz.position.rope import Rope, Turned, rotate
from tfviz.position.rope_scaling import yarn
from tfviz.position.shaw_relative import shaw
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.position.t5_relative_bias import T5Bias
from tfviz.position.xl_relative import xl
from tfviz.priors.average_attention import AverageAttention, Averages
from tfviz.stored.page_gpt import as_handed_over, handed_over, in_double
from tfviz.stored.weights import pack, unpack

VOCAB, D, H, N, L = 13, 16, 4, 3, 21
TEXT = torch.randint(VOCAB, (L,), generator=torch.Generator().manual_seed(4)).tolist()
WINDOW = sliding_window(lookback=4)
SINKS = causal() & (sliding_window(lookback=4) | global_tokens(count=2))


class NoFeed(nn.Module):
    """A feed-forward network that says nothing."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.zeros_like(X)


def one_block(model: GPT) -> GPT:
    return universal(model, 3, None)


def same_block(model: GPT) -> GPT:
    """Two blocks that are one module, between two that are not."""
    blocks: Any = model.stack.blocks
    blocks[1] = blocks[0]
    return model


VARIANTS: dict[str, dict[str, Any]] = {
    "rotary, RMS": {"core": Rope, "norm": RMSNorm},
    "rotary around a core": {"core": partial(Turned, core=Dense), "norm": RMSNorm},
    "rotary around a core, window": {"core": partial(Turned, core=Sparse), "pattern": WINDOW},
    "rotary around two heads of keys": {"core": partial(Turned, core=Grouped), "h_kv": 2},
    "linear, rotary": {"core": partial(Turned, core=LinearAttention)},
    "no positions": {},
    "learned positions": {"positions": Learned(L, D, std=1.0)},
    "sinusoids": {"positions": Sinusoidal(D, base=50.0, scale=0.5)},
    "rotary, scaled": {
        "core": lambda d_head: Rope(
            d_head, speeds=yarn(d_head, factor=4, length=8), interpolate=1.5, temperature=0.7
        )
    },
    "ALiBi": {"core": Alibi},
    "ALiBi, three heads": {"core": Alibi, "d": 12, "h": 3},
    "a bias of the reader's": {"core": lambda: Bias(lambda i, j: -0.25 * abs(i - j - 1))},
    "Shaw": {"core": shaw(D // H, 5)},
    "Shaw, keys alone": {"core": shaw(D // H, 2, values=False)},
    "T5": {"core": lambda h: T5Bias(h, buckets=8, far=12, scale=3.0)},
    "T5, both sides": {"core": lambda h: T5Bias(h, buckets=8, far=12, bidirectional=True)},
    "window": {"pattern": WINDOW, "positions": Learned(L, D, std=1.0)},
    "window, rotary": {"pattern": WINDOW, "core": Rope},
    "window, ALiBi": {"pattern": WINDOW, "core": Alibi},
    "strided": {"pattern": strided(stride=4), "core": Sparse},
    "local, local, all": {"layer": lambda n: {"pattern": WINDOW if n < 2 else None}, "core": Rope},
    "sinks": {"pattern": SINKS},
    "sinks, rotary": {"pattern": SINKS, "core": Rope},
    "sinks, Shaw": {"pattern": SINKS, "core": shaw(D // H, 5)},
    "a pattern for each head": {
        "pattern": per_head(causal(), WINDOW, strided(stride=3), causal() & column(stride=2))
    },
    "a token that sees nothing": {"pattern": causal() & ~band(radius=0)},
    "two heads of keys": {"h_kv": 2, "core": Grouped},
    "two heads of keys, rotary": {"h_kv": 2, "core": Rope},
    "one head of keys": {"h_kv": 1},
    "one head": {"h": 1},
    "latents": mla(d_c=6, d_r=2),
    "latents, of queries too, window": {**mla(d_c=5, d_r=4, d_q=7), "pattern": WINDOW},
    "latents, none turned, sinks": {**mla(d_c=6, d_r=0), "pattern": SINKS},
    "the gated delta rule": gated_delta_net(),
    "gated delta rules below an attention": {
        "layer": lambda n: {"core": Rope} if n == 2 else gated_delta_net(),
        "h_kv": 2,
    },
    "linear": {"core": LinearAttention},
    "linear, with ε, two heads of keys": {"core": lambda: LinearAttention(eps=0.01), "h_kv": 2},
    "averages of values": {"core": Averages, "h_kv": 2},
    "averages with gates": {"mix": AverageAttention},
    "averages with a network": {"mix": partial(AverageAttention, d_ff=9, gate=False)},
    "post-norm": {"order": post_norm},
    "post-norm, RMS of torch": {"order": post_norm, "norm": nn.RMSNorm},
    "no norm": {"norm": nn.Identity},
    "an order without norms": {"order": no_norm},
    "SwiGLU": {"feed": SwiGLU},
    "ReLU": {"phi": nn.ReLU, "d_ff": 24},
    "SiLU": {"phi": nn.SiLU},
    "no feed-forward": {"feed": NoFeed},
    "no feed-forward, post-norm": {"feed": NoFeed, "order": post_norm},
    "one block three times": {"N": 1, "core": Rope, "become": one_block},
    "one block in two places": {"become": same_block},
    "every part at once": {
        "h_kv": 2,
        "core": Rope,
        "norm": RMSNorm,
        "feed": SwiGLU,
        "order": post_norm,
        "pattern": SINKS,
        "positions": Learned(L, D),
    },
}


def made(name: str) -> GPT:
    """With random weights, biases and norms too, in single precision."""
    told = dict(VARIANTS[name])
    become: Callable[[GPT], GPT] = told.pop("become", lambda model: model)
    d, h, n = (told.pop(key, size) for key, size in (("d", D), ("h", H), ("N", N)))
    torch.manual_seed(len(name))
    model = become(GPT(VOCAB, d, h, n, **copy.deepcopy(told))).eval()
    for x in model.parameters():
        x.data += 0.3 * torch.randn_like(x)
    return model


@pytest.fixture(scope="module")
def v8() -> MiniRacer:
    return engine()


def tensor(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def rows(A: Any) -> Tensor:
    """Rows of 1, 2, … weights of each head as one square, (h, L, L)."""
    square = torch.zeros(len(A[0]), len(A), len(A), dtype=torch.float64)
    for i, heads in enumerate(A):
        square[:, i, : i + 1] = tensor(heads)
    return square


def all_of(found: dict[str, Any], n: int, name: str) -> Tensor:
    """What block n says under this name, a row for each token."""
    return tensor([trace["blocks"][n][name] for trace in found["traces"]])


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference as a share of the largest number."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).nan_to_num(1e9).item()


def blocks(model: GPT) -> list[Any]:
    """The blocks in the order in which a token passes them."""
    stack: Any = model.stack
    return [*stack.blocks] if hasattr(stack, "blocks") else stack.T * [stack.block]


@torch.no_grad()
def worst(found: dict[str, Any], model: GPT) -> float:
    """How far a run in the page is apart from the model in double precision, in logits and maps."""
    last = {block.attend: n for n, block in enumerate(blocks(model))}  # one may run several times
    with watched(model) as attentions:
        right = model(torch.tensor([TEXT]))[0]
        maps = {last[attend]: cast(Any, attend.seen).A[0] for attend in attentions.values()}
    differences = [apart(tensor([trace["logits"] for trace in found["traces"]]), right)]
    for n, A in maps.items():
        ours = rows([trace["blocks"][n]["A"] for trace in found["traces"]])
        differences.append(apart(ours, A))
    return max(differences)


@pytest.mark.parametrize("name", VARIANTS)
def test_it_is_torchs(v8: MiniRacer, name: str) -> None:
    model = made(name)
    found = run(v8, handed_over(model, "exact"), TEXT)
    assert worst(found, in_double(model)) < 1e-12
    for trace, lens in zip(found["traces"], found["lens"], strict=True):
        assert lens == {"logits": trace["logits"], "p": trace["p"]}
        assert len(trace["stream"]) == 2 * len(trace["blocks"]) + 1
        assert sum(trace["p"]) == pytest.approx(1)
    assert sum(found["early"]) == pytest.approx(1)
    assert found["early"] != found["lens"][-1]["p"]


@torch.no_grad()
def test_every_name_of_a_trace_holds_what_it_says(v8: MiniRacer) -> None:
    model = made("two heads of keys, rotary")
    found, exact = run(v8, handed_over(model, "exact"), TEXT), in_double(model)
    X, i = exact.embed(torch.tensor([TEXT])), torch.arange(L)
    assert apart(tensor([trace["stream"][0] for trace in found["traces"]]), X[0]) < 1e-12
    for n, block in enumerate(blocks(exact)):
        Y = block.norms[0](X)
        q, k, v = block.attend.W_qkv(Y).split(block.attend.widths, -1)
        q, k = (rotate(x.unflatten(-1, (-1, D // H)).transpose(1, 2), i) for x in (q, k))
        heads = block.attend.attended(Y, None, Where(causal()))[0]
        said = block.attend(Y)
        X = X + said
        hidden = nn.functional.gelu(block.feed.W_1(block.norms[1](X)))
        fed = block.feed.W_2(hidden)
        q, k, heads = (x.transpose(1, 2).flatten(2) for x in (q, k, heads))
        parts = {"q": q, "k": k, "v": v, "out": heads, "said": said, "hidden": hidden, "fed": fed}
        for name, x in parts.items():
            assert apart(all_of(found, n, name), x[0]) < 1e-12, name
        middle = tensor([trace["stream"][2 * n + 1] for trace in found["traces"]])
        assert apart(middle, X[0]) < 1e-12
        X = X + fed
    assert [trace["i"] for trace in found["traces"]] == list(range(L))
    assert [trace["token"] for trace in found["traces"]] == TEXT


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "one block in two places"])
def test_every_layer_keeps_as_much_as_the_librarys(v8: MiniRacer, name: str) -> None:
    """The library's cache has one place for a block that stands in two."""
    model = made(name)
    found, cache = run(v8, handed_over(model), TEXT), dict[Any, Any]()
    for token, trace in zip(TEXT, found["traces"], strict=True):
        with torch.no_grad():
            model(torch.tensor([[token]]), cache)
        ours = [block["kept"] for block in trace["blocks"]]
        assert sum(ours) == sum(kept.bytes for kept in cache.values())
        if len(cache) == len(ours):
            assert ours == [kept.bytes for kept in cache.values()]
    turned = any(isinstance(x, Turned) for x in model.modules())
    # the meta device can neither look into a table nor turn
    if not turned and not isinstance(model.embed.positions, Learned):
        assert sum(ours) == cache_bytes_of(model, L)


@pytest.mark.parametrize("numbers", ["int8", "half"])
@pytest.mark.parametrize("name", ["rotary, RMS", "Shaw", "T5", "SwiGLU", "one block three times"])
def test_packed_weights_arrive_as_python_unpacks_them(
    v8: MiniRacer, name: str, numbers: str
) -> None:
    model = made(name)
    found = run(v8, handed_over(model, numbers), TEXT)
    rounded = as_handed_over(model, numbers)
    for weight, x in rounded.state_dict().items():
        assert found["weights"][weight] == x.flatten().tolist(), weight
    assert worst(found, rounded) < 1e-12
    assert 1e-6 < worst(found, in_double(model)) < 0.3


def test_a_byte_for_a_weight_and_two_for_a_row() -> None:
    W = torch.tensor([[1.0, -0.3, 0.005], [0.0, 0.0, 0.0], [-3e-3, 2e-3, 0.0]])
    weights = {"W": W, "b": torch.tensor([0.1, -7.0]), "b of a head": torch.ones(2, 1, 2)}
    packed = pack(weights)
    assert len(base64.b64decode(packed["data"])) == (3 * 2 + 9) + 2 * 2 + (2 * 2 + 4)
    arrived = unpack(packed)
    assert {name: x.shape for name, x in arrived.items()} == {
        n: x.shape for n, x in weights.items()
    }
    off = (arrived["W"] - W).abs().amax(1) / W.abs().amax(1).clamp(min=1e-9)
    assert (off <= 0.5 / 127 + 2**-11).all() and (arrived["W"][1] == 0).all()
    assert arrived["b"].tolist() == weights["b"].half().tolist()
    for name, x in unpack(pack(weights, "exact")).items():
        assert x.equal(weights[name].double())


def test_weights_that_cannot_be_packed_are_refused() -> None:
    one = torch.ones(1, 1)
    with pytest.raises(ValueError, match="numbers = 'int4'; choose 'int8', 'half', 'exact'"):
        pack({"W": one}, "int4")
    with pytest.raises(ValueError, match="W"):
        pack({"W": one / 0})
    for wrong in ({"b": 1e5 * one[0]}, {"W": 1e8 * one}):
        with pytest.raises(ValueError, match=r'too large for half precision; .* numbers="exact"'):
            pack(wrong)
    packed = pack({"W": torch.ones(2, 3)})
    for shape in ([2, 4], [2, 2]):
        with pytest.raises(ValueError, match="data has 10 bytes, and its shapes"):
            unpack({**packed, "shapes": [["W", shape]]})


@pytest.mark.parametrize("name", ["rotary, RMS", "two heads of keys", "linear", "sinks"])
def test_heads_are_switched_off(v8: MiniRacer, name: str) -> None:
    model, off = made(name), [[1, 2], [2, 0], [2, 3]]
    found, exact = run(v8, handed_over(model, "exact"), TEXT, off), in_double(model)
    assert worst(found, exact) > 1e-3
    for n, attend in enumerate(block.attend for block in blocks(exact)):
        silent, join = [m for block, m in off if block == n], attend._side_by_side

        def without(heads: Tensor, X: Tensor, silent: Any = silent, join: Any = join) -> Tensor:
            return join(heads.index_fill(1, torch.tensor(silent, dtype=torch.long), 0.0), X)

        attend.join = without
    assert worst(found, exact) < 1e-12
    out = found["traces"][-1]["blocks"][1]["out"]
    assert out[8:12] == [0.0] * 4 and all(out[:8]) and all(out[12:])


def test_what_cannot_be_read_is_said(v8: MiniRacer) -> None:
    told = handed_over(made("learned positions"))
    cases: list[tuple[list[Any], list[list[int]], str]] = [
        ([VOCAB], [], f"Token {VOCAB} is none of 0 … {VOCAB - 1}"),
        ([0.5], [], "Token 0.5 is none"),
        ([*TEXT, 1], [], f"has learned {L} places, and all of them are used"),
        ([1], [[0, H]], f"no head {H} in a block 0"),
        ([1], [[N, 0]], f"no head 0 in a block {N}"),
    ]
    for tokens, off, words in cases:
        with pytest.raises(JSEvalException, match=words):
            run(v8, told, tokens, off)
    told["blocks"][0]["feed"]["name"] = "experts"
    with pytest.raises(JSEvalException, match=r"no “experts” among its feeds; it has none, gelu"):
        run(v8, told, [1])


class BestAlone(Dense):
    """A core of somebody's own: each query takes the value of its best key."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor]:
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        scores = (Q @ K.mT).masked_fill(~where.pattern.mask(Q.shape[2]), -torch.inf)
        A = nn.functional.one_hot(scores.argmax(-1), Q.shape[2]).to(V.dtype)
        return A @ V, A

    def in_page(self) -> dict[str, Any]:
        part = """({ tf, formulaOf }) => ({ h, h_kv, masks }) => {
          const may = formulaOf(masks[0]);
          return {
            begin: () => [],
            ask(rows, { q, k, v }, i) {
              rows.push({ k, v });
              const wide = q.length / h;
              const of = (x, m) => x.subarray(m * wide, (m + 1) * wide);
              const best = tf.range(h, (m) => {
                const score = (j) =>
                  may(i, j) ? tf.dot(of(q, m), of(rows[j].k, Math.floor((m * h_kv) / h))) : -1e9;
                return tf.best(tf.range(i + 1, score));
              });
              const A = best.map((j) => tf.range(i + 1, (n) => Number(n === j)));
              const found = (j, m) => [...of(rows[j].v, Math.floor((m * h_kv) / h))];
              return { q, k, out: Float64Array.from(best.flatMap(found)), A };
            },
            kept: (rows) => tf.sum(rows.map(({ k, v }) => k.length + v.length)),
          };
        }"""
        return {"name": "best alone", "part": part}


def test_a_part_of_ones_own_tells_of_itself(v8: MiniRacer) -> None:
    torch.manual_seed(1)
    places = Learned(L, D, std=1.0)  # without them a word that comes twice has two equal keys
    told: dict[str, Any] = {"positions": places, "h_kv": 2, "pattern": strided(stride=3)}
    model = GPT(VOCAB, D, H, 2, core=BestAlone, **told)
    found = run(v8, handed_over(model, "exact"), TEXT)
    assert worst(found, in_double(model)) < 1e-12
    assert found["traces"][-1]["blocks"][0]["kept"] == 2 * L * (D // 2) * 4


# --- what the page has no room for ----------------------------------------------------------------


def gpt(**told: Any) -> GPT:
    return GPT(VOCAB, D, H, 1, **told)


def in_every_layer() -> GPT:
    model = gpt()
    positions_in_every_layer(model.stack, lambda: Learned(L, D))
    return model


class Own(Dense):
    """Of somebody who has overridden nothing yet."""


def branches(i: Any, j: Any) -> Any:
    return j - i if i > j else 0


def steeper(i: Any, j: Any, *, m: int = 2) -> Any:
    return m * (j - i)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: gpt(core=Own), r"core is a Own, which the page does not have; it has Dense, Spar"),
        (lambda: gpt(core=xl(H, D // H)), "core is a XL, which the page does not have"),
        (lambda: gpt(core=lambda h, d_head: Performer(h, d_head)), "core is a Performer"),
        (lambda: gpt(core=lambda: LinearAttention(torch.exp)), "phi = .*; the page has `positive`"),
        (
            lambda: gpt(core=LinearAttention, pattern=WINDOW),
            "a LinearAttention with pattern = slid",
        ),
        (lambda: gpt(mix=AverageAttention, pattern=WINDOW), "keeps all rows"),
        (lambda: gpt(core=lambda: Bias(branches)), "no formula of i and j"),
        (lambda: gpt(core=lambda: Bias(steeper)), "parameters, m"),
        (lambda: gpt(core=lambda: Rope(4, axes=2)), "a Rope with axes = 2"),
        (lambda: gpt(pattern=full()), r"pattern = full\(\), whose formula does not show"),
        (lambda: gpt(pattern=causal() & per_head(*H * [WINDOW])), "whose pattern has no formula"),
        (lambda: gpt(join=OutputGate), "join is a OutputGate, which the page does not have"),
        (lambda: gpt(positions=lambda i: torch.zeros(len(i), D)), "positions is a function"),
        (lambda: gpt(norm=lambda d: nn.GroupNorm(1, d)), "block 0: norm is a GroupNorm"),
        (lambda: gpt(feed=nn.Identity), "block 0: feed is a Identity"),
        (lambda: gpt(phi=lambda: nn.GELU("tanh")), "feed is a network with GELU"),
        (lambda: gpt(order=HyperConnections, streams=2), "2 streams; a page runs a Stack of one"),
        (lambda: universal(gpt(), 3), r"make it with universal\(…, signal=None\)"),
        (in_every_layer, "block 0 is a PositionedBlock"),
        (lambda: gpt().half(), r"float16; give model.float\(\)"),
    ],
)
def test_what_the_page_does_not_have_is_refused(model: Callable[[], GPT], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        handed_over(model())


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match="model is a BERT; give a GPT"):
        handed_over(BERT(VOCAB, D, H, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="order = own, which the page does not have; it has pre"):

        def own(X: Tensor, F: Any, LN: Any) -> Tensor:
            return X + 2 * F(LN(X))

        handed_over(gpt(order=own))


# --- what these tests notice ----------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/explorers/shared/parts.js": [
        ("a mask off by one", "may[m % may.length](i, j))", "may[m % may.length](i, j + 1))",
         "RMS"),
        ("one mask for all heads", "may[m % may.length](i, j))", "may[0](i, j))", "pattern"),
        (
            "halves are turned, not pairs",
            "[a, b] = [2 * n, 2 * n + 1]",
            "[a, b] = [2 * n - m, 2 * n - m + speeds.length]",
            "rotary",
        ),
        ("heads of keys in turns", "const group = Math.floor((m * h_kv) / h); // whose",
         "const group = m % h_kv; // whose", "keys"),
        ("scores not divided by √d_head", "group * wide) / Math.sqrt(wide) +",
         "group * wide) +", "RMS"),
        ("RMS in the place of LayerNorm", "const mean = tf.mean(x);", "const mean = 0;", "learned"),
        ("ε beside the root", "x.length + eps);", "x.length) + eps;", "RMS"),
        ("a ring that is one row short", "length > last + first", "length >= last + first",
         "window"),
        ("sinks are forgotten", "rows.splice(first, 1)", "rows.splice(0, 1)", "sinks"),
        ("a bias that forgets its head", "of[m % of.length](i, j)", "of[0](i, j)", "ALiBi"),
        ("Shaw adds nothing to values", "(more ? more[c] : 0)", "0", "Shaw"),
        ("the note is turned, too", "turn(x.subarray(end - many, end), i, 1), end - many",
         "turn(x.subarray(end - wide, end - wide + many), i, 1), end - wide", "latents"),
        ("a note is kept twice", "(within ? 0 : v.length)", "v.length", "latents"),
        ("the gate of SwiGLU without its SiLU", '"W_1").map(silu);', '"W_1");', "SwiGLU"),
        ("post-norm without a skip", "norm(tf.plus(x, F(x)))", "norm(F(x))", "post"),
    ],
    "tfviz/explorers/shared/more_parts.js": [
        ("the delta rule does not take away", "(x[c] - beta[m] * held * key[c])", "x[c]", "delta"),
        ("linear keys of another head", "const key = k[group * wide + c];", "const key = k[c];",
         "linear"),
        ("an average that forgets", "(i * (before[n] ?? 0)", "((before[n] ?? 0)", "averages"),
    ],
    "tfviz/explorers/shared/alive.js": [
        ("no last norm", "const logits = product(last(row), table);",
         "const logits = product(row, table);", "RMS"),
        ("places that stand still", "return { i: i++,", "return { i,", "learned"),
    ],
    "tfviz/explorers/shared/numbers.js": [
        ("one scale for all rows", "scales[Math.floor(k / wide)]", "scales[0]", "RMS"),
        ("bytes without a sign", "new Int8Array(next", "new Uint8Array(next", "RMS"),
    ],
    "tfviz/stored/page_gpt.py": [
        ("layers that all keep their past", "if past.is_whole:", "if True:", "window"),
        ("the steps of T5 are forgotten", "buckets.tolist()", "[0]", "T5"),
    ],
}  # fmt: skip
"""The word that stands last is in the names of the variants that notice it."""
LINES = [
    (file, *line)
    for file, lines in BROKEN_LINES.items()
    for line in lines
    if file.endswith(".js")  # those of Python are for `scripts/mutants.py`
]


@pytest.mark.parametrize(("file", "what", "old", "new", "word"), LINES, ids=lambda x: x[:30])
def test_a_broken_line_is_noticed(file: str, what: str, old: str, new: str, word: str) -> None:
    """A variant comes out otherwise, or keeps another number of bytes."""
    name = file.rpartition("/")[2].removesuffix(".js")
    text = source(name)
    assert text.count(old) == 1, "give the mutant another line"
    broken = engine(**{name: text.replace(old, new)})
    for variant in (name for name in VARIANTS if word in name):
        model, cache = made(variant), dict[Any, Any]()
        for numbers in ("exact", "int8"):
            found = run(broken, handed_over(model, numbers), TEXT)
            if not worst(found, as_handed_over(model, numbers)) < 1e-6:
                return
        with torch.no_grad():
            model(torch.tensor([TEXT]), cache)
        ours = sum(block["kept"] for block in found["traces"][-1]["blocks"])
        if ours != sum(kept.bytes for kept in cache.values()):
            return
    pytest.fail(f"nothing has noticed: {what}")


def test_the_sizes_are_those_of_the_blocks() -> None:
    told = handed_over(made("two heads of keys"))
    assert (told["vocab"], told["d"], told["longest"], told["bytes"]) == (VOCAB, D, None, 4)
    assert [block["mixer"]["core"]["h_kv"] for block in told["blocks"]] == [2, 2, 2]
    assert handed_over(made("learned positions"))["longest"] == L
    assert handed_over(made("no norm").double())["bytes"] == 8
