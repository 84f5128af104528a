"""Break the project on purpose, one line at a time, and see that a test notices.

    python scripts/mutants.py              every mutant
    python scripts/mutants.py window XL    those whose name contains one of these words

Each mutant is one replacement in a copy of the repository; the tests that are named for it must
fail. Those of a mechanism's room stand in the CASE of its test; here are the others. Two run at a
time. Run the tests themselves first: what is red anyway would kill everything.

Exits 1 if more than one mutant survives, 2 if the text that a mutant replaces is no longer in its
file, or its tests did not run: then the list below is wrong, not the tests.
"""

from __future__ import annotations

import ast
import os
import resource
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
import torch  # noqa: F401 -- here, so that it is loaded once for all mutants

os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
ROOT = Path(__file__).resolve().parent.parent
SURVIVORS = 1
"""So many are forgiven."""
AT_A_TIME, SECONDS = 2, 120
"""Processor time that the tests of a mutant may take; one that never ends is noticed by that."""


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: str


def of_rooms() -> list[Mutant]:
    """Those that tests/<part>/test_<id>.py lists in its CASE for tfviz/<part>/<id>.py, read without
    running it: a mutant that is tried in a fork must be the first to import the room."""
    found = []
    for test in sorted(ROOT.glob("tests/*/test_*.py")):
        name, part = test.stem.removeprefix("test_"), test.parent.name
        for statement in ast.parse(test.read_text("utf8")).body:
            match statement:
                case ast.Assign(
                    targets=[ast.Name("CASE")], value=ast.Call(args=core, keywords=keywords)
                ):
                    named = {k.arg: k.value for k in keywords}
                    mutants = ast.literal_eval(named.pop("mutants", ast.List([])))
                    tests = f"tests/{part}/{test.name}"
                    if core or named:  # the laws may notice, too
                        tests += f" tests/test_laws.py tests/test_refusals.py -k {name}"
                    found += [
                        Mutant(name_, f"tfviz/{part}/{name}.py", old, new, tests)
                        for name_, old, new in mutants
                    ]
    return found


