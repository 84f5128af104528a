"""Students who did nothing wrong on purpose, and what their tools did to the file."""

from __future__ import annotations

import copy
import json
from typing import Any

from course.bad.kind import BOTH, WRITTEN, HandIn, student


@student(honest=True, notebooks=BOTH)
def honest_all_right(hand_in: HandIn) -> None:
    """Everything is right, both notebooks are there."""


@student(honest=True, notebooks=BOTH)
def honest_in_another_style(hand_in: HandIn) -> None:
    """Everything is right, written in a quite different way: matrices, lambda, a class."""
    hand_in.answer(
        "ex-sharpness",
        "import math\n\nbeta_for = lambda share, slots: math.log(slots - 1) + math.log("
        "share) - math.log1p(-share)",
    )
    hand_in.answer(
        "ex-attention-loops",
        """\
        def my_attention(Q, K, V, allowed):
            scores = (Q @ K.T / Q.shape[1] ** 0.5).masked_fill(~allowed, float("-inf"))
            weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
            return [weights @ V, weights]
        """,
    )
    hand_in.answer(
        "ex-order",
        """\
        from itertools import islice, permutations

        class Order:
            WORDS = ("invariant", "equivariant")

            def __call__(self, f, X):
                results = {word: True for word in self.WORDS}
                for p in islice(permutations(range(len(X))), 1, 200, 9):
                    p = list(p)
                    shuffled, plain = f(X[p]), f(X)
                    results["invariant"] &= torch.allclose(shuffled, plain, atol=1e-5)
                    results["equivariant"] &= len(plain) == len(p) and torch.allclose(
                        shuffled, plain[p], atol=1e-5
                    )
                return next((word for word in self.WORDS if results[word]), "neither")

        order = Order()
        """,
    )
    hand_in.answer(
        "ex-two-hops",
        """\
        lab = SparseLab(
            left=patterns.sliding_window(lookback=side), right=patterns.column(stride=side),
            L=side**2, query=7, panels=["depth"],
            goal={"L": side**2, "causal": True, "max_hops": 2, "max_keys": side},
        )
        lab.left = patterns.band(radius=side - 1) & patterns.causal()
        lab.stack = "AB"
        print("done")
        """,
    )


@student(honest=True, notebooks=BOTH, sharpness="none", loops="checks", hops="none")
def honest_partly_right(hand_in: HandIn) -> None:
    """One answer is wrong, one passes the visible checks only, the lab misses its goal."""
    hand_in.answer(
        "ex-sharpness",
        "def beta_for(share, slots):\n    return math.log(slots * share / (1 - share))",
    )
    hand_in.answer(
        "ex-attention-loops",
        """\
        def my_attention(Q, K, V, allowed):
            L = len(Q)  # as many keys as queries, is that not always so?
            A = torch.zeros(L, L)
            for i in range(L):
                total = sum(math.exp(Q[i] @ K[j] / math.sqrt(2)) for j in range(L) if allowed[i, j])
                for j in range(L):
                    if allowed[i, j]:
                        A[i, j] = math.exp(Q[i] @ K[j] / math.sqrt(2)) / total
            return A @ V, A
        """,
    )
    hand_in.answer(
        "ex-two-hops",
        """\
        lab = SparseLab(
            left=patterns.sliding_window(lookback=side), right=patterns.column(stride=side),
            L=side**2,
            goal={"L": side**2, "causal": True, "max_hops": 2, "max_keys": side},
        )
        lab.stack = "AB"
        """,
    )


@student(honest=True, every="none")
def honest_stub_only(hand_in: HandIn) -> None:
    """Has written nothing yet and hands in the release as it came."""
    hand_in.notebooks["attention.ipynb"] = copy.deepcopy(hand_in.release["attention"])


@student(honest=True, every="none", written="waits")
def honest_written_answer_only(hand_in: HandIn) -> None:
    """Only the written answer is there, with a formula and a list."""
    hand_in.notebooks["attention.ipynb"] = copy.deepcopy(hand_in.release["attention"])
    hand_in.answer("ex-repair", WRITTEN + "\n\n* $a(1-a)$\n* `softmax`\n")


@student(honest=True, notebooks=BOTH)
def honest_saved_by_colab(hand_in: HandIn) -> None:
    """Saved by Colab: no nbgrader metadata and other cell ids; outputs and keys of Colab's own."""
    for name, notebook in hand_in.notebooks.items():
        notebook["metadata"] = {
            "colab": {"name": name, "provenance": [], "toc_visible": True},
            "kernelspec": {"display_name": "Python 3", "name": "python3"},
            "language_info": {"name": "python"},
        }
        notebook["nbformat"], notebook["nbformat_minor"] = 4, 0
        for number, cell in enumerate(notebook["cells"]):
            cell.pop("id", None)
            cell["metadata"] = {"id": f"aB3xY{number:07}"}
            if cell["cell_type"] == "code":
                cell["metadata"] |= {"colab": {"base_uri": "https://localhost:8080/"}}
                cell["metadata"] |= {"outputId": f"0f-{number}", "cellView": "form"}
                cell["execution_count"] = number
                cell["outputs"] = [
                    {"output_type": "stream", "name": "stdout", "text": ["looks good\n"]}
                ]


