"""The story model and its experiment: its parts, its weights as text, the gate, and the words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from refusals import refused
from torch import Tensor, nn

from tfviz import small_world
from tfviz.basics.layer_norm_pre_post import RMSNorm
from tfviz.cores import Bias, Dense
from tfviz.models.blocks import Block, MultiHeadAttention
from tfviz.patterns import full
from tfviz.position.rope import Rope, Turned
from tfviz.small_world import NUMBER, SKILLS, WORDS
from tfviz.stored import story as model
from tfviz.stored import story_page
from tfviz_lab import compare, runner
from tfviz_lab import story as lab

RESTS_ON = (
    *("tfviz/**", "tfviz_lab/**", "tests/*.py"),  # parts are found by their names
    "book/model.md",
)
PAGE = Path(__file__).resolve().parents[1] / "book" / "model.md"

NAMES = (model.BASE, *model.PARTS)


# --- models ---------------------------------------------------------------------------------------


def test_the_variants_are_those_of_the_page() -> None:
    sockets = {socket: 0 for socket in ("position", "pattern", "keys and values", "attention")}
    sockets |= {"norm": 0, "feed": 0, "blocks": 0}
    for part in model.PARTS.values():
        sockets[part.socket] += 1
    assert list(sockets.values()) == [5, 4, 3, 2, 2, 2, 1]


@pytest.mark.parametrize("name", NAMES)
def test_each_sees_no_future_and_begins_as_the_base(name: str) -> None:
    base, variant = lab.untrained(model.BASE, 1), lab.untrained(name, 1)  # refuses the future
    assert variant.embed.weight.equal(base.embed.weight)
    turned = [x for x in variant.modules() if isinstance(x, Turned)]
    part = model.PARTS.get(name)
    assert bool(turned) == (part is None or part.turned)


def test_the_base_is_the_reference_of_the_protocol() -> None:
    base = model.gpt()
    blocks = [x for x in base.modules() if isinstance(x, Block)]
    assert len(blocks) == 3 and all(isinstance(x.norms[0], RMSNorm) for x in blocks)
    core = blocks[0].attend.core
    assert isinstance(core, Turned) and type(core.inner).__name__ == "Dense"
    torch.manual_seed(0)
    plain = model.GPT(len(WORDS), 64, 4, 3, norm=RMSNorm, core=lambda: Rope(16))
    plain.load_state_dict(base.state_dict())
    x = small_world.batch(2, 20, torch.Generator().manual_seed(0)).x
    torch.testing.assert_close(base(x), plain(x))


@pytest.mark.parametrize(
    ("name", "reach"), [("last 8", [8, 8, 8]), ("8, 8, all", [8, 8, 40]), ("8 + sinks", [12] * 3)]
)
def test_patterns_let_a_word_see_so_many(name: str, reach: list[int]) -> None:
    layers = [x for x in model.gpt(name).modules() if isinstance(x, MultiHeadAttention)]
    assert [int(x.pattern.mask(40)[-1].sum()) for x in layers] == reach


@pytest.mark.parametrize("name", NAMES)
def test_weights_come_back_from_their_text(name: str) -> None:
    torch.manual_seed(2)
    first = model.gpt(name)
    again = model.unpack(model.pack(first), name)
    for x, y in zip(first.parameters(), again.parameters(), strict=True):
        row = x.detach().abs().flatten(0, -2).amax(-1) if x.dim() > 1 else x.detach().abs()
        step = row.max() / 127 if x.dim() > 1 else row.max() / 1024
        assert (x - y).abs().max() <= 0.51 * step + 1e-6
    assert model.pack(again) == model.pack(first)
    assert len(model.pack(first)) < 240_000


def test_what_is_no_variant_is_refused() -> None:
    refused("name = 'flat'; choose 'base' or one of", model.gpt, "flat")
    packed = model.pack(model.gpt())
    for name, why in {"learned": "need more", "no feed": "give the data alone"}.items():
        refused(
            f"weights of {name!r} (data has … {why} … ): give its variant",
            model.unpack,
            packed,
            name,
        )


# --- scores ---------------------------------------------------------------------------------------


class Cheat(nn.Module):
    """It says what comes next, which it sees, but for the answers of some skills."""

    def __init__(self, stories: Any, unknown: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.missed = {
            one.words[:40]: {fact.place for fact in one.facts if fact.skill in unknown}
            for one in stories
        }

    def forward(self, x: Tensor) -> Tensor:
        logits = torch.zeros(*x.shape, len(WORDS))
        for a, row in enumerate(x.tolist()):
            missed = self.missed[tuple(small_world.words_of(row[1:41]))]
            for n, right in enumerate([*row[1:], NUMBER[small_world.END]]):
                after = n and row[n] == NUMBER[small_world.END]  # nobody asks what stands here
                logits[a, n, NUMBER["bear"] if after or n in missed else right] = 50
        return logits


def test_who_knows_a_story_has_every_skill_and_no_loss() -> None:
    stories = small_world.held_out(70)
    found = lab.scores(Cheat(stories), stories)
    assert found == {"loss": 0.0, "skills": dict.fromkeys(SKILLS, 1.0)}
    found = lab.scores(Cheat(stories, ("owner", "place")), stories)
    assert found["loss"] > 0.1
    assert found["skills"] == dict.fromkeys(SKILLS, 1.0) | {"owner": 0.0, "place": 0.0}


def test_a_skill_appears_where_it_stays() -> None:
    shares = [0.2, 0.96, 0.5, 0.95, 0.99]
    looks = [{"step": n, "skills": dict.fromkeys(SKILLS, x)} for n, x in enumerate(shares)]
    assert lab.appears(looks) == dict.fromkeys(SKILLS, 3)
    assert lab.appears(looks[:3]) == dict.fromkeys(SKILLS)
    assert lab.appears(looks[:2]) == dict.fromkeys(SKILLS, 1)


def test_lines_that_learn_nothing() -> None:
    found = lab.lines()
    assert 1 < found["loss"]["pairs"] < found["loss"]["one word"] < torch.tensor(len(WORDS)).log()
    assert found["chance"]["pronoun"] == 0.5 and max(found["chance"].values()) <= 0.5
    assert found["distance"]["colour"] >= small_world.FAR["colour"]
    assert found["per story"].keys() == {*SKILLS} and min(found["per story"].values()) > 0.35


def test_in_training_an_answer_counts_as_eight_other_words() -> None:
    """A model that gives every word the same share but answers, of which it is sure."""

    class Sure(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            _x, y, asked = small_world.batch(model.BATCH, model.LENGTH, rng())
            return torch.where(asked[..., None], 1e4 * F.one_hot(y, len(WORDS)), 0.0)

    def rng() -> torch.Generator:
        return torch.Generator().manual_seed(4)

    share = small_world.batch(model.BATCH, model.LENGTH, rng()).asked.double().mean().item()
    found = model.next_word(Sure(), rng(), 0).item()
    right = math.log(len(WORDS)) * (1 - share) / (1 + (model.ANSWERS - 1) * share)
    assert 0.03 < share < 0.1 and found == pytest.approx(right, rel=1e-5)


def test_a_few_steps_repeat_and_keep_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LOOK": 2, "LOOKED_AT": 24, "SCORED": 32, "LEARNT": 0.0}.items():
        monkeypatch.setattr(lab, name, value)
    config = {"variant": "last 8", "steps": 3, "keep": ["weights", "checkpoints"]}
    found = lab.measure(config, 1)
    assert found == lab.measure(config, 1)
    assert [look["step"] for look in found["looks"]] == [2, 3]
    assert found["appears"] == dict.fromkeys(SKILLS, 2) and list(found["checkpoints"]) == ["2"]
    stored = model.unpack(found["weights"], "last 8")
    assert lab.scores(stored, lab.held_out(32)) == {k: found[k] for k in ("loss", "skills")}
    assert found["state"] > 0
    bare = lab.measure({"variant": "no feed", "steps": 1, "keep": []}, 1)
    assert bare["weights"] is None and bare["checkpoints"] == {}
    assert compare.seeing_ahead(stored, lab.TASK) == []


# --- what the page is told -----------------------------------------------------------------------


def test_the_base_on_its_way_stands_beside_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = model.pack(model.gpt())
    row = {
        "loss": [0.5],
        "skills": {skill: [1.0] for skill in SKILLS},
        "words": {},
        "parameters": 7,
    }
    looks = [
        {"step": step, "loss": 1.0, "skills": dict.fromkeys(SKILLS, 0.2) | {"repeated": share}}
        for step, share in ((250, 0.3), (500, 0.4), (1000, 0.96))
    ]
    found = {"variants": {model.BASE: row}, "weights": {model.BASE: packed}, "steps": 8000}
    kept = {"1000": packed, "250": packed}
    told = story_page._with_early({**found, "chance": {}}, looks, kept)
    monkeypatch.setattr(story_page, "results", lambda: told)
    assert story_page.names() == (model.BASE, "step 250", "step 1000")
    assert told["variants"]["step 1000"]["skills"]["repeated"] == [0.96]
    assert told["variants"]["step 250"]["parameters"] == 7
    assert story_page._on_its_way("step 250", 8000).endswith("It had learned no skill yet.")
    assert story_page._on_its_way("step 1000", 8000) == (
        "The base after 1,000 of 8,000 steps of training. It had learned: song."
    )
    [early] = [one for one in story_page.for_page()["shelf"] if one["socket"] == story_page.EARLY]
    assert [part["name"] for part in early["parts"]] == ["step 250", "step 1000"]
    assert early["base"] == "step 8000"
    refused("swap = 'step 500', which has no trained weights", story_page._stored, "step 500")


# --- a page of one's own -------------------------------------------------------------------------


class Own(Dense):
    """A core of which the page has not been told."""


class Leaky(Own):
    """It looks ahead, whatever its pattern says."""

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Any) -> tuple[Tensor, None]:
        return super().forward(Q, K, V, where)[0] + V.mean(-2, keepdim=True), None

    def in_page(self) -> dict[str, Any]:
        return {"name": "softmax", "turn": {"name": "none"}, "bias": {"name": "none"}}


class Forgetful(Leaky):
    """It keeps nothing to go on with."""

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Any) -> tuple[Tensor, None]:
        return V, None


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is put beside the stored models is gone afterwards."""
    monkeypatch.setattr(story_page, "_own", {})
    yield
    for one in (story_page.handed, story_page.exact):
        one.cache_clear()


