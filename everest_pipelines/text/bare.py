"""What a hook needs of the system without the weight of ``os``, ``json``, ``hashlib`` and ``re``.

Importing those costs more than the interpreter's own start (benchmarks/hook.py). Everything here
works on paths that are texts, and falls back to the standard modules where a lighter part is not
there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import posix as system
except ImportError:  # native Windows
    import os as system

BLOCK = 65536


def _find_sha256() -> Any:
    # Without OpenSSL, whose loading takes 2 ms. Asking for a name that is not there takes 1 ms.
    import sys

    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        import hashlib

        return hashlib.sha256


sha256: Any = _find_sha256()


def environment() -> dict[str, str]:
    """The environment that the interpreter was started with."""
    found: dict[str, str] = {}
    environ: Any = system.environ
    for name, value in environ.items():
        if isinstance(name, bytes):
            name, value = name.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")
        found[name] = value
    return found


def person() -> str:
    """The folder of the person who started this."""
    import sys

    loaded: Any = sys.modules.get("os")  # who has it may have changed the environment
    home = loaded.environ.get("HOME", "") if loaded else environment().get("HOME", "")
    if home:
        return home
    import os

    return os.path.expanduser("~")


def read_all(descriptor: int) -> bytes:
    """Everything up to the end of what is open at `descriptor`."""
    parts: list[bytes] = []
    while part := system.read(descriptor, BLOCK):
        parts.append(part)
    return b"".join(parts)


def read_file(path: str) -> bytes | None:
    """A file's content; None when it is not there. Raises OSError as the system does."""
    try:
        descriptor = system.open(path, system.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return read_all(descriptor)
    finally:
        system.close(descriptor)


def read_end(path: str, size: int) -> bytes:
    """The last `size` bytes of a file. Raises OSError as the system does."""
    descriptor = system.open(path, system.O_RDONLY)
    try:
        system.lseek(descriptor, max(0, system.fstat(descriptor).st_size - size), 0)
        return read_all(descriptor)
    finally:
        system.close(descriptor)


def exists(path: str) -> bool:
    """Whether something is at `path`; a link that leads nowhere is something."""
    try:
        system.lstat(path)
    except (OSError, ValueError):
        return False
    return True


def link_target(path: str) -> str:
    """What a link says. Raises OSError as the system does."""
    return str(system.readlink(path))


def make_dir(path: str) -> None:
    """Make a folder and its missing parents, each readable by the owner alone."""
    try:
        system.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_dir(path.rpartition("/")[0])
        system.mkdir(path, 0o700)


def sync(path: str) -> None:
    """Make what was written to a file, or the names in a folder, durable."""
    descriptor = system.open(path, system.O_RDONLY)
    try:
        system.fsync(descriptor)
    finally:
        system.close(descriptor)


def hmac_sha256(key: bytes, message: bytes) -> str:
    """HMAC-SHA-256 in hex (RFC 2104)."""
    if len(key) > 64:
        key = sha256(key).digest()
    key = key.ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


class _Context:
    """What the scanner of ``_json`` asks of a decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(text: str) -> Any:
    """The JSON value that `text` holds. Raises ValueError when it holds none, or more."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(" \t\n\r"))
    context: Any = _Context()
    try:
        value, end = make_scanner(context)(text, start)
    except StopIteration as error:
        raise ValueError(f"no JSON value at {error.value}") from None
    if text[end:].strip(" \t\n\r"):
        raise ValueError(f"more than one JSON value: the second at {end}")
    return value


def dumps(value: Any, *, canonical: bool = False) -> str:
    """`value` as compact JSON; `canonical` sorts the keys and leaves ASCII alone.

    Raises ValueError for a number that JSON does not have.
    """
    try:
        from _json import encode_basestring, encode_basestring_ascii, make_encoder

        encode = encode_basestring_ascii if canonical else encode_basestring
        encoder: Any = make_encoder({}, _refuse, encode, None, ":", ",", canonical, False, False)
        return "".join(encoder(value, 0))
    except (ImportError, TypeError):  # another interpreter, or a later one with other arguments
        import json

        return json.dumps(
            value,
            ensure_ascii=canonical,
            sort_keys=canonical,
            separators=(",", ":"),
            allow_nan=False,
        )


def _refuse(value: object) -> object:
    raise TypeError(f"JSON has no {type(value).__name__}")
