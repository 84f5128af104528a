"""MyST to the plain Markdown that Colab and JupyterLab show: no directive, role or macro is left.

A directive or role that is not known here is an error with its place, so that nothing raw can slip
into a notebook. References are answered by a `Book`, which knows the numbers and titles.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from docutils.parsers.rst import Directive
from markdown_it.token import Token
from myst_parser.parsers.directives import parse_directive_text

from tfviz import catalogue
from tfviz.anatomy import census
from tfviz_lessons.outline import FENCES, LessonError, directive, markdown


class Book(Protocol):
    """What a notebook must know of the rest of the book. Unknown keys raise `KeyError`."""

    def equation(self, label: str) -> str:
        """Number of an equation, without brackets."""

    def reference(self, label: str) -> tuple[str, str, str]:
        """Title, number ("Exercise 3", empty if it has none) and address of a label."""

    def page(self, target: str) -> tuple[str, str]:
        """Title and address of a page, named as in a link or a {doc} role."""

    def citation(self, key: str) -> tuple[str, str]:
        """Authors ("Child et al.") and year of a bibliography key."""


class _AnyDirective(Directive):
    """Says that any option is fine; `Plain` looks at the names."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"any": str}  # none means that options are content


class _ProblemError(Exception):
    def __init__(self, line: int, text: str) -> None:
        self.line, self.text = line, text


# --- macros --------------------------------------------------------------------------------------


COMMAND = re.compile(r"\\([A-Za-z]+)|\\.", re.S)


def _group(tex: str, at: int) -> tuple[str, int]:
    """The braced group or single token that starts at `at` (spaces skipped), and where it ends."""
    while at < len(tex) and tex[at].isspace():
        at += 1
    if at < len(tex) and tex[at] == "{":
        depth = 0
        for end in range(at, len(tex)):
            if tex[end] in "{}" and (end == 0 or tex[end - 1] != "\\"):
                depth += 1 if tex[end] == "{" else -1
                if depth == 0:
                    return tex[at + 1 : end], end + 1
        raise ValueError(f"unbalanced braces in {tex!r}")
    token = re.compile(r"\\[A-Za-z]+|\\.|.", re.S).match(tex, at)
    if not token:
        raise ValueError(f"an argument is missing at the end of {tex!r}")
    return token[0], token.end()


def expand(tex: str, macros: Mapping[str, Any]) -> str:
    """`tex` with the book's macros written out and the wrappers that carry colours removed."""
    out, at = "", 0
    while name := COMMAND.search(tex, at):
        out += tex[at : name.start()]
        at = name.end()
        if name[1] in ("htmlClass", "htmlStyle", "htmlId", "htmlData"):
            _, at = _group(tex, at)
            body, at = _group(tex, at)
            out += "{" + expand(body, macros) + "}"
        elif name[1] in macros:
            meaning = macros[name[1]]
            body, count = meaning if isinstance(meaning, list | tuple) else (meaning, 0)
            for number in range(1, int(count) + 1):
                argument, at = _group(tex, at)
                body = body.replace(f"#{number}", argument)
            done = expand(body, macros)
            # a command at the end must not swallow the letter that follows it
            glue = re.search(r"\\[A-Za-z]+$", done) and at < len(tex) and tex[at].isalpha()
            out += done + (" " if glue else "")
        else:
            out += name[0]
    return out + tex[at:]


# --- the converter -------------------------------------------------------------------------------

ADMONITIONS = {
    "note": "Note",
    "tip": "Tip",
    "important": "Important",
    "warning": "Warning",
    "caution": "Caution",
    "attention": "Attention",
    "danger": "Danger",
    "error": "Error",
    "seealso": "See also",
    "margin": "",
    "sidebar": "",
    "epigraph": "",
    "try": "Try",
    "differs": "Differs",
    "measured": "Measured",
}
SILENT = {"index", "contents", "tableofcontents"}
PLAIN = {"div", "container", "grid", "grid-item", "card", "tab-set"}
REFERENCES = "<!-- references -->"  # where the entries go, once all that is cited is known
INLINE = re.compile(
    r"""
      (?P<escape>\\[^A-Za-z])
    | \{(?P<role>[A-Za-z][\w:.+-]*)\}(?P<tick>`+)(?P<body>.+?)(?<!`)(?P=tick)(?!`)
    | (?P<code>(?P<quote>`+)(?!`).+?(?<!`)(?P=quote)(?!`))
    | \$\$(?P<display>.+?)\$\$(?:[ ]*\((?P<label>[\w:.-]+)\))?
    | \$(?!\s)(?P<math>(?:\\.|[^$\\])+?)(?<!\s)\$(?!\d)
    | (?P<substitution>\{\{\s*\w+\s*\}\})
    | \[\^(?P<note>[\w-]+)\](?P<definition>:)?
    | \[(?P<text>[^\[\]]*)\]\((?P<link>[^()\s]+)\)
    """,
    re.S | re.X,
)


