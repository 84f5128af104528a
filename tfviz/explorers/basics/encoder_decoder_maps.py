"""An encoder–decoder at work: its three attentions, their shapes, and one step of writing."""

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.basics.encoder_decoder import pair_counts
from tfviz.explorers.base import Explorer, Knob, Numbers, exact, given, knob

KINDS = ("encoder", "decoder", "cross")
MOST_TOKENS = 12


EXAMPLES: dict[str, Numbers] = {
    "": {  # two heads over a source of three and two written tokens
        "source": ["b", "a", "d"],
        "written": ["⟨begin⟩", "d"],
        "said": ["d", "a"],
        "d": 16,
        "encoder": [[[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6]], [[1.0, 0.0, 0.0]] * 3],
        "decoder": [[[1.0, 0.0], [0.3, 0.7]], [[1.0, 0.0], [0.5, 0.5]]],
        "cross": [[[0.1, 0.2, 0.7], [0.1, 0.8, 0.1]], [[0.0, 0.0, 1.0], [0.4, 0.3, 0.3]]],
    }
}


class EncoderDecoderMaps(Explorer):
    """The weights of one layer's three attentions, head by head.

    said                       what the decoder says at each of its positions
    encoder, decoder, cross    weights (h, L_x, L_x), (h, L_y, L_y), (h, L_y, L_x)
    head, d                    −1 is the mean of the heads; width of the model, for the shapes
    """

    label = "The three attentions of an encoder–decoder while it writes"
    rem = 39, 40.5, 41.5, 38.5, 92
    narrow = 640

    source, written, said = (given(t.List(t.Unicode())) for _ in range(3))
    encoder, decoder, cross = (given(t.List()) for _ in KINDS)
    step = knob(0, low=0, high=lambda e: len(e.written) - 1, label="step of writing", letter="i")
    head = knob(-1, low=-1, high=lambda e: len(e.encoder) - 1, label="head")
    part = knob("cross", of=KINDS, label="attention")
    d = given(Knob(64, low=1))
    examples = EXAMPLES
    asks = "Write one symbol after another: where does the decoder look?"

    def prepare(self, said: Numbers) -> Numbers:
        L_x = _arguments.integer("number of source tokens", len(said["source"]), 1, MOST_TOKENS)
        L_y = _arguments.integer("number of written tokens", len(said["written"]), 1, MOST_TOKENS)
        if (n := len(said["said"])) != L_y:
            raise ValueError(f"{n} said for {L_y} written tokens; give one for each")
        heads, sizes = len(said["encoder"]), ((L_x, L_x), (L_y, L_y), (L_y, L_x))
        for name, (rows, columns) in zip(KINDS, sizes, strict=True):
            A = torch.as_tensor(said[name], dtype=torch.float64)
            if A.shape != (heads, rows, columns):
                raise ValueError(
                    f"{name} has shape {tuple(A.shape)}; give weights of shape "
                    f"(heads, queries, keys) = ({heads}, {rows}, {columns})"
                )
            if (A.sum(-1) - 1).abs().max() > 1e-3 or A.min() < 0:
                raise ValueError(f"{name} has a row that is no distribution; give weights A")
            said[name] = [[[round(a, 4) for a in row] for row in table] for table in A.tolist()]
        return said | {name: list(said[name]) for name in ("source", "written", "said")}

    def numbers(self) -> Numbers:
        """The maps of the chosen head, or the mean of all heads; the number of pairs in each; and
        the place in the source that the decoder looks at most in this step."""
        maps = {part: exact(getattr(self, part)) for part in KINDS}
        shown = {part: A.mean(0) if self.head < 0 else A[self.head] for part, A in maps.items()}
        pairs = pair_counts(len(self.source), len(self.written))
        best = shown["cross"][self.step].argmax()
        return {**shown, "pairs": [pairs[part] for part in KINDS], "best": best}
