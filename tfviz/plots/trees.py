"""All sequences that a small language model can write, and those that a strategy finds."""

from collections.abc import Mapping, Sequence

from tfviz._labels import label, labels, named
from tfviz.plots.canvas import NORMAL, SMALL, WIDE, Canvas, fitted, text_width
from tfviz.plots.figure import Figure
from tfviz.plots.inputs import number
from tfviz.plots.roles import Role
from tfviz.plots.shapes import dots, segments

Model = Mapping[tuple[str, ...], Mapping[str, float]]
ROW, STEP, INDENT, TOP = 26, 132, 26, 34
BEFORE = 74
"""Room for a token and its probability before its node, in px."""


def tree(
    model: Model,
    ways: Mapping[str, Sequence[str]],
    *,
    highlight: str,
    looked_at: Sequence[Sequence[str]] = (),
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """Every path with its probability: tokens so far → {next token: p}.

    `ways` are complete sequences by name, written at their leaves; the one to `highlight` is
    violet, the others have a dash each. Nodes that were `looked_at` are filled, the others hollow.
    """
    model = {
        tuple(labels("tokens of model", node)): named(f"model[{node!r:.80}]", shares)
        for node, shares in model.items()
    }
    ways = {name: labels(f"ways[{name!r}]", way) for name, way in named("ways", ways).items()}
    looked_at = [labels("looked_at", node) for node in looked_at]
    highlight = label("highlight", highlight)
    for tokens, given in model.items():
        if abs(sum(given.values()) - 1) > 1e-6:
            raise ValueError(
                f"model[{tokens}] sums to {sum(given.values()):.4g}; give probabilities"
            )
    leaves = [way for way, _ in _ends(model, (), 1.0)]
    for name, way in ways.items():
        if tuple(way) not in leaves:
            raise ValueError(f"ways[{name!r}] = {tuple(way)} is no path of the model to its end")
    if highlight not in ways:
        raise ValueError(f"highlight = {highlight!r}; choose one of {', '.join(ways)}")
    ends = dict(_ends(model, (), 1.0))
    names = {leaf: ", ".join(n for n, way in ways.items() if tuple(way) == leaf) for leaf in ends}
    words = [
        f"{' '.join(leaf)}: {p:.3f}{f' ({names[leaf]})' if names[leaf] else ''}"
        for leaf, p in ends.items()
    ]
    text = f"Tree of {len(leaves)} sequences with their probabilities. {'; '.join(words)}."

    def draw(room: float) -> Canvas:
        place = _spread if room == WIDE else _outline
        canvas, at = place(model, ends, names)
        _draw_edges(canvas, model, ways, highlight, at, upright=room != WIDE)
        seen = {tuple(node) for node in looked_at}
        fills: list[tuple[bool, Role]] = [(True, "ink"), (False, "page")]
        for inside, fill in fills:
            places = [at[node] for node in model if (node in seen) == inside]
            canvas.draw(dots(places, 4.5), "node", fill=fill, stroke="ink", width=1.5)
        for leaf, p in ends.items():
            role: Role = "muted"
            if names[leaf]:
                role = "attention" if tuple(ways[highlight]) == leaf else "ink"
            x, y = at[leaf]
            bold = bool(names[leaf])
            canvas.text(x + 14, y, f"{p:.3f}", role, va="middle", bold=bold)
            canvas.text(x + 62, y, names[leaf], role, size=NORMAL, va="middle", bold=bold)
        return canvas

    return Figure([fitted(draw, text)], alt=alt, caption=caption)


Places = dict[tuple[str, ...], tuple[float, float]]


def _right(names: Mapping[tuple[str, ...], str]) -> float:
    """Room for the probability of a leaf and its name."""
    return 66 + max(text_width(name, bold=True) for name in names.values())


def _spread(
    model: Model, ends: Mapping[tuple[str, ...], float], names: Mapping[tuple[str, ...], str]
) -> tuple[Canvas, Places]:
    """From the left to the right, a line for each leaf, each node in the middle of what follows."""
    depth = max(map(len, ends))
    step = _step(model)
    canvas = Canvas(16 + step * depth + _right(names), TOP + ROW * len(ends) + 6)
    y = {leaf: TOP + ROW * (n + 0.5) for n, leaf in enumerate(ends)}
    for node in sorted(model, key=len, reverse=True):
        below = [y[(*node, token)] for token in model[node]]
        y[node] = sum(below) / len(below)
    canvas.text(16 + step * depth + 14, 18, "p of all", "muted", size=SMALL)
    return canvas, {node: (16 + step * len(node), y[node]) for node in y}


def _step(model: Model) -> float:
    """From one node to the next in px: STEP, or as much more as the longest token needs."""
    tokens = [_token_width(model, (*node, token)) for node in model for token in model[node]]
    return STEP + max(0.0, max(tokens) + 8 - BEFORE)


def _outline(
    model: Model, ends: Mapping[tuple[str, ...], float], names: Mapping[tuple[str, ...], str]
) -> tuple[Canvas, Places]:
    """From the top to the bottom, a line for each node, leaves in one column."""
    order = _lines(model, ())
    tokens = [INDENT * len(node) + _token_width(model, node) for node in order if node]
    column = 30 + max(tokens)
    canvas = Canvas(column + _right(names), TOP + ROW * (len(order) - 1) + 20)
    canvas.text(column + 14, 18, "p of all", "muted", size=SMALL)
    at: Places = {
        node: (column if node in ends else 10 + INDENT * len(node), TOP + ROW * n)
        for n, node in enumerate(order)
    }
    return canvas, at


def _lines(model: Model, node: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A node and all below it, in the order of reading."""
    return [node, *(n for token in model.get(node, ()) for n in _lines(model, (*node, token)))]


def _token_width(model: Model, node: tuple[str, ...]) -> float:
    return text_width(f"{node[-1]} {number(model[node[:-1]][node[-1]])}")


def _draw_edges(
    canvas: Canvas,
    model: Model,
    ways: Mapping[str, Sequence[str]],
    highlight: str,
    at: Places,
    *,
    upright: bool,
) -> None:
    """From each node to what may follow, with the token; ways are drawn over it."""
    named = sorted(ways, key=lambda name: name == highlight)
    before = BEFORE + _step(model) - STEP
    for node, shares in model.items():
        for token, share in shares.items():
            child = (*node, token)
            (x, y), (_, end) = at[node], at[child]
            if upright:
                words = 10.0 + INDENT * len(child) + (12 if child in model else 6)
                edge = segments([(x, y, x, end), (x, end, x + INDENT, end)])
            else:
                words = at[child][0] - before
                edge = segments([(x, y, words - 4, end)])
            canvas.draw(edge, "edge", stroke="muted", width=1, opacity=0.45)
            for k, name in enumerate(named):
                if tuple(ways[name][: len(child)]) == child:
                    own = name == highlight
                    colour: Role = "attention" if own else "ink"
                    dash = () if own else (4 - k % 3, 2)
                    width = 3.5 if own else 2
                    canvas.draw(edge, "way", stroke=colour, width=width, dash=dash)
            canvas.text(words, end, f"{token} {number(share)}", va="middle")


def _ends(model: Model, node: tuple[str, ...], p: float) -> list[tuple[tuple[str, ...], float]]:
    """Every complete sequence below a node, in order, with its probability."""
    if node not in model:
        return [(node, p)]
    return [leaf for t, q in model[node].items() for leaf in _ends(model, (*node, t), p * q)]