@dataclass
class Plain:
    """Turns MyST text of one lesson into plain Markdown; remembers what it cited, in order."""

    path: str
    book: Book
    macros: Mapping[str, Any] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)

    def __call__(self, text: str, line: int = 1) -> str:
        """Plain Markdown for `text`, which starts at `line` of the file."""
        try:
            return self._text(text, line, nested=False).strip("\n")
        except _ProblemError as problem:
            raise LessonError(self.path, [(problem.line, problem.text)]) from None

    # blocks

    def _text(self, text: str, line: int, *, nested: bool) -> str:
        lines = text.split("\n")
        out: list[str] = []
        done = 0
        for token in markdown().parse(text + "\n"):
            if token.map is None or token.map[0] < done:
                continue
            start, end = token.map
            if token.type == "amsmath":  # its map leaves the last line out
                end = start + token.content.count("\n") + 1
            new = self._block(token, line + start, nested or token.level > 0)
            if new is None:
                continue
            out.append(self._prose("\n".join(lines[done:start]), line + done))
            marker = re.match(r"(?:\s|>|[-*+]\s|\d+[.)]\s)*", lines[start])
            first = marker[0] if marker and token.level else ""
            rest = re.sub(r"[^>\s]", " ", first)
            put = [(first if n == 0 else rest) + x for n, x in enumerate(new.split("\n"))]
            out.append("\n".join(x.rstrip() for x in put) if new or first.strip() else "")
            done = end
        out.append(self._prose("\n".join(lines[done:]), line + done))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(out))

    def _block(self, token: Token, line: int, nested: bool) -> str | None:
        """The replacement of a block that is not plain Markdown already, else None."""
        if token.type in FENCES:
            name, argument = directive(token)
            if name:
                return self._directive(name, argument, token, line, nested)
            if token.type == "colon_fence":
                return self._text(token.content, line + 1, nested=nested)
            return token.markup + token.info + "\n" + token.content + token.markup
        if token.type == "amsmath":
            return self._display(token.content, None, line, nested)
        if token.type in ("math_block", "math_block_label"):
            label = token.info if token.type == "math_block_label" else None
            return self._display(token.content, label, line, nested)
        if token.type == "dl_open":
            raise _ProblemError(line, "a definition list has no form in a notebook; use a list")
        if token.type in ("myst_target", "myst_line_comment", "myst_block_break"):
            return ""
        return None

    def _directive(self, name: str, title: str, token: Token, line: int, nested: bool) -> str:
        read = parse_directive_text(_AnyDirective, title, token.content, validate_options=False)
        for warning in read.warnings:
            raise _ProblemError(line, f"options of {{{name}}} cannot be read: {warning.msg}")
        options, body = read.options, "\n".join(read.body).rstrip()
        inside = line + 1 + read.body_offset
        kinds = str(options.get("class", "")).split()

        def content(quote: bool = False) -> str:
            return self._text(body, inside, nested=nested or quote).strip("\n")

        def shown() -> str:
            return self._prose(title, line)

        if name == "math":
            tex = f"{title}\n{body}" if title else body
            return self._display(tex, options.get("label"), line, nested)
        if name == "mechanism":
            return self._card(title, line)
        if name == "head-schemes":
            made = self._known(line, name, title, lambda x: census.head_schemes(x.split()))
            return self._text(made, line, nested=nested)
        if name == "source":
            sources = (self._known(line, name, dotted, source_of) for dotted in title.split())
            return "\n\n".join(_fenced("python", source) for source in sources)
        if name in ("code", "code-block", "sourcecode"):
            return _fenced(title, body)
        if name == "bibliography":
            return REFERENCES
        if name in SILENT:
            return ""
        if name == "letters":
            return self._letters(body, inside)
        if name in PLAIN:
            return content()
        if name == "tab-item":
            return f"**{shown()}**\n\n{content()}"
        if name == "dropdown" or name == "hint" or "dropdown" in kinds:
            default = ADMONITIONS.get(name, name.title())
            return details(shown() or default, content())
        if name == "admonition":
            return _quote(shown(), content(quote=True))
        if name == "erratum":
            if not re.fullmatch(r"E\d+", title):
                raise _ProblemError(line, "{erratum} needs the number of an entry, such as E29")
            link = self._role("ref", f"{title} <erratum-{title.lower()}>", line)
            return _quote(f"Erratum {link}", content(quote=True))
        if name in ADMONITIONS:
            head = ADMONITIONS[name]
            if title and head:
                head = f"{head}: {shown()}"
            return _quote(head or shown(), content(quote=True))
        raise _ProblemError(
            line,
            f"directive {{{name}}} has no form in a notebook; known: "
            + ", ".join(sorted({*ADMONITIONS, *SILENT, *PLAIN, *OTHERS})),
        )

    def _card(self, name: str, line: int) -> str:
        row = self._known(line, "mechanism", name, catalogue.get)
        papers = self._cite([row.bibkey, *row.also], True, line)
        time, memory = (f"${self._tex(tex, line)}$" for tex in (row.time, row.memory))
        return _quote(row.name, f"{row.idea}\n\n{papers} · time {time} · memory {memory}")

    def _letters(self, body: str, line: int) -> str:
        """The letters of a section as a table."""
        rows = [row.partition("$: ") for row in re.sub(r"\n\s+", " ", body).split("\n")]
        cells = [
            f"| {self._prose(f'{letters}$', line)} | {self._prose(meaning, line)} |"
            for letters, _, meaning in rows
        ]
        return "\n".join(["| letter | meaning |", "|---|---|", *cells])

    def _display(self, tex: str, label: str | None, line: int, nested: bool) -> str:
        """A displayed equation, numbered if it has a label."""
        rows = [row.strip() for row in tex.strip().split("\n") if row.strip()]
        if "\\\\" in tex and not rows[0].startswith("\\begin"):
            rows = ["\\begin{aligned}", *rows, "\\end{aligned}"]
        if label:
            number = self._known(line, "equation", str(label), self.book.equation)
            rows.append(f"\\tag{{{number}}}")
        rows = self._tex("\n".join(rows), line).split("\n")
        # in a quotation the marks at the margin would end up inside the formula
        return f"$${' '.join(rows)}$$" if nested else "\n".join(["", "$$", *rows, "$$", ""])

    # words

    def _prose(self, text: str, line: int) -> str:
        """Roles, references, links and formulas inside paragraphs."""
        out = []
        for paragraph in re.split(r"(\n[ \t>]*\n)", text):
            out.append(INLINE.sub(lambda m: self._inline(m, line), paragraph))  # noqa: B023
            line += paragraph.count("\n")
        return "".join(out)

    def _inline(self, found: re.Match[str], start: int) -> str:
        line = start + found.string[: found.start()].count("\n")
        if found["role"]:
            body = re.sub(r"\s*\n[\s>]*", " ", found["body"].strip())
            return self._role(found["role"], body, line)
        if found["math"]:
            return f"${self._tex(_one_line(found['math']), line)}$"
        if found["display"]:
            return self._display(_one_line(found["display"]), found["label"], line, nested=True)
        if found["substitution"]:
            what = found["substitution"]
            raise _ProblemError(line, f"the substitution {what} has no form in a notebook")
        if found["note"]:
            return f"<sup>{found['note']}</sup>"
        if found["link"]:
            return self._link(found["text"], found["link"], line)
        return found[0]

    def _tex(self, tex: str, line: int) -> str:
        try:
            return expand(tex, self.macros)
        except ValueError as error:
            raise _ProblemError(line, str(error)) from None

    def _role(self, name: str, body: str, line: int) -> str:
        if name == "eq":
            return f"({self._known(line, name, body, self.book.equation)})"
        if name in ("ref", "numref"):
            text, label = _with_text(body)
            title, number, address = self._known(line, name, label, self.book.reference)
            if name == "numref":
                if not number:
                    raise _ProblemError(
                        line, f"{{numref}}`{label}`: that has no number; use {{ref}}"
                    )
                bare = number.split()[-1]
                plain = number if text is None else re.sub(r"%s|\{number\}", bare, text)
                return _linked(plain.replace("{name}", title), address)
            return _linked(text or title or number, address)
        if name == "doc":
            text, target = _with_text(body)
            title, address = self._known(line, name, target, self.book.page)
            return _linked(text or title, address)
        if name in ("cite", "cite:p", "cite:t"):
            return self._cite([key.strip() for key in body.split(",")], name == "cite:t", line)
        if name == "math":
            return f"${self._tex(body, line)}$"
        if name == "term":
            return _with_text(body)[0] or body
        if name in ("code", "kbd"):
            return f"`{body}`"
        if name in ("sub", "sup"):
            return f"<{name}>{html.escape(body)}</{name}>"
        if name == "abbr":
            return body
        if name == "public":
            return str(self._known(line, name, body, census.said))
        raise _ProblemError(
            line,
            f"role {{{name}}} has no form in a notebook; known: eq, ref, numref, doc, cite, "
            "cite:p, cite:t, math, term, code, kbd, sub, sup, abbr, public",
        )

    def _cite(self, keys: list[str], in_text: bool, line: int) -> str:
        parts = []
        for key in keys:
            authors, year = self._known(line, "cite", key, self.book.citation)
            parts.append(f"{authors} ({year})" if in_text else f"{authors}, {year}")
            if key not in self.cited:
                self.cited.append(key)
        return "; ".join(parts) if in_text else f"({'; '.join(parts)})"

    def _link(self, text: str, target: str, line: int) -> str:
        if re.match(r"[a-z]+:", target):
            return f"[{self._prose(text, line)}]({target})"
        if target.startswith("#"):
            title, number, address = self._known(line, "link", target[1:], self.book.reference)
            return _linked(self._prose(text, line) or title or number, address)
        is_page = target.endswith(".md") or ".md#" in target
        if not is_page:
            title, _, address = self._known(line, "link", target, self.book.reference)
        else:
            title, address = self._known(line, "link", target, self.book.page)
        return _linked(self._prose(text, line) or title, address)

    def _known(self, line: int, kind: str, key: str, answer: Callable[[str], Any]) -> Any:
        try:
            return answer(key)
        except (KeyError, ValueError) as error:
            plain = f"{kind}: nothing in the book is called {key!r}"
            raise _ProblemError(line, plain if error.args == (key,) else error.args[0]) from None


