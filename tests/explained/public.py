"""Masks and score functions that public code uses, each as a small function of its own: what
`explain` is tried on, and what the table of `book/how_to_use.md` lists.

Every entry says whose it is. Each is written anew from what the named code does, none is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from tfviz.explained.bring import Explained, explain

Mod = Callable[..., Any]


@dataclass(frozen=True)
class Public:
    """One of them: whose it is, what makes it with small numbers, and what it needs to be told."""

    name: str
    source: str
    make: Callable[[], Mod]
    options: dict[str, int]


PUBLIC: dict[str, Public] = {}
"""By name, in the order of the table."""

GYM = "attention-gym"


def _from(source: str, name: str, **options: int) -> Callable[[Callable[[], Mod]], Any]:
    def kept(make: Callable[[], Mod]) -> Callable[[], Mod]:
        PUBLIC[name] = Public(name, source, make, options)
        return make

    return kept


# --- small things that several are made of -------------------------------------------------------


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def both(*mods: Mod) -> Mod:
    def all_of_them(b: Any, h: Any, q: Any, k: Any) -> Any:
        result = q.new_ones((), dtype=torch.bool)
        for mod in mods:
            result = result & mod(b, h, q, k)
        return result

    return all_of_them


def either(*mods: Mod) -> Mod:
    def any_of_them(b: Any, h: Any, q: Any, k: Any) -> Any:
        result = q.new_zeros((), dtype=torch.bool)
        for mod in mods:
            result = result | mod(b, h, q, k)
        return result

    return any_of_them


OFFSETS = torch.tensor([0, 5, 12, 24])
DOCUMENTS = torch.repeat_interleave(torch.arange(3), OFFSETS.diff())


# --- attention-gym, masks ------------------------------------------------------------------------


@_from(GYM, "causal")
def _causal() -> Mod:
    return causal


@_from(GYM, "sliding window")
def _sliding(window: int = 4) -> Mod:
    return both(lambda b, h, q, k: q - k <= window, causal)


@_from(GYM, "dilated sliding window")
def _dilated(window: int = 8, dilation: int = 2) -> Mod:
    def dilated(b: Any, h: Any, q: Any, k: Any) -> Any:
        far = torch.abs(q - k)
        return (far <= window) & (far % dilation == 0)

    return dilated


@_from(GYM, "prefix LM")
def _prefix(prefix: int = 6) -> Mod:
    return either(lambda b, h, q, k: k < prefix, causal)


@_from(GYM, "global and sliding window")
def _global(window: int = 2) -> Mod:
    is_global = torch.arange(24) % 9 == 0

    def near(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q - k).abs() <= window

    return either(near, lambda b, h, q, k: is_global[q] | is_global[k])


@_from(GYM, "documents")
def _documents() -> Mod:
    document, offsets = DOCUMENTS, OFFSETS

    def inside(b: Any, h: Any, q: Any, k: Any) -> Any:
        own_q, own_k = q - offsets[document[q]], k - offsets[document[k]]
        return (document[q] == document[k]) & causal(b, h, own_q, own_k)

    return inside


@_from(GYM, "packed causal documents")
def _packed() -> Mod:
    document, offsets = DOCUMENTS, OFFSETS
    return lambda b, h, q, k: (k >= offsets[document[q]]) & causal(b, h, q, k)


@_from(GYM, "shared prefix")
def _shared_prefix() -> Mod:
    document, offsets, owner = DOCUMENTS, OFFSETS, torch.tensor([0, 0, 0])

    def shared(b: Any, h: Any, q: Any, k: Any) -> Any:
        own, first = document[q], owner[document[q]]
        inside = (k >= offsets[own]) & (q >= k)
        return inside | ((own != first) & (k >= offsets[first]) & (k < offsets[first + 1]))

    return shared


@_from(GYM, "batched inside of a sequence")
def _batched(size: int = 8) -> Mod:
    def batched(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q // size == k // size) & causal(b, h, q % size, k % size)

    return batched


@_from(GYM, "block diffusion")
def _block_diffusion(clean: int = 24, block: int = 4) -> Mod:
    def diffusion(b: Any, h: Any, q: Any, k: Any) -> Any:
        noisy_q, noisy_k = q < clean, k < clean
        row, column = q % clean // block, k % clean // block
        own = (row == column) & (noisy_q == noisy_k)
        before = (row > column) & noisy_q & ~noisy_k
        return own | before | ((row >= column) & ~noisy_q & ~noisy_k)

    return diffusion


@_from(GYM, "NATTEN")
def _natten(width: int = 8, height: int = 6, size: int = 3) -> Mod:
    def place(index: Any) -> Any:
        return index // width, index % width

    def neighbours(b: Any, h: Any, q: Any, k: Any) -> Any:
        (y, x), (v, u) = place(q), place(k)
        half = size // 2
        y, x = y.clamp(half, height - 1 - half), x.clamp(half, width - 1 - half)
        return ((y - v).abs() <= half) & ((x - u).abs() <= half)

    return neighbours


def _tiled_place(index: Any, width: int, t: int) -> Any:
    tile, inside = index // (t * t), index % (t * t)
    across = width // t
    return tile // across * t + inside // t, tile % across * t + inside % t


@_from(GYM, "NATTEN by tiles")
def _natten_tiled(width: int = 8, height: int = 6, size: int = 3, tile: int = 2) -> Mod:
    def neighbours(b: Any, h: Any, q: Any, k: Any) -> Any:
        (y, x), (v, u) = _tiled_place(q, width, tile), _tiled_place(k, width, tile)
        half = size // 2
        y, x = y.clamp(half, height - 1 - half), x.clamp(half, width - 1 - half)
        return ((y - v).abs() <= half) & ((x - u).abs() <= half)

    return neighbours


def _even_bits(code: Any) -> Any:
    code = code & 0x55555555
    code = (code | (code >> 1)) & 0x33333333
    code = (code | (code >> 2)) & 0x0F0F0F0F
    return (code | (code >> 4)) & 0x00FF00FF


@_from(GYM, "NATTEN on a Morton curve")
def _natten_morton(side: int = 8, size: int = 3) -> Mod:
    def neighbours(b: Any, h: Any, q: Any, k: Any) -> Any:
        half = size // 2
        x, y = (_even_bits(c).clamp(half, side - 1 - half) for c in (q, q >> 1))
        return ((x - _even_bits(k)).abs() <= half) & ((y - _even_bits(k >> 1)).abs() <= half)

    return neighbours


def _tile_window(tile: Any, tiles: int, width: int) -> Any:
    """First and last tile of a window of `width` tiles around this one, kept inside."""
    before, after = width // 2, width // 2 + width % 2 - 1
    middle = tile.clamp(before, tiles - 1 - after)
    return middle - before, middle + after


@_from(GYM, "sliding tiles, 2-D")
def _sliding_tiles(tiles: int = 4, inside: int = 4, width: int = 3, text: int = 4) -> Mod:
    image = tiles * tiles * inside

    def sliding(b: Any, h: Any, q: Any, k: Any) -> Any:
        row, key = q // inside, k // inside
        low, high = _tile_window(row // tiles, tiles, width)
        left, right = _tile_window(row % tiles, tiles, width)
        near = (key // tiles >= low) & (key // tiles <= high)
        near = near & (key % tiles >= left) & (key % tiles <= right)
        near = near & (q < image) & (k < image)
        to_text = (q < image) & (k >= image) & (k < image + text)
        return near | to_text | ((q >= image) & (k < image + text))

    return sliding


@_from(GYM, "sliding tiles, 3-D")
def _sliding_tiles_3d(tiles: int = 3, inside: int = 2, width: int = 2) -> Mod:
    image = tiles**3 * inside

    def sliding(b: Any, h: Any, q: Any, k: Any) -> Any:
        near = (q < image) & (k < image)
        for step in (tiles * tiles, tiles, 1):
            low, high = _tile_window(q // inside // step % tiles, tiles, width)
            key = k // inside // step % tiles
            near = near & (key >= low) & (key <= high)
        return near

    return sliding


@_from(GYM, "Sparse VideoGen, spatial head")
def _spatial(prompt: int = 4, frame: int = 8, width: int = 2, rounded: int = 4) -> Mod:
    def spatial(b: Any, h: Any, q: Any, k: Any) -> Any:
        reach = int(width * frame / rounded) * rounded
        return (k < prompt) | (q < prompt) | (torch.abs(q - k) < reach)

    return spatial


@_from(GYM, "Sparse VideoGen, temporal head")
def _temporal(prompt: int = 4, frames: int = 4, frame: int = 8, width: int = 2) -> Mod:
    def temporal(b: Any, h: Any, q: Any, k: Any) -> Any:
        apart = torch.abs((q - prompt) % frame - (k - prompt) % frame)
        return (k < prompt) | (q < prompt) | (apart < width * frame // frames)

    return temporal


@_from(GYM, "JetSpec, training")
def _jetspec_training(prefix: int = 8, block: int = 4) -> Mod:
    def jetspec(b: Any, h: Any, q: Any, k: Any) -> Any:
        key = k - prefix
        own = (k >= prefix) & (q // block == key // block) & (key % block <= q % block)
        return (k < prefix) | own

    return jetspec


@_from(GYM, "JetSpec, tree", L=10)
def _jetspec_tree(prefix: int = 4) -> Mod:
    ancestors = torch.eye(6, dtype=torch.bool) | torch.tensor([[True] + [False] * 5])

    def tree(b: Any, h: Any, q: Any, k: Any) -> Any:
        node = (k - prefix).clamp(min=0, max=5)
        seen = (k >= prefix) & (k < prefix + 6) & ancestors[q, node]
        return (k < prefix) | seen

    return tree


@_from(GYM, "Flamingo, text to images", L=24)
def _flamingo() -> Mod:
    intervals, image = torch.tensor([[0, 9], [9, 24]]), torch.arange(2).repeat_interleave(4)

    def sees(b: Any, h: Any, q: Any, k: Any) -> Any:
        start_and_end = intervals[image[k]]
        return (q >= start_and_end[0]) & (q < start_and_end[1])

    return sees


@_from(GYM, "VSA, chosen tiles", L=24, heads=2, batch=1)
def _vsa(tile: int = 4) -> Mod:
    chosen = torch.tensor([[[[0, 1], [1, 2], [2, 3], [0, 3], [4, 5], [1, 5]]] * 2])

    def selected(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (chosen[b, h, q // tile] == (k // tile).unsqueeze(-1)).any(dim=-1)

    return selected


@_from(GYM, "VSA, map of tiles", L=24)
def _vsa_map(tile: int = 4) -> Mod:
    allowed = torch.eye(6, dtype=torch.bool)[None, None]
    return lambda b, h, q, k: allowed[b, h, q // tile, k // tile]


@_from(GYM, "VSA, padded tiles", L=24)
def _vsa_padding(tile: int = 4) -> Mod:
    sizes = torch.tensor([4, 4, 3, 4, 2, 4])
    return lambda b, h, q, k: k % tile < sizes[k // tile]


# --- attention-gym, score_mods -------------------------------------------------------------------


@_from(GYM, "ALiBi", heads=4)
def _alibi(heads: int = 4) -> Mod:
    def alibi(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + (k - q) * torch.exp2(-(h + 1) * 8.0 / heads)

    return alibi


@_from(GYM, "tanh soft cap")
def _softcap(cap: int = 30) -> Mod:
    return lambda score, b, h, q, k: cap * torch.tanh(score / cap)


@_from(GYM, "sigmoid in place of the softmax")
def _activation(offset: float = 1e-6) -> Mod:
    return lambda score, b, h, q, k: torch.log(torch.sigmoid(score) + offset)


@_from(GYM, "Graphormer, spatial", L=8)
def _graphormer() -> Mod:
    bias = torch.tensor([[0.0, -1.0, -2.0, -4.0]])
    apart = torch.arange(8)[:, None].sub(torch.arange(8)).abs().clamp(max=3)[None]
    return lambda score, b, h, q, k: score + bias[h, apart[b, q, k]]


@_from(GYM, "Graphormer, edges", L=8)
def _graphormer_edges() -> Mod:
    lengths = torch.arange(8)[:, None].sub(torch.arange(8)).abs().clamp(max=2)[None]
    kinds = torch.stack([lengths % 2, lengths // 2], -1)
    tables = [torch.tensor([[0.5, -0.5]]), torch.tensor([[0.25, -1.0]])]

    def edges(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        total: Any = 0.0
        for n, one in enumerate(tables):
            step = one[h, kinds[b, q, k, n]]
            total = total + torch.where(lengths[b, q, k] > n, step, 0.0)
        return score + total / torch.clamp(lengths[b, q, k], min=1)

    return edges


@_from(GYM, "Sandwich", L=16)
def _sandwich(longest: int = 16) -> Mod:
    turns = 1 / 10_000 ** (torch.arange(8) / 8)
    apart = torch.arange(1 - longest, longest)
    bias = torch.cos(apart[:, None].abs() * turns).sum(-1)
    scale = 1 / torch.arange(1, 3)
    return lambda score, b, h, q, k: score + bias[q - k + longest - 1] * scale[h]


@_from(GYM, "latent attention's rotary part", L=8)
def _latent() -> Mod:
    generator = torch.Generator().manual_seed(0)
    turned, keys = (torch.randn(1, 1, 8, 4, generator=generator) for _ in range(2))

    def latent(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + torch.dot(turned[b, h, q], keys[b, h // 128, k])

    return latent


# --- Hugging Face transformers, masking_utils ----------------------------------------------------

HF = "transformers"


@_from(HF, "causal, as k ≤ q")
def _hf_causal() -> Mod:
    return lambda batch_idx, head_idx, q_idx, kv_idx: kv_idx <= q_idx


@_from(HF, "bidirectional")
def _hf_full() -> Mod:
    return lambda batch_idx, head_idx, q_idx, kv_idx: q_idx >= 0


@_from(HF, "sliding window, causal")
def _hf_sliding(sliding_window: int = 4) -> Mod:
    return both(lambda b, h, q, k: (k > q - sliding_window).to(q.device), causal)


@_from(HF, "sliding window, both sides")
def _hf_band(sliding_window: int = 4) -> Mod:
    return both(lambda b, h, q, k: abs(q - k) <= sliding_window, lambda b, h, q, k: q >= 0)


@_from(HF, "chunks, with left padding")
def _hf_chunks(chunk_size: int = 8) -> Mod:
    left_padding = torch.tensor([0, 3])

    def same_chunk(b: Any, h: Any, q: Any, k: Any) -> Any:
        row, key = q - left_padding[b], k - left_padding[b]
        return row // chunk_size == key // chunk_size

    return both(same_chunk, causal)


@_from(HF, "padding")
def _hf_padding() -> Mod:
    padding_mask = torch.arange(16) < torch.tensor([[16], [11]])
    return both(lambda b, h, q, k: padding_mask[b, k], causal)


@_from(HF, "packed sequences")
def _hf_packed() -> Mod:
    packed = torch.tensor([[0] * 5 + [1] * 11, [0] * 9 + [1] * 7])
    return both(lambda b, h, q, k: packed[b, q] == packed[b, k], causal)


@_from(HF, "blocks of images in a text")
def _hf_blocks() -> Mod:
    group = torch.tensor([[-1] * 4 + [0] * 6 + [-1] * 6])
    own = lambda b, h, q, k: (group[b, q] == group[b, k]) & (group[b, q] >= 0)  # noqa: E731
    return either(own, causal)


@_from(HF, "causal with the offset of a cache")
def _hf_offset(q_offset: int = 5, kv_offset: int = 0) -> Mod:
    return lambda b, h, q, k: causal(b, h, q + q_offset, k + kv_offset)


# --- others --------------------------------------------------------------------------------------


@_from("torchtune", "packed block-causal")
def _torchtune() -> Mod:
    document_ids = torch.tensor([[0] * 7 + [1] * 9])
    return lambda b, h, q, k: (q >= k) & (document_ids[b, q] == document_ids[b, k])


@_from("torchtitan", "fixed blocks")
def _titan_blocks(fixed_block_size: int = 8) -> Mod:
    return lambda b, h, q, k: q // fixed_block_size == k // fixed_block_size


@_from("torchtitan", "sliding window without the end")
def _titan_window(window_size: int = 4) -> Mod:
    return lambda b, h, q, k: (k <= q) & (q - k < window_size)


@_from("modded-nanogpt", "documents from end tokens")
def _nanogpt() -> Mod:
    docs = (torch.arange(24) % 10 == 9).cumsum(0)
    return lambda b, h, q, k: (q >= k) & (docs[q] == docs[k])


@_from("StreamingLLM", "sinks and a window")
def _streaming(sink: int = 4, window: int = 6) -> Mod:
    return lambda b, h, q, k: (q >= k) & ((k < sink) | (q - k < window))


@_from("flash-attention", "window (left, right)")
def _flash(left: int = 5, right: int = 2) -> Mod:
    return lambda b, h, q, k: (k >= q - left) & (k <= q + right)


@_from("xformers", "local, from the bottom right")
def _xformers(left: int = 5, right: int = 0, more_keys: int = 3) -> Mod:
    return lambda b, h, q, k: (q - k + more_keys <= left) & (k - q - more_keys <= right)


@_from("vLLM", "bidirectional over requests")
def _vllm() -> Mod:
    request = DOCUMENTS
    return lambda b, h, q, k: request[q] == request[k]


@_from("vLLM", "paged cache", L=16)
def _vllm_paged(block_size: int = 4) -> Mod:
    logical = torch.tensor([2, 0, 1, -1])

    def paged(b: Any, h: Any, q: Any, physical: Any) -> Any:
        block = logical[physical // block_size]
        key = block * block_size + physical % block_size
        return torch.where(block >= 0, q >= key, False)

    return paged


@_from("vLLM", "prefix LM over ranges of images")
def _vllm_ranges() -> Mod:
    ranges = [(3, 8), (12, 15)]

    def with_ranges(b: Any, h: Any, q: Any, k: Any) -> Any:
        allowed = q >= k
        for start, end in ranges:
            allowed = allowed | ((q >= start) & (q <= end) & (k >= start) & (k <= end))
        return allowed

    return with_ranges


@_from("BD3-LM", "staircase")
def _staircase(n: int = 24, block_size: int = 4) -> Mod:
    def staircase(b: Any, h: Any, q: Any, k: Any) -> Any:
        clean_q, clean_k = q >= n, k >= n
        row = torch.where(clean_q, (q - n) // block_size, q // block_size)
        key = torch.where(clean_k, (k - n) // block_size, k // block_size)
        own = (row == key) & (clean_q == clean_k)
        return own | ((row > key) & clean_k & ~clean_q) | ((row >= key) & clean_k & clean_q)

    return staircase


@_from("Swin Transformer", "shifted windows")
def _swin(width: int = 8, window: int = 4, shift: int = 2) -> Mod:
    def shifted(b: Any, h: Any, q: Any, k: Any) -> Any:
        row = (q // width + shift) // window == (k // width + shift) // window
        return row & ((q % width + shift) // window == (k % width + shift) // window)

    return shifted


@_from("LongNet", "dilated segments")
def _longnet(segment: int = 8, rate: int = 2) -> Mod:
    def dilated(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q // segment == k // segment) & (q % rate == 0) & (k % rate == 0) & (q >= k)

    return dilated


@_from("GPT-OSS", "every second layer a window")
def _layers(layer_idx: int = 0, sliding_window: int = 4) -> Mod:
    def by_layer(b: Any, h: Any, q: Any, k: Any) -> Any:
        if layer_idx % 2 == 0:
            return (q >= k) & (q - k < sliding_window)
        return q >= k

    return by_layer


@_from("RetNet", "decay", heads=4)
def _retnet() -> Mod:
    log_decay = torch.log(1 - 2.0 ** (-5 - torch.arange(4)))

    def decay(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return torch.where(q >= k, score + (q - k) * log_decay[h], -float("inf"))

    return decay


@_from("T5", "relative bias", L=16)
def _t5() -> Mod:
    bucket = torch.arange(16)[:, None].sub(torch.arange(16)).clamp(0, 7)
    values = torch.linspace(0, -2, 16).reshape(8, 2)
    return lambda score, b, h, q, k: score + values[bucket[q, k], h]


@_from("KERPLE", "logarithmic")
def _kerple(p: float = 1.0, a: float = 0.5) -> Mod:
    return lambda score, b, h, q, k: score - p * torch.log(1 + a * torch.abs(q - k))


@_from("x-transformers", "ALiBi on both sides")
def _alibi_both() -> Mod:
    slopes = 2.0 ** -torch.arange(1, 5)
    return lambda score, b, h, q, k: score - slopes[h] * torch.abs(q - k)


@_from("Reformer", "the past, itself only where nothing else is")
def _not_itself() -> Mod:
    return lambda b, h, q, k: (q > k) | ((q == 0) & (k == 0))


@_from("a notebook", "an if on the position")
def _branch() -> Mod:
    def branch(b: Any, h: Any, q: Any, k: Any) -> Any:
        return q >= k if q > 3 else k < 4

    return branch


REFUSED = {
    "no symbolic form": "it shifts the bits of a position, which no formula does",
    "control flow": "it branches in Python on a position",
    "queries and": "its queries and keys are different tokens",
}
"""Words of an error, and what the table says for it."""


@cache
def every() -> tuple[tuple[Public, Explained | Exception], ...]:
    """Each of them, with what `explain` says or the error that it raises."""
    rows: list[tuple[Public, Explained | Exception]] = []
    for one in PUBLIC.values():
        try:
            rows.append((one, explain(one.make(), **one.options)))
        except (TypeError, ValueError) as error:
            rows.append((one, error))
    return tuple(rows)


def in_words(answer: Explained | Exception) -> str:
    """What came out, for the table of the guide."""
    if isinstance(answer, Exception):
        said = str(answer)
        return next(f"refused: {why}" for words, why in REFUSED.items() if words in said)
    names = ", ".join(answer.parameters)
    several = "s" * (len(answer.parameters) > 1)
    sliders = f" with {'sliders' if several else 'a slider'} for {names}" if names else ""
    numbers = f", with the number{several} {names}" if names else ""
    inputs = f" made from {', '.join(answer.inputs)}" if answer.inputs else ""
    each = f", one for each of {len(answer.patterns)} texts" if len(answer.patterns) > 1 else ""
    if answer.kind == "scores":
        return f"a function of the score{numbers}"
    if answer.kind == "bias":
        formula = answer.bias is not None and answer.bias.expression is not None
        return f"a bias as a formula{numbers}" if formula else f"a bias as a table{inputs}"
    if answer.kind == "table":
        return f"a table{inputs}{each}"
    named = f", the same as `{answer.same_as!r}`" if answer.same_as else ""
    return f"a formula{sliders}{each}{named}"


def table() -> str:
    """All of them as a table in Markdown, as the guide shows it."""
    lines = [f"| {one.source} | {one.name} | {in_words(answer)} |" for one, answer in every()]
    return "\n".join(["| whose | what | what comes out |", "|---|---|---|", *lines])
