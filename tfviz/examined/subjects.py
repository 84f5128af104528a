"""Somebody's attention as the laws ask it: what it reads, how it is called, what else it takes.

    Subject.inputs(b, L, generator)    what it reads: X, or Q, K and V
    Subject.call(*inputs, keys=None)   its answer; `keys` is False at padding
    Subject.in_parts(parts)            its answers with a cache, part by part

`subject` makes one of anything: an `nn.Module` from X to Y, torch's `nn.MultiheadAttention`, an
attention or a whole model of Hugging Face's transformers, one of x-transformers, our own models'
attention, a function of Q, K and V. What a subject has not stands in `missing`, with the reason.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.utils._pytree import tree_leaves

__all__ = ["Subject", "subject"]

Inputs = tuple[Tensor, ...]
InParts = Callable[[Any, Sequence[Inputs]], list[Tensor]]

PADDING = (
    "attention_mask",
    "key_padding_mask",
    "src_key_padding_mask",
    "padding_mask",
    "mask",
    "input_mask",
)
"""What an argument for padding is called; whether True means token or padding is tried."""

WIDTH = (
    "embed_dim",
    "hidden_size",
    "d_model",
    "dim",
    "d",
    "in_features",
    "n_embd",
    "normalized_shape",
)
"""What a module calls the width of its input."""


@dataclass(frozen=True)
class Subject:
    """What is examined. Positions stand in the last dimension but one of all it reads and says."""

    name: str
    inputs: Callable[[int, int, Generator], Inputs]
    call: Callable[..., Tensor]
    module: nn.Module | None = None
    padding: str = ""
    """How padding is said to it, in words; "" if it is not."""
    in_parts: Callable[[Sequence[Inputs]], list[Tensor]] | None = None
    remade: Callable[[nn.Module], Subject] | None = None
    """The same of a copy of the module, for another type of numbers."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Laws that cannot be asked, and why."""

    def typed(self, dtype: torch.dtype) -> Subject:
        """The same in another type of numbers, as a copy in evaluation mode."""
        made = self  # a function takes what it is given
        if self.module is not None and self.remade is not None:
            module = copy.deepcopy(self.module).eval().to(dtype)
            made = self.remade(module)

        def inputs(b: int, L: int, dice: Generator) -> Inputs:
            return tuple(x.to(dtype) for x in self.inputs(b, L, dice))

        return replace(made, inputs=inputs)

    def drawn(self, b: int, L: int, seed: int) -> Inputs:
        return self.inputs(b, L, Generator().manual_seed(seed))

    def __call__(self, *inputs: Tensor, keys: Tensor | None = None) -> Tensor:
        """Its answer, with the same dice in each call. Raises TypeError for what is no tensor."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.call(*inputs) if keys is None else self.call(*inputs, keys=keys)


def subject(
    what: Any,
    *,
    d: int | None = None,
    inputs: Callable[[int, int, Generator], Inputs] | None = None,
    padding: str | None = None,
    in_parts: InParts | None = None,
) -> Subject:
    """What `examine` is given, as a subject.

    d           the width of X, or of a head of Q, K and V; found out for most modules
    inputs      (b, L, generator) → what it is called with, for what reads something else
    padding     the argument that takes Booleans (b, L), True at tokens; "~mask" where True means
                padding; found out for most modules
    in_parts    (what, parts of the text) → the answers, part by part, with a cache

    Raises TypeError for a class and for what cannot be called, ValueError for a width that is not
    found.
    """
    if isinstance(what, type) or not callable(what):
        name = getattr(what, "__name__", None) or type(what).__name__
        made = f"{name}(…)" if isinstance(what, type) else "an nn.Module, or a function of Q, K, V"
        raise TypeError(f"what is {name}, which cannot be called with a text; give {made}")
    found = _adapted(what, d)
    if padding is not None:
        name, keep = padding.removeprefix("~"), not padding.startswith("~")
        says = f"{name}, True at {'tokens' if keep else 'padding'}"
        found = _masked(replace(found, padding=""), what, name, keep, says)
    if in_parts is not None:
        found = _with_parts(found, what, in_parts)
    return found if inputs is None else replace(found, inputs=inputs)


def _adapted(what: Any, d: int | None) -> Subject:
    if isinstance(what, Subject):
        return what
    names = list(
        inspect.signature(what.forward if isinstance(what, nn.Module) else what).parameters
    )
    home = type(what).__module__
    if isinstance(what, nn.MultiheadAttention):
        return _of_torch(what)
    if (
        isinstance(what, nn.Module)
        and home.startswith("transformers.")
        and "inputs_embeds" in names
    ):
        return _of_model(what)
    if isinstance(what, nn.Module) and hasattr(what, "config") and "hidden_states" in names:
        return _of_hugging_face(what)
    if home.startswith("x_transformers.") and "return_intermediates" in names:
        return _of_x_transformers(what)
    if _three(names):
        return _of_three(what, d or 8)
    if isinstance(what, nn.Module) and "cache" in names and _is_ours(what):
        return _with_padding(_of_ours(what, d), what, PADDING)
    return _with_padding(_of_module(what, d), what, [x for x in PADDING if x in names])


def _is_ours(module: nn.Module) -> bool:
    """Whether it takes a cache as our mixers do: one of ours, or anybody's `Mixer`."""
    from tfviz.models.blocks import Mixer

    return isinstance(module, Mixer) or type(module).__module__.startswith("tfviz.")


