"""``everest sql``: views in memory over one resolved generation; a night disturbs it not."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from everest_pipelines.cli.context import answer, opened, tell
from everest_pipelines.text.errors import CallerError

GAP = 2  # spaces between two columns
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def run(arguments: Namespace) -> int:
    """Run one query and show its rows."""
    import duckdb

    from everest_pipelines.lake.views import connect

    place, _ = opened()
    connection = connect(place)
    try:
        if not connection.extract_statements(arguments.query):
            raise CallerError("The query says nothing.", 'everest sql "show tables"')
        result = connection.execute(arguments.query)
        columns = [str(column[0]) for column in result.description or ()]
        rows: list[tuple[Any, ...]] = result.fetchmany(arguments.limit + 1) if columns else []
    except duckdb.Error as error:
        first = str(error).strip().splitlines()
        raise CallerError(" ".join(first[:3]), 'everest sql "show tables"') from error
    finally:
        connection.close()
    more = len(rows) > arguments.limit
    rows = rows[: arguments.limit]
    if arguments.json:
        answer({"columns": columns, "rows": [list(row) for row in rows], "more": more})
    else:
        show = on_terminal if sys.stdout.isatty() else tab_separated
        for line in show(columns, rows) if columns else ():
            print(line)
        if more:
            tell(f"… more rows; --limit shows more than {arguments.limit}.")
    return 0


def tab_separated(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """A header and a line a row; a tab, a line break or a backslash in a value is escaped."""
    return [
        "\t".join(_text(value).translate(_ESCAPES) for value in row) for row in (columns, *rows)
    ]


def on_terminal(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """A table where it fits into the terminal, else a line a value; nothing is cut."""
    from rich.cells import cell_len

    from everest_pipelines.recall.format import plain

    def padded(cells: Sequence[str], widths: Sequence[int]) -> str:
        pieces = [
            text + " " * (width - cell_len(text)) for text, width in zip(cells, widths, strict=True)
        ]
        return (" " * GAP).join(pieces).rstrip()

    lines = [[plain(_text(value)) for value in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) <= shutil.get_terminal_size().columns:
        return [
            padded(lines[0], widths),
            padded(["─" * width for width in widths], widths),
            *(padded(line, widths) for line in lines[1:]),
        ]
    name = max(cell_len(column) for column in lines[0])
    found: list[str] = []
    for line in lines[1:]:
        found += [""] if found else []
        for column, text in zip(lines[0], line, strict=True):
            found.append(padded([column, text], [name, cell_len(text)]))
    return found


def _text(value: object) -> str:
    return "" if value is None else str(value)
