"""Every text on the pages that nbgrader serves is text, wherever it comes from.

Names, addresses, ids, titles and parts of addresses stand in pages of formgrader and in feedback.
nbgrader writes them there as they are, so that a name could be a program. Importing this module
mends that in one place for all of them: templates escape what no filter has made HTML, values reach
their scripts as JSON, scripts of the pages add texts as texts, and data is served as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jinja2 import BaseLoader, Environment, FileSystemLoader
from jupyter_server.base.handlers import JupyterHandler
from markupsafe import Markup, escape
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.server_extensions.assignment_list import handlers as assignment_list
from nbgrader.server_extensions.course_list import handlers as course_list
from nbgrader.server_extensions.formgrader import base, handlers
from nbgrader.server_extensions.validate_assignment import handlers as validate_assignment

# --- templates -----------------------------------------------------------------------------------

QUOTED = re.compile(r'= "\{\{ ([\w.]+) \}\}([\w/]*)";')  # a value in a script of a template
SHARED = re.compile(r"<script [^>]*/formgrader/static/js/utils\.js\"></script>")
# jQuery reads a text that it is to append as HTML. nbgrader gives it names: in cells of the table,
# and in messages. And who is called "constructor" or "__proto__" is not in Backbone's lists, since
# every object has such a thing.
SCRIPT = """
<script>
_.extend(Backbone.Collection.prototype, {
    _reset: function () {
        _.extend(this, {length: 0, models: [], _byId: Object.create(null)});
    },
    fetch: (function (fetch) {
        return function (options) {
            return fetch.call(this, _.extend({remove: false}, options));
        };
    })(Backbone.Collection.prototype.fetch)
});
jQuery.fn.append = (function (append) {
    return function () {
        var texts = this.is("#main-table td, .modal-body");
        return append.apply(this, jQuery.map(arguments, function (part) {
            return [texts && typeof part === "string" ? document.createTextNode(part) : part];
        }));
    };
})(jQuery.fn.append);
</script>
"""


class Mended(BaseLoader):
    """nbgrader's templates; values stand in their scripts as JSON, not between quotation marks, and
    its script for all pages has `SCRIPT` behind it."""

    def __init__(self, loader: BaseLoader) -> None:
        self.loader = loader

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, file, fresh = self.loader.get_source(environment, template)
        source = QUOTED.sub(r'= {{ (\1 ~ "\2") | tojson }};', source)
        return SHARED.sub(lambda found: found[0] + SCRIPT, source), file, fresh


TEMPLATES = Environment(loader=Mended(FileSystemLoader(handlers.template_path)), autoescape=True)


def _html(filter_: Callable[..., Any]) -> Callable[..., Markup]:
    """A filter of nbconvert's that gives HTML."""
    return lambda *given, **named: Markup(filter_(*given, **named))


def _as_given(filter_: Callable[[str], str]) -> Callable[[str], str]:
    """A filter of nbconvert's that gives HTML for HTML, and text for text."""
    return lambda text: type(text)(filter_(text))


def _replace(text: Any, old: Any, new: str) -> Markup:
    """Jinja's filter, as nbconvert's templates use it: what takes the place of None is HTML."""
    return escape(str(text)).replace(str(old), Markup(new))


class Exporter(HTMLExporter):
    """nbconvert's, whose templates escape whatever no filter has made HTML."""

    def _create_environment(self) -> Environment:
        made = super()._create_environment()
        assert made.loader
        made.autoescape, made.loader = True, Mended(made.loader)
        for name in ("ansi2html", "clean_html", "escape_html", "escape_html_keep_quotes"):
            made.filters[name] = _html(made.filters[name])
        made.filters["strip_files_prefix"] = _as_given(made.filters["strip_files_prefix"])
        made.filters["replace"] = _replace
        return made

    def _preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb, resources = super()._preprocess(nb, resources)
        if sheets := resources.get("inlining", {}).get("css"):
            resources["inlining"]["css"] = [*map(Markup, sheets)]
        return nb, resources


# --- in the place of nbgrader's own --------------------------------------------------------------


def _render(self: base.BaseHandler, name: str, **about: Any) -> str:
    return TEMPLATES.get_template(name).render(**about)


def _exporter(self: base.BaseHandler) -> Exporter:
    """With the settings of the course that is open, whichever was when the server started."""
    return Exporter(config=self.settings["nbgrader_formgrader"].config)


def _plain(self: JupyterHandler) -> None:
    """What is no page is not read as one: a name in it would be HTML."""
    JupyterHandler.set_default_headers(self)
    self.set_header("Content-Type", "text/plain; charset=UTF-8")


def _policy(self: handlers.SubmissionFilesHandler) -> str:
    """A file of a submission acts, if at all, in a world of its own."""
    return f"{super(handlers.SubmissionFilesHandler, self).content_security_policy}; sandbox"


base.BaseHandler.render = _render
base.BaseHandler.exporter = property(_exporter)
DATA = [
    base.BaseApiHandler,
    *(
        handler
        for module in (assignment_list, course_list, validate_assignment)
        for handler in vars(module).values()
        if isinstance(handler, type) and issubclass(handler, JupyterHandler)
        if handler is not JupyterHandler
    ),
]
handlers.SubmissionFilesHandler.content_security_policy = property(_policy)
for _handler in DATA:
    _handler.set_default_headers = _plain
