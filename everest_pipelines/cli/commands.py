"""Every command, declared once: its words, its arguments and where its function lives.

The functions are named by text, so that asking for help or recalling a lesson imports no more
than argparse.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

Parser = argparse.ArgumentParser


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is no port from 1 to 65535")
    return port


def _day(text: str) -> str:
    import datetime as dt

    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no day (YYYY-MM-DD)") from None


def _at_least_one(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{count} is less than 1")
    return count


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{share:g} is no number from 0 to 1")
    return share


def _nothing(parser: Parser) -> None:
    """A command without arguments."""


def _json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def _night(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--through", metavar="DAY", help="fold up to this day (YYYY-MM-DD)")
    parser.add_argument("--yes", action="store_true", help="ask nothing before a large import")
    parser.add_argument("--projects", metavar="A,B", help="of a first import, only these projects")
    sample = parser.add_mutually_exclusive_group()
    sample.add_argument(
        "--sample", action="store_true", help="use the bundled sample, in a throw-away home"
    )
    sample.add_argument(
        "--or-sample", action="store_true", help="use the sample when there are no transcripts"
    )


def _up(parser: Parser) -> None:
    parser.add_argument("--port", type=_port, help="port of the UI; a free one when it is taken")


def _sql(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("query", help='for example "select * from lessons_now"')
    parser.add_argument("--limit", type=_at_least_one, default=200, help="rows shown (200)")


def _ignore(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("path", nargs="?", help="a project's directory; without one, list them")
    parser.add_argument("--undo", action="store_true", help="let the project in again")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _setup(parser: Parser) -> None:
    _json(parser)
    parser.add_argument(
        "--agent",
        metavar="NAME",
        action="append",
        default=[],
        help="claude, codex, claude-desktop, cursor, windsurf, gemini or copilot; all by default",
    )
    parser.add_argument("--dry-run", action="store_true", help="show every change, write none")
    parser.add_argument("--undo", action="store_true", help="take out all that was written")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--holdout", type=_share, metavar="SHARE", help="of sessions that hooks leave without"
    )
    parser.add_argument(
        "--render",
        action=argparse.BooleanOptionalAction,
        help="write lessons into the agents' own folders",
    )
    parser.add_argument(
        "--service",
        choices=("none", "resident", "nightly"),
        help="what runs by itself: nothing, `everest up`, or a night a day",
    )


def _uninstall(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--dry-run", action="store_true", help="show every change, write none")
    parser.add_argument("--purge", action="store_true", help="delete the home too")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _ingest(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="transcripts to read now")
    parser.add_argument("--dry-run", action="store_true", help="only say what the files are")


def _publish(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--accept", metavar="GATE", action="append", default=[])
    parser.add_argument("--why", default="", help="the reason, kept in the ledger")


def _rebuild(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _lessons(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--project", metavar="KEY", help="a project key, or the start of one")
    parser.add_argument("--valid-at", metavar="DAY", type=_day, help="those that held on a day")
    parser.add_argument("--known-at", metavar="DAY", type=_day, help="as it was shown on a day")


def _recall(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("query", nargs="+", metavar="WORD")
    parser.add_argument(
        "--project",
        metavar="KEY",
        help="a project key, or the start of one; by default that of this directory",
    )
    parser.add_argument("-k", "--k", type=_at_least_one, default=5, help="at most so many (5)")
    parser.add_argument(
        "--kind",
        choices=("rule", "error", "surprise", "note", "episode"),
        help="only lessons of this kind; episode: what happened, rather than what it taught",
    )
    parser.add_argument(
        "--explain", action="store_true", help="the words in common and what the score is made of"
    )


def _serve(parser: Parser) -> None:
    parser.add_argument(
        "--folder",
        metavar="PATH",
        help="where the agent works, if it names no roots and starts this elsewhere",
    )


def _wrong(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("id", help="the short id in front of the lesson")
    parser.add_argument("--why", default="")


def _review(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="list what waits; decide nothing")
    parser.add_argument("id", nargs="?", help="one lesson, whatever its state")
    parser.add_argument("--project", metavar="KEY", help="a project key, or the start of one")


def _remember(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("text")
    parser.add_argument("--project", metavar="PATH", help="a directory; this one by default")


def _measure(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--since", metavar="DAY", help="first day; 30 days before the last")
    parser.add_argument("--until", metavar="DAY", help="last day; the last published one")
    parser.add_argument("--project", metavar="KEY", help="a project key, or the start of one")


def _model(parser: Parser) -> None:
    _json(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="what is there, change nothing")
    what.add_argument("--model", metavar="NAME", help="embed with this: ollama:NAME, wordllama …")
    what.add_argument("--none", action="store_true", help="use no model")
    what.add_argument("--calibrate", metavar="FILE", help="fit the space on labelled sentences")
    parser.add_argument("--write", metavar="NAME", help="word lessons with this model")


def _rezone(parser: Parser) -> None:
    _json(parser)
    parser.add_argument("--tz", metavar="ZONE", help="for example Europe/Berlin")
    parser.add_argument("--start", metavar="DAY")
    parser.add_argument("--yes", action="store_true", help="do not ask")


@dataclass(frozen=True)
class Command:
    """One command; ``target`` is ``module:function`` below this package."""

    name: str
    words: str
    target: str
    arguments: Callable[[Parser], None] = _nothing


COMMANDS: tuple[Command, ...] = (
    Command("night", "read, fold, publish: the main job, without a daemon", "night:run", _night),
    Command("up", "the UI and the daemon on the loopback address", "up:run", _up),
    Command("status", "what is there, what is missing, what is stale", "state:status", _json),
    Command(
        "doctor", "what is misconfigured, and the command that mends it", "state:doctor", _json
    ),
    Command("lessons", "the lessons as published", "memory:lessons", _lessons),
    Command("recall", "lessons that bear on some words", "memory:recall", _recall),
    Command("wrong", "a lesson is wrong: hide it at once", "wrong:run", _wrong),
    Command("review", "decide what waits: approve, pin, edit, reject", "review:run", _review),
    Command("remember", "tell the memory something yourself", "memory:remember", _remember),
    Command("serve", "answer an agent over MCP on stdin and stdout", "serve:run", _serve),
    Command("morning", "the report of the last night", "memory:morning", _nothing),
    Command("sql", "ask the published tables", "sql:run", _sql),
    Command("measure", "does it help: rates, arms, predictions", "measure:run", _measure),
    Command("model", "choose the local models that embed and word", "model:run", _model),
    Command("paths", "where everything is", "places:paths", _json),
    Command("config", "the settings in force and where each comes from", "places:config", _json),
    Command("setup", "connect the agents: hooks, MCP, files, service", "setup:run", _setup),
    Command("uninstall", "take all of that out again", "setup:uninstall", _uninstall),
    Command("prime", "answer a hook's event on stdin; set up by `everest setup`", "prime:run"),
    Command("on", "let hooks speak again", "places:on", _json),
    Command("off", "silence every hook", "places:off", _json),
    Command("ignore", "keep a project out, or let it in again", "places:ignore", _ignore),
    Command("ingest", "read some transcripts now", "work:ingest", _ingest),
    Command("publish", "publish what is folded; accept a gate", "work:publish", _publish),
    Command("rebuild", "delete all that is derived and fold it again", "work:rebuild", _rebuild),
    Command("rezone", "count days in another zone, or from another day", "work:rezone", _rezone),
)


class _Version(argparse.Action):
    """The installed version, looked up only when it is asked for."""

    def __call__(self, parser: Parser, *_: object) -> None:
        from importlib.metadata import version

        print(f"everest {version('everest-pipelines')}")
        parser.exit()


def parser() -> Parser:
    """The whole command line."""
    root = Parser(
        prog="everest",
        description="Turns the transcripts of coding agents into lessons that agents read.",
    )
    root.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        child = commands.add_parser(command.name, help=command.words, description=command.words)
        command.arguments(child)
        child.set_defaults(target=command.target)
    return root
