"""What every experiment keeps: a few steps of its first run, and all is said.

An experiment is tried as its first run is recorded, but for the number of steps, unless it brings a
tiny configuration or a reason. The same configuration and seed give the same numbers to the last
bit; the random numbers outside stay alone; what comes out has the form of what is stored; and it
learns: on the batches of its first steps, the losses are below those of the same model whose
weights no step moves. What only one experiment promises stands in a test of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

import tfviz_lab
from tfviz_lab import records, runner
from tfviz_lab.runner import Run

RESTS_ON = ("tfviz/**", "tfviz_lab/**")  # by the names of experiments

Result = Any


@dataclass(frozen=True)
class Tiny:
    """A run of a few steps, and what must be true of its result."""

    experiment: str
    config: Mapping[str, Any]
    shows: Callable[[Any, Result], bool] = lambda module, result: True
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.experiment}-{'-'.join(str(x) for x in self.config.values())}"


def by_protocol(exam: str, variant: str) -> dict[str, Any]:
    """A run of the protocol that is scored, of a few steps."""
    return {"part": "score", "exam": exam, "variant": variant, "steps": 3, "rate": 3e-3}


TINY = [
    Tiny(  # its first run is the lines that nothing is trained for
        "baseline_lost",
        {
            "part": "digits",
            "variant": "full attention",
            "std": 0.5,
            "steps": 2,
            "rate": 3e-3,
        },
    ),
    Tiny("adaptive_spans", {"price": 0.002, "start": 32, "steps": 2}),
    Tiny("dynamic_spans", {"variant": "priced", "price": 0.01, "start": 32, "steps": 3}),
    *(
        Tiny(name, {"part": "score", "exam": exam, "variant": variant, "steps": 3, "rate": 3e-3})
        for name, exam, variant in (
            ("linformer", "hidden", "Linformer"),
            ("linformer_digits", "which_digit", "k = 4"),
        )
    ),
    Tiny(
        "attention_and_convolution",
        {"variant": "Conformer", "steps": 3},
        shows=lambda module, result: len(result["F1"]) == 1,
    ),
    Tiny(
        "gaussian_localness",
        {"core": "query", "steps": 2},
        shows=lambda module, result: (
            len(result["places"]) == len(result["windows"]) == module.LENGTH
        ),
    ),
    Tiny("gaussian_bias", {"task": "neighbours", "core": "prior", "steps": 2}),
    Tiny(
        "knn_memory_recall",
        {"m": 32, "steps": 2},
        shows=lambda module, result: len(result["sizes"]) == len(module.SIZES),
    ),
    Tiny("local_and_global", {"variant": "and labels", "steps": 3}),
    Tiny("ponder_time", {"tau": 0.01, "steps": 2}),
    Tiny("see_and_hear", {"task": "variant", "variant": "joint", "steps": 2}),
    # its first run unpacks weights into a new model, which draws random numbers of its own
    Tiny("vit_digits", by_protocol("which_image", "patches of 4 × 4")),
    Tiny("luna_digits", by_protocol("which_digit", "l = 4")),
]


FEWEST = {"gated_policy": 10, "position_tables": 20}
"""So many steps where two are too few: what is reported is a mean over as many."""

LEFT_OUT = {
    "auxiliary_losses": {"by_layer"},
    "digits": {"parameters"},
    "extrapolation": {"parameters"},
    "family": {"parameters", "threads"},
    "position_tables": {"cosines"},
}
"""What a run says, and its record does not hold."""

SLOW = "it scores so much that its numbers take longer than its training"
OTHERWISE = {
    **dict.fromkeys(("band_fit", "decoding", "exits", "head_sharing", "knn_language_model"), SLOW),
    **dict.fromkeys(("prototypes", "random_features", "rotary", "shared_features"), SLOW),
    **dict.fromkeys(("memory_compressed", "race", "window_lead"), SLOW),
    "grouped_decode": "it measures time",
    "talking_heads_cost": "it measures time",
    "norm_order": "how many steps it takes is its result",
    "routed_heads": "what it counts takes no steps of training",
    "story": "its own test tries it, and nothing is recorded before its gate is passed",
    "trivial_lines": "nothing is trained",
}
"""Experiments that are not tried, and why."""


def tiny(experiment: str) -> Tiny:
    """A few steps of the first training of an experiment that brings nothing."""
    runs = tfviz_lab.module_of(experiment).runs()
    run = next((run for run in runs if "steps" in run.config), runs[0])
    steps = FEWEST.get(experiment, 2)
    return Tiny(experiment, {**run.config, "steps": steps}, seed=run.seed)


BROUGHT = {one.experiment for one in TINY}
ASKED = [name for name in runner.all_experiments() if name not in {*BROUGHT, *OTHERWISE}]


def stored(tiny: Tiny) -> list[Result]:
    """What is recorded of runs whose configuration has the same names and texts."""
    texts = {name: x for name, x in tiny.config.items() if isinstance(x, str)}
    record = records.load(tiny.experiment)
    assert record, f"{tiny.experiment} has no record"
    found = [
        done["result"]
        for done in record["runs"]
        if done["run"]["config"].keys() == tiny.config.keys()
        and texts.items() <= done["run"]["config"].items()
    ]
    assert found, f"no run of {tiny.experiment} is recorded with {dict(tiny.config)}"
    return found


def unlike(one: Any, other: Any, where: str = "result") -> list[str]:
    """Where two results have other names or other kinds of values; lengths may differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() & other.keys()
        more = [line for name in sorted(same) for line in unlike(one[name], other[name], name)]
        if one.keys() == other.keys():
            return more
        return [f"{where}: {sorted(one)} and {sorted(other)}", *more]
    if isinstance(one, list) and isinstance(other, list):
        return unlike(one[0], other[0], f"{where}[0]") if one and other else []
    numbers = (int, float, type(None))
    alike = type(one) is type(other) or (isinstance(one, numbers) and isinstance(other, numbers))
    return [] if alike else [f"{where}: {type(one).__name__} and {type(other).__name__}"]