def mine(words: int = len(WORDS), **options: Any) -> model.GPT:
    torch.manual_seed(0)
    told: Any = {"N": model.BLOCKS, "norm": RMSNorm} | options
    return model.GPT(words, 8, 2, **told)


@pytest.mark.usefixtures("alone")
def test_a_model_of_ones_own_stands_on_the_shelf(tmp_path: Path) -> None:
    own = mine(core=lambda: Bias(lambda i, j: 0.1 * (j - i)))
    before = {key: x.clone() for key, x in own.state_dict().items()}
    assert model.page(tmp_path / "mine.html", own) == tmp_path / "mine.html"
    text = (tmp_path / "mine.html").read_text("utf-8")
    assert "your own" in text and '"swap":"mine"' in text
    assert all(
        x.equal(before[key]) for key, x in own.state_dict().items()
    )  # its own are not rounded
    row = story_page.for_page()["scores"]["mine"]
    rounded = story_page.exact("mine").float()
    assert {"loss": [(found := model.scores(rounded))["loss"]]}.items() <= row.items()
    assert row["skills"] == {skill: [x] for skill, x in found["skills"].items()}
    model.page(tmp_path / "mine.html", mine())  # another one takes its name
    assert story_page.names()[-1:] == ("mine",)
    assert not any(isinstance(x, Bias) for x in story_page.exact("mine").modules())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("options", "name", "words"),
    [
        (
            {"words": 11},
            "mine",
            "model has 11 words, 3 blocks, width 8 and 2 heads; … room for {words}",
        ),
        ({"N": 2}, "mine", "model has {words} words, 2 blocks, width 8 and 2 heads; … as many"),
        ({"pattern": full()}, "mine", "no token reads a later one; combine it with causal()"),
        ({"core": lambda: Leaky()}, "mine", "model sees the words that it is to predict: word"),
        ({"core": Own}, "mine", "core is a Own"),
        ({"core": lambda: Forgetful()}, "mine", "a Forgetful that keeps nothing of what it has"),
        ({}, "last 8", "name = 'last 8' is taken … such as 'mine'"),
        ({}, "LAST-8", "name = 'LAST-8' is taken … such as 'mine'"),
        ({}, "…", "name = '…' is taken, or has no letter in it; give"),
    ],
)
def test_what_can_have_no_page(
    tmp_path: Path, options: dict[str, Any], name: str, words: str
) -> None:
    file = tmp_path / "mine.html"
    refused(words.format(words=len(WORDS)), model.page, file, mine(**options), name)
    assert not file.exists() and not story_page._own


