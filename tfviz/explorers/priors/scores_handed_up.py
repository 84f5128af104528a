"""The scene of chapter 26: each layer adds scores of the layer below to its own."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob, uniforms
from tfviz.priors.realformer import scores_from_below

L, SEED, NOISE = 12, 2, 0.3
LIKES = 4.0
"""What a layer's own score gains where its pattern is, beside numbers drawn at random."""
PATTERNS = ["same letter", "letter before", "first letter", "letter after"]
TEXT = "abcdabcdabcd"


class ScoresHandedUp(Explorer):
    """Four layers with patterns of their own, made up, and a share of the scores from below."""

    label = "Maps of four layers, each of which adds scores of the layer below"
    scene = True
    uses = ("shared/cells",)
    rem = 24, 22, 20, 19.5, 26
    data = handed(text=TEXT, seed=SEED, noise=NOISE, likes=LIKES, patterns=PATTERNS)

    below = knob(1.0, low=0.0, high=1.0, step=0.05, label="share of the scores from below")

    def numbers(self) -> Numbers:
        """The maps of all layers, and the correlation of each with the one below it."""
        i, j = torch.arange(L)[:, None], torch.arange(L)
        same = torch.tensor([[x == y for y in TEXT] for x in TEXT])
        liked = torch.stack([same, j == i - 1, (j == 0).expand(L, L), j == i + 1])
        noise = exact(uniforms(SEED, 4 * L * L).tolist()).view(4, L, L)
        own = LIKES * liked + NOISE * noise
        maps = scores_from_below(own, 1.0, self.below).softmax(-1)
        alike = [torch.corrcoef(maps[n : n + 2].flatten(1))[0, 1] for n in range(3)]
        return {"maps": maps, "alike": alike}
