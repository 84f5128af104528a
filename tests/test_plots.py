"""Figures: what they say is what they show, and both are what the pattern is."""

import base64
import io
import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from PIL import Image

from tfviz import patterns, plots
from tfviz.longer_context.alibi import Alibi
from tfviz.plots import roles
from tfviz.plots.costs import slope
from tfviz.plots.figure import NARROW, Panel
from tfviz.plots.inputs import number, ranges
from tfviz.plots.positions import scores_of_equals
from tfviz.plots.shapes import runs
from tfviz.plots.ticks import log_ticks
from tfviz.position import Bias
from tfviz.position.rope import Rope
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoids

RESTS_ON = ("tfviz/**", "tests/**", "book/assets/css/roles.css")  # it finds them by their names

SVG = "{http://www.w3.org/2000/svg}"
ROLES_CSS = Path(__file__).parents[1] / "book/assets/css/roles.css"

# neither symmetric nor of any family: i and j swapped, or a row off by one, shows
GOLDEN = [
    [1, 0, 0, 1, 0, 0],
    [1, 1, 0, 0, 0, 1],
    [0, 1, 1, 0, 0, 0],
    [0, 1, 1, 1, 0, 0],
    [0, 0, 0, 1, 1, 1],
    [1, 0, 1, 0, 0, 1],
]


# --- reading a drawing back ----------------------------------------------------------------------


def found(pattern: str, text: str) -> str:
    """What stands between the pattern's brackets."""
    match = re.search(pattern, text)
    assert match, pattern
    return match[1]


def narrow(panel: Panel) -> str:
    """The SVG of its form for phones."""
    assert panel.narrow is not None
    return panel.narrow.svg(panel.alt)


def subpaths(d: str) -> list[list[tuple[float, float]]]:
    """The corners of every subpath of the compact paths that figures write."""
    shapes: list[list[tuple[float, float]]] = []
    x = y = 0.0
    for command, rest in re.findall(r"([MmlhvzcC])([^A-Za-z]*)", d):
        v = [float(n) for n in re.findall(r"-?\d*\.?\d+", rest)]
        if command in "Mm":
            x, y = v if command == "M" else (x + v[0], y + v[1])
            shapes.append([(x, y)])
        elif command == "z":
            x, y = shapes[-1][0]
        else:
            dx, dy = {"h": (v[0], 0.0), "v": (0.0, v[0])}.get(command, tuple(v[-2:]))
            x, y = x + dx, y + dy
            shapes[-1].append((x, y))
    return shapes


def group(svg: str, name: str) -> list[ET.Element]:
    root = ET.fromstring(svg)
    return [g for g in root.iter(f"{SVG}g") if g.get("class") == name]


def boxes(svg: str, name: str) -> list[tuple[float, float, float, float]]:
    """Bounding boxes (x0, y0, x1, y1) of everything drawn in groups of this name."""
    found = []
    for g in group(svg, name):
        for path in g.iter(f"{SVG}path"):
            for shape in subpaths(path.attrib["d"]):
                xs, ys = zip(*shape, strict=True)
                found.append((min(xs), min(ys), max(xs), max(ys)))
    return found


def place(svg: str) -> tuple[float, float, float, float]:
    """The outline of the matrix."""
    return max(boxes(svg, "borders"), key=lambda b: (b[2] - b[0]) * (b[3] - b[1]))


def mask_in(svg: str, shape: tuple[int, int], name: str = "kept") -> torch.Tensor:
    """Which cells the boxes (or the centres of marks) cover, seen from the outline."""
    x0, y0, x1, y1 = place(svg)
    rows, columns = shape
    width, height = (x1 - x0) / columns, (y1 - y0) / rows
    found = torch.zeros(shape, dtype=torch.bool)
    for a, b, c, d in boxes(svg, name):
        if a < x0 - 0.1 or c > x1 + 0.1 or b < y0 - 0.1 or d > y1 + 0.1:
            continue  # in the legend
        if c - a < width * 0.95:  # a mark inside one cell
            found[int(((b + d) / 2 - y0) / height), int(((a + c) / 2 - x0) / width)] = True
            continue
        rows_ = slice(round((b - y0) / height), round((d - y0) / height))
        found[rows_, round((a - x0) / width) : round((c - x0) / width)] = True
    return found


def opacities(svg: str, shape: tuple[int, int], name: str = "weights") -> torch.Tensor:
    x0, y0, x1, y1 = place(svg)
    found = torch.zeros(shape)
    width, height = (x1 - x0) / shape[1], (y1 - y0) / shape[0]
    for g in group(svg, name):
        for path in g.iter(f"{SVG}path"):
            got = re.search(r"fill-opacity:([\d.]+)", path.attrib["style"])
            for shape_ in subpaths(path.attrib["d"]):
                xs, ys = zip(*shape_, strict=True)
                if min(ys) >= y1:
                    continue  # the scale below
                top, bottom = (min(ys) - y0) / height, (max(ys) - y0) / height
                left, right = (min(xs) - x0) / width, (max(xs) - x0) / width
                rows_ = slice(round(top), round(bottom))
                found[rows_, round(left) : round(right)] = float(got[1]) if got else 1.0
    return found


def image_in(svg: str) -> np.ndarray:
    href = next(ET.fromstring(svg).iter(f"{SVG}image")).attrib["href"]
    picture = Image.open(io.BytesIO(base64.b64decode(href.split(",")[1])))
    return np.asarray(picture.convert("RGBA"))


def causal_map(L: int) -> torch.Tensor:
    scores = torch.randn(L, L, generator=torch.Generator().manual_seed(3))
    return scores.masked_fill(~torch.ones(L, L).tril().bool(), -torch.inf).softmax(-1)


