"""Gates: by hand, in loops, their limits, torch's GRU cell; the stack with its memory; rewards."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import laws
import pytest
import torch
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.beyond_text import gtrxl as room
from tfviz.beyond_text.gtrxl import GATES, gated, gated_transformer_xl, gru_gate, passed, reordered
from tfviz.longer_context.transformer_xl_recurrence import Recurrent
from tfviz.models.blocks import Block, Stack
from tfviz.patterns import causal
from tfviz_lab.beyond_text import gated_policy as lab

close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)
D = 5
TEXT = torch.randint(11, (2, 20), generator=torch.Generator().manual_seed(3))
LN_3 = math.log(3)
"""σ(ln 3) = 3/4, σ(−ln 3) = 1/4, tanh(ln 3 / 2) = 1/2."""


def drawn(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def weights(gate: str, b: float | None = None, d: int = D) -> dict[str, Any]:
    made = {
        name: drawn(*count, d, d, seed=n + 1)
        for n, (name, count) in enumerate(GATES[gate].matrices.items())
    }
    return made if GATES[gate].b is None else made | {"b": 0.7 if b is None else b}


# --- gates ----------------------------------------------------------------------------------------


def test_each_gate_by_hand() -> None:
    """Rows of one number: x = 8, y = ln 3 / 2, so that tanh(y) = 1/2; b = ln 3."""
    x, y = torch.tensor([[8.0], [LN_3 / 2]], dtype=torch.float64)
    one, zero = torch.ones(1, 1).double(), torch.zeros(1, 1).double()
    half = y
    close(room.input_gate(x, y, zero), 4 + half)
    close(room.input_gate(2 * half, y, one), 0.75 * 2 * half + half)
    close(room.output_gate(x, y, zero, LN_3), 8 + half / 4)
    close(room.output_gate(2 * half, y, one, 2 * LN_3), 2 * half + half / 4)
    close(room.highway_gate(x, y, zero, LN_3), 6 + half / 4)
    close(room.highway_gate(2 * half, y, one, 0.0), 0.75 * 2 * half + half / 4)
    close(room.sigtanh_gate(x, y, zero, one, LN_3), torch.tensor([8.125]).double())
    close(room.sigtanh_gate(x, 2 * half, one, one / 2, 0.0), torch.tensor([8.375]).double())


def test_the_gru_gate_by_hand() -> None:
    x, y = torch.tensor([[8.0], [LN_3 / 2]], dtype=torch.float64)
    W, U = torch.zeros(2, 3, 1, 1).double()
    close(gru_gate(x, y, W, U, LN_3), torch.tensor([6.0]).double())  # z = 1/4, H = 0
    W[2] = 1.0  # H = 1/2
    close(gru_gate(x, y, W, U, LN_3), torch.tensor([6.125]).double())
    W[1] = 2.0  # z = σ(2y − ln 3) = 1/2
    close(gru_gate(x, y, W, U, LN_3), torch.tensor([4.25]).double())
    W[1:], U[2] = 0.0, 1.0  # r = 1/2, and H = tanh(x / 2) = 1/2 at x = ln 3
    close(gru_gate(2 * y, y, W, U, LN_3), 1.5 * y + 0.125)
    W[0] = 2.0  # r = σ(ln 3) = 3/4 at y = ln 3 / 2; x = 2 ln 3 / 3
    close(gru_gate(4 * y / 3, y, W, U, LN_3), y + 0.125)


def in_loops(gate: str, x: list[float], y: list[float], w: dict[str, Any]) -> list[float]:
    """One number at a time."""
    sigma = lambda a: 1 / (1 + math.exp(-a))  # noqa: E731
    times = lambda v, M: [sum(v[k] * M[k][c] for k in range(D)) for c in range(D)]  # noqa: E731
    W, U = (w[name].tolist() if name in w else [] for name in "WU")
    b, n = w.get("b", 0.0), range(D)
    if gate == "input":
        return [sigma(a) * x[c] + y[c] for c, a in enumerate(times(x, W))]
    if gate == "output":
        return [x[c] + sigma(a - b) * y[c] for c, a in enumerate(times(x, W))]
    if gate == "highway":
        return [sigma(a + b) * x[c] + sigma(-a - b) * y[c] for c, a in enumerate(times(x, W))]
    if gate == "sigtanh":
        left, right = times(y, W), times(y, U)
        return [x[c] + sigma(left[c] - b) * math.tanh(right[c]) for c in n]
    r = [sigma(p + q) for p, q in zip(times(y, W[0]), times(x, U[0]), strict=True)]
    z = [sigma(p + q - b) for p, q in zip(times(y, W[1]), times(x, U[1]), strict=True)]
    reset = times([r[c] * x[c] for c in n], U[2])
    H = [math.tanh(p + q) for p, q in zip(times(y, W[2]), reset, strict=True)]
    return [(1 - z[c]) * x[c] + z[c] * H[c] for c in n]


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_in_loops(gate: str) -> None:
    X, Y = drawn(2, 4, D, seed=8), drawn(2, 4, D, seed=9)
    w = weights(gate)
    wanted = [[in_loops(gate, x.tolist(), y.tolist(), w) for x, y in zip(*both, strict=True)]
              for both in zip(X, Y, strict=True)]  # fmt: skip
    close(GATES[gate].joined(X, Y, **w), torch.tensor(wanted, dtype=torch.float64))


def test_a_large_bias_is_the_identity_and_a_very_negative_one_the_other_end() -> None:
    X, Y = drawn(4, D, seed=8), drawn(4, D, seed=9)
    for gate in ("output", "highway", "sigtanh", "gru"):
        close(GATES[gate].joined(X, Y, **weights(gate, 80.0)), X)
    close(room.output_gate(X, Y, **weights("output", -80.0)), X + Y)
    close(room.highway_gate(X, Y, **weights("highway", -80.0)), Y)
    w = weights("sigtanh", -80.0)
    close(room.sigtanh_gate(X, Y, **w), X + (Y @ w["U"]).tanh())
    w = weights("gru", -80.0)
    r = (Y @ w["W"][0] + X @ w["U"][0]).sigmoid()
    close(gru_gate(X, Y, **w), (Y @ w["W"][2] + (r * X) @ w["U"][2]).tanh())


def test_where_matrices_say_nothing_a_gru_gate_passes_its_share() -> None:
    X, zero = drawn(3, D), torch.zeros(3, D, D).double()
    for b in (-1.0, 0.0, 2.0, 6.0):
        close(gru_gate(X, torch.zeros_like(X), zero, zero, b), passed(b) * X)
    assert passed(2.0) == pytest.approx(1 - 0.1192, abs=1e-4)
    ranges(passed, b=(2.0,))


def torch_s(W: Tensor, U: Tensor, b: float) -> nn.GRUCell:
    """A GRU cell with our matrices. Its z weighs the old state, ours the new one."""
    cell = nn.GRUCell(D, D).double()
    signs = torch.tensor([1.0, -1.0, 1.0]).double()[:, None, None]
    cell.weight_ih.data = (signs * W.mT).flatten(0, 1)
    cell.weight_hh.data = (signs * U.mT).flatten(0, 1)
    cell.bias_hh.data.zero_()
    cell.bias_ih.data = torch.tensor([0.0, b, 0.0]).double().repeat_interleave(D)
    return cell


def test_torchs_gru_cell_resets_after_its_matrix_and_we_before() -> None:
    X, Y = drawn(4, D, seed=8), drawn(4, D, seed=9)
    W, U = drawn(3, D, D, seed=1), drawn(3, D, D, seed=2)
    assert not torch.allclose(torch_s(W, U, 2.0)(Y, X), gru_gate(X, Y, W, U, 2.0), atol=1e-2)
    U[2] = torch.diag(drawn(D, seed=4))  # with a diagonal one the two orders are the same
    close(torch_s(W, U, 2.0)(Y, X), gru_gate(X, Y, W, U, 2.0))


def test_parity_with_x_transformers_which_has_no_bias_of_its_own() -> None:
    package = pytest.importorskip("x_transformers")

    X, Y = drawn(2, 4, D, seed=8), drawn(2, 4, D, seed=9)
    W, U = drawn(3, D, D, seed=1), drawn(3, D, D, seed=2)
    U[2] = torch.diag(drawn(D, seed=4))
    theirs = package.x_transformers.GRUGating(D).double()
    start = theirs.gru.bias_ih.detach()
    assert abs(start.mean()) < 0.3 and start.max() < 2  # it does not begin near the identity
    theirs.gru = torch_s(W, U, 2.0)
    close(theirs(Y, X), gru_gate(X, Y, W, U, 2.0))


# --- orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_joins_the_stream_with_the_relu_of_what_the_sublayer_finds(gate: str) -> None:
    torch.manual_seed(0)
    order: Any = gated(gate)(D).double()
    X, F, LN = drawn(2, 4, D, seed=8), lambda X: X - 1, lambda X: 3 * X
    Y = (3 * X - 1).clamp(min=0)
    close(order(X, F, LN), GATES[gate].joined(X, Y, **order.weights))
    close(reordered(X, F, LN), X + Y)
    order(X, F, LN).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in order.parameters())


def test_what_a_gate_begins_with() -> None:
    for gate, kind in GATES.items():
        order = gated(gate)(64)
        for name, matrix in order.weights.items():
            if name == "b":
                assert kind.b is not None
                close(matrix, torch.full((64,), kind.b))
            else:
                assert matrix.shape == (*kind.matrices[name], 64, 64)
                assert matrix.std().item() == pytest.approx(64**-0.5, rel=0.1)
    assert gated("gru", 0.0)(3).weights["b"].tolist() == [0, 0, 0]
    assert [GATES[gate].b for gate in GATES] == [None, 1, 1, 1, 2]


def test_what_gates_cost() -> None:
    """Two gates a block: 12 d² + 2 d weights for the GRU's, as many as the block has besides."""
    d, plain = 32, sum(p.numel() for p in Block(32, 4).parameters())
    more = {
        gate: sum(p.numel() for p in Block(d, 4, gated(gate)).parameters()) - plain
        for gate in GATES
    }
    assert more["gru"] == 12 * d**2 + 2 * d
    assert more["input"] == 2 * d**2 and more["sigtanh"] == 4 * d**2 + 2 * d
    assert more["output"] == more["highway"] == 2 * d**2 + 2 * d
    assert abs(plain - 12 * d**2) < 14 * d


