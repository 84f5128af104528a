"""The same patterns as graphs: who looks at whom."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from tfviz.plots.canvas import NORMAL, SMALL, TITLE, WIDE, Canvas, fitted, text_width, wrapped
from tfviz.plots.figure import Figure
from tfviz.plots.inputs import (
    MaskLike,
    as_mask,
    keys_of,
    layer_masks,
    named_masks,
    position,
    ranges,
)
from tfviz.plots.roles import Role
from tfviz.plots.shapes import Box, dots, polygons, rectangles, segments, swings

GRAPH_UP_TO = 64


def _spacing(L: int, most: int, room: float) -> float:
    """From one position to the next, in px; `room` is that of all of them."""
    step = min(most, min(room, 560) / L)
    return int(step) if step >= 9 else step


def _check_size(L: int, name: str) -> None:
    if L > GRAPH_UP_TO:
        raise ValueError(f"L = {L} makes {name} unreadable; choose L <= {GRAPH_UP_TO}")


def _labelled(n: int, L: int, step: float) -> bool:
    every = next(k for k in (1, 2, 4, 8, 16) if k * step >= 20 or k == 16)
    return n % every == 0


def key_set(
    pattern: "MaskLike | Mapping[str, MaskLike]",
    L: int | None = None,
    query: int | None = None,
    *,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """One query's S_i along the sequence (default: the last query). A dict gives one strip each."""
    masks = named_masks(pattern, L, "pattern")
    length = masks[0][1].shape[-1]
    _check_size(length, "a strip of keys")
    query = length - 1 if query is None else position("query", query, length)
    strips = [(name, keys_of(cells, query)) for name, cells in masks]
    words = [
        f"{name + ': ' if name else ''}query {query} of {length} positions may attend to "
        f"{len(keys)} keys: {ranges(keys)}."
        for name, keys in strips
    ]

    def draw(room: float) -> Canvas:
        return _draw_key_set(strips, length, query, room)

    return Figure([fitted(draw, " ".join(words))], alt=alt, caption=caption)


def _draw_key_set(
    strips: Sequence[tuple[str, list[int]]], length: int, query: int, room: float
) -> Canvas:
    left = 12
    cell = _spacing(length, 36, room - 2 * left)
    high = max(cell, 14)
    named = len(strips) > 1
    each = high + (52 if named else 24)
    canvas = Canvas(max(left * 2 + length * cell, 220), 30 + len(strips) * each + 20)
    centre = left + (query + 0.5) * cell
    canvas.text(
        min(max(centre, 44), canvas.width - 44),
        13,
        f"query {query}",
        "query",
        bold=True,
        ha="center",
    )
    for n, (name, keys) in enumerate(strips):
        y = (22 if named else 30) + n * each
        if named:
            heading = f"{name}: {len(keys)} keys"
            canvas.text(left, y + 14, heading, size=TITLE, bold=True)
            canvas.widen(left, heading, TITLE, bold=True)
            y += 26
        tip = [(centre - 5, y - 10), (centre + 5, y - 10), (centre, y - 4)]
        canvas.draw(polygons([tip]), "query-pointer", fill="query")
        canvas.hatch((left, y, length * cell, high), cell)
        canvas.draw(
            rectangles([(left + j * cell, y, cell, high) for j in keys]), "kept", fill="attention"
        )
        grid = [(left + j * cell, y, left + j * cell, y + high) for j in range(1, length)]
        canvas.draw(segments(grid), "borders", stroke="grid")
        canvas.draw(rectangles([(left, y, length * cell, high)]), "borders", stroke="muted")
        own = rectangles([(left + query * cell, y, cell, high)])
        canvas.draw(own, "frame-halo", stroke="page", width=6)
        canvas.draw(own, "frame", stroke="query", width=3)
        for j in range(length):
            if _labelled(j, length, cell):
                canvas.text(
                    left + (j + 0.5) * cell,
                    y + high + 15,
                    str(j),
                    "key" if j in keys else "muted",
                    size=SMALL,
                    ha="center",
                    bold=j in keys,
                )
    canvas.text(left, canvas.height - 5, "key j →", "key", bold=True)
    return canvas


