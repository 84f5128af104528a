"""What every explorer keeps from its first state to its answer, looked at in a real browser.

`violations` opens nothing: it takes a page on which one explorer stands in its first state.
"""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any

BLANK = 24  # pixels of reserved height that may stay empty
MOVED = 2  # pixels that a part may move when an answer is shown
KEYS_ON_A_PHONE = re.compile(r"arrow keys?|press [←→]|or [←→]|\bmouse\b|\bhover\b|point at", re.I)

# four frames later, and all explorers have drawn and said the state that they were on their way to
AT_REST = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const busy = (host) => host.tfviz && !host.tfviz.resting();
  await document.fonts.ready;
  for (let n = 0; n < 4; n++) await frame();
  while ([...document.querySelectorAll(".tfviz-explorer")].some(busy)) await frame();
}"""
# figures without a mark, matrices of one colour, tables and readouts of "?" alone
EMPTY = """(host) => {
  const seen = (selector) =>
    [...host.querySelectorAll(selector)].filter((node) => node.checkVisibility());
  const titled = (figure) => figure.querySelector(".tfx-title").textContent || "a figure";
  const empty = [];
  for (const figure of seen(".tfx-figure:has(.tfx-plane)")) {
    const marks = [...figure.querySelectorAll(".tfx-marks > g")];
    if (!marks.some((g) => g.childNodes.length && !/-(rule|text)$/.test(g.className.baseVal)))
      empty.push(`nothing is drawn in: ${titled(figure)}`);
  }
  for (const figure of seen(".tfx-figure:has(.tfx-grid)")) {
    const canvas = figure.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let filled = 0; // pixels in colour, or dark: lines between cells and hatching are light greys
    for (let k = 0; k < data.length; k += 4) {
      const most = Math.max(data[k], data[k + 1], data[k + 2]);
      const least = Math.min(data[k], data[k + 1], data[k + 2]);
      if (most - least > 30 || most < 130) filled++;
    }
    const words = figure.querySelectorAll(".tfx-marks text");
    const told = [...words].some((node) => node.textContent !== "?");
    if (filled < 0.002 * canvas.width * canvas.height && !told)
      empty.push(`nothing is filled in: ${titled(figure)}`);
  }
  for (const table of seen(".tfx-table")) {
    const cells = [...table.querySelectorAll("td")].map((node) => node.textContent);
    if (cells.length && cells.every((text) => text === "?")) empty.push("a table says only ?");
  }
  const readouts = seen(".tfx-readout dd").map((node) => node.textContent);
  if (readouts.length > 1 && readouts.every((text) => text === "?"))
    empty.push("all readouts say ?");
  return empty;
}"""
# each handle, from the first state: whether it moves, and follows the arrow
HANDLES = """(host) => {
  const place = (node) => {
    const [x, y] = node.getAttribute("transform").match(/-?[\\d.]+/g).map(Number);
    return { x, y, said: node.getAttribute("aria-valuetext") };
  };
  const again = () => {
    for (const button of host.querySelectorAll(".tfx-again")) button.click();
    host.tfviz.paint();
  };
  const find = (name) =>
    [...host.querySelectorAll(".tfx-handle")].find((node) => node.dataset.name === name);
  const names = [...host.querySelectorAll(".tfx-handle")]
    .filter((node) => node.checkVisibility())
    .map((node) => node.dataset.name);
  const wrong = [];
  for (const name of names) {
    again();
    let moves = false;
    const moved = {};
    let twice = !find(name).hasAttribute("data-ghost");
    const press = (key) => {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
      find(name).dispatchEvent(event);
      host.tfviz.paint();
    };
    for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"]) {
      again();
      if (!find(name)) continue;
      const before = place(find(name));
      press(key);
      if (!find(name)) continue;
      const after = place(find(name));
      const across = after.x - before.x;
      moved[key] = Math.hypot(across, after.y - before.y) > 0.2 || after.said !== before.said;
      moves ||= moved[key];
      if (key === "ArrowRight" && across < -0.5) wrong.push(`→ moves ${name} to the left`);
      if (key === "ArrowLeft" && across > 0.5) wrong.push(`← moves ${name} to the right`);
      const down = after.y - before.y;
      if (key === "ArrowUp" && down > 0.5 && Math.abs(across) < down)
        wrong.push(`↑ moves ${name} down`);
      if (key === "ArrowRight" && find(name).hasAttribute("data-ghost"))
        if (down > 5 && Math.abs(across) < down) wrong.push(`→ moves ${name} down`);
      if (twice) continue;
      press(key);
      const further = place(find(name));
      const places = new Set([before, after, further].map((one) => one.said));
      twice = places.size === 3;
    }
    if (find(name).hasAttribute("data-ghost")) {
      if (!moved.ArrowUp && !moved.ArrowDown) wrong.push(`↑ and ↓ do nothing to ${name}`);
      if (!moved.ArrowLeft && !moved.ArrowRight) wrong.push(`← and → do nothing to ${name}`);
    }
    if (!twice) wrong.push(`no arrow key moves ${name} twice`);
    if (!moves) wrong.push(`${name} is dead`);
  }
  again();
  return wrong;
}"""
PLACES = """(host) => {
  const parts =
    ".tfx, .tfx-ask, .tfx-figure, .tfx-frame, .tfx-table td, .tfx-table th, .tfx-lines, " +
    ".tfx-formula, .tfx-field, .tfx-motion, .tfx-status, .tfx-readout, .tfx-footer";
  return [...host.querySelectorAll(parts)].filter((node) => node.checkVisibility()).map((node) => {
    node.tfvizPlace ??= `${node.className} ${Math.random()}`;
    const { left, top } = node.getBoundingClientRect();
    return [node.tfvizPlace, left + scrollX, top + scrollY];
  });
}"""
ROOM = """(host) => [
  parseFloat(getComputedStyle(host.querySelector(".tfviz-explorer-body")).minHeight),
  host.querySelector(".tfx").getBoundingClientRect().height,
]"""
SAID = """(host) => {
  const node = host.querySelector(".tfx").cloneNode(true);
  for (const gone of node.querySelectorAll(".tfx-ask, .tfx-footer, .tfx-axes"))
    gone.remove();
  const heard = [...node.querySelectorAll("[aria-label], [aria-valuetext]")];
  const words = heard.map(
    (one) => `${one.getAttribute("aria-label")} ${one.getAttribute("aria-valuetext")}`,
  );
  const texts = [...node.querySelectorAll("text, p, dd, td, th, li, output, span")];
  return [...texts.map((one) => one.textContent), ...words].join(" | ");
}"""
INSTRUCTIONS = """(host) => [...host.querySelectorAll(".tfx-ask, .tfx-prompt")]
  .filter((node) => node.checkVisibility())
  .map((node) => node.innerText).join(" ")"""
# whether the picture in which the answer is given is the one that a phone keeps in view
PINNED = """(host) => {
  const asked = host.querySelector(".tfx-handle[data-ghost], .tfx-board");
  return !asked || Boolean(asked.closest("[data-lead]"));
}"""
QUESTIONS = "(host) => host.tfviz.questions()"
# code, whose width counts nowhere, because it scrolls or is cut, and brackets that grow
SYSTEM = "code, pre, .yom-bad .tfx-button, mo[stretchy=true]"
# the nodes that hold a text of their own, kept for `foreign`: what they say, and whether it is the
# first of its look that has one of its letters
TEXTS = """([host, system]) => {
  const own = (node) =>
    [...node.childNodes].map((x) => (x.nodeType === 3 ? x.data : "")).join("").trim();
  window.tfvizTexts = [...host.querySelectorAll(".tfx *")].filter(
    (node) => own(node) && node.checkVisibility() && !node.closest(system),
  );
  const seen = new Set();
  return tfvizTexts.map((node) => {
    const { font, fontVariant, fontFeatureSettings, textTransform } = getComputedStyle(node);
    const look = [font, fontVariant, fontFeatureSettings, textTransform].join();
    const before = seen.size;
    for (const letter of own(node)) seen.add(look + letter);
    return [node.textContent, seen.size > before];
  });
}"""
TYPED = re.compile(r"(?<![^\W_])[^\W_]_[^\W_]|[^\W_]\^[^\W_]|\$")  # m_a, e^s, $d$
# what the pictures, sentences, formulas, tables and readouts say, each with its place; controls and
# the ticks of axes say numbers of their own
TOLD = """(host) => {
  const told = ".tfx-readout dd, .tfx-table td, .tfx-marks text, .tfx p, .tfx li, .tfx code";
  const beside = ".tfx-questions, .tfx-prompt, .tfx-controls, .tfx-motion, .tfx-footer, .tfx-axes";
  const tables = [...host.querySelectorAll("table")];
  const where = (node) => {
    const label = node.closest(".tfx-readout")?.querySelector("dt").textContent;
    const row = node.closest("tr")?.rowIndex;
    if (label) return label;
    return row && `table ${tables.indexOf(node.closest("table"))}, cell ${row}, ${node.cellIndex}`;
  };
  return [...host.querySelectorAll(told)]
    .filter((node) => node.checkVisibility() && !node.closest(beside))
    .map((node) => [where(node), node.textContent]);
}"""
FIRST = """(host) => {
  host.dispatchEvent(new CustomEvent("tfviz:show", { detail: {} }));
  host.tfviz.paint();
}"""


def plain(text: str) -> str:
    return re.sub(r"[\s\u202f\u2009]+", " ", text)


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def unsaid(question: dict[str, Any], said: str) -> str:
    """What is wrong with a state in which the question is answered."""
    name, text = question["name"], plain(question["text"] or "")
    if question["open"]:
        return ""
    if not alike(question["truth"], question["now"]):
        return f"{name}: the answer is {text}, and the state shown makes it {question['now']}"
    if question["kind"] in ("chips", "curve"):
        return ""
    number = re.match(r"−?[\d.,  ]*\d( %)?", text)
    words = {text, text.strip("“”"), number[0] if number else text}
    if not any(re.search(rf"(?<![\d.]){re.escape(x)}(?![\d])", said) for x in words):
        return f"{name}: nothing beside the box says {text}"
    return ""


def foreign(page: Any) -> list[str]:
    """The texts of the explorer that are set in a face of the system, and those
    that show mathematics as it is typed."""
    host = page.locator(".tfviz-explorer").element_handle()
    texts = page.evaluate(TEXTS, [host, SYSTEM])
    found = [f"mathematics as it is typed: {text}" for text, _ in texts if TYPED.search(text)]
    tools = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        tools.send(f"{domain}.enable")
    tools.send("DOM.getDocument", {"depth": 0})
    for n, text in ((n, text) for n, (text, first) in enumerate(texts) if first):
        node = tools.send("Runtime.evaluate", {"expression": f"tfvizTexts[{n}]"})["result"]
        asked = tools.send("DOM.requestNode", {"objectId": node["objectId"]})
        for font in tools.send("CSS.getPlatformFontsForNode", asked)["fonts"]:
            if not font["isCustomFont"]:
                found.append(f"set in the system's {font['familyName']}: {text}")
    tools.detach()
    return found


def given_away(first: Any, answered: Any, questions: Any) -> list[str]:
    """What is hidden and stands elsewhere all the same: `first` is told while the questions are
    open, `answered` in the same state once they are answered.

    One digit says nothing, and neither does a number that the question itself names.
    """
    hidden = {place for place, text in first if place and text.strip() == "?"}
    values = {place: text for place, text in answered if place in hidden}
    values |= {one["name"]: one["text"] for one in questions if one["kind"] != "curve"}
    asked = " ".join(one["question"] for one in questions)
    named = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", plain(asked))}
    found = []
    for place, value in values.items():
        forms = [form for form in written(plain(value)) if number_of(form) not in named]
        for elsewhere in (plain(text) for _, text in first):
            if any(stands(form, elsewhere) for form in forms):
                found.append(f"{place} is hidden, and it says: {elsewhere}")
    return found


def written(value: str) -> list[str]:
    """The ways to write a value of two or more digits: as it is, or without its unit."""
    number = re.fullmatch(r"(−?[\d ]*\d(?:\.\d+)?)(?: [^\W\d]+| %)?", value.strip())
    if len(re.findall(r"\d", value)) < 2:
        return []
    if not number:
        return [value.strip()]
    share = f"{float(number[1]) / 100:.2f}" if value.endswith("%") else number[1]
    return [number[1], share, share.removeprefix("0")]


def number_of(form: str) -> float | None:
    with contextlib.suppress(ValueError):
        return float(form.replace(" ", "").replace("−", "-"))
    return None


def stands(value: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\d.,−])(?<!\d ){re.escape(value)}(?!\d|\.\d)", text))


def violations(page: Any) -> list[str]:
    """The laws that the explorer of this page breaks, one sentence each; it is left answered."""
    host, found = page.locator(".tfviz-explorer"), []
    page.emulate_media(reduced_motion="reduce")
    show_me = page.get_by_role("button", name="just show me")
    again = page.get_by_role("button", name="ask me again")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        while again.count():
            again.first.click()
        page.evaluate("scrollTo(0, 0)")
        page.evaluate(AT_REST)
        kept, high = host.evaluate(ROOM)
        if not -1 <= kept - high <= BLANK:
            found.append(f"at {width}: {high:.0f} pixels high, {kept:.0f} are kept")
        if width == 1280:
            found += host.evaluate(EMPTY)
            found += host.evaluate(HANDLES)
            while again.count():
                again.first.click()
        elif not host.evaluate(PINNED):
            found.append("a phone pins another picture than the one to answer in")
        words, first = host.evaluate(INSTRUCTIONS), host.evaluate(TOLD)
        before = {name: (x, y) for name, x, y in host.evaluate(PLACES)}
        while show_me.count():
            show_me.first.click()
        page.evaluate(AT_REST)
        for name, x, y in host.evaluate(PLACES):
            left, top = before.get(name, (x, y))
            if max(abs(x - left), abs(y - top)) > MOVED:
                moved = f"{x - left:.0f}, {y - top:.0f}"
                found.append(f"at {width}: the answer moves {name.rsplit(' ', 1)[0]} by {moved}")
                break
        if width == 390:
            words += host.evaluate(INSTRUCTIONS)
            if keys := KEYS_ON_A_PHONE.search(words):
                found.append(f"a phone is told of keys or a mouse: {keys[0]}")
        else:
            found += foreign(page)
            said = plain(host.evaluate(SAID))
            questions = host.evaluate(QUESTIONS)
            found += filter(None, (unsaid(one, said) for one in questions))
            host.evaluate(FIRST)
            found += given_away(first, host.evaluate(TOLD), questions)
    return found
