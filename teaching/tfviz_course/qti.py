"""The short questions of a chapter as a package of QTI 2.1, the standard for tests between systems.

One test for each chapter, with two sections: the numbers that its exercises ask for, scored as the
page scores them, and its five questions, which a person reads beside the answer of the book.
Formulas stand in `\\(…\\)`, as in the decks for Anki; whoever shows them needs MathJax.
"""

from __future__ import annotations

import io
import re
import zipfile
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tfviz._files import written_whole
from tfviz_course import store
from tfviz_course.questions import Asked, chosen, macros, to_html
from tfviz_lessons import clone
from tfviz_lessons.lesson import Exercise
from tfviz_lessons.plain import expand

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SLACK = 1e-9  # what the page allows beyond `near`, for rounding
SHOWN = {"text", "code_inline", "code_block", "fence"}  # tokens whose content is shown as it is
WHEN = (1980, 1, 1, 0, 0, 0)  # so that the same questions are the same file


class Item(NamedTuple):
    """A question with its own file in the package."""

    name: str  # its identifier
    title: str
    body: str  # XML
    scored: bool  # by the system, not by a person


def export(folder: Path, name: str) -> tuple[Path, int, int]:
    """Write exports/<chapter>-qti.zip below `folder`; `name` is a chapter, or "all".

    Returns the file, and the numbers of questions that are scored and of those in words.
    """
    tests = [(one, items(one)) for one in chosen(name)]
    file = folder / "exports" / f"{name.replace('/', '-')}-qti.zip"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as package:
        for path, text in files(tests).items():
            package.writestr(zipfile.ZipInfo(path, WHEN), text, zipfile.ZIP_DEFLATED)
    with store.writing(file), written_whole(file) as out:
        out.write(made.getvalue())
    every = [item.scored for _, found in tests for item in found]
    return file, sum(every), len(every) - sum(every)


def items(asked: Asked) -> list[Item]:
    """The questions of a chapter: numbers in the order of its exercises, then the five."""
    told = clone.told(asked.chapter)["exercises"]
    found = []
    for task in clone.read(asked.chapter).tasks:
        if isinstance(task, Exercise) and task.ask:
            known = told[task.label]
            body = _number(task.ask, to_blocks(known["prose"]))
            title = " · ".join(filter(None, [known["name"], known["title"]]))
            found.append(Item(task.label, title, body, scored=True))
    for one in asked.questions:
        label = f"{asked.chapter.replace('/', '-')}-question-{one.number}"
        body = _words(to_html(one.question), to_html(one.answer))
        found.append(Item(label, f"{asked.title}, question {one.number}", body, scored=False))
    return found


def files(tests: list[tuple[Asked, list[Item]]]) -> dict[str, str]:
    """What is in the package, by path."""
    found = {}
    resources = []
    for asked, test in tests:
        name = f"test-{asked.chapter.replace('/', '-')}"
        paths = {item.name: f"items/{item.name}.xml" for item in test}
        found[f"{name}.xml"] = _test(name, asked.title, test, paths)
        found |= {paths[item.name]: _item(item) for item in test}
        needs = "".join(f'\n      <dependency identifierref="{item}"/>' for item in paths)
        resources.append(_resource(name, "imsqti_test_xmlv2p1", f"{name}.xml", needs))
        resources += [_resource(item, "imsqti_item_xmlv2p1", path) for item, path in paths.items()]
    manifest = f"""\
{HEAD}<manifest xmlns="{PACKAGE}" xmlns:xsi="{XSI}"
  xsi:schemaLocation="{PACKAGE} http://www.imsglobal.org/xsd/qti/qtiv2p1/qtiv2p1_imscpv1p2_v1p0.xsd"
  identifier="tfviz">
  <metadata>
    <schema>QTIv2.1 Package</schema>
    <schemaversion>1.0.0</schemaversion>
  </metadata>
  <organizations/>
  <resources>
{"".join(resources)}  </resources>
</manifest>
"""
    return {"imsmanifest.xml": manifest, **found}


def _resource(name: str, kind: str, path: str, needs: str = "") -> str:
    return f"""\
    <resource identifier="{name}" type="{kind}" href="{path}">
      <file href="{path}"/>{needs}
    </resource>
"""


def _root(element: str, name: str, title: str, more: str = "") -> str:
    """The opening tag of a file of QTI."""
    return (
        f'{HEAD}<{element} xmlns="{QTI}" xmlns:xsi="{XSI}"\n'
        f'  xsi:schemaLocation="{QTI} http://www.imsglobal.org/xsd/qti/qtiv2p1/imsqti_v2p1.xsd"\n'
        f'  identifier="{name}" title="{escape(title)}"{more}>\n'
    )


