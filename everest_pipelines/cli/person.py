"""The human channel: a controlling terminal, no agent around us, and a typed challenge.

Its limit: an agent that drives a terminal of its own, and takes its marks out of the environment,
is not told apart from a person.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from everest_pipelines.text.errors import CallerError

# Set by agents around the commands that they run; none is a setting that a person keeps.
AGENT_VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "COPILOT_CLI",
    "COPILOT_AGENT_SESSION_ID",
    "OPENCODE",
    "OPENCODE_CLIENT",
    "QWEN_CODE",
    "GOOSE_TERMINAL",
    "AUGMENT_AGENT",
    "CLINE_ACTIVE",
    "ROO_ACTIVE",
    "AI_AGENT",
    "AGENT",
)
_LETTERS = "abcdefghkmnpqrstuvwxyz"  # none that reads like another
_CODE_LETTERS = 3


def agent_around(environ: Mapping[str, str]) -> str:
    """The variable by which an agent shows, or an empty text."""
    return next((name for name in AGENT_VARIABLES if environ.get(name)), "")


class Terminal:
    """The controlling terminal: keys are read one by one, without their echo."""

    def __init__(self, device: BinaryIO) -> None:
        import termios

        self._device = device
        self._before = termios.tcgetattr(device)

    def show(self, text: str) -> None:
        """Writes as it is."""
        self._device.write(text.encode("utf-8", "replace"))
        self._device.flush()

    def key(self) -> str:
        """One key, in lower case; "q" when the terminal was closed."""
        pressed = self._device.read(1)
        return pressed.decode("ascii", "replace").lower() if pressed else "q"

    def line(self, question: str) -> str:
        """What is typed up to the end of the line, with its echo."""
        import termios

        termios.tcsetattr(self._device, termios.TCSANOW, self._before)
        try:
            self.show(question)
            typed = bytearray()
            while (sign := self._device.read(1)) not in (b"\n", b""):
                typed += sign
        finally:
            self.listen()
        return typed.decode("utf-8", "replace").strip()

    def listen(self) -> None:
        """From now on keys come one by one; what was typed ahead is kept."""
        import termios
        import tty

        tty.setcbreak(self._device, termios.TCSANOW)

    def leave(self) -> None:
        """The terminal as it was found."""
        import termios

        termios.tcsetattr(self._device, termios.TCSANOW, self._before)

    def challenge(self, what: str) -> bool:
        """Whether the person types the letters shown."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LETTERS))
        return self.line(f"\n  To {what}, type {code} and Enter: ").casefold() == code

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        found = os.get_terminal_size(self._device.fileno())
        return (found.columns or 80, found.lines or 24)


@contextmanager
def terminal(environ: Mapping[str, str]) -> Generator[Terminal]:
    """The person's terminal. Raises CallerError when none, or when an agent is around."""
    agent = agent_around(environ)
    if agent:
        raise CallerError(
            f"Deciding is for the person; {agent} shows that an agent runs this.",
            "everest review, in a terminal of your own",
        )
    nobody = CallerError("Deciding needs a terminal; here it can only be listed.", "everest review")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise nobody
    try:
        device = open("/dev/tty", "r+b", buffering=0)  # noqa: SIM115
    except OSError:
        raise nobody from None
    with device:
        screen = Terminal(device)
        screen.listen()
        try:
            yield screen
        finally:
            screen.leave()
