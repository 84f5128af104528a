"""The comparison: equal starts and batches whatever a variant brings, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import patterns
from tfviz.cores import CAUSAL, Dense, Where
from tfviz.models.use import maps, watched
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.position.xl_relative import xl
from tfviz_lab import compare as c
from tfviz_lab.runner import tasks

HEADS, D_HEAD = c.HEADS, c.WIDTH // c.HEADS


def plain() -> dict[str, Any]:
    return {}


def local() -> dict[str, Any]:
    return {"pattern": patterns.sliding_window(lookback=1)}


class Doubled(Dense):
    """A core that can be told apart, and draws random numbers while it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.own = torch.nn.Parameter(torch.randn(3))

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return Q @ K.transpose(-2, -1)


@pytest.mark.parametrize("task", list(c.TASKS))
def test_all_begin_alike_whatever_a_variant_draws(task):
    begun = dict(c.model(plain, task, 3).named_parameters())
    other = dict(c.model(Doubled, task, 3).named_parameters())
    assert sorted(other.keys() - begun.keys()) == [
        f"stack.blocks.{n}.attend.core.own" for n in range(c.LAYERS)
    ]
    assert all(x.equal(other[name]) for name, x in begun.items())
    seed4 = dict(c.model(plain, task, 4).named_parameters())
    assert not all(x.equal(seed4[name]) for name, x in begun.items())


def test_a_variant_is_options_or_what_makes_a_core():
    made = c.model(xl(HEADS, D_HEAD), "recall", 0)
    again = c.model(lambda: {"core": xl(HEADS, D_HEAD)}, "recall", 0)
    assert type(made.stack.blocks[1].attend.core) is type(again.stack.blocks[1].attend.core)
    of_class = c.model(Rope, "recall", 0).stack.blocks[1].attend.core
    assert isinstance(of_class, Rope)
    both = [patterns.causal(), patterns.sliding_window(lookback=2)]
    for name, task in c.TASKS.items():
        blocks = c.model(lambda: {"pattern": both}, name, 0).stack.blocks
        assert [block.attend.pattern for block in blocks] == both
        unless_said = patterns.causal() if task.causal else patterns.full()
        assert c.model(plain, name, 0).stack.blocks[0].attend.pattern == unless_said
    positions = Learned(8, c.WIDTH)
    assert c.model(lambda: {"positions": positions}, "text", 0).embed.positions is positions


def test_what_is_wrong_with_a_variant_or_a_task_is_said():
    with pytest.raises(ValueError, match="task = 'texts'; choose from text, recall, digits"):
        c.model(plain, "texts", 0)
    with pytest.raises(ValueError, match="pattern has 3 entries; give one for each of 2 layers"):
        c.model(lambda: {"pattern": [patterns.causal()] * 3}, "text", 0)


def test_no_model_of_a_causal_task_sees_the_future():
    t = torch.randint(c.SYMBOLS, (2, c.PIXELS))
    changed = t.clone()
    changed[:, 30:] = (changed[:, 30:] + 1) % c.SYMBOLS
    for task in c.CAUSAL_TASKS:
        model = c.model(local, task, 0)
        before, after = model(t), model(changed)
        torch.testing.assert_close(before[:, :30], after[:, :30])
        assert not torch.allclose(before[:, 31], after[:, 31])


def test_batches_are_the_same_for_all_and_another_seed_has_others(monkeypatch):
    seen: list[float] = []

    def loss(seed: int, steps: int) -> Any:
        real = c.pixel_loss(seed, steps)

        def watched(model: Any, rng: Any, step: int) -> Tensor:
            seen.append(real(c.model(plain, "digits", 0), rng, step).item())
            return real(model, rng, step)

        return watched

    monkeypatch.setitem(c.TASKS, "digits", replace(c.TASKS["digits"], steps=2, loss=loss))
    for variant, seed in ((plain, 0), (Doubled, 0), (plain, 1)):
        c.trained(variant, "digits", seed)
    assert seen[:2] == seen[2:4] != seen[4:]


def test_what_compare_returns_is_counted_and_repeats(monkeypatch):
    monkeypatch.setattr(c, "LENGTHS", (16, 96))
    variants = {"none": plain, "table": lambda: {"positions": Learned(64, c.WIDTH)}}
    found = c.compare(variants, ("recall",), seeds=(0, 1), steps=2)
    again = c.compare(variants, ("recall",), seeds=(0, 1), steps=2)
    assert found["scores"] == again["scores"]
    table = found["scores"]["recall"]
    assert table["none"][0] != table["none"][1] != table["table"][1]
    assert [row[1] for row in table["table"]] == [None, None]  # beyond its 64 rows
    count = found["parameters"]["recall"]
    assert count["table"] - count["none"] == 64 * c.WIDTH
    assert count["none"] == sum(x.numel() for x in c.model(plain, "recall", 0).parameters())
    made = found["provenance"]
    assert made["seeds"] == [0, 1] and made["steps"] == 2 and "torch" in made["versions"]
    assert found["unit"] == {"recall": "nats per recalled symbol"}


