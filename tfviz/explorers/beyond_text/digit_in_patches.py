"""The scene of the chapter on vision and speech: an image is cut into a row of patches."""

from tfviz.beyond_text.vit_patches import patches
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.stored import digit_vit as stored

DIGIT = 3


def image() -> list[int]:
    """The 64 pixels of a handwritten digit of scikit-learn, row by row, from 0 to 16."""
    return stored.shown()[DIGIT]


class DigitInPatches(Explorer):
    """A handwritten three of 8 × 8 pixels, cut into square patches: each becomes a token."""

    label = "An image cut into patches, the patches as a row of tokens, and all pairs of tokens"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(image=image, side=stored.SIDE, levels=stored.LEVELS)

    P = knob(2, of=[1, 2, 4, 8], label="side of a patch, in pixels", letter="P")

    def numbers(self) -> Numbers:
        """The tokens, each as the pixels of its patch, and how many pairs attention compares."""
        square = exact(image()).view(1, 1, stored.SIDE, stored.SIDE)
        tokens = patches(square, self.P)[0]
        return {"tokens": tokens, "pairs": len(tokens) ** 2}
