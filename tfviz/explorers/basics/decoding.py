"""Ways to choose a token, on next-token distributions that a small trained model left behind."""

from itertools import accumulate
from typing import Any

import torch
import traitlets as t

from tfviz import stored as results
from tfviz.basics.decoding_strategies import Hypothesis, beam_search, nucleus, temperature, top_k
from tfviz.explorers.base import Explorer, Knob, Numbers, exact, given, handed, knob, own, uniforms
from tfviz.stored import letter_page
from tfviz.stored.letter_gpt import ALPHABET
from tfviz.stored.next_tokens import stored_next

WIDEST, LONGEST, MOST_ALPHA = 6, 10, 2.0
MOST_BEGIN, MOST_WRITTEN = 20, 20  # letters; the model was trained on 40
ROWS, COMPARED = 14, 40  # how many tokens are drawn, and how many are compared
CUTS = (*range(21), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
ROOM = {  # as `rem`, by view
    "token": (35.5, 35.5, 35.5, 36.5, 94),
    "beam": (44, 44, 44, 44, 90),
    "write": (37.5, 37.5, 37.5, 37.5, 94.5),
}
KINDS = {"token": "contexts", "beam": "trees"}
PARTS = {"token": "log_p", "beam": "nodes"}
"""What each entry has, by view."""
PROMPTS = {
    "token": "Set p₀ off and k = 10: which beginning loses most probability?",
    "beam": "Move W and α; greedy's path is dashed. When does the best text change?",
    "write": "Type a beginning, press play; then move τ, k and p.",
}


EXAMPLES: dict[str, Numbers] = {
    "token": {"which": 3, "p": 0.8},
    "beam": {"view": "beam"},
    "write": {"view": "write", "begin": "if the object "},
}


def _falls(stored: list[Numbers], _: Any) -> list[Numbers]:
    """As the page gets them: how far each log p is below the likelier one, in half the bytes."""

    def told(one: Numbers) -> Numbers:
        places = [int(x) for x in one["log_p"].split()]
        falls = (x - y for x, y in zip(places, [0, *places[:-1]], strict=True))
        return {n: x for n, x in one.items() if n != "log_p"} | {"falls": " ".join(map(str, falls))}

    return [told(one) if "log_p" in one else one for one in stored]


def _places(one: Numbers) -> Numbers:
    """What the page was given, as it is stored."""
    if "falls" not in one:
        return one
    places = " ".join(map(str, accumulate(int(x) for x in one["falls"].split())))
    return {n: x for n, x in one.items() if n != "falls"} | {"log_p": places}


class Decoding(Explorer):
    """Two views of stored distributions, and a small model that writes.

    view="token"   one step: temperature `tau` first, then top-`k` (0: off), then nucleus `p`
                   (1: off), after the beginning number `which`
    view="beam"    a search: `width`, length penalty `alpha`, after `steps` tokens
    view="write"   the stored GPT of letters goes on from `begin`, `written` letters of them, each
                   drawn after the same three cuts, with the random numbers of `seed`
    stored         beginnings as `tfviz.stored.load("decoding")` has them, which are the default
    """

    uses = ("shared/numbers", "shared/parts", "shared/alive", "shared/gpt")
    label = "Decoding: from a model's probabilities to text"
    examples = EXAMPLES
    asks = PROMPTS
    narrow = 640
    data = handed(
        model=letter_page.for_page,
        rows=ROWS,
        compared=COMPARED,
        most={"begin": MOST_BEGIN, "written": MOST_WRITTEN},
    )

    view = given(Knob("token", of=("token", "beam", "write")))
    which = knob(0, low=0, high=lambda e: max(0, len(e.stored) - 1), label="beginning")
    tau = knob(1.0, low=0.0, high=3.0, step=0.05, label="temperature", letter="τ")
    k = knob(0, of=CUTS, between=True, low=0, high=100_000, label="top-k", letter="k")
    p = knob(1.0, low=0.0, high=1.0, step=0.01, label="nucleus", letter="p₀")
    width = knob(2, low=1, high=WIDEST, label="beam width", letter="W")
    alpha = knob(0.0, low=0.0, high=MOST_ALPHA, step=0.25, label="length penalty", letter="α")
    steps = knob(LONGEST, low=1, high=LONGEST, label="tokens written")
    begin = own(t.Unicode("the value of "))
    written = knob(8, low=0, high=MOST_WRITTEN, label="letters written")
    seed = knob(1, low=1, high=20, label="seed")
    stored = given(t.List(), optional=True).tag(to_json=_falls)

    @t.validate("begin")
    def _begin(self, proposal: Any) -> str:
        return letter_page.readable("begin", proposal["value"], 1, MOST_BEGIN)

    def prepare(self, said: Numbers) -> Numbers:
        view = said.get("view", "token")
        stored = [] if view == "write" else said.get("stored")
        if stored is None and view in KINDS:
            stored = results.load("decoding")[KINDS[view]]
        if isinstance(stored, list):
            stored = [_places(one) if isinstance(one, dict) else one for one in stored]
        if view in KINDS and not all(PARTS[view] in one for one in stored or [()]):
            raise ValueError(
                f"stored does not hold what view = {view!r} shows; give stored, as "
                f"tfviz.stored.load('decoding')[{KINDS[view]!r}] has it"
            )
        return said | {"stored": list(stored or ())}

    def heights(self) -> dict[int, float]:
        return dict(zip((0, 1136, 980, 820, self.narrow), ROOM[self.view], strict=True))

    def _cut(self, logits: torch.Tensor) -> torch.Tensor:
        hot = temperature(logits, self.tau)
        return nucleus(top_k(hot, self.k) if self.k else hot, self.p).softmax(-1)

    @property
    def text(self) -> tuple[list[int], torch.Tensor]:
        """The letters written so far, as tokens, and the model's log p of the next one."""
        model, dice = letter_page.exact(), uniforms(self.seed, MOST_WRITTEN) / 12**0.5 + 0.5
        t = ALPHABET.encode(self.begin)
        for n in range(self.written):
            held = self._cut(model(t[None])[0, -1]).cumsum(-1)
            below = int((held <= dice[n]).sum())  # the letters that hold less than was thrown
            t = torch.cat([t, torch.tensor([min(below, int((held < held[-1]).sum()))])])
        return t[len(self.begin) :].tolist(), model(t[None])[0, -1].log_softmax(-1)

    @property
    def beam(self) -> list[Hypothesis]:
        """What the search has found after `steps` tokens, the best first."""
        tree = self.stored[self.which]
        V = 1 + max(int(n) for n in tree["names"])
        look = stored_next(lambda tokens: tree["nodes"][" ".join(map(str, tokens))], 1, V)
        start, ends = torch.zeros(1, dtype=torch.long), tree["ends"]
        return beam_search(look, start, self.steps, self.width, end=ends, alpha=self.alpha)

    def numbers(self) -> Numbers:
        """Of what is written: its letters, the next one's distribution before and after the cuts,
        how many can be drawn, the entropy in nats. Of the token's view the probabilities of the
        likeliest after the cuts, how many can be drawn after each beginning, their share before
        the cuts, the entropy in nats; of the beam's view the hypotheses."""
        if self.view == "write":
            tokens, log_p = self.text
            after, p = self._cut(log_p), log_p.exp()
            written = {"written": tokens, "p": p, "after": after}
            return written | {"kept": (after > 0).sum(), "entropy": torch.special.entr(after).sum()}
        if self.view == "beam":
            hypotheses = {
                n: [getattr(y, n) for y in self.beam] for n in ("tokens", "log_p", "score")
            }
            return hypotheses | {"complete": [int(y.complete) for y in self.beam]}
        logits = [exact([int(x) / 100 for x in one["log_p"].split()]) for one in self.stored]
        all_after = [self._cut(x) for x in logits]
        kept, drawn = [int((x > 0).sum()) for x in all_after], all_after[self.which]
        held = temperature(logits[self.which], self.tau).softmax(-1)[: kept[self.which]]
        entropy = torch.special.entr(drawn).sum()
        return {"after": drawn[:COMPARED], "mass": held.sum(), "kept": kept, "entropy": entropy}
