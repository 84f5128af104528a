"""*What a token costs*: its numbers, tables, figures and questions, counted by `tfviz.anatomy`.

    {counted}`cache llama-3.1-8b 8192`  a number in the text: a key of `NUMBERS` and its words
    ```{counted-table} phases           a table: a key of `TABLES`
    ```{counted-figure} heads           a figure: a key of `FIGURES`
    ```{counted-ask} cache              a number that the reader types, with the question as body;
                                        what is right and what mistakes give: a key of `ASKED`

Weights and numbers in a cache have 16 bits here, and states 32, as `tfviz.anatomy` has it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from catalogue_directives import Directive, el, svg
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from tfviz import anatomy, plots
from tfviz.anatomy import Anatomy, census, counting
from tfviz.plots import Figure
from tfviz.plots.roles import LIGHT, Role

DENSE, SOME, MANY = "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"
"""The model that the page begins with, and two with few and with many experts."""
CARD = "H100"
TEXT, LONG = 8192, 131072
BYTES = 2
"""A weight, or a number of a cache."""
MODELS = str(Path(anatomy.__file__).with_name("models.toml"))


# --- how numbers are written ----------------------------------------------------------------------


def figures(number: float) -> str:
    """A number with three digits, or all those before the point."""
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"


def amount(number: float, names: Sequence[str], step: float) -> str:
    """A number with the largest unit that leaves at least 1 before the point."""
    at = 0
    while number >= step and at < len(names) - 1:
        number, at = number / step, at + 1
    return f"{figures(number)} {names[at]}"


def size(number: float) -> str:
    return amount(number, ("bytes", "KiB", "MiB", "GiB"), 1024)


def operations(number: float) -> str:
    return amount(number, ("operations", "thousand", "million", "billion", "trillion"), 1000)


def hundreds(number: float) -> str:
    return f"{round(number, -2):,.0f}"


def milliseconds(seconds: float) -> str:
    return f"{figures(1000 * seconds)} ms"


# --- what is counted ------------------------------------------------------------------------------


def attended(model: Anatomy) -> list[anatomy.Heads]:
    """The heads of each layer that attends."""
    return [layer.heads for layer in model.layers if layer.heads]


def token_bytes(model: Anatomy) -> int:
    """Bytes of keys, values or notes that the first token leaves in all layers."""
    return model.cache(1).parts["keys and values"]


def unshared_bytes(model: Anatomy) -> int:
    """The same, if every query head of every layer kept a key and a value of its own."""
    return BYTES * sum(a.queries * (a.key_width + a.value_width) for a in attended(model))


def weights_intensity(model: Anatomy, batch: int) -> float:
    """Operations for each byte of weights, at decode."""
    work, moved = model.flops(1, batch=batch), model.bytes_moved(1, batch=batch)
    return work.parts["weights"] / moved.parts["weights"]


def cache_intensity(model: Anatomy, L: int = LONG) -> float:
    """Operations for each byte of keys and values, at decode: the token after L − 1 has L keys."""
    work, moved = model.flops(L - 1), model.bytes_moved(L)
    return work.parts["pairs"] / moved.parts["keys and values"]


def state_intensity(model: Anatomy) -> float:
    work, moved = model.flops(TEXT), model.bytes_moved(TEXT)
    return work.parts["states"] / moved.parts["states"]


def most_intensity(model: Anatomy, L: int) -> float:
    """What a decode step comes to with more and more texts: each has its cache, weights vanish."""
    return model.flops(L) / sum(
        model.bytes_moved(L).parts[x] for x in ("keys and values", "states")
    )


def if_full(model: Anatomy, L: int) -> int | None:
    """Bytes of its cache if every layer attended to all tokens; None where that cannot be said."""
    whole = model.seeing_all()
    return None if whole is None else whole.cache(L)


def touched(model: Anatomy, batch: int) -> float:
    """Experts of a layer that a step with so many texts is expected to read."""
    return counting.experts_touched(model.fields, batch)


def expert_visits(model: Anatomy, batch: int) -> float:
    """Tokens for each of these experts."""
    return batch * int(model.fields["experts"]["chosen"]) / touched(model, batch)


def weights_bytes(model: Anatomy, batch: int) -> int:
    return model.bytes_moved(1, batch=batch).parts["weights"]


def busy(model: Anatomy) -> int:
    """The fewest texts that lift the operations for each byte of weights to the ridge."""
    batches = range(2**20)
    return bisect_left(
        batches, anatomy.CARDS[CARD].ridge, lo=1, key=partial(weights_intensity, model)
    )


def outweigh(model: Anatomy, L: int) -> int:
    """The fewest texts of L tokens of which the caches are more to read than the weights."""
    return weights_bytes(model, 1) // model.cache(L) + 1


def texts_that_fit(model: Anatomy, card: str, L: int) -> int:
    room = anatomy.CARDS[card].memory - BYTES * model.parameters.total
    return int(room // model.cache(L))


# --- numbers of the text --------------------------------------------------------------------------


def _heads(model: str, which: str) -> str:
    return str(getattr(attended(anatomy.of(model))[-1], which))


def _field(model: str, *keys: str) -> str:
    value: Any = anatomy.of(model).fields
    for key in keys:
        value = value[key]
    return f"{value:,}"


def _layers(model: str, mixer: str) -> str:
    return str(sum(layer.mixer.startswith(mixer) for layer in anatomy.of(model).layers))


def _layer_token(model: str, unit: str = "numbers") -> str:
    """What one full layer keeps of one token."""
    fields = anatomy.of(model).fields
    numbers = counting.keys_numbers(fields, fields["layers"].index("F"), 1)
    return f"{numbers:,}" if unit == "numbers" else f"{BYTES * numbers:,}"


def _layer_pair(model: str) -> str:
    """Operations of one full layer for one query and one key."""
    return f"{counting.pair_operations(anatomy.of(model).fields, 'F', absorbed=True)[0]:,}"


def _ordinary(model: str) -> str:
    """What ordinary heads as wide as the values of this model keep of a token in a layer."""
    heads = attended(anatomy.of(model))[-1]
    return f"{2 * heads.queries * heads.value_width:,}"


def _saved(model: str) -> str:
    fields, heads = anatomy.of(model).fields, attended(anatomy.of(model))[-1]
    kept = counting.keys_numbers(fields, fields["layers"].index("F"), 1)
    return f"{2 * heads.queries * heads.value_width / kept:.0f}"


def _point(phase: str, what: str, model: str = DENSE) -> str:
    point = getattr(anatomy.of(model).roofline(CARD, TEXT), phase)
    if what == "seconds":
        return milliseconds(point.seconds)
    return figures(point.intensity)


def _as_long_as(model: str = DENSE) -> str:
    """How many tokens of a prompt are read while one is written."""
    roofline = anatomy.of(model).roofline(CARD, TEXT)
    return figures(roofline.decode.seconds / (roofline.prefill.seconds / TEXT))


def _pairs(model: str, L: str) -> str:
    return operations(anatomy.of(model).flops(int(L)).parts["pairs"])


def _times_absorbed(model: str) -> str:
    """How many times the operations of a pair, if queries read notes."""
    fields = anatomy.of(model).fields
    absorbed, plain = (counting.pair_operations(fields, "F", how)[0] for how in (True, False))
    return figures(absorbed / plain)


def _indexed_share(model: str, beside: str) -> str:
    """Operations with keys, its indexer's among them, of those of another model, at 128k."""
    fewer, more = (anatomy.of(x).flops(LONG).parts["pairs"] for x in (model, beside))
    return f"{100 * fewer / more:.0f} %"