@pytest.fixture(scope="module")
def everything() -> dict[str, plots.Figure]:
    """One figure of each kind."""
    window, column = patterns.sliding_window(lookback=4), patterns.column(stride=4)
    both = {"window": window, "column": column}
    A = causal_map(6)
    return {
        "mask": plots.mask(patterns.strided(stride=4), 16, query=13),
        "panels": plots.mask(both, 16, caption="Two & more"),
        "overlay": plots.mask(both, 16, overlay=True, query=9),
        "attention": plots.attention_map(A, pattern=patterns.causal(), query=4),
        "attention, fine": plots.attention_map(causal_map(40), vmax=0.5),
        "signed": plots.signed_map(torch.linspace(-1, 2, 36).view(6, 6)),
        "signed, fine": plots.signed_map(torch.linspace(-1, 2, 1600).view(40, 40)),
        "hops": plots.hops([patterns.own_block(block=4), column], 12, query=11),
        "reach": plots.reach([window, column], 16, query=15),
        "image": plots.image_neighbourhood(both, 4, 4, (2, 1)),
        "key set": plots.key_set(both, 16, 13),
        "bipartite": plots.bipartite(window, 12, query=5),
        "path": plots.path(both, 16, query=15, key=1),
        "cost": plots.cost({"window": window, "column": column}, (16, 32, 64), block=8),
        "curve": plots.curve([0, 1, 2], {"a": [[3, 2, 1], [4, 2, 2]]}, xlabel="x", ylabel="y"),
        "points": plots.points({"a": (1, [2, 3]), "b": (4, 5)}, xlabel="x", ylabel="y"),
        "tree": plots.tree(
            {(): {"left": 0.6, "right": 0.4}, ("left",): {"home": 1.0}, ("right",): {"away": 1.0}},
            {"greedy": ("left", "home")},
            highlight="greedy",
        ),
        "attention, names": plots.attention_map(
            causal_map(20), rows=[f"word{n}" for n in range(20)], columns=["token"] * 20
        ),
    }


# --- the cells are the pattern -------------------------------------------------------------------


def test_every_cell_of_a_golden_mask_is_drawn_in_its_place() -> None:
    golden = torch.tensor(GOLDEN).bool()
    assert torch.equal(mask_in(plots.mask(GOLDEN).svg, (6, 6)), golden)
    assert not torch.equal(mask_in(plots.mask(golden.T).svg, (6, 6)), golden)


@pytest.mark.parametrize("L", [1, 7, 33, 64, 130])
def test_the_drawn_mask_is_the_mask(L: int) -> None:
    for pattern in (patterns.random_keys(count=1, seed=2), patterns.strided(stride=5)):
        drawn = mask_in(plots.mask(pattern, L).svg, (L, L))
        assert torch.equal(drawn, pattern.mask(L))


def test_query_zero_is_at_the_top_and_key_zero_at_the_left() -> None:
    svg = plots.mask([[0, 0, 1], [0, 0, 0], [0, 0, 0]]).svg
    x0, y0, x1, _ = place(svg)
    a, b, c, _ = boxes(svg, "kept")[0]
    assert (b, c) == (y0, x1)
    assert a > x0
    labels = [
        (float(t.attrib["x"]), float(t.attrib["y"]), t.text)
        for t in ET.fromstring(svg).iter(f"{SVG}text")
        if t.text and t.text.isdigit()
    ]
    across = sorted((x, word) for x, y, word in labels if y < y0)
    down = sorted((y, word) for x, y, word in labels if y >= y0)
    assert [w for _, w in across] == [w for _, w in down] == ["0", "1", "2"]


def test_runs_cover_a_mask_once() -> None:
    mask = torch.rand(40, 30, generator=torch.Generator().manual_seed(0)) > 0.5
    count = torch.zeros(40, 30, dtype=torch.int)
    for column, row, width, height in runs(mask):
        count[row : row + height, column : column + width] += 1
    assert torch.equal(count, mask.int())


def test_the_frame_and_the_pointers_belong_to_the_query() -> None:
    svg = plots.mask(GOLDEN, query=4).svg
    x0, y0, _, y1 = place(svg)
    cell = (y1 - y0) / 6
    (frame,) = boxes(svg, "frame")
    assert (frame[1] + frame[3]) / 2 == pytest.approx(y0 + 4.5 * cell)
    tips = sorted((a + c) / 2 for a, _, c, _ in boxes(svg, "key-pointers"))
    assert tips == pytest.approx([x0 + (j + 0.5) * cell for j in (3, 4, 5)], abs=0.02)


def test_an_overlay_has_a_shape_for_each_layer() -> None:
    window, column = patterns.sliding_window(lookback=4), patterns.column(stride=4)
    svg = plots.mask({"window": window, "column": column, "far": GOLDEN16}, 16, overlay=True).svg
    assert torch.equal(mask_in(svg, (16, 16)), window.mask(16))
    assert torch.equal(mask_in(svg, (16, 16), "kept-2"), column.mask(16))
    assert torch.equal(mask_in(svg, (16, 16), "kept-3"), GOLDEN16)


GOLDEN16 = torch.zeros(16, 16, dtype=torch.bool)
GOLDEN16[2, 14] = GOLDEN16[9, 3] = True


def test_weights_are_opacities_of_the_attention_colour() -> None:
    A = causal_map(6)
    svg = plots.attention_map(A, pattern=patterns.causal()).svg
    torch.testing.assert_close(opacities(svg, (6, 6)), A, atol=0.0051, rtol=0)
    styles = {p.attrib["style"] for g in group(svg, "weights") for p in g.iter(f"{SVG}path")}
    assert all(roles.css("attention") in style for style in styles)


def test_numbers_are_read_on_every_shade() -> None:
    """Ink on pale cells, with a halo on middle ones, the colour of the page on full ones."""
    svg = plots.attention_map(torch.tensor([[0.1, 0.7, 0.95]])).svg
    looks = {
        t.text: g.attrib["style"]
        for g in ET.fromstring(svg).iter(f"{SVG}g")
        for t in g.findall(f"{SVG}text")
    }
    ink, page = roles.css("ink"), roles.css("page")
    assert f"fill:{ink}" in looks["0.10"] and "stroke" not in looks["0.10"]
    assert f"fill:{ink}" in looks["0.70"] and f"stroke:{page}" in looks["0.70"]
    assert f"fill:{page}" in looks["0.95"] and "stroke" not in looks["0.95"]


def test_numbers_that_could_not_be_read_are_left_out() -> None:
    def numbers_at(side: int) -> set[str]:
        drawn = ET.fromstring(plots.attention_map(torch.full((4, 4), 0.25), size=side).svg)
        return {t.text for t in drawn.iter(f"{SVG}text") if t.text and "25" in t.text}

    assert numbers_at(160) == {"0.25"}
    assert numbers_at(88) == {".25"}
    assert numbers_at(48) == set()


def test_fine_weights_are_a_picture_of_opacities() -> None:
    A = causal_map(48)
    svg = plots.attention_map(A, vmax=0.5).svg
    alpha = image_in(svg)[..., 3] / 255
    np.testing.assert_allclose(alpha, (A / 0.5).clamp(max=1).numpy(), atol=0.005)
    assert painted(svg) == [roles.css("attention")]
    signed = plots.signed_map(torch.linspace(-1, 1, 1600).view(40, 40)).svg
    assert painted(signed) == [roles.css("attention"), roles.css("ink")]


def test_thousands_of_scattered_cells_are_a_picture() -> None:
    pattern = patterns.random_keys(count=9, seed=0)
    svg = plots.mask(pattern, 300).svg
    assert torch.equal(torch.from_numpy(image_in(svg)[..., 3] == 255), pattern.mask(300))
    assert painted(svg) == [roles.css("attention")]
    assert len(svg) < 40_000


