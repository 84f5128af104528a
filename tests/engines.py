"""Three engines behind one small interface: Chromium, Firefox and WebKit.

A journey that is written once for a `Tab` runs in all of them. Chromium is driven by Playwright, as
in all other tests. Firefox speaks WebDriver BiDi over a WebSocket by itself. WebKitGTK has a driver
of its own, which speaks WebDriver over HTTP; it opens a window, so it gets a screen of its own
(Xvfb). Each browser has a home of its own, which is thrown away.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import patience
import system
from websocket import create_connection

# WebDriver's names of keys that write no character
KEYS = {
    "Backspace": "\ue003",
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Control": "\ue009",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
# The first element of a selector that is seen. It may be followed by the words of a button or a
# link: "#ex-one button >> Run the checks".
FOUND = """
(selector) => {
  const [css, words] = selector.split(" >> ");
  const all = [...document.querySelectorAll(css)].filter((one) => one.checkVisibility());
  return all.find((one) => words === undefined || one.textContent.trim() === words);
}
"""
# Its middle, in view, when it no longer moves and nothing covers it.
MIDDLE = f"""
async (selector) => {{
  const found = ({FOUND})(selector);
  if (!found) return null;
  found.scrollIntoView({{ block: "center", behavior: "instant" }});
  const middle = () => {{
    const box = found.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }};
  const [x, y] = middle();
  await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
  const there = String([x, y]) === String(middle());
  return there && found.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
}}
"""
HEARD = "is heard, and so was all before it"


def until(state: Callable[[], Any], what: str) -> Any:
    """The first value of `state` that is true."""
    limit = patience.seconds()
    end = time.monotonic() + limit
    while not (value := state()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {limit:.0f} s in vain for {what}")
        time.sleep(0.02)
    return value


class Tab(ABC):
    """One tab of a browser: what a reader does in it, and what it says in its console."""

    def __init__(self) -> None:
        self.said: list[str] = []  # errors and warnings
        self.marks = itertools.count()

    @abstractmethod
    def go(self, address: str) -> None:
        """Open a page, and wait until it has loaded."""

    @abstractmethod
    def evaluate(self, function: str, *arguments: Any) -> Any:
        """What a JavaScript function returns, or the promise that it returns comes to."""

    @abstractmethod
    def tap(self, x: float, y: float) -> None:
        """Press and let go the left button of the mouse at a place of the window."""

    @abstractmethod
    def press(self, *keys: str) -> None:
        """Press keys together, and let them go: press("Control", "Enter")."""

    @abstractmethod
    def listen(self) -> None:
        """Let what the console has said arrive in `said`."""

    def complaints(self) -> list[str]:
        """The errors and warnings of all pages since the last call.

        The page says a last word itself, and the answer waits for it: so nothing is still on its
        way, and a console that nobody hears is no clean one.
        """
        mark = f"{next(self.marks)} {HEARD}"
        self.evaluate("(mark) => { console.error(mark); }", mark)

        def heard() -> bool:
            self.listen()
            return any(mark in line for line in self.said)

        until(heard, "the console")
        found = [line for line in self.said if HEARD not in line]
        self.said.clear()
        return found

    def wait(self, function: str, *arguments: Any) -> Any:
        """The first true value of a JavaScript function."""
        return until(lambda: self.evaluate(function, *arguments), f"{function} {arguments}")

    def click(self, selector: str) -> None:
        """Click into the middle of an element; "css >> words" says which one of several."""
        self.tap(*self.wait(MIDDLE, selector))

    def show(self, selector: str) -> None:
        """Bring an element into view."""
        self.wait(MIDDLE, selector)

    def focus(self, selector: str) -> None:
        """Bring an element into view and give it the keyboard."""
        self.show(selector)
        self.evaluate(f"(selector) => ({FOUND})(selector).focus()", selector)

    def write(self, text: str) -> None:
        """Press the keys of a text, one after the other."""
        for letter in text:
            self.press("Enter" if letter == "\n" else letter)

    def text(self, selector: str) -> str:
        """The words of an element, as they are seen."""
        words: str = self.wait(f"(selector) => ({FOUND})(selector)?.innerText", selector)
        return words


# --- Chromium -------------------------------------------------------------------------------------


class ChromiumTab(Tab):
    def __init__(self, page: Any) -> None:
        super().__init__()
        self.page = page
        page.set_default_timeout(patience.milliseconds())
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", self.hear)

    def hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.said.append(message.text)

    def listen(self) -> None:
        self.page.evaluate("null")  # events are handled while an answer is waited for

    def go(self, address: str) -> None:
        self.page.goto(address)

    def evaluate(self, function: str, *arguments: Any) -> Any:
        return self.page.evaluate(f"(all) => ({function})(...all)", list(arguments))

    def tap(self, x: float, y: float) -> None:
        self.page.mouse.click(x, y)

    def press(self, *keys: str) -> None:
        self.page.keyboard.press("+".join("Space" if key == " " else key for key in keys))


@contextmanager
def chromium(browser: Any) -> Iterator[Tab]:
    """A tab of Playwright's browser."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield ChromiumTab(context.new_page())
    context.close()