def test_training_finds_what_is_in_reach_and_nothing_else():
    """Two windows of two tokens end far short of BACK = 12 places: guessing is the best."""
    _, losses = c.trained(xl(HEADS, D_HEAD), "recall", 0, steps=80)
    _, blind = c.trained(local, "recall", 0, steps=80)
    assert losses[-1] < 0.1 and blind[-1] == pytest.approx(math.log(c.SYMBOLS), abs=0.05)


def test_three_names_make_an_experiment_of_a_module():
    module: Any = ModuleType("tfviz_lab.written_here")
    module.__file__ = c.__file__
    module.runs, module.measure, module.collect = c.experiment(
        {"none": plain, "local": local}, ("text", "digits"), seeds=(0, 5), steps=1
    )
    found = tasks(module)
    assert len(found) == 8 and found[0].run.name == "text none" and found[-1].run.seed == 5
    done = [
        {
            "run": {"name": task.run.name, "seed": task.run.seed},
            "result": {"score": (task.run.name, task.run.seed), "parameters": 7},
        }
        for task in reversed(found)
    ]
    whole = module.collect(done)
    assert whole["scores"]["digits"]["local"] == [("digits local", 0), ("digits local", 5)]
    assert whole["parameters"]["text"] == {"none": 7, "local": 7}
    assert whole["unit"]["digits"] == "nats per pixel"


# --- tasks as values, and for an encoder ----------------------------------------------------------


