"""Break the project on purpose, one line at a time, and see that a test notices.

    python scripts/mutants.py              every mutant
    python scripts/mutants.py window XL    those whose name contains one of these words

Each mutant is one replacement in a copy of the repository; the tests that are named for it must
fail. Two run at a time. Run the tests themselves first: what is red anyway would kill everything.

Exits 1 if more than one mutant survives, 2 if the text that a mutant replaces is no longer in its
file, or its tests did not run: then the list below is wrong, not the tests.
"""

from __future__ import annotations

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


MUTANTS = [
    Mutant(
        "scores that are changed behind the pattern's mask",
        "tfviz/attention.py",
        "    if scores is not None:\n        s = scores(s)\n",
        "",
        "tests/test_seams.py",
    ),
    Mutant(
        "weights that values never see mixed",
        "tfviz/attention.py",
        "        A = mix(A)\n",
        "        mix(A)\n",
        "tests/test_seams.py",
    ),
    Mutant(
        "cross-attention that finds what self-attention handed up",
        "tfviz/cores.py",
        "handed[self.crosses] = found",
        "handed[False] = handed[True] = found",
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
        "an order whose weights all sublayers share",
        "tfviz/models/blocks.py",
        "nn.ModuleList(order(d) for _ in self.norms)",
        "nn.ModuleList([order(d)] * len(self.norms))",
        "tests/test_seams.py",
    ),
    Mutant(
        "layers that are told nothing of their own",
        "tfviz/models/blocks.py",
        "**more | layer(n)",
        "**more",
        "tests/test_seams.py",
    ),
    Mutant(
        "ALiBi favours the oldest key",
        "tfviz/longer_context/alibi.py",
        "    return -m * abs(i - j)\n",
        "    return -m * abs(j)\n",
        "tests/longer_context/test_alibi.py",
    ),
    Mutant(
        "ALiBi whose places are rounded in half precision",
        "tfviz/longer_context/alibi.py",
        " or Q.dtype not in (torch.float32, torch.float64)",
        "",
        "tests/longer_context/test_alibi.py",
    ),
    Mutant(
        "ALiBi's slopes in between begin one too late",
        "tfviz/longer_context/alibi.py",
        "(2 * torch.arange(h - below) + 1))",
        "(2 * torch.arange(h - below) + 2))",
        "tests/longer_context/test_alibi.py",
    ),
    Mutant(
        "DA without its clip",
        "tfviz/longer_context/da_transformer.py",
        "    return s.relu() * rescale",
        "    return s * rescale",
        "tests/longer_context/test_da_transformer.py",
    ),
    Mutant(
        "DA's curve does not begin at 1",
        "tfviz/longer_context/da_transformer.py",
        "(F.softplus(beta) - F.softplus(beta - alpha * n)).exp()",
        "(-F.softplus(beta - alpha * n)).exp()",
        "tests/longer_context/test_da_transformer.py",
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
        "a global key in the window counted twice",
        "tfviz/sparse/longformer.py",
        "    outside = ~near.holds(torch.arange(L)[:, None], keys, L)\n",
        "    outside = torch.ones(L, len(tokens), dtype=torch.bool)\n",
        "tests/sparse/test_longformer.py",
    ),
    Mutant(
        "global tokens that read with the ordinary keys",
        "tfviz/sparse/longformer.py",
        "far[0].index_select(2, rows), *far[1:]",
        "far[0].index_select(2, rows), *local[1:]",
        "tests/sparse/test_longformer.py",
    ),
    Mutant(
        "two softmaxes, half and half",
        "tfviz/sparse/etc.py",
        "(z_ll - z_lg).sigmoid()",
        "(0 * z_ll + 0.5)",
        "tests/sparse/test_etc.py",
    ),
    Mutant(
        "labels without gradients",
        "tfviz/sparse_attention/loud.py",
        "if ctx.needs_input_grad[3] else None",
        "if False else None",
        "tests/sparse/test_etc.py",
    ),
    Mutant(
        "a drawn block that is in the window",
        "tfviz/sparse/bigbird.py",
        "((I - J).abs() > 1)",
        "((I - J).abs() > 0)",
        "tests/sparse/test_bigbird.py",
    ),
    Mutant(
        "a span read whole where half of it was read already",
        "tfviz/sparse/bp_transformer.py",
        "half[side] = at[side] % 2 == (side > 0)",
        "half[side] = i < 0",
        "tests/sparse/test_bp_transformer.py",
    ),
    Mutant(
        "a tree whose levels have one node more on each side",
        "tfviz/sparse/bp_transformer.py",
        "            for _ in range(k):",
        "            for _ in range(k + (level > 0)):",
        "tests/sparse/test_bp_transformer.py",
    ),
    Mutant(
        "spans that miss their last token",
        "tfviz/sparse/bp_transformer.py",
        "(keys < end[one])",
        "(keys < end[one] - 1)",
        "tests/sparse/test_bp_transformer.py",
    ),
    Mutant(
        "pairs of several rounds counted as often as they meet",
        "tfviz/sparse/reformer_lsh.py",
        "never |= ~earlier",
        "pass",
        "tests/sparse/test_reformer_lsh.py",
    ),
    Mutant(
        "chunks that look on instead of back",
        "tfviz/sparse/reformer_lsh.py",
        "torch.cat([by[:, r - 1, None, -m:], i], 1)",
        "torch.cat([i, by[:, r - 1, None, :m]], 1)",
        "tests/sparse/test_reformer_lsh.py",
    ),
    Mutant(
        "a memory that forgets all but the last segment",
        "tfviz/longer_context/transformer_xl_recurrence.py",
        "rows = torch.cat([self.past(state, X), X], 1)",
        "rows = X",
        "tests/longer_context/test_transformer_xl_recurrence.py",
    ),
    Mutant(
        "a memory that gets a gradient",
        "tfviz/longer_context/transformer_xl_recurrence.py",
        "self.followed(where.state, X.detach(), A)",
        "self.followed(where.state, X, A)",
        "tests/longer_context/test_transformer_xl_recurrence.py",
    ),
    Mutant(
        "a memory that takes places for distances",
        "tfviz/longer_context/transformer_xl_recurrence.py",
        "if not here.equal(counted) or",
        "if",
        "tests/longer_context/test_transformer_xl_recurrence.py",
    ),
    Mutant(
        "usage that is read from the squeezed rows' columns",
        "tfviz/longer_context/compressive_transformer.py",
        "A[..., n : n + rows.shape[1]]",
        "A[..., : rows.shape[1]]",
        "tests/longer_context/test_compressive_transformer.py",
    ),
    Mutant(
        "queries of the compression loss that teach the model",
        "tfviz/longer_context/compressive_transformer.py",
        "            p.requires_grad_(False)\n",
        "            p.requires_grad_(True)\n",
        "tests/longer_context/test_compressive_transformer.py",
    ),
    Mutant(
        "rows that leave before a group is full",
        "tfviz/longer_context/compressive_transformer.py",
        "// self.c * self.c",
        "",
        "tests/longer_context/test_compressive_transformer.py",
    ),
    Mutant(
        "a last step that counts with what it says, not with the remainder",
        "tfviz/longer_context/act.py",
        "p = torch.where(halts, 1 - before, h)",
        "p = torch.where(halts, h, h)",
        "tests/longer_context/test_act.py",
    ),
    Mutant(
        "ACT whose flag stays up",
        "tfviz/longer_context/act.py",
        "float(n == 1))",
        "float(n >= 1))",
        "tests/longer_context/test_act.py",
    ),
    Mutant(
        "a state for fewer texts than there are",
        "tfviz/longer_context/act.py",
        "if s.shape != (len(x), self.d):",
        "if s.shape[1] != self.d:",
        "tests/longer_context/test_act.py",
    ),
    Mutant(
        "a price that counts padding",
        "tfviz/longer_context/ut_act.py",
        "x.cost.sum() / (x.N > 0).sum()",
        "x.cost.mean()",
        "tests/longer_context/test_ut_act.py",
    ),
    Mutant(
        "steps that are told at the speed of places",
        "tfviz/longer_context/ut_time_position_signal.py",
        "self.step_base = step_base or base",
        "self.step_base = base",
        "tests/longer_context/test_ut_time_position_signal.py",
    ),
    Mutant(
        "a count that a last digit rounds up",
        "tfviz/adaptive/ltt_calibration.py",
        " * n - 1e-9)",
        " * n)",
        "tests/adaptive/test_ltt_calibration.py",
    ),
    Mutant(
        "a store that is open while it is written anew",
        "tfviz/longer_context/knn_lm.py",
        '    (path / "model").unlink(missing_ok=True)\n',
        "",
        "tests/longer_context/test_knn_lm.py",
    ),
    Mutant(
        "exits weighed in single precision",
        "tfviz/adaptive/depth_adaptive_training.py",
        "omega, dtype=torch.float64)",
        "omega, dtype=torch.float32)",
        "tests/adaptive/test_depth_adaptive_training.py",
    ),
    Mutant(
        "a Universal Transformer that is told the place alone",
        "tfviz/longer_context/universal_transformer.py",
        " + self.signal.step(t).to(X)",
        "",
        "tests/longer_context/test_universal_transformer.py",
    ),
    Mutant(
        "steps that share one cache",
        "tfviz/longer_context/universal_transformer.py",
        "kept.state[t - 1] if",
        "kept.state[0] if",
        "tests/longer_context/test_universal_transformer.py",
    ),
    Mutant(
        "a step that is told in cosines where sines stand",
        "tfviz/longer_context/ut_time_position_signal.py",
        "+ sinusoids(torch.tensor(t), d, step_base or base)",
        "+ sinusoids(torch.tensor(t), d, step_base or base).flip(-1)",
        "tests/longer_context/test_ut_time_position_signal.py",
    ),
    Mutant(
        "keys of what has halted as they were before its last step",
        "tfviz/longer_context/ut_act.py",
        "fresh = running if t == 1 else fresh",
        "fresh = running",
        "tests/longer_context/test_ut_act.py",
    ),
    Mutant(
        "halted positions that do not hear of the step",
        "tfviz/longer_context/ut_act.py",
        "K, V = (kept + moved[d:].to(kept))",
        "K, V = (kept + 0 * moved[d:].to(kept))",
        "tests/longer_context/test_ut_act.py",
    ),
    Mutant(
        "a span whose rows are not summed to one again",
        "tfviz/adaptive/adaptive_span.py",
        "A = A / A.sum(-1, keepdim=True)",
        "A = A * 1",
        "tests/adaptive/test_adaptive_span.py",
    ),
    Mutant(
        "a ramp that begins one key early",
        "tfviz/adaptive/adaptive_span.py",
        "return ((R + z - x) / R)",
        "return ((R + z - x - 1) / R)",
        "tests/adaptive/test_adaptive_span.py",
    ),
    Mutant(
        "a dynamic span without its bias",
        "tfviz/adaptive/dynamic_span.py",
        " + b.to(Q)[:, None]",
        "",
        "tests/adaptive/test_dynamic_span.py",
    ),
    Mutant(
        "scales shared out alike in every layer",
        "tfviz/adaptive/multi_scale_transformer.py",
        "* below / layer)",
        "* below)",
        "tests/adaptive/test_multi_scale_transformer.py",
    ),
    Mutant(
        "neighbours weighted by distances that are not squared",
        "tfviz/longer_context/knn_lm.py",
        "(Q[:, None] - found).square().sum(-1)",
        "(Q[:, None] - found).square().sum(-1).sqrt()",
        "tests/longer_context/test_knn_lm.py",
    ),
    Mutant(
        "a store that any model may read",
        "tfviz/longer_context/knn_lm.py",
        "if self.model != (own := fingerprint(model)):",
        "if not (own := fingerprint(model)):",
        "tests/longer_context/test_knn_lm.py",
    ),
    Mutant(
        "a gate that opens to the memory",
        "tfviz/longer_context/spalm.py",
        "(1 - g)[..., None] * m + g[..., None] * h",
        "g[..., None] * m + (1 - g)[..., None] * h",
        "tests/longer_context/test_spalm.py",
    ),
    Mutant(
        "pairs that are remembered with their gradient",
        "tfviz/longer_context/memorizing_transformer.py",
        "torch.cat([old, new.detach()], 2)",
        "torch.cat([old, new], 2)",
        "tests/longer_context/test_memorizing_transformer.py",
    ),
    Mutant(
        "a queue that forgets the newest first",
        "tfviz/longer_context/memorizing_transformer.py",
        "last.append(x[:, :, max(0, x.shape[2] - rows) :])",
        "last.append(x[:, :, :rows])",
        "tests/longer_context/test_memorizing_transformer.py",
    ),
    Mutant(
        "what left is computed on",
        "tfviz/adaptive/depth_adaptive_training.py",
        "torch.where((n > below)[..., None], block(X), X)",
        "block(X)",
        "tests/adaptive/test_depth_adaptive_training.py",
    ),
    Mutant(
        "exits that all weigh the same",
        "tfviz/adaptive/depth_adaptive_training.py",
        "(weights * losses).sum()",
        "losses.mean() * weights.sum()",
        "tests/adaptive/test_depth_adaptive_training.py",
    ),
    Mutant(
        "smoothing that prefers far tokens",
        "tfviz/adaptive/depth_classifiers.py",
        "(-squared / sigma).exp()",
        "(squared / sigma).exp()",
        "tests/adaptive/test_depth_classifiers.py",
    ),
    Mutant(
        "stopping without having gone on before",
        "tfviz/adaptive/depth_classifiers.py",
        "F.pad(F.logsigmoid(-stop).cumsum(-1), (1, 0))",
        "F.pad(F.logsigmoid(-stop), (1, 0))",
        "tests/adaptive/test_depth_classifiers.py",
    ),
    Mutant(
        "skipped blocks that forget the token",
        "tfviz/adaptive/calm_confidence.py",
        "    for skipped in blocks[n:]:\n        copy_up(skipped, X, cache)",
        "    for skipped in blocks[n:]:\n        skipped(X, None, None, cache)",
        "tests/adaptive/test_calm_confidence.py",
    ),
    Mutant(
        "copied states that are not normalised",
        "tfviz/adaptive/calm_confidence.py",
        "block.norms[0](X))  # nobody asks",
        "X)  # nobody asks",
        "tests/adaptive/test_calm_confidence.py",
    ),
    Mutant(
        "a walk that passes over what stands",
        "tfviz/adaptive/ltt_calibration.py",
        "return int(kept.argmax()) if kept.any() else len(kept)",
        "return int((~kept).sum())",
        "tests/adaptive/test_ltt_calibration.py",
    ),
    Mutant(
        "a Bentkus tail without its factor",
        "tfviz/adaptive/ltt_calibration.py",
        "np.e * binom.cdf",
        "1.0 * binom.cdf",
        "tests/adaptive/test_ltt_calibration.py",
    ),
    Mutant(
        "centroids that count members anew at each step",
        "tfviz/sparse/routing_transformer.py",
        "new = decay * count + (1 - decay) * many",
        "new = many.clamp(min=1)",
        "tests/sparse/test_routing_transformer.py",
    ),
    Mutant(
        "routed queries that compare seats instead of places",
        "tfviz/sparse/routing_transformer.py",
        "(i.unsqueeze(-1) >= j.unsqueeze(-2))",
        "torch.ones_like(i.unsqueeze(-1) >= j.unsqueeze(-2)).tril()",
        "tests/sparse/test_routing_transformer.py",
    ),
    Mutant(
        "Sinkhorn's steps over rows only",
        "tfviz/sparse/sparse_sinkhorn.py",
        "log.logsumexp(-1 - step % 2",
        "log.logsumexp(-1 - 0 * step",
        "tests/sparse/test_sparse_sinkhorn.py",
    ),
    Mutant(
        "a causal block that summarises its later queries",
        "tfviz/sparse/sparse_sinkhorn.py",
        "cut(Q, n)[..., 0, :] if causal",
        "cut(Q, n).mean(-2) if causal",
        "tests/sparse/test_sparse_sinkhorn.py",
    ),
    Mutant(
        "edges that count as often as they are drawn",
        "tfviz/sparse/sac.py",
        "torch.unique((graph + i) * L + j)",
        "((graph + i) * L + j).flatten()",
        "tests/sparse/test_sac.py",
    ),
    Mutant(
        "edges that look at no query, key or value",
        "tfviz/sparse/sac.py",
        "    _qkv.check(Q, K, V, self_attention=True)\n",
        "",
        "tests/test_refusals.py",
    ),
    Mutant(
        "a memory below nothing",
        "tfviz/sparse/image_transformer_1d.py",
        '    memory = _arguments.integer("memory", memory, 0)\n',
        "",
        "tests/sparse/test_image_transformer_1d.py",
    ),
    Mutant(
        "a policy gradient that makes good draws rarer",
        "tfviz/sparse/sac.py",
        "return -((reward.detach() - baseline) * log_p)",
        "return ((reward.detach() - baseline) * log_p)",
        "tests/sparse/test_sac.py",
    ),
    Mutant(
        "dropout drawn anew when a reversible layer is made again",
        "tfviz/sparse/reversible_residual.py",
        "torch.set_rng_state(state)",
        "pass",
        "tests/sparse/test_reversible_residual.py",
    ),
    Mutant(
        "the gradient of Y1 without that through G",
        "tfviz/sparse/reversible_residual.py",
        "Y2, d1 = Y2 - out, d1 + dX",
        "Y2, d1 = Y2 - out, d1 + 0 * dX",
        "tests/sparse/test_reversible_residual.py",
    ),
    Mutant(
        "the last rows lost where chunks are uneven",
        "tfviz/sparse/chunked_feedforward.py",
        "X.tensor_split(chunks, -2)",
        "X.split(X.shape[-2] // chunks, -2)[:chunks]",
        "tests/sparse/test_chunked_feedforward.py",
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
        "blocks of an image made column by column",
        "tfviz/sparse/image_transformer_2d.py",
        "block = y // h_q * width + x // w_q",
        "block = y // h_q + x // w_q * height",
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
        "sure = bits & torch.tensor([_name(p) not in RANDOM for p in alone])[:, None, None]",
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
        "tfviz/attention.py",
        " / math.sqrt(Q.shape[-1])",
        "",
        "tests/test_attention.py",
    ),
    Mutant(
        "√d missing in the merged softmax",
        "tfviz/sparse_attention/merged.py",
        "plan, 1 / math.sqrt(d))[0]",
        "plan, 1.0)[0]",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "a row without keys is NaN",
        "tfviz/attention.py",
        "s.masked_fill(no_key, 0.0).softmax(-1).masked_fill(no_key, 0.0)",
        "s.softmax(-1)",
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
        "max(0, right - size + 1)",
        "0",
        "tests/test_sparse_attention.py",
    ),
    Mutant(
        "only the last part of a union counts",
        "tfviz/sparse_attention/merged.py",
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
        "where = Where(self.pattern, kept.length,",
        "where = Where(self.pattern, 0,",
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
        "_hash([run.name, dict(run.config), run.seed, version])",
        "_hash([run.name, version])",
        "tests/test_experiments.py",
    ),
    Mutant(
        "padding of the source in the decoder's own attention",
        "tfviz/models/blocks.py",
        "own, cross = None if self.cross else real, self.cross",
        "own, cross = real, self.cross",
        "tests/test_models.py",
    ),
    Mutant(
        "heads of XL in the wrong order",
        "tfviz/position/xl_relative.py",
        "K = K.repeat_interleave(Q.shape[1] // K.shape[1], 1)",
        "K = K.repeat(1, Q.shape[1] // K.shape[1], 1, 1)",
        "tests/position/test_xl_relative.py tests/test_models.py tests/test_laws.py",
    ),
    Mutant(
        "layers leave twice as late",
        "tfviz/basics/alrfou_auxiliary_losses.py",
        "2 * N * step < n * steps",
        "N * step < n * steps",
        "tests/basics/test_alrfou_auxiliary_losses.py",
    ),
    Mutant(
        "layers leave one step late",
        "tfviz/basics/alrfou_auxiliary_losses.py",
        "2 * N * step < n * steps",
        "2 * N * step <= n * steps",
        "tests/basics/test_alrfou_auxiliary_losses.py",
    ),
    Mutant(
        "the last layer leaves too",
        "tfviz/basics/alrfou_auxiliary_losses.py",
        "n == N or 2 * N",
        "2 * N",
        "tests/basics/test_alrfou_auxiliary_losses.py",
    ),
    Mutant(
        "a beam's cache that is not put in the beams' order",
        "tfviz/basics/decoding_strategies.py",
        "lambda x: x[parent]",
        "lambda x: x",
        "tests/basics/test_decoding_strategies.py",
    ),
    Mutant(
        "positions at every layer though asked for one",
        "tfviz/basics/alrfou_auxiliary_losses.py",
        "self.P[n](i) if n < len(self.P) else X",
        "self.P[min(n, len(self.P) - 1)](i)",
        "tests/basics/test_alrfou_auxiliary_losses.py",
    ),
    Mutant(
        "the last token is never a random one",
        "tfviz/basics/lm_objectives.py",
        'anything = torch.randint(_arguments.integer("vocab", vocab, 1), (b, L)',
        'anything = torch.randint(max(1, _arguments.integer("vocab", vocab, 1) - 1), (b, L)',
        "tests/basics/test_lm_objectives.py",
    ),
    Mutant(
        "no last norm for orders of one's own",
        "tfviz/models/blocks.py",
        "self.norm = nn.Identity() if order is post_norm else nn.LayerNorm(d)",
        "self.norm = nn.LayerNorm(d) if order is pre_norm else nn.Identity()",
        "tests/test_models.py tests/basics/test_layer_norm_pre_post.py",
    ),
    Mutant(
        "rotary turns the wrong way",
        "tfviz/position/rope.py",
        "torch.stack([a * cos - b * sin, a * sin + b * cos], -1)",
        "torch.stack([a * cos + b * sin, b * cos - a * sin], -1)",
        "tests/position/test_rope.py",
    ),
    Mutant(
        "rotary counts from 1",
        "tfviz/position/rope.py",
        "angle = i[:, None].double() * speeds",
        "angle = (i[:, None].double() + 1) * speeds",
        "tests/position/test_rope.py",
    ),
    Mutant(
        "halves exchanged",
        "tfviz/position/rope.py",
        "a, b = X.chunk(2, -1)",
        "b, a = X.chunk(2, -1)",
        "tests/position/test_rope.py",
    ),
    Mutant(
        "labels look ahead",
        "tfviz/position/shaw_relative.py",
        "return torch.clamp(j - i, -k, k)",
        "return torch.clamp(i - j, -k, k)",
        "tests/position/test_shaw_relative.py",
    ),
    Mutant(
        "labels clipped one early",
        "tfviz/position/shaw_relative.py",
        "return torch.clamp(j - i, -k, k)",
        "return torch.clamp(j - i, -k, k - 1)",
        "tests/position/test_shaw_relative.py",
    ),
    Mutant(
        "bucket of the future not shifted",
        "tfviz/position/t5_relative_bias.py",
        "+ side * (n < 0)",
        "+ side * (n < -1)",
        "tests/position/test_t5_relative_bias.py",
    ),
    Mutant(
        "shift of relative scores one off",
        "tfviz/position/xl_relative.py",
        "[..., Lq - 1 : Lq - 1 + Lq * M]",
        "[..., Lq : Lq + Lq * M]",
        "tests/position/test_xl_relative.py",
    ),
    Mutant(
        "sine and cosine exchanged",
        "tfviz/position/sinusoidal_pe.py",
        "return torch.stack([angle.sin(), angle.cos()], -1)",
        "return torch.stack([angle.cos(), angle.sin()], -1)",
        "tests/position/test_sinusoidal_pe.py",
    ),
    Mutant(
        "nucleus keeps one token too few",
        "tfviz/basics/decoding_strategies.py",
        "first | (before < p)",
        "first | (before + ordered < p)",
        "tests/basics/test_decoding_strategies.py",
    ),
    Mutant(
        "length penalty without its 6",
        "tfviz/basics/decoding_strategies.py",
        '(5 + _arguments.integer("n", n, 0)) / 6',
        '(5 + _arguments.integer("n", n, 0)) / 5',
        "tests/basics/test_decoding_strategies.py",
    ),
    Mutant(
        "prefix of the language model one short",
        "tfviz/basics/lm_objectives.py",
        "return (j < prefix) | (i >= j)",
        "return (j < prefix - 1) | (i >= j)",
        "tests/basics/test_lm_objectives.py",
    ),
    Mutant(
        "FLOPs of a token without its scores",
        "tfviz/basics/cache_cost.py",
        "4 * (t + 1) * d)",
        "4 * t * d)",
        "tests/basics/test_cache_cost.py",
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
        "tfviz/experiments/compare.py",
        "    made.load_state_dict(plain.state_dict(), strict=False)\n",
        "",
        "tests/test_compare.py",
    ),
    Mutant(
        "recall asks for the symbol after",
        "tfviz/experiments/compare.py",
        "answers[:, BACK:] = rows[:, :-BACK]",
        "answers[:, BACK:] = rows[:, 1 : 1 - BACK]",
        "tests/position/test_extrapolation.py",
    ),
    Mutant(
        "changed modules pass for up to date",
        "tfviz/experiments/runner.py",
        "        elif then != now:\n",
        "        elif not then:\n",
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
        "tfviz_course/codec.py",
        "        if depth > DEPTH:\n",
        "        if depth > 10**9:\n",
        "tests/course/test_codec.py",
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