def _read_share(model: str, batch: str) -> str:
    """How much of all weights a step reads."""
    a = anatomy.of(model)
    return f"{100 * weights_bytes(a, int(batch)) / (BYTES * a.parameters.total):.0f} %"


def _dense_times(model: str, batch: str) -> str:
    """How many times the weights that one token uses a step reads."""
    a = anatomy.of(model)
    return figures(weights_bytes(a, int(batch)) / weights_bytes(a, 1))


def _state_tokens(model: str) -> str:
    """How many tokens its full layers keep in as many bytes as its states take."""
    cache = anatomy.of(model).cache(1).parts
    return figures(cache["states"] / cache["keys and values"])


NUMBERS: dict[str, Callable[..., str]] = {
    "models": lambda: str(len(anatomy.names())),
    "heads": _heads,
    "field": _field,
    "layers": _layers,
    "card-operations": lambda card: operations(anatomy.CARDS[card].operations),
    "card-bytes": lambda card: f"{anatomy.CARDS[card].bandwidth / 1e12:g} trillion",
    "card-memory": lambda card: f"{anatomy.CARDS[card].memory / 1e9:g}",
    "ridge": lambda card: figures(anatomy.CARDS[card].ridge),
    "point": _point,
    "as-long-as": _as_long_as,
    "weights": lambda model: operations(anatomy.of(model).parameters.total),
    "active": lambda model: operations(anatomy.of(model).parameters.active_without_input),
    "weights-bytes": lambda model, batch: size(weights_bytes(anatomy.of(model), int(batch))),
    "cache": lambda model, L: size(anatomy.of(model).cache(int(L))),
    "states": lambda model: size(anatomy.of(model).cache(1).parts["states"]),
    "if-full": lambda model, L: size(if_full(anatomy.of(model), int(L)) or 0),
    "layer-token": _layer_token,
    "layer-pair": _layer_pair,
    "ordinary": _ordinary,
    "saved": _saved,
    "pairs": _pairs,
    "work-weights": lambda model: operations(anatomy.of(model).flops(1).parts["weights"]),
    "times-absorbed": _times_absorbed,
    "indexed-share": _indexed_share,
    "work": lambda model, L: operations(anatomy.of(model).flops(int(L))),
    "cache-intensity": lambda model: figures(cache_intensity(anatomy.of(model))),
    "state-intensity": lambda model: figures(state_intensity(anatomy.of(model))),
    "state-tokens": _state_tokens,
    "most-intensity": lambda model, L: figures(most_intensity(anatomy.of(model), int(L))),
    "outweigh": lambda model, L: str(outweigh(anatomy.of(model), int(L))),
    "fit": lambda model, card, L: str(texts_that_fit(anatomy.of(model), card, int(L))),
    "turning": lambda model: hundreds(anatomy.of(model).roofline(CARD).turning_batch),
    "busy": lambda model: hundreds(busy(anatomy.of(model))),
    "touched": lambda model, batch: figures(touched(anatomy.of(model), int(batch))),
    "visits": lambda model, batch: figures(expert_visits(anatomy.of(model), int(batch))),
    "read-share": _read_share,
    "dense-times": _dense_times,
    "asked": lambda name: figures(ASKED[name]().right),
}