# --- what both kinds of WebDriver share -----------------------------------------------------------


class WebDriverTab(Tab):
    """A tab that takes the actions of WebDriver, which BiDi has taken over."""

    @abstractmethod
    def act(self, source: dict[str, Any]) -> None:
        """Do what the mouse or the keyboard is told to."""

    def tap(self, x: float, y: float) -> None:
        steps: list[dict[str, Any]] = [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self.act({"type": "pointer", "id": "mouse", "actions": steps})

    def press(self, *keys: str) -> None:
        values = [KEYS.get(key, key) for key in keys]
        steps = [{"type": "keyDown", "value": value} for value in values]
        steps += [{"type": "keyUp", "value": value} for value in reversed(values)]
        self.act({"type": "key", "id": "keyboard", "actions": steps})


@contextmanager
def running(command: list[str], log: Path, **given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes into `log`, ended at last with all that it has started."""
    with log.open("wb") as file:
        program = subprocess.Popen(
            command, stdout=file, stderr=file, start_new_session=True, **given
        )
        try:
            yield program
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGTERM)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()


def at_home(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a browser: a home of its own, and nothing of somebody's desktop."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {"HOME": str(home), "XDG_RUNTIME_DIR": str(home)} | more


def alive(program: subprocess.Popen[bytes], log: Path) -> None:
    if program.poll() is not None:
        words = log.read_text("utf8", "replace")[-2000:]
        raise RuntimeError(f"{program.args!r} ended with {program.returncode}: {words}")


# --- Firefox --------------------------------------------------------------------------------------

# Nothing is fetched that no page asks for, and no window asks anything.
PREFERENCES = {
    "app.normandy.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
}


class FirefoxTab(WebDriverTab):
    def __init__(self, address: str) -> None:
        super().__init__()
        self.socket = create_connection(address, timeout=patience.seconds(), suppress_origin=True)
        self.numbers = itertools.count(1)
        self.send("session.new", capabilities={})
        # in the first tab the keyboard is not the page's
        self.context = self.send("browsingContext.create", type="tab")["context"]
        self.send("session.subscribe", events=["log.entryAdded"])
        size = {"width": 1280, "height": 800}
        self.send("browsingContext.setViewport", context=self.context, viewport=size)

    def send(self, method: str, **parameters: Any) -> Any:
        """What the browser answers; what its console says meanwhile is noted."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message["type"] == "event":
                entry = message["params"]
                if entry["level"] in ("error", "warn"):
                    self.said.append(str(entry["text"]))
            elif message["id"] == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return message["result"]

    def go(self, address: str) -> None:
        self.send("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, function: str, *arguments: Any) -> Any:
        call = f"async () => JSON.stringify(await ({function})(...{json.dumps(arguments)}))"
        answer = self.send(
            "script.callFunction",
            functionDeclaration=call,
            awaitPromise=True,
            target={"context": self.context},
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        value = answer["result"].get("value")
        return value if value is None else json.loads(value)

    def act(self, source: dict[str, Any]) -> None:
        self.send("input.performActions", context=self.context, actions=[source])

    def listen(self) -> None:
        self.send("session.status")  # the answer comes after what was said before it


@contextmanager
def firefox(folder: Path) -> Iterator[Tab]:
    """Firefox ESR without a window."""
    profile, log = folder / "profile", folder / "firefox.log"
    profile.mkdir()
    (profile / "user.js").write_text(
        "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items())
    )
    command = [str(system.firefox()), "--headless", "--no-remote", "--profile", str(profile)]
    command.append("--remote-debugging-port=0")
    with running(command, log, env=at_home(folder)) as program:

        def address() -> str | None:
            alive(program, log)
            found = re.search(r"BiDi listening on (ws://\S+)\s", log.read_text("utf8", "replace"))
            return found and found[1]

        tab = FirefoxTab(f"{until(address, 'Firefox')}/session")
        yield tab
        tab.socket.close()


# --- WebKit ---------------------------------------------------------------------------------------

# WebKit's driver hears no console, so a page is served with this as its first script. What WebKit
# itself says of a page (a file that is missing is noticed, CSS and MathML are not) stays unheard.
WATCH = """<script>
window.complaints = [];
for (const level of ["error", "warn"]) {
  const say = console[level];
  console[level] = (...words) => (window.complaints.push(words.join(" ")), say(...words));
}
addEventListener("error", ({ message, target }) =>
  window.complaints.push(message ?? `${target.src ?? target.href} is not loaded`), true);
addEventListener("unhandledrejection", ({ reason }) => window.complaints.push(String(reason)));
</script>"""


def watched(site: Path, folder: Path, pages: list[str]) -> Path:
    """The same site in another folder, where these pages begin with `WATCH`."""
    those = {str(site / f"{page}.html") for page in pages}

    def put(source: str, target: str) -> None:
        if source in those:
            text = Path(source).read_text("utf8")
            assert text.count("<head>") == 1
            Path(target).write_text(text.replace("<head>", f"<head>{WATCH}"), "utf8")
        else:
            os.symlink(source, target)

    shutil.copytree(site, folder, copy_function=put)
    return folder


class WebKitTab(WebDriverTab):
    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        options = {"binary": str(system.minibrowser()), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        self.address += "/" + self.send("", capabilities=wanted)["sessionId"]
        limit = patience.milliseconds()
        self.send("/timeouts", script=limit, pageLoad=limit)
        self.send("/window/rect", x=0, y=0, width=1280, height=900)

    def send(self, path: str, method: str = "POST", **body: Any) -> Any:
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=patience.seconds()) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{path}: {json.load(error)['value']}") from None

    def go(self, address: str) -> None:
        self.listen()
        self.send("/url", url=address)

    def evaluate(self, function: str, *arguments: Any) -> Any:
        return self.send(
            "/execute/sync", script=f"return ({function})(...arguments)", args=[*arguments]
        )

    def act(self, source: dict[str, Any]) -> None:
        self.send("/actions", actions=[source])

    def listen(self) -> None:
        self.said += self.evaluate("() => (window.complaints ?? []).splice(0)")


@contextmanager
def screen(folder: Path) -> Iterator[str]:
    """The number of a screen that nobody sees."""
    told, log = folder / "screen", folder / "screen.log"
    with told.open("w") as file:
        number = str(file.fileno())
        command = [str(system.xvfb()), "-displayfd", number, "-nolisten", "tcp"]
        command += ["-screen", "0", "1400x1000x24"]
        with running(command, log, pass_fds=[file.fileno()]) as program:

            def display() -> str:
                alive(program, log)
                return told.read_text()

            yield f":{until(display, 'a screen').strip()}"


@contextmanager
def webkit(folder: Path) -> Iterator[Tab]:
    """WebKitGTK's small browser, on a screen that nobody sees."""
    log = folder / "webkit.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(system.webkit_driver()), f"--port={port}"]
    with screen(folder) as display:
        home = at_home(folder, DISPLAY=display, GDK_BACKEND="x11", NO_AT_BRIDGE="1")
        with running(command, log, env=home) as program:

            def listening() -> bool:
                alive(program, log)
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    return True
                return False

            until(listening, "WebKit's driver")
            tab = WebKitTab(f"http://127.0.0.1:{port}/session")
            yield tab
            tab.send("", "DELETE")
