"""Latent attention: notes are kept, heads are never made, positions have numbers of their own."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from laws import B, Case, H, Inputs, agree_with_gradients, it_resumes_to_the_last_bit, streamed
from mixers import Mixes
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, attention, patterns
from tfviz.basics.cache_cost import cache_bytes, cache_bytes_of
from tfviz.cores import Where, given
from tfviz.current import latent_attention as room
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.rope import Rope, rotate, rotation

D_C, D_R = 6, 4
Six = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
OPTIONS = room.mla(d_c=D_C, d_r=D_R)


def parts(L: int = 9, d_head: int = 8) -> Six:
    """Q, Z, C, R, W^UK and W^UV, in float64."""
    torch.manual_seed(0)
    sizes = ((2, H, L, d_head), (2, H, L, D_R), (2, 1, L, D_C), (2, 1, L, D_R))
    matrices = 2 * ((H, d_head, D_C),)
    Q, Z, C, R, W_uk, W_uv = (
        torch.randn(size, dtype=torch.float64, requires_grad=True) for size in (*sizes, *matrices)
    )
    return Q, Z, C, R, W_uk, W_uv


def layer(**options: Any) -> MultiHeadAttention:
    torch.manual_seed(0)
    told = room.mla(d_c=D_C, d_r=D_R, **options)
    return MultiHeadAttention(32, H, pattern=patterns.causal(), **told).double()


# --- two ways to the same numbers -----------------------------------------------------------------


def test_one_head_and_two_tokens_by_hand() -> None:
    """d_head = d_c = 1 and d_r = 0: notes 1 and 3 with W^UK = 2 are keys 2 and 6. A query ln 3 / 4
    scores them ln 3 / 2 and 3 ln 3 / 2, so that the second counts three times as much; the mean of
    the notes, 2.5, times W^UV = 10 is 25."""
    query = torch.full((1, 1, 2, 1), 0.25).double() * torch.tensor(3.0).double().log()
    notes = torch.tensor([1.0, 3.0]).double().view(1, 1, 2, 1)
    none = torch.ones(1, 1, 2, 0).double()
    up, value = (torch.full((1, 1, 1), x).double() for x in (2.0, 10.0))
    X = (query, none, notes, none, up, value)
    for out in (room.expanded_attention(*X)[0], room.absorbed_attention(*X)):
        torch.testing.assert_close(out[0, 0, :, 0], torch.tensor([25.0, 25.0]).double())


@pytest.mark.parametrize("pattern", [patterns.causal(), patterns.band(radius=2)])
def test_the_matrices_may_change_sides(pattern: patterns.Pattern) -> None:
    leaves = parts()
    wanted = room.expanded_attention(*leaves, pattern)[0]
    agree_with_gradients(room.absorbed_attention(*leaves, pattern), wanted, leaves)


def test_the_layer_is_what_the_equations_say() -> None:
    for d_q in (None, 5):
        attend, X = layer(d_q=d_q), torch.randn(2, 9, 32, dtype=torch.float64)
        made: Any = attend.project
        join: Any = attend.join
        note = X
        if d_q:
            note = X @ made.query_note[0].weight.mT
            note = note / (note.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        Q, Z = (note @ made.W_q.weight.mT).unflatten(-1, (H, -1)).transpose(1, 2).split((8, 4), -1)
        C, R = (X @ made.W_kv.weight.mT)[:, None].split((D_C, D_R), -1)
        C = C / (C.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        i = torch.arange(9)
        turned = Q, rotate(Z, i), C, rotate(R, i), made.W_uk, join.W_uv
        heads = room.expanded_attention(*turned, patterns.causal())[0]
        torch.testing.assert_close(attend(X), join.W_o(heads.transpose(1, 2).flatten(2)))


def test_positions_matter_only_by_their_distance() -> None:
    """And not at all without numbers that are turned."""
    Q, Z, C, R, W_uk, W_uv = parts()
    near, far = (
        room.absorbed_attention(Q, rotate(Z, i), C, rotate(R, i), W_uk, W_uv)
        for i in (torch.arange(9), torch.arange(50, 59))
    )
    torch.testing.assert_close(near, far)
    plain = MultiHeadAttention(32, H, **room.mla(d_c=D_C, d_r=0)).double()
    X = torch.randn(2, 9, 32, dtype=torch.float64)
    torch.testing.assert_close(plain(X.flip(1)), plain(X).flip(1))


def test_what_is_turned_cannot_be_absorbed() -> None:
    """Turned keys c W^UK R_j have a matrix between the query and W^UK that depends on the pair."""
    Q, _, C, _, W_uk, _ = parts()
    i = torch.arange(9)
    scores = rotate(Q, i) @ rotate(C @ W_uk.mT, i).mT
    absorbed = (rotate(Q, i) @ W_uk) @ C.mT
    assert (scores - absorbed).abs().max() > 1
    pair = Q[0, 0, 7] @ rotation(7, 8).mT @ rotation(2, 8) @ W_uk[0] @ C[0, 0, 2]
    torch.testing.assert_close(scores[0, 0, 7, 2], pair)


@torch.no_grad()
def test_it_is_that_of_transformers() -> None:
    """With queries from a note, and neighbouring numbers turned in pairs."""
    deepseek = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
    config = deepseek.DeepseekV3Config(
        hidden_size=32,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=5,
        kv_lora_rank=D_C,
        qk_nope_head_dim=8,
        qk_rope_head_dim=D_R,
        head_dim=D_R,
        v_head_dim=8,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    theirs = deepseek.DeepseekV3Attention(config, 0).eval().double()
    for weight in theirs.parameters():
        weight.copy_(torch.randn_like(weight) / 4)
    ours = layer(d_q=5)
    made: Any = ours.project
    join: Any = ours.join
    W_uk, W_uv = theirs.kv_b_proj.weight.unflatten(0, (H, 16)).split(8, 1)
    for mine, weight in (
        (made.query_note[0].weight, theirs.q_a_proj.weight),
        (made.query_note[1].weight, theirs.q_a_layernorm.weight),
        (made.W_q.weight, theirs.q_b_proj.weight),
        (made.W_kv.weight, theirs.kv_a_proj_with_mqa.weight),
        (made.norm.weight, theirs.kv_a_layernorm.weight),
        (made.W_uk, W_uk),
        (join.W_uv, W_uv),
        (join.W_o.weight, theirs.o_proj.weight),
    ):
        mine.copy_(weight)
    X = torch.randn(2, 9, 32, dtype=torch.float64)
    hands = deepseek.DeepseekV3RotaryEmbedding(config)(X, torch.arange(9)[None])
    ahead = torch.full((9, 9), -torch.inf).double().triu(1)[None, None]
    out = theirs(X, position_embeddings=hands, attention_mask=ahead)[0]
    torch.testing.assert_close(ours(X), out, atol=1e-6, rtol=1e-5)  # their angles are float32


# --- what is kept ---------------------------------------------------------------------------------


def test_a_note_and_a_key_are_kept_of_each_token() -> None:
    attend, cache = layer(), dict[Any, Any]()
    X = torch.randn(2, 12, 32, dtype=torch.float64)
    parts = streamed(attend, X, [5, 1, 6], cache)
    torch.testing.assert_close(parts, attend(X))
    state = torch.utils._pytree.tree_leaves(cache[attend].state)
    assert sum(x.numel() for x in state) == 2 * 12 * (D_C + D_R)
    model = GPT(11, 32, H, 3, **OPTIONS)
    assert cache_bytes_of(model, L=50) == cache_bytes(50, 3, 1, D_C + D_R, b=4) / 2


def test_a_file_goes_on() -> None:
    def gpt() -> GPT:
        torch.manual_seed(0)
        return GPT(11, 16, 2, 2, **OPTIONS).eval()

    it_resumes_to_the_last_bit(gpt, torch.randint(11, (2, 20)), 5)


def test_it_reads_another_sequence() -> None:
    """Whose keys are not turned."""
    attend = layer()
    attend.pattern = patterns.full()
    X, memory = (torch.randn(2, n, 32, dtype=torch.float64) for n in (3, 7))
    Q, K, V = attend.project(X, memory)
    heads = attention(Q, *(x.expand(-1, H, -1, -1) for x in (K, V)))[0]
    torch.testing.assert_close(attend(X, memory), attend.join(heads, X))
    torch.testing.assert_close(streamed_with(attend, X, memory), attend(X, memory))


def test_a_window_keeps_its_window() -> None:
    attend, cache = layer(), dict[Any, Any]()
    attend.pattern = patterns.sliding_window(lookback=2)
    X = torch.randn(2, 12, 32, dtype=torch.float64)
    torch.testing.assert_close(streamed(attend, X, [5, 1, 6], cache), attend(X))
    assert [x.shape[2] for x in cache[attend].state] == [3, 3]


def test_other_speeds_and_given_positions_turn_it() -> None:
    speeds, X = torch.tensor([0.5, 0.25]), torch.randn(2, 9, 32, dtype=torch.float64)
    slow, fast = (layer(rope=partial(Rope, speeds=n * speeds)) for n in (1, 2))
    wanted = fast(X)
    assert not torch.allclose(slow(X), wanted)
    with given(positions=2.0 * torch.arange(9)):
        torch.testing.assert_close(slow(X), wanted)


def streamed_with(attend: MultiHeadAttention, X: Tensor, memory: Tensor) -> Tensor:
    cache: dict[Any, Any] = {}
    return torch.cat([attend(x, memory, None, cache) for x in X.split(1, 1)], 1)


def test_a_model_of_it_learns() -> None:
    model = GPT(11, 16, 2, 2, **room.mla(d_c=D_C, d_r=D_R, d_q=5))
    logits = model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    logits.log_softmax(-1)[..., 2].sum().backward()
    learnt = [
        p
        for x in model.modules()
        if isinstance(x, room.Latents | room.LatentHeads)
        for p in x.parameters()
    ]
    assert len(learnt) == 2 * 8
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in learnt)


def test_bad_input_is_named() -> None:
    Q, K, V = drawn(9)
    core = room.LatentAttention(D_R)
    wide = "V has shape (2, 1, 9, 5), K (2, 1, 9, 10) … give V = K[..., :6]"
    refused(wide, core, Q, K, V[..., :5], Where())
    refused("d_r = 3 is odd … give an even d_r", room.LatentAttention, 3)
    ranges(lambda d_c: room.Latents(8, 2, 4, d_c=d_c, d_r=2), d_c=(3, 1))
    ranges(lambda d_q: room.Latents(8, 2, 4, d_c=2, d_r=2, d_q=d_q), d_q=(3, 1))
    refused("d_r = 3 is odd", GPT, 11, 16, 2, 1, **room.mla(d_c=2, d_r=3))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def drawn(L: int, h_kv: int = 1) -> Inputs:
    """One wide key for all heads, and values within it."""
    Q, K = (torch.randn(B, h, L, D_C + D_R, dtype=torch.float64) for h in (H, 1))
    return Q, K, K[..., :D_C].clone()


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Each row turned by its matrix."""
    one = torch.eye(D_C).double()
    turns = [torch.block_diag(one, rotation(i, D_R)) for i in range(Q.shape[2])]
    R = torch.stack(turns).to(Q) if turns else Q.new_zeros(0, D_C + D_R, D_C + D_R)
    Q, K = (torch.einsum("bhld,led->bhle", x, R) for x in (Q, K))
    K, V = (x.expand(-1, Q.shape[1], -1, -1) for x in (K, V))
    return attention(Q, K, V, mask)


CASE = Case(
    partial(room.LatentAttention, D_R),
    defined,
    inputs=drawn,
    options=OPTIONS,
    mixers={
        "with its notes": Mixes(
            lambda: MultiHeadAttention(8, 2, pattern=patterns.causal(), **room.mla(d_c=3, d_r=2))
        )
    },
    but={
        "values_of_another_width_store_no_scores": "values are the first numbers of the keys",
    },
    mutants=[
        ("a scale that counts the note", "(d_c + d_r) / (d_head + d_r)", "1.0"),
        (
            "notes that are turned, too",
            "X.split((X.shape[-1] - self.d_r, self.d_r), -1)",
            "X.tensor_split((X.shape[-1] - self.d_r - 2,), -1)",
        ),
        (
            "keys that begin anew after a cache",
            "self.turn_keys(K, where)",
            "self.turn_keys(K, Where())",
        ),
        ("values that are kept, too", "followed(K, K[..., :0]", "followed(K, V"),
        ("values of the new tokens alone", "K[..., :d_c] if K.shape[2] > V.shape[2] else V", "V"),
        ("a note without its norm", "self.norm(C), R", "C, R"),
        ("keys of another sequence that are turned", "if not where.crosses:", "if True:"),
    ],
)