def painted(svg: str) -> list[str]:
    """The colours that are seen through images of opacities; every image is such a window."""
    root = ET.fromstring(svg)
    windows = {m.attrib["id"] for m in root.iter(f"{SVG}mask") if m.find(f"{SVG}image") is not None}
    assert len(windows) == len(list(root.iter(f"{SVG}image")))
    shown = {r.attrib["mask"][5:-1]: r.attrib["style"] for r in root.iter(f"{SVG}rect")}
    assert set(shown) == windows
    return [style.removeprefix("fill:") for style in shown.values()]


def test_negative_values_are_ink_and_smaller_than_their_cell() -> None:
    values = torch.tensor([[-1.0, 0.5], [0.0, -0.25]])
    svg = plots.signed_map(values).svg
    assert torch.equal(mask_in(svg, (2, 2), "negative"), values < 0)
    assert torch.equal(mask_in(svg, (2, 2), "positive"), values > 0)
    cell = (place(svg)[2] - place(svg)[0]) / 2
    assert all(c - a < cell for a, _, c, _ in boxes(svg, "negative"))


def test_what_is_not_allowed_is_hatched_and_zero_is_not() -> None:
    allowed = torch.ones(4, 4).tril().bool()
    A = torch.eye(4)  # many zeros, some allowed and some not
    svg = plots.attention_map(A, pattern=allowed).svg
    (hatched,) = group(svg, "hatch")
    (tile,) = hatched.iter(f"{SVG}pattern")
    assert hatched[-1].attrib["style"] == f"fill:url(#{tile.attrib['id']})"
    sides = [float(tile.attrib[side]) for side in ("width", "height")]
    cell = (place(svg)[2] - place(svg)[0]) / 4
    assert sides[0] == sides[1] and (cell / sides[0]) % 1 == pytest.approx(0, abs=0.01)
    assert torch.equal(mask_in(svg, (4, 4), "backdrop"), allowed)  # laid over the hatching
    assert not group(plots.attention_map(A).svg, "hatch")


def test_the_image_view_shows_the_row_of_the_mask() -> None:
    row, column = patterns.sliding_window(lookback=6), patterns.column(stride=6)
    svg = plots.image_neighbourhood({"row": row, "column": column}, 5, 6, (3, 2)).svg
    query = 3 * 6 + 2
    assert torch.equal(mask_in(svg, (5, 6)), row.mask(30)[query].view(5, 6))
    assert torch.equal(mask_in(svg, (5, 6), "kept-2"), column.mask(30)[query].view(5, 6))


def test_reach_draws_each_layer() -> None:
    pair = [patterns.own_block(block=4), patterns.summary_columns(block=4, summary=1)]
    figure = plots.reach(pair, 12)
    known = patterns.reach(pair, 12, 2).by_layer
    for n, svg in enumerate(figure.svgs):
        before = mask_in(svg, (12, 12), "kept-before")
        fresh = mask_in(svg, (12, 12), "kept")
        assert torch.equal(before | fresh, known[n])
        assert not (before & fresh).any()
        seen = int(known[n].tril().sum())
        assert f"{seen} of 78 pairs" in figure.panels[n].alt


def test_hops_print_their_numbers_and_cross_what_is_never_reached() -> None:
    swapped = [patterns.summary_columns(block=4, summary=1), patterns.own_block(block=4)]
    figure = plots.hops(swapped, 12, layers=2)
    found = patterns.reach(swapped, 12, 2)
    assert found.unreachable > 0
    assert f"{found.unreachable} pairs are never connected" in figure.alt
    crosses = boxes(figure.svg, "never")
    assert len(crosses) == 2 * found.unreachable
    x0, y0, x1, _ = place(figure.svg)
    cell = (x1 - x0) / 12
    at = {(int((b - y0) / cell), int((a - x0) / cell)) for a, b, _, _ in crosses}
    assert at == {tuple(c) for c in (found.wanted & (found.hops < 0)).nonzero().tolist()}
    once, twice = (int((found.hops == n).sum()) for n in (1, 2))
    assert f"{once} pairs after 1 hop, {twice} pairs after 2 hops" in figure.alt


def test_the_key_set_marks_its_keys() -> None:
    svg = plots.key_set(patterns.strided(stride=4), 16, 13).svg
    assert torch.equal(mask_in(svg, (1, 16))[0], patterns.strided(stride=4).mask(16)[13])


def test_the_graph_has_a_line_for_each_pair() -> None:
    figure = plots.bipartite(patterns.band(radius=1), 8, query=0)
    ends = [
        (shape[0][0], shape[-1][0])
        for name in ("edges", "edges-of-query")
        for g in group(figure.svg, name)
        for path in g.iter(f"{SVG}path")
        for shape in subpaths(path.attrib["d"])
    ]
    left = min(x for line in ends for x in line)
    step = 40
    found = torch.zeros(8, 8, dtype=torch.bool)
    for top, bottom in ends:
        found[round((top - left) / step), round((bottom - left) / step)] = True
    assert torch.equal(found, patterns.band(radius=1).mask(8))
    assert "22 lines" in figure.alt


# --- the way of a token ---------------------------------------------------------------------------

BLOCK = patterns.own_block(block=4)
SUMMARY = patterns.summary_columns(block=4, summary=1)


def test_a_path_goes_through_the_masks() -> None:
    figure = plots.path([BLOCK, SUMMARY], 16, query=13, key=1)
    assert "13 → 3 → 1" in figure.alt
    assert "by one path" in figure.alt
    assert group(figure.svg, "way")


def test_the_other_order_has_no_path() -> None:
    figure = plots.path([SUMMARY, BLOCK], 16, query=13, key=1, residual=True)
    assert "No path leads from token 1 to query 13" in figure.alt
    assert not group(figure.svg, "way")
    assert "no path from 1 to 13" in figure.svg


@pytest.mark.parametrize("stack", [[BLOCK, SUMMARY], [SUMMARY, BLOCK]])
def test_the_edges_of_a_path_are_what_the_query_depends_on(stack: list[patterns.Pattern]) -> None:
    svg = plots.path(stack, 16, query=13, key=1).svg
    nodes = boxes(svg, "nodes")
    xs = sorted({round((a + c) / 2, 1) for a, _, c, _ in nodes})
    ys = sorted({round((b + d) / 2, 1) for _, b, _, d in nodes}, reverse=True)
    step, gap = (xs[-1] - xs[0]) / 15, ys[0] - ys[1]
    drawn = set()
    for name in ("edges", "edges-leading", "way"):
        for g in group(svg, name):
            for path in g.iter(f"{SVG}path"):
                for shape in subpaths(path.attrib["d"]):
                    (x0, y0), (x1, y1) = sorted((shape[0], shape[-1]), key=lambda end: -end[1])
                    layer = round((ys[0] - (y0 + y1) / 2) / gap - 0.5)
                    drawn.add((layer, round((x1 - xs[0]) / step), round((x0 - xs[0]) / step)))
    first, second = (pattern.key_sets(16) for pattern in stack)
    expected = {(1, 13, j) for j in second[13]}
    expected |= {(0, via, j) for via in second[13] for j in first[via]}
    assert drawn == expected