MUTANTS = [
    *of_rooms(),
    Mutant(
        "scores that are changed behind the pattern's mask",
        "tfviz/dense_attention.py",
        "    if scores is not None:\n        s = scores(s)\n",
        "",
        "tests/test_seams.py",
    ),
    Mutant(
        "weights that values never see mixed",
        "tfviz/dense_attention.py",
        "        A = mix(A)\n",
        "        mix(A)\n",
        "tests/test_seams.py",
    ),
    Mutant(
        "cross-attention that finds what self-attention handed up",
        "tfviz/cores.py",
        "handed[self.crosses] = value",
        "handed[False] = handed[True] = value",
        "tests/test_seams.py",
    ),
    Mutant(
        "what is handed up that stays for the next call",
        "tfviz/cores.py",
        "        _BELOW.reset(outside)\n",
        "        pass\n",
        "tests/test_seams.py",
    ),
    Mutant(
        "what is given that stays for the next call",
        "tfviz/cores.py",
        "        _GIVEN.reset(outside)\n",
        "        pass\n",
        "tests/test_seams.py",
    ),
    Mutant(
        "a memory that is projected at every token",
        "tfviz/models/blocks.py",
        "memory if where.state is None else memory[:, :0]",
        "memory",
        "tests/test_seams.py",
    ),
    Mutant(
        "only what is given last reaches a core",
        "tfviz/cores.py",
        "{**_GIVEN.get(), **tensors}",
        "{**tensors}",
        "tests/test_seams.py -k given",
    ),
    Mutant(
        "cross-attention that looks below at self-attention's line",
        "tfviz/cores.py",
        ".get(self.crosses)",
        ".get(False)",
        "tests/test_seams.py -k lines",
    ),
    Mutant(
        "a model that is watched for ever",
        "tfviz/models/use.py",
        "module.watched = before[name]",
        "module.watched = True",
        "tests/test_seams.py -k watches",
    ),
    Mutant(
        "an attention of one's own that no block makes",
        "tfviz/models/blocks.py",
        "self.attend, self.order = attend(d, h, **attention), order",
        "self.attend, self.order = MultiHeadAttention(d, h, **attention), order",
        "tests/test_seams.py -k attention_of_ones",
    ),
    Mutant(
        "heads that are watched without gradients",
        "tfviz/models/blocks.py",
        "Seen(A, heads)",
        "Seen(A, heads.detach())",
        "tests/test_compare.py -k disagree",
    ),
    Mutant(
        "maps without gradients",
        "tfviz/models/use.py",
        "found[name] = module.seen.A",
        "found[name] = module.seen.A.detach()",
        "tests/test_compare.py -k maps",
    ),
    Mutant(
        "an order whose weights all sublayers share",
        "tfviz/models/blocks.py",
        "nn.ModuleList(order(d) for _ in self.norms)",
        "nn.ModuleList([order(d)] * len(self.norms))",
        "tests/test_seams.py",
    ),
    Mutant(
        "a core whose own sizes are overruled",
        "tfviz/cores.py",
        "if x.default is x.empty and x.kind",
        "if x.kind",
        "tests/test_natural_calls.py",
    ),
    Mutant(
        "layers that are told nothing of their own",
        "tfviz/models/blocks.py",
        "**more | layer(n)",
        "**more",
        "tests/test_seams.py",
    ),
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
        "    return abs(i - j) <= radius\n",
        "    return abs(i - j) <= radius + 1\n",
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
        "labels without gradients",
        "tfviz/sub_quadratic/loud.py",
        "if ctx.needs_input_grad[3] else None",
        "if False else None",
        "tests/sparse/test_etc.py",
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
        "memory of an image one pixel short",
        "tfviz/patterns/families.py",
        "(j >= i // block * block - memory)",
        "(j > i // block * block - memory)",
        "tests/test_patterns.py",
    ),
    Mutant(
        "an image seen on the right, beside the block",
        "tfviz/patterns/families.py",
        "    beside = (u >= left - w_m) & (u < left)\n",
        "    beside = (u >= left - w_m) & (u < left + w_q + w_m) & ~own\n",
        "tests/sparse/test_image_transformer_2d.py",
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
        "return mask.float() @ known.float() > 0",
        "return known.float() @ mask.float() > 0",
        "tests/test_patterns.py",
    ),
    Mutant(
        "search: a random part's pairs count as certain",
        "tfviz/patterns/inverse.py",
        "sure = bits & torch.tensor([p.name not in RANDOM for p in alone])[:, None, None]",
        "sure = bits.clone()",
        "tests/test_inverse.py",
    ),
    Mutant(
        "search: two in turn are two together",
        "tfviz/patterns/inverse.py",
        "known = spread(masks[n % 2], known) | known",
        "known = spread(masks.any(0), known) | known",
        "tests/test_inverse.py",
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
        "tfviz/dense_attention.py",
        " / math.sqrt(Q.shape[-1])",
        "",
        "tests/test_attention.py",
    ),
    Mutant(
        "√d missing in the merged softmax",
        "tfviz/sub_quadratic/merged.py",
        "plan, 1 / math.sqrt(d))[0]",
        "plan, 1.0)[0]",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "a row without keys is NaN",
        "tfviz/dense_attention.py",
        "s.masked_fill(no_key, 0.0).softmax(-1).masked_fill(no_key, 0.0)",
        "s.softmax(-1)",
        "tests/test_attention.py",
    ),
    Mutant(
        "softmax over the queries",
        "tfviz/dense_attention.py",
        ".softmax(-1).masked_fill(no_key, 0.0)",
        ".softmax(-2).masked_fill(no_key, 0.0)",
        "tests/test_attention.py",
    ),
    Mutant(
        "sparse window off by one",
        "tfviz/sub_quadratic/windows.py",
        "max(0, right - size + 1)",
        "0",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "only the last part of a union counts",
        "tfviz/sub_quadratic/merged.py",
        "torch.logaddexp(before, l)",
        "l",
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
        "Q, K = self.turn(Q, where.start), self.turn(K, where.start)",
        "Q, K = self.turn(Q, where.start), K",
        "tests/test_models.py",
    ),
    Mutant(
        "cached tokens all at place 0",
        "tfviz/models/blocks.py",
        "self.pattern, kept.length, crosses",
        "self.pattern, 0, crosses",
        "tests/test_models.py",
    ),
    Mutant(
        "padding of the source seen",
        "tfviz/models/blocks.py",
        "cross(X, memory, attention_mask, cache)",
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
        "tfviz/dense_attention.py",
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
        "tfviz_lab/runner.py",
        "what = [run.name, dict(run.config), run.seed, sorted(",
        "what = [run.name, dict(run.config), sorted(",
        "tests/test_experiments.py",
    ),
    Mutant(
        "padding of the source in the decoder's own attention",
        "tfviz/models/blocks.py",
        "own, cross = None if self.cross else attention_mask, self.cross",
        "own, cross = attention_mask, self.cross",
        "tests/test_models.py",
    ),
    Mutant(
        "no last norm for orders of one's own",
        "tfviz/models/blocks.py",
        "self.norm = nn.Identity() if order is post_norm else nn.LayerNorm(d)",
        "self.norm = nn.LayerNorm(d) if order is pre_norm else nn.Identity()",
        "tests/test_models.py tests/basics/test_layer_norm_pre_post.py",
    ),
    Mutant(
        "targets are the inputs",
        "tfviz/data.py",
        "return rows[:, :-1], rows[:, 1:]",
        "return rows[:, :-1], rows[:, :-1]",
        "tests/test_training.py",
    ),
    Mutant(
        "held-out text is trained on",
        "tfviz/data.py",
        "return ids[:n], ids[n:]",
        "return ids, ids[n:]",
        "tests/test_training.py",
    ),
    Mutant(
        "step after a gradient that is no number",
        "tfviz/training.py",
        "if not math.isfinite(length.item()):",
        "if False:",
        "tests/test_training.py",
    ),
    Mutant(
        "another schedule resumed",
        "tfviz/training.py",
        '        "rates": rates,\n',
        "",
        "tests/test_training.py",
    ),
    Mutant(
        "fused attention counted as free",
        "tfviz/measure.py",
        "custom_mapping=_CPU_SDPA",
        "custom_mapping=None",
        "tests/test_measure.py",
    ),
    Mutant(
        "only new tensors counted, not what is written in place",
        "tfviz/measure.py",
        "                if func._schema.is_mutable:\n",
        "                if False:\n",
        "tests/test_measure.py",
    ),
    Mutant(
        "variants begin with weights of their own",
        "tfviz_lab/compare.py",
        "    made.load_state_dict(shared, strict=False)\n",
        "",
        "tests/test_compare.py",
    ),
    Mutant(
        "a core that sees the future is trained on a causal task",
        "tfviz_lab/compare.py",
        "    if task.causal and seeing:\n",
        "    if False:\n",
        "tests/test_compare.py -k refused",
    ),
    Mutant(
        "a pixel that may read itself",
        "tfviz_lab/compare.py",
        "n if task.own else n + 1",
        "n",
        "tests/test_compare.py -k refused",
    ),
    Mutant(
        "a core that only looks back is trained as an encoder",
        "tfviz_lab/compare.py",
        "if not task.causal and seeing == []",
        "if False",
        "tests/test_compare.py -k refused",
    ),
    Mutant(
        "asking what a model sees counts as a call of it",
        "tfviz_lab/compare.py",
        "copy.deepcopy(model)(inputs)",
        "model(inputs)",
        "tests/test_compare.py -k sees",
    ),
    Mutant(
        "a loss of the variant's own that nobody adds",
        "tfviz_lab/compare.py",
        "return loss(model, rng, step) + extra_loss(model)",
        "return loss(model, rng, step)",
        "tests/test_compare.py -k 'disagree or maps'",
    ),
    Mutant(
        "recall asks for the symbol after",
        "tfviz_lab/compare.py",
        "answers[:, BACK:] = rows[:, :-BACK]",
        "answers[:, BACK:] = rows[:, 1 : 1 - BACK]",
        "tests/position/test_extrapolation.py",
    ),
    Mutant(
        "changed modules pass for up to date",
        "tfviz_lab/runner.py",
        '        elif done["key"] != task.key:\n',
        '        elif not done["key"]:\n',
        "tests/test_experiments.py -k 'stale or clone or kept'",
    ),
    Mutant(
        "a tolerance of everything",
        "tfviz/checks.py",
        "rtol=rtol, atol=atol, equal_nan=True",
        "rtol=rtol, atol=1.0, equal_nan=True",
        "tests/test_checks.py",
    ),
    Mutant(
        "an exercise's hidden tests in the release",
        "tfviz_lessons/assignment.py",
        'cell.source = cut(cell.source, "HIDDEN TESTS")',
        "pass",
        "tests/book/test_lesson.py -k students_see_nothing",
    ),
    Mutant(
        "containers nested without end",
        "teaching/tfviz_course/codec.py",
        "        if depth > DEPTH:\n",
        "        if depth > 10**9:\n",
        "teaching/tests/course/test_codec.py",
    ),
    Mutant(
        "pairs of the alt text miscounted",
        "tfviz/plots/matrices.py",
        "    pairs = int(mask.sum())\n    counts",
        "    pairs = int(mask.sum()) + 1\n    counts",
        "tests/test_plots.py -k 'alt_text'",
    ),
    Mutant(
        "a curve's seeds told as one",
        "tfviz/plots/curves.py",
        "    if many == 1:\n",
        "    if few >= 1:\n",
        "tests/test_plots.py -k 'seeds'",
    ),
    Mutant(
        "the lab overlooks the future",
        "tfviz/explorers/sparse_lab.py",
        "m.triu(1).nonzero()",
        "m.triu(2).nonzero()",
        "tests/browser/test_explorer_python.py",
    ),
    Mutant(
        "the second pattern of the lab first",
        "tfviz/explorers/sparse_lab.py",
        "for side in STACKS[self.stack]]",
        "for side in STACKS[self.stack][::-1]]",
        "tests/browser/test_explorer_python.py",
    ),
    Mutant(
        "costs of the page counted otherwise (JavaScript)",
        "tfviz/explorers/block_costs.js",
        "scores: 4 * L * L * d",
        "scores: 2 * L * L * d",
        "tests/browser/test_every_explorer.py -k 'random and block_costs'",
    ),
    Mutant(
        "and is printed as or",
        "tfviz/formula.py",
        '.replace(r"\\wedge", r"\\land")',
        '.replace(r"\\wedge", r"\\lor")',
        "tests/test_formula.py",
    ),
]


