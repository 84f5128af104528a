"""A configuration, opened, and asked for its keys.

>>> keys = Keys({"hidden_size": 64, "odd": 1}, None)
>>> keys("n_embd", "hidden_size"), keys.unread
(64, ('odd',))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tfviz.anatomy.stored import families

__all__ = [
    "TEXT_PART",
    "Keys",
    "UnknownFamilyError",
    "families",
    "matches",
    "nearest",
    "number_of_layers",
    "opened",
]

INSIDE = ("text_config", "llm_config", "language_config", "language_model", "thinker_config")
"""Keys under which a model of pictures or sounds keeps the configuration of its text part."""

TEXT_PART = {
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "clip": "clip_text_model",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "kimi_k2": "deepseek_v3",
    "llama4": "llama4_text",
    "minimax_text_01": "minimax",
    "mistral_large4": "mistral_large4_text",
    "muse_spark": "muse_spark_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
"""Old and outer names of families."""

OLD = frozenset(
    [
        "rope_theta",
        "rope_scaling",
        "rope_parameters",
        "rope_local_base_freq",
        "partial_rotary_factor",
        "rotary_pct",
        "rotary_dim",
        "head_dim",
        "tie_word_embeddings",
        "mtp_num_hidden_layers",
        "num_nextn_predict_layers",
    ]
)
"""Keys that classes read without naming them."""

SAYS_NOTHING = re.compile(
    r"_?(architectures|auto_map|transformers_version|model_type|name_or_path|torch_dtype|dtype|"
    r"\w*token_id\w*|\w*dropout\w*|\w*(_|\b)pdrop|initializer_\w+|init_\w+|use_cache|\w*_eps(ilon)?|"
    r"\w*(router|aux)\w*(coef|loss|logits|noise)|output_\w+|return_dict|id2label|label2id|summary_\w+|"
    r"problem_type|pretraining_tp|chunk_size_feed_forward|is_encoder_decoder|gradient_checkpointing|"
    r"attn_implementation|quantization_config|unsloth\w*|\w*jitter\w*|use_mamba\w*|"
    r"use_associative_scan|time_step_\w+|mamba_dt_\w+|rescale_\w+|residual_in_fp32|classifier_\w+|"
    r"vision_config|audio_config|mask_\w+|suppress_tokens|begin_suppress_tokens|apply_spec_augment)",
    re.ASCII,
)
"""Keys that change neither a size nor a mask: training, files, other towers."""


MOST_LAYERS = 10_000


def matches(pattern: re.Pattern[str], key: str) -> bool:
    """Whether a key has this form; a very long one has none, and is not looked through."""
    return len(key) < 100 and pattern.fullmatch(key) is not None


def number_of_layers(value: Any) -> int:
    """The value of a key that says how many layers there are. Raises ValueError for another."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_LAYERS:
        raise ValueError(
            f"config has {value!r:.80} layers; give a whole number, at most {MOST_LAYERS}"
        )
    return value


class Keys:
    """A configuration that remembers what was asked of it.

    A key that the file has counts, `null` too, which says "none"; else what the class fills in. Of
    a class that is known, other keys count for nothing, as in the class itself.
    """

    def __init__(self, written: Mapping[str, Any], family: Mapping[str, Any] | None) -> None:
        self.known, family = family is not None, family or {}
        self.also, self.ignored = family.get("also", {}), family.get("ignored", ())
        also = self.also
        filled = {**dict.fromkeys(family.get("unset", ())), **family.get("defaults", {})}
        self.filled = {also.get(name, name): value for name, value in filled.items()}
        self.names = {also.get(name, name): name for name in written}
        self.written = {also.get(name, name): value for name, value in written.items()}
        for name in written.keys() & also.values():
            self.written[name] = written[name]
        self.read, self.assumed = set[str](), set[str]()

    def knows(self, name: str) -> bool:
        return name not in self.ignored and (
            self.also.get(name, name) in self.filled or name in OLD or not self.known
        )

    def __call__(self, *names: str, default: Any = None) -> Any:
        """The first of these keys that says something."""
        names = tuple(self.also.get(name, name) for name in names if self.knows(name))
        here = [name for name in names if name in self.written]
        self.read.update(here)
        for name in here:
            if self.written[name] is not None:
                return self.written[name]
        if not here:
            for name in names:
                if self.filled.get(name) is not None:
                    self.assumed.add(name)
                    return self.filled[name]
        return default

    def size(self, *names: str) -> int:
        """One of these keys, which a file has to say. Raises ValueError unless one is there."""
        value = self(*names)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(
                f"config has {names[0]} = {value!r:.80}; give a whole number, as config.json has it"
            )
        return value

    @property
    def unread(self) -> tuple[str, ...]:
        """Keys of the file that nothing was read from, but for those that say nothing of a size."""
        left = (self.names[x] for x in self.names.keys() - self.read)
        quiet = SAYS_NOTHING if self.known else re.compile("model_type|transformers_version")
        return tuple(sorted(x for x in left if not matches(quiet, x)))


def opened(config: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """(The configuration of the text part, whether it stood within another).

    Raises ValueError for what is no object.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"config is a list or a number, not an object; {str(config)[:40]!r}")
    outer, inner = config, dict(config)
    nested = False
    while part := next((inner[x] for x in INSIDE if isinstance(inner.get(x), Mapping)), None):
        kind = part.get("model_type") or inner.get("model_type")
        inner, nested = {**part, "model_type": kind}, True
    if nested and outer.get("tie_word_embeddings") is not None:
        inner.setdefault("tie_word_embeddings", outer["tie_word_embeddings"])
    return inner, nested


class UnknownFamilyError(KeyError):
    """A model_type that `families.toml` does not have."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that are most like one, for an error."""
    by_likeness = sorted(((likeness(name, x), x) for x in names), reverse=True)
    near = [x for share, x in by_likeness if share >= 0.4]
    return ", ".join(near[:3]) or "see tfviz.anatomy.names()"


def likeness(a: str, b: str) -> float:
    """How much two words have in common, from 0 to 1, after Ratcliff and Obershelp: the longest
    run of letters that both have, and so on before and after it."""
    return 2 * _common(a, b) / (len(a) + len(b) or 1)


def _common(a: str, b: str) -> int:
    longest, at, to = 0, 0, 0
    ends: dict[int, int] = {}  # place in b: how long a run that ends there is
    for i, letter in enumerate(a):
        now: dict[int, int] = {}
        for j, other in enumerate(b):
            if letter == other:
                run = ends.get(j - 1, 0) + 1
                now[j] = run
                if run > longest:
                    longest, at, to = run, i - run + 1, j - run + 1
        ends = now
    if not longest:
        return 0
    after = _common(a[at + longest :], b[to + longest :])
    return longest + _common(a[:at], b[:to]) + after
