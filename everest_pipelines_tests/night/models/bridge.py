"""A server on loopback that speaks Ollama's routes over real models, and fails when told to."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Embed = Callable[[list[str]], list[list[float]]]
Chat = Callable[[list[dict[str, str]], dict[str, Any] | None], str]


@dataclass
class Bridge:
    """``faults``: for the next requests of a route, a status, "hang", "torn", "rows" or "nan"."""

    embed: Embed | None = None
    chat: Chat | None = None
    digests: dict[str, str] = field(default_factory=dict)
    pullable: dict[str, str] = field(default_factory=dict)
    faults: dict[str, deque[object]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    longest: int = 100_000  # characters of a text that the model takes
    hang_seconds: float = 3.0

    def __enter__(self) -> Bridge:
        handler = type("Bound", (_Handler,), {"bridge": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, route: str, *faults: object) -> None:
        self.faults.setdefault(route, deque()).extend(faults)

    def requests(self, route: str) -> list[dict[str, Any]]:
        return [body for name, body in self.asked if name == route]


class _Handler(BaseHTTPRequestHandler):
    bridge: Bridge
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        self._answer("tags" if self.path == "/api/tags" else "?", {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        self._answer(self.path.removeprefix("/api/"), body)

    def _answer(self, route: str, body: dict[str, Any]) -> None:
        self.bridge.asked.append((route, body))
        waiting = self.bridge.faults.get(route)
        fault = waiting.popleft() if waiting else None
        if isinstance(fault, int):
            self._send(fault, {"error": f"told to fail with {fault}"})
        elif fault == "hang":
            time.sleep(self.bridge.hang_seconds)
            self.close_connection = True
        elif fault == "torn":
            self._raw(200, b'{"embeddings": [[0.1, ')
        elif route == "pull":
            self._pull(body, half=fault == "half")
        else:
            getattr(self, f"_{route}", self._unknown)(body, fault)

    def _unknown(self, body: dict[str, Any], fault: object) -> None:
        self._send(404, {"error": "no such route"})

    def _tags(self, body: dict[str, Any], fault: object) -> None:
        models = [
            {"name": name, "model": name, "digest": digest, "size": 1}
            for name, digest in self.bridge.digests.items()
        ]
        self._send(200, {"models": models})

    def _there(self, body: dict[str, Any]) -> bool:
        name = body["model"]
        if name in self.bridge.digests or f"{name}:latest" in self.bridge.digests:
            return True
        self._send(404, {"error": f'model "{name}" not found, try pulling it first'})
        return False

    def _embed(self, body: dict[str, Any], fault: object) -> None:
        if not self._there(body) or self.bridge.embed is None:
            return
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if any(len(text) > self.bridge.longest for text in texts):
            self._send(400, {"error": "the input length exceeds the context length"})
            return
        rows = self.bridge.embed(texts)
        if fault == "rows":
            rows = rows[:-1]
        if fault == "dimension":
            rows = [row[:-1] for row in rows]
        self._send(200, {"model": body["model"], "embeddings": rows})

    def _chat(self, body: dict[str, Any], fault: object) -> None:
        if not self._there(body) or self.bridge.chat is None:
            return
        said = self.bridge.chat(body["messages"], body.get("format"))
        message = {"role": "assistant", "content": said}
        self._send(200, {"model": body["model"], "message": message, "done": True})

    def _pull(self, body: dict[str, Any], *, half: bool) -> None:
        name = body["model"]
        known = self.bridge.pullable.get(name)
        steps: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if known is None:
            steps.append({"error": "pull model manifest: file does not exist"})
        else:
            steps += [{"status": "pulling", "total": 1000, "completed": n} for n in (0, 250, 500)]
            if half:
                steps.append({"error": "max retries exceeded: EOF"})
            else:
                steps += [{"status": "pulling", "total": 1000, "completed": 1000}]
                steps += [{"status": "success"}]
                self.bridge.digests[f"{name}:latest" if ":" not in name else name] = known
        lines = "".join(json.dumps(step) + "\n" for step in steps)
        self._raw(200, lines.encode(), kind="application/x-ndjson")

    def _send(self, status: int, body: dict[str, Any]) -> None:
        self._raw(status, json.dumps(body).encode())

    def _raw(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
