"""The scene of chapter 9: a query and a key move along a text, and the angles between them stay."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.position.rope import phasors, rotate

QUERY, KEY = [-9, -22, 62, 123], [150, 85, 60, 20]
"""Where the hands point before they are turned, in degrees: four pairs of numbers each."""
DISTANCE, PLACES, BASE = 4, 32, 100.0


class PairedClocks(Explorer):
    """A query 4 places after its key, each four hands of length 1. The hands are made up.

    The base of the speeds is 100, so that the slow hands turn within 32 places, too.
    """

    label = "Four clocks, each with a hand of the query and of the key, that turn with their place"
    scene = True
    rem = 30, 30, 31.5, 31.5, 24
    data = handed(query=QUERY, key=KEY, distance=DISTANCE, places=PLACES, base=BASE)

    place = knob(14, low=0, high=PLACES - 1 - DISTANCE, label="place of the key", letter="j")

    def numbers(self) -> Numbers:
        """The turned hands of query and key, the angles between them in degrees, the score."""
        angles = exact([QUERY, KEY]).deg2rad()
        both = exact([angles.cos().tolist(), angles.sin().tolist()]).permute(1, 2, 0).flatten(1)
        turned = rotate(both, exact([self.place + DISTANCE, self.place]), BASE)
        _, between = phasors(both[0], both[1], DISTANCE, BASE)
        hands = turned.unflatten(1, (-1, 2))
        score = turned[0] @ turned[1]
        return {"query": hands[0], "key": hands[1], "between": between.rad2deg(), "score": score}