def bipartite(
    pattern: "MaskLike",
    L: int | None = None,
    *,
    query: int | None = None,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """Queries above, keys below, one line per kept pair; the lines of `query` emphasised."""
    cells = as_mask(pattern, L)
    cells = cells.any(0) if cells.dim() == 3 else cells
    length = cells.shape[-1]
    _check_size(length, "a graph")
    query = None if query is None else position("query", query, length)
    kept = cells.nonzero().tolist()
    keys = keys_of(cells, query) if query is not None else list(range(length))

    def draw(room: float) -> Canvas:
        broad = room == WIDE  # the names of the rows stand before them, or else above and below
        left, top = (74, 24) if broad else (16, 44)
        step = _spacing(length, 40, room - left - 8)
        bottom = top + max(110, min(170, length * step // 3))
        canvas = Canvas(left + (length - 1) * step + 24, bottom + (24 if broad else 48))
        xs = [left + n * step for n in range(length)]
        plain = [(xs[i], top, xs[j], bottom) for i, j in kept if i != query]
        chosen = [(xs[i], top, xs[j], bottom) for i, j in kept if i == query]
        faint = 0.55 if query is None else 0.22
        role: Role = "attention" if query is None else "muted"
        canvas.draw(segments(plain), "edges", stroke=role, opacity=faint, width=1)
        canvas.draw(segments(chosen), "edges-of-query", stroke="attention", width=2.5)
        strong = list(range(length)) if query is None else [query]
        _row_of_nodes(canvas, xs, top, step, "query", strong)
        _row_of_nodes(canvas, xs, bottom, step, "key", keys)
        canvas.text(6, top if broad else 12, "queries", "query", bold=True, va="middle")
        canvas.text(6, bottom if broad else bottom + 38, "keys", "key", bold=True, va="middle")
        return canvas

    words = (
        f"Graph of {length} queries above and {length} keys below with {len(kept)} lines, one for "
        f"each allowed pair."
    )
    if query is not None:
        words += f" The {len(keys)} lines of query {query} stand out; keys {ranges(keys)}."
    return Figure([fitted(draw, words)], alt=alt, caption=caption)


def _row_of_nodes(
    canvas: Canvas, xs: Sequence[float], y: float, step: float, role: Role, strong: Sequence[int]
) -> None:
    radius = 10.0 if step >= 24 else max(min(3.0, step * 0.45), step * 0.36)
    filled = [(xs[n], y) for n in strong]
    hollow = [(v, y) for n, v in enumerate(xs) if n not in set(strong)]
    canvas.draw(dots(hollow, radius), "nodes", fill="page", stroke="muted")
    canvas.draw(dots(filled, radius), "nodes", fill=role)
    if radius == 10:
        for n, v in enumerate(xs):
            ink: Role = "page" if n in set(strong) else "muted"
            canvas.text(v, y, str(n), ink, size=SMALL, ha="center", va="middle")
    else:
        below = role == "key"
        for n, v in enumerate(xs):
            if _labelled(n, len(xs), step):
                canvas.text(v, y + (20 if below else -12), str(n), "muted", size=SMALL, ha="center")


def path(
    patterns: "MaskLike | Sequence[MaskLike] | Mapping[str, MaskLike]",
    L: int | None = None,
    *,
    query: int,
    key: int,
    via: "int | Sequence[int] | None" = None,
    layers: int | None = None,
    residual: bool = False,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """How token `key` comes to `query` through the layers: i → via → j, or where the path ends.

    `patterns` are the layers, the first next to the input (a dict names them). Everything that
    `query` looks at is drawn layer by layer; the paths that lead to `key` are emphasised, one of
    them fully (through `via` if given: one position, or one for each layer between, from the
    query down). `residual=True` lets a token stay where it is (dashed).
    If no path leads to `key` the figure and its alt text say so.
    """
    stack = layer_masks(patterns, L, layers)
    length = stack[0][1].shape[-1]
    _check_size(length, "a graph")
    query, key = position("query", query, length), position("key", key, length)
    masks = [cells for _, cells in stack]
    stay = torch.eye(length, dtype=torch.bool)
    steps = [cells | stay if residual else cells for cells in masks]
    depth = len(masks)
    # seen[n]: what query depends on at height n (0 = input); lead[n]: positions that know `key`
    seen = [torch.zeros(length, dtype=torch.bool) for _ in range(depth + 1)]
    seen[depth][query] = True
    for n in range(depth - 1, -1, -1):
        seen[n] = steps[n][seen[n + 1]].any(0)
    lead = [torch.zeros(length, dtype=torch.bool) for _ in range(depth + 1)]
    lead[0][key] = True
    ways = [lead[0].long()]
    for n in range(depth):
        lead[n + 1] = steps[n][:, lead[n]].any(1)
        ways.append(steps[n].long() @ ways[n])
    way = _choose(steps, seen, lead, query, key, via)
    words = _path_words(stack, steps, seen, int(ways[depth][query]), way, query, key, residual)
    count = int(ways[depth][query])

    def draw(room: float) -> Canvas:
        return _draw_path(stack, seen, lead, way, query, key, residual, count, room)

    return Figure([fitted(draw, words)], alt=alt, caption=caption)


def _choose(
    steps: Sequence[Tensor],
    seen: Sequence[Tensor],
    lead: Sequence[Tensor],
    query: int,
    key: int,
    via: "int | Sequence[int] | None",
) -> list[int] | None:
    """One way from query down to key as positions from top to bottom, or None."""
    depth = len(steps)
    if via is not None:
        between = [via] if isinstance(via, int) else list(via)
        if len(between) != depth - 1:
            raise ValueError(
                f"via = {via!r} for {depth} layers; give {depth - 1} position(s), from query down"
            )
        way = [query, *(position("via", v, len(lead[0])) for v in between), key]
        for n, (above, below) in enumerate(pairwise(way)):
            layer = depth - 1 - n
            if not steps[layer][above, below]:
                raise ValueError(
                    f"via = {via!r}: position {above} does not see {below} in layer {layer + 1}; "
                    f"it sees {ranges(keys_of(steps[layer], above))}"
                )
        return way
    if not lead[depth][query]:
        return None
    way = [query]
    for layer in range(depth - 1, -1, -1):
        choices = (steps[layer][way[-1]] & lead[layer]).nonzero().flatten().tolist()
        real = [c for c in choices if c != way[-1]] or choices  # rather move than stay
        inner = [c for c in real if c != key] if layer else real
        way.append((inner or real)[-1])
    return way


def _path_words(
    stack: Sequence[tuple[str, Tensor]],
    steps: Sequence[Tensor],
    seen: Sequence[Tensor],
    count: int,
    way: Sequence[int] | None,
    query: int,
    key: int,
    residual: bool,
) -> str:
    depth = len(stack)
    length = len(seen[0])
    head = (
        f"Layered graph, {depth} layers over {length} positions, "
        f"{'with' if residual else 'without'} residual connections. "
    )
    looks = "; ".join(
        f"at height {n} query {query} depends on {ranges(seen[n].nonzero().flatten().tolist())}"
        + (" (the input)" if n == 0 else "")
        for n in range(depth - 1, -1, -1)
    )
    if way is None:
        return f"{head}No path leads from token {key} to query {query}: {looks}."
    paths = "one path" if count == 1 else f"{count} paths"
    return (
        f"{head}Token {key} reaches query {query} by {paths}; the one drawn is {_way(way)}. "
        f"{looks[0].upper()}{looks[1:]}."
    )


def _way(way: Sequence[int]) -> str:
    return " → ".join(map(str, way))


def _draw_path(
    stack: Sequence[tuple[str, Tensor]],
    seen: Sequence[Tensor],
    lead: Sequence[Tensor],
    way: Sequence[int] | None,
    query: int,
    key: int,
    residual: bool,
    count: int,
    room: float,
) -> Canvas:
    depth, length = len(stack), len(seen[0])
    broad = room == WIDE  # names of heights and layers stand before the rows, or else above them
    names = [f"after layer {n}" if n else "input" for n in range(depth + 1)]
    titles = [title if title != f"layer {n}" else "" for n, (title, _) in enumerate(stack, 1)]
    left = max(text_width(w, SMALL) for w in [*names, *titles]) + 22 if broad else 16.0
    step = _spacing(length, 31, max(room - left - 8, 200))  # also beside long names
    gap, top = (92, 44) if broad else (118, 62)
    more = "the only path" if count == 1 else f"one of {count} paths"
    verdict = f"{_way(way)} · {more}" if way else f"no path from {key} to {query}"
    lines = wrapped(verdict, room - 16, bold=True)
    canvas = Canvas(
        max(
            left + (length - 1) * step + 24,
            max(text_width(line, bold=True) for line in lines) + 12,
        ),
        top + depth * gap + 56 + 16 * len(lines),
    )

    def x(n: int) -> float:
        return left + n * step

    def y(height: float) -> float:
        return top + (depth - height) * gap

    taken = {(depth - n, *ends) for n, ends in enumerate(pairwise(way or ()))}
    for n in range(depth):
        edges: dict[str, list[Box]] = {"faint": [], "leading": [], "stay": []}
        for i in seen[n + 1].nonzero().flatten().tolist():
            below = keys_of(stack[n][1], i)
            if residual and i not in below:
                line = (x(i), y(n + 1), x(i), y(n))
                edges["stay"].append(line)
                if lead[n][i] and (n + 1, i, i) not in taken:
                    edges["leading"].append(line)
            for j in below:
                if (n + 1, i, j) not in taken:
                    kind = "leading" if lead[n][j] else "faint"
                    edges[kind].append((x(i), y(n + 1), x(j), y(n)))
        canvas.draw(swings(edges["faint"]), "edges", stroke="muted", opacity=0.4)
        canvas.draw(swings(edges["stay"]), "edges-stay", stroke="muted", opacity=0.7, dash=(3, 3))
        canvas.draw(swings(edges["leading"]), "edges-leading", stroke="attention", width=1.4)
    if way:
        for n, (upper, lower) in enumerate(pairwise(way)):
            height = depth - n
            _arrow(canvas, x(lower), y(height - 1), x(upper), y(height), 12 if step >= 24 else 7)
    special = {(depth, query): "query", (0, key): "key"}
    if way:
        special |= {(depth - n, w): "attention" for n, w in enumerate(way) if 0 < n < depth}
    radius = 10.0 if step >= 24 else max(min(3.0, step * 0.45), step * 0.36)
    labels: list[tuple[float, str]] = []  # over the edges, when all of them are there
    for height in range(depth + 1):
        if broad:
            canvas.text(8, y(height), names[height], "muted", size=SMALL, va="middle")
            if height < depth:
                canvas.text(8, y(height + 0.5), titles[height], size=SMALL, va="middle")
        else:
            above = y(height) - radius - (28 if height == depth else 12)
            title = titles[height - 1].removeprefix(f"layer {height}: ") if height else ""
            words = f"{names[height]}: {title}" if title else names[height]
            labels.append((above, words))
        known = seen[height]
        quiet = [(x(n), y(height)) for n in range(length) if not known[n]]
        canvas.draw(dots(quiet, radius), "nodes", fill="page", stroke="grid")
        live = [(x(n), y(height)) for n in range(length) if known[n]]
        canvas.draw(dots(live, radius), "nodes-seen", fill="page", stroke="muted", width=1.5)
        for n in range(length):
            role = special.get((height, n))
            if role:
                centre = [(x(n), y(height))]
                canvas.draw(dots(centre, radius + 1), "nodes", fill=role)  # type: ignore[arg-type]
            if radius == 10:
                ink: Role = "page" if role else ("ink" if known[n] else "muted")
                canvas.text(x(n), y(height), str(n), ink, size=SMALL, ha="center", va="middle")
            elif height == 0 and _labelled(n, length, step) and role is None:
                canvas.text(x(n), y(0) + 20, str(n), "muted", size=SMALL, ha="center")
    canvas.text(
        min(max(x(query), left), canvas.width - 40),
        y(depth) - radius - 10,
        f"query {query}",
        "query",
        bold=True,
        ha="center",
    )
    canvas.text(
        max(x(key), 34),
        y(0) + (radius + 18 if radius == 10 else 36),
        f"key {key}",
        "key",
        bold=True,
        ha="center",
    )
    for above, words in labels:
        canvas.text(8, above, words, "muted", size=SMALL, halo=True)
        canvas.widen(8, words, SMALL)
    for n, words in enumerate(reversed(lines)):
        canvas.text(8, canvas.height - 6 - 16 * n, words, size=NORMAL, bold=True)
    return canvas


def _arrow(canvas: Canvas, x0: float, y0: float, x1: float, y1: float, stop: float) -> None:
    """A thick curve from below to above with its head under the upper node."""
    tip = y1 + stop
    shaft = swings([(x0, y0, x1, tip + 8)])
    canvas.draw(shaft, "way-halo", stroke="page", width=6)
    canvas.draw(shaft, "way", stroke="attention", width=3.5)
    head = [(x1, tip), (x1 - 6, tip + 11), (x1 + 6, tip + 11)]
    canvas.draw(polygons([head]), "way-head", fill="attention")
