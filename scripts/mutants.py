"""Break the library on purpose, one line at a time, and see that a test notices.

    python scripts/mutants.py            every mutant
    python scripts/mutants.py window     those whose name contains "window"

Each mutant is a copy of the repository with one replacement; its test files must fail. Exits 1 if a
mutant survives or its text no longer occurs in the source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "window one too short",
        "tfviz/patterns/families.py",
        "(i - j <= lookback)",
        "(i - j < lookback)",
        "tests/test_patterns.py",
    ),
    Mutant(
        "band off by one",
        "tfviz/patterns/families.py",
        "abs(i - j) <= radius",
        "abs(i - j) <= radius + 1",
        "tests/test_patterns.py",
    ),
    Mutant(
        "i and j swapped in causal",
        "tfviz/patterns/families.py",
        "    return i >= j\n",
        "    return j >= i\n",
        "tests/test_patterns.py",
    ),
    Mutant(
        "i and j swapped in blockwise",
        "tfviz/patterns/families.py",
        "permutation[i * blocks // length] == j * blocks // length",
        "permutation[j * blocks // length] == i * blocks // length",
        "tests/test_patterns.py",
    ),
    Mutant(
        "summary one column early",
        "tfviz/patterns/families.py",
        "(j % block >= block - summary)",
        "(j % block >= block - summary - 1)",
        "tests/test_patterns.py",
    ),
    Mutant(
        "modulo of a negative number as in C",
        "tfviz/formula.py",
        '"mod": sp.Mod,',
        '"mod": lambda a, b: a - b * sp.sign(a) * sp.floor(sp.Abs(a) / b),',
        "tests/test_formula.py tests/test_patterns.py",
    ),
    Mutant(
        "heads shifted in mask_mod",
        "tfviz/patterns/pattern.py",
        "enumerate(mods[1:], start=1)",
        "enumerate(mods[1:], start=2)",
        "tests/test_patterns.py",
    ),
    Mutant(
        "layers composed in the wrong order",
        "tfviz/patterns/reach.py",
        "masks[n % len(masks)].float() @ known.float() > 0",
        "known.float() @ masks[n % len(masks)].float() > 0",
        "tests/test_patterns.py",
    ),
    Mutant(
        "residual forgotten in influence",
        "tfviz/patterns/reach.py",
        "share = (share + mixed) / 2",
        "share = mixed",
        "tests/test_patterns.py",
    ),
    Mutant(
        "ragged blocks counted whole",
        "tfviz/patterns/cost.py",
        "int((kept * edges).sum()) * height",
        "int(kept.sum()) * block * block",
        "tests/test_patterns.py",
    ),
    Mutant(
        "√d missing in attention",
        "tfviz/attention.py",
        " / math.sqrt(Q.shape[-1])",
        "",
        "tests/test_attention.py",
    ),
    Mutant(
        "√d missing in the joint softmax",
        "tfviz/sparse_attention/joint.py",
        "    Q = Q / math.sqrt(Q.shape[-1])\n",
        "",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "a row without keys is NaN",
        "tfviz/attention.py",
        "scores.masked_fill(no_key, 0.0).softmax(-1).masked_fill(no_key, 0.0)",
        "scores.softmax(-1)",
        "tests/test_attention.py",
    ),
    Mutant(
        "softmax over the queries",
        "tfviz/attention.py",
        ".softmax(-1).masked_fill(no_key, 0.0)",
        ".softmax(-2).masked_fill(no_key, 0.0)",
        "tests/test_attention.py",
    ),
    Mutant(
        "sparse window off by one",
        "tfviz/sparse_attention/windows.py",
        "(t < low) | (t > high)",
        "(t < low) | (t >= high)",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "a pair counted in two windows",
        "tfviz/sparse_attention/joint.py",
        "            allowed &= ~holds(earlier, i, j, L)\n",
        "            pass\n",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "a check that overlooks missing pairs",
        "tfviz/checks.py",
        "    wrong = mine != target\n    if not wrong.any():\n",
        "    wrong = mine & ~target\n    if not wrong.any():\n",
        "tests/test_checks.py",
    ),
    Mutant(
        "keys not rotated",
        "tfviz/cores.py",
        "self.turn(Q, where.start), self.turn(K, where.start)",
        "self.turn(Q, where.start), K",
        "tests/test_models.py",
    ),
    Mutant(
        "cached tokens all at place 0",
        "tfviz/models/blocks.py",
        "Where(self.pattern, kept.length, ",
        "Where(self.pattern, 0, ",
        "tests/test_models.py",
    ),
    Mutant(
        "padding of the source seen",
        "tfviz/models/blocks.py",
        "cross(X, memory, real, cache)",
        "cross(X, memory, None, cache)",
        "tests/test_models.py",
    ),
    Mutant(
        "post-norm without its skip",
        "tfviz/models/blocks.py",
        "return LN(X + F(X))",
        "return LN(F(X))",
        "tests/test_models.py",
    ),
    Mutant(
        "embedding not scaled",
        "tfviz/models/encoder_decoder.py",
        "scale=d**0.5",
        "scale=1.0",
        "tests/test_models.py",
    ),
    Mutant(
        "queries at the first places of the mask",
        "tfviz/attention.py",
        "torch.arange(Lk - Lq, Lk)",
        "torch.arange(Lq)",
        "tests/test_models.py",
    ),
    Mutant(
        "random numbers not resumed",
        "tfviz/training.py",
        'rng.set_state(state["rng"])',
        "pass",
        "tests/test_training.py",
    ),
    Mutant(
        "torch's random numbers not resumed",
        "tfviz/training.py",
        'torch.set_rng_state(state["torch"])',
        "pass",
        "tests/test_training.py",
    ),
    Mutant(
        "optimiser not resumed",
        "tfviz/training.py",
        'optimiser.load_state_dict(state["optimiser"])',
        "pass",
        "tests/test_training.py",
    ),
    Mutant(
        "step after a bad loss",
        "tfviz/training.py",
        "if not math.isfinite(value.item()):",
        "if math.isnan(value.item()):",
        "tests/test_training.py",
    ),
    Mutant(
        "file written in place",
        "tfviz/_files.py",
        'new = path.with_name(f"{path.name}.{os.getpid()}.new")',
        "new = path",
        "tests/test_training.py",
    ),
    Mutant(
        "seed not in the key of a run",
        "tfviz/experiments/runner.py",
        "dict(run.config), run.seed, code]",
        "code]",
        "tests/test_experiments.py",
    ),
]


def survives(mutant: Mutant) -> str | None:
    """None if the tests noticed, else what went wrong."""
    source = (ROOT / mutant.file).read_text()
    if source.count(mutant.old) < 1:
        return f"{mutant.file} no longer holds {mutant.old!r}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "repo"
        skip = shutil.ignore_patterns(".*", "_build", "node_modules", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, copy, ignore=skip)
        (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new, 1))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *mutant.tests.split()],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode == 1:
        return None
    return "survived" if done.returncode == 0 else f"tests did not run: {done.stdout[-300:]}"


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    bad = 0
    for mutant in MUTANTS:
        if wanted in mutant.name:
            trouble = survives(mutant)
            bad += trouble is not None
            print(f"{'killed' if trouble is None else 'ALIVE '}  {mutant.name}  {trouble or ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