class BadMutantError(Exception):
    """A mutant that is none: the list is out of date."""


def begin(mutant: Mutant, copy: Path) -> int:
    """Make the mutant in this copy and run its tests in a process of its own, whose id is returned.

    The process is a fork of this one, which has loaded torch already. BadMutantError if the line
    that the mutant replaces is not there.
    """
    place = copy / mutant.file
    source = (ROOT / mutant.file).read_text("utf8") if (ROOT / mutant.file).exists() else ""
    if mutant.old not in source:
        raise BadMutantError(f"{mutant.file} no longer holds {mutant.old!r}; give it another line")
    place.write_text(source.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    if pid := os.fork():
        return pid
    code = 3  # what pytest calls an internal error
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        output = os.open(copy / "output", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(copy)
        os.environ["PYTHONPATH"] = sys.path[0] = str(copy)
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *shlex.split(mutant.tests)]))
    finally:
        os._exit(code)


def ended(mutant: Mutant, copy: Path, status: int) -> bool:
    """Whether the mutant lives. BadMutantError if its tests did not run."""
    shutil.copyfile(ROOT / mutant.file, copy / mutant.file)
    code = os.waitstatus_to_exitcode(status)
    if code in (3, 4, 5):  # 1: a test failed; 2: it cannot even be imported; < 0: it never ended
        raise BadMutantError(f"its tests did not run: {(copy / 'output').read_text()[-300:]}")
    return code == 0


