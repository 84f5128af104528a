"""The scene of chapter 24: many keys are squeezed into few notes; what does a query find?."""

import torch

from tfviz.compressed.memory_compressed_attention import mca_definition, mean_kernel, squeezed
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob, uniforms

L, SEED, NOISE = 36, 3, 0.06
PASSAGE, PEAK = (6, 14), 25
FITS = {"anything": 0.16, "passage": 0.62, "peak": 1.0}
BETA = 8.0


class ShortenedMemory(Explorer):
    """36 keys of one number, how well they fit the query; each note is the mean of neighbours.

    Made up: nine keys in a row fit fairly well, one key fits best, and all others hardly.
    """

    label = "A list of keys, and the shorter list of notes that is made of it"
    scene = True
    rem = 29.5, 29.5, 29.5, 30.5, 25.5
    data = handed(
        length=L, seed=SEED, noise=NOISE, passage=PASSAGE, peak=PEAK, fits=FITS, beta=BETA
    )

    many = knob(12, of=[1, 2, 3, 4, 6, 9, 12, 18, 36], label="notes")

    def numbers(self) -> Numbers:
        """How well each note fits the query, and the weight that it gets."""
        fits = torch.full((L,), FITS["anything"], dtype=torch.float64)
        fits[PASSAGE[0] : PASSAGE[1] + 1] = FITS["passage"]
        fits[PEAK] = FITS["peak"]
        keys = (fits + NOISE * exact(uniforms(SEED, L).tolist())).view(1, 1, L, 1)
        mean = mean_kernel(L // self.many, 1).double()
        query = torch.full_like(keys, BETA)
        weights = mca_definition(query, keys, keys, mean, mean)[1][0, 0, 0]
        return {"notes": squeezed(keys, mean).flatten(), "weights": weights}
