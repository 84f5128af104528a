"""Packages of QTI 2.1: what the standard demands of them, and that they score as the page does.

The standard's schemas are in no package that could be installed here. Who has them names the folder
with imsqti_v2p1.xsd and imscp_v1p1.xsd, and what these import, and every file is validated (lxml
must be installed):

    TFVIZ_QTI_SCHEMAS=folder pytest teaching/tests/course/test_qti.py
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from course.classroom import ROOT

from tfviz_course import qti, questions
from tfviz_course.command import main
from tfviz_lessons import clone
from tfviz_lessons.lesson import Exercise

CHAPTER = "basics/attention"
Q, CP = f"{{{qti.QTI}}}", f"{{{qti.PACKAGE}}}"
SCHEMAS = os.environ.get("TFVIZ_QTI_SCHEMAS")
# the elements of QTI's text, of those that Markdown makes
TEXT = {
    *("a", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li"),
    *("ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}


def unpacked(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as package:
        return {name: package.read(name) for name in package.namelist()}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """All chapters."""
    place = tmp_path_factory.mktemp("qti")
    file, scored, words = qti.export(place, "all")
    assert file == place / "exports/all-qti.zip"
    assert words == 5 * len(clone.chapters()) and scored == len(list(asked()))
    return unpacked(file)


def asked() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number that an exercise of the book asks for, by label."""
    for chapter in clone.chapters():
        for task in clone.read(chapter).tasks:
            if isinstance(task, Exercise) and task.ask:
                yield task.label, task.ask


def items(package: dict[str, bytes]) -> dict[str, ET.Element]:
    return {
        Path(name).stem: ET.fromstring(data)
        for name, data in package.items()
        if name.startswith("items/")
    }


def points(item: ET.Element, answer: float | None) -> float:
    """The score of an answer by the item's own processing, as the standard defines its elements."""
    declared = item.find(f"{Q}responseDeclaration")
    assert declared is not None and declared.get("baseType") == "float"
    (default,) = item.findall(
        f"{Q}outcomeDeclaration[@identifier='SCORE']/{Q}defaultValue/{Q}value"
    )
    (condition,) = item.findall(f"{Q}responseProcessing/{Q}responseCondition/{Q}responseIf")
    equal, then = condition
    assert equal.tag == f"{Q}equal" and equal.get("toleranceMode") == "absolute"
    assert [one.tag for one in equal] == [f"{Q}variable", f"{Q}correct"]
    assert {one.get("identifier") for one in equal} == {declared.get("identifier")}
    assert (then.tag, then.get("identifier")) == (f"{Q}setOutcomeValue", "SCORE")
    if answer is None:  # a comparison with NULL is NULL, and no condition
        return float(default.text or "")
    (right,) = declared.findall(f"{Q}correctResponse/{Q}value")
    below, above = map(float, (equal.get("tolerance") or "").split())
    target = float(right.text or "")
    hit = target - below <= answer <= target + above
    return float("".join(then.itertext())) if hit else float(default.text or "")


def test_the_manifest_names_every_file_once_and_every_test_its_items(
    package: dict[str, bytes],
) -> None:
    root = ET.fromstring(package["imsmanifest.xml"])
    assert [one.tag for one in root] == [f"{CP}metadata", f"{CP}organizations", f"{CP}resources"]
    said = [(one.tag, one.text) for one in root[0]]
    assert said == [(f"{CP}schema", "QTIv2.1 Package"), (f"{CP}schemaversion", "1.0.0")]
    resources = {one.get("identifier"): one for one in root[2]}
    assert len(resources) == len(root[2])
    assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", str(name)) for name in resources)
    paths = [one.get("href") for one in root[2]]
    assert sorted([*map(str, paths), "imsmanifest.xml"]) == sorted(package)
    for name, one in resources.items():
        assert [file.get("href") for file in one.findall(f"{CP}file")] == [one.get("href")]
        inside = ET.fromstring(package[str(one.get("href"))])
        assert inside.get("identifier") == name and inside.get("title")
        needs = [need.get("identifierref") for need in one.findall(f"{CP}dependency")]
        if one.get("type") == "imsqti_test_xmlv2p1":
            assert inside.tag == f"{Q}assessmentTest"
            refs = list(inside.iter(f"{Q}assessmentItemRef"))
            assert [ref.get("identifier") for ref in refs] == needs
            assert [ref.get("href") for ref in refs] == [
                resources[need].get("href") for need in needs
            ]
        else:
            assert one.get("type") == "imsqti_item_xmlv2p1" and not needs
            assert inside.tag == f"{Q}assessmentItem"
    assert len(list(root.iter(f"{CP}dependency"))) == len(package) - 1 - len(clone.chapters())


