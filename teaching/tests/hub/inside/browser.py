"""What a student's browser does on the hub: pages, cookies, forms, terminals. No other rights."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import requests
import websocket

HUB = "http://127.0.0.1:8000"
SECONDS = 120  # a limit for whatever we wait for; nothing here takes long


class Browser:
    def __init__(self, user: str, hub: str = HUB) -> None:
        self.user, self.hub = user, hub
        self.session = requests.Session()

    def url(self, path: str, user: str | None = None) -> str:
        return f"{self.hub}/user/{user or self.user}/{path}"

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        return self.session.request(method, url, timeout=SECONDS, **options)

    def token(self, path: str) -> str:
        """The forms' token that the server of this path set as a cookie."""
        found = [c.value for c in self.session.cookies if c.name == "_xsrf" and c.path == path]
        return str(found[-1])

    def log_in(self, password: str) -> requests.Response:
        self.request("GET", f"{self.hub}/hub/login")
        form = {"username": self.user, "password": password, "_xsrf": self.token("/hub/")}
        return self.request("POST", f"{self.hub}/hub/login", data=form)

    def start(self) -> None:
        """Ask for a server of one's own, and wait until JupyterLab answers."""
        self.request("GET", f"{self.hub}/hub/spawn")
        end = time.monotonic() + SECONDS
        while True:
            page = self.request("GET", self.url("lab"))
            if page.ok and page.url.startswith(self.url("lab")):
                return
            assert time.monotonic() < end, (
                f"no server for {self.user}: {page.status_code} {page.url}\n"
                f"the hub says:\n{Path('/var/log/hub').read_text()[-4000:]}"
            )
            time.sleep(0.2)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.request("GET", self.url(path), **options)

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"X-XSRFToken": self.token(f"/user/{self.user}/")}
        return self.request(method, self.url(path), headers=headers, **options)

    def assignment(self, action: str, course: str, name: str) -> list[dict[str, Any]]:
        """Press fetch, submit or fetch_feedback in the list of assignments; the list afterwards."""
        form = {"course_id": course, "assignment_id": name}
        answer = self.send("POST", f"assignments/{action}", data=form)
        answer.raise_for_status()
        said = answer.json()
        assert said["success"], said["value"]
        return list(said["value"])

    def read(self, path: str) -> Any:
        """The content of a file in the home folder; a notebook as nested dictionaries."""
        answer = self.get(f"api/contents/{path}")
        answer.raise_for_status()
        return answer.json()["content"]

    def write(self, path: str, notebook: Any) -> None:
        body = {"type": "notebook", "format": "json", "content": notebook}
        self.send("PUT", f"api/contents/{path}", json=body).raise_for_status()

    def run(self, command: str) -> str:
        """Type a command into a terminal of JupyterLab; what it prints."""
        name = self.send("POST", "api/terminals").json()["name"]
        cookies = self.session.cookies.get_dict(path=f"/user/{self.user}/")
        cookies |= self.session.cookies.get_dict(path="/")
        connection = websocket.create_connection(
            self.url(f"terminals/websocket/{name}").replace("http", "ws", 1),
            cookie="; ".join(f"{key}={value}" for key, value in cookies.items()),
            header={"X-XSRFToken": self.token(f"/user/{self.user}/")},
            origin=self.hub,
            timeout=SECONDS,
        )
        a, b = uuid.uuid4().hex, uuid.uuid4().hex
        say = f"echo {a}''{b}"  # so that the echo of what is typed is not taken for it
        typed = f"stty -echo; {say}; {{ {command}\n}} 2>&1 < /dev/null; {say}\n"
        connection.send(json.dumps(["stdin", typed]))
        shown, end = "", time.monotonic() + SECONDS
        while shown.count(a + b) < 2:
            assert time.monotonic() < end, f"{command} of {self.user} does not end: {shown}"
            kind, *text = json.loads(connection.recv())
            shown += text[0] if kind == "stdout" else ""
        connection.close()
        self.send("DELETE", f"api/terminals/{name}")
        return shown.split(a + b)[1].replace("\r\n", "\n").strip()
