"""Results of a comparison: scores of every seed, differences with intervals, and trivial lines."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import mean
from typing import Any

from tfviz._labels import shown as visible
from tfviz.plots.canvas import NORMAL, SMALL, Canvas, fitted, text_width, wrapped
from tfviz.plots.figure import Figure
from tfviz.plots.shapes import dots, rectangles, segments
from tfviz.plots.ticks import even_ticks

ROW, TOP, LEFT, AXIS = 56, 6, 6, 34
Scores = Sequence[float]


def outcomes(
    found: Mapping[str, Any],
    *,
    names: Mapping[str, str] | None = None,
    percent: bool = False,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """One exam of a stored comparison: each variant a row, with what may be said of it.

    Dots are seeds. A bar is the 95 % interval of the difference to the reference, drawn from the
    reference's mean, so that a bar which meets that line tells nothing apart. Dashed lines are what
    rules reach that learn nothing.

    Args:
        found: unit, scores, reference, outcomes and trivial, as an experiment by the protocol of
            `tfviz_lab` stores them.
        names: other names for variants; those that are not in it are left out.
        percent: whether scores are shares, to be shown in percent.

    Raises ValueError for what is no such result, and for a name that is no variant.
    """
    missing = [
        key
        for key in ("unit", "scores", "reference", "outcomes", "trivial", "bar")
        if key not in found
    ]
    if missing:
        raise ValueError(
            f"found has no {', '.join(missing)}; give one exam of a stored comparison, "
            'load(NAME)["exams"][…]'
        )
    names = {name: name for name in found["scores"]} if names is None else names
    if unknown := [name for name in names if name not in found["scores"]]:
        raise ValueError(f"names has {unknown[0]!r}; variants are {', '.join(found['scores'])}")
    names = {name: visible(text) for name, text in names.items()}
    by = 100.0 if percent else 1.0
    rows = {name: [by * x for x in found["scores"][name]] for name in names}
    lines = {visible(name): by * mean(scores) for name, scores in found["trivial"].items()}
    unit = visible(found["unit"]) + (", %" if percent else "")
    told = {name: _told(found, name, by, rows[name]) for name in rows}
    words = [f"{names[name]}: {mean(rows[name]):.3g} ({said})" for name, said in told.items()]
    words += [f"{name}: {x:.3g}" for name, x in lines.items()]
    own = alt or f"{unit}, each dot a seed. {'; '.join(words)}."
    shown = {names[name]: (rows[name], told[name], _bar(found, name, by)) for name in rows}
    panel = fitted(lambda room: _draw(shown, lines, lines[visible(found["bar"])], unit, room), own)
    return Figure([panel], caption=caption)


def _told(found: Mapping[str, Any], name: str, by: float, scores: Scores) -> str:
    """What may be said of a variant, in a line."""
    said = found["outcomes"].get(name)
    if said is None:
        return f"mean {mean(scores):.3g}; others are compared with it"
    apart, (low, high) = by * said["difference"], (by * x for x in said["interval"])
    beside = f" than {visible(said['beside'])}" if len({*found["reference"].values()}) > 1 else ""
    amount = f"{abs(apart):.3f}" if by == 1 else f"{abs(apart):.1f}"
    between = [f"{x:+.3f}" if by == 1 else f"{x:+.1f}" for x in (low, high)]
    how = "more" if apart > 0 else "less"
    return f"{said['word']}: {amount} {how}{beside} ({' to '.join(between)})".replace("-", "−")


def _bar(found: Mapping[str, Any], name: str, by: float) -> tuple[float, float] | None:
    """The interval, from the mean of the reference."""
    said = found["outcomes"].get(name)
    if said is None:
        return None
    middle = mean(found["scores"][said["beside"]])
    low, high = said["interval"]
    return by * (middle + low), by * (middle + high)


Shown = Mapping[str, tuple[Scores, str, tuple[float, float] | None]]


def _draw(rows: Shown, lines: Mapping[str, float], bar: float, unit: str, room: float) -> Canvas:
    width = min(room, 640)
    seen = [*chain.from_iterable(scores for scores, _, _ in rows.values()), bar]
    seen += chain.from_iterable(ends for _, _, ends in rows.values() if ends)
    low, high = min(seen), max(seen)
    margin = 0.06 * (high - low or 1)
    low, high = low - margin, high + margin
    near = {name: x for name, x in lines.items() if low <= x <= high}
    far = [f"{name} {x:.3g}" for name, x in lines.items() if name not in near]

    def at(x: float) -> float:
        return LEFT + (x - low) / (high - low) * (width - 2 * LEFT)

    spoken = {name: wrapped(said, width - 2 * LEFT, SMALL) for name, (_, said, _) in rows.items()}
    heights = {name: ROW + 14 * (len(said) - 1) for name, said in spoken.items()}
    below = TOP + sum(heights.values())
    notes = [f"{name} {x:.3g}" for name, x in sorted(near.items(), key=lambda pair: pair[1])]
    note = wrapped(
        "Dashed: " + ", ".join(notes) + (f". Off the scale: {', '.join(far)}" if far else ""),
        width - 2 * LEFT,
        SMALL,
    )
    canvas = Canvas(width, below + AXIS + 16 + 14 * len(note))
    for x in near.values():
        canvas.draw(
            segments([(at(x), TOP, at(x), below)]),
            "trivial",
            stroke="muted",
            width=1.5,
            dash=(3, 3),
        )
    y = float(TOP)
    for name, (scores, _, ends) in rows.items():
        canvas.text(LEFT, y + 12, name, bold=ends is None, halo=True)
        track = y + 25
        canvas.draw(segments([(LEFT, track, width - LEFT, track)]), "track", stroke="grid")
        if ends:
            left, right = map(at, ends)
            box = (left, track - 4, max(right - left, 1.5), 8)
            canvas.draw(rectangles([box]), "interval", fill="attention", opacity=0.35)
        else:
            x = at(mean(scores))
            canvas.draw(segments([(x, TOP, x, below)]), "reference", stroke="attention")
        canvas.draw(dots([(at(x), track) for x in scores], 3), "seed", fill="ink", opacity=0.6)
        x = at(mean(scores))
        canvas.draw(segments([(x, track - 7, x, track + 7)]), "mean", stroke="ink", width=2)
        for n, line in enumerate(spoken[name]):
            canvas.text(LEFT, y + 45 + 14 * n, line, "muted", size=SMALL, halo=True)
        y += heights[name]
    canvas.draw(segments([(LEFT, below, width - LEFT, below)]), "axis", stroke="muted")
    most = max(3, int(width // 90))
    for x in even_ticks(low, high, most):
        canvas.draw(segments([(at(x), below, at(x), below + 4)]), "tick", stroke="muted")
        label = f"{x:g}"
        half = text_width(label, SMALL) / 2
        middle = min(max(at(x), LEFT + half), width - LEFT - half)
        canvas.text(middle, below + 17, label, "muted", size=SMALL, ha="center")
    canvas.text(width / 2, below + AXIS, unit, size=NORMAL, ha="center")
    for n, line in enumerate(note):
        canvas.text(LEFT, below + AXIS + 18 + 14 * n, line, "muted", size=SMALL)
    return canvas
