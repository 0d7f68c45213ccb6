"""A headless browser, driven over its own debugging protocol: enough to look at a page."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--window-size=1600,1000",
)


def find() -> str | None:
    """The browser's program, or None when there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. `errors` gathers what went wrong in it since it was opened."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._graphql: dict[str, str] = {}
        self.answers = 0  # GraphQL answers that were looked at
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its result. Raises RuntimeError when it is refused."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def open(self, address: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=address)

    def text(self) -> str:
        """The words on the page."""
        found = self.call("Runtime.evaluate", expression="document.body.innerText")
        return str(found["result"].get("value", ""))

    def wait_for(self, *words: str, seconds: float = 45) -> str:
        """The page's text once it holds all `words`. Raises AssertionError when it never does."""
        until = time.monotonic() + seconds
        text = ""
        while time.monotonic() < until:
            text = self.text()
            self._read_graphql()
            if all(word in text for word in words):
                return text
            time.sleep(0.3)
        missing = [word for word in words if word not in text]
        raise AssertionError(f"the page never showed {missing}; it shows: {text[:1500]}")

    def screenshot(self, path: Path) -> None:
        """Save what the page looks like as a PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details)))
        elif method == "Network.responseReceived" and "/graphql" in parameters["response"]["url"]:
            self._graphql[parameters["requestId"]] = "waiting"
            if parameters["response"]["status"] >= 400:
                self.errors.append(f"GraphQL answered {parameters['response']['status']}")
        elif method == "Network.loadingFinished" and parameters["requestId"] in self._graphql:
            self._graphql[parameters["requestId"]] = "there"

    def _read_graphql(self) -> None:
        for request in [one for one, state in self._graphql.items() if state == "there"]:
            del self._graphql[request]
            try:
                body = self.call("Network.getResponseBody", requestId=request)["body"]
            except RuntimeError:
                continue  # the page has moved on and let it go
            self.answers += 1
            answer = json.loads(body)
            for one in answer if isinstance(answer, list) else [answer]:
                self.errors += [str(error) for error in one.get("errors") or ()]
                self.errors += _python_errors(one.get("data"))


def _python_errors(data: Any) -> list[str]:
    if isinstance(data, dict):
        own = [str(data.get("message"))] if data.get("__typename") == "PythonError" else []
        return own + [error for one in data.values() for error in _python_errors(one)]
    if isinstance(data, list):
        return [error for one in data for error in _python_errors(one)]
    return []


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start the browser with a profile of its own and open one tab."""
    from websockets.sync.client import connect

    profile.mkdir(parents=True, exist_ok=True)
    (profile / "DevToolsActivePort").unlink(missing_ok=True)  # of an earlier browser
    child = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = _port(profile / "DevToolsActivePort", child)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=20) as answer:
            tabs = json.load(answer)
        address = next(one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page")
        with connect(address, max_size=None, open_timeout=20) as socket:
            yield Page(socket)
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _port(file: Path, child: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + 40
    while time.monotonic() < until and child.poll() is None:
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.1)
    raise RuntimeError("the browser did not start")