def moved(order: Any, N: int = 12, d: int = 64) -> tuple[float, float]:
    """‖X_N − X_0‖/‖X_0‖ of N blocks before training, and the cosine; means over seeds."""
    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        stack = Stack(N, d, 4, order, pattern=causal(), phi=nn.ReLU)
        X = Y = torch.randn(2, 12, d)
        with torch.no_grad():
            for block in stack.blocks:
                Y = block(Y)
        cosine = torch.cosine_similarity(X, Y, dim=-1).mean()
        found.append([float((Y - X).norm() / X.norm()), float(cosine)])
    return tuple(torch.tensor(found).mean(0).tolist())


def test_at_b_2_the_start_is_not_near_the_identity() -> None:
    distance, cosine = moved(gated("gru"))
    assert distance > 0.9 and 0.4 < cosine < 0.85
    assert 0.2 < moved(gated("gru"), N=1)[0] < 0.5
    assert moved(gated("gru", 6.0))[0] < 0.2 and moved(gated("gru", 0.0))[1] < 0.2
    assert moved(gated("sigtanh"))[0] < 0.3  # nearer than the GRU gate's


def test_a_stack_has_a_gate_for_each_sublayer() -> None:
    stack = Stack(2, 8, 2, gated())
    names = [name for name, _ in stack.named_parameters() if name.endswith("weights.b")]
    assert names == [f"blocks.{n}.orders.{k}.weights.b" for n in (0, 1) for k in (0, 1)]