# --- the page -------------------------------------------------------------------------------------


def test_the_page_speaks_of_this_world() -> None:
    text = PAGE.read_text("utf-8")
    assert f"It speaks {len(WORDS)} words" in text
    eight = {8: "eight", 20: "twenty", 30: "thirty", 50: "fifty"}[model.ANSWERS]
    assert f"an answer counts as much as {eight} other words" in text
    rows = re.findall(r"^\| ([a-z ]+) \| (.+) \| (.+) \|$", text, re.MULTILINE)[1:]
    assert {name for name, *_ in rows} == {*story_page.STORIES.values()}
    for _, told, asked in rows:
        said = re.sub(r"([.,:?“”])", r" \1 ", f"{told} {asked}".replace("**", ""))
        known = {word.lower() for word in WORDS}
        assert {word.lower() for word in said.split()} <= known, told


@pytest.mark.usefixtures("alone")
def test_what_the_page_writes_in_python_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(block.replace("steps=1000", "steps=1"), given)
    assert len(blocks) == 2 and (tmp_path / "mine.html").exists()
    assert isinstance(given["mine"].stack.blocks[0].attend.core, Bias)


# --- the gate -------------------------------------------------------------------------------------


def done(name: str, seed: int, share: float = 1.0, loss: float = 0.5) -> dict[str, Any]:
    result = {
        **{"loss": loss, "skills": dict.fromkeys(SKILLS, share), "looks": [], "parameters": 1},
        **{"appears": dict.fromkeys(SKILLS, 250), "state": 2, "weights": name, "checkpoints": {}},
    }
    result |= {"chance": dict.fromkeys(SKILLS, 0.4)} if name == "lines" else {}
    return {"run": {"name": name, "seed": seed, "config": {}}, "result": result}


