"""What can go wrong, by nature. The edge (CLI, hooks, Dagster) translates once."""

from __future__ import annotations


class EverestError(Exception):
    """The root. The text of the error ends with the next command to type, when there is one."""

    exit_code = 1

    def __init__(self, message: str, next_command: str = "") -> None:
        super().__init__(message, next_command)
        self.message = message
        self.next_command = next_command

    def __str__(self) -> str:
        if self.next_command:
            return f"{self.message} Next: {self.next_command}"
        return self.message


class CallerError(EverestError):
    """The caller asked for something that cannot be: a wrong argument, an unknown name."""

    exit_code = 2


class BusyError(EverestError):
    """Passing: somebody else holds what is needed; the same call works later."""

    exit_code = 3


class MissingError(EverestError):
    """A capability, file or extra that this needs is not there."""

    exit_code = 4


class SettingsError(EverestError):
    """Misconfigured: an unknown key or variable, or a value that does not fit."""

    exit_code = 5


class DamagedError(EverestError):
    """Data on disk is not what was written."""

    exit_code = 6


class ModelError(EverestError):
    """A model did not answer, or not as it should; what needs no model goes on."""

    exit_code = 7
