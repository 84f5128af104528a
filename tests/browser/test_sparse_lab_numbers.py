"""The Sparse Lab's numbers in a real browser are the library's: masks, reach, influence, cost."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from tfviz import patterns as P
from tfviz.explorers import SparseLab

JS = """await import(`${address}_static/explorers/kit.js`);
const { counted, ...rest } = await import(`${address}_static/explorers/sparse_lab.js`);
const lab = { ...counted, ...rest };"""

VALUES: dict[str, list[Any]] = {
    "radius": [0, 1, 5],
    "lookback": [0, 3, 40],
    "dilation": [1, 3],
    "stride": [1, 4, 9],
    "block": [1, 4, 7],
    "summary": [1, 3],
    "count": [1, 2, 5],
    "seed": [0, 7],
    "window": [0, 1],
    "n_global": [1, 2, 5],
    "n_random": [1, 2],
    "permutation": [(0,), (1, 2, 0), (3, 1, 0, 2)],
}
LENGTHS = [2, 7, 24, 33]


def grid() -> list[tuple[P.Pattern, int]]:
    """Every family with every combination of values that its ranges allow, at every length."""
    cases = []
    for family in P.FAMILIES.values():
        choices = [VALUES.get(n, [x.low, x.low + 1, x.default]) for n, x in family.domains.items()]
        for values in itertools.product(*choices):
            for L in LENGTHS:
                try:
                    pattern = family(**dict(zip(family.domains, values, strict=True)))
                    pattern.check_length(L)
                except ValueError:
                    continue
                cases.append((pattern, L))
    return cases


def run(page: Any, address: str, script: str, data: Any) -> Any:
    page.goto(f"{address}empty.html")
    return page.evaluate(f"async ([address, data]) => {{ {JS} {script} }}", [address, data])


def packed(mask: torch.Tensor) -> str:
    return np.packbits(mask.numpy()).tobytes().hex()


BITS = """
const hex = (bits) => {
  let text = "";
  for (let k = 0; k < bits.length; k += 8) {
    let byte = 0;
    for (let n = 0; n < 8; n++) byte = byte * 2 + (bits[k + n] || 0);
    text += byte.toString(16).padStart(2, "0");
  }
  return text;
};
"""


def test_masks_of_every_family(page: Any, address: str) -> None:
    cases = grid()
    assert {p.name for p, _ in cases} == set(P.FAMILIES)
    assert len(cases) > 400
    data = [[p.spec(), L] for p, L in cases]
    got = run(page, address, BITS + "return data.map(([s, L]) => hex(lab.bits(s, L)));", data)
    wrong = [
        f"{p!r} at L = {L}"
        for (p, L), text in zip(cases, got, strict=True)
        if text != packed(p.mask(L))
    ]
    assert not wrong, wrong


def test_combined_patterns_tables_and_causal(page: Any, address: str) -> None:
    torch.manual_seed(1)
    L = 21
    random = P.table(torch.rand(L, L) < 0.2)
    cases = [
        P.band(radius=3) | P.global_tokens(count=2),
        (P.strided(stride=5) & ~P.block_local(block=4))
        | P.causal() & P.random_keys(count=2, seed=3),
        ~(P.band(radius=2) | P.column(stride=3)),
        random,
        random & P.causal(),
    ]
    data = [[p.spec(), L] for p in cases]
    got = run(page, address, BITS + "return data.map(([s, L]) => hex(lab.bits(s, L)));", data)
    assert got == [packed(p.mask(L)) for p in cases]
    got = run(
        page,
        address,
        BITS + "return data.map(([s, L]) => hex(lab.measure(s, L, true).mask));",
        data,
    )
    assert got == [packed((p & P.causal()).mask(L)) for p in cases]


STACKS = [
    [P.strided(stride=8)],
    [P.sliding_window(lookback=8), P.column(stride=8)],
    [P.column(stride=8), P.sliding_window(lookback=8)],
    [P.own_block(block=8), P.summary_columns(block=8, summary=1)],
    [P.summary_columns(block=8, summary=1), P.own_block(block=8)],
    [P.band(radius=2)],
    [P.bigbird(block=4, window=1, n_global=1, n_random=1, seed=2)],
    [P.random_keys(count=2, seed=5), P.causal()],
    [P.block_local(block=6)],
    [P.blockwise(permutation=(1, 2, 0))],
    [P.star()],
    [P.own_block(block=8)],
]


@pytest.mark.parametrize("L", [5, 32, 70])
def test_reach_and_influence(page: Any, address: str, L: int) -> None:
    layers = 3
    data = {"L": L, "layers": layers, "stacks": [[p.spec() for p in s] for s in STACKS]}
    got = run(
        page,
        address,
        """return data.stacks.map((specs) => {
          const stack = specs.map((spec) => lab.measure(spec, data.L, false));
          const r = lab.reachOf(stack);
          const rows = [...Array(data.L).keys()];
          const cones = rows.map((i) => lab.coneOf(stack, data.layers, i, 0));
          return { hops: [...r.hops], diameter: r.diameter, unreachable: r.unreachable,
                   influence: rows.map((i) => [...lab.influenceOf(stack, data.layers, i)]),
                   heard: cones.map((c) => [...c.cone[0]]), paths: cones.map((c) => c.path) };
        });""",
        data,
    )
    seen = set()
    for stack, js in zip(STACKS, got, strict=True):
        reach = P.reach(stack, L)
        assert js["hops"] == reach.hops.flatten().tolist(), stack
        assert (js["diameter"], js["unreachable"]) == (reach.diameter, reach.unreachable), stack
        expected = P.influence(stack, L, layers)
        torch.testing.assert_close(torch.tensor(js["influence"], dtype=expected.dtype), expected)
        heard = P.reach(stack, L, layers).by_layer[-1]
        assert (torch.tensor(js["heard"]) > 0).equal(heard), stack
        masks = [p.mask(L) for p in stack]
        for i, path in enumerate(js["paths"]):
            assert (path is not None) == bool(heard[i, 0])
            if path:  # a real way: every step stays or follows an allowed pair of its layer
                assert (path[0], path[-1]) == (0, i)
                for n, (key, query) in enumerate(itertools.pairwise(path)):
                    assert key == query or masks[n % len(masks)][query, key], (stack, path)
        seen.add((reach.diameter is None, reach.causal))
    if L > 5:
        assert len(seen) == 4  # connected and not, causal and not


def test_pairs_and_blocks(page: Any, address: str) -> None:
    cases = [
        (p, L, block)
        for p in (P.strided(stride=8), P.bigbird(block=4, window=1, n_global=1, n_random=1, seed=0))
        for L in (30, 64)
        for block in (1, 7, 16, 64)
    ]
    data = [[p.spec(), L, block] for p, L, block in cases]
    got = run(
        page,
        address,
        """return data.map(([spec, L, block]) => {
          const m = lab.measure(spec, L, false), t = lab.tiles(m, block);
          return [m.pairs, t.blocks, t.all, t.pairs];
        });""",
        data,
    )
    for (p, L, block), numbers in zip(cases, got, strict=True):
        cost = p.cost(L, d=64, h=1, block=block)
        assert numbers == [cost.pairs, cost.blocks, cost.full_blocks, cost.block_pairs], (p, L)


GOALS: list[dict[str, Any]] = [
    {"max_hops": 2, "max_keys": 12, "causal": True, "L": 64},
    {"max_hops": 2, "max_keys": 9, "causal": True, "L": 32},
    {"max_hops": 3},
    {"max_pairs": 400, "max_hops": 6},
    {"causal": True},
]


def test_goal_verdict_is_the_librarys(page: Any, address: str) -> None:
    labs = []
    for goal, stack in itertools.product(GOALS, STACKS):
        right = stack[1] if len(stack) > 1 else None
        labs.append(
            SparseLab(stack[0], right, L=32, goal=goal, stack="AB" if right is not None else "A")
        )
    data = [[lab.goal, lab.L, [p.spec() for p in lab.stacked]] for lab in labs]
    got = run(
        page,
        address,
        """return data.map(([goal, L, specs]) => {
          const stack = specs.map((spec) => lab.measure(spec, L, false));
          return lab.verdict(goal, L, stack, lab.reachOf(stack));
        });""",
        data,
    )
    reports = [lab.goal_report() for lab in labs]
    assert got == [{"met": r.met, "message": r.message} for r in reports]
    assert {r.met for r in reports} == {True, False}
    words = " ".join(r.message for r in reports)
    for reason in (
        "is in its future",
        "keys (",
        "pairs are used",
        "never connected",
        "needs",
        "is 32",
    ):
        assert reason in words


def test_module_needs_no_import_and_is_small(folder: Any, address: str) -> None:
    import gzip

    for kind in ("js", "css"):
        texts = [
            (folder / "_static" / "explorers" / f"{name}.{kind}").read_text("utf-8")
            for name in ("kit", "sparse_lab")
        ]
        assert sum(len(gzip.compress(text.encode())) for text in texts) < 55_000
        for text in texts:
            assert not re.search(r"^import\b", text, re.MULTILINE)
            assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", text)
    reg = (folder / "_static" / "explorers" / "sparse_lab.reg.js").read_text("utf-8")
    assert json.loads(reg.split(", ", 1)[1].rsplit(");", 1)[0]) == SparseLab.sources()[0]
