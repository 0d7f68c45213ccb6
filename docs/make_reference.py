"""Write docs/tables.md and docs/configuration.md from the declarations that the code runs on.

python docs/make_reference.py            write them
python docs/make_reference.py --check    fail when one is out of date
"""

from __future__ import annotations

import argparse
from pathlib import Path

from everest_pipelines.lake.columns import Kind
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines.text.settings import KNOWN_VARIABLES, SETTINGS

HERE = Path(__file__).resolve().parent

TABLES_HEAD = """\
# Tables

<!-- Written by docs/make_reference.py; do not edit. -->

`everest sql` and `everest.duckdb` show these of one generation. All times are UTC, to the
microsecond; days are days in the lake's zone. Partitioned tables have one Parquet file for each day
and project, and carry both as the columns `day` and `project`. Operational tables say how the
work stands; they are no function of the transcripts alone.

Two views come on top: `lessons_now`, the lessons that a reader sees, and `mutations`, the audit
trail of ledger entries and lesson revisions. [Worked queries](sql.md).
"""
CONFIGURATION_HEAD = """\
# Configuration

<!-- Written by docs/make_reference.py; do not edit. -->

A setting is read from its variable, else from `config.toml` in the home, else it has its default.
An unknown key or `EVEREST_…` variable is an error that names the nearest valid one; hooks ignore
it and log it. `everest config` shows what is in force and where each value comes from.

`EVEREST_TZ` and `EVEREST_START` are read at the first run and written into the lake. A later
difference is an error; `everest rezone` moves every turn to its new day.
"""


def tables() -> str:
    """The page of every table and column."""
    lines = [TABLES_HEAD]
    words = {
        Kind.PARTITIONED: "one file a day and project",
        Kind.OPERATIONAL: "operational, one file",
        Kind.PUBLISHED: "in generations only",
    }
    for spec in TABLES.values():
        order = ", ".join(f"`{name}`" for name in spec.key)
        lines += [f"## {spec.name}", "", spec.doc, ""]
        lines += [f"Version {spec.version}; {words[spec.kind]}; sorted by {order}.", ""]
        lines += ["| column | type | what it is |", "|---|---|---|"]
        for column in spec.columns:
            null = " or null" if column.nullable else ""
            kind = _type(spec.published_schema.field(column.name).type)
            lines.append(f"| `{column.name}` | {kind}{null} | {column.doc} |")
        lines.append("")
    return "\n".join(lines)


def _type(type_: object) -> str:
    text = str(type_)
    if text.startswith("list<"):
        return "list of struct" if "struct" in text else "list of text"
    names = {
        "string": "text",
        "int64": "integer",
        "double": "number",
        "bool": "boolean",
        "binary": "bytes",
        "date32[day]": "day",
        "timestamp[us, tz=UTC]": "time",
    }
    return names.get(text, text)


def configuration() -> str:
    """The page of every setting."""
    lines = [CONFIGURATION_HEAD]
    lines += ["| key | variable | default | value | what it does |", "|---|---|---|---|---|"]
    for setting in SETTINGS:
        key = f"`{setting.name}`" if setting.in_file else "-"
        default = "-" if setting.default is None else f"`{str(setting.default).lower()}`"
        if setting.default is not None and isinstance(setting.default, str):
            default = f"`{setting.default}`"
        lines.append(
            f"| {key} | `{setting.variable}` | {default} | {setting.kind} | {setting.doc} |"
        )
    known = ", ".join(f"`{name}`" for name in sorted(KNOWN_VARIABLES))
    lines += ["", f"Also known, and no settings: {known}.", ""]
    return "\n".join(lines)


PAGES = {"tables.md": tables, "configuration.md": configuration}


def outdated() -> list[str]:
    """The names of pages that differ from the declarations."""
    return [
        name
        for name, page in PAGES.items()
        if not (HERE / name).exists() or (HERE / name).read_text(encoding="utf-8") != page()
    ]


def main() -> int:
    """Write the pages, or with ``--check`` compare them."""
    parser = argparse.ArgumentParser(description="The reference pages.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = outdated()
    if check:
        for name in stale:
            print(f"docs/{name} is out of date: run make docs")
        return int(bool(stale))
    for name in stale:
        (HERE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