def first_tensor(answer: Any) -> Tensor:
    """What a module answers: itself, the first of a tuple, `last_hidden_state` of an output."""
    if isinstance(answer, Tensor):
        return answer
    for name in ("last_hidden_state", "logits"):
        if isinstance(getattr(answer, name, None), Tensor):
            found: Tensor = getattr(answer, name)
            return found
    tensors = [x for x in tree_leaves(answer) if isinstance(x, Tensor)]
    if not tensors:
        raise TypeError(
            f"the answer is a {type(answer).__name__} without a tensor; give Y, or (Y, …)"
        )
    return tensors[0]


def rows(d: int) -> Callable[[int, int, Generator], Inputs]:
    """Texts of L rows of d numbers."""

    def inputs(b: int, L: int, dice: Generator) -> Inputs:
        return (torch.randn(b, L, d, dtype=torch.float64, generator=dice),)

    return inputs


# --- adapters -------------------------------------------------------------------------------------


def _three(names: Sequence[str]) -> bool:
    """Whether the first three arguments are queries, keys and values."""
    first = [name.lower().lstrip("_")[:1] for name in names[:3]]
    return first == ["q", "k", "v"]


def _of_three(what: Any, d: int, h: int = 2) -> Subject:
    def inputs(b: int, L: int, dice: Generator) -> Inputs:
        Q, K, V = (torch.randn(b, h, L, d, dtype=torch.float64, generator=dice) for _ in "QKV")
        return Q, K, V

    return Subject(
        name=_name(what),
        inputs=inputs,
        call=lambda *X: first_tensor(what(*X)),
        module=what if isinstance(what, nn.Module) else None,
        remade=lambda module: _of_three(module, d, h),
        missing={
            "padding": "a function of Q, K and V: give padding=, the name of its argument",
            "cache": "a function of Q, K and V keeps nothing",
        },
    )


def _of_module(module: Any, d: int | None) -> Subject:
    width = d or _width(module)
    return Subject(
        name=_name(module),
        inputs=rows(width),
        call=lambda X: first_tensor(module(X)),
        module=module if isinstance(module, nn.Module) else None,
        remade=lambda other: _of_module(other, width),
        missing={
            "padding": "it takes no argument for padding that is known here; give padding=",
            "cache": "no cache that is known here; give in_parts=",
        },
    )


def _of_torch(module: nn.MultiheadAttention) -> Subject:
    def call(X: Tensor, keys: Tensor | None = None) -> Tensor:
        told = {} if keys is None else {"key_padding_mask": ~keys}
        X = X if module.batch_first else X.transpose(0, 1)
        Y: Tensor = module(X, X, X, need_weights=False, **told)[0]
        return Y if module.batch_first else Y.transpose(0, 1)

    return Subject(
        name=_name(module),
        inputs=rows(module.embed_dim),
        call=call,
        module=module,
        padding="key_padding_mask, True at padding",
        remade=_of_torch,  # type: ignore[arg-type]
        missing={"cache": "nn.MultiheadAttention keeps nothing"},
    )