def parity_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Of bits: is the sum so far odd?"""
    bits = torch.randint(2, (8, 6), generator=rng)
    return F.cross_entropy(model(bits).flatten(0, 1), (bits.cumsum(1) % 2).flatten())


def parity_model(**options: Any) -> nn.Module:
    return c._gpt("recall", **options)


PARITY = c.Task(
    name="parity",
    unit="nats per bit",
    steps=3,
    model=parity_model,
    loss=lambda seed, steps: parity_loss,
    score=lambda model: model(torch.zeros(1, 6, dtype=torch.long)).sum().item(),
    inputs=lambda rng: torch.randint(2, (2, 6), generator=rng),
)


def test_a_task_of_ones_own_stands_beside_the_names():
    result = c.compare({"none": plain, "local": local}, (PARITY, "recall"), seeds=(0,), steps=1)
    assert list(result["scores"]) == ["parity", "recall"]
    assert result["unit"]["parity"] == "nats per bit"
    assert result["scores"]["parity"]["none"] != result["scores"]["parity"]["local"]
    runs, measure, _ = c.experiment({"none": plain}, (PARITY,), seeds=(0,))
    assert runs()[0].config == {"task": "parity", "variant": "none", "steps": 3}
    assert measure(dict(runs()[0].config), 0)["score"] == c.measured(plain, PARITY, 0)["score"]
    with pytest.raises(ValueError, match="tasks = parity, parity: two have one name"):
        c.compare({"none": plain}, (PARITY, replace(PARITY, steps=2)))


def test_every_name_of_a_task_is_its_own_and_says_what_it_asks():
    assert (
        [task.name for task in c.TASKS.values()]
        == list(c.TASKS)
        == [*c.CAUSAL_TASKS, *c.ENCODER_TASKS]
    )
    assert [name for name, task in c.TASKS.items() if task.causal] == list(c.CAUSAL_TASKS)


def test_patches_are_the_image_cut_in_sixteen():
    pixels = torch.arange(64)[None]
    patches = c.patches_of(pixels)[0] * (c.LEVELS - 1)
    assert patches[0].tolist() == [0, 1, 8, 9] and patches[5].tolist() == [18, 19, 26, 27]
    assert patches.flatten().sort().values.tolist() == list(range(64))


def test_which_digit_an_image_shows_goes_with_the_image():
    """Images of one class are alike: their means name most of the images never seen."""
    (images, unseen), (digits, answers) = c.images(), c.classes()
    means = torch.stack([images[digits == n].float().mean(0) for n in range(c.CLASSES)])
    nearest = torch.cdist(unseen.float(), means).argmin(1)
    assert (nearest == answers).float().mean() > 0.85


def test_an_encoder_learns_to_read_digits():
    model, losses = c.trained(plain, "patches", 0, steps=150)
    assert losses[0] == pytest.approx(math.log(c.CLASSES), abs=0.25)
    assert c.errors(model) < 0.5  # guessing is wrong nine times of ten


def test_an_encoder_fills_in_hidden_characters_from_both_sides():
    """Hidden are 15 % of 64 characters, and no other is scored."""
    seen: list[tuple[Tensor, Tensor]] = []

    class Knows(nn.Module):
        def forward(self, hidden: Tensor) -> Tensor:
            logits = torch.zeros(*hidden.shape, len(c.data.characters()[1]) + 1)
            seen.append((hidden, logits.requires_grad_()))
            return logits

    loss = c.masked_loss(Knows(), Generator().manual_seed(0), 0)
    loss.backward()
    hidden, logits = seen[0]
    vocab = len(c.data.characters()[1])
    assert loss.item() == pytest.approx(math.log(vocab + 1))
    assert logits.grad is not None
    scored = (logits.grad != 0).any(-1)
    assert scored.sum(1).tolist() == [10] * c.BATCH and scored[hidden == vocab].all()

    model = c.model(plain, "masked_text", 0)
    t = seen[0][0][:1]
    changed = t.clone()
    changed[0, 40] = (changed[0, 40] + 1) % vocab
    assert not torch.allclose(model(t)[0, 10], model(changed)[0, 10])
    _, losses = c.trained(plain, "masked_text", 0, steps=60)
    assert sum(losses[-10:]) / 10 < 3.35 < 4.5 < losses[0]  # 3.25: how frequent each character is


def test_an_encoder_has_learned_positions_unless_the_variant_brings_others():
    length = {"patches": c.PATCHES, "masked_text": c.TRAIN_LENGTH}
    for task in c.ENCODER_TASKS:
        table, rotary = (
            [x for x in c.model(variant, task, 0).modules() if isinstance(x, Learned)]
            for variant in (Doubled, lambda: {"core": lambda: Rope(4), "positions": None})
        )
        assert [len(x.P) for x in table] == [length[task]] and rotary == []


def test_a_variant_may_change_the_size_of_a_weight():
    one, plain_model = (c.model(variant, "text", 0) for variant in (lambda: {"h_kv": 1}, plain))
    assert one.stack.blocks[0].attend.W_qkv.weight.shape[0] == c.WIDTH + 2 * D_HEAD
    assert one.embed.weight.equal(plain_model.embed.weight)


# --- what a task refuses --------------------------------------------------------------------------


class LowRank(nn.Module):
    """Linformer: keys and values are mixed over the whole text, whatever the pattern says."""

    def __init__(self, L: int = c.TRAIN_LENGTH, k: int = 8) -> None:
        super().__init__()
        self.E = nn.Parameter(torch.randn(k, L) / L**0.5)

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, None]:
        return F.scaled_dot_product_attention(Q, self.E @ K, self.E @ V), None


class OneSided(Dense):
    """It looks back, even where the pattern lets it look ahead."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        return super().attend(Q, K, V, replace(where, pattern=CAUSAL))


class Shuffled(Dense):
    """It draws numbers and counts its calls, and yet keeps to the past."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        self.calls += 1
        return self.calls * torch.randn(Q.shape[2], K.shape[2])


def refused_before_training(monkeypatch: Any, words: str, *arguments: Any) -> None:
    """By compare and by a stored experiment's run, before a step of training."""
    variant, task = arguments
    with monkeypatch.context() as patch:
        patch.setattr(c, "train", lambda *a, **k: pytest.fail("it was trained"))
        with pytest.raises(ValueError, match=words):
            c.compare({"none": plain, "it": variant}, (task,))
        with pytest.raises(ValueError, match=words):
            c.measured(variant, task, 0, 1)


@pytest.mark.parametrize("task", c.CAUSAL_TASKS)
def test_a_core_that_sees_the_future_is_refused_on_a_causal_task(task, monkeypatch):
    words = f"core = LowRank sees the future on the causal task '{task}': .*position 0 of 64 .*"
    refused_before_training(monkeypatch, words + "patches, masked_text", LowRank, task)
    ahead = patterns.band(radius=1)
    words = rf"pattern = {ahead!r} sees the future on the causal task".replace("(", r"\(")
    last = lambda: {"pattern": [patterns.causal(), ahead]}  # noqa: E731
    refused_before_training(monkeypatch, words.replace(")", r"\)"), last, task)


def test_the_same_core_is_welcome_in_an_encoder():
    assert c.measured(LowRank, "masked_text", 0, 1)["score"] > 0
    assert c.measured(lambda: {"core": lambda: LowRank(c.PATCHES)}, "patches", 0, 1)["score"] > 0