def test_variants_follow_only_when_the_base_has_every_skill_with_every_seed() -> None:
    good = [done(model.BASE, seed) for seed in lab.SEEDS]
    assert [run.name for run in lab.follow(good)] == [*model.PARTS] * len(lab.VARIANT_SEEDS)
    assert lab.follow(good[:2]) == lab.follow([]) == []
    bad = [*good[:2], done(model.BASE, 2, share=0.949)]
    assert lab.follow(bad) == []
    with pytest.raises(
        lab.NotLearntError, match=r"owner \[1.0, 1.0, 0.949\].*ASKED.*lists of words"
    ):
        lab.collect([done("lines", 0), *bad])


def test_what_is_collected_has_a_row_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [done(name, seed) for name in NAMES for seed in lab.SEEDS]
    found = lab.collect([done("lines", 0), *rows])
    assert [*found["variants"]] == [*found["weights"]] == [*NAMES]
    assert found["variants"]["GQA"]["words"] == {
        **dict.fromkeys(SKILLS, "has it"),
        "loss": "equal to within 0.005",
    }
    assert found["vocabulary"] == len(WORDS)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([0.95, 1.0, 0.97], "has it"),
        ([0.2, 0.45, 0.1], "guesses"),
        ([0.9, 0.94, 0.6], "has it partly"),
        ([0.96, 0.94, 0.99], lab.LUCK),
        ([0.2, 0.2, 0.99], lab.LUCK),
        ([1.0], "too few seeds"),
    ],
)
def test_a_word_is_said_only_where_three_seeds_agree(shares: list[float], said: str) -> None:
    assert lab.word(shares, chance=0.4) == said


def test_losses_are_compared_as_everywhere() -> None:
    """Paired by seed, with an interval: that three agree is not enough."""
    base = [0.5, 0.6, 0.7]
    assert lab.loss_word([0.51, 0.611, 0.709], base) == "worse"
    assert lab.loss_word([0.49, 0.589, 0.691], base) == "better"
    assert lab.loss_word([0.501, 0.6, 0.7], base) == "equal to within 0.005"
    assert lab.loss_word([0.507, 0.64, 0.706], base) == "cannot tell"
    assert lab.loss_word([0.6, 0.7], base) == "too few seeds"


def test_runs_keep_only_what_the_page_shows() -> None:
    runs = [*lab.runs(), *lab.follow([done(model.BASE, seed) for seed in lab.SEEDS])]
    keep = {(run.name, run.seed): run.config.get("keep") for run in runs}
    assert keep["base", lab.SHOWN] == ["weights", "checkpoints"] and keep["base", 1] == []
    assert keep["GQA", lab.SHOWN] == ["weights"] and keep["rehearsal, base", 0] == []
    paths = [task.path for task in runner.tasks(lab)]
    assert len({*paths}) == len(paths)


def test_a_run_rests_on_its_own_part_alone() -> None:
    run = next(r for r in lab.follow([done("base", n) for n in lab.SEEDS]) if r.name == "ALiBi")
    pieces = runner.keys.Source().pieces(lab, run.config, run.of)
    assert any("longer_context:ramps" in piece for piece in pieces)
    assert any("small_world:ASKED" in piece for piece in pieces)
    assert not any("two_of_keys" in piece or "Grouped" in piece for piece in pieces)


# --- what must be noticed -------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/stored/story.py": [
        (
            "a skill is asked at the place of its answer",
            "row[fact.place] == NUMBER[fact.word]",
            "row[fact.place + 1] == NUMBER[fact.word]",
        ),
        (
            "what fills a row up is scored",
            "row[len(mine) - 1 :] = -100",
            "row[len(mine) :] = -100",
        ),
    ],
    "tfviz_lab/story.py": [
        (
            "the gate opens with two seeds",
            "if len(base) < len(SEEDS) or lacking(base):",
            "if lacking(base):",
        ),
        (
            "the best seed is asked",
            "if min(shares) < LEARNT}",
            "if max(shares) < LEARNT}",
        ),
    ],
}