@pytest.mark.parametrize("residual", [False, True])
def test_ways_are_counted_and_the_drawn_one_is_real(residual: bool) -> None:
    window = patterns.sliding_window(lookback=3)
    M = window.mask(12).long() | (torch.eye(12).long() if residual else 0)
    for query, key in [(11, 3), (8, 8), (10, 0), (11, 2)]:
        count = int(torch.linalg.matrix_power(M.double(), 3)[query, key])
        alt = plots.path(window, 12, query=query, key=key, layers=3, residual=residual).alt
        if not count:
            assert "No path" in alt
            continue
        assert f"by {'one path' if count == 1 else f'{count} paths'};" in alt
        way = [int(n) for n in found(r"drawn is ([\d → ]+)", alt).split(" → ")]
        assert (way[0], way[-1], len(way)) == (query, key, 4)
        assert all(M[i, j] for i, j in pairwise(way))


def test_via_must_be_on_a_way() -> None:
    window, column = patterns.sliding_window(lookback=4), patterns.column(stride=4)
    alt = plots.path([column, window], 16, query=15, key=1, via=13).alt
    assert "15 → 13 → 1" in alt
    with pytest.raises(ValueError, match=r"via = 2: position 15 does not see 2 in layer 2"):
        plots.path([column, window], 16, query=15, key=1, via=2)
    with pytest.raises(ValueError, match="give 1 position"):
        plots.path([column, window], 16, query=15, key=1, via=(3, 4))


# --- words ---------------------------------------------------------------------------------------


def test_the_alt_text_counts() -> None:
    alt = plots.mask(GOLDEN, query=4, title="mine").alt
    assert alt.startswith("mine: 6 queries by 6 keys, 16 of 36 pairs allowed (44.4 %)")
    assert "2 to 3 keys for each query" in alt
    assert "query 1: 0, 1, 5;" in alt
    assert "Query 4 is framed; it may attend to 3 of 6 keys: 3–5." in alt
    assert "No query sees a later key" not in alt
    assert "No query sees a later key" in plots.mask(patterns.causal(), 6).alt


def test_panels_and_heads_have_their_own_words() -> None:
    heads = patterns.per_head(patterns.causal(), patterns.band(radius=0))
    figure = plots.mask(heads, 5)
    assert len(figure.panels) == 2
    assert "head 0: 5 queries by 5 keys, 15 of 25" in figure.alt
    assert "head 1: 5 queries by 5 keys, 5 of 25" in figure.alt
    with pytest.raises(ValueError, match="2 panels"):
        _ = figure.svg


def test_a_long_key_of_points_stands_in_columns() -> None:
    def height(count: int) -> float:
        crowd = {f"method {n}": (1.0, [2.0]) for n in range(count)}
        drawn = plots.points(crowd, xlabel="x", ylabel="y").svg
        found = re.search(r'viewBox="0 0 \S+ (\S+)"', drawn)
        assert found
        return float(found[1])

    assert height(25) < height(8)


def test_the_name_of_a_point_stands_beside_it_in_a_png_too() -> None:
    data = {"one": (1, [2.0, 2.2]), "other": (3, [1.0, 1.1]), "last": (2, [1.9, 1.7])}
    figure = plots.points(data, xlabel="x", ylabel="y", highlight="last")
    colour = [int(roles.LIGHT["attention"][k : k + 2], 16) for k in (1, 3, 5)]
    places = []
    for scale in (1, 2):
        picture = np.asarray(figure.panels[0].drawing.picture(scale)).astype(int)
        rows, columns = np.nonzero(abs(picture - colour).sum(-1) < 60)
        places.append([f(x) / scale for x in (rows, columns) for f in (np.min, np.max)])
    assert places[0] == pytest.approx(places[1], abs=6)


def test_an_attention_map_of_something_else_names_its_axes() -> None:
    A = torch.eye(3)
    usual = plots.attention_map(A).svg
    other = plots.attention_map(A, xlabel="training done", ylabel="layer").svg
    assert "key j" in usual and "query i" in usual
    assert "training done" in other and "layer" in other and "key j" not in other


def test_the_words_of_an_attention_map() -> None:
    A = torch.tensor([[1.0, 0, 0], [0.25, 0.75, 0], [0.2, 0.3, 0.5]])
    alt = plots.attention_map(
        A, pattern=patterns.causal(), rows=list("abc"), columns=list("xyz")
    ).alt
    assert "3 queries over 3 keys; 3 of 9 pairs are not allowed" in alt
    assert "query 1 (b): 0.75 on key 1 (y)" in alt


def test_the_words_of_costs_have_the_counts() -> None:
    figure = plots.cost({"causal": patterns.causal()}, (16, 32, 64), block=8)
    assert "causal: 136 at L = 16, 2080 at L = 64" in figure.alt
    blocks = patterns.causal().cost(64, block=8).block_pairs
    assert f"in blocks of 8 {number(blocks)} at the end" in figure.alt
    assert "Full attention: 256 to 4096" in figure.alt
    assert "1 KiB at L = 16" in plots.cost(patterns.full(), (16, 32), quantity="bytes").alt


def test_costs_take_a_pattern_that_grows_with_the_length() -> None:
    figure = plots.cost({"√L": lambda L: patterns.strided(stride=round(L**0.5))}, (64, 256, 1024))
    pairs = [patterns.strided(stride=s).cost(s * s).pairs for s in (8, 16, 32)]
    assert f"slope {slope((64, 256, 1024), pairs):.2f}" in figure.alt
    assert slope((4, 8, 16), (16, 64, 256)) == pytest.approx(2)


def test_a_curve_says_its_seeds() -> None:
    def drawn(values: object) -> plots.Figure:
        return plots.curve([1, 2, 3], {"a": values}, xlabel="step", ylabel="loss")

    three = drawn([[3, 2, 1], [3, 2, 2], [3, 2, 3]])
    assert "mean and range, 3 seeds" in three.svg
    assert "a: from 3 at 1 to 2 at 3 (1 to 3 over 3 seeds)" in three.alt
    assert group(three.svg, "band")
    assert "one seed" in drawn([[3, 2, 1]]).svg
    assert "seed" not in drawn([3, 2, 1]).svg
    spread = plots.curve([1, 2], {"a": [[1, 1], [1, 3]]}, xlabel="x", ylabel="y", band="std").alt
    assert "(0.586 to 3.41 over 2 seeds)" in spread


