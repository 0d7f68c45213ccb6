"""The edge: arguments in, exit code out; every known error is translated here, once."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

from everest_pipelines.cli.commands import parser
from everest_pipelines.text.errors import EverestError, SettingsError

INTERRUPTED = 130  # 128 + SIGINT, as shells expect
NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is done; 1 means that something was left behind; the codes of known errors are those of
    ``text.errors``; 130 is Ctrl-C. What was found goes to stdout, everything else to stderr.
    """
    arguments = parser().parse_args(argv)
    module, _, function = str(arguments.target).partition(":")
    try:
        run = getattr(importlib.import_module(f"everest_pipelines.cli.{module}"), function)
        return int(run(arguments))
    except EverestError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to resume.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as in `everest lessons | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in NO_ACCESS:
            raise
        refused = SettingsError(f"{error.filename or 'A file'}: {error.strerror}.")
        _complain(refused)
        return refused.exit_code


def _complain(error: EverestError) -> None:
    print(f"everest: {error.message}", file=sys.stderr)
    if error.next_command:
        from everest_pipelines.cli.context import as_typed

        print(f"Next: {as_typed(error.next_command)}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
