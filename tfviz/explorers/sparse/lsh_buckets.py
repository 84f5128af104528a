"""LSH on a circle: which vectors share a bucket, sorted chunks, and what several rounds keep."""

from functools import cache

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.sparse import reformer_lsh as lsh

L, CHUNK, ROUNDS, DICE, LOUD = 16, 4, 4, 6, 6.0
BUCKETS = [2, 4, 8]
STAGES = ["in text order", "in buckets", "sorted", "in chunks"]


@cache
def tokens() -> list[list[float]]:
    """Sixteen queries in the plane, of length LOUD, in four loose clusters."""
    dice = torch.Generator().manual_seed(3)
    middle = torch.tensor([0.4, 1.9, 3.3, 5.2])[torch.randperm(L, generator=dice) % 4]
    angle = middle + 0.28 * torch.randn(L, generator=dice)
    return (LOUD * torch.stack([angle.cos(), angle.sin()], -1)).double().tolist()


@cache
def directions() -> Numbers:
    """The random arrows for each number of buckets and each draw, (rounds, 2, b/2)."""
    thrown = {b: [lsh.directions(2, b, ROUNDS, seed=n)[0] for n in range(DICE)] for b in BUCKETS}
    return {str(b): [R.double().tolist() for R in all_dice] for b, all_dice in thrown.items()}


class LshBuckets(Explorer):
    """Sixteen vectors in the plane, hashed.

    stage    0 in text order, 1 pairs of one bucket, 2 sorted, 3 cut into chunks of four
    """

    label = "LSH attention on a circle: buckets, sorting, chunks, rounds"
    rem = 39, 39, 39, 41.5, 103
    data = handed(X=tokens, R=directions, chunk=CHUNK, stages=STAGES)

    stage = knob(1, low=0, high=3, label="step")
    b = knob(4, of=BUCKETS, label="buckets", letter="b")
    rounds = knob(1, low=1, high=ROUNDS, label="rounds of hashing")
    dice = knob(0, low=0, high=DICE - 1, label="draw of arrows")
    query = knob(5, low=0, high=L - 1, label="query", letter="i")
    asks = "Play the steps, then add rounds until query 5 meets a vector of its own bucket again."

    def numbers(self) -> Numbers:
        """Buckets by round, the sorted order of the last round, the tokens that the query meets in
        any round, and the shares of all pairs and of full attention's weight that are kept."""
        X = exact(tokens())
        R = exact(directions()[str(self.b)][self.dice])[: self.rounds]
        buckets = lsh.order(X, (R,), CHUNK)
        union = lsh.meetings(buckets).any(0)
        others = union & ~torch.eye(L, dtype=torch.bool)
        _, A = lsh.lsh_definition(X, X, torch.ones(L, L, dtype=torch.bool))
        shares = {"pairs": int(others.sum()) / (L * (L - 1)), "mass": (A * others).sum() / L}
        meets = others[self.query].nonzero().flatten()
        return {"buckets": buckets.bucket, "order": buckets.by[-1], "meets": meets, **shares}
