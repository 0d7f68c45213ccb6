"""A person at a real pseudo-terminal: what they see, and what they type."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import struct
import sys
import time
from collections.abc import Mapping

SECONDS = 30
_RUN = "import sys; from everest_pipelines.cli.main import main; sys.exit(main(sys.argv[1:]))"


class Person:
    """Runs a command with a controlling terminal of its own."""

    def __init__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> None:
        self.seen = ""
        self._read = 0
        self._child, self._terminal = pty.fork()
        if self._child == 0:
            os.execve(
                sys.executable,
                [sys.executable, "-c", _RUN, *arguments],
                {**os.environ, "TERM": "dumb", **(environ or {})},
            )
        import fcntl
        import termios

        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))

    def sees(self, pattern: str) -> re.Match[str]:
        """Waits until the pattern shows after what was seen before."""
        until = time.monotonic() + SECONDS
        while True:
            found = re.compile(pattern).search(self.seen, self._read)
            if found:
                self._read = found.end()
                return found
            assert time.monotonic() < until and self._more(), f"no {pattern!r} in:\n{self.seen}"

    def types(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def decides(self, key: str, *, text: str = "", code: str = "") -> None:
        """Presses a key, answers an edit, and types the challenge (or ``code`` instead of it)."""
        self.sees(r"\[q\]uit ")
        self.types(key)
        if text:
            self.sees("> ")
            self.types(text + "\n")
        shown = self.sees(r"type ([a-z]+) and Enter: ")[1]
        self.types((code or shown) + "\n")

    def ends(self) -> int:
        """Waits for the end; the exit code."""
        while self._more():
            pass
        _, status = os.waitpid(self._child, 0)
        os.close(self._terminal)
        self._child = 0
        return os.waitstatus_to_exitcode(status)

    def leaves(self) -> None:
        """Takes the terminal away, whatever happened before."""
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            os.close(self._terminal)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], SECONDS)
        try:
            piece = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # the other end is closed
            piece = b""
        self.seen += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)
