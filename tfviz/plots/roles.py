"""The meaning of colour, in one place for Python.

A colour says what a thing *is*: a query, a key, a value, or a pair that is kept. The same values
stand in `book/assets/css/roles.css` for the pages; a test compares the two files.
"""

from typing import Literal, get_args

Role = Literal["query", "key", "value", "attention", "ink", "page", "grid", "muted"]
ROLES: tuple[Role, ...] = get_args(Role)

LIGHT: dict[Role, str] = {
    "query": "#A34C04",
    "key": "#304172",
    "value": "#077D65",
    "attention": "#9C32ED",
    "ink": "#1B2028",
    "page": "#FFFFFF",
    "grid": "#D3D8E0",
    "muted": "#5A6472",
}

DARK: dict[Role, str] = {
    "query": "#F27317",
    "key": "#A8D4FC",
    "value": "#1AB7A3",
    "attention": "#D279FA",
    "ink": "#E4E9F0",
    "page": "#14181E",
    "grid": "#39424E",
    "muted": "#9DA8B6",
}


def variable(role: Role) -> str:
    """The CSS variable of a role: `--tfviz-query`."""
    return f"--tfviz-{role}"


def css(role: Role) -> str:
    """A role as a CSS colour that follows the theme and falls back to the light value.

    Ink is `currentColor`, so that text is readable on any host page, also one without our
    style sheet.
    """
    return "currentColor" if role == "ink" else f"var({variable(role)}, {LIGHT[role]})"


def notebook_css() -> str:
    """Dark values for notebooks, which have no style sheet of ours: JupyterLab, Colab, VS Code."""
    hosts = ('[data-jp-theme-light="false"]', "html[theme=dark]", "body.vscode-dark")
    values = ";".join(f"{variable(role)}:{DARK[role]}" for role in ROLES)
    return ",".join(f"{host} .tfviz-figure" for host in hosts) + "{" + values + "}"
