"""``everest sql``: views in memory over one resolved generation; a night disturbs it not."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from everest_pipelines.cli.context import answer, opened, tell
from everest_pipelines.text.errors import CallerError

WIDEST = 60  # characters of one cell on a terminal


def run(arguments: Namespace) -> int:
    """Run one query and show its rows."""
    import duckdb

    from everest_pipelines.lake.views import connect

    place, _ = opened()
    connection = connect(place)
    try:
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
        _show(columns, rows)
        if more:
            tell(f"… more rows; --limit shows more than {arguments.limit}.")
    return 0


def _show(columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        drawn.add_row(*(Text(_cell(value)) for value in row))
    Console(soft_wrap=False).print(drawn)


def _cell(value: object) -> str:
    from everest_pipelines.recall.format import plain

    text = "" if value is None else plain(str(value))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
