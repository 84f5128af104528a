"""Make contact sheets of all explorers as they stand in JupyterLab.

    PYTHONPATH=scripts:tests:book/_ext python scripts/lab_sheet.py [--dark] [EXPLORER …]

Look at them after a change of the kit's style sheets: what is around an explorer there is not ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import chrome
import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import TimeoutError, sync_playwright
from sheet import TILE, TILES, sheet

from tfviz.explorers import ALL

ROOT = Path(__file__).resolve().parents[1]
CALM = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # all cells are in the page, near or not
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
DARK = {"@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Dark"}}
TRIES = 4  # to run a notebook, before it is given up
CELL = """\
from tfviz.explorers import ALL

ALL[{kind!r}].example({view!r})"""


@contextlib.contextmanager
def server(
    command: Sequence[object], home: Path, **environment: str
) -> Iterator[Callable[[str], str]]:
    """Addresses in the JupyterLab that this command starts, each for a path such as
    `tree/some.ipynb`. What it writes for its user stays in `home`."""
    around = {name: x for name, x in os.environ.items() if not name.startswith("JUPYTER")}
    around |= {"HOME": str(home), "JUPYTER_RUNTIME_DIR": str(home / "runtime"), **environment}
    words = [*map(str, command), "--no-browser", f"--ServerApp.port={free_port()}"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(words, env=around, stdout=log, stderr=log)
        try:
            about: dict[str, Any] = {}
            while not about:
                if process.poll() is not None:
                    raise RuntimeError(f"JupyterLab ended:\n{(home / 'log').read_text()[-3000:]}")
                time.sleep(0.1)
                for file in (home / "runtime").glob("jpserver-*.json"):
                    with contextlib.suppress(ValueError):  # it is being written
                        said = json.loads(file.read_text("utf8"))
                        about = said if listens(said["port"]) else {}  # it tells before it listens
            yield lambda path: f"{about['url']}lab/{path}?token={about['token']}"
        finally:
            process.terminate()
            process.wait()


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return not caller.connect_ex(("127.0.0.1", port))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def jupyterlab(folder: Path, dark: bool = False) -> Iterator[Callable[[str], str]]:
    """A plain JupyterLab that shows this folder; its settings and its notes are in there, too."""
    home = folder / ".home"
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(CALM | (DARK if dark else {})), "utf8")
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", f"--ServerApp.root_dir={folder}"]
    known = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with server(
        command, home, JUPYTER_CONFIG_DIR=str(home / "config"), PYTHONPATH=known
    ) as address:
        yield address


KERNEL = """async (name) => {
  const sessions = await (await fetch("/api/sessions")).json();
  const { kernel } = sessions.find(({ path }) => path.endsWith(name)) ?? {};
  return kernel?.connections > 0 && kernel.execution_state === "idle";
}"""


def kernel_waits(page: Any, name: str) -> None:
    """Wait until the kernel of this notebook is there and idle, by what the server says: JupyterLab
    shows a notebook as idle before it has a kernel, and what is run then is lost."""
    page.wait_for_function(KERNEL, arg=name, polling=200)


def hosts(page: Any, address: Callable[[str], str], folder: Path, names: Sequence[str]) -> Any:
    """Explorers, "name" or "name:view" each, in the cells of a notebook that is opened and run: a
    locator of their hosts, once all are ready."""
    cells = []
    for name in names:
        kind, _, view = name.partition(":")
        cells.append(new_code_cell(CELL.format(kind=kind, view=view)))
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(
        new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / "explorers.ipynb"
    )
    ready = page.locator(".jp-OutputArea-output [data-ready]")
    for left in reversed(range(TRIES)):
        page.goto(address("tree/explorers.ipynb"))
        page.locator(".jp-Notebook .jp-CodeCell").nth(len(names) - 1).wait_for()
        kernel_waits(page, "explorers.ipynb")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        try:
            for n in range(len(names)):
                ready.nth(n).wait_for(timeout=None if not left else 60_000)
            break
        except TimeoutError:  # what is asked while JupyterLab connects may be lost
            if not left:
                raise
    return ready


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dark", action="store_true", help="in JupyterLab's dark theme")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "sheet")
    parser.add_argument("explorers", nargs="*", metavar="EXPLORER", help="those alone, by module")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.explorers) - set(ALL)):
        print(f"no explorer is called {', '.join(unknown)}", file=sys.stderr)
        return 2
    path = chrome.find()
    if path is None:
        print(chrome.MISSING, file=sys.stderr)
        return 1
    wanted = asked.explorers or list(ALL)
    names = [f"{kind}:{view}".rstrip(":") for kind in wanted for view in ALL[kind].examples]
    asked.out.mkdir(parents=True, exist_ok=True)
    theme = "dark" if asked.dark else "light"
    colours = ("#111111", "#e6edf3") if asked.dark else ("#ffffff", "#1f2328")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        browser = playwright.chromium.launch(executable_path=path, args=chrome.FLAGS)
        with jupyterlab(folder, asked.dark) as address:
            for number, start in enumerate(range(0, len(names), TILES), 1):
                some = names[start : start + TILES]
                # JupyterLab scrolls inside of the window: what is higher would be cut
                page = browser.new_page(
                    viewport={"width": 1280, "height": 2400}, reduced_motion="reduce"
                )
                page.set_default_timeout(300_000)
                found = hosts(page, address, folder, some)
                pictures = [found.nth(n).screenshot() for n in range(len(some))]
                file = asked.out / f"jupyterlab-{theme}-{number:02}.png"
                sheet(list(zip(some, pictures, strict=True)), TILE[False], *colours).save(file)
                print(file, flush=True)
                page.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
