"""Rotary positions: queries and keys are turned by angles that grow with their position.

    θ_m = base^{−2m/d}    R_i = blockdiag_m [cos iθ_m  −sin iθ_m; sin iθ_m  cos iθ_m]
    q̃_i = q_i R_iᵀ    k̃_j = k_j R_jᵀ    q̃_i k̃_jᵀ = q_i R_iᵀ R_j k_jᵀ = q_i R_{j−i} k_jᵀ

Su et al. 2021 (arXiv 2104.09864), section 3.2, with base = 10 000 and d the width of one head;
m and i count from 0 here, from 1 in the paper. Values are not turned. The paper pairs neighbours,
(2m, 2m + 1); `rotate_halves` pairs (m, m + d/2), as Hugging Face's Llama does. Dividing all
positions by a factor is position interpolation, Chen et al. 2023 (arXiv 2306.15595); other speeds
for long texts are made in `rope_scaling`.

>>> import math
>>> turned = rotate(torch.tensor([[1.0, 0.0]]), torch.tensor([math.pi / 2]))
>>> [abs(round(x, 4)) for x in turned[0].tolist()]
[0.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, build, given_positions
from tfviz.position import sinusoidal_pe

__all__ = ["Rope", "halves_order", "phasors", "rotate", "rotate_halves", "rotation"]

speeds = partial(sinusoidal_pe.speeds, dtype=torch.float64)
"""θ_m in radians for each position, those of the sinusoids, from 1 down to nearly 1/base."""

Speeds = Float[Tensor, "d_head/2"] | Callable[[int], Float[Tensor, "d_head/2"]]


@named
def rotation(i: float, d: int, base: float = 10_000.0) -> Float[Tensor, "d d"]:
    """R_i as the matrix of the definition, in float64; it turns columns, so rows are x R_iᵀ."""
    angle = _arguments.real("i", i) * speeds(d, base)
    cos, sin = angle.cos(), angle.sin()
    return torch.block_diag(*torch.stack([cos, -sin, sin, cos], -1).view(-1, 2, 2))


@named
def rotate(
    X: Float[Tensor, "*batch L d"], i: Num[Tensor, "L"], base: float = 10_000.0
) -> Float[Tensor, "*batch L d"]:
    """Row n of X turned by R at position i[n], without the matrix: 3 operations for each feature.

    Angles are made in float64: in bfloat16 position 257 would already be 256 or 258.
    """
    return turned(X, *_hands(X, i, base))


def turned(
    X: Float[Tensor, "*batch L d"], cos: Float[Tensor, "*#batch L d/2"], sin: Tensor
) -> Float[Tensor, "*batch L d"]:
    """Each pair (a, b) of neighbours turned by the angle with this cosine and this sine."""
    a, b = X[..., 0::2], X[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


@named
def rotate_halves(
    X: Float[Tensor, "*batch L d"], i: Num[Tensor, "L"], base: float = 10_000.0
) -> Float[Tensor, "*batch L d"]:
    """The same with feature m paired to m + d/2. Weights trained for one do not fit the other."""
    cos, sin = _hands(X, i, base)
    a, b = X.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@named
def halves_order(d: int) -> Int[Tensor, "d"]:
    """p with rotate_halves(X[..., p], i) = rotate(X, i)[..., p]: all even features, then all odd.

    So columns of W^q and W^k reordered by p move a model from one pairing to the other.
    """
    return torch.arange(2 * len(speeds(d))).view(-1, 2).T.flatten()


@named
def phasors(
    q: Float[Tensor, "*batch d"],
    k: Float[Tensor, "*#batch d"],
    distance: Num[Tensor, "*#batch"] | float = 0,
    base: float = 10_000.0,
) -> tuple[Float[Tensor, "*batch d/2"], Float[Tensor, "*batch d/2"]]:
    """(length, angle) of the arrows whose horizontal shadows add up to q̃_i k̃_jᵀ; distance = i − j.

    Read as complex numbers, pair m of the score is Re q_m k̄_m e^{i(i−j)θ_m}.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q is {q.shape[-1]} numbers wide, k {k.shape[-1]}; give one width")
    if q.dtype in (torch.float16, torch.bfloat16):  # which torch has no complex numbers for
        length, angle = phasors(q.float(), k.float(), distance, base)
        return length.to(q.dtype), angle.to(q.dtype)
    theta = speeds(q.shape[-1], base).to(q)
    product = _complex(q) * _complex(k).conj()
    return product.abs(), product.angle() + torch.as_tensor(distance).to(q)[..., None] * theta


