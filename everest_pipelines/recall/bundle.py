"""The hook as it is installed: one file of compiled modules beside a tiny entry, in the home.

A hook that starts as ``everest prime`` pays for finding and checking a dozen files, and for the
package's own start. The entry runs isolated (``-I -S``), reads one file and leaves without tidying
up. It works on when the package is upgraded, moved or gone, and is made anew with every snapshot.
"""

from __future__ import annotations
import __future__

import ast
import hashlib
import importlib.util
import marshal
import shlex
import sys
from pathlib import Path
from types import CodeType

from everest_pipelines.text.atomic import write_atomic

ENTRY = "prime.py"
_ROOMS = ("text", "recall")
_PACKAGE = Path(__file__).parents[1]
_STAMP = 32  # bytes before the modules: what they are made of
# The alarm is below the second that a hook may take; the agent's own limit is a second above it.
_ENTRY = '''\
# Everest's hook, written by `everest setup`; `everest setup --undo` removes it.
import sys
import _signal
import marshal
try:
    import posix as system
except ImportError:
    import os as system


def leave(*_):
    system._exit(0)


class Cold:
    # Modules that a hook seldom needs; all else is the interpreter's own.
    def __init__(self, codes):
        self.codes = codes

    def find_spec(self, name, path=None, target=None):
        if name in self.codes:
            import _frozen_importlib
            return _frozen_importlib.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.codes[module.__name__]), module.__dict__)


def load(data):
    packages, hot, cold = marshal.loads(data)
    sys.meta_path.insert(0, Cold(cold))
    sys.path.reverse()  # what is compiled comes last, and is most of what is looked for
    # sqlite3 wants functools for a cache of statements; that takes 3 ms, a third of the start of
    # an interpreter. Ours are asked once each.
    modules, module = sys.modules, type(sys)
    stand_in = modules["functools"] = module("functools")
    stand_in.lru_cache = lambda *_, **__: lambda prepare: prepare
    try:
        import _sqlite3
    except ImportError:
        pass
    del modules["functools"]
    for name in packages:
        modules[name] = module(name)
        modules[name].__path__ = []
    for name, code in hot:
        made = modules[name] = module(name)
        package, _, last = name.rpartition(".")
        setattr(modules[package], last, made)
        exec(code, made.__dict__)


def run():
    _signal.signal(_signal.SIGALRM, leave)
    _signal.setitimer(_signal.ITIMER_REAL, 0.8)
    folder = __file__.rpartition("/")[0]
    try:
        with open(f"{folder}/prime.{sys.implementation.cache_tag}.bin", "rb", 0) as file:
            data = file.read()[@STAMP@:]
        load(data)
    except (OSError, ValueError, EOFError, TypeError):
        sys.path.append(@PACKAGES@)
    from everest_pipelines.recall.entry import main
    main(folder)


try:
    run()
except BaseException:
    pass
leave()
'''
# What every answer needs, in the order in which it is loaded (a test holds it).
_HOT = (
    "text.bare", "text.errors", "text.uuid7", "text.chain", "text.quick_settings", "text.tokens",
    "recall.arms", "recall.sessions", "recall.prime", "recall.entry", "recall.format",
    "recall.hidden", "recall.project", "recall.rank", "recall.snapshot", "recall.stem",
    "recall.terms", "recall.search",
)  # fmt: skip


def write(root: Path) -> Path:
    """Write the entry and the modules for this interpreter below a home; returns the entry.

    Nothing is written when they are as they should be.
    """
    entry = root / "hooks" / ENTRY
    if not is_current(root):
        write_atomic(_modules_path(root), _stamp() + marshal.dumps(_modules()))
        write_atomic(entry, _entry())
    return entry


def refresh(root: Path) -> None:
    """Bring an installed hook in step with this package; nothing when none is installed."""
    if (root / "hooks" / ENTRY).exists():
        write(root)


def is_current(root: Path) -> bool:
    """Whether what is installed is made of this package, for this interpreter."""
    try:
        with _modules_path(root).open("rb") as file:
            stamp = file.read(_STAMP)
        return stamp == _stamp() and (root / "hooks" / ENTRY).read_bytes() == _entry()
    except OSError:
        return False


def interpreter() -> str:
    """The interpreter that a hook starts: without a virtual environment's detour where possible.

    Only the standard library is asked of it, and the modules are compiled for its version.
    """
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def command(root: Path) -> str:
    """What stands in the agent's settings, for a POSIX shell.

    Silent when the interpreter has gone: an agent must not stumble over what we leave behind.
    """
    python, entry = shlex.quote(interpreter()), shlex.quote(str(root / "hooks" / ENTRY))
    return f"if [ -x {python} ]; then exec {python} -I -S {entry}; fi"


def _modules_path(root: Path) -> Path:
    return root / "hooks" / f"prime.{sys.implementation.cache_tag}.bin"


def _entry() -> bytes:
    text = _ENTRY.replace("@PACKAGES@", repr(str(_PACKAGE.parent)))
    return text.replace("@STAMP@", str(_STAMP)).encode()


def _stamp() -> bytes:
    """Names the sources and the interpreter that the modules are made of."""
    total = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, path in _sources():
        total.update(name.encode())
        total.update(path.read_bytes())
    return total.digest()


def _sources() -> list[tuple[str, Path]]:
    return [
        (f"everest_pipelines.{room}.{path.stem}", path)
        for room in _ROOMS
        for path in sorted((_PACKAGE / room).glob("*.py"))
        if path.stem != "__init__"
    ]


def _modules() -> tuple[list[str], list[tuple[str, CodeType]], dict[str, bytes]]:
    """The packages, which are empty here (their files set up numpy); what is loaded at once; what
    is loaded when it is asked for."""
    packages = ["everest_pipelines", *(f"everest_pipelines.{room}" for room in _ROOMS)]
    codes = {name: _compiled(path) for name, path in _sources()}
    hot = [f"everest_pipelines.{name}" for name in _HOT]
    cold = {name: marshal.dumps(code) for name, code in codes.items() if name not in hot}
    return packages, [(name, codes[name]) for name in hot if name in codes], cold


def _compiled(path: Path) -> CodeType:
    """A module's code without its docstrings, and without loading __future__ at run time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        line
        for line in tree.body
        if not (isinstance(line, ast.ImportFrom) and line.module == "__future__")
    ]
    flags = __future__.annotations.compiler_flag
    return compile(tree, path.name, "exec", flags=flags, optimize=2, dont_inherit=True)
