"""What the style sheets around an explorer may change in it: nothing.

An explorer stands in pages that were not made for it: JupyterLab, Colab, VS Code, a blog. Their
style sheets speak of tags ("dt floats to the left") and mean their own texts.
"""

from __future__ import annotations

from typing import Any

from tfviz.explorers import base

# as a host would write them, in front of ours; div and span are nobody's text
TAGS = (
    *("a", "b", "button", "caption", "code", "dd", "details", "dl", "dt", "em", "fieldset"),
    *("figcaption", "figure", "h3", "h4", "hr", "i", "input", "kbd", "label", "legend", "li"),
    *("ol", "optgroup", "option", "output", "p", "pre", "select", "small", "strong", "sub"),
    *("summary", "sup", "table", "tbody", "td", "textarea", "th", "thead", "tr", "ul"),
)
RULE = """ {
  float: left; clear: both; position: relative; display: block; width: 20%; min-width: 3rem;
  max-width: 40%; height: 3rem; min-height: 2rem; max-height: 9rem; margin: 7px; padding: 7px;
  overflow: auto; border: 3px solid red; border-radius: 9px; border-collapse: collapse;
  border-spacing: 5px; background: pink; color: red; font: italic 700 9px/3 monospace;
  letter-spacing: 2px; list-style: square; opacity: 0.5; table-layout: fixed; text-align: right;
  text-decoration: underline; text-indent: 3em; text-transform: uppercase; vertical-align: super;
  white-space: pre; word-break: break-all; box-shadow: 0 0 3px red; caption-side: bottom;
}"""
AROUND = """.host { font-style: italic; font-weight: 700; letter-spacing: 2px; line-height: 3;
  text-align: right; text-indent: 3em; text-transform: uppercase; white-space: pre;
  word-break: break-all; }"""
HOSTILE = AROUND + "".join(f".host {tag}{RULE}" for tag in TAGS)

KIT = base.kit()[1]

# what each element of the explorer computes to, by its way from the root
COMPUTED = """(host, names) => {
  const root = host.matches(".tfx") ? host : host.querySelector(".tfx");
  const found = {};
  const visit = (node, way) => {
    if (node.closest("svg")) return;
    const style = getComputedStyle(node);
    found[way] = names.map((name) => style.getPropertyValue(name));
    [...node.children].forEach((child, n) =>
      visit(child, `${way} > ${child.localName}.${child.className}:${n}`),
    );
  };
  visit(root, "");
  return found;
}"""
# without faces and colours, which may be the host's, and without sizes, which follow from these
NAMES = (
    *("grid-auto-flow", "grid-column-start", "order", "align-items", "justify-self", "clip-path"),
    *(
        "box-sizing",
        "float",
        "clear",
        "position",
        "display",
        "max-width",
        "max-height",
    ),
    *("margin-left", "margin-right", "margin-top", "margin-bottom"),
    *("padding-left", "padding-right", "padding-top", "padding-bottom"),
    *(
        "overflow-x",
        "overflow-y",
        "border-left-width",
        "border-top-width",
        "border-top-left-radius",
    ),
    *("border-collapse", "border-spacing", "font-style"),
    *("font-weight", "font-size", "line-height", "letter-spacing", "list-style-type", "opacity"),
    *("table-layout", "text-align", "text-decoration-line", "text-indent", "text-transform"),
    *("vertical-align", "white-space", "word-break", "box-shadow", "caption-side"),
)
MORE = (
    "min-width",
    "background-color",
    "color",
    "font-family",
    "width",
    "height",
    "grid-template-columns",
)

Styles = dict[str, dict[str, str]]


def computed(host: Any, *more: str) -> Styles:
    """The styles of an explorer's elements, by their way from the root; `host` is its host."""
    names = [*NAMES, *more]
    return {
        way: dict(zip(names, values, strict=True))
        for way, values in host.evaluate(COMPUTED, names).items()
    }


def different(before: Styles, after: Styles) -> list[str]:
    """What is not as before, a line each."""
    return [
        f"{way}: {name} is {after[way][name]}, not {value}"
        for way in before.keys() & after.keys()
        for name, value in before[way].items()
        if after[way][name] != value
    ]


def in_a_hostile_page(host: Any) -> list[str]:
    """What changes in the explorer when the page around it has a style for every tag, and when
    another explorer follows: in JupyterLab each brings the kit's style sheet once more."""
    before = computed(host, *MORE)
    around = host.page.add_style_tag(content=HOSTILE)
    around.evaluate("""(style) => {
      document.head.prepend(style);
      document.body.classList.add("host");
    }""")
    once_more = host.page.add_style_tag(content=KIT)
    after = computed(host, *MORE)
    once_more.evaluate("(style) => style.remove()")
    around.evaluate("""(style) => {
      style.remove();
      document.body.classList.remove("host");
    }""")
    return different(before, after)
