"""Messages typed while the agent worked: enqueued, delivered, taken back, or never delivered."""

from __future__ import annotations

from msgspec import Struct


class Entry(Struct):
    """One enqueued message and the turn that holds it."""

    turn_id: str
    text: str
    person: bool
    delivered: bool = False
    withdrawn: bool = False
    duplicate_of: str = ""

    def is_undelivered(self) -> bool:
        return not self.delivered and not self.withdrawn


class Queue:
    """Follows the queue operations of a file in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._waiting: list[Entry] = []

    def enqueue(self, turn_id: str, text: str, *, person: bool) -> None:
        """A message begins to wait."""
        entry = Entry(turn_id, squeeze(text), person)
        self.entries.append(entry)
        self._waiting.append(entry)

    def take(self, text: str = "") -> None:
        """dequeue or remove: the named message, else the oldest waiting one, was delivered.

        Some versions never take the harness's notices out again: a person's message goes first.
        """
        wanted = squeeze(text)
        choices = (
            [entry for entry in self._waiting if wanted and entry.text == wanted]
            or [entry for entry in self._waiting if entry.person]
            or self._waiting
        )
        if choices:
            choices[0].delivered = True
            self._waiting.remove(choices[0])

    def take_back(self) -> None:
        """popAll: the person took back all that was waiting."""
        for entry in self._waiting:
            entry.withdrawn = True
        self._waiting.clear()

    def deliver(self, turn_id: str, text: str) -> None:
        """A record brings a person's words: the oldest message with the same words is its copy.

        Several waiting messages may arrive joined, one below the other.
        """
        missing = [
            one for one in self.entries if one.text and not one.duplicate_of and not one.withdrawn
        ]
        if not missing:
            return
        said = squeeze(text)
        same = [one for one in missing if one.text == said][:1]
        joined = f"\n{said}\n"
        for one in same or [entry for entry in missing if f"\n{entry.text}\n" in joined]:
            self._mark(one, turn_id)

    def _mark(self, entry: Entry, turn_id: str) -> None:
        entry.duplicate_of = turn_id
        entry.delivered = True
        if entry in self._waiting:
            self._waiting.remove(entry)


def squeeze(text: str) -> str:
    """The text with its white space folded, line by line."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip("\n")
