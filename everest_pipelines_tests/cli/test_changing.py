"""Commands that change something."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from everest_pipelines.cli.setup import switch
from everest_pipelines.recall.snapshot import open_snapshot
from everest_pipelines.text import ledger
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load
from everest_pipelines_tests.cli.conftest import Everest, Made


def body(out: str) -> dict[str, object]:
    return json.loads(out.splitlines()[-1])


def ids(everest: Everest) -> list[str]:
    lessons = body(everest("lessons", "--json")[1])["lessons"]
    assert isinstance(lessons, list)
    return [lesson["short_id"] for lesson in lessons]


def test_a_wrong_lesson_is_gone_at_once_and_its_neighbours_stay(
    copied: Made, everest: Everest
) -> None:
    before = ids(everest)
    code, _, _ = everest("wrong", before[0], "--why", "we changed that")
    assert code == 0
    assert ids(everest) == before[1:]
    entries = ledger.read(copied.home, ("veto",)).entries
    assert [entry["why"] for entry in entries] == ["we changed that"]
    assert body(everest("wrong", before[0], "--json")[1])["changed"] is False
    assert len(ledger.read(copied.home, ("veto",)).entries) == 1


def test_what_taught_a_wrong_lesson_is_not_recalled_either_before_or_after_the_next_publish(
    copied: Made, everest: Everest
) -> None:
    asked = ("recall", "pnpm", "--project", "code-tidepool", "--json", "--k", "50")
    wrong = next(hit for hit in body(everest(*asked)[1])["hits"] if "pnpm" in hit["text"])
    with open_snapshot(copied.home) as snapshot:
        lesson = snapshot.lesson(wrong["lesson_id"])
        assert lesson is not None
        sources = set(lesson.sources)

    def recalled() -> set[str]:
        hits = body(everest(*asked, "--kind", "episode")[1])["hits"]
        return {str(hit["episode_id"]) for hit in hits}

    assert sources <= recalled()
    code, said, err = everest("wrong", wrong["short_id"])
    assert code == 0, (said, err)
    assert not sources & recalled()
    assert everest("publish")[0] == 0
    with open_snapshot(copied.home) as snapshot:
        assert snapshot.lesson(wrong["lesson_id"]) is None
        assert snapshot.episodes(sorted(sources)) == []
    assert not sources & recalled()
    assert recalled(), "the control: other episodes are still recalled"


def test_a_wrong_id_hides_nothing(copied: Made, everest: Everest) -> None:
    before = ids(everest)
    code, _, err = everest("wrong", "ffffffff0000")
    assert code == 2
    assert "everest lessons" in err
    assert ids(everest) == before


def test_what_is_remembered_through_a_pipe_is_no_persons_word(
    empty: Made, everest: Everest, tmp_path: Path
) -> None:
    code, out, _ = everest("remember", "always run make lint", "--project", str(tmp_path), "--json")
    assert code == 0
    assert body(out)["channel"] == "pipe"
    (entry,) = ledger.read(empty.home, ("note",)).entries
    assert entry["text"] == "always run make lint"
    assert entry["project"] == body(out)["project"]
    assert everest("remember", "  ")[0] == 2


def test_a_note_through_a_pipe_is_told_to_stay_a_candidate(
    empty: Made, everest: Everest, tmp_path: Path
) -> None:
    code, out, _ = everest("remember", "always run make lint", "--project", str(tmp_path))
    assert code == 0
    assert "candidate" in out
    assert "pipe" in out


def test_setup_needs_a_person_or_yes(copied: Made, everest: Everest) -> None:
    code, _, err = everest("setup")
    assert code == 2
    assert "--yes" in err
    assert not copied.home.config.exists()


def test_setup_writes_into_the_agents_folders_and_undo_takes_it_out(
    copied: Made, everest: Everest
) -> None:
    claude = Path(copied.environ["EVEREST_CLAUDE_DIR"])

    def there() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in claude.rglob("*") if path.is_file()}

    owners = claude / "projects" / "-home-mara-code-harbor-api" / "memory" / "MEMORY.md"
    owners.parent.mkdir()
    owners.write_text("# Mine\n\n- my own line\n")
    before = there()
    assert everest("setup", "--yes")[0] == 0
    written = owners.read_text()
    assert written.startswith("# Mine\n\n- my own line\n")
    assert "uv" in written
    assert list(owners.parent.glob("everest-*.md"))
    assert everest("setup", "--undo", "--yes")[0] == 0
    assert there() == before


@pytest.mark.parametrize(
    "text", ["", "tz = 'UTC'\n", "# render = true\nrender = false # no\nport = 1\n"]
)
def test_the_switch_changes_one_line_of_the_file(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    home.config.write_text(text)
    switch(home, on=True)
    assert load({"HOME": "/h"}, home.config).render is True
    switch(home, on=False)
    assert load({"HOME": "/h"}, home.config).render is False
    others = [line for line in text.splitlines() if not line.startswith("render")]
    assert [
        li for li in home.config.read_text().splitlines() if not li.startswith("render")
    ] == others


def derived(home: Home) -> dict[str, str]:
    found = {}
    for path in sorted(home.lake.glob("*/day=*/project=*/*.parquet")):
        found[str(path.relative_to(home.lake))] = hashlib.sha256(path.read_bytes()).hexdigest()
    lessons = (home.current / "lessons.jsonl").read_bytes()
    return found | {"lessons.jsonl": hashlib.sha256(lessons).hexdigest()}


def test_rebuild_gives_the_same_bytes(copied: Made, everest: Everest) -> None:
    before = derived(copied.home)
    code, _, err = everest("rebuild", "--yes")
    assert code == 0, err
    assert derived(copied.home) == before


def test_rezone_moves_turns_to_their_new_day_and_back(
    copied: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = derived(copied.home)
    monkeypatch.setenv("EVEREST_TZ", "Pacific/Auckland")
    code, _, err = everest("status")
    assert code == 5
    assert "everest rezone" in err
    code, _, err = everest("rezone", "--yes")
    assert code == 0, err
    assert derived(copied.home) != before
    monkeypatch.setenv("EVEREST_TZ", "UTC")
    assert everest("rezone", "--yes")[0] == 0
    after = {name: sha for name, sha in derived(copied.home).items() if name in before}
    assert after == before


def test_publish_accepts_only_with_a_reason_and_only_what_may_be(
    copied: Made, everest: Everest
) -> None:
    assert everest("publish")[0] == 0
    assert everest("publish", "--accept", "removal")[0] == 2
    code, _, err = everest("publish", "--accept", "leak", "--why", "I want to")
    assert code == 2
    assert "leak" in err
    assert everest("publish", "--accept", "removal", "--why", "spring cleaning")[0] == 0
    assert [entry["why"] for entry in ledger.read(copied.home, ("accept",)).entries] == [
        "spring cleaning"
    ]


def test_ingest_reads_one_file_and_a_missing_one_is_named(
    empty: Made, everest: Everest, tmp_path: Path
) -> None:
    from everest_pipelines.cli import sample

    one = sorted(sample.FOLDER.rglob("*.jsonl"))[0]
    code, out, err = everest("ingest", str(one), "--json")
    assert code == 0, err
    assert body(out)["stages"]["transcripts"]["files"] == 1  # type: ignore[index]
    code, _, err = everest("ingest", str(tmp_path / "gone.jsonl"))
    assert code == 4
    assert "gone.jsonl" in err


def test_ingest_says_what_a_file_is_and_a_dry_run_stores_nothing(
    empty: Made, everest: Everest, tmp_path: Path
) -> None:
    from everest_pipelines_tests.core.transcripts import chats

    export, odd = tmp_path / "export.json", tmp_path / "odd.json"
    export.write_bytes(chats.FILES["chatgpt"][1])
    odd.write_bytes(b'[{"current_node": 1, "children": 2}]')
    code, out, _ = everest("ingest", "--dry-run", str(export))
    assert code == 0 and "export.json: chatgpt, 3 sessions, 6 turns, 0 lines in quarantine" in out
    code, _, err = everest("ingest", "--dry-run", str(odd))
    assert code == 1 and "not recognised" in err and "nearest is chatgpt" in err
    assert not empty.home.lake.exists()
    code, out, _ = everest("ingest", str(export))
    assert code == 0 and "export.json: chatgpt, 3 sessions, 6 turns, 0 lines in quarantine" in out
    code, _, err = everest("ingest", str(odd))
    assert code == 1 and "nearest is chatgpt" in err