@student(honest=True)
def honest_saved_by_jupyterlab(hand_in: HandIn) -> None:
    """Run and saved in JupyterLab: execution counts, folded cells, outputs, an error."""
    hand_in.notebook["metadata"]["toc-showcode"] = False
    for number, cell in enumerate(hand_in.notebook["cells"]):
        cell["metadata"] |= {"trusted": True, "collapsed": False, "scrolled": True}
        cell["metadata"]["jupyter"] = {"outputs_hidden": True}
        cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["metadata"]["execution"] = {"iopub.execute_input": "2026-11-20T10:00:00Z"}
            cell["execution_count"] = 40 - number
            cell["outputs"] = [
                {
                    "output_type": "error",
                    "ename": "NotImplementedError",
                    "evalue": "",
                    "traceback": ["\u001b[31mNotImplementedError\u001b[39m"],
                }
            ]


@student(honest=True)
def honest_older_format(hand_in: HandIn) -> None:
    """Saved by an old Jupyter: minor version 2 of the format, which has no cell ids."""
    for notebook in hand_in.notebooks.values():
        notebook["nbformat_minor"] = 2
        for cell in notebook["cells"]:
            del cell["id"]


@student(honest=True)
def honest_newer_format(hand_in: HandIn) -> None:
    """Saved by a Jupyter newer than ours: a minor version that we do not know, with new keys."""
    hand_in.notebook["nbformat_minor"] = 42
    hand_in.notebook["novelty"] = {"of": "tomorrow"}
    for cell in hand_in.notebook["cells"]:
        cell["novelty"] = True


@student(honest=True)
def honest_windows_line_ends(hand_in: HandIn) -> None:
    """Edited on Windows: CR LF in the file and in every cell, and a byte order mark in front."""
    for cell in hand_in.notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    text = json.dumps(hand_in.notebook, indent=1).replace("\n", "\r\n")
    hand_in.files["attention.ipynb"] = b"\xef\xbb\xbf" + text.encode()
    hand_in.notebooks = {}


@student(honest=True)
def honest_helper_functions(hand_in: HandIn) -> None:
    """Helper functions, imports and a quick test of the student's own stand in the answer cell."""
    hand_in.answer(
        "ex-attention-loops",
        """\
        from functools import partial

        import numpy as np

        MINUS = -np.inf


        def row(q, K, seen):
            scores = torch.tensor([float(q @ k) / math.sqrt(len(q)) for k in K])
            scores[~seen] = MINUS
            return torch.softmax(scores, 0) if seen.any() else torch.zeros(len(K))


        def my_attention(Q, K, V, allowed):
            weights = torch.stack(list(map(partial(apply, K), Q, allowed)))
            return weights @ V, weights


        def apply(K, q, seen):
            return row(q, K, seen)


        print(my_attention(torch.eye(2), torch.eye(2), torch.eye(2), torch.ones(2, 2) > 0))
        """,
    )


@student(honest=True, order="none")
def honest_mistake_that_raises(hand_in: HandIn) -> None:
    """One function stops with an error, a name that is misspelt; the rest is right."""
    hand_in.answer("ex-order", "def order(f, X):\n    return f(X[torch.randprem(len(X))])\n")


@student(honest=True, sharpness="none")
def honest_syntax_error(hand_in: HandIn) -> None:
    """One answer cell is not Python: a colon is missing."""
    hand_in.answer("ex-sharpness", "def beta_for(share, slots)\n    return 1\n")


@student(honest=True)
def honest_own_cells(hand_in: HandIn) -> None:
    """Has put cells between ours: notes, plots, a try that raises; the answers stand alone."""
    cells: list[Any] = []
    for cell in hand_in.notebook["cells"]:
        own: Any = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        cells += [cell, own | {"id": f"own-{len(cells)}", "source": "1 / 0  # what happens?"}]
    hand_in.notebook["cells"] = cells


@student(honest=True, order="none")
def honest_helper_outside(hand_in: HandIn) -> None:
    """A helper stands in a cell of its own, which is not read; the answer that needs it fails."""
    place = hand_in.notebook["cells"].index(hand_in.cell("ex-order-yours"))
    own: Any = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    own |= {"id": "helper", "source": "def shuffled(X):\n    return X[torch.randperm(len(X))]\n"}
    hand_in.notebook["cells"].insert(place, own)
    hand_in.answer("ex-order", "def order(f, X):\n    return str(f(shuffled(X)))\n")


@student(honest=True)
def honest_noise(hand_in: HandIn) -> None:
    """The answers print, warn and draw a plot on the way; nothing is wrong with that."""
    hand_in.carry(
        "import sys, warnings\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()",
        "print('called', share)\nprint('hm', file=sys.stderr)\nwarnings.warn('careful')",
    )
