"""Compressed memory: queues, what each f_c keeps, both losses and what they must not reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, it_resumes_to_the_last_bit, streamed, work_grows_no_faster
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz.longer_context import compressive_transformer as room
from tfviz.longer_context.transformer_xl_recurrence import transformer_xl
from tfviz.models.use import attention_weights, generate

TEXT = torch.randint(11, (2, 40), generator=torch.Generator().manual_seed(3))
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "mean": lambda: room.mean_pool,
    "max": lambda: room.max_pool,
    "newest": lambda: room.newest,
    "most used": lambda: room.most_used,
    "conv": lambda: room.Conv(8, 2),
    "dilated": lambda: room.Conv(8, 2, dilated=True),
}


def model(name: str = "mean", m: int = 4, m_c: int = 3, c: int = 2) -> Any:
    torch.manual_seed(0)
    return room.compressive_gpt(11, 8, 2, 2, m=m, m_c=m_c, c=c, compress=FUNCTIONS[name]).double()


def read(gpt: nn.Module, t: Tensor, L: int) -> tuple[Tensor, dict[Any, Any]]:
    cache: dict[Any, Any] = {}
    return streamed(gpt, t, L, cache), cache


def queues(cache: dict[Any, Any]) -> list[room.Queues]:
    return [kept.state for kept in cache.values()]


def test_functions_by_hand() -> None:
    old, usage = torch.tensor([[[1.0, 0], [3, 8], [5, 2], [9, 4]]]), torch.tensor([[3.0, 1, 0, 2]])
    for f, wanted in {
        room.mean_pool: [[2, 4], [7, 3]], room.max_pool: [[3, 8], [9, 4]],
        room.newest: [[3, 8], [9, 4]], room.most_used: [[1, 0], [9, 4]],
    }.items():  # fmt: skip
        assert f(old, usage, 2)[0].tolist() == wanted
    conv: Any = room.Conv(2, 2)
    conv[0].weight.data = torch.eye(2)[..., None].expand(2, 2, 2) / 2
    conv[0].bias.data.zero_()
    assert conv(old)[0].tolist() == [[2, 4], [7, 3]]  # a mean is one of its convolutions


@pytest.mark.parametrize("name", FUNCTIONS)
def test_queues_stay_as_long_as_they_are(name: str) -> None:
    gpt = model(name)
    states = [queues(read(gpt, TEXT[:, : 4 * n], 4)[1])[0] for n in range(1, 8)]
    lengths = [[x.shape[1] for x in (q.rows, q.squeezed, q.left)] for q in states]
    assert lengths == [[4, 0, 0], [4, 2, 4], [4, 3, 4]] + 4 * [[4, 3, 4]]
    _, cache = read(gpt, TEXT[:, :13], 1)  # one by one: rows wait until there are c of them
    assert [q.rows.shape[1] for q in queues(cache)] == [5, 5]
    assert generate(gpt, TEXT, 5).shape == (2, 45)


def test_what_is_squeezed_is_what_left() -> None:
    first = queues(read(model(), TEXT[:, :8], 4)[1])[0]
    gpt = model()
    X = gpt.stack.blocks[0].norms[0](gpt.embed(TEXT))  # what the first attention was given
    torch.testing.assert_close(first.left, X[:, :4])
    torch.testing.assert_close(first.squeezed, room.mean_pool(X[:, :4], None, 2))
    last = queues(read(gpt, TEXT[:, :16], 4)[1])[0]
    torch.testing.assert_close(last.squeezed, room.mean_pool(X[:, 6:12], None, 2))  # 3 of 6


def test_usage_is_the_weight_that_memories_got() -> None:
    gpt = model("most used", m=8)
    attend, weights, cache = gpt.stack.blocks[0].attend, list[Tensor](), dict[Any, Any]()
    for segment in TEXT[:, :12].split(4, 1):
        weights.append(attention_of(gpt, segment, cache))
        gpt(segment, cache)
    wanted = weights[2][..., :8].sum((1, 2))
    wanted[:, :4] += weights[1][..., :4].sum((1, 2))
    q = cache[attend].state
    torch.testing.assert_close(torch.cat([q.left_usage, q.usage], 1)[:, :8], wanted)


def test_usage_is_read_beside_the_squeezed_rows_too() -> None:
    """Three squeezed rows stand before the four of the memory, and their weights are not its."""
    gpt = model("most used")
    attend, cache = gpt.stack.blocks[0].attend, dict[Any, Any]()
    streamed(gpt, TEXT[:, :16], 4, cache)
    assert [x.shape[1] for x in cache[attend].state[:2]] == [4, 3]
    A = attention_of(gpt, TEXT[:, 16:20], cache)
    streamed(gpt, TEXT[:, 16:20], 4, cache)
    q = cache[attend].state
    torch.testing.assert_close(q.left_usage, A[..., 3:7].sum((1, 2)))
    assert A.shape[-1] == 11 and not torch.allclose(q.left_usage, A[..., :4].sum((1, 2)))


def attention_of(gpt: Any, t: Tensor, cache: dict[Any, Any]) -> Tensor:
    return attention_weights(gpt, t, dict(cache))["stack.blocks.0.attend"]


def test_what_was_read_in_inference_mode_still_teaches_f_c() -> None:
    losses = []
    for mode in (torch.inference_mode, torch.no_grad):
        gpt = model("conv")
        with mode():
            _, cache = read(gpt, TEXT[:, :16], 4)
        loss = room.attention_reconstruction(cache)
        loss.backward()
        losses.append(loss)
        assert gpt.stack.blocks[0].attend.compress[0].weight.grad.any()
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("f", ["mean", "max", "newest", "most used"])
def test_c_1_is_transformer_xl_with_both_memories(f: str) -> None:
    long = transformer_xl(11, 8, 2, 2, m=8).double()
    gpt = model(f, m=5, m_c=3, c=1)
    gpt.load_state_dict(long.state_dict())
    torch.testing.assert_close(read(gpt, TEXT, 4)[0], read(long, TEXT, 4)[0])


def test_losses_are_zero_where_nothing_is_lost_and_teach_f_c_alone() -> None:
    same = TEXT[:, :1].expand(2, 12)
    for name in ("mean", "max", "newest"):
        gpt = model(name)
        q = queues(read(gpt, same, 4)[1])[:1]  # the first layer: all its memories are alike
        attend = gpt.stack.blocks[0].attend
        loss = room.attention_reconstruction({attend: read(gpt, same, 4)[1][attend]})
        assert loss < 1e-12 and q[0].left.shape[1] == 4
    gpt = model("conv")
    decode = nn.ModuleList(nn.ConvTranspose1d(8, 8, 2, 2).double() for _ in range(2))
    layers = [block.attend for block in gpt.stack.blocks]
    for make in (
        room.attention_reconstruction,
        lambda cache: room.auto_encoding(
            cache, lambda attend: lambda new: decode[layers.index(attend)](new.mT).mT
        ),
    ):
        gpt.zero_grad()
        out, cache = read(gpt, TEXT[:, :16], 4)
        make(cache).backward()
        taught = {n.split("attend.")[1].split(".")[0] for n, p in gpt.named_parameters()
                  if p.grad is not None and p.grad.abs().sum() > 0}  # fmt: skip
        assert taught == {"compress"}
        gpt.zero_grad()
        out.square().sum().backward()  # and the task does not teach it
        assert all(p.grad is None or p.grad.eq(0).all() for n, p in gpt.named_parameters()
                   if "compress" in n)  # fmt: skip
    assert room.attention_reconstruction(read(gpt, TEXT[:, :4], 4)[1]) == 0
    assert all(d.weight.grad is not None for d in decode)


def test_attention_reconstruction_by_the_formula() -> None:
    gpt = model("conv")
    _, cache = read(gpt, TEXT[:, :12], 4)
    total = torch.zeros(()).double()
    for attend, kept in cache.items():
        q, (W_q, W_k, W_v) = kept.state, attend.W_qkv.weight.split(8)
        b_q, b_k, b_v = attend.W_qkv.bias.split(8)

        def attn(rows: Tensor, q: Any = q, W: Any = (W_q, W_k, W_v, b_q, b_k, b_v)) -> Tensor:
            parts = []
            for n in (0, 1):
                s = slice(4 * n, 4 * n + 4)
                Q, K, V = (
                    (x @ W[a][s].T + W[a + 3][s]) for a, x in enumerate((q.asked, rows, rows))
                )
                parts.append((Q @ K.mT / 2).softmax(-1) @ V)
            return torch.cat(parts, -1)

        apart = (attn(q.left) - attn(attend.compress(q.left))).square().sum((1, 2)).sqrt()
        total = total + apart.mean()
    torch.testing.assert_close(room.attention_reconstruction(cache), total)


def test_saved_and_resumed_to_the_last_bit() -> None:
    it_resumes_to_the_last_bit(lambda: model("conv"), TEXT, 4)


def test_range_and_growth() -> None:
    assert room.temporal_range(3, 4, 5, 2) == 42
    attend = room.Compressive(8, 1, m=32, m_c=32, c=4, compress=room.mean_pool)
    stream = partial(streamed, attend, sizes=32)
    work_grows_no_faster(
        lambda L: stream, 1.1, leaves=lambda L: [(1, L, 8)], work=(512, 2048), memory=(1024, 4096)
    )


def test_errors_name_the_argument() -> None:
    ranges(model, m=(4, 0), m_c=(3, 0), c=(2, 1))
    conv = room.Conv(8, 2)
    refused("c = 3 and 0 rows, but … made for groups of 2", model, "conv", c=3)
    refused("c = 4 and 8 rows", conv, torch.zeros(1, 8, 8), None, 4)
    refused("c = 2 and 7 rows", conv, torch.zeros(1, 7, 8))
    ranges(partial(room.Conv, 8), c=(2, 1))
    gpt, cache = model(), dict[Any, Any]()
    streamed(gpt, TEXT, 4, cache)
    refused("the cache is of 2 texts, now there are 1", gpt, TEXT[:1], cache)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "usage that is read from the squeezed rows' columns",
            "A[..., n : n + rows.shape[1]]",
            "A[..., : rows.shape[1]]",
        ),
        (
            "queries of the compression loss that teach the model",
            "            p.requires_grad_(False)\n",
            "            p.requires_grad_(True)\n",
        ),
        (
            "rows that leave before a group is full",
            "// self.c * self.c",
            "",
        ),
    ],
)
