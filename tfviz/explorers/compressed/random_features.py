"""Random features estimate a kernel: sines against exponentials, and orthogonal directions."""

from functools import cache

import torch
from torch import Generator, Tensor

from tfviz.compressed.performer import softmax_features
from tfviz.compressed.rfa import directions, fourier_features
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

D = 8  # numbers of a vector; two of length 1 lie in a plane, so two numbers of a direction matter
DRAWS, MOST = 16, 64
ANGLES = [7.5 * n for n in range(25)]
KINDS = {"sines": "sines, cosines", "positive": "positive"}


def pair(angle: float, d: int) -> Tensor:
    """Two vectors of length 1 with this angle between them, in degrees."""
    theta = torch.tensor(angle, dtype=torch.float64).deg2rad()
    xy = torch.zeros(2, d, dtype=torch.float64)
    xy[0, 0], xy[1, 0], xy[1, 1] = 1.0, theta.cos(), theta.sin()
    return xy


def ratios(W: Tensor, kind: str, angle: float) -> Tensor:
    """Estimates of e^(x yᵀ) along each of several sets of directions, ÷ the true kernel."""
    x, y = pair(angle, W.shape[-1])
    if kind == "positive":
        products = (softmax_features(x, W) * softmax_features(y, W)).sum(-1)
    else:  # e^(|x|²/2) e^(|y|²/2) = e
        products = torch.e * (fourier_features(x, W) * fourier_features(y, W)).sum(-1)
    return products / (x @ y).exp()


@cache
def drawn() -> Numbers:
    """Directions of each drawing, and the relative squared error of one orthogonal block of D."""
    rng = Generator().manual_seed(0)
    sets = {
        name: torch.stack([directions(MOST, D, name == "orthogonal", rng) for _ in range(DRAWS)])
        for name in ("single", "orthogonal")
    }
    blocks = directions(D * 20_000, D, True, rng).double().view(-1, D, D)
    squares = {
        kind: [round(float((ratios(blocks, kind, a) - 1).pow(2).mean()), 8) for a in ANGLES]
        for kind in KINDS
    }
    plane = {
        k: [[[round(v, 3) for v in w] for w in W] for W in x[..., :2].tolist()]
        for k, x in sets.items()
    }
    return {"plane": plane, "squares": squares}


class RandomFeatures(Explorer):
    """Estimates of e^(x yᵀ) for vectors of length 1, by the angle between them.

    m    features: m exponentials, or sines and cosines along m/2 directions
    """

    label = "Random features: how far the estimates scatter"
    rem = 37.5, 31, 31.5, 34, 89
    data = handed(drawn, angles=ANGLES, draws=DRAWS, block=D)

    kind = knob("sines", of=KINDS, label="features")
    m = knob(32, of=[16, 32, 64], label="number of features", letter="f")
    orthogonal = knob(False, label="orthogonal directions")
    angle = knob(30.0, low=0, high=180, step=7.5, label="angle between x and y")
    asks = "Tick “orthogonal directions” (dashed): at which angles is the error reduced most?"

    def numbers(self) -> Numbers:
        """Estimates ÷ the true kernel, of each drawing at each angle, and the expected relative
        errors by angle: of directions drawn one by one, and of orthogonal ones."""
        used = self.m if self.kind == "positive" else self.m // 2
        W = exact(drawn()["plane"]["orthogonal" if self.orthogonal else "single"])[:, :used]
        theta = torch.tensor(ANGLES, dtype=torch.float64).deg2rad()
        near, far = 2 + 2 * theta.cos(), 2 - 2 * theta.cos()  # |x + y|² and |x − y|²
        squares = {"positive": near.exp() - 1, "sines": (1 - (-far).exp()) ** 2 * far.exp()}
        blocks = {"positive": self.m // D, "sines": self.m // 2 // D}
        return {
            "ratios": torch.stack([ratios(W, self.kind, a) for a in ANGLES]),
            **{kind: (x.clamp(min=0) / self.m).sqrt() for kind, x in squares.items()},
            **{
                f"{kind}Blocks": (exact(drawn()["squares"][kind]) / many).sqrt()
                for kind, many in blocks.items()
            },
        }