def test_words_for_sets_and_numbers() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7, 8"
    assert ranges([]) == "none"
    assert [number(v) for v in (0, 0.123456, -2.5, 1234, 2_130_000, 1e7, -1e-4)] == [
        "0", "0.123", "−2.5", "1234", "2.13×10⁶", "10⁷", "−10⁻⁴",
    ]  # fmt: skip


# --- the page ------------------------------------------------------------------------------------


def test_every_figure_is_a_sound_picture_for_a_page(everything: dict[str, plots.Figure]) -> None:
    for name, figure in everything.items():
        for svg, panel in zip(figure.svgs, figure.panels, strict=True):
            root = ET.fromstring(svg)
            assert root.attrib["role"] == "img", name
            assert root.attrib["aria-label"] == panel.alt, name
            assert len(panel.alt) > 20, name
            ids = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
            assert len(ids) == len(set(ids)), name
            for e in root.iter():
                assert e.tag not in (f"{SVG}script", f"{SVG}style"), name
                for key, value in e.attrib.items():
                    if key.endswith("href"):
                        assert value.startswith(("#", "data:image/png;base64,")), (name, value)
                    for target in re.findall(r"url\((.*?)\)", value):
                        assert target[1:] in ids, (name, target)
            assert "http" not in svg.replace("http://www.w3.org/2000/svg", ""), name
            colours = set(re.findall(r"#[0-9a-fA-F]{6}\b", svg))
            assert colours <= set(roles.LIGHT.values()), (name, colours)
            bare = re.sub(r"var\(--tfviz-[a-z]+, #[0-9A-F]{6}\)", "", svg)
            assert not re.search(r"#[0-9a-fA-F]{6}\b", bare), f"{name} has a colour without role"


def test_small_enough(everything: dict[str, plots.Figure]) -> None:
    big = {
        "64, random": plots.mask(patterns.random_keys(count=8, seed=0), 64, query=9),
        "64, Big Bird": plots.mask(patterns.PRESETS["Big Bird"], 64),
        "64, weights": plots.attention_map(causal_map(64), pattern=patterns.causal()),
        "64, overlay": plots.mask([patterns.causal(), patterns.column(stride=8)], 64, overlay=True),
        "64, hops": plots.hops(patterns.band(radius=4), 64),
        "32, path": plots.path(patterns.sliding_window(lookback=3), 32, query=31, key=24, layers=3),
    }
    for name, figure in (everything | big).items():
        assert all(len(svg) <= 40_000 for svg in figure.svgs), name


def test_two_figures_share_no_id(everything: dict[str, plots.Figure]) -> None:
    ids = [i for f in everything.values() for i in set(re.findall(r' id="([^"]+)"', f.html))]
    assert len(ids) > 5
    assert len(ids) == len(set(ids))


def test_a_figure_is_the_same_every_time() -> None:
    def drawn() -> list[plots.Figure]:
        lines = {"a": [[1, 2], [2, 3]]}
        return [
            plots.mask(patterns.strided(stride=4), 16, query=3),
            plots.attention_map(causal_map(40)),
            plots.curve([1, 2], lines, xlabel="x", ylabel="y"),
            plots.path([BLOCK, SUMMARY], 16, query=13, key=1),
        ]

    for one, two in zip(drawn(), drawn(), strict=True):
        assert one.html == two.html == one.html
        assert one.png == two.png


def test_a_notebook_gets_html_a_picture_and_words(everything: dict[str, plots.Figure]) -> None:
    bundle = everything["panels"]._repr_mimebundle_()
    assert bundle["text/html"].startswith('<figure class="tfviz-figure">')
    assert "<figcaption>Two &amp; more</figcaption>" in bundle["text/html"]
    assert bundle["text/html"].count("<svg") == 2
    assert "70 of 256 pairs" in bundle["text/plain"]
    picture = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    widths = [float(found(r' width="([\d.]+)"', s)) for s in everything["panels"].svgs]
    assert picture.width == 2 * sum(widths) + 48
    assert len(np.unique(np.asarray(picture))) > 3


def size(svg: str) -> tuple[float, float]:
    root = ET.fromstring(svg)
    return float(root.attrib["width"]), float(root.attrib["height"])


def test_every_figure_has_a_form_for_a_phone(everything: dict[str, plots.Figure]) -> None:
    several = 0
    for name, figure in everything.items():
        for panel in figure.panels:
            forms = [panel.drawing] + ([panel.narrow] if panel.narrow else [])
            several += len(forms) > 1
            assert forms[-1].width <= NARROW, name
            smallest = [
                float(found)
                for form in forms
                for found in re.findall(r"font(?:-size)?:\s*([\d.]+)px", form.svg(panel.alt))
            ]
            assert min(smallest) >= 10, name
            assert (f"@container (max-width:{panel.least - 1}px)" in figure.html) == bool(
                panel.narrow
            ), name
    assert several >= 4


def test_a_layer_is_named_once_on_a_phone() -> None:
    named = {"layer 1: own": BLOCK, "layer 2: summary": SUMMARY}
    (panel,) = plots.path(named, 16, query=13, key=1).panels
    root = ET.fromstring(narrow(panel))
    words = [t.text or "" for t in root.iter(f"{SVG}text")]
    assert {"after layer 1: own", "after layer 2: summary", "input"} <= set(words)


def test_the_narrow_form_says_the_same(everything: dict[str, plots.Figure]) -> None:
    """What is drawn broad is drawn narrow: lines, kept cells, names and labels."""
    for name in ("curve", "cost", "points", "path", "tree", "attention, names"):
        panel = everything[name].panels[0]
        wide, phone = ET.fromstring(panel.svg()), ET.fromstring(narrow(panel))
        assert phone.attrib["aria-label"] == wide.attrib["aria-label"] == panel.alt
        for kind in ("line", "tfviz-point", "way", "weights", "nodes"):
            both = [
                sum(len(g) for g in root.iter(f"{SVG}g") if g.get("class") == kind)
                for root in (wide, phone)
            ]
            assert both[0] == both[1], (name, kind)
        words = [" ".join(t.text or "" for t in root.iter(f"{SVG}text")) for root in (wide, phone)]
        for word in re.findall(r"[a-z]{4,}", words[0]):
            assert word in words[1], (name, word)


