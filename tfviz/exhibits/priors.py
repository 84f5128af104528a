"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tfviz.dense_attention import CAUSAL
from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, Part, drawn, spread
from tfviz.priors.average_attention import AverageAttention, share
from tfviz.priors.camtl_prior import task_prior
from tfviz.priors.gaussian_transformer import beside
from tfviz.priors.hard_coded_gaussian import HardCoded, hard_coded_definition
from tfviz.priors.lazyformer import lazyformer_definition
from tfviz.priors.localness_gaussian import bell_around
from tfviz.priors.predictive_attention import convolved
from tfviz.priors.realformer import realformer_definition
from tfviz.priors.synthesizer import Synthesizer, dense_scores


def even_shares() -> Tensor:
    """1/(i + 1) for each key up to the query; the root of it, so that far rows can be seen."""
    return spread((share(STEPS[:, None], STEPS) * CAUSAL.mask(N)).sqrt())


def bells() -> Tensor:
    """The maps of a head that looks four places back and of one that looks at itself."""
    A = hard_coded_definition(torch.ones(2, N, 1), CAUSAL.mask(N), [-4, 0], spread=1.5)[1]
    return spread(A.sum(0))


def guessed_rows() -> Tensor:
    """What each of 24 tokens guesses of all places, without a look at one of them."""
    guesses = dense_scores(drawn(N, 4, seed=2), drawn(4, N, seed=1))
    return spread(guesses.softmax(-1).sqrt())


def wandering_bells() -> Tensor:
    """A bell in each row, wide or narrow, around a place that each query predicts."""
    p = 11.5 + 8 * torch.sin(STEPS / 4)
    D = 6 + 4 * torch.cos(STEPS / 3)
    return bell_around(0, STEPS, centre=p[:, None], window=D[:, None]).exp()


def beside_itself() -> Tensor:
    """The curve that is highest four places beside the query, as weights of a map."""
    return spread(beside(STEPS[:, None], STEPS, w=0.1, b=-1.6).exp())


def smoothed() -> Tensor:
    """Scores from below, smoothed along the diagonal by a kernel, up to the query."""
    kernel, mask = torch.diag(torch.tensor([1.0, 1.0, 0.0]))[None, None], CAUSAL.mask(N)
    image = drawn(1, 1, N, N, seed=4) * mask
    for _ in range(3):
        image = convolved(image, kernel, ahead=False) * mask
    return spread(image[0, 0])


def two_priors() -> Tensor:
    """Six blocks of four: above the query they prefer keys to the left, below it to the right."""
    away = STEPS[:, None] % 4 - torch.arange(4)
    A = 2.0 * ((away == 1).float() - (away == -1).float())
    gamma = torch.tensor([[0.0], [-2.0]]).expand(2, 4)
    M = task_prior(A, gamma, torch.zeros(2, 4))
    return spread(torch.cat([M[0, : N // 2], M[1, N // 2 :]]))


def four_layers(A: Tensor) -> Tensor:
    """Their maps, (4, N/2, N/2): two above, two below, each row as dark as its largest weight."""
    maps = A / A.amax(-1, keepdim=True)
    return torch.cat([torch.cat([*maps[:2]], 1), torch.cat([*maps[2:]], 1)])


def sums_of_scores() -> Tensor:
    """Four layers, each with the scores of all before it: the last map has them all."""
    Q, K = drawn(2, 4, N // 2, 6, seed=1)
    return four_layers(realformer_definition(Q, K, K, CAUSAL.mask(N // 2))[1])


def maps_used_twice() -> Tensor:
    """Four layers with two maps, one above and one below."""
    Q, K = drawn(2, 4, N // 2, 6, seed=1)
    return four_layers(lazyformer_definition(Q, K, K, 2, CAUSAL.mask(N // 2))[1])


# --- in the race ----------------------------------------------------------------------------------


def averages(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "mix": AverageAttention}


def two_places(gpt: Gpt) -> dict[str, Any]:
    core = lambda: HardCoded(gpt.heads, offsets=(-1, 0))  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def learned_scores(gpt: Gpt) -> dict[str, Any]:
    """From two narrow tables: one of all scores would learn length² numbers a head."""
    kind = "factorized random"
    core = lambda: Synthesizer(gpt.d_head, gpt.heads, gpt.length, kind=kind)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


DEEPER = "the race has two layers: chapter 26 trains it in four, beside the plain model"
EXHIBITS = {
    "localness_gaussian": Exhibit(
        wandering_bells, why_not="chapter 25 trains it to copy from three places before"
    ),
    "gaussian_transformer": Exhibit(
        beside_itself, why_not="chapter 25 trains it to add up neighbours"
    ),
    "realformer": Exhibit(sums_of_scores, why_not=DEEPER),
    "lazyformer": Exhibit(maps_used_twice, why_not=DEEPER),
    "predictive_attention": Exhibit(smoothed, why_not=DEEPER),
    "camtl_prior": Exhibit(
        two_priors, why_not="it needs a task: chapter 26 trains one attention for two of them"
    ),
    "average_attention": Exhibit(
        even_shares,
        race=averages,
        exactness="any",
        own_positions=True,
        story={"average": Part("attention", averages, turned=False)},
    ),
    "hard_coded_gaussian": Exhibit(bells, race=two_places, exactness="any", own_positions=True),
    "synthesizer": Exhibit(guessed_rows, race=learned_scores, exactness="any", own_positions=True),
}
