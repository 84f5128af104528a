"""What a pixel may read: a memory along the sequence of all pixels, and one in two dimensions."""

from tfviz import patterns as P
from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.sparse.image_transformer_2d import generation_order

SIDE = 8
L = SIDE * SIDE
ONE, TWO = P.image_1d.domains, P.image_2d.domains

EXAMPLES: dict[str, Numbers] = {"": {}, "next": {"place": 19, "in_order": True}}


class ImageMemoryBlocks(Explorer):
    """An image of 8 × 8 pixels, and the memory of one of them in both ways.

    place    the pixel, by its place in the order in which the 2-D blocks make them
    """

    label = "Image lens: 1-D and 2-D memory of a pixel, as an image and as a matrix"
    rem = 42.5, 42.5, 44, 44, 92
    data = handed(**{n: P.FAMILIES[n].formula for n in ("image_1d", "image_2d")})

    place = knob(57, low=0, high=L - 1, label="place in the order")
    l_q = knob(ONE["block"], first=4, high=L, label="1-D: block")
    l_m = knob(ONE["memory"], first=12, high=L, label="1-D: memory")
    h_q = knob(TWO["h_q"], first=4, high=SIDE, label="2-D: rows of a block")
    w_q = knob(TWO["w_q"], first=4, high=SIDE, label="2-D: columns of a block")
    h_m = knob(TWO["h_m"], first=1, high=SIDE, label="2-D: rows above")
    w_m = knob(TWO["w_m"], first=1, high=SIDE, label="2-D: columns beside")
    in_order = knob(False, label="2-D matrix in the order of making")
    examples = EXAMPLES
    asks = "Choose a pixel, drag a dot, or play the order in which the image is made."

    def numbers(self) -> Numbers:
        """The pixel, what it may read in both ways, the order, and the number of pairs of both."""
        order = generation_order(SIDE, SIDE, self.h_q, self.w_q)
        pixel = int(order[self.place])
        sizes = {"h_q": self.h_q, "w_q": self.w_q, "h_m": self.h_m, "w_m": self.w_m}
        one = P.image_1d(block=self.l_q, memory=self.l_m).mask(L)
        two = P.image_2d(width=SIDE, **sizes).mask(L)
        seen = {"one": one[pixel].nonzero().flatten(), "two": two[pixel].nonzero().flatten()}
        return {"pixel": pixel, "order": order, **seen, "pairs": [one.sum(), two.sum()]}
