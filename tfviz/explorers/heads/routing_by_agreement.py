"""Routing by agreement in the plane: six heads vote for two outputs, and one vote is dragged."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.routing_heads_dynamic import routing_rounds
from tfviz.heads.routing_heads_em import em_rounds

FLOOR, REACH = 0.01, 2.5
A = [[1.2, 0.5], [1.5, 0.2], [1.4, 0.7], [1.1, 0.2], [1.6, 0.5]]
B = [[-0.4, 1.1], [-0.2, 1.4], [-0.6, 1.3], [-0.5, 1.6], [-0.1, 1.1], [-0.3, 1.5]]
"""What heads 1 to 5 vote for output A, and heads 0 to 5 for output B."""

EXAMPLES: dict[str, Numbers] = {"": {}, "em": {"way": "em", "x": 1.2, "y": -2.2}}


class RoutingByAgreement(Explorer):
    """Rounds of dynamic routing, or of EM with its ellipses. Head 0's vote for A is the one that
    moves; it begins opposite the others or, with EM, far below them.
    """

    label = "Routing by agreement: votes of six heads, and the two outputs that they make"
    rem = 40, 40, 37.5, 39, 95
    data = handed(A=A, B=B, floor=FLOOR)
    examples = EXAMPLES

    rounds = knob(1, low=1, high=8, label="rounds", letter="T")
    way = knob(
        "dynamic",
        of={"dynamic": "dynamic routing (products)", "em": "EM routing (distances)"},
        label="routing",
    )
    x = knob(-1.6, low=-REACH, high=REACH, step=0.1, label="head 0's vote for A, horizontal")
    y = knob(-1.2, low=-REACH, high=REACH, step=0.1, label="head 0's vote for A, vertical")
    asks = (
        "Drag vote 0 to one side of the other votes, or far beyond them, and compare both kinds of "
        "routing."
    )

    def numbers(self) -> Numbers:
        """The share of each head that goes to A, the outputs and, with EM, their deviations."""
        votes = exact([[[self.x, self.y], *A], B]).transpose(0, 1)
        if self.way == "dynamic":
            shares, out = routing_rounds(votes, self.rounds, squashed=False)[-1]
            return {"shares": shares[:, 0], "out": out, "spread": []}
        fit = em_rounds(votes, self.rounds, floor=FLOOR)[-1]
        return {"shares": fit.shares[:, 0], "out": fit.mean, "spread": fit.variance.sqrt()}
