"""The race of everything at 512 tokens: who is in it, its tasks, and anybody's own mechanism."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator

from tfviz.exhibits import EXHIBITS
from tfviz.models.blocks import MultiHeadAttention
from tfviz_lab import compare, entrant, protocol, race, records, runner
from tfviz_lab.protocol import Exam

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # it finds mechanisms by their names

SHORT = 64


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are shorter, so that a test takes no minutes."""
    monkeypatch.setattr(race, "LENGTH", SHORT)
    monkeypatch.setattr(race, "ROUNDS", 1)


def test_who_races_is_every_line_that_is_no_encoding_of_positions() -> None:
    raced = {name for name, exhibit in EXHIBITS.items() if exhibit.race and not exhibit.raced}
    assert set(race.ENTRANTS) == raced - {race.PLAIN, *race.TOO_SLOW}
    assert raced >= {*race.TOO_SLOW}
    assert race.NAMES[:2] == [race.PLAIN, race.OWN]


@pytest.mark.parametrize("name", race.NAMES)
def test_each_makes_a_model_that_every_exam_accepts(name: str, short: None) -> None:
    for exam in race.EXAMS:
        task = exam.task(0)
        compare.refuse(compare.model(partial(race.options, name, SHORT), task, 0), task)


@pytest.mark.parametrize("name", race.NAMES)
def test_it_has_rotary_positions_or_says_that_it_has_its_own(name: str) -> None:
    model = protocol.letters(**compare.told(partial(race.options, name, SHORT)))
    turned = any(isinstance(x, protocol.Turned) for x in model.modules())
    own = name == race.OWN or (name in EXHIBITS and EXHIBITS[name].own_positions)
    assert turned != own
    if own and name != race.OWN:
        assert race.rivals()[name] == race.OWN
    attentions = [x for x in model.modules() if isinstance(x, MultiHeadAttention)]
    assert own or all(isinstance(x.core, protocol.Turned) for x in attentions)


def test_what_is_copied_stands_twelve_places_before() -> None:
    rows, answers = race.copied(3, Generator().manual_seed(0))
    assert rows.shape == answers.shape == (3, race.LENGTH)
    assert (answers[:, : race.BACK] == -100).all()
    assert answers[:, race.BACK :].equal(rows[:, : -race.BACK])


def test_what_is_looked_up_came_with_the_key() -> None:
    rows, answers = race.looked_up(3, Generator().manual_seed(0))
    for row, right in zip(rows.tolist(), answers.tolist(), strict=True):
        value = dict(divmod(token, race.VALUES) for token in row[: race.KEYS])
        assert len(value) == race.KEYS and right[: race.KEYS] == race.KEYS * [-100]
        asked = [token - race.KEYS * race.VALUES for token in row[race.KEYS :]]
        assert [value[key] for key in asked] == right[race.KEYS :]


@pytest.mark.parametrize("exam", race.EXAMS, ids=lambda exam: exam.name)
def test_an_oracle_is_perfect_and_a_guesser_stands_at_the_line(exam: Exam) -> None:
    if exam.name == "text":
        assert exam.bar in exam.trivial(0)
        return
    draw, vocab = {"copy": (race.copied, 8), "lookup": (race.looked_up, race.VALUES)}[exam.name]
    guess = torch.nn.Module()
    guess.forward = lambda x: torch.zeros(*x.shape, vocab)
    assert race.nats(draw, guess) == exam.trivial(0)[exam.bar]
    rows, answers = draw(32, Generator().manual_seed(1))
    know = torch.nn.Module()
    at = {tuple(row): y for row, y in zip(rows.tolist(), answers.tolist(), strict=True)}

    def knows(x: torch.Tensor) -> torch.Tensor:
        right = torch.tensor([at[tuple(row)] for row in x.tolist()]).clamp(min=0)
        return 100.0 * torch.nn.functional.one_hot(right, vocab)

    know.forward = knows
    assert race.nats(draw, know) == 0


def test_costs_are_beside_the_plain_model_and_only_they_read_a_clock(short: None) -> None:
    found = race.cost_at(partial(race.options, "linear_transformer"), SHORT)
    assert found["time"] > 0 and found["memory"] > 0 and found["state"] and found["flops"] > 0
    parts = {run.config["part"]: race.timed(run.config) for run in race.runs()}
    assert parts == {"trivial": False, "rate": False, "cost": True}


def test_a_run_rests_on_its_own_line_alone() -> None:
    tasks = {task.run.name: task for task in runner.tasks(race) if "rate" in task.run.name}
    performer = tasks["text performer, rate 0.01"].pieces
    assert any("exponentials" in piece for piece in performer)
    assert not any("narrow_and_near" in piece for piece in performer)


# --- anybody's own --------------------------------------------------------------------------------

GOOD = """
from tfviz.cores import Sparse
from tfviz import patterns

def race(gpt):
    return {"core": Sparse, "pattern": patterns.sliding_window(lookback=8)}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def race(:", "cannot be run: SyntaxError"),
        ("import no_such_module", "cannot be run: ModuleNotFoundError"),
        ("x = 1", r"defines no function race\(gpt\)"),
        ("def race(gpt): return 3", "gives 3; let it return a dictionary"),
        ("def race(gpt): return {}", r"gives \{\}; let it return a dictionary"),
    ],
)
def test_a_file_that_cannot_race_is_told_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        entrant.line_of(written(tmp_path, text))
    with pytest.raises(ValueError, match="no such file"):
        entrant.line_of(tmp_path / "other.py")


def test_what_sees_the_future_is_refused_before_any_training(
    tmp_path: Path, short: None, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = "from tfviz import patterns\ndef race(gpt): return {'pattern': patterns.full()}"
    assert runner.main(["race", str(written(tmp_path, ahead))]) == 1
    out = capsys.readouterr().out
    assert "sees the future" in out and "rate" not in out


def test_mine_gets_the_protocol_a_line_an_interval_and_a_card(
    tmp_path: Path, short: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(written(tmp_path, GOOD))
    few = ["--exam", "copy", "--steps", "8", "--seeds", "2"]
    assert runner.main(["race", file, *few]) == 0
    out = capsys.readouterr().out
    assert out.count(" after 2 steps") >= 6 and out.count("seed 1, rate") == 2
    assert "mine on copy, nats per symbol, 2 seeds" in out and "guessing: 2.0794" in out
    assert "beside full attention: " in out and "times full attention's time" in out
    assert "does not beat guessing" in out or "full attention itself" not in out


def test_it_stands_among_those_that_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def done(name: str, score: float) -> dict[str, Any]:
        config = {"part": "score", "exam": "copy", "variant": name}
        return {"run": {"config": config, "seed": 0}, "result": {"score": score}}

    stored = {"runs": [done("rope", 0.5), done("luna", 1.5)]}
    monkeypatch.setattr(records, "load", lambda name: None)
    monkeypatch.setattr(records, "unfinished", lambda name: stored)
    found = entrant.standing(race.COPY, "mine", 1.0, {"guessing": 2.0})
    assert [line.split()[-2] for line in found] == ["rope", "mine", "luna", "guessing"]
    assert found[1].startswith("→")


def test_no_entrant_must_be_given_more_than_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(written(tmp_path, GOOD))
    for wrong in (["--seeds", "1"], ["--steps", "2"], ["--exam", "all"]):
        with pytest.raises(SystemExit):
            entrant.main([file, *wrong])
