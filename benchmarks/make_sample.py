"""Make the small sample that ships with the package: three invented projects, eight days.

    python benchmarks/make_sample.py            write everest_pipelines/sample/projects
    python benchmarks/make_sample.py --check    fail when what is there is not what this writes

People, projects and words are invented. The shapes are those of real files: answers streamed
over several lines, parallel bookkeeping records, a refused call with its reason, an
interruption, words queued while the agent works, a compaction, a resumed copy of a session,
a sub-agent's file and a line torn by a crash.
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sample_writer import Tale

HARBOR = "/home/mara/code/harbor-api"
TIDE = "/home/mara/code/tidepool-web"
NOTES = "/home/mara/code/feldnotizen"
TARGET = Path(__file__).resolve().parent.parent / "everest_pipelines" / "sample" / "projects"

NO_MODULE = """\
ImportError while loading conftest '/home/mara/code/harbor-api/tests/conftest.py'.
tests/conftest.py:4: in <module>
    from harbor.app import create_app
E   ModuleNotFoundError: No module named 'harbor'"""
NO_DATABASE = """\
sqlalchemy.exc.OperationalError: (psycopg.OperationalError) connection failed: connection to \
server at "127.0.0.1", port {port} failed: Connection refused
\tIs the server running on that host and accepting TCP/IP connections?"""
PORT_TAKEN = """\
error when starting dev server:
Error: listen EADDRINUSE: address already in use :::{port}
    at Server.setupListenHandle [as _listen2] (node:net:1908:16)"""
OLD_LOCKFILE = """\
 ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is \