def test_plots_in_a_row_stand_below_each_other_on_a_phone() -> None:
    with plots.style():
        drawing, pair = plt.subplots(1, 2, figsize=(8, 3))
        for axes in pair:
            axes.plot([1, 2, 3], [1, 4, 9])
    (panel,) = plots.figure(drawing, alt="Squares twice: 1, 4, 9").panels
    wide, phone = size(panel.svg()), size(narrow(panel))
    assert wide[0] == 576 and phone[0] <= NARROW
    assert phone[1] > 1.8 * wide[1]


# --- numbers of the axes -------------------------------------------------------------------------


@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("most", [3, 6, 9])
def test_a_logarithmic_axis_has_three_numbers_or_more(most: int, base: int) -> None:
    for low in (1e-4, 0.037, 0.9, 1, 3.3, 64, 99, 1e5):
        for share in (1.3, 1.9, 4, 9, 32, 700, 1e5, 1e9, 1e25, 1e60):
            ticks = log_ticks(low, low * share, most, base)
            assert len(ticks) >= 3, (low, share)
            assert len(ticks) <= 2 * max(most, 3), (low, share)
            assert ticks == sorted(set(ticks))
            assert low * 0.999 <= ticks[0] and ticks[-1] <= low * share * 1.001
            if share > 100:  # over the whole of it, not at one end
                assert math.log(ticks[-1] / ticks[0]) > 0.4 * math.log(share), (low, share, ticks)


def numbers_of(svg: str, axis: str) -> list[str]:
    groups = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("class", "").startswith(axis)]
    return [t.text or "" for g in groups for t in g.iter(f"{SVG}text")]


def test_counts_have_whole_numbers() -> None:
    def drawn(x: list[float]) -> Panel:
        return plots.curve(x, {"a": [0.1, 0.2, 0.5]}, xlabel="layer", ylabel="loss").panels[0]

    for svg in (drawn([1, 2, 3]).svg(), narrow(drawn([1, 2, 3]))):
        assert numbers_of(svg, "xaxis integer") == ["1", "2", "3"]
    assert "1.5" in numbers_of(drawn([1, 2, 3.5]).svg(), "xaxis")


def test_an_own_alt_text_replaces_the_words() -> None:
    one = plots.mask(patterns.causal(), 4, alt="A staircase <1>")
    assert one.alt == "A staircase <1>"
    assert ET.fromstring(one.svg).attrib["aria-label"] == one.alt
    two = plots.mask([patterns.causal(), patterns.full()], 4, alt="Two")
    assert 'role="img" aria-label="Two"' in two.html
    assert two.html.count('aria-hidden="true"') == 2
    with pytest.raises(ValueError, match="alt = ' ' is empty"):
        plots.mask(patterns.causal(), 4, alt=" ")


def test_files(tmp_path: Path) -> None:
    figure = plots.mask(patterns.causal(), 4)
    text = figure.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ET.fromstring(text).attrib["font-family"]
    with Image.open(figure.save(tmp_path / "a.png")) as picture:
        assert picture.width > 100
    with pytest.raises(ValueError, match=r"use \.svg, \.png or \.pdf"):
        figure.save(tmp_path / "a.gif")


def test_any_matplotlib_figure_becomes_themed() -> None:
    before = plt.get_fignums()
    with plots.style():
        drawing, axes = plt.subplots(figsize=(4, 3))
        axes.plot([1, 2, 3], [1, 4, 9])
        axes.text(1, 5, "black", color="black")
        axes.set_xlabel("x <tokens>")
    figure = plots.figure(drawing, alt="Squares: 1, 4, 9", caption="They grow.")
    assert plt.get_fignums() == before
    assert roles.css("attention") in figure.svg
    assert "#000000" not in figure.svg
    assert "x &lt;tokens&gt;" in figure.svg
    assert plots.beside(figure, figure, caption="Twice").html.count("<svg") == 2
    with pytest.raises(ValueError, match="alt = ''"):
        plots.figure(drawing, alt="")
    with pytest.raises(TypeError, match="not a matplotlib figure"):
        plots.figure(axes, alt="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a Figure"):
        plots.beside(figure, drawing)  # type: ignore[arg-type]


# --- colours -------------------------------------------------------------------------------------


def test_the_style_sheet_of_the_book_has_the_same_colours() -> None:
    if not ROLES_CSS.exists():
        pytest.skip("the book's style sheet is not there")
    css = re.sub(r"/\*.*?\*/", "", ROLES_CSS.read_text(encoding="utf-8"), flags=re.S)
    for role in roles.ROLES:
        light, *dark = re.findall(rf"--tfviz-{role}:\s*(#[0-9a-fA-F]{{6}})\b", css)
        assert light.upper() == roles.LIGHT[role], role
        assert {v.upper() for v in dark} == {roles.DARK[role]}, role


def luminance(colour: str) -> float:
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [roles.LIGHT, roles.DARK])
def test_words_in_role_colours_can_be_read(theme: dict[str, str]) -> None:
    page = luminance(theme["page"])
    for role in roles.ROLES:
        if role not in ("page", "grid"):
            high, low = sorted((page, luminance(theme[role])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, role


def test_notebooks_in_the_dark_get_the_dark_colours() -> None:
    css = roles.notebook_css()
    assert all(f"--tfviz-{role}:{roles.DARK[role]}" in css for role in roles.ROLES)
    assert roles.css("ink") == "currentColor"
    assert roles.css("query") == f"var(--tfviz-query, {roles.LIGHT['query']})"


# --- plotly --------------------------------------------------------------------------------------


def spec_in(html: str) -> dict:
    return json.loads(found(r'<script type="application/json">(.*?)</script>', html))


def strings(part: object) -> set[str]:
    if isinstance(part, dict):
        return set().union(*map(strings, part.values()), set())
    if isinstance(part, list):
        return set().union(*map(strings, part), set())
    return {part} if isinstance(part, str) else set()


def test_a_plotly_figure_speaks_in_roles() -> None:
    fig = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], line={"color": plots.LIGHT["query"].lower()}))
    fig.update_layout(title={"text": "</script>"})
    wrapped = plots.plotly_figure(fig, alt="Two points", caption="See")
    spec = spec_in(wrapped.html)
    assert spec["data"][0]["line"]["color"] == "role:query"
    assert spec["layout"]["font"]["color"] == "role:ink"
    assert "template" not in spec["layout"]
    assert wrapped.html.count("</script>") == 1
    assert '<div class="tfviz-plotly" data-alt="Two points" hidden><button' in wrapped.html
    assert wrapped.html.index("Two points</p>") < wrapped.html.index("tfviz-plotly")
    light = wrapped._repr_mimebundle_()["application/vnd.plotly.v1+json"]
    assert light["data"][0]["line"]["color"] == plots.LIGHT["query"]
    go.Figure(light)  # plotly itself accepts it
    with pytest.raises(TypeError, match="give a plotly Figure"):
        plots.plotly_figure([1], alt="x")
    with pytest.raises(ValueError, match="alt = ''"):
        plots.plotly_figure(fig, alt="")


