"""The Vision Transformer: patches by hand, what their order means, the code of others."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.beyond_text import vit_patches as vit
from tfviz.beyond_text.vit_patches import ViT

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
D, HEADS, CLASSES = 8, 2, 3


def made(**told: Any) -> ViT:
    """For images of 2 channels and 6 × 4 pixels in patches of 2 × 2; nothing in it is zero."""
    model = ViT(6, 4, 2, CLASSES, D, HEADS, 2, channels=2, **told).double()
    for x in model.parameters():
        x.data = torch.randn_like(x)
    return model


def drawn(b: int = 3) -> Tensor:
    return torch.randn(b, 2, 6, 4, dtype=torch.float64)


# --- by hand --------------------------------------------------------------------------------------


def test_an_image_of_2_x_4_pixels_by_hand() -> None:
    image = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]).view(1, 1, 2, 4)
    assert vit.patches(image, 2).tolist() == [[[1, 2, 5, 6], [3, 4, 7, 8]]]
    assert vit.patches(image, 1)[0, :, 0].tolist() == [*range(1, 9)]
    both = torch.cat([image, 10 * image], 1)  # channel after channel
    assert vit.patches(both, 2)[0, 1].tolist() == [3, 4, 7, 8, 30, 40, 70, 80]
    assert vit.rearranged(image, 2, torch.tensor([1, 0]))[0, 0].tolist() == [
        [3, 4, 1, 2],
        [7, 8, 5, 6],
    ]


def test_patches_are_what_the_indices_say() -> None:
    images = drawn()
    rows = vit.patches(images, 2)
    for m in range(6):
        y, x = 2 * (m // 2), 2 * (m % 2)
        close(rows[:, m], images[:, :, y : y + 2, x : x + 2].flatten(1))
    close(rows.mT, F.unfold(images, 2, stride=2))


@pytest.mark.parametrize("P", [1, 2])
def test_nothing_is_lost(P: int) -> None:
    images = drawn()
    close(vit.images_of(vit.patches(images, P), 6, 4, P), images)


def test_the_lengths_of_the_paper() -> None:
    assert [vit.length(224, 224, P) - 1 for P in (16, 14, 32, 1)] == [196, 256, 49, 50176]
    assert vit.length(224, 224, 16) == 197


# --- the model ------------------------------------------------------------------------------------


def test_the_embedding_is_a_convolution() -> None:
    model, images = made(), drawn()
    kernel = model.embed.weight.view(D, 2, 2, 2)
    found = F.conv2d(images, kernel, model.embed.bias, stride=2).flatten(2).mT
    assert model.positions is not None
    close(model.tokens(images)[:, 1:] - model.positions.P[1:], found)
    close(model.tokens(images)[:, 0], (model.token + model.positions.P[0]).expand(3, D))


def test_the_answer_is_read_from_the_class_token_after_the_norm() -> None:
    model, images = made(), drawn()
    X = model.tokens(images)
    for block in model.stack.blocks:
        X = block(X)
    assert isinstance(model.stack.norm, nn.LayerNorm)
    close(model(images), model.classify(model.stack.norm(X[:, 0])))


def test_without_positions_the_order_of_the_patches_means_nothing() -> None:
    images, order = drawn(), torch.tensor([3, 0, 5, 1, 4, 2])
    shuffled = vit.rearranged(images, 2, order)
    blind, sighted = made(positions=False), made()
    close(blind(shuffled), blind(images))
    assert (sighted(shuffled) - sighted(images)).abs().max() > 0.01


def test_one_shuffle_for_all_is_a_shuffle_of_the_positions() -> None:
    """Why a fixed order does no harm to training: the table may learn any order as well."""
    model, images, order = made(), drawn(), torch.tensor([3, 0, 5, 1, 4, 2])
    wanted = model(images)
    assert model.positions is not None
    table = model.positions.P.data
    model.positions.P.data = torch.cat([table[:1], table[1:][order]])
    close(model(vit.rearranged(images, 2, order)), wanted)


def test_what_begins_at_zero() -> None:
    model = ViT(6, 4, 2, CLASSES, 64, HEADS, 1)
    assert not model.token.any() and not model(torch.randn(2, 1, 6, 4)).any()
    assert model.positions is not None
    assert model.positions.P.std().item() == pytest.approx(0.02, rel=0.2)


def test_the_class_token_looks_at_the_patches_and_at_itself() -> None:
    model, images = made(), drawn()
    seen = vit.seen_by_class(model, images)
    assert seen.shape == (3, 2, HEADS, 3, 2)
    first: Any = model.stack.blocks[0]
    X = first.norms[0](model.tokens(images))
    Q, K, _ = first.attend.project(X)
    A = (Q @ K.mT / (D // HEADS) ** 0.5).softmax(-1)
    close(seen[:, 0], A[:, :, 0, 1:].unflatten(-1, (3, 2)))


def test_a_core_and_another_norm_go_to_the_stack() -> None:
    block: Any = made(d_ff=5).stack.blocks[0]
    assert block.feed.W_1.out_features == 5


# --- another resolution ---------------------------------------------------------------------------


def test_positions_of_a_larger_grid_by_hand() -> None:
    """Corner on corner: between 0 and 6 come 2 and 4; the class token's row stays."""
    table = torch.tensor([9.0, 0.0, 6.0, 12.0, 18.0])[:, None]
    wide = vit.resized(table, (2, 2), (2, 4))[:, 0]
    assert wide.tolist() == [9, 0, 2, 4, 6, 12, 14, 16, 18]
    close(vit.resized(table, (2, 2), (2, 2)), table)


