"""Matrices: rows are queries, columns are keys."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz import _arguments
from tfviz._labels import LONGEST_LINE, label, labels, line
from tfviz.patterns import Pattern, table
from tfviz.patterns import reach as follow
from tfviz.plots.canvas import SMALL, fitted, text_width
from tfviz.plots.figure import Figure, Panel
from tfviz.plots.grid import Matrix
from tfviz.plots.inputs import (
    MaskLike,
    as_mask,
    as_weights,
    keys_of,
    layer_masks,
    named_masks,
    number,
    position,
    ranges,
)
from tfviz.plots.roles import Role
from tfviz.plots.shapes import Shape, rectangles, segments

NUMBERS_UP_TO = 8
TABLE_UP_TO = 8
SIDES = {1: 320, 2: 288, 3: 168, 4: 288}
"""Side of a matrix in px, by the number of panels, so that two or three stand in a text column."""


def _side(size: int | None, panels: int) -> int:
    if size is not None:
        return _arguments.integer("size", size, 40, 2000)
    return SIDES.get(panels, 168)


def _facts(mask: Tensor, title: str, query: int | None) -> str:
    """What a mask holds, in words and numbers."""
    L = mask.shape[-1]
    pairs = int(mask.sum())
    counts = mask.sum(-1)
    few, many = int(counts.min()), int(counts.max())
    words = [
        f"{title + ': ' if title else ''}{L} queries by {L} keys, {pairs} of {L * L} pairs allowed "
        f"({number(100 * pairs / L**2)} %), {few if few == many else f'{few} to {many}'} keys for "
        "each query."
    ]
    if not mask.triu(1).any():
        words.append("No query sees a later key.")
    if L <= TABLE_UP_TO:
        sets = (f"query {i}: {ranges(keys_of(mask, i))}" for i in range(L))
        words.append("Keys of " + "; ".join(sets) + ".")
    if query is not None:
        keys = keys_of(mask, query)
        words.append(
            f"Query {query} is framed; it may attend to {len(keys)} of {L} keys: {ranges(keys)}."
        )
    return " ".join(words)


def _set(query: int, keys: Sequence[int]) -> str:
    lowered = str(query).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
    return f"S{lowered} = {{{ranges(keys) if keys else ''}}}"


def mask(
    pattern: "MaskLike | Sequence[MaskLike] | Mapping[str, MaskLike]",
    L: int | None = None,
    *,
    query: int | None = None,
    overlay: bool = False,
    title: str | None = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """Which pairs a pattern keeps.

    `pattern` is a Pattern (then `L` is needed), a Bool matrix or a nested list of 0 and 1. Several
    of them, as a list or as a dict from title to pattern, are drawn side by side, or with
    `overlay=True` in one matrix: the first as squares, the second as dots, the third as rings.
    A pattern with heads (h, L, L) gives one panel per head. `query` frames that row together
    with its key set and prints S_i below. `size` is the side of a matrix in px.
    """
    title = line("title", title)
    masks = named_masks(pattern, L, "pattern")
    length = masks[0][1].shape[-1]
    if query is not None:
        query = position("query", query, length)
    if overlay:
        panels = [_overlay(masks, query, title, _side(size, 1))]
    else:
        panels = []
        for name, cells in masks:
            head = title if len(masks) == 1 else name
            panels.append(_mask_panel(cells, query, head, name, _side(size, len(masks))))
    return Figure(panels, alt=alt, caption=caption)


def _mask_panel(cells: Tensor, query: int | None, title: str, name: str, side: int) -> Panel:
    L = cells.shape[-1]

    def draw(room: float) -> Matrix:
        drawn = Matrix(L, L, title=title, side=side, below=0 if query is None else 22, room=room)
        drawn.hatch()
        drawn.fill(cells, "attention", "kept")
        drawn.borders()
        if query is not None:
            keys = keys_of(cells, query)
            drawn.frame(query, keys)
            drawn.below(0, _short_set(query, keys, drawn))
        return drawn

    return fitted(draw, _facts(cells, title or name, query))


def _short_set(query: int, keys: Sequence[int], drawn: Matrix) -> str:
    words = _set(query, keys)
    room = drawn.canvas.width - drawn.left
    return words if text_width(words) <= room else f"{_set(query, [])[:-4]}: {len(keys)} keys"


def _overlay(
    masks: Sequence[tuple[str, Tensor]], query: int | None, title: str, side: int
) -> Panel:
    if len(masks) > 3:
        raise ValueError(f"overlay=True has {len(masks)} patterns; give 2 or 3, or overlay=False")
    L = masks[0][1].shape[-1]
    union = torch.stack([cells for _, cells in masks]).any(0)
    shapes = ("square", "dot", "ring")
    names = [name for name, _ in masks]
    together = sum(text_width(name) + 31 for name in names)
    entries = list(zip(shapes, names, strict=False))

    def draw(room: float) -> Matrix:
        stacked = together > min(side, room - 60)
        lines = len(masks) if stacked else 1
        below = 18 * lines + 6 + (0 if query is None else 20)
        drawn = Matrix(L, L, title=title, side=side, below=below, room=room)
        drawn.hatch(backdrop=union)
        _shapes(drawn, masks)
        drawn.borders()
        for n, entry in enumerate([[one] for one in entries] if stacked else [entries]):
            drawn.legend(n, entry)
        if query is not None:
            keys = keys_of(union, query)
            drawn.frame(query, keys)
            drawn.below(lines, _short_set(query, keys, drawn))
        return drawn

    words = [
        f"{shape}s: {_facts(cells, name, query)}"
        for (name, cells), shape in zip(masks, shapes, strict=False)
    ]
    both = int(torch.stack([cells for _, cells in masks]).int().sum(0).gt(1).sum())
    words.append(f"Together {int(union.sum())} pairs; {both} of them in more than one pattern.")
    return fitted(draw, f"{title}. {' '.join(words)}" if title else " ".join(words))


def _shapes(drawn: Matrix, masks: Sequence[tuple[str, Tensor]]) -> None:
    drawn.fill(masks[0][1], "attention", "kept")
    for n, (_, cells) in enumerate(masks[1:]):
        drawn.marks(cells, ("dot", "ring")[n], "ink", f"kept-{n + 2}")


def _titles(title: "str | Sequence[str] | None", heads: int) -> list[str]:
    if title is None:
        return [""] if heads == 1 else [f"head {n}" for n in range(heads)]
    if not isinstance(title, Sequence) or isinstance(title, str | bytes):
        title = line("title", title)
        return [title] if heads == 1 else [f"{title}, head {n}" for n in range(heads)]
    if len(title) != heads:
        raise ValueError(f"title has {len(title)} entries for {heads} heads; give one for each")
    return [label(f"title[{n}]", one, LONGEST_LINE) for n, one in enumerate(title)]


def names(given: Any, length: int, argument: str) -> list[str] | None:
    """The labels of rows or columns, or None."""
    return None if given is None else labels(argument, given, length)


def allowed_pairs(pattern: "MaskLike | None", shape: Sequence[int]) -> Tensor:
    """The allowed pairs for every head of a map: (h, L_q, L_k)."""
    heads, rows, columns = shape
    if pattern is None:
        return torch.ones(heads, rows, columns, dtype=torch.bool)
    if isinstance(pattern, Tensor) and pattern.dtype == torch.bool and rows != columns:
        allowed = pattern
    else:
        if rows != columns:
            raise ValueError(
                f"pattern is square, the map is {rows} × {columns}; give a Boolean tensor"
            )
        allowed = as_mask(pattern, rows if isinstance(pattern, Pattern) else None)
    if allowed.shape[-2:] != (rows, columns) or (allowed.dim() == 3 and allowed.shape[0] != heads):
        raise ValueError(
            f"pattern has shape {tuple(allowed.shape)}, the map {tuple(shape)}; they must fit"
        )
    return allowed.expand(heads, rows, columns)


def attention_map(
    A: Any,
    *,
    pattern: "MaskLike | None" = None,
    query: int | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    numbers: bool | None = None,
    vmax: float = 1.0,
    of: str = "weight",
    xlabel: str = "key j",
    ylabel: str = "query i",
    title: "str | Sequence[str] | None" = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """Attention weights in [0, 1]: (L_q, L_k), or (h, L_q, L_k) for one panel per head.

    `pattern` (a Pattern or a Bool mask) hatches the pairs that are not allowed. `rows` and
    `columns` are token labels instead of positions. `numbers` prints the weights in the cells
    (default: up to 8 × 8). `vmax` is the weight that wears the full colour. `xlabel` and `ylabel`
    are for weights of something else than keys for queries; `of` names what is no weight at all,
    such as a share or a probability.
    """
    weights = as_weights(A, "A")
    low, high = float(weights.min()), float(weights.max())
    if low < 0 or high > 1 + 1e-4:
        raise ValueError(
            f"A lies in [{low:.3g}, {high:.3g}]; attention weights lie in [0, 1]: take the softmax "
            "first, or draw scores with plots.signed_map"
        )
    vmax = _arguments.real("vmax", vmax, 1e-9, 1)
    if weights.dim() == 2:
        weights = weights[None]
    heads, n, m = weights.shape
    allowed = allowed_pairs(pattern, weights.shape)
    if pattern is not None and float(weights[~allowed].sum()) > 1e-6:
        i = (weights * ~allowed).flatten().argmax().item()
        raise ValueError(
            f"A gives weight to {int((weights[~allowed] > 0).sum())} pairs that pattern forbids, "
            f"first at (query, key) = {(i // m % n, i % m)}; give the pattern that A was made with"
        )
    if query is not None:
        query = position("query", query, n)
    row_names, column_names = names(rows, n, "rows"), names(columns, m, "columns")
    xlabel, ylabel, of = line("xlabel", xlabel), line("ylabel", ylabel), label("of", of)
    shown = max(n, m) <= NUMBERS_UP_TO if numbers is None else numbers
    roles = _axis_roles(xlabel, ylabel)
    panels = []
    for head, name in enumerate(_titles(title, heads)):
        A_h, S = weights[head], allowed[head]

        def draw(room: float, A_h: Tensor = A_h, S: Tensor = S, name: str = name) -> Matrix:
            drawn = Matrix(
                n,
                m,
                title=name,
                side=_side(size, heads),
                row_names=row_names,
                column_names=column_names,
                xlabel=xlabel,
                ylabel=ylabel,
                below=34,
                roles=roles,
                room=room,
            )
            _backdrop(drawn, S)
            drawn.ramp(A_h / vmax * S, "attention", "weights")
            drawn.borders()
            if shown:
                drawn.numbers(_in_cells(A_h, S, _weight), A_h / vmax)
            if query is not None:
                drawn.frame(query, keys_of(S, query))
            _scale(drawn, "0", number(vmax), of)
            return drawn

        panels.append(fitted(draw, _weight_facts(A_h, S, name, query, row_names, column_names, of)))
    return Figure(panels, alt=alt, caption=caption)


def _weight(a: float) -> str:
    return f"{a:.2f}" if a else "0"


def _in_cells(values: Tensor, allowed: Tensor, word: Callable[[float], str]) -> list[list[str]]:
    """A word for each value that is allowed."""
    return [
        [word(v) if ok else "" for v, ok in zip(line, oks, strict=True)]
        for line, oks in zip(values.tolist(), allowed.tolist(), strict=True)
    ]


def _axis_roles(xlabel: str, ylabel: str) -> tuple[Role, Role]:
    """The colours of the axes: those of query and key, where that is what they show."""
    return (
        "query" if ylabel.startswith("query") else "ink",
        "key" if xlabel.startswith("key") else "ink",
    )


def _backdrop(drawn: Matrix, allowed: Tensor) -> None:
    if bool(allowed.all()):
        x, y = drawn.at(0, 0)
        drawn.canvas.draw(rectangles([(x, y, drawn.width, drawn.height)]), "backdrop", fill="page")
    else:
        drawn.hatch(backdrop=allowed)


def _scale(drawn: Matrix, low: str, high: str, words: str, signed: bool = False) -> None:
    """A small ramp under the matrix that says which number a shade is."""
    y = drawn.top + drawn.height + 14
    x = drawn.left
    drawn.canvas.text(x, y + 5, low, "muted", size=SMALL, va="middle")
    x += round(text_width(low, SMALL) + 6)
    width = 8
    for n in range(11):
        share = n / 10 if not signed else (n - 5) / 5
        role: Role = "attention" if share >= 0 else "ink"
        opacity = share if share >= 0 else -share * NEGATIVE
        if opacity:
            drawn.canvas.draw(
                rectangles([(x + n * width, y, width, 10)]), "weights", fill=role, opacity=opacity
            )
    drawn.canvas.draw(rectangles([(x, y, 11 * width, 10)]), "borders", stroke="grid")
    x += 11 * width + 6
    said = f"{high}  {words}".rstrip()
    drawn.canvas.text(x, y + 5, said, "muted", size=SMALL, va="middle")
    end = round(x + text_width(said, SMALL) + 3)  # a narrow matrix is not as wide as its ramp
    drawn.canvas.width = max(drawn.canvas.width, end)


def _weight_facts(
    A: Tensor,
    allowed: Tensor,
    title: str,
    query: int | None,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    of: str,
) -> str:
    n, m = A.shape
    plain = of == "weight"
    row, column = ("query", "key") if plain else ("row", "column")
    shown = (
        f"attention weights of {n} queries over {m} keys" if plain else f"{of} in {n} × {m} cells"
    )
    forbidden = int((~allowed).sum())

    def row_name(i: int) -> str:
        return f"{i} ({rows[i]})" if rows else str(i)

    def key_name(j: int) -> str:
        return f"{j} ({columns[j]})" if columns else str(j)

    words = [
        f"{title + ': ' if title else ''}{shown}"
        + (f"; {forbidden} of {n * m} pairs are not allowed." if forbidden else ".")
    ]
    if n <= TABLE_UP_TO:
        top = A.argmax(-1).tolist()
        words.append(
            f"Largest {of} of "
            + "; ".join(
                f"{row} {row_name(i)}: {number(round(float(A[i, j]), 3))} on {column} {key_name(j)}"
                if A[i, j] > 0
                else f"{row} {row_name(i)}: none"
                for i, j in enumerate(top)
            )
            + "."
        )
    else:
        i, j = divmod(int(A.argmax()), m)
        words.append(
            f"Largest {of} {number(float(A.max()))}, of {row} {row_name(i)} on {column} "
            f"{key_name(j)}; the largest of a row is {number(float(A.amax(-1).mean()))} on average."
        )
    if query is not None:
        order = A[query].argsort(descending=True)[:3].tolist()
        words.append(
            f"{row.capitalize()} {row_name(query)} is framed; its largest {of}s: "
            + ", ".join(
                f"{column} {key_name(j)} {number(round(float(A[query, j]), 3))}" for j in order
            )
            + "."
        )
    return " ".join(words)


NEGATIVE = 0.72
"""Opacity of ink that is as far from the page as the attention colour is."""


def signed_map(
    values: Any,
    *,
    pattern: "MaskLike | None" = None,
    vmax: float | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    xlabel: str = "key j",
    ylabel: str = "query i",
    numbers: bool | None = None,
    title: "str | Sequence[str] | None" = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """Signed values (scores, biases, encodings): violet above zero, grey and inset below it, page
    at zero.

    `vmax` is the magnitude with the full colour (default: the largest one that is allowed).
    """
    numbers_ = as_weights(values, "values")
    if numbers_.dim() == 2:
        numbers_ = numbers_[None]
    heads, n, m = numbers_.shape
    allowed = allowed_pairs(pattern, numbers_.shape)
    largest = float(numbers_[allowed].abs().max()) if bool(allowed.any()) else 0.0
    vmax = largest or 1.0 if vmax is None else _arguments.real("vmax", vmax, 1e-12)
    row_names, column_names = names(rows, n, "rows"), names(columns, m, "columns")
    xlabel, ylabel = line("xlabel", xlabel), line("ylabel", ylabel)
    shown = max(n, m) <= NUMBERS_UP_TO if numbers is None else numbers
    panels = []
    for head, name in enumerate(_titles(title, heads)):
        V, S = numbers_[head], allowed[head]

        def draw(room: float, V: Tensor = V, S: Tensor = S, name: str = name) -> Matrix:
            drawn = Matrix(
                n,
                m,
                title=name,
                side=_side(size, heads),
                row_names=row_names,
                column_names=column_names,
                xlabel=xlabel,
                ylabel=ylabel,
                below=34,
                roles=_axis_roles(xlabel, ylabel),
                room=room,
            )
            _backdrop(drawn, S)
            share = V / vmax * S
            drawn.ramp(share.clamp(min=0), "attention", "positive")
            drawn.ramp(
                (-share).clamp(0, 1) * NEGATIVE,
                "ink",
                "negative",
                inset=drawn.cell // 9 if drawn.cell >= 9 else 0,
            )
            drawn.borders()
            if shown:
                words = _in_cells(V, S, lambda v: number(round(v, 2)))
                drawn.numbers(words, share.abs())
            _scale(drawn, number(-vmax), number(vmax), "", signed=True)
            return drawn

        kept = V[S] if bool(S.any()) else torch.zeros(1)
        panels.append(
            fitted(
                draw,
                f"{name + ': ' if name else ''}signed values, {n} rows ({ylabel}) by {m} columns "
                f"({xlabel}), from {number(float(kept.min()))} to {number(float(kept.max()))}; "
                f"{int((kept > 0).sum())} above zero, {int((kept < 0).sum())} below"
                + (f", {int((~S).sum())} pairs not allowed." if not bool(S.all()) else "."),
            )
        )
    return Figure(panels, alt=alt, caption=caption)


def _follow(patterns: Any, L: int | None, layers: int | None, residual: bool) -> Any:
    """Reach of a list of Patterns or masks, and the number of layers that were asked for."""
    masks = layer_masks(patterns, L, None)
    single = len({id(cells) for _, cells in masks}) == 1
    tables = [table(cells) for _, cells in (masks[:1] if single else masks)]
    if layers is not None:
        layers = _arguments.integer("layers", layers, 1, 12)
    return follow(tables, masks[0][1].shape[-1], layers, residual=residual)


def hops(
    patterns: "MaskLike | Sequence[MaskLike]",
    L: int | None = None,
    *,
    layers: int | None = None,
    residual: bool = True,
    query: int | None = None,
    title: str | None = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """How many layers it takes until query i has seen token j: one matrix of hop counts.

    With several patterns layer n uses `patterns[n % len(patterns)]`, the first next to the input.
    Without `layers` it goes on until nothing new is reached.
    """
    title = line("title", title)
    relay = _follow(patterns, L, layers, residual)
    counts, wanted = relay.hops, relay.wanted
    length = counts.shape[-1]
    query = None if query is None else position("query", query, length)
    most = max(1, int(counts.max()))
    never = wanted & (counts < 0)
    strength = torch.where(counts > 0, 1 - 0.8 * (counts - 1) / max(most - 1, 3), 0.0)
    tally = {n: int((wanted & (counts == n)).sum()) for n in range(1, most + 1)}

    def draw(room: float) -> Matrix:
        drawn = Matrix(length, length, title=title, side=_side(size, 1), below=26, room=room)
        drawn.hatch(backdrop=wanted)
        drawn.ramp(strength, "attention", "weights")
        drawn.borders()
        if bool(never.any()):
            crosses = _crosses(drawn, never)
            drawn.canvas.draw(crosses, "never", stroke="ink", width=max(0.8, drawn.cell / 14))
        if drawn.cell >= 13:
            words = [[str(v) if v >= 0 else "" for v in line] for line in counts.tolist()]
            drawn.numbers(words, strength)
        if query is not None:
            drawn.frame(query, [])
        _hop_legend(drawn, tally, most, int(never.sum()))
        return drawn

    parts = [f"{count} pairs after {_hops(n)}" for n, count in tally.items() if count]
    end = (
        f"{int(never.sum())} pairs are never connected."
        if never.any()
        else f"Every {'earlier ' if relay.causal else ''}token is reached after at most "
        f"{_hops(most)}."
    )
    words_ = (
        f"{title + ': ' if title else ''}hops from query to token for {length} positions: "
        f"{', '.join(parts) or 'no pair beyond the diagonal'}. {end}"
    )
    if query is not None:
        own = counts[query]
        sets = (
            f"{_hops(n)}: {ranges((own == n).nonzero().flatten().tolist())}"
            for n in range(1, int(own.max()) + 1)
        )
        words_ += f" Query {query} is framed; it reaches after {'; '.join(sets)}."
    return Figure([fitted(draw, words_)], alt=alt, caption=caption)


def _crosses(drawn: Matrix, cells: Tensor) -> Shape:
    arm = 0.28 * drawn.cell
    lines = []
    for r, c in cells.nonzero().tolist():
        x, y = drawn.at(c + 0.5, r + 0.5)
        lines += [(x - arm, y - arm, x + arm, y + arm), (x - arm, y + arm, x + arm, y - arm)]
    return segments(lines)


def _hops(n: int) -> str:
    return "1 hop" if n == 1 else f"{n} hops"


def _hop_legend(drawn: Matrix, tally: Mapping[int, int], most: int, never: int) -> None:
    x, y = float(drawn.left), drawn.top + drawn.height + 18
    for n in tally:
        if len(tally) > 5 and 2 < n < most:
            continue
        opacity = 1 - 0.8 * (n - 1) / max(most - 1, 3)
        drawn.canvas.draw(
            rectangles([(x, y - 5, 11, 11)]), "weights", fill="attention", opacity=opacity
        )
        words = _hops(n) if n == 1 else str(n)
        drawn.canvas.text(x + 16, y, words, size=SMALL, va="middle")
        x += 16 + text_width(words, SMALL) + 12
    if never:
        cross = [(x + 1, y - 4, x + 9, y + 4), (x + 1, y + 4, x + 9, y - 4)]
        drawn.canvas.draw(segments(cross), "legend", stroke="ink", width=1.4)
        drawn.canvas.text(x + 15, y, f"never ({never})", size=SMALL, va="middle")


def reach(
    patterns: "MaskLike | Sequence[MaskLike]",
    L: int | None = None,
    *,
    layers: int = 2,
    residual: bool = True,
    query: int | None = None,
    title: str | None = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """What each query has seen after layer 1, 2, …: one panel per layer, the new pairs darkest.

    With several patterns layer n uses `patterns[n % len(patterns)]`, the first next to the input.
    """
    title = line("title", title)
    relay = _follow(patterns, L, layers, residual)
    wanted = relay.wanted
    length = wanted.shape[-1]
    query = None if query is None else position("query", query, length)
    before = torch.zeros_like(wanted)
    panels = []
    for n, known in enumerate(relay.by_layer, start=1):
        fresh, old = known & ~before, known & before
        lead = f"{title}, after" if title else "after"
        seen, total = int((known & wanted).sum()), int(wanted.sum())
        keys = [] if query is None else keys_of(known, query)

        def draw(
            room: float,
            head: str = f"{lead} layer {n}",
            old: Tensor = old,
            fresh: Tensor = fresh,
            tally: str = f"{seen} of {total} pairs" if seen < total else f"all {total} pairs",
            keys: Sequence[int] = keys,
        ) -> Matrix:
            drawn = Matrix(
                length,
                length,
                title=head,
                side=_side(size, layers),
                below=28 if query is None else 46,
                room=room,
            )
            drawn.hatch(backdrop=wanted)
            drawn.fill(old, "attention", "kept-before", opacity=0.38)
            drawn.fill(fresh, "attention", "kept")
            drawn.borders()
            drawn.below(0, tally)
            if query is not None:
                drawn.frame(query, keys)
                drawn.below(1, _short_set(query, keys, drawn).replace("S", "knows R", 1))
            return drawn

        words = (
            f"{lead} layer {n}: {seen} of {total} "
            f"{'pairs j ≤ i' if relay.causal else 'pairs'} of {length} positions are connected, "
            f"{int((fresh & wanted).sum())} of them new."
        )
        if query is not None:
            words += f" Query {query} is framed; it knows {len(keys)} tokens: {ranges(keys)}."
        if not residual:
            words += " Without residual connections."
        panels.append(fitted(draw, words[0].upper() + words[1:]))
        before = before | known
    return Figure(panels, alt=alt, caption=caption)


def image_neighbourhood(
    pattern: "MaskLike | Sequence[MaskLike] | Mapping[str, MaskLike]",
    height: int,
    width: int,
    pixel: tuple[int, int],
    *,
    overlay: bool = True,
    title: str | None = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """The key set of one pixel of an image that is read row by row (query = row · width + column).

    With two patterns (the two factors of the Sparse Transformer) the first are squares, the
    second dots in one grid; `overlay=False` draws them side by side.
    """
    height, width = _arguments.integer("height", height, 1), _arguments.integer("width", width, 1)
    if len(pixel) != 2:
        raise ValueError(f"pixel = {pixel!r}; give (row, column)")
    row = position("pixel[0]", pixel[0], height)
    column = position("pixel[1]", pixel[1], width)
    query = row * width + column
    title = line("title", title)
    masks = named_masks(pattern, height * width, "pattern")
    groups = [masks] if overlay else [[one] for one in masks]
    if overlay and len(masks) > 3:
        raise ValueError(f"overlay=True has {len(masks)} patterns; give up to 3 or overlay=False")
    side = _side(size, len(groups))
    panels = []
    for group in groups:
        grids = [(name, cells[query].unflatten(0, (height, width))) for name, cells in group]
        union = torch.stack([grid for _, grid in grids]).any(0)
        head = title if len(groups) == 1 else group[0][0]
        named = len(group) > 1

        def draw(
            room: float,
            grids: Sequence[tuple[str, Tensor]] = grids,
            union: Tensor = union,
            head: str = head,
            named: bool = named,
        ) -> Matrix:
            drawn = Matrix(
                height,
                width,
                title=head,
                side=side,
                xlabel="column",
                ylabel="row",
                below=10 + 18 * (len(grids) if named else 0),
                roles=("ink", "ink"),
                room=room,
            )
            drawn.hatch(backdrop=union)
            _shapes(drawn, grids)
            drawn.borders()
            box = drawn.box((column, row, 1, 1))
            drawn.canvas.draw(rectangles([box]), "frame-halo", stroke="page", width=6)
            drawn.canvas.draw(rectangles([box]), "frame", stroke="query", width=3)
            if named:
                for n, (name, _) in enumerate(grids):
                    drawn.legend(n, [(("square", "dot", "ring")[n], name)])
            return drawn

        words = [
            f"{head + ': ' if head else ''}image of {height} × {width} pixels read row by row; "
            f"pixel (row {row}, column {column}) is query {query}."
        ]
        for n, (name, grid) in enumerate(grids):
            keys = grid.flatten().nonzero().flatten().tolist()
            shape = f"{('Squares', 'Dots', 'Rings')[n]}, " if named else ""
            by_row = "; ".join(
                f"row {r}: columns {ranges(line.nonzero().flatten().tolist())}"
                for r, line in enumerate(grid)
                if bool(line.any())
            )
            words.append(f"{shape}{name or 'key set'}: {len(keys)} pixels ({by_row or 'none'}).")
        panels.append(fitted(draw, " ".join(words)))
    return Figure(panels, alt=alt, caption=caption)
