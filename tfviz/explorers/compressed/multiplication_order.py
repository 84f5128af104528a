"""Three matrices, multiplied in two orders: how many multiplications, and the matrix between."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob

LENGTHS = [2**n for n in range(2, 15)]
ORDERS = {"scores": "queries with keys first", "state": "keys with values first"}


class MultiplicationOrder(Explorer):
    """One head of L tokens whose features, keys and values have d numbers each."""

    label = "Linear attention: two orders of the same product"
    rem = 36, 36, 30.5, 32, 85.5
    data = handed(lengths=LENGTHS)

    order = knob("scores", of=ORDERS, label="multiply")
    L = knob(1024, of=LENGTHS, label="length", letter="L")
    d = knob(64, of=[8, 16, 32, 64, 128], label="width of the head", letter="dₕ")
    asks = "Change the width of the head: where do the lines cross now?"

    def numbers(self) -> Numbers:
        """Multiplications in each order, at each of LENGTHS; the size of the matrix in between."""
        d = self.d
        return {
            "scores": [2 * L * L * d for L in LENGTHS],
            "state": [2 * L * d * d for L in LENGTHS],
            "between": self.L**2 if self.order == "scores" else d**2,
        }
