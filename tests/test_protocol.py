"""The protocol: what a comparison may say, the lines that learn nothing, how rates are chosen."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Generator

import tfviz_lab
from tfviz import data
from tfviz.cores import CAUSAL, Dense, Where
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope, rotate
from tfviz_lab import compare, outcomes, protocol, runner, trivial
from tfviz_lab.outcomes import Difference, Outcome, outcome, sooner
from tfviz_lab.protocol import HIDDEN, LETTERS, WHICH_DIGIT, Exam

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # it finds experiments by their names


def plain() -> dict[str, Any]:
    return {}


# --- what may be said -----------------------------------------------------------------------------


def test_the_interval_is_that_of_scipy() -> None:
    a, b = [1.2, 1.5, 1.1, 1.4, 1.3], [1.3, 1.4, 1.2, 1.7, 1.35]
    found = outcomes.difference(a, b)
    theirs = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert found.low == pytest.approx(theirs.low) and found.high == pytest.approx(theirs.high)


def test_the_interval_holds_the_truth_in_95_of_100_cases() -> None:
    rng = Generator().manual_seed(0)
    runs = torch.randn(2000, 5, generator=rng, dtype=torch.float64) + 0.3
    held = [
        (x := outcomes.difference(row, [0.0] * 5)).low <= 0.3 <= x.high for row in runs.tolist()
    ]
    assert 0.935 < mean(held) < 0.965


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([0.90, 0.91, 0.90, 0.92, 0.91], "better in every seed"),
        ([1.10, 1.11, 1.10, 1.12, 1.11], "worse in every seed"),
        ([1.000, 1.002, 0.999, 1.001, 1.0], "equal to within 0.02"),
        ([0.985, 0.986, 0.985, 0.984, 0.985], "equal to within 0.02"),  # sure, and too small
        ([0.5, 1.4, 1.0, 0.7, 1.3], "cannot tell"),
        ([0.90, 0.95, 0.90, 1.001, 0.93], "better"),
        ([1.3, 1.4, 1.3, 1.3, 1.4], "has not learned it"),
    ],
)
def test_each_word_has_its_case(scores: list[float], word: str) -> None:
    assert outcome(scores, [1.0] * 5, delta=0.02, trivial=1.25).word == word
    shares = [-x for x in scores]  # the same where more is better
    assert outcome(shares, [-1.0] * 5, delta=0.02, trivial=-1.25, more=True).word == word


def test_three_seeds_that_agree_are_not_called_every_seed() -> None:
    assert outcome([0.8, 0.81, 0.8], [1.0] * 3, delta=0.02).word == "better"


def test_unpaired_lists_and_single_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="scores of 2 seeds, reference of 3"):
        outcomes.difference([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="n = 1"):
        outcomes.difference([1.0], [2.0])


def test_who_learns_sooner_is_met_later() -> None:
    early, late = [[0.5, 0.5, 0.51]], [[0.3, 0.31, 0.3]]
    slow = [[0.9, 0.9, 0.91]]
    assert sooner(early + late, slow + late, (100, 400), delta=0.02) == 400
    assert sooner(early + late, early + late, (100, 400), delta=0.02) is None
    assert sooner(early + early, slow + slow, (100, 400), delta=0.02) is None  # it stays better


def test_a_card_takes_only_what_needs_no_but() -> None:
    sure = Outcome(Difference(-0.2, -0.22, -0.18, (-0.2, -0.21, -0.19)), 0.02, "better")
    same, other = Difference(-0.1, -0.2, 0.0, ()), Difference(0.1, 0.0, 0.2, ())
    enter = outcomes.may_enter_a_card
    assert enter(sure, learned=True, twice_the_steps=same, other_rate=same)
    assert not enter(sure, learned=False, twice_the_steps=same, other_rate=same)
    assert not enter(sure, learned=True, twice_the_steps=other, other_rate=same)
    assert not enter(sure, learned=True, twice_the_steps=same)
    small = Outcome(Difference(-0.03, -0.031, -0.029, (-0.03, -0.031, -0.029)), 0.02, "better")
    assert not enter(small, learned=True, twice_the_steps=same, other_rate=same)


# --- the lines that learn nothing -----------------------------------------------------------------


def test_counts_are_those_of_the_formula() -> None:
    """By hand: after a came b twice and c once, of four symbols."""
    known, answers = torch.tensor([0, 0, 0, 1]), torch.tensor([1, 1, 2, 0])
    none = torch.zeros(4, dtype=torch.long)
    asked, right = torch.tensor([0, 0, 3]), torch.tensor([1, 3, 1])
    no = torch.zeros(3, dtype=torch.long)
    first, second = trivial.counted([[none], [none, known]], answers, [[no], [no, asked]], right, 4)
    p = {1: (2 + 3 / 4) / 7, 3: (0 + 3 / 4) / 7}  # four answers of three kinds
    assert first.neg().exp().tolist() == pytest.approx([p[1], p[3], p[1]])
    a = [(2 + 2 * p[1]) / 5, (0 + 2 * p[3]) / 5, p[1]]  # the context 3 was never seen
    assert second.neg().exp().tolist() == pytest.approx(a)


def test_counted_shares_add_up_to_one() -> None:
    ids = torch.randint(5, (300,), generator=Generator().manual_seed(0))
    contexts = [[torch.zeros(298, dtype=torch.long)], [ids[1:-1]], [ids[1:-1], ids[:-2]]]
    one = [[x[:1] for x in columns] for columns in contexts]
    total = torch.zeros(3, dtype=torch.float64)
    for symbol in range(5):
        found = trivial.counted(contexts, ids[2:], one, torch.tensor([symbol]), 5)
        total += torch.cat(found).neg().exp()
    assert total.tolist() == pytest.approx([1.0] * 3)


def test_n_grams_are_scored_on_the_characters_that_models_are_scored_on() -> None:
    class Unigram(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            training, V = protocol.training_text(), len(data.characters()[1])
            n = torch.bincount(training[4:], minlength=V)
            p = (n + (n > 0).sum() / V) / (n.sum() + (n > 0).sum())
            return p.log().expand(*x.shape, V)

    assert protocol.whole_text(Unigram()) == pytest.approx(trivial.ngrams()["1-gram"], abs=2e-4)
    found = list(trivial.ngrams().values())
    assert found == sorted(found, reverse=True) and len(found) == 5


def test_neighbours_are_those_that_the_encoder_sees() -> None:
    rows, hidden, scored = trivial.hidden_rows()
    assert 0.14 < scored.double().mean() < 0.16 and rows.shape == hidden.shape
    found = trivial.neighbours()
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_digits_are_read_by_a_line_and_by_the_nearest_one() -> None:
    found = [trivial.readers(*protocol.fold(n)) for n in range(2)]
    assert all(0 < x < 0.05 for lines in found for x in lines.values())


def test_folds_test_every_image_once() -> None:
    tested = torch.cat([protocol.fold(n)[2] for n in range(5)])
    known, digits, new, right = protocol.fold(3)
    assert len(tested) == len(known) + len(new) == 1797
    assert len(digits) == len(known) and len(right) == len(new)
    assert sorted(map(tuple, tested.tolist())) == sorted(
        map(tuple, torch.cat([known, new]).tolist())
    )


# --- positions that every method can have ---------------------------------------------------------


def test_a_turned_core_is_the_rotary_one() -> None:
    Q, K, V = torch.randn(3, 2, 4, 9, 16, generator=Generator().manual_seed(0))
    ours = protocol.Turned(16, 4)(Q, K, V, Where(CAUSAL))[0]
    torch.testing.assert_close(ours, Rope(16)(Q, K, V, Where(CAUSAL))[0])


def test_what_brings_positions_is_not_turned_and_all_else_is() -> None:
    for told, turned in (({}, True), ({"core": Dense}, True), ({"positions": None}, False)):
        model = protocol.letters(**told)
        cores = [x.core for x in model.modules() if isinstance(x, MultiHeadAttention)]
        assert all(isinstance(core, protocol.Turned) == turned for core in cores)
    learned = protocol.letters(positions=Learned(64, 64))
    assert not any(isinstance(x, protocol.Turned) for x in learned.modules())


def test_queries_and_keys_are_those_that_are_compared() -> None:
    model = protocol.letters()
    text = protocol.training_text()[None, :20]
    (Q, K), _ = protocol.queries_and_keys(model, text)
    attend = next(x for x in model.modules() if isinstance(x, MultiHeadAttention))
    entered: list[torch.Tensor] = []
    attend.register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    model(text)
    q, k, _ = attend.project(entered[0], None)
    at = torch.arange(20)
    torch.testing.assert_close((Q, K), (rotate(q, at), rotate(k, at)))


# --- the experiment -------------------------------------------------------------------------------


@pytest.mark.parametrize("exam", [LETTERS, HIDDEN, WHICH_DIGIT], ids=lambda exam: exam.name)
def test_an_exam_accepts_its_plain_model_and_names_its_bar(exam: Exam) -> None:
    task = exam.task(0)
    model = compare.model(lambda: {}, task, 0)
    compare.refuse(model, task)
    assert exam.bar in exam.trivial(0)
    assert exam.rates == tuple(sorted(exam.rates)) and {*exam.rates} <= {*protocol.LADDER}


def test_a_rate_at_the_edge_asks_for_one_more() -> None:
    assert protocol.beyond({3e-3: 1.5, 1e-2: 1.4, 3e-2: 1.9}) is None
    assert protocol.beyond({3e-3: 1.3, 1e-2: 1.4, 3e-2: 1.9}) == 1e-3
    assert protocol.beyond({3e-3: 1.6, 1e-2: 1.4, 3e-2: 1.2}) == 1e-1
    assert protocol.beyond({1e-3: 1.2, 3e-3: 1.3, 1e-2: 1.4, 3e-2: None}) is None
    assert protocol.chosen({1e-3: 1.2, 3e-3: None, 1e-2: 1.4}) == 1e-3


def done(run: runner.Run, score: float) -> dict[str, Any]:
    result = {"score": score, "curve": [score] * 3, "parameters": 7, "flops": 9}
    lines = {"5-gram": 1.3, "4-gram": 1.4}
    part = run.config["part"]
    return {"run": run.told(), "result": lines if part == "trivial" else result}


def test_rates_come_first_then_the_seeds_at_the_best() -> None:
    variants = {"full attention": plain, "other": plain}
    runs, follow, collect = protocol.experiment(variants, LETTERS, reference="full attention")
    first = runs()
    assert parts_of(first) == {"trivial": 5, "rate": 6}
    best = {"full attention": {3e-3: 1.5, 1e-2: 1.3, 3e-2: 1.6}, "other": {3e-3: 1.2, 1e-2: 1.3}}
    made = [
        done(run, best.get(run.config.get("variant", ""), {}).get(run.config.get("rate", 0.0), 1.9))
        for run in first
    ]
    second = follow(made)
    assert {run.config["rate"] for run in second if run.config["variant"] == "other"} == {1e-3}
    assert {run.config["rate"] for run in second if run.config["variant"] != "other"} == {1e-2}
    made += [done(run, 1.25) for run in second]
    third = [run for run in follow(made) if run.config["part"] == "score"]
    assert parts_of(third) == {"score": 10}
    scores = {"full attention": 1.22, "other": 1.25}
    made = [x for x in made if x["run"]["config"]["part"] != "score"]
    made += [done(run, scores[run.config["variant"]] + run.seed / 100) for run in third]
    found = collect(made)["exams"]["letters"]
    assert found["rates"] == {"full attention": 1e-2, "other": 3e-3}
    assert found["outcomes"]["other"]["word"] == "worse in every seed"
    assert found["trivial"]["5-gram"] == [1.3] * 5


def parts_of(runs: list[runner.Run]) -> dict[str, int]:
    parts = [run.config["part"] for run in runs]
    return {part: parts.count(part) for part in dict.fromkeys(parts)}


def test_a_reference_that_loses_to_counting_is_refused() -> None:
    scores = {"full": [1.98, 1.97, 1.99, 1.98, 1.97], "other": [1.2] * 5}
    lines = [{"5-gram": 1.32, "3-gram": 1.71}] * 5
    with pytest.raises(protocol.LosesToCountingError, match=r"'full' reaches 1\.978.*5-gram 1\.32"):
        protocol.compared(LETTERS, scores, lines, {"full": "full", "other": "full"})


def test_who_stands_beside_one_that_has_not_learned_says_nothing() -> None:
    scores = {
        "full": [1.2] * 5,
        "own": [2.3, 2.31, 2.3, 2.32, 2.3],
        "windows": [1.3, 1.29] * 2 + [1.3],
    }
    lines = [{"5-gram": 1.32}] * 5
    rivals = {"full": "full", "own": "full", "windows": "own"}
    found = protocol.compared(LETTERS, scores, lines, rivals)
    assert found["own"]["word"] == found["windows"]["word"] == "has not learned it"
    assert found["windows"]["beside"] == "own" and found["windows"]["difference"] < -0.9


def test_a_reference_that_is_no_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="whole: no variant; there are full"):
        protocol.experiment({"full": plain}, LETTERS, reference="whole")


def test_a_few_steps_have_marks_and_a_score() -> None:
    found = protocol.measured(plain, WHICH_DIGIT, 1, 8, 1e-2)
    assert len(found["curve"]) == len(protocol.MARKS) and found["score"] == found["curve"][-1]
    assert 0 < found["score"] < 1 and found["flops"] > 0


# --- what is stored -------------------------------------------------------------------------------

BY_PROTOCOL = [
    name
    for name in runner.all_experiments()
    if (tfviz_lab.stored.RESULTS / f"{name}.json").exists()
    and any("reference" in exam for exam in tfviz_lab.load(name).get("exams", {}).values())
]


@pytest.mark.parametrize("name", BY_PROTOCOL)
def test_no_stored_reference_loses_to_its_trivial_line(name: str) -> None:
    for exam, found in tfviz_lab.load(name)["exams"].items():
        for reference in {name for name, of in found["reference"].items() if name == of}:
            line = mean(found["trivial"][found["bar"]])
            assert mean(found["scores"][reference]) < line, (exam, reference)


def test_logits_of_hidden_places_alone_are_scored() -> None:
    rows, _, scored = trivial.hidden_rows()

    class Knows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen = getattr(self, "seen", 0) + len(x)
            wide = F.one_hot(rows[self.seen - len(x) : self.seen], len(data.characters()[1]) + 1)
            return 100.0 * wide

    assert protocol.hidden_text(Knows()) == 0 and scored.any()