@pytest.mark.parametrize("tiny", [*TINY, *map(tiny, ASKED)], ids=str)
def test_a_few_steps_repeat_exactly_and_have_the_form_that_is_stored(tiny: Tiny) -> None:
    module = tfviz_lab.module_of(tiny.experiment)
    state = torch.random.get_rng_state()
    first, again = (
        json.loads(json.dumps(module.measure(dict(tiny.config), tiny.seed), allow_nan=False))
        for _ in range(2)
    )
    assert first == again, "the same seed gives other numbers"
    assert state.equal(torch.random.get_rng_state()), "it draws from the random numbers outside"
    left_out = LEFT_OUT.get(tiny.experiment, set())
    held = {name: x for name, x in first.items() if name not in left_out}
    forms = [unlike(held, result) for result in stored(tiny)]
    assert [] in forms, min(forms, key=len)
    assert tiny.shows(module, first)


# --- it learns ------------------------------------------------------------------------------------

STEPS = 5
"""So many of the first training of a run are looked at, and then it ends, before it scores."""

DOES_NOT_LEARN = {
    "gated_policy": "it learns from rewards, and its loss is no measure of them",
    "grouped_decode": "it measures the time of an untrained model",
    "talking_heads_cost": "it measures the time of an untrained model",
    "trivial_lines": "nothing is trained",
}
"""Experiments that are not asked whether they learn, and why."""


INSTEAD = {"vit_digits": {"part": "rate", "variant": "patches of 4 × 4", "rate": 3e-3}}
"""Whose first training takes longer to begin, and which one is asked."""


class EnoughError(Exception):
    """What was to be seen has been seen."""