def test_measured_results_come_to_life_and_computed_ones_stay_pictures() -> None:
    rows = {"a": [[1, 2], [3, 6]], "b": [5, 5]}
    race = plots.curve([1, 2], rows, xlabel="step", ylabel="loss", logy=True)
    assert race.spec is not None
    band, a, b = race.spec["data"]
    assert (a["name"], a["x"], a["y"], b["y"]) == ("a", [1, 2], [2, 4], [5, 5])
    assert (band["x"], band["y"]) == ([1, 2, 2, 1], [3, 6, 2, 1])
    assert a["line"]["color"] == "role:attention" and b["line"]["color"] == "role:ink"
    assert race.spec["layout"]["yaxis"]["type"] == "log"
    assert not {s for s in strings(race.spec) if s.startswith("#")}
    assert spec_in(race.html) == race.spec
    light = race._repr_mimebundle_()["application/vnd.plotly.v1+json"]
    assert light["data"][0]["fillcolor"] == "rgba(156,50,237,0.18)"
    assert light["layout"]["paper_bgcolor"] == plots.LIGHT["page"]  # readable in a dark notebook
    go.Figure(light)
    cloud = plots.points({"a": (1, [2, 5]), "b": (3, 4)}, xlabel="x", ylabel="y")
    assert cloud.spec is not None
    first = cloud.spec["data"][0]
    assert (first["x"], first["y"]) == ([1], [3.5])
    assert (first["error_y"]["array"], first["error_y"]["arrayminus"]) == ([1.5], [1.5])
    go.Figure(cloud._repr_mimebundle_()["application/vnd.plotly.v1+json"])
    computed = plots.curve([1, 2], {"a": [1, 2]}, xlabel="x", ylabel="y")
    assert computed.spec is None and "button" not in computed.html
    assert "application/vnd.plotly.v1+json" not in computed._repr_mimebundle_()
    assert plots.curve([1, 2], {"a": [1, 2]}, xlabel="x", ylabel="y", explore=True).spec
    assert plots.curve([1, 2], rows, xlabel="x", ylabel="y", explore=False).spec is None


def test_the_hovering_map_has_the_weights() -> None:
    A = causal_map(5)
    figure = plots.hover_attention_map(A, pattern=patterns.causal())
    grid, forbidden = figure.spec["data"]
    table = torch.tensor([[v or 0.0 for v in line] for line in grid["z"]])
    torch.testing.assert_close(table, A, atol=1e-4, rtol=0)
    assert grid["z"][0][1] is None
    assert grid["text"][0][1] == "query 0 → key 1: not allowed"
    pairs = set(zip(forbidden["y"], forbidden["x"], strict=True))
    assert pairs == {(i, j) for i in range(5) for j in range(i + 1, 5)}
    assert grid["colorscale"] == [[0, "role:page"], [1, "role:attention"]]
    assert figure.spec["layout"]["yaxis"]["range"] == [4.5, -0.5]  # query 0 at the top
    assert not {s for s in strings(figure.spec) if s.startswith("#")}
    go.Figure(figure._repr_mimebundle_()["application/vnd.plotly.v1+json"])
    with pytest.raises(ValueError, match="give one"):
        plots.hover_attention_map(A.expand(2, 5, 5))


def test_the_hovering_costs_are_the_costs() -> None:
    figure = plots.hover_cost({"causal": patterns.causal()}, (16, 32), block=8)
    exact, blocks, full = figure.spec["data"]
    assert exact["y"] == [patterns.causal().cost(L).pairs for L in (16, 32)]
    assert blocks["y"] == [patterns.causal().cost(L, block=8).block_pairs for L in (16, 32)]
    assert full["y"] == [256, 1024]
    go.Figure(figure._repr_mimebundle_()["application/vnd.plotly.v1+json"])


# --- bad input -----------------------------------------------------------------------------------

causal = patterns.causal()
axes: dict[str, Any] = {"xlabel": "", "ylabel": ""}
BAD = [
    (lambda: plots.mask(causal), "has no length of its own; give L"),
    (lambda: plots.mask(causal, 0), "L = 0 is out of range"),
    (lambda: plots.mask(causal, 2000), "L = 2000 is out of range"),
    (lambda: plots.mask(torch.ones(4, 4)), "pattern is torch.float32; give a Boolean mask"),
    (lambda: plots.mask(torch.ones(4, 3).bool()), r"pattern has shape \(4, 3\)"),
    (lambda: plots.mask(torch.ones(4, 4).bool(), 5), "L = 4, but L = 5 was given"),
    (lambda: plots.mask([[1, 0], [1]]), "rows of different lengths"),
    (lambda: plots.mask([[1, 2], [0, 1]]), "give a Boolean mask"),
    (lambda: plots.mask("strided", 4), "pattern = 'strided'; give a Pattern"),  # type: ignore[arg-type]
    (lambda: plots.mask([], 4), r"is empty"),
    (lambda: plots.mask(causal, 4, query=4), "query = 4 is out of range; choose 0 <= query <= 3"),
    (lambda: plots.mask(causal, 4, size=3), "size = 3 is out of range"),
    (lambda: plots.mask([causal] * 4, 4, overlay=True), "4 patterns; give 2 or 3"),
    (lambda: plots.mask({"a": GOLDEN, "b": GOLDEN16}), r"lengths \[6, 16\]"),
    (lambda: plots.attention_map(torch.randn(3, 3) - 9), "plots.signed_map"),
    (lambda: plots.attention_map(torch.tensor([[float("nan")]])), "1 values that are not finite"),
    (lambda: plots.attention_map(torch.ones(3)), "give real numbers"),
    (lambda: plots.attention_map("A"), "A is not a tensor of numbers"),
    (
        lambda: plots.attention_map(torch.full((3, 3), 1 / 3), pattern=causal),
        r"3 pairs that pattern forbids, first at \(query, key\) = \(0, 1\)",
    ),
    (lambda: plots.attention_map(torch.eye(3), rows=["a"]), "rows has 1 labels for 3"),
    (lambda: plots.attention_map(torch.eye(3), title=["a", "b"]), "2 entries for 1 heads"),
    (lambda: plots.attention_map(torch.eye(3), vmax=0), "vmax = 0"),
    (lambda: plots.attention_map(torch.eye(2, 3), pattern=causal), "the map is 2 × 3"),
    (lambda: plots.signed_map(torch.eye(2), pattern=GOLDEN), "they must fit"),
    (lambda: plots.reach(causal, 6, layers=0), "layers = 0 is out of range"),
    (lambda: plots.image_neighbourhood(causal, 3, 3, (3, 0)), r"pixel\[0\] = 3 is out of range"),
    (lambda: plots.image_neighbourhood(GOLDEN, 3, 3, (0, 0)), "L = 6, but L = 9"),
    (lambda: plots.key_set(causal, 65), "choose L <= 64"),
    (lambda: plots.bipartite(causal, 65), "choose L <= 64"),
    (lambda: plots.path(causal, 6, query=6, key=0), "query = 6 is out of range"),
    (lambda: plots.path({}, 6, query=5, key=0), "is empty"),
    (lambda: plots.cost(causal, (64,)), "at least two"),
    (lambda: plots.cost(causal, (64, 32)), "rising"),
    (lambda: plots.cost(causal, quantity="seconds"), "choose one of pairs, flops, bytes"),  # type: ignore[arg-type]
    (lambda: plots.cost({"x": lambda L: L}), "at L = 64, not a Pattern"),  # type: ignore[dict-item, return-value]
    (lambda: plots.curve([1, 1], {"a": [1, 2]}, **axes), "rising"),
    (lambda: plots.curve([1, 2], {"a": [1, 2, 3]}, **axes), r"'a'\] has shape \(3,\)"),
    (lambda: plots.curve([1, 2], {"a": [0, 1]}, **axes, logy=True), "needs values > 0"),
    (lambda: plots.curve([0, 2], {"a": [1, 1]}, **axes, logx=True), "needs x > 0"),
    (lambda: plots.curve([1, 2], {}, **axes), "series is empty"),
    (lambda: plots.curve([1, 2], {"a": [1, 2]}, **axes, highlight="b"), "choose from"),
    (lambda: plots.curve([1, 2], {"a": [1, 2]}, **axes, band="sem"), "band = 'sem'"),  # type: ignore[arg-type]
    (lambda: plots.points({"a": 3}, **axes), r"give \(x, \[y per seed\]\)"),  # type: ignore[dict-item]
]  # fmt: skip