def _of_ours(module: nn.Module, d: int | None) -> Subject:
    from tfviz.cores import levels

    width = d or _width(module)

    def call(X: Tensor, **told: Any) -> Tensor:
        with levels():
            return first_tensor(module(X, **told))

    def in_parts(parts: Sequence[Inputs]) -> list[Tensor]:
        cache: dict[nn.Module, Any] = {}
        return [call(*part, cache=cache) for part in parts]

    return Subject(
        name=_name(module),
        inputs=rows(width),
        call=call,
        module=module,
        in_parts=in_parts,
        remade=lambda other: _of_ours(other, width),
    )


def _of_x_transformers(module: nn.Module) -> Subject:
    def call(X: Tensor, keys: Tensor | None = None) -> Tensor:
        return first_tensor(module(X, mask=keys))

    def in_parts(parts: Sequence[Inputs]) -> list[Tensor]:
        cache, out = None, []
        for (X,) in parts:
            Y, cache = module(X, return_intermediates=True, cache=cache)
            out.append(Y)
        return out

    return Subject(
        name=_name(module),
        inputs=rows(_width(module)),
        call=call,
        module=module,
        padding="mask, True at tokens",
        in_parts=in_parts if getattr(module, "causal", False) else None,
        remade=_of_x_transformers,
        missing={} if getattr(module, "causal", False) else {"cache": "it looks both ways"},
    )


def _of_hugging_face(module: Any) -> Subject:
    """An attention of Hugging Face's transformers: the model's mask and turns are made here."""
    config = copy.deepcopy(module.config)
    config._attn_implementation = "eager"
    module = copy.copy(module)  # with the same weights: nothing of what was given is changed
    module.config = config
    names = inspect.signature(module.forward).parameters
    causal = bool(getattr(module, "is_causal", getattr(config, "is_decoder", False)))
    turns = _turns(module) if "position_embeddings" in names else None
    past_name = next((x for x in ("past_key_values", "layer_past") if x in names), "")
    cached = bool(past_name) and causal
    layer = int(getattr(module, "layer_idx", 0) or 0)

    def call(X: Tensor, keys: Tensor | None = None, past: Any = None) -> Tensor:
        b, L, start = *X.shape[:2], 0 if past is None else past.get_seq_length(layer)
        i = torch.arange(start, start + L, device=X.device)
        seen = torch.ones(b, 1, L, start + L, dtype=torch.bool, device=X.device)
        if causal:
            seen = seen & (torch.arange(start + L, device=X.device) <= i[:, None])
        if keys is not None:
            seen = seen & keys[:, None, None]
        least = torch.finfo(X.dtype).min
        told: dict[str, Any] = {
            "attention_mask": torch.zeros_like(seen, dtype=X.dtype).masked_fill(~seen, least)
        }
        if turns:
            told["position_embeddings"] = turns(X, i[None].expand(b, -1))
        if "position_ids" in names:
            told["position_ids"] = i[None].expand(b, -1)
        if past is not None:
            told[past_name] = past
        return first_tensor(module(X, **told))

    def in_parts(parts: Sequence[Inputs]) -> list[Tensor]:
        from transformers import DynamicCache

        past = DynamicCache()
        return [call(X, past=past) for (X,) in parts]

    return Subject(
        name=_name(module),
        inputs=rows(int(config.hidden_size)),
        call=call,
        module=module,
        padding="attention_mask, added to the scores",
        in_parts=in_parts if cached else None,
        remade=_of_hugging_face,
        missing={} if cached else {"cache": "it takes no past_key_values, or looks both ways"},
    )


def _turns(module: Any) -> Callable[[Tensor, Tensor], Any]:
    """Cosines and sines as the model of this attention makes them."""
    room = vars(sys.modules[type(module).__module__])
    kinds = [x for name, x in room.items() if name.endswith("RotaryEmbedding")]
    if not kinds:
        raise ValueError(
            f"{type(module).__name__} wants position_embeddings, and its module has no class that "
            "makes them; give a function that calls it: examine(lambda X: attention(X, …)[0], d=…)"
        )
    rotary = kinds[0](module.config)
    return lambda X, i: tuple(x.to(X.dtype) for x in rotary(X, i))