class Rope(Dense):
    """Queries and keys turned, as the core of a model: `lambda: Rope(d_head)`.

    Args:
        base: of the speeds base^{−2m/d_head}.
        interpolate: divides every position: trained on L places and asked for s·L, give s.
        speeds: others than these, (d_head/2,), or a function that makes them from d_head, such as
            `partial(yarn, factor=4, length=2048)` of `rope_scaling`.
        temperature: t, which divides every score: queries and keys are turned and made √(1/t) times
            as long. `yarn_temperature(4)`, for instance.
        axes: how many positions a token has, 2 in a picture. The first d_head/2/axes pairs turn by
            the first of them, the next by the second, …; each has speeds of its own, as a head of
            d_head/axes numbers has them. A function is asked for these.

    Tokens stand at 0, 1, … unless the model is called within `with given(positions=P):`, where P is
    (L,) or (b, L) and holds real numbers, or (b, L, axes); see `tfviz.cores.given_positions`.
    Patterns and masks are of places in the row all the same. Su et al. 2021, section 3.2; the
    temperature is that of YaRN (arXiv 2309.00071), section 3.4.

    Raises ValueError for numbers out of range, an odd d_head, speeds of another shape or beside a
    base, heads of another width and positions that do not fit, TypeError for speeds that are none.
    """

    @named
    def __init__(
        self,
        d_head: int,
        base: float = 10_000.0,
        *,
        interpolate: float = 1.0,
        speeds: Speeds | None = None,
        temperature: float = 1.0,
        axes: int = 1,
    ) -> None:
        super().__init__()
        _arguments.integer("d_head", d_head, 2)
        if _arguments.real("interpolate", interpolate, 0.0) == 0:
            raise ValueError("interpolate = 0 divides by zero; 1 leaves the positions as they are")
        if _arguments.real("temperature", temperature, 0.0) == 0:
            raise ValueError("temperature = 0 divides by zero; 1 leaves the scores as they are")
        self.d_head, self.base, self.interpolate = d_head, base, interpolate
        self.speeds = _speeds(speeds, d_head, base, _arguments.integer("axes", axes, 1))
        self.temperature, self.axes = temperature, axes

    def check(self, Q: Tensor, K: Tensor, where: Where) -> None:
        if Q.shape[-1] != self.d_head:
            raise ValueError(f"heads are {Q.shape[-1]} numbers wide; make it Rope({Q.shape[-1]})")

    def turn(self, X: Float[Tensor, "b h L d_head"], start: int) -> Float[Tensor, "b h L d_head"]:
        return self.turn_to(X, torch.arange(start, start + X.shape[-2], device=X.device))

    def turn_queries(self, X: Float[Tensor, "b h L d_head"], where: Where) -> Tensor:
        i = given_positions(where.start, X.shape[-2], len(X), self.axes)
        return self.turn(X, where.start) if i is None else self.turn_to(X, i)

    def turn_keys(self, X: Float[Tensor, "b h_kv L d_head"], where: Where) -> Tensor:
        return self.turn_queries(X, where)

    def turn_to(
        self, X: Float[Tensor, "b h L d_head"], i: Num[Tensor, "*b L *axes"]
    ) -> Float[Tensor, "b h L d_head"]:
        """Queries or keys turned to the positions i: (L,), (b, L), or (b, L, axes).

        Raises ValueError for another width and another number of axes.
        """
        self.check(X, X, Where())
        i = i.to(X.device).double() / self.interpolate
        if self.axes == 1:
            i = i[..., None]
        elif i.shape[2:] == (self.axes,):  # of each pair, the position that turns it
            n = self.d_head // 2 // self.axes
            i = i.repeat_interleave(n, -1)
        else:
            raise ValueError(
                f"axes = {self.axes}: a token has {self.axes} positions, and they cannot be "
                "counted; call the model within `with given(positions=P):`, where P has shape "
                f"(b, L, {self.axes})"
            )
        angle = i * self.speeds.to(X.device)
        angle = angle[:, None] if angle.dim() == 3 else angle  # one for all heads
        return turned(X, *_cos_sin(X, angle, self.temperature**-0.5))


class Turned(nn.Module):
    """Any core of a model, with queries and keys turned before it sees them.

    `partial(Turned, core=LinearAttention)`; with Dense it is Rope without options.
    """

    def __init__(self, d_head: int, h: int, core: Any = Dense) -> None:
        super().__init__()
        self.inner = build(core, d_head, h)
        self.__name__ = getattr(self.inner, "__name__", type(self.inner).__name__)

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        at = torch.arange(where.start, where.start + Q.shape[-2])
        return self.inner(rotate(Q, at), rotate(K, at), V, where)


def _speeds(speeds: Speeds | None, d_head: int, base: float, axes: int) -> Tensor:
    """θ_m of every pair in float64, also those that are given."""
    if d_head % (2 * axes) and axes > 1:
        raise ValueError(
            f"d_head = {d_head}, axes = {axes}: each axis needs pairs of its own; let "
            f"2 · axes = {2 * axes} divide d_head"
        )
    usual = sinusoidal_pe.speeds(d_head // axes, base, dtype=torch.float64)
    if speeds is None:
        return torch.cat([usual] * axes)
    if base != 10_000.0:
        raise ValueError(
            f"base = {base} makes speeds, and speeds are given; say base where these are made"
        )
    some, parts = (speeds(d_head // axes), axes) if callable(speeds) else (speeds, 1)
    n = d_head // 2 // parts
    if _arguments.tensor("speeds", some, f"({n},)").shape != (n,):
        raise ValueError(
            f"speeds has shape {tuple(some.shape)}, and d_head = {d_head}; give ({n},), one for "
            "each pair of numbers" + (" that an axis has" if parts > 1 else "")
        )
    return torch.cat([_arguments.finite("speeds", some).detach().double()] * parts)


def _hands(X: Tensor, i: Tensor, base: float) -> tuple[Tensor, Tensor]:
    """cos and sin of every angle, (L, d/2), in the type of X."""
    if X.dim() < 2 or i.shape != X.shape[-2:-1]:
        raise ValueError(
            f"i has shape {tuple(i.shape)}, X {tuple(X.shape)}; give X rows, (…, L, d), and i one "
            "position for each row"
        )
    return _cos_sin(X, i[:, None].double() * speeds(X.shape[-1], base).to(X.device))


def _cos_sin(X: Tensor, angle: Tensor, length: float = 1.0) -> tuple[Tensor, Tensor]:
    """Both hands of every angle, of this length, in the type of X."""
    if not X.is_floating_point():
        raise ValueError(f"X holds {X.dtype}, where sines are 0 or ±1; give X.float()")

    def typed(hand: Tensor) -> Tensor:
        return (hand if length == 1 else length * hand).to(X.dtype)

    return typed(angle.cos()), typed(angle.sin())


def _complex(x: Tensor) -> Tensor:
    return torch.complex(x[..., 0::2], x[..., 1::2])