# --- with the memory ------------------------------------------------------------------------------


def model(gate: str = "gru", m: int = 4, **more: Any) -> Any:
    torch.manual_seed(0)
    return gated_transformer_xl(11, 16, 2, 2, m, gate=gate, **more).double()


@pytest.mark.parametrize("gate", GATES)
def test_a_memory_of_everything_is_the_whole_text(gate: str) -> None:
    whole = model(gate, 50)
    assert all(isinstance(block.attend, Recurrent) for block in whole.stack.blocks)
    for sizes in ([5, 1, 7, 7], [1] * 20):
        torch.testing.assert_close(laws.streamed(whole, TEXT, sizes), whole(TEXT))
    nothing = model(gate, 0)
    parts = torch.cat([nothing(s) for s in TEXT.split(5, 1)], 1)
    torch.testing.assert_close(laws.streamed(nothing, TEXT, [5] * 4), parts)
    assert not torch.allclose(laws.streamed(model(gate, 4), TEXT, 5), parts)


def test_it_is_causal() -> None:
    gpt, later = model(), TEXT.clone()
    later[:, 12:] = (later[:, 12:] + 1) % 11
    before, after = gpt(TEXT), gpt(later)
    assert before[:, :12].equal(after[:, :12]) and not torch.allclose(before[:, 12:], after[:, 12:])


