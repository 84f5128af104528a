"""The scene of chapter 7: six clock hands give each place a time of its own."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.position.sinusoidal_pe import hand, sinusoid

PLACES, WIDTH, BASE = 64, 12, 500.0


class ClockWaves(Explorer):
    """A place of a text of 64, and six hands that turn from place to place, each more slowly.

    The base of the speeds is 500, not the 10,000 of the paper, so that 64 places turn all hands.
    """

    label = "Six waves of different lengths above the places of a text, read at one place"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(places=PLACES, hands=WIDTH // 2, base=BASE)

    place = knob(22, low=0, high=PLACES - 1, label="place", letter="i")

    def numbers(self) -> Numbers:
        """Sine and cosine of each hand, and how alike each place is to this one, 1 for the same."""
        hands = sinusoid(exact(self.place), exact(range(WIDTH)), d=WIDTH, base=BASE)
        steps = exact(range(PLACES))[:, None] - self.place
        alike = hand(steps, exact(range(WIDTH // 2)), d=WIDTH, base=BASE).mean(1)
        return {"hands": hands.unflatten(0, (-1, 2)), "alike": alike}