not up to date with package.json"""
GO_VET = """\
# feldnotizen/internal/store
internal/store/store.go:{line}:2: declared and not used: err"""


def harbor() -> list[Tale]:
    """A Python service: uv and not pip, real database in tests, issues linked, no pushes."""
    paging = (
        Tale("harbor-paging", HARBOR, "2026-05-04T09:10:00", "fix/paging")
        .human("the /ships endpoint skips the last row of every page, issue 112. find out why")
        .read("harbor/paging.py", "def page(rows, n, size):\n    return rows[n*size:(n+1)*size-1]")
        .edit("harbor/paging.py", "(n+1)*size-1", "(n+1)*size")
        .bash("pytest -q tests/test_paging.py", NO_MODULE, exit_code=4, saying="Running the tests.")
        .bash("pip install -e .", "Successfully installed harbor-0.4.1")
        .human("no, use uv here, not pip. pip installs into the system python and breaks my tools")
        .bash("uv run pytest -q tests/test_paging.py", "6 passed in 0.41s")
        .says("Understood. With `uv run pytest` the six paging tests pass; the slice was short.")
        .human("good, commit it")
        .bash("git commit -am 'Fix short pages'", "[fix/paging 3f1c2aa] Fix short pages")
        .says("Committed as 3f1c2aa on fix/paging.")
        .human("please always link the issue in the commit message, like 'Refs #112'")
        .bash(
            "git commit --amend -m 'Fix short pages\n\nRefs #112'",
            "[fix/paging 88d0e15] Fix short pages",
        )
        .says("Amended: the message now ends with Refs #112.")
        .summary("Fix the short pages of /ships")
    )
    tests = (
        Tale("harbor-berths", HARBOR, "2026-05-05T08:32:00", "feat/berths")
        .human("add GET /berths with a filter by harbour, and tests for it")
        .read("harbor/routes/ships.py", "router = APIRouter(prefix='/ships')")
        .edit("harbor/routes/berths.py", "", "router = APIRouter(prefix='/berths')")
        .edit("tests/test_berths.py", "", "def test_filter(mocker):\n    mocker.patch('harbor.db')")
        .says("The route is there. I mocked the session in the tests, so they need no database.")
        .human(
            "Don't mock the database in tests. In this repo tests always run against the real "
            "postgres from docker compose."
        )
        .edit("tests/test_berths.py", "mocker.patch('harbor.db')", "with session() as db: ...")
        .bash("uv run pytest -q tests/test_berths.py", NO_DATABASE.format(port=5433), exit_code=1)
        .bash("docker compose up -d db", " Container harbor-db-1  Started")
        .bash("uv run pytest -q tests/test_berths.py", "4 passed in 1.92s")
        .says("All four tests pass against the real database.")
        .human("nice. what is in the env file?")
        .bash("cat .env", "DATABASE_URL=postgresql://harbor:not-a-real-pw-93@127.0.0.1:5433/harbor")
        .says("One variable, DATABASE_URL, pointing at the compose database on port 5433.")
    )
    migration = (
        Tale("harbor-migration", HARBOR, "2026-05-07T10:02:00", "feat/draft")
        .human("ships need a draft column (decimal, nullable). write the migration, issue 131")
        .bash("alembic --version", "bash: alembic: command not found", exit_code=127)
        .bash("pip install alembic", "Successfully installed alembic-1.16.2 Mako-1.3.10")
        .human("again: use uv, not pip! 'uv add --dev alembic'")
        .bash("uv add --dev alembic", " + alembic==1.16.2\n + mako==1.3.10")
        .bash("uv run alembic upgrade head", NO_DATABASE.format(port=5434), exit_code=1)
        .bash("docker compose up -d db", " Container harbor-db-1  Started")
        .bash("uv run alembic upgrade head", "Running upgrade 7a1 -> 7a2")
        .says("The migration 7a2 adds ships.draft as a nullable NUMERIC(5,2) and applies cleanly.")
        .human("commit and push")
        .bash("git commit -am 'Add draft of ships\n\nRefs #131'", "[feat/draft 51b77d0] Add draft")
        .refused(
            "git push origin feat/draft:main",
            "never push to main directly. open a pull request instead",
            saying="Pushing to main.",
        )
        .bash("git push -u origin feat/draft && gh pr create --fill", "opened pull request 47")
        .says("Opened pull request 47 instead; main is untouched.")
    )
    resumed = (
        migration.fork("harbor-migration-fork")
        .wait(hours=21, minutes=12)
        .human("the reviewer wants a check constraint: draft must be positive")
        .tool(
            "Edit",
            {"file_path": f"{HARBOR}/migrations/7a2_draft.py", "old_string": "a"},
            "File has not been read yet. Read it first before writing to it.",
            error=True,
        )
        .read("migrations/7a2_draft.py", "op.add_column('ships', sa.Column('draft', sa.Numeric))")
        .edit(
            "migrations/7a2_draft.py", "sa.Numeric)", "sa.Numeric), sa.CheckConstraint('draft>0')"
        )
        .bash("uv run alembic upgrade head", NO_DATABASE.format(port=5433), exit_code=1)
        .bash("docker compose up -d db", " Container harbor-db-1  Started")
        .bash("uv run alembic upgrade head", "Running upgrade 7a1 -> 7a2")
        .says("The constraint is in. I was wrong to expect the table empty: it had two test ships.")
    )
    limits = (
        Tale("harbor-limits", HARBOR, "2026-05-10T16:20:00", "feat/limits")
        .human("add a rate limit of 60 requests a minute per key. issue is 140")
        .edit("harbor/limits.py", "", "LIMIT = 60\n")
        .bash("pytest -q tests/test_limits.py", NO_MODULE, exit_code=4)
        .bash("uv run pytest -q tests/test_limits.py", "5 passed in 0.88s")
        .bash("git commit -am 'Limit requests'", "[feat/limits 0c9ffe1] Limit requests")
        .says("The limiter is in and committed. Shall I open a pull request?")
        .human("you forgot the issue again. every commit message must link the issue: Refs #140")
        .bash("git commit --amend -m 'Limit requests\n\nRefs #140'", "[feat/limits 2ab41c0] Limit")
        .says("Amended, with Refs #140.")
        .human("no need for a PR yet, I want to try it first")
        .says("Fine, I leave the branch as it is.")
    )
    return [paging, tests, migration, resumed, limits]


def tidepool() -> list[Tale]:
    """A TypeScript front end: pnpm and not npm, a generated folder, a port that moves."""
    chart = (
        Tale("tide-chart", TIDE, "2026-05-04T14:05:00", "chart")
        .human("make the tide chart use uPlot instead of the old canvas code")
        .bash("npm install uplot", "added 1 package, and audited 412 packages in 3s")
        .human("we use pnpm here, not npm. npm writes a second lockfile that CI rejects")
        .bash("rm package-lock.json && pnpm add uplot", "dependencies:\n+ uplot 1.6.32")
        .bash("pnpm install --frozen-lockfile", OLD_LOCKFILE, exit_code=1)
        .bash("pnpm install --no-frozen-lockfile && pnpm test", "Tests  31 passed (31)")
        .says("The chart draws with uPlot now; all 31 tests pass.")
    )
    legend = Tale("tide-legend", TIDE, "2026-05-06T13:15:00", "legend").human(
        "add a legend to the chart. look around first where components live"
    )
    explorer = legend.subagent(
        "List the folders that hold React components and say what each is for.",
        "Components live in src/ui (hand written) and src/components (generated from Figma).",
    )
    (
        legend.edit("src/components/Legend.tsx", "", "export const Legend = () => null;")
        .interrupt(tool=True)
        .human("not there! never edit src/components, it is generated. our own code goes to src/ui")
        .edit("src/ui/Legend.tsx", "", "export const Legend = () => null;")
        .bash("pnpm dev", PORT_TAKEN.format(port=5173), exit_code=1)
        .bash(
            "pnpm dev --port 5180",
            "  VITE v7.1.2  ready in 310 ms\n  Local: http://localhost:5180/",
        )
        .says("The legend is in src/ui/Legend.tsx. Port 5173 was taken, so I used 5180.")
        .human("right, 5173 belongs to the other app. use port 5180 for the preview from now on")
        .says("Noted: previews on 5180.")
    )
    tooltip = (
        Tale("tide-tooltip", TIDE, "2026-05-08T09:45:00", "tooltip")
        .human("tooltip on hover with time and height, in metres with one decimal")
        .refused("npm install @floating-ui/react", "pnpm, not npm. how often do I have to say it")
        .bash("pnpm add @floating-ui/react", "dependencies:\n+ @floating-ui/react 0.27.16")
        .bash("pnpm dev", PORT_TAKEN.format(port=5173), exit_code=1)
        .bash("pnpm dev --port 5180", "  Local: http://localhost:5180/")
        .says("The tooltip shows for example '14:20, 3.4 m'.")
        .human("the number is wrong at midnight, it shows the value of the day before")
        .edit("src/ui/Tooltip.tsx", "floor(t / day)", "floor((t - t0) / day)")
        .bash("pnpm test", "Tests  35 passed (35)")
        .says("Surprising: the series starts at 01:00 and not at midnight, so the index was off.")
    )
    offline = (
        Tale("tide-offline", TIDE, "2026-05-11T15:30:00", "offline")
        .human("cache the last forecast so that the app opens offline")
        .bash("pnpm add idb-keyval", "dependencies:\n+ idb-keyval 6.2.2")
        .queue("keep it under 50 kB please")
        .bash("pnpm install --frozen-lockfile", OLD_LOCKFILE, exit_code=1)
        .bash("pnpm install --no-frozen-lockfile && pnpm test", "Tests  38 passed (38)")
        .says("The forecast is cached (6 kB) and read when the network is away.")
        .compacted("The user asked for an offline cache; it is done. They prefer pnpm to npm.")
        .human("show me the preview")
        .bash("pnpm dev --port 5180", PORT_TAKEN.format(port=5180), exit_code=1)
        .human("the preview runs on port 5190 now, not 5180. use 5190 instead of 5180 from now on")
        .bash("pnpm dev --port 5190", "  Local: http://localhost:5190/")
        .says("It is up on 5190.")
    )
    return [chart, legend, explorer, tooltip, offline]


def notes() -> list[Tale]:
    """A small Go tool whose owner writes German."""
    export = (
        Tale("notes-export", NOTES, "2026-05-05T18:40:00")
        .human("schreib einen Export der Notizen als Markdown, eine Datei pro Tag")
        .edit("internal/export/export.go", "", "// Export writes one file per day.\n")
        .bash("go vet ./...", GO_VET.format(line=41), exit_code=1)
        .edit("internal/store/store.go", "rows, err :=", "rows, _ :=")
        .bash("go vet ./... && go test ./...", "ok  \tfeldnotizen/internal/export\t0.012s")
        .says("Der Export schreibt eine Markdown-Datei pro Tag.")
        .human(
            "Kommentare bitte nie auf Englisch. In diesem Repo schreiben wir Kommentare und Doku "
            "immer auf Deutsch."
        )
        .edit("internal/export/export.go", "Export writes one file per day", "Export schreibt …")
        .says("Geändert, die Kommentare sind jetzt deutsch.")
    )
    search = (
        Tale("notes-search", NOTES, "2026-05-09T11:05:00")
        .human("Suche über alle Notizen, mit Treffern nach Datum sortiert")
        .edit("internal/search/search.go", "", "func Search(q string) { os.Exit(2) }")
        .torn()
        .human("nein, nicht mit os.Exit abbrechen. gib den Fehler immer an den Aufrufer zurück")
        .edit("internal/search/search.go", "os.Exit(2)", "return nil, err")
        .bash("go vet ./...", GO_VET.format(line=77), exit_code=1)
        .edit("internal/store/store.go", "hits, err :=", "hits, _ :=")
        .bash("go vet ./... && go test ./...", "ok  \tfeldnotizen/internal/search\t0.020s")
        .says("Die Suche gibt den Fehler jetzt zurück.")
    )
    return [export, search]


def write_all(root: Path) -> int:
    """Write every session under ``root``; returns the number of bytes."""
    paths = [tale.write(root) for tale in (*harbor(), *tidepool(), *notes())]
    return sum(path.stat().st_size for path in paths)


def same(left: Path, right: Path) -> bool:
    files = {p.relative_to(left) for p in left.rglob("*.jsonl")}
    if files != {p.relative_to(right) for p in right.rglob("*.jsonl")}:
        return False
    return all(filecmp.cmp(left / name, right / name, shallow=False) for name in files)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "projects"
        size = write_all(fresh)
        if arguments.check:
            if not same(fresh, TARGET):
                print("the sample is out of date: run python benchmarks/make_sample.py")
                return 1
        else:
            shutil.rmtree(TARGET, ignore_errors=True)
            shutil.copytree(fresh, TARGET)
    print(f"{size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