def test_state_saved_and_resumed_to_the_last_bit() -> None:
    laws.it_resumes_to_the_last_bit(lambda: model(), TEXT, 5)


def test_it_trains_and_writes() -> None:
    torch.manual_seed(0)
    laws.it_learns_to_count(gated_transformer_xl(11, 32, 2, 2, 4), begun=5, written=30)


def test_bad_input_is_named() -> None:
    X, W = torch.zeros(2, D), torch.zeros(3, D, D)
    refused("gate = 'lstm' is no gate; choose one of input, output", gated, "lstm")
    refused("b = 1.0, but the input gate has no bias; leave", gated, "input", 1.0)
    ranges(partial(gated, "gru"), b=(2.0,))
    ranges(gated("gru"), d=(3, 1))
    refused("Y has shape (1, 5), X has (2, 5)", gru_gate, X, X[:1], W, W, 0.0)
    refused("W has shape (5, 5) … (3, 5, 5)", gru_gate, X, X, W[0], W, 0.0)
    refused("U has shape (3, 5, 5) … (5, 5)", room.sigtanh_gate, X, X, W[0], W, 0.0)
    for gate in ("input", "output", "highway"):
        w = weights(gate) | {"W": torch.zeros(4, 4)}
        refused("W has shape (4, 4) … (5, 5)", GATES[gate].joined, X, X, **w)
    of_no_kind("order is one module for all", Block, 8, 2, gated()(8))


# --- the experiment -------------------------------------------------------------------------------


def test_the_door_asks_for_the_cue_and_nothing_else_tells_it() -> None:
    seen, right = lab.episodes(200, torch.Generator().manual_seed(0))
    assert (seen[:, -1] == lab.DOOR).all() and right[:, -1].equal(seen[:, 0] - lab.ACTIONS)
    assert seen[:, 1:-1].equal(right[:, 1:-1]) and right[:, 0].equal(right[:, -1])
    assert seen[:, 1:-1].max() < lab.ACTIONS <= seen[:, 0].min()


def test_rewarded_actions_become_more_likely() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.zeros(64, 8, 4, requires_grad=True)
    right = torch.randint(4, (64, 8), generator=rng)
    loss, reward = lab.reinforced(logits.log_softmax(-1), right, rng)
    loss.backward()
    assert logits.grad is not None
    of_right = logits.grad.gather(-1, right[..., None])[..., 0]
    assert (of_right[reward == 1] < 0).all() and 0.1 < reward.mean() < 0.4
    assert (of_right[reward == 0] < 0).all()  # what was tried in vain gives its share to others


def test_a_policy_without_memory_cannot_know_the_cue() -> None:
    gpt = gated_transformer_xl(lab.VOCAB, 16, 2, 1, 0).eval()
    seen, _ = lab.episodes(4, torch.Generator().manual_seed(0))
    other = seen.clone()
    other[:, 0] = lab.ACTIONS + (seen[:, 0] + 1) % lab.ACTIONS
    assert lab.policy(gpt, seen)[:, -1].equal(lab.policy(gpt, other)[:, -1])
    heard = gated_transformer_xl(lab.VOCAB, 16, 2, 1, lab.SEGMENT)
    assert not lab.policy(heard, seen)[:, -1].equal(lab.policy(heard, other)[:, -1])


CASE = Case(
    mutants=[
        ("a reset after the matrix", "(r * X) @ U[2]", "r * (X @ U[2])"),
        ("a bias that opens the GRU gate", "X @ U[1] - b)", "X @ U[1] + b)"),
        ("a GRU gate that weighs the stream with z", "(1 - z) * X + z * H", "z * X + (1 - z) * H"),
        ("an answer without its ReLU", "(X, F(LN(X)).relu())", "(X, F(LN(X)))"),
        ("TrXL-I without its ReLU", "X + F(LN(X)).relu()", "X + F(LN(X))"),
        ("an output gate that reads the answer", "X + (X @ W - b)", "X + (Y @ W - b)"),
        ("a SigTanh gate without tanh", "(Y @ U).tanh()", "(Y @ U)"),
        ("a highway whose bias closes it to the stream", "(X @ W + b)", "(X @ W - b)"),
        ("a gate that begins elsewhere", 'else _arguments.real("b", b)', "else kind.b"),
    ],
)
