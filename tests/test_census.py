"""Public models, counted: who uses what, in which order they are named, what texts say of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refused

from tfviz import anatomy
from tfviz.anatomy import census
from tfviz.basics.public_models import MODELS

ROOT = Path(__file__).parents[1]
RESTS_ON = (
    *("tfviz/anatomy/**", "tfviz/basics/**", "tfviz/catalogue.*", "chapters/**", "book/*.md"),
    "tests/*.py",
)

BROKEN_LINES = {
    "tfviz/anatomy/census.py": [
        ("the oldest first", "-(a.year or 0), -a", "(a.year or 0), -a"),
        ("families that write nothing", "<= {*a.uses})", "<= {*a.uses} or True)"),
        ("only the first mechanism counts", "has(a) & {*mechanisms}", "has(a) & {*mechanisms[:1]}"),
    ]
}


def a_count(test: Callable[[anatomy.Anatomy], object], since: int = 0) -> int:
    """The models of which this is true, counted without the census."""
    models = map(anatomy.of, anatomy.names())
    return sum(bool(test(a)) for a in models if (a.year or 0) >= since)


def test_who_uses_a_mechanism() -> None:
    for name in ("rope", "alibi", "latent_attention", "mixture_of_experts"):
        assert len(census.using(name)) == a_count(lambda a: name in a.uses)  # noqa: B023
    both = census.using("delta_rule", "gated_linear_attention")
    assert len(both) == a_count(lambda a: {*a.uses} & {"delta_rule", "gated_linear_attention"})
    assert [a.id for a in census.using("alibi")] == ["mpt-7b", "bloom-176b", "mpt-30b"]
    assert census.using("linformer") == ()  # a mechanism of the course that no model has


def test_a_name_that_nobody_has_is_refused_with_those_near_it() -> None:
    with pytest.raises(KeyError, match="no mechanism 'ropes'; nearest: rope"):
        census.using("ropes")


def test_the_best_known_come_first_one_of_each_family() -> None:
    models = census.everything()
    families = len({a.family for a in models})
    assert sorted(a.id for a in models) == sorted(anatomy.names())
    assert len({a.family for a in models[:families]}) == families
    for part in (models[:families], models[families:]):
        order = [(not a.facts.get("listed"), -(a.year or 0), -a.parameters.total) for a in part]
        assert order == sorted(order)


def test_names_are_said_as_a_sentence_says_them() -> None:
    a, b, c = (anatomy.of(x) for x in ("gpt-2", "gemma-3-27b", "clip-text-b32"))
    assert census.names([]) == "" and census.names([a]) == "GPT-2"
    assert census.names([a, b]) == "GPT-2 and Gemma 3 27B"
    assert census.names([a, b, c]) == "GPT-2, Gemma 3 27B and CLIP ViT-B/32"
    assert census.names([a, b, c], most=2) == "GPT-2 and Gemma 3 27B"


def test_families_are_those_of_models_that_write_text() -> None:
    new = census.families(2025)
    assert "gemma4_text" in new and "gpt2" not in new and "vit" not in census.families(0)
    assert "bert" not in census.families(0)
    assert census.families(2025, "rope") < new
    assert census.share(2025, "rope") == len(census.families(2025, "rope")) / len(new)


def test_the_table_of_heads() -> None:
    table = census.head_schemes(["falcon-7b", "qwen3-next-80b", "glm-5"]).splitlines()
    assert table[2:] == [
        "| Falcon 7B | MQA | 71 | 1 | 64 | 128 |",
        "| Qwen3-Next 80B-A3B, 12 of 48 layers | GQA | 16 | 2 | 256 | 1,024 |",
        "| GLM-5 | MLA | 64 | – | 256 | 704 |",
    ]
    refused(
        "model = 'gemma-4-31b': its layers have different heads",
        census.head_schemes,
        ["gemma-4-31b"],
    )
    with pytest.raises(KeyError, match="nearest"):
        census.head_schemes(["falcon-9b"])


def test_what_a_text_says() -> None:
    assert census.said("models") == str(len(anatomy.names()))
    assert census.said("using alibi") == "3"
    assert census.said("names alibi") == "MPT 7B, BLOOM 176B and MPT 30B"
    assert census.said("share 2025 rope") == f"{100 * census.share(2025, 'rope'):.0f} %"
    assert int(census.said("groups 10")) == 1  # Phi-4
    for words in ("", "usng rope", "share rope", "models 3", "families new"):
        with pytest.raises(ValueError, match="is not counted; choose"):
            census.said(words)


# --- what texts say in words ---------------------------------------------------------------------


def kinds(model: str) -> str:
    return str(anatomy.of(model).fields["layers"])


def heads(model: str) -> tuple[int, int, int]:
    found = anatomy.of(model).layers[-1].heads
    assert found
    return found.queries, found.keys, found.key_width


def kept(model: str) -> int:
    """Numbers that a layer keeps of a token."""
    a = anatomy.of(model)
    return a.cache(1, bits=8) // len(a.layers)


def experts(model: str) -> tuple[int, int]:
    e = anatomy.of(model).fields["experts"]
    return e["chosen"], e["count"]


def windows(model: str) -> list[int]:
    return [layer.reach for layer in anatomy.of(model).layers if layer.reach]


GIB = 2**30
GEMMA = MODELS["Gemma 2 9B"]
SAID: dict[tuple[str, str], Callable[[], bool]] = {
    ("basics/generation", "From 14 texts on: 14 × 1.31 = 18.4 GiB, against 17.2 GiB of weights."): (
        lambda: (
            f"{GEMMA.cache_bytes(4096) / GIB:.2f}" == "1.31"
            and f"{GEMMA.cache_bytes(4096, batch=14) / GIB:.1f}" == "18.4"
            and f"{2 * GEMMA.weights / GIB:.1f}" == "17.2"
            and GEMMA.cache_bytes(4096, batch=13) < 2 * GEMMA.weights
        )
    ),
    ("basics/generation", "it keeps 2 GiB a text, and seven texts outgrow its weights"): (
        lambda: (
            (cache := MODELS["Llama 2 7B"].cache_bytes(4096)) == 2 * GIB
            and 6 * cache < 2 * MODELS["Llama 2 7B"].weights < 7 * cache
        )
    ),
    ("basics/generation", "(42 layers, 8 key/value heads of 256 numbers, 2 bytes each)"): (
        lambda: (len(kinds("gemma-2-9b")), *heads("gemma-2-9b")[1:]) == (42, 8, 256)
    ),
    (
        "basics/generation",
        "21 of the 42 layers of Gemma 2 keep no more than 4,096 tokens, so its "
        "cache is a quarter smaller at 8,192 tokens",
    ): (
        lambda: (
            windows("gemma-2-9b") == [4096] * 21
            and 4 * GEMMA.cache_bytes(8192) == 3 * 2 * GEMMA.cache_bytes(4096)
        )
    ),
    ("basics/generation", "In Gemma 3, 52 of 62 layers keep 1,024 tokens."): (
        lambda: windows("gemma-3-27b") == [1024] * 52 and len(kinds("gemma-3-27b")) == 62
    ),
    ("basics/generation", "Gemma 3 has such windows in five layers of six"): (
        lambda: kinds("gemma-3-27b").startswith("WWWWWF" * 10)
    ),
    (
        "basics/generation",
        "to one vector of 576 numbers a layer, and in Qwen3.5 three layers of four",
    ): (
        lambda: (
            kept("deepseek-v2") == kept("deepseek-v3") == 576
            and kinds("qwen3.5-27b") == "GGGF" * (len(kinds("qwen3.5-27b")) // 4)
        )
    ),
    (
        "basics/block",
        "to 2 of 8 in Mixtral, 8 of 256 in DeepSeek-V3, 10 of 512 in the largest Qwen3.5",
    ): (
        lambda: (
            [experts(x) for x in ("mixtral-8x7b", "deepseek-v3", "qwen3.5-397b-a17b")]
            == [(2, 8), (8, 256), (10, 512)]
        )
    ),
    ("basics/block", "38.6 million of the 124 million in the smallest GPT-2"): (
        lambda: (
            round((p := anatomy.of("gpt-2").parameters).by_part["embedding"] / 1e5) == 386
            and round(p.total / 1e6) == 124
        )
    ),
    (
        "basics/block",
        "Gemma 2 to 4 besides the one on the way in (*sandwich norms*), OLMo 2 and 3 instead of it",
    ): (
        lambda: (
            all(
                "pre and post" in anatomy.of(x).fields["place"]
                for x in ("gemma-2-9b", "gemma-3-27b", "gemma-4-31b")
            )
            and all(
                anatomy.of(x).fields["place"].startswith("post,")
                for x in ("olmo-2-7b", "olmo-3-7b")
            )
        )
    ),
    (
        "compressed/kernels",
        "Qwen3-Next, Qwen3.5 and OLMo Hybrid have such layers, three for each layer of full "
        "attention",
    ): (
        lambda: all(
            kinds(x).startswith("GGGF" * 7)
            for x in ("qwen3-next-80b", "qwen3.5-27b", "olmo-hybrid-7b")
        )
    ),
    (
        "compressed/low_rank",
        "576 numbers are kept, from which the keys and values of 128 heads (64 in Kimi K2)",
    ): (
        lambda: (
            kept("kimi-k2") == kept("deepseek-v2") == 576
            and [heads(x)[0] for x in ("deepseek-v2", "deepseek-v3", "kimi-k2")] == [128, 128, 64]
        )
    ),
    ("compressed/low_rank", "8 KV heads serve 32 or more query heads"): (
        lambda: all(
            heads(x)[1] == 8 and heads(x)[0] >= 32
            for x in ("llama-3-8b", "llama-3.1-405b", "mistral-7b")
        )
    ),
    (
        "heads/aggregation",
        "Falcon 7B has one KV head for 71 query heads, and Gemma 3 1B has one for four",
    ): (lambda: heads("falcon-7b")[:2] == (71, 1) and heads("gemma-3-1b")[:2] == (4, 1)),
    ("heads/aggregation", "Qwen3 32B has 64 heads of width 128 in a model of width 5,120"): (
        lambda: (*heads("qwen3-32b")[::2], MODELS["Qwen3 32B"].d) == (64, 128, 5120)
    ),
    ("heads/aggregation", "most others have 2 to 16 KV heads, most often 8"): (
        lambda: (
            {
                k
                for a in census.using("grouped_query_attention")
                for x in a.layers
                if x.heads and (k := x.heads.keys)
            }
            <= {*range(1, 17)}
            and max(range(2, 17), key=lambda n: int(census.said(f"groups {n}"))) == 8
        )
    ),
    (
        "heads/aggregation",
        "one vector of width 512, and 64 more dimensions for the position. GLM-5 also keeps "
        "a key of 128",
    ): (lambda: kept("glm-5") == 512 + 64 + 128 and kept("kimi-k2") == 512 + 64),
    ("longer_context/distance_scores", "The language models BLOOM and MPT use it."): (
        lambda: {a.family for a in census.using("alibi")} == {"bloom", "mpt"}
    ),
    (
        "position/absolute",
        '"BERT base": (768, 12, 30_522, 512),\n    "GPT-2": (768, 12, 50_257, 1024),',
    ): (
        lambda: (
            [
                tuple(anatomy.of(x).fields[n] for n in ("width", "blocks", "vocabulary", "context"))
                for x in ("bert-base", "gpt-2")
            ]
            == [(768, 12, 30_522, 512), (768, 12, 50_257, 1024)]
        )
    ),
    (
        "position/rotary",
        "turn only a quarter of the numbers (Qwen3.5), or nothing in some of the layers "
        "(SmolLM3, Llama 4)",
    ): (
        lambda: (
            {x.get("partial") for x in anatomy.of("qwen3.5-27b").fields["rope"].values()} == {0.25}
            and all("nope_layers" in anatomy.of(x).uses for x in ("smollm3-3b", "llama-4-scout"))
        )
    ),
    (
        "sparse/factorized",
        "GPT-3, Gemma 2 and gpt-oss alternate local and full layers one by one; OLMo 3 has "
        "three local layers for each full one, Gemma 3 and 4 have five (in Gemma 4's "
        "smallest model, four)",
    ): (
        lambda: (
            anatomy.of("gpt-3-175b").fields["every_other_layer"] == "strided"
            and all(kinds(x).startswith("WF" * 10) for x in ("gemma-2-9b", "gpt-oss-20b"))
            and kinds("olmo-3-7b").startswith("WWWF" * 5)
            and all(
                kinds(x).startswith("WWWWWF" * 4)
                for x in ("gemma-3-27b", "gemma-4-31b", "gemma-4-e4b")
            )
            and kinds("gemma-4-e2b").startswith("WWWWF" * 4)
        )
    ),
    ("after_the_survey", "Half of the model's layers have a window of 128 keys."): (
        lambda: windows("gpt-oss-20b") == [128] * (len(kinds("gpt-oss-20b")) // 2)
    ),
    ("after_the_survey", "DeepSeek-V3.2 and GLM-5 select single tokens, with a small indexer"): (
        lambda: all("lightning_indexer" in anatomy.of(x).uses for x in ("deepseek-v3.2", "glm-5"))
    ),
    ("after_the_survey", "Which of them lasted? Experts, above all"): (
        lambda: all(
            census.share(2025, "mixture_of_experts") > census.share(2025, *words)
            for words in (
                ("gated_linear_attention", "delta_rule"),
                ("local_global_layers",),
                ("latent_attention",),
            )
        )
    ),
    ("glossary", "two of 8 in Mixtral, eight of 256 in DeepSeek-V3"): (
        lambda: [experts(x) for x in ("mixtral-8x7b", "deepseek-v3")] == [(2, 8), (8, 256)]
    ),
    ("sessions", "Llama 3 8B has 32 layers, 8 KV heads of width 128"): (
        lambda: (len(kinds("llama-3-8b")), *heads("llama-3-8b")[1:]) == (32, 8, 128)
    ),
}
"""(page, words that stand there): whether the data say the same. Who changes one changes both."""


@pytest.mark.parametrize("page, words", SAID)
def test_words_of_the_texts_are_those_of_the_data(page: str, words: str) -> None:
    folder = "chapters" if "/" in page else "book"
    assert words in (ROOT / folder / f"{page}.md").read_text("utf8"), "say it again in this table"
    assert SAID[page, words]()


def test_every_number_that_a_page_asks_for_is_counted() -> None:
    pages = [*(ROOT / "chapters").glob("*/*.md"), *(ROOT / "book").glob("*.md")]
    asked = [
        (x.name, y) for x in pages for y in re.findall(r"\{public\}`([^`]+)`", x.read_text("utf8"))
    ]
    assert len(asked) > 20
    for page, words in asked:
        assert census.said(words) not in ("", "0", "0 %"), (page, words)