def main() -> int:
    words = sys.argv[1:] or [""]
    todo = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    total, alive, bad = len(todo), list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        free = [_copy(Path(folder) / f"copy {n}") for n in range(AT_A_TIME)]
        running: dict[int, tuple[Mutant, Path]] = {}
        while todo or running:
            mutant, copy = None, free[-1] if free else None
            try:
                if todo and copy:
                    mutant = todo.pop(0)
                    running[begin(mutant, copy)] = mutant, free.pop()
                    continue
                pid, status = os.wait()
                mutant, copy = running.pop(pid)
                free.append(copy)
                lives = ended(mutant, copy, status)
            except BadMutantError as error:
                assert mutant
                print(f"ERROR   {mutant.name}: {error}", flush=True)
                bad.append(mutant.name)
            else:
                print(f"{'ALIVE ' if lives else 'killed'}  {mutant.name}", flush=True)
                alive += [mutant.name] * lives
    print(f"{total} mutants, {len(alive)} alive, {len(bad)} that could not be tried")
    return 2 if bad else 1 if len(alive) > SURVIVORS else 0


def _copy(target: Path) -> Path:
    skip = shutil.ignore_patterns(".*", "_build", "node_modules", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, target, ignore=skip)
    if (ROOT / "node_modules").exists():  # pages of explorers load some of it
        (target / "node_modules").symlink_to(ROOT / "node_modules")
    return target


if __name__ == "__main__":
    sys.exit(main())
