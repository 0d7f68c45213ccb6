"""``everest model``: which local models embed and word; pull them; fit an embedding space."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from everest_pipelines.cli import context
from everest_pipelines.text.errors import CallerError, EverestError, ModelError

if TYPE_CHECKING:
    from everest_pipelines.night.models.choice import Choice
    from everest_pipelines.night.models.ollama import Server


def run(arguments: argparse.Namespace) -> int:
    """Show, choose or pull. The choice is kept in ``model.json``; variables win over it."""
    from everest_pipelines.night.models import table
    from everest_pipelines.night.models.choice import Choice, choose, chosen
    from everest_pipelines.night.models.ollama import Server

    home, settings = context.opened()
    server = Server(settings.ollama_host, timeout=10.0, tries=1)
    if arguments.list:
        return _list(home, settings, server, as_json=arguments.json)
    if arguments.calibrate:
        return _calibrate(home, settings, Path(arguments.calibrate), as_json=arguments.json)
    if arguments.none:
        new = Choice()
    elif arguments.model or arguments.write:
        old = chosen(home)
        new = Choice(embed=arguments.model or old.embed, write=arguments.write or old.write)
    else:
        picked = table.pick(table.memory_of_machine(), server.models())
        new = Choice(
            embed=f"ollama:{picked.embed}" if picked.embed else "",
            write=f"ollama:{picked.write}" if picked.write else "",
            table=table.table().date,
        )
    _pull_missing(server, new)
    home.ensure()
    choose(home, new)
    body = {"embed": new.embed or "hashed", "write": new.write or "none", "table": new.table}
    if arguments.json:
        context.answer(body)
    else:
        context.table([("embeds", body["embed"]), ("words", body["write"])])
        context.tell("The next night embeds and folds anew. Next: everest night")
    return 0


def _list(home: object, settings: object, server: Server, *, as_json: bool) -> int:
    from everest_pipelines.night.models import spaces, table
    from everest_pipelines.night.models.choice import chosen
    from everest_pipelines.text.home import Home
    from everest_pipelines.text.settings import Settings

    assert isinstance(home, Home)
    assert isinstance(settings, Settings)
    try:
        installed, away = sorted(server.models()), ""
    except EverestError as error:
        installed, away = [], str(error)
    used = spaces.in_use(home)
    body = {
        "embed": spaces.asked_for(home, settings),
        "write": settings.write_model or chosen(home).write or "none",
        "space": used.space,
        "why": used.why,
        "server": settings.ollama_host,
        "server_error": away,
        "installed": installed,
        "memory_bytes": table.memory_of_machine(),
        "recommended": [
            {"name": one.name, "for": one.purpose, "gib": one.gib, "languages": one.languages}
            for one in table.table().models
        ],
        "table": table.table().date,
    }
    if as_json:
        context.answer(body)
        return 0
    rows = [(name, str(body[name])) for name in ("embed", "write", "space", "why", "server")]
    rows.append(("installed", ", ".join(installed) or away or "none"))
    rows.append(("memory", context.size(table.memory_of_machine())))
    context.table([row for row in rows if row[1]])
    print(f"\nknown models ({table.table().date})")
    context.table(
        [(m.name, m.purpose, f"{m.gib:g} GiB", m.languages) for m in table.table().models]
    )
    return 0


def _pull_missing(server: Server, choice: Choice) -> None:
    """Pull what Ollama does not have yet. Raises ModelError; then the old choice stands."""
    names = [
        model.partition(":")[2] if model.startswith("ollama:") else model
        for model in (choice.embed, choice.write)
        if _is_ollamas(model)
    ]
    if not names:
        return
    installed = server.models()
    progress = _progress()
    for name in names:
        if name in installed or f"{name}:latest" in installed:
            continue
        context.tell(f"{name}: pulling from {server.host}")
        done, total = 0, 0
        for _, now, whole in server.pull(name):
            if whole and whole != total:
                progress.begin(name, whole, "bytes")
                done, total = 0, whole
            if whole and now > done:
                progress.advance(now - done)
                done = now
        progress.end()
        there = server.models()
        if name not in there and f"{name}:latest" not in there:
            raise ModelError(f"{name} is not there after the pull.", "everest model --list")


def _is_ollamas(model: str) -> bool:
    kind = model.partition(":")[0]
    return bool(model) and kind not in ("hashed", "wordllama", "minilm", "openai")


def _progress():
    from everest_pipelines.cli.progress import shown

    return shown()


def _calibrate(home: object, settings: object, themes: Path, *, as_json: bool) -> int:
    from everest_pipelines.core.sleep.fitting import fit, read_themes
    from everest_pipelines.night.models import spaces
    from everest_pipelines.text.atomic import write_atomic
    from everest_pipelines.text.home import Home
    from everest_pipelines.text.settings import Settings

    assert isinstance(home, Home)
    assert isinstance(settings, Settings)
    if not themes.is_file():
        raise CallerError(f"{themes} is no file.", "everest model --help")
    embedder = spaces.open_embedder(spaces.asked_for(home, settings), settings)
    fitted = fit(embedder, read_themes(themes.read_text(encoding="utf-8"), str(themes)))
    import msgspec

    file = spaces.calibration_file(home, embedder.space)
    write_atomic(file, msgspec.json.format(msgspec.json.encode(fitted), indent=2) + b"\n")
    cuts = {kind: {"join": c.join, "merge": c.merge} for kind, c in fitted.cuts.items()}
    if as_json:
        context.answer({"space": fitted.space, "file": str(file), "cuts": cuts})
    else:
        context.table([("space", fitted.space), ("file", str(file)), ("cuts", str(cuts))])
    return 0