def _of_model(model: Any) -> Subject:
    """A whole model of Hugging Face's transformers, from embeddings to its last states."""
    config = getattr(model.config, "get_text_config", lambda: model.config)()
    names = inspect.signature(model.forward).parameters
    if getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(
            f"{type(model).__name__} has an encoder and a decoder; give one of them: "
            "examine(model.get_encoder())"
        )
    keeps = "past_key_values" in names and hasattr(config, "use_cache")

    def call(X: Tensor, keys: Tensor | None = None, **told: Any) -> Tensor:
        if keys is not None:
            told["attention_mask"] = keys.long()
        if keeps:
            told.setdefault("use_cache", False)
        return first_tensor(model(inputs_embeds=X, **told))

    def in_parts(parts: Sequence[Inputs]) -> list[Tensor]:
        past, out = None, []
        for (X,) in parts:
            answer = model(inputs_embeds=X, past_key_values=past, use_cache=True)
            past = answer.past_key_values
            out.append(first_tensor(answer))
        return out

    return Subject(
        name=_name(model),
        inputs=rows(int(model.get_input_embeddings().weight.shape[1])),
        call=call,
        module=model,
        padding="attention_mask, 1 at tokens",
        in_parts=in_parts if keeps else None,
        remade=_of_model,
        missing={} if keeps else {"cache": "the model takes no past_key_values"},
    )


def _with_parts(found: Subject, what: Any, in_parts: InParts) -> Subject:
    again = found.remade
    return replace(
        found,
        in_parts=lambda parts: in_parts(what, parts),
        remade=(lambda other: _with_parts(again(other), other, in_parts)) if again else None,
    )


# --- what is found out ----------------------------------------------------------------------------


def _with_padding(found: Subject, what: Any, names: Sequence[str]) -> Subject:
    """The same with its argument for padding, if one of these is: True everywhere must change
    nothing where True means token, and False everywhere where it means padding."""
    if found.padding or not names:
        return found
    again = found.remade
    probe: Any = copy.deepcopy(what).eval() if isinstance(what, nn.Module) else what
    tried = again(probe) if again else found
    X = tuple(x.to(_kind(probe)) for x in found.drawn(1, 4, 0))
    with torch.no_grad():
        plain = tried(*X)
        for name in names:
            for keep, says in ((True, "True at tokens"), (False, "True at padding")):
                try:
                    out = first_tensor(probe(*X, **{name: torch.full((1, 4), keep)}))
                except Exception:  # whatever it says of an argument that it does not take so
                    continue
                if out.shape == plain.shape and torch.allclose(out, plain, atol=1e-6, rtol=1e-5):
                    return _masked(found, what, name, keep, f"{name}, {says}")
    return found


def _masked(found: Subject, what: Any, name: str, keep: bool, says: str) -> Subject:
    def call(*X: Tensor, keys: Tensor | None = None) -> Tensor:
        if keys is None:
            return found.call(*X)
        return first_tensor(what(*X, **{name: keys if keep else ~keys}))

    again = found.remade
    return replace(
        found,
        call=call,
        padding=says,
        missing={x: why for x, why in found.missing.items() if x != "padding"},
        remade=(lambda other: _masked(again(other), other, name, keep, says)) if again else None,
    )


def _kind(what: Any) -> torch.dtype:
    weights: Any = what.parameters() if isinstance(what, nn.Module) else ()
    return next((x.dtype for x in weights if x.is_floating_point()), torch.float64)


def _width(module: Any) -> int:
    """The width of X, from what the module says of itself, or from its first matrix."""
    for one in module.modules() if isinstance(module, nn.Module) else ():
        for name in WIDTH:
            said = getattr(one, name, None)
            said = said[-1] if isinstance(said, tuple | list) and said else said
            if isinstance(said, int) and not isinstance(said, bool) and said > 0:
                return said
    raise ValueError(f"the width of what {_name(module)} reads is not found; say it: d=…")


def _name(what: Any) -> str:
    if isinstance(what, nn.Module):
        return type(what).__name__
    return getattr(what, "__name__", None) or type(what).__name__