class Counted(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        kind, *words = self.text.split()
        self.env.note_dependency(MODELS)
        try:
            number = NUMBERS[kind](*words)
        except (KeyError, ValueError, TypeError) as error:
            assert isinstance(self.inliner, Inliner)
            why = f"{{counted}}`{self.text}`: {error}; known are {', '.join(NUMBERS)}"
            return [], [self.inliner.reporter.error(why, line=self.lineno)]
        return [nodes.Text(number.replace(" ", "\u00a0"))], []


# --- tables ---------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table in Markdown: columns of words, then columns of numbers."""
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _phases() -> str:
    roofline = anatomy.of(DENSE).roofline(CARD, TEXT)
    head = ("phase", "operations", "bytes moved", "operations a byte", f"least time on an {CARD}")
    rows = [
        (
            words,
            operations(point.operations),
            size(point.bytes),
            figures(point.intensity),
            milliseconds(point.seconds),
        )
        for words, point in (
            (f"prefill: read {TEXT:,} tokens", roofline.prefill),
            ("decode: write one more", roofline.decode),
        )
    ]
    return table(head, rows)


def _schemes() -> str:
    head = ("model", "query heads", "key heads", "a token keeps", "operations a byte of cache")
    rows = []
    for name in ("llama-2-7b", DENSE, "llama-3.1-405b", "falcon-7b", MANY):
        model = anatomy.of(name)
        heads = attended(model)[-1]
        shared = "notes" if "latent" in model.fields else str(heads.keys)
        what = size(token_bytes(model)), figures(cache_intensity(model))
        rows.append((model.name, str(heads.queries), shared, *what))
    return table(head, rows)


def _past() -> str:
    head = (
        "model",
        "layers that keep less",
        "cache at 8k",
        "cache at 128k",
        "at 128k, if all were full",
    )
    rows = []
    for name in ("gemma-3-27b", "gpt-oss-120b", "qwen3-next-80b", "kimi-linear-48b", "mamba2-2.7b"):
        model = anatomy.of(name)
        full = sum(layer.mixer in ("full", "latent") for layer in model.layers)
        window = model.fields.get("window")
        words = f"windows of {window:,}" if window else "states"
        some = f"{len(model.layers) - full} of {len(model.layers)}: {words}"
        bytes_if_full = if_full(model, LONG)
        whole = size(bytes_if_full) if bytes_if_full else "–"
        rows.append((model.name, some, *(size(model.cache(L)) for L in (TEXT, LONG)), whole))
    return table(head, rows, words=2)


def _experts() -> str:
    model = anatomy.of(MANY)
    head = (
        *("texts at once", "experts read in each layer", "tokens per expert read"),
        *("weights read", "weights read per text"),
    )
    rows = []
    for batch in (1, 8, 64, 512, 4096, 8192):
        moved = weights_bytes(model, batch)
        row = touched(model, batch), expert_visits(model, batch)
        rows.append((f"{batch:,}", *map(figures, row), size(moved), size(moved / batch)))
    return table(head, rows)


def _models() -> str:
    head = ("model", "weights, counted", "published", "difference", "cache at 128k")
    rows = []
    for name in anatomy.names():
        model = anatomy.of(name)
        total, published = model.parameters.total, model.facts["published"]
        off = f"{100 * (total / published - 1):+.1f} %".replace("-", "−")
        cache = model.cache(LONG)
        kept = size(cache) if cache else "–"
        rows.append((model.name, f"{total:,}", f"{published:,}", off, kept))
    return table(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "phases": _phases,
    "schemes": _schemes,
    "past": _past,
    "experts": _experts,
    "models": _models,
}


class CountedTable(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(MODELS)
        return self.blocks(_known(self, TABLES)())


# --- figures --------------------------------------------------------------------------------------


def batches() -> Figure:
    """The operations a byte of a decode step, against the texts that are written together."""
    model, xs = anatomy.of(DENSE), [2**n for n in range(13)]
    lengths = (1024, TEXT, 65536)
    lines = {f"texts of {L:,} tokens": [model.intensity(L, batch=B) for B in xs] for L in lengths}
    lines = {
        "weights alone": [weights_intensity(model, B) for B in xs],
        f"ridge of an {CARD}": [anatomy.CARDS[CARD].ridge] * len(xs),
        **lines,
    }
    name = f"texts of {TEXT:,} tokens"
    return plots.curve(
        xs,
        lines,
        xlabel="texts that are written at once",
        ylabel="operations for each byte that is read",
        logx=True,
        logy=True,
        highlight=name,
        caption=f"{model.name} at decode. If only weights were read, "
        f"{anatomy.CARDS[CARD].ridge:.0f} texts at once would keep an {CARD} busy. With their "
        f"caches, texts of {TEXT:,} tokens never get beyond "
        f"{most_intensity(model, TEXT):.0f} operations a byte.",
    )


SCHEMES = {"MHA": "multi-head", "GQA": "grouped", "MQA": "multi-query", "MLA": "latent"}
LOOKS: Mapping[str, tuple[str, Role]] = {
    "multi-head": ("o", "muted"),
    "grouped": ("s", "ink"),
    "multi-query": ("^", "ink"),
    "latent": ("D", "attention"),
}

NAMED = {
    "GPT-3 175B": (-46, 10),
    "Llama 3.1 405B": (-44, 34),
    "Falcon 7B": (34, -26),
    "DeepSeek-V3": (-24, -38),
}
"""The dots that wear their names, and where, in points from the dot."""
THIN = {"arrowstyle": "-", "color": LIGHT["muted"], "linewidth": 0.8, "shrinkA": 0, "shrinkB": 4}


def dots() -> list[tuple[str, str, int, int]]:
    """(name, scheme, bytes of a token if nothing were shared, bytes of a token) of each model that
    keeps keys."""
    every = [anatomy.of(name) for name in anatomy.names()]
    keep = [model for model in every if token_bytes(model)]
    return [(x.name, SCHEMES[census.scheme(x)], unshared_bytes(x), token_bytes(x)) for x in keep]


def heads() -> Figure:
    known = dots()
    with plots.style():
        drawing, place = plt.subplots(figsize=(8.2, 5))
        low, high = min(x for *_, x, _ in known) * 0.7, max(x for *_, x, _ in known) * 1.5
        for times in (1, 8, 64):
            ends = (low / times / 1024, high / times / 1024)
            place.plot((low / 1024, high / 1024), ends, color=LIGHT["grid"], ls="-", lw=1.2)
            place.text(high / 1024, ends[1], f" ÷ {times}", va="center", color=LIGHT["muted"])
        for kind, (marker, role) in LOOKS.items():
            x, y = zip(*[dot[2:] for dot in known if dot[1] == kind], strict=True)
            place.plot(
                [n / 1024 for n in x],
                [n / 1024 for n in y],
                marker,
                color=LIGHT[role],
                markerfacecolor="none" if kind == "multi-head" else None,
                ms=7,
                label=kind,
            )
        for name, *_, x, y in known:
            if name in NAMED:
                at, to = (x / 1024, y / 1024), NAMED[name]
                short = name.replace(" 3.1", "")  # beside "÷ 8" there is little room on a phone
                place.annotate(
                    short, at, to, textcoords="offset points", ha="center", arrowprops=THIN
                )
        place.set(
            xscale="log",
            yscale="log",
            xlabel="KiB for a token if no head shared its keys",
            ylabel="KiB that it keeps",
            xlim=(low / 1024, high / 1024 * 1.01),
            ylim=(1, high / 1024),
        )
        for axis in (place.xaxis, place.yaxis):
            axis.set_major_formatter("{x:,.0f}")
        place.legend(loc="upper left")
    counts = {kind: [d for d in known if d[1] == kind] for kind in LOOKS}
    best = {kind: max(d[2] / d[3] for d in some) for kind, some in counts.items()}
    listed = ", ".join(f"{len(some)} {kind}" for kind, some in counts.items())
    return plots.figure(
        drawing,
        alt=f"{len(known)} models as dots on logarithmic axes: {listed}. Right is what a token "
        "would keep in all layers if no head shared its keys, up is what it keeps. Multi-head "
        f"models lie on the diagonal. Grouped ones keep up to {best['grouped']:.0f} times less, "
        f"multi-query ones up to {best['multi-query']:.0f} times, latent ones up to "
        f"{best['latent']:.0f} times.",
        caption=f"Each dot is one of {len(known)} public models that keep keys. The farther below "
        "the diagonal it lies, the more its heads share.",
    )


def weights_of_experts() -> Figure:
    xs = [4**n for n in range(8)]
    models = [anatomy.of(name) for name in (DENSE, SOME, MANY)]
    lines = {model.name: [weights_intensity(model, B) for B in xs] for model in models}
    dense, _, many = models
    count, chosen = (many.fields["experts"][x] for x in ("count", "chosen"))
    return plots.curve(
        xs,
        {f"ridge of an {CARD}": [anatomy.CARDS[CARD].ridge] * len(xs), **lines},
        xlabel="texts that are written at once",
        ylabel="operations for each byte of weights",
        logx=True,
        logy=True,
        highlight=many.name,
        caption=f"{dense.name} is dense. In {many.name}, a token chooses {chosen} of {count} "
        "experts: at first, each further text chooses others, which must be read too. Once all "
        "are read, further texts help as much as in a dense model.",
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "batches": batches,
    "heads": heads,
    "experts": weights_of_experts,
}


class CountedFigure(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(MODELS)
        return [svg(_known(self, FIGURES)().html)]


# --- questions ------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """The right number, how near an answer must be, and (number, what to say) of each mistake."""

    right: float
    near: float
    slips: tuple[tuple[float, str], ...]


def _asked_cache() -> Asked:
    """KiB that a token leaves in the cache of Qwen3 32B."""
    model = anatomy.of("qwen3-32b")
    right, layers = token_bytes(model) / 1024, len(model.layers)
    slips = (
        (right / 2, "That is half of it: keys and values are kept, in two bytes each."),
        (right / 4, "That is a quarter of it: count keys and values, in two bytes each."),
        (unshared_bytes(model) / 1024, "That is for 64 key heads; queries are not kept."),
        (right / layers, "That is one layer. Each layer keeps its own keys and values."),
        (right * 1024, "That many bytes are right. One KiB has 1,024 of them."),
        (right * 1.024, "That many thousand bytes are right. One KiB has 1,024."),
    )
    return Asked(right, 0.5, slips)


def _asked_note() -> Asked:
    """Operations for each byte of Kimi K2's cache."""
    model = anatomy.of("kimi-k2")
    latent, right = model.fields["latent"], cache_intensity(model)
    h, kept = latent["heads"], latent["note"] + latent["turned"]
    slips = (
        (h, "That is for the scores. The sum reads the same notes once more."),
        (h * latent["note"] / kept, "That is for the sum. The scores read the notes, too."),
        (2 * h, "Almost: the rotated key is no value, so the sum does not read it."),
        (right / 2, "That is half of it: a multiplication and an addition are two operations."),
        (right * 2, "That is twice as much: a number takes two bytes."),
        (1, "That is right for heads that share nothing. Here, all heads read one note."),
    )
    return Asked(right, 0.5, slips)


def _asked_experts() -> Asked:
    """Experts of a layer that 32 texts of gpt-oss 120B are expected to read."""
    model, batch = anatomy.of("gpt-oss-120b"), 32
    experts, right = model.fields["experts"], touched(model, batch)
    once = experts["count"] * (1 - (1 - 1 / experts["count"]) ** batch)
    slips = (
        (experts["count"], "There are 128 choices, but some of them fall on the same expert."),
        (experts["chosen"], "That is what one text reads."),
        (experts["count"] - right, "That many are chosen by none of the texts."),
        (right / experts["count"], "That is the share. How many of the 128 experts is it?"),
        (once, "That is right if each token chose one expert. It chooses four."),
    )
    return Asked(right, 0.5, slips)


ASKED: dict[str, Callable[[], Asked]] = {
    "cache": _asked_cache,
    "note": _asked_note,
    "experts": _asked_experts,
}


class CountedAsk(Directive):
    """A place for a number; asked.js fills it in. Without a script the question is there."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        self.env.note_dependency(MODELS)
        asked = _known(self, ASKED)()
        return [
            el(
                "div",
                el("p", *self.markdown(" ".join(self.content))),
                class_="tf-ask",
                data_ask=f"token-{self.arguments[0]}",
                data_is=asked.right,
                data_near=asked.near,
                data_slips=json.dumps([list(slip) for slip in asked.slips]),
            )
        ]


def _known(directive: Directive, known: Mapping[str, Callable[[], Any]]) -> Callable[[], Any]:
    """What a directive names. Raises a fault of the page that lists the names there are."""
    name = directive.arguments[0]
    if name not in known:
        raise directive.error(f"{directive.name} {name}: choose {', '.join(known)}")
    return known[name]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("counted", Counted())
    app.add_directive("counted-table", CountedTable)
    app.add_directive("counted-figure", CountedFigure)
    app.add_directive("counted-ask", CountedAsk)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