OTHERS = {
    *("admonition", "bibliography", "code-block", "dropdown", "erratum"),
    *("head-schemes", "hint", "letters", "math", "mechanism", "source", "tab-item"),
}


def _with_text(body: str) -> tuple[str | None, str]:
    """`text <target>` taken apart; the text is None where only a target is given."""
    found = re.fullmatch(r"(.+?)\s*<([^<>]+)>", body, re.S)
    return (found[1], found[2]) if found else (None, body)


def _one_line(tex: str) -> str:
    return re.sub(r"\s*\n[\s>]*", " ", tex)


def _linked(text: str, address: str) -> str:
    return f"[{text}]({address})" if address else text


def _quote(head: str, body: str) -> str:
    """A quotation with a bold first line."""
    lines = [f"**{head}**", ""] if head else []
    return "\n".join(f"> {line}".rstrip() for line in [*lines, *body.split("\n")])


def _fenced(info: str, body: str) -> str:
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}{info}\n{body}\n{fence}"


def details(summary: str, body: str) -> str:
    """A part that the reader unfolds."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def code_details(summary: str, code: str) -> str:
    """Python code that the reader unfolds."""
    return details(summary, _fenced("python", code.strip("\n")))


def source_of(name: str) -> str:
    """Source text of the object with this dotted name; `KeyError` if there is none."""
    parts = name.split(".")
    for at in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:at]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[at:]:
                found = getattr(found, part)
            getter: Any = found.fget if isinstance(found, property) else found
            found = inspect.unwrap(getter)
            return textwrap.dedent(inspect.getsource(found)).rstrip("\n")
        except (AttributeError, TypeError):
            break
    raise KeyError(name)
