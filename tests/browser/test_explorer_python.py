"""The Python side of the explorers: states, mount points, checks of arguments, the assets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import traitlets as t

from tfviz import explorers
from tfviz import patterns as P
from tfviz.explorers import ALL, SparseLab, write_assets

RESTS_ON = (
    "tfviz/explorers/**",
    "tests/browser/**",
    "tests/*.py",
    "tfviz_lab/results/*.json",
)


def test_state_is_json_and_the_same_every_time() -> None:
    lab = SparseLab(P.band(radius=2) | P.causal(), L=32, goal={"max_hops": 3})
    texts = {
        json.dumps(SparseLab(**kw).state)
        for kw in [{"left": lab.left, "L": 32, "goal": lab.goal}] * 3
    }
    assert texts == {json.dumps(lab.state)}
    assert P.from_spec(lab.state["left"]) == lab.left
    assert not [name for name in lab.state if name.startswith("_") or name == "layout"]


def test_an_explorer_is_imported_without_the_others() -> None:
    """Else a lesson would be executed again for each change of an explorer that it has not."""
    code = (
        "import sys; from tfviz.explorers import SinusoidalClocks\n"
        "print(*(name for name in sys.modules if name.startswith('tfviz.explorers.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        f"tfviz.explorers.{name}"
        for name in ("base", "knobs", "position", "position.sinusoidal_clocks")
    }
    assert {kind.__name__ for kind in ALL.values()} <= set(explorers.__all__) <= set(dir(explorers))
    for name in explorers.__all__:
        assert getattr(explorers, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'NoSuch'"):
        _ = explorers.NoSuch


def test_mount_point_carries_the_state() -> None:
    lab = SparseLab(prompt="</script><b>try & see")
    html = lab._repr_mimebundle_()[0]["text/html"]
    assert html.count("</script>") == 1
    blob = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert blob and json.loads(blob[1]) == lab.state
    assert 'data-explorer="sparse_lab"' in html and "<noscript>" in html
    assert "min-height: calc(" in html


def test_patterns_are_set_and_read() -> None:
    lab = SparseLab()
    assert (lab.left, lab.right) == (P.strided(stride=8), P.fixed(block=8, summary=1))
    lab.left = P.band(radius=2)
    lab.right = P.star().spec()
    assert (lab.pattern, lab.right) == (P.band(radius=2), P.star())
    lab.causal = True
    assert lab.pattern == P.band(radius=2) & P.causal()
    lab.stack = "BA"
    assert lab.stacked == [P.star() & P.causal(), lab.pattern]
    assert P.star().explore(32, query=3).query == 3
    lab.query = 40
    lab.L = 16
    assert lab.query == 15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"L": 1000}, "L = 1000 .* <= 512"),
        ({"L": 16, "query": 16}, "query = 16 .* <= 15"),
        ({"layers": 65}, "layers = 65 .* <= 64"),
        ({"stack": "C"}, "stack"),
        ({"goal": {"hops": 2}}, "goal hops = 2"),
        ({"goal": {"max_hops": "2"}}, "goal max_hops = '2'"),
        ({"left": 3}, "left = 3"),
        ({"left": P.per_head(P.full(), P.full())}, "parts"),
        ({"left": P.random_keys(count=20), "L": 16}, "count = 20 .* <= 16"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError, t.TraitError), match=message):
        SparseLab(**options)


def test_goal_reports_say_why() -> None:
    goal = {"max_hops": 2, "max_keys": 10, "causal": True, "L": 64}
    left, right = P.own_block(block=8), P.summary_columns(block=8, summary=1)
    assert SparseLab(left, right, stack="AB", goal=goal).goal_report().message == "Goal met."
    turned = SparseLab(left, right, stack="BA", goal=goal).goal_report()
    assert not turned and "needs 3 hops" in turned.message
    alone = SparseLab(left, right, stack="A", goal=goal).goal_report()
    assert "never connected" in alone.message and alone.numbers["hops"] is None
    ahead = SparseLab(P.band(radius=1), goal=goal).goal_report()
    assert "query 0 sees token 1" in ahead.message
    with pytest.raises(ValueError, match="goal = None"):
        SparseLab().goal_report()


def test_assets_of_every_explorer(tmp_path: Path) -> None:
    names = write_assets(tmp_path)
    assert names == list(ALL) and "sparse_lab" in names
    kit = {p.name: p.read_text("utf-8") for p in tmp_path.glob("kit.*")}
    assert set(kit) == {"kit.js", "kit.css"}
    lab = SparseLab()  # in a notebook the module brings the kit along
    assert kit["kit.js"].removeprefix("globalThis.tfvizKit = ").removesuffix(";\n") in lab._esm
    assert lab._esm.endswith(SparseLab.sources()[0]) and lab._css.startswith(kit["kit.css"])
    for name in names:
        assert {p.name for p in tmp_path.glob(f"{name}.*")} == {
            f"{name}.js",
            f"{name}.css",
            f"{name}.reg.js",
            *(f"{name}.{part}.js" for part in ALL[name].parts()),
        }


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/explorers/sparse/sparse_lab.py": [
        ("the lab overlooks the future", "m.triu(1).nonzero()", "m.triu(2).nonzero()"),
        (
            "the second pattern of the lab first",
            "for side in STACKS[self.stack]]",
            "for side in STACKS[self.stack][::-1]]",
        ),
    ],
}