def test_a_core_that_only_looks_back_is_refused_in_an_encoder_that_lets_it_look_ahead(monkeypatch):
    words = "core = OneSided sees nothing of what comes after a token on 'masked_text'.*text, recal"
    refused_before_training(monkeypatch, words, OneSided, "masked_text")
    chosen = lambda: {"core": OneSided, "pattern": patterns.causal()}  # noqa: E731
    assert c.measured(chosen, "masked_text", 0, 1)["score"] > 0
    assert c.measured(OneSided, "recall", 0, 1)


def test_asking_what_a_model_sees_changes_nothing_of_it():
    model = c.model(Shuffled, "recall", 0)
    outside = torch.get_rng_state()
    assert c.seeing_ahead(model, c.TASKS["recall"]) == []
    assert torch.get_rng_state().equal(outside) and model.training
    assert all(block.attend.core.calls == 0 for block in model.stack.blocks)


# --- a loss of the variant's own ------------------------------------------------------------------


def disagreement(model: nn.Module) -> Tensor:
    """How alike the heads' outputs are: Li et al. 2018, equation 8, with the sign of a loss."""
    alike = []
    for module in model.modules():
        if isinstance(module, c.MultiHeadAttention):
            assert module.seen is not None
            heads = F.normalize(module.seen.heads, dim=-1)  # (b, h, L, d_head)
            alike.append(torch.einsum("bhle,bgle->bhgl", heads, heads).mean())
    return torch.stack(alike).mean()


def alikeness(model: nn.Module) -> float:
    x, _ = c.symbols_back(4, c.TRAIN_LENGTH, Generator().manual_seed(5))
    with torch.no_grad(), watched(model):
        model(x)
        return disagreement(model).item()


def weighted(weight: float) -> dict[str, Any]:
    return {"extra_loss": lambda model: weight * disagreement(model)}


def test_heads_that_are_told_to_disagree_do():
    """And with the weight 0 the training is that of the plain model, but for rounding."""
    none, all_of_it = (
        c.trained(partial(weighted, weight), "recall", 0, 30) for weight in (0.0, 1.0)
    )
    plain_model, plain_losses = c.trained(plain, "recall", 0, 30)
    assert none[1][:5] == pytest.approx(plain_losses[:5], abs=1e-4)
    assert all_of_it[1][0] > plain_losses[0] + 0.1  # the loss of both
    assert alikeness(all_of_it[0]) < alikeness(plain_model) - 0.1
    assert alikeness(none[0]) == pytest.approx(alikeness(plain_model), abs=0.05)


def test_a_loss_on_the_maps_reaches_the_queries_and_nobody_watches_afterwards():
    pulled: list[Tensor] = []

    def far(model: nn.Module) -> Tensor:
        """The mean distance at which the heads look, as a loss."""
        i = torch.arange(c.TRAIN_LENGTH)
        distance = torch.stack(
            [(A * (i[:, None] - i)).sum(-1).mean() for A in maps(model).values()]
        )
        pulled.append(distance.mean())
        return 20 * distance.mean()

    def nearer() -> dict[str, Any]:
        return {"positions": Learned(c.TRAIN_LENGTH, c.WIDTH), "extra_loss": far}

    model, _ = c.trained(nearer, "recall", 0, 40)
    assert pulled[-1] < pulled[0] / 2
    assert not any(x.watched for x in model.modules() if isinstance(x, c.MultiHeadAttention))


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/models/blocks.py": [
        (
            "heads that are watched without gradients",
            "Seen(A, heads)",
            "Seen(A, heads.detach())",
            "disagree",
        ),
    ],
    "tfviz/models/use.py": [
        (
            "maps without gradients",
            "found[name] = module.seen.A",
            "found[name] = module.seen.A.detach()",
            "maps",
        ),
    ],
    "tfviz_lab/compare.py": [
        (
            "variants begin with weights of their own",
            "    made.load_state_dict(shared, strict=False)\n",
            "",
        ),
        (
            "a core that sees the future is trained on a causal task",
            "    if task.causal and seeing:\n",
            "    if False:\n",
            "refused",
        ),
        ("a pixel that may read itself", "n if task.own else n + 1", "n", "refused"),
        (
            "a core that only looks back is trained as an encoder",
            "if not task.causal and seeing == []",
            "if False",
            "refused",
        ),
        (
            "asking what a model sees counts as a call of it",
            "copy.deepcopy(model)(inputs)",
            "model(inputs)",
            "sees",
        ),
        (
            "a loss of the variant's own that nobody adds",
            "return loss(model, rng, step) + extra_loss(model)",
            "return loss(model, rng, step)",
            "disagree or maps",
        ),
    ],
}