@pytest.mark.parametrize(("draw", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named_with_its_remedy(draw: Callable[[], object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        draw()


def test_a_schematic_draws_shapes_and_names_what_is_wrong() -> None:
    steps: list[tuple[str, str, str, str] | str] = [
        ("Q", "L", "d", "query"),
        "·",
        ("K", "d", "1", "key"),
        "[softmax]",
    ]
    drawn = plots.schematic(steps, {"L": 6, "d": 3}, alt="Q times K")
    for words in ("Q", "L × d", "d × 1", "softmax"):
        assert f">{words}<" in drawn.svgs[0]
    assert "[softmax]" not in drawn.svgs[0]
    for wrong, said in (
        ([], "steps is empty"),
        ([("Q", "L", "m", "query")], "sizes lacks 'm' of Q"),
        ([("Q", "L", "d", "red")], "role = 'red' of Q"),
    ):
        with pytest.raises(ValueError, match=said):
            plots.schematic(wrong, {"L": 6, "d": 3}, alt="x")


# --- positional encodings, and other ways out -----------------------------------------------------


def test_a_positional_encoding_names_its_rows_and_columns() -> None:
    rows = plots.positions(Sinusoidal(8), 6)
    assert "6 rows (position i) by 8 columns (dimension)" in rows.alt
    assert plots.positions(sinusoids(torch.arange(6), 8)).alt == rows.alt
    table = plots.positions(torch.randn(5, 4), distances=range(-2, 3))
    assert "5 rows (distance i − j) by 4 columns (dimension)" in table.alt
    assert all(f">{name}<" in table.svg for name in ("-2", "+0", "+2"))
    assert "6 rows (query i) by 6 columns (key j)" in plots.positions(Rope(16), 6).alt
    assert len(plots.positions(Alibi(4), 6, h=4).panels) == 4


def test_the_scores_of_equals_are_the_work_of_positions_alone() -> None:
    i, j = torch.arange(5)[:, None], torch.arange(5)
    falls = scores_of_equals(Bias(lambda i, j: -0.5 * (i - j)), 5, 2, 4)
    assert torch.allclose(falls, (2.0 - 0.5 * (i - j)).expand(2, 5, 5))
    turned = scores_of_equals(Rope(4), 5, 1, 4)[0]
    clocks = (i - j).cos() + ((i - j) / 100).cos()  # two hands, each of length √2
    assert torch.allclose(turned, clocks, atol=1e-5)
    assert falls.grad_fn is None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: plots.positions(Rope(16)), ValueError, "L is missing"),
        (lambda: plots.positions(Rope(16), 6, distances=[1]), ValueError, "a core has none"),
        (lambda: plots.positions(cast(Any, "rope"), 6), TypeError, "encoding = 'rope'"),
        (lambda: plots.positions(torch.zeros(2, 3, 4)), ValueError, r"shape \(2, 3, 4\)"),
        (lambda: plots.positions(torch.zeros(3, 4), distances=[0, 1]), ValueError, "names 2 rows"),
        (lambda: plots.positions(Rope(16), 0), ValueError, "L = 0"),
    ],
)
def test_what_is_no_positional_encoding_is_refused(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_figure_is_saved_as_pdf_and_drawn_into_axes(tmp_path: Path) -> None:
    both = plots.beside(plots.mask(patterns.causal(), 6), plots.mask(patterns.full(), 6))
    data = both.save(tmp_path / "both.pdf").read_bytes()
    assert data.startswith(b"%PDF") and data.count(b"/Type /Page ") == 2
    fig, ax = plt.subplots()
    drawn = plots.mask(patterns.causal(), 6)
    assert drawn.draw(ax) is ax and ax.patches and not ax.axison
    with pytest.raises(ValueError, match="2 panels"):
        both.draw(ax)
    plt.close(fig)
    with plots.style():
        own, axes = plt.subplots()
        axes.plot([0, 1])
    with pytest.raises(ValueError, match=r"a plot of matplotlib's already"):
        plots.figure(own, alt="a line").draw(ax)
    with pytest.raises(ValueError, match=r"use \.svg, \.png or \.pdf"):
        drawn.save(tmp_path / "mask.gif")


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/plots/matrices.py": [
        (
            "pairs of the alt text miscounted",
            "    pairs = int(mask.sum())\n    counts",
            "    pairs = int(mask.sum()) + 1\n    counts",
            "alt_text",
        ),
    ],
    "tfviz/plots/curves.py": [
        ("a curve's seeds told as one", "    if many == 1:\n", "    if few >= 1:\n", "seeds"),
    ],
}
