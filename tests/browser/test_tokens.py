"""Any text that a token can be, in a page: shown, spoken, copied and linked as it is."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import write_site
from test_labels import TEXTS

from tfviz._labels import shown
from tfviz.explorers import (
    AdditiveScores,
    AttentionSteps,
    BytePairMerges,
    EncoderDecoderMaps,
    Explorer,
    RelativeTerms,
    SoftDictionary,
    TrainingObjectives,
)

HARD = ["$x$", "{e:x}", "x_1^2", " the", "\n", r"\theta", "<b>", "\u202eabc"]


def opened(page: Any, folder: Path, address: str, explorer: Explorer) -> Any:
    write_site(folder, explorer.html(), name="tokens.html")
    page.goto(f"{address}tokens.html")
    host = page.locator(".tfviz-explorer[data-ready]")
    host.first.wait_for()
    return host


def test_the_page_shows_a_text_as_python_does(page: Any, folder: Path, address: str) -> None:
    opened(page, folder, address, SoftDictionary.example())
    made = page.evaluate(
        """(texts) => {
          const { token } = tfvizKit({ declared: { knobs: {}, given: [], derived: [] } });
          return JSON.parse(texts).map((text) => token(text));
        }""",
        json.dumps(TEXTS),
    )
    held = [f"\u2060{words}\u2060" if words else "" for words in map(shown, TEXTS)]
    assert made == held


def hard(n: int) -> list[str]:
    return HARD[:n]


CASES: dict[str, Explorer] = {
    "attention_steps": AttentionSteps.example(words=hard(6), cards={}, row=1, column=0),
    "soft_dictionary": SoftDictionary.example(names=hard(4), axes=HARD[4:6]),
    "training_objectives": TrainingObjectives.example("t5", words=(HARD * 2)[:10], row=0),
    "additive_scores": AdditiveScores.example(names=hard(4)),
    "relative_terms": RelativeTerms.example("terms", words=hard(6)),
    "byte_pair_merges": BytePairMerges("$x$ $x$ {e:x} <b> \u202eabc\u202eabc"),
}


@pytest.mark.parametrize("name", CASES)
def test_words_are_shown_and_spoken_as_they_are(
    page: Any, folder: Path, address: str, name: str
) -> None:
    one = CASES[name]
    host = opened(page, folder, address, one)
    words = getattr(one, "words", None) or getattr(one, "names", None) or ["x$", "{e:x}", "<b>"]
    root = host.first.locator(".tfx")
    seen = root.evaluate(
        """(node) => [node.textContent, ...[...node.querySelectorAll("[aria-label]")].map(
          (one) => one.ariaLabel)].join("\\n")"""
    )
    assert not [word for word in words if shown(word) not in seen and name != "byte_pair_merges"]
    assert "\u2060" not in seen and "\u202e" not in seen
    copied = host.first.evaluate("(node) => node.tfviz.python()")
    call = ast.parse(copied).body[-1]
    assert "\u202e" not in copied
    values = {
        k.arg: ast.literal_eval(k.value)
        for node in ast.walk(call)
        if isinstance(node, ast.Call)
        for k in node.keywords
    }
    state = {n: x for n, x in one.state.items() if n in values}
    assert {n: values[n] for n in state} == state


def test_an_encoder_and_a_decoder_of_any_words(page: Any, folder: Path, address: str) -> None:
    state = EncoderDecoderMaps.example().state
    lengths = len(state["source"]), len(state["written"])
    words = {"source": (HARD * 2)[: lengths[0]], "written": (HARD * 2)[: lengths[1]]}
    host = opened(page, folder, address, EncoderDecoderMaps.example(**words, said=words["written"]))
    text = host.first.locator(".tfx").text_content()
    assert all(shown(word) in text for word in words["source"]) and "\u2060" not in text


def test_what_is_typed_is_in_the_address(page: Any, folder: Path, address: str) -> None:
    host = opened(page, folder, address, BytePairMerges("ab ab"))
    typed = "$x$ {e:x}  </s> \u202e👩‍👩‍👧"
    page.get_by_label("your own text").fill(typed)
    page.wait_for_function("location.hash.length > 1")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    host.first.wait_for()
    assert host.first.evaluate("(node) => node.tfvizModel.get('text')") == typed
    assert page.get_by_label("your own text").input_value() == typed


def test_the_page_follows_what_is_given_anew(page: Any, folder: Path, address: str) -> None:
    host = opened(page, folder, address, SoftDictionary.example())
    host.first.evaluate(
        """(node) => {
          node.tfvizModel.set("names", ["$a$", "bb", "cc", "dd"]);
          node.tfvizModel.set("prompt", "Another question?");
          node.tfvizModel.save_changes?.();
        }"""
    )
    page.get_by_text("Another question?").wait_for(state="attached", timeout=20_000)
    text = host.first.locator(".tfx").text_content()
    assert "$a$" in text and "east" not in text


BROKEN_LINES = {
    "tfviz/explorers/kit/words.js": [
        ("a token is read as mathematics", "if (n % 2) return [[piece]];", ""),
        ("a direction acts", "const HIDDEN = /[\\p{Cc}\\p{Cf}", "const HIDDEN = /[\\p{Cc}"),
    ],
    "tfviz/explorers/kit/app.js": [
        (
            "what is given stays as it was",
            "model.on(event, again);",
            "",
        ),
    ],
}