def test_it_resizes_as_the_authors_code_does() -> None:
    zoom = pytest.importorskip("scipy.ndimage").zoom
    table = torch.randn(1 + 12, 5, dtype=torch.float64)
    wanted = zoom(table[1:].view(4, 3, 5).numpy(), (7 / 4, 8 / 3, 1), order=1)
    close(vit.resized(table, (4, 3), (7, 8))[1:], torch.from_numpy(wanted).flatten(0, 1))


# --- the code of others ---------------------------------------------------------------------------


def test_parity_with_hugging_face() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=D,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=16,
        image_size=(6, 4),
        patch_size=2,
        num_channels=2,
        num_labels=CLASSES,
        layer_norm_eps=1e-5,
        attn_implementation="eager",
    )
    theirs = transformers.ViTForImageClassification(config).double().eval()
    for x in theirs.parameters():
        x.data = torch.randn_like(x)
    ours, weights = made(d_ff=16), theirs.state_dict()
    state = {
        "token": weights["vit.embeddings.cls_token"].view(D),
        "positions.P": weights["vit.embeddings.position_embeddings"][0],
        "embed.weight": weights["vit.embeddings.patch_embeddings.projection.weight"].flatten(1),
        "embed.bias": weights["vit.embeddings.patch_embeddings.projection.bias"],
    }
    blocks = theirs.vit.layers if hasattr(theirs.vit, "layers") else theirs.vit.encoder.layer
    modules = {"classify": theirs.classifier, "stack.norm": theirs.vit.layernorm}
    for n, block in enumerate(blocks):
        parts = dict(block.named_modules())
        named = {name.rsplit(".", 1)[-1]: x for name, x in parts.items()}
        linear = [x for x in block.modules() if isinstance(x, nn.Linear)]
        query, key, value, out, up, down = linear
        here = f"stack.blocks.{n}"
        for kind in ("weight", "bias"):
            three = [getattr(x, kind).data for x in (query, key, value)]
            state[f"{here}.attend.W_qkv.{kind}"] = torch.cat(three)
        modules |= {
            f"{here}.attend.W_o": out,
            f"{here}.feed.W_1": up,
            f"{here}.feed.W_2": down,
            f"{here}.norms.0": named["layernorm_before"],
            f"{here}.norms.1": named["layernorm_after"],
        }
    for name, module in modules.items():
        state |= {f"{name}.{kind}": x for kind, x in module.state_dict().items()}
    ours.load_state_dict(state)
    images = drawn()
    near = partial(torch.testing.assert_close, atol=2e-6, rtol=1e-5)  # their softmax is in float32
    near(ours(images), theirs(images).logits)
    their_maps = theirs(images, output_attentions=True).attentions
    for n, A in enumerate(their_maps):
        near(vit.seen_by_class(ours, images)[:, n].flatten(-2), A[:, :, 0, 1:])


def test_parity_with_labml_by_its_formula() -> None:
    """labml_nn.transformers.vit: a convolution, the class token in front, positions, layers, a norm
    of the first token, and a head of two layers with ReLU between them."""
    model, images = made(), drawn()
    head = nn.Sequential(nn.Linear(D, 7), nn.ReLU(), nn.Linear(7, CLASSES)).double()
    conv = nn.Conv2d(2, D, 2, stride=2).double()
    conv.weight.data = model.embed.weight.data.view(D, 2, 2, 2)
    conv.bias.data = model.embed.bias.data  # type: ignore[union-attr]
    x = conv(images).permute(2, 3, 0, 1).reshape(6, 3, D)  # patches first, as labml has them
    x = torch.cat([model.token.expand(1, 3, D), x])
    assert model.positions is not None
    x = (x + model.positions.P[: len(x), None]).transpose(0, 1)
    for block in model.stack.blocks:
        x = block(x)
    wanted = head(model.stack.norm(x[:, 0]))
    model.classify = head  # type: ignore[assignment]
    close(model(images), wanted)


def test_bad_input_is_named() -> None:
    images = drawn()
    refused("P = 4 does not divide … 6 × 4 pixels … pad", vit.patches, images, 4)
    refused("images has shape (2, 6, 4) … images[None]", vit.patches, images[0], 2)
    ranges(vit.grid, height=(6, 1), width=(4, 1), P=(1, 1))
    refused(
        "rows has shape (3, 6, 8) … (batch, 4, channels",
        vit.images_of,
        vit.patches(images, 2),
        4,
        4,
        2,
    )
    order = torch.tensor([0, 1, 2, 3, 4, 4])
    refused("order = [0, 1, 2, 3, 4, 4] … randperm(6)", vit.rearranged, images, 2, order)
    of_no_kind("order is torch.float32", vit.rearranged, images, 2, order.float())
    refused(
        "table has 5 rows … 3 × 2 patches … need 7", vit.resized, torch.zeros(5, 2), (3, 2), (4, 4)
    )
    refused("images has shape (3, 2, 4, 6) … (batch, 2, 6, 4)", made(), images.mT)
    refused("channels = 0", ViT, 6, 4, 2, 3, D, HEADS, 1, channels=0)
    refused("classes = 0", ViT, 6, 4, 2, 0, D, HEADS, 1)


CASE = Case(
    mutants=[
        (
            "pixels of a patch column by column",
            "permute(0, 2, 4, 1, 3, 5)",
            "permute(0, 2, 4, 1, 5, 3)",
        ),
        ("patches column by column", "permute(0, 3, 1, 4, 2, 5)", "permute(0, 3, 2, 4, 1, 5)"),
        ("no class token", "return rows * columns + 1", "return rows * columns"),
        (
            "the answer of the last patch",
            "self.tokens(images))[:, 0]",
            "self.tokens(images))[:, -1]",
        ),
        ("pixels on pixels", "align_corners=True", "align_corners=False"),
        ("a class token from the table's end", "maps[..., 0, 1:]", "maps[..., -1, 1:]"),
    ],
)