def _test(name: str, title: str, test: list[Item], paths: dict[str, str]) -> str:
    sections = []
    for part, scored in (("Numbers", True), ("In your own words", False)):
        refs = "".join(
            f'\n      <assessmentItemRef identifier="{item.name}" href="{paths[item.name]}"/>'
            for item in test
            if item.scored == scored
        )
        identifier = f"{name}-{'numbers' if scored else 'words'}"
        sections.append(
            f'    <assessmentSection identifier="{identifier}" title="{part}" visible="true">'
            f"{refs}\n    </assessmentSection>\n"
        )
    return f"""\
{_root("assessmentTest", name, title)}  <outcomeDeclaration identifier="SCORE" \
cardinality="single" baseType="float"/>
  <testPart identifier="{name}-part" navigationMode="nonlinear" submissionMode="individual">
{"".join(sections)}  </testPart>
  <outcomeProcessing>
    <setOutcomeValue identifier="SCORE">
      <sum><testVariables variableIdentifier="SCORE"/></sum>
    </setOutcomeValue>
  </outcomeProcessing>
</assessmentTest>
"""


def _item(item: Item) -> str:
    more = ' adaptive="false" timeDependent="false"'
    return f"{_root('assessmentItem', item.name, item.title, more)}{item.body}</assessmentItem>\n"


SCORE = """\
  <outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float" normalMaximum="1">
    <defaultValue><value>0</value></defaultValue>
  </outcomeDeclaration>
"""


def _number(ask: dict[str, Any], before: str) -> str:
    """A number, which gets one point where it is as near as the page demands."""
    most = ask["near"] + SLACK
    return f"""\
  <responseDeclaration identifier="RESPONSE" cardinality="single" baseType="float">
    <correctResponse><value>{ask["is"]!r}</value></correctResponse>
  </responseDeclaration>
{SCORE}  <itemBody>
    <div class="exercise">
{before}    </div>
    <p>{escape(ask["question"])} \
<textEntryInteraction responseIdentifier="RESPONSE" expectedLength="12"/></p>
  </itemBody>
  <responseProcessing>
    <responseCondition>
      <responseIf>
        <equal toleranceMode="absolute" tolerance="{most!r} {most!r}">
          <variable identifier="RESPONSE"/>
          <correct identifier="RESPONSE"/>
        </equal>
        <setOutcomeValue identifier="SCORE">
          <baseValue baseType="float">1</baseValue>
        </setOutcomeValue>
      </responseIf>
    </responseCondition>
  </responseProcessing>
"""


def _words(question: str, answer: str) -> str:
    """A question in words; the answer of the book is for whoever gives the points."""
    return f"""\
  <responseDeclaration identifier="RESPONSE" cardinality="single" baseType="string"/>
{SCORE}  <itemBody>
    <rubricBlock view="scorer tutor"><p>{answer}</p></rubricBlock>
    <extendedTextInteraction responseIdentifier="RESPONSE" expectedLines="4">
      <prompt>{question}</prompt>
    </extendedTextInteraction>
  </itemBody>
"""


@cache
def _reader() -> MarkdownIt:
    options = {"html": False, "xhtmlOut": True}
    return (
        MarkdownIt("commonmark", options).enable("table").use(dollarmath_plugin, allow_space=False)
    )


def to_blocks(text: str) -> str:
    r"""Markdown as the elements that QTI has; formulas in `\(…\)` and `\[…\]`, of a link or a
    picture the words. Nothing in it is fetched."""
    parser = _reader()
    tokens = parser.parse(text)
    for token in [*tokens, *(child for one in tokens for child in one.children or ())]:
        token.attrs = {}
        if token.type.startswith("math"):
            tex = escape(expand(token.content, macros()).strip(), quote=False)
            display = token.type.startswith(("math_block", "math_inline_double"))
            token.content = rf"\[{tex}\]" if display else rf"\({tex}\)"
            if token.type.startswith("math_block"):
                token.content = f"<p>{token.content}</p>\n"
            token.type = "html_block"
        elif token.type in ("link_open", "link_close"):
            token.type, token.content = "html_inline", ""
        elif token.type == "image":
            token.type, token.children = "text", None
        elif token.type == "fence":
            token.info = ""
    return re.sub(
        r"\s*<(tbody|thead)>\s*</\1>", "", parser.renderer.render(tokens, parser.options, {})
    )
