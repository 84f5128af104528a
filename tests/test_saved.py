"""Everything public that is a module survives what people do to models: it is pickled, saved whole,
copied, sent to a worker and to another process, and is then the same module."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from public import VOCAB, D, H, L, example, modules
from torch import Tensor, nn
from torch.utils.data import DataLoader

from tfviz import patterns
from tfviz.beyond_text.gtrxl import gated_transformer_xl
from tfviz.cores import Sparse, Where
from tfviz.longer_context.knn_lm import exact
from tfviz.models.bert import BERT
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import generate, watched
from tfviz.position.rope import Rope
from tfviz_lab import family
from tfviz_lab.compare import TASKS, told

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # they are found by their names

TEXT = torch.randint(VOCAB, (2, L), generator=torch.Generator().manual_seed(1))
MODULES = modules()


def saved_whole(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "torch.save": saved_whole,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def called(module: nn.Module) -> Any:
    """What it answers to what such a module is given; an error counts as its answer."""
    rng = torch.Generator().manual_seed(3)
    X = torch.randn(2, L, D, generator=rng)
    heads = [torch.randn(2, H, L, D // H, generator=rng) for _ in "QKV"]
    answers = []
    for given in ((TEXT,), (TEXT, TEXT), (X,), (X, X), (*heads, Where(patterns.causal()))):
        torch.manual_seed(4)
        try:
            answers.append(module(*given))
        except Exception as error:
            answers.append(f"{type(error)} {error}")
    return answers


def same(a: Any, b: Any) -> bool:
    """The same numbers wherever there are tensors."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (not isinstance(a, str) or a == b)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_the_same_wherever_it_was(name: str) -> None:
    module = example(MODULES[name]).eval()
    wanted, weights = called(module), module.state_dict()
    for way in WAYS.values():
        again = way(module)
        assert type(again).__name__ == type(module).__name__ and same(called(again), wanted)
    assert weights.keys() == module.state_dict().keys()
    file = io.BytesIO()
    torch.save(weights, file)
    file.seek(0)
    other = example(MODULES[name]).eval()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert same([*other.state_dict().values()], [*weights.values()])


@pytest.mark.parametrize("name", family.MECHANISMS)
def test_so_is_a_model_with_any_mechanism(name: str) -> None:
    torch.manual_seed(0)
    model = TASKS["text"].model(**told(lambda: family.variant(name, 64))).eval()
    text = torch.randint(VOCAB, (1, 64))
    wanted = model(text)
    for way in (WAYS["torch.save"], WAYS["deepcopy"]):  # after a call, whose graph is left behind
        assert same(way(model)(text), wanted)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "a gate's GPT": lambda: gated_transformer_xl(VOCAB, D, H, 2, 3),
    "patterns of heads": lambda: GPT(
        VOCAB, D, 2, 1, core=Sparse,
        pattern=patterns.per_head(patterns.strided(3), patterns.causal() & patterns.band(2)),
    ),
    "a table": lambda: BERT(VOCAB, D, H, 1, pattern=patterns.table(torch.eye(L).bool())),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_so_is_a_model_with_what_is_made_of_others(name: str) -> None:
    model = MODELS[name]().eval()
    for way in WAYS.values():
        assert same(way(model)(TEXT), model(TEXT))


def test_a_search_is_stored_with_its_keys() -> None:
    keys = torch.randn(9, 3).numpy()
    question = torch.randn(2, 3), 4
    assert same([*pickle.loads(pickle.dumps(exact(keys)))(*question)], [*exact(keys)(*question)])


def test_what_a_cache_holds_is_of_the_model_that_was_stored_with_it() -> None:
    """Half of a text is read, model and cache are stored together, and the text goes on."""
    model = GPT(VOCAB, D, H, 2, core=Rope).eval().requires_grad_(False)
    cache: dict[nn.Module, Any] = {}
    model(TEXT[:, :5], cache)
    for way in (WAYS["pickle"], WAYS["torch.save"], WAYS["deepcopy"]):
        again, kept = way((model, cache))
        assert same(again(TEXT[:, 5:], kept), model(TEXT[:, 5:], dict(cache)))


class Written:
    """A data set whose entries a model writes."""

    def __init__(self, model: GPT) -> None:
        self.model = model

    def __len__(self) -> int:
        return 2

    def __getitem__(self, n: int) -> Tensor:
        return generate(self.model, TEXT[n : n + 1], 3)[0]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_worker_of_a_loader_has_the_model(context: str) -> None:
    model = GPT(VOCAB, D, H, 1, pattern=patterns.sliding_window(4)).eval()
    data: Any = Written(model)
    loaded = DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context=context)
    (written,) = loaded
    assert written.equal(generate(model, TEXT, 3))


def test_another_python_loads_what_was_saved(tmp_path: Path) -> None:
    """A process that has imported nothing of the library."""
    model = EncoderDecoder(VOCAB, D, H, 1, core=Rope).eval()
    torch.save((model, TEXT), tmp_path / "model.pt")
    code = (
        "import torch; model, t = torch.load('model.pt', weights_only=False);"
        "torch.save(model(t, t), 'logits.pt')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    torch.testing.assert_close(torch.load(tmp_path / "logits.pt"), model(TEXT, TEXT))


def test_a_watched_model_is_copied_without_the_graph_of_its_last_call() -> None:
    model = GPT(VOCAB, D, H, 1)
    with watched(model):
        model(TEXT)
        again = copy.deepcopy(model)
        assert same(again(TEXT), model(TEXT))


@torch.no_grad()
def test_a_compiled_model_is_stored_as_the_model_that_it_is() -> None:
    """Without a compiler: what torch wraps around the model, and its weights."""
    model = GPT(VOCAB, D, H, 1, core=Rope).eval()
    compiled: Any = torch.compile(model, backend="eager")
    wanted = compiled(TEXT)
    for way in (WAYS["pickle"], WAYS["torch.save"], WAYS["deepcopy"]):
        torch.testing.assert_close(way(compiled)(TEXT), wanted)
