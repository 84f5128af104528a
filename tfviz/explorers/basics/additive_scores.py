"""Additive score and dot product on the same states: one is bounded, the other is not."""

import traitlets as t
from torch import Tensor

from tfviz.basics.additive_attention import bahdanau_attention
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, given, knob, table

SIZES = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
SHARPNESS = [0.0, 0.5, 1.0, 2.0, 5.0, 10.0]


EXAMPLES: dict[str, Numbers] = {
    "": {
        "s": [0.6, 0.9],
        "H": [[0.2, -0.3], [1.0, 0.1], [0.3, 1.1], [-0.8, 0.6]],
        "W_a": [[1.0, -0.4, 0.3], [0.5, 1.2, -0.8]],
        "U_a": [[0.7, -0.2, 0.4], [-0.3, 1.0, 0.9]],
        "v_a": [0.9, 1.1, 0.7],
        "names": ["le", "chat", "noir", "dort"],
    }
}


class AdditiveScores(Explorer):
    """One state s and notes H, as wide, scored by tanh(s W_a + h U_a) v_aᵀ and by s hᵀ/√d."""

    label = "Additive score and dot product as state and notes grow longer"
    rem = 40.5, 40.5, 40.5, 36.5, 59

    s = given(t.List(t.Float()))
    H, W_a, U_a = (given(t.List(t.List(t.Float()))) for _ in range(3))
    v_a = given(t.List(t.Float()))
    names = given(t.List(t.Unicode()))
    size = knob(1.0, of=SIZES, label="factor on state and notes")
    sharpness = knob(1.0, of=SHARPNESS, label="factor on v")
    examples = EXAMPLES
    asks = "Drag the two dots. Which score gives one note all the weight? What moves the ceiling?"

    def prepare(self, said: Numbers) -> Numbers:
        s, H, v_a, names = said["s"], said["H"], said["v_a"], said["names"]
        if len(H) != len(names) or not 1 <= len(H) <= 8:
            raise ValueError(f"{len(H)} notes, {len(names)} names; give 1 to 8, with a name each")
        shapes = {"H": (len(H), len(s)), "W_a": (len(s), len(v_a)), "U_a": (len(s), len(v_a))}
        rows = {name: table(name, said[name], *shape) for name, shape in shapes.items()}
        return said | rows | {"s": list(s), "v_a": list(v_a), "names": list(names)}

    def weights(self, size: float) -> tuple[Tensor, Tensor]:
        """α by the additive score and by the scaled dot product, as the library computes them."""
        s, H, W_a, U_a, v_a = map(exact, ([self.s], self.H, self.W_a, self.U_a, self.v_a))
        S, H = size * s, size * H
        additive = bahdanau_attention(S, H, W_a, U_a, self.sharpness * v_a)[1]
        return additive[0], attention(S, H, H)[1][0]

    def numbers(self) -> Numbers:
        additive, dot = self.weights(self.size)
        most = [[alpha.max() for alpha in self.weights(size)] for size in SIZES]
        most_additive, most_dot = zip(*most, strict=True)
        weights = {"additive": additive, "dot": dot}
        return weights | {"most_additive": most_additive, "most_dot": most_dot}
