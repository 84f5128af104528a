"""All sequences that a small language model can write, and those that a strategy finds."""

from collections.abc import Mapping, Sequence

from tfviz.plots.canvas import NORMAL, SMALL, Canvas, dots, segments, text_width
from tfviz.plots.figure import Figure
from tfviz.plots.inputs import number
from tfviz.plots.roles import Role

Model = Mapping[tuple[str, ...], Mapping[str, float]]
ROW, STEP, TOP = 26, 132, 34


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
    depth = max(map(len, leaves))
    right = max(text_width(", ".join(n for n, w in ways.items() if tuple(w) == x)) for x in leaves)
    canvas = Canvas(16 + STEP * depth + 66 + right, TOP + ROW * len(leaves) + 6)
    y = {leaf: TOP + ROW * (n + 0.5) for n, leaf in enumerate(leaves)}
    for node in sorted(model, key=len, reverse=True):
        below = [y[(*node, token)] for token in model[node]]
        y[node] = sum(below) / len(below)
    x = {node: 16 + STEP * len(node) for node in y}
    named = sorted(ways, key=lambda name: name == highlight)
    for node, shares in model.items():
        for token, share in shares.items():
            child = (*node, token)
            ends = (x[node], y[node], x[child] - 78, y[child])
            canvas.draw(segments([ends]), "edge", stroke="muted", width=1, opacity=0.45)
            for k, name in enumerate(named):
                if tuple(ways[name][: len(child)]) == child:
                    own = name == highlight
                    colour: Role = "attention" if own else "ink"
                    dash = "solid" if own else (0, (4 - k % 3, 2))
                    width = 3.5 if own else 2
                    canvas.draw(segments([ends]), "way", stroke=colour, width=width, dash=dash)
            canvas.text(x[child] - 74, y[child], f"{token} {number(share)}", va="middle")
    seen = {tuple(node) for node in looked_at}
    fills: list[tuple[bool, Role]] = [(True, "ink"), (False, "page")]
    for inside, fill in fills:
        places = [(x[node], y[node]) for node in model if (node in seen) == inside]
        canvas.draw(dots(places, 4.5), "node", fill=fill, stroke="ink", width=1.5)
    canvas.text(x[leaves[0]] + 14, 18, "p of all", "muted", size=SMALL)
    words = []
    for leaf, p in _ends(model, (), 1.0):
        names = [name for name, way in ways.items() if tuple(way) == leaf]
        best = highlight in names
        label = ", ".join(names)
        weight = "bold" if names else "normal"
        role: Role = "attention" if best else "ink" if names else "muted"
        canvas.text(x[leaf] + 14, y[leaf], f"{p:.3f}", role, va="middle", weight=weight)
        canvas.text(x[leaf] + 62, y[leaf], label, role, size=NORMAL, va="middle", weight=weight)
        words.append(f"{' '.join(leaf)}: {p:.3f}{f' ({label})' if label else ''}")
    text = f"Tree of {len(leaves)} sequences with their probabilities. {'; '.join(words)}."
    return Figure([canvas.panel(text)], alt=alt, caption=caption)


def _ends(model: Model, node: tuple[str, ...], p: float) -> list[tuple[tuple[str, ...], float]]:
    """Every complete sequence below a node, in order, with its probability."""
    if node not in model:
        return [(node, p)]
    return [leaf for t, q in model[node].items() for leaf in _ends(model, (*node, t), p * q)]
