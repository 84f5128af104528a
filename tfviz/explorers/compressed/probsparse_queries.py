"""Which queries of a trained head attend, and which get the mean: Informer's rating of each."""

from functools import cache

import torch

from tfviz import stored
from tfviz.compressed.informer import informer_definition, many, max_mean, measure
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

L, DRAWS = 32, 4


@cache
def trained() -> Numbers:
    """Queries and keys of a head of each layer, and their text, from the stored experiment; for
    each draw the keys that every query is compared with, of which the first U count."""
    shown = stored.load("trained_maps")["shown"]
    dice = torch.Generator().manual_seed(0)
    return {**shown, "drawn": torch.randint(L, (DRAWS, L, L), generator=dice).tolist()}


class ProbsparseQueries(Explorer):
    """A trained head on 32 characters, of whose queries f ⌈ln 32⌉ = 4f attend."""

    label = "Informer: which queries deserve full attention"
    rem = 35, 43.5, 36, 38.5, 91
    data = handed(trained, draws=DRAWS)

    by = knob("exact", of={"exact": "all keys", "sampled": "sampled keys"}, label="rated by")
    factor = knob(2, low=1, high=8, label="factor: 4f active queries, 4f sampled keys", letter="f")
    draw = knob(0, low=0, high=DRAWS - 1, label="draw of the keys")
    layer = knob(1, of=[1, 2], label="layer")
    asks = "Draw other keys, then raise f: when does the estimate find all of the best queries?"

    def numbers(self) -> Numbers:
        """Both ratings of each query, above that of an even row; which are active; how many of the
        best the estimate finds; the weights that are applied, and what their rows miss."""
        head, drawn = trained()["heads"][self.layer - 1], trained()["drawn"]
        Q, K = exact(head["Q"]), exact(head["K"])
        u = many(self.factor, L)
        at = torch.tensor(drawn)[self.draw, :, :u]
        ratings = {"exact": measure(Q, K), "sampled": max_mean(Q, K, at)}
        kept = {name: x.topk(u).indices.sort().values for name, x in ratings.items()}
        A = informer_definition(Q, K, K, kept[self.by])[1]
        return {
            **ratings,
            "kept": kept[self.by],
            "found": int(torch.isin(kept["sampled"], kept["exact"]).sum()),
            "A": A,
            "misses": (A - attention(Q, K, K)[1]).abs().sum(-1).mean(),
        }
