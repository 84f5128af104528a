"""Which far memories each query reads, in a trained layer."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

ANSWERS = "abcd"


@cache
def strip() -> Numbers:
    """Of the stored experiment: two segments of a stream, and the tokens before them.

    `words` is how each token is written, and the last 32 are those that read; `about` is the
    name that a question asks for or a fact tells, −1 of noise.
    """
    result = stored.load("knn_memory_recall")
    shown, (values, names, _) = result["shown"], result["symbols"]
    words, about = [], []
    for t in shown["past"]:
        name = (t - values) // values if t < values + names * values else t - values * (names + 1)
        fact, question = t < values + names * values, t < values * (names + 1) + names
        about.append(name if question else -1)
        symbol = f"{name}={ANSWERS[(t - values) % values]}" if fact else f"{name}?"
        words.append(symbol if question else "·")
    rows = [{x: row[x] for x in ("kind", "back", "scores")} for row in shown["rows"]]
    return {"words": words, "about": about, "rows": rows, "gates": shown["gates"], "m": shown["m"]}


class KnnMemory(Explorer):
    """32 tokens of a stream of facts and questions, and what two heads read for each of them.

    flat    1 as trained, more makes the weights more even
    """

    label = "Memory strip: what each query reads in a long past"
    rem = 43, 43, 43.5, 45, 88.5
    data = handed(strip)

    token = knob(12, low=0, high=31, label="token", letter="t")
    k = knob(8, low=1, high=8, label="memories that a head reads", letter="k")
    flat = knob(1.0, low=0.5, high=8, step=0.5, label="scores divided by")
    asks = "Step through the tokens: what do the heads read at tokens that ask nothing?"

    def weights(self, token: int) -> list[list[float]]:
        """Of the k memories of each head."""
        scores = exact(strip()["rows"][token]["scores"])
        return (scores[:, : self.k] / self.flat).softmax(-1).tolist()

    def right(self, token: int) -> float:
        """The share of both heads' weight on facts of the name that is asked for; 0 of others."""
        one, at = strip(), strip()["m"] + token
        row, about = one["rows"][token], one["about"]
        if not row["kind"]:
            return 0.0
        facts = [n for n, word in enumerate(one["words"]) if about[n] == about[at] and "=" in word]
        weights = zip(self.weights(token), row["back"], strict=True)
        on = [w for ws, b in weights for w, n in zip(ws, b, strict=False) if at - n in facts]
        return sum(on) / len(row["back"])

    def numbers(self) -> Numbers:
        """The weights of this token, and for every token the share on facts of its own name."""
        right = [self.right(t) for t in range(len(strip()["rows"]))]
        return {"weights": self.weights(self.token), "right": right}