def losses(module: Any, run: Run, still: bool = False) -> list[float]:
    """Those of the first steps of its first training; `still`: no step moves a weight."""
    found, said, backward = list[float](), list[float](), Tensor.backward

    def noted(loss: Tensor, *how: Any, **more: Any) -> None:
        said.append(loss.item())
        backward(loss, *how, **more)

    def before(optimizer: Optimizer, *_: Any) -> None:
        found.append(sum(said))
        said.clear()
        if len(found) == STEPS:
            raise EnoughError
        for group in optimizer.param_groups if still else ():
            for weight in group["params"]:
                weight.grad = None

    hook = register_optimizer_step_pre_hook(before)
    try:
        with patch.object(Tensor, "backward", noted):
            module.measure(dict(run.config), run.seed)
    except EnoughError:
        pass
    finally:
        hook.remove()
    return found


def learns(module: Any, run: Run) -> bool:
    """Whether its losses are below those of its untrained model, on the same batches."""
    trained, untrained = losses(module, run), losses(module, run, still=True)
    assert len(trained) == len(untrained) == STEPS, f"{len(trained)} steps"
    assert trained[0] == untrained[0], "it begins otherwise"
    return sum(trained[1:]) < sum(untrained[1:])


def first_training(name: str) -> Run | None:
    """The first run that says how many steps it trains; None if none does."""
    wanted = INSTEAD.get(name, {}).items()
    runs = tfviz_lab.module_of(name).runs()
    return next((x for x in runs if "steps" in x.config and wanted <= x.config.items()), None)


@pytest.mark.parametrize("name", [x for x in runner.all_experiments() if x not in DOES_NOT_LEARN])
def test_it_learns(name: str) -> None:
    run = first_training(name)
    assert run is not None, "it trains nothing; say so in DOES_NOT_LEARN"
    assert learns(tfviz_lab.module_of(name), run)


def test_who_does_not_learn_says_why() -> None:
    assert DOES_NOT_LEARN.keys() | INSTEAD.keys() <= set(runner.all_experiments())
    assert {name for name in DOES_NOT_LEARN if first_training(name)} == {"gated_policy"}


@pytest.mark.parametrize(
    ("how", "learnt"),
    [({"lr": 0.1}, True), ({"lr": 0.0}, False), ({"lr": 0.1, "maximize": True}, False)],
    ids=str,
)
def test_what_does_not_learn_is_found(how: dict[str, Any], learnt: bool) -> None:
    """y = 3x with batches of very different sizes, which alone would hide what is learned."""

    def measure(config: Mapping[str, Any], seed: int) -> None:
        dice, line = torch.Generator().manual_seed(seed), nn.Linear(1, 1, bias=False)
        nn.init.zeros_(line.weight)
        optimizer = torch.optim.SGD(line.parameters(), **how)
        for step in range(9):
            x = (1 + step % 3) * torch.randn(8, 1, generator=dice) / 3
            optimizer.zero_grad()
            (line(x) - 3 * x).square().mean().backward()
            optimizer.step()

    assert learns(SimpleNamespace(measure=measure), Run("toy")) == learnt


# --- the law itself -------------------------------------------------------------------------------


def test_every_experiment_is_asked_or_says_why_not() -> None:
    every = set(runner.all_experiments())
    assert BROUGHT | OTHERWISE.keys() | LEFT_OUT.keys() | FEWEST.keys() <= every
    assert not BROUGHT & OTHERWISE.keys()
    assert {*ASKED} == every - BROUGHT - OTHERWISE.keys()
    assert all("steps" in one.config for one in map(tiny, ASKED))


def test_another_form_is_found() -> None:
    assert unlike({"a": [1.0]}, {"a": ["1.0"]}) == ["a[0]: float and str"]
    assert unlike({"a": 1, "b": 2}, {"a": 1.5}) == ["result: ['a', 'b'] and ['a']"]
    assert unlike({"a": [None, 1]}, {"a": [0.5]}) == []