def test_a_number_gets_the_points_that_the_page_gives(package: dict[str, bytes]) -> None:
    script = (ROOT / "book/assets/js/asked.js").read_text("utf8")
    assert "const off = Math.abs(said - is);\n      if (off <= near + 1e-9) return" in script
    found = items(package)
    for label, ask in asked():
        item, right, near = found[label], ask["is"], ask["near"]
        answers = [right, right + near, right - near, right + 2 * near, -right, 0, 1]
        answers += [right + sign * (near + off) for sign in (1, -1) for off in (5e-10, 1e-8, 1)]
        for answer in answers:
            assert points(item, answer) == (abs(answer - right) <= near + 1e-9), (label, answer)
        assert points(item, None) == 0
        words = "".join(item.find(f"{Q}itemBody").itertext())  # type: ignore[union-attr]
        assert ask["question"] in words
        (entry,) = item.iter(f"{Q}textEntryInteraction")
        assert entry.get("responseIdentifier") == "RESPONSE"


def test_a_question_in_words_shows_its_answer_to_graders_only(package: dict[str, bytes]) -> None:
    found = items(package)
    for chapter in clone.chapters():
        for one in questions.read(chapter).questions:
            item = found[f"{chapter.replace('/', '-')}-question-{one.number}"]
            (rubric,) = item.iter(f"{Q}rubricBlock")
            assert rubric.get("view") == "scorer tutor"
            assert "".join(rubric.itertext()) == plain(questions.to_html(one.answer))
            (open_,) = item.iter(f"{Q}extendedTextInteraction")
            assert "".join(open_.itertext()).strip() == plain(questions.to_html(one.question))
            assert item.find(f"{Q}responseProcessing") is None
    assert len(found) == len(list(asked())) + 5 * len(clone.chapters())


def plain(html: str) -> str:
    return unescape(re.sub(r"</?[a-z]+>", "", html))


def test_texts_hold_only_what_qti_has_and_nothing_from_elsewhere(
    package: dict[str, bytes],
) -> None:
    ours = {"textEntryInteraction", "extendedTextInteraction", "prompt", "rubricBlock"}
    for name, item in items(package).items():
        body = item.find(f"{Q}itemBody")
        assert body is not None
        tags = {one.tag.removeprefix(Q) for one in body.iter()} - {"itemBody"}
        assert tags <= TEXT | ours, (name, tags)
        for one in body.iter():
            if one.tag.removeprefix(Q) in TEXT:
                assert set(one.attrib) <= {"class"}, (name, one.attrib)
        text = "".join(body.itertext())
        assert text.count(r"\(") == text.count(r"\)"), name
        assert not re.search(r"\$[^ ]|\{[a-z:]+\}`|\]\(|https?:|htmlClass", text), name
    whole = b"".join(package.values()).decode()
    for macro in questions.macros():
        assert not re.search(rf"\\{macro}(?![A-Za-z])", whole), macro


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"*a* $\Q\T$ & b", r"<p><em>a</em> \({\mathbf{Q}}^{\top}\) &amp; b</p>"),
        ("`b<c`", "<p><code>b&lt;c</code></p>"),
        ("see [chapter 2](multi_head)", "<p>see chapter 2</p>"),
        ("![a cat](cat.png)", "<p>a cat</p>"),
        ("$$\na < b\n$$", r"<p>\[a &lt; b\]</p>"),
        ("3. one\n4. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>"),
        ("```python\nf(1)\n```", "<pre><code>f(1)\n</code></pre>"),
        ("a<br>b <script>x</script>", "<p>a&lt;br&gt;b &lt;script&gt;x&lt;/script&gt;</p>"),
    ],
)  # fmt: skip
def test_markdown_becomes_elements_of_qti(text: str, wanted: str) -> None:
    assert qti.to_blocks(text).strip() == wanted


def test_a_chapter_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", CHAPTER, "--to", "qti"]) == 0
    file = tmp_path / "exports/basics-attention-qti.zip"
    said = capsys.readouterr().out
    assert said == f"4 numbers and 5 questions in words.\nIn {file}\n"
    assert len(unpacked(file)) == 1 + 1 + 9
    first = file.read_bytes()
    assert main(["export", CHAPTER, "--to", "qti"]) == 0
    assert file.read_bytes() == first
    assert main(["export", CHAPTER, "--to", "qti", "--title", "x"]) == 2
    assert main(["export", "basics/atention", "--to", "qti"]) == 2
    assert "did you mean basics/attention" in capsys.readouterr().err


@pytest.mark.skipif(not SCHEMAS, reason="TFVIZ_QTI_SCHEMAS names no folder with the schemas")
def test_every_file_is_valid_by_the_schemas_of_the_standard(package: dict[str, bytes]) -> None:
    etree = pytest.importorskip("lxml.etree")
    schemas = {}
    for kind in ("imsqti_v2p1", "imscp_v1p1"):
        (file,) = Path(str(SCHEMAS)).rglob(f"{kind}.xsd")
        schemas[kind] = etree.XMLSchema(etree.parse(str(file)))
    for name, data in package.items():
        schema = schemas["imscp_v1p1" if name == "imsmanifest.xml" else "imsqti_v2p1"]
        schema.assertValid(etree.fromstring(data))
    broken = package["items/ex-sharpness.xml"].replace(b"<itemBody>", b"<itemBody><b2/>")
    assert not schemas["imsqti_v2p1"].validate(etree.fromstring(broken))
