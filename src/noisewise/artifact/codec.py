"""Release ↔ JSON: versioned, readable by a person, strict on the way in.

The file carries a SHA-256 digest of its canonical content. That is no signature (anyone can compute
it): it catches a damaged or hand-edited file, whose numbers would look as valid as the true ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisewise.artifact import decode, encode
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.release import Release

FORMAT = "noisewise-release"
VERSION = 1
MAX_BYTES = 256 * 2**20
"""Far above a release of 70,000 groups (a few megabytes), far below what hurts a machine."""


def dumps(release: Release) -> str:
    """The content of the file."""
    content = encode.release(release)
    head = {"format": FORMAT, "version": VERSION}
    return _pretty({**head, **content, "sha256": _digest(content)}) + "\n"


def loads(content: str | bytes) -> Release:
    """Parse strictly; every failure is a ReleaseError."""
    if len(content) > MAX_BYTES:
        raise ReleaseError(f"release: larger than {MAX_BYTES // 2**20} MiB")
    top = decode.Fields(_parse(content), "release")
    if top.take("format") != FORMAT:
        raise ReleaseError(f"release: format must be {FORMAT!r}; this is some other JSON file")
    version = top.take("version")
    if isinstance(version, bool) or version != VERSION:
        raise ReleaseError(
            f"release: this noisewise reads version {VERSION}; a newer file needs a newer noisewise"
        )
    digest = top.take("sha256")
    release = decode.release(top)
    if digest != _digest(encode.release(release)):
        raise ReleaseError(
            "release: the content does not match its sha256; the file was changed or damaged"
        )
    return release


def save(release: Release, path: Path) -> Path:
    """Write beside the target, flush to disk, then rename: a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(dumps(release))
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a private file; a release is meant to be read by others.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def load(path: Path) -> Release:
    """Read a file, refusing oversized ones before they are in memory."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReleaseError(f"release: {path} is larger than {MAX_BYTES // 2**20} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"release: cannot read {path}: {error.strerror}") from None
    return loads(content)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _no_constants(name: str) -> float:
    raise ReleaseError(f"release: {name} is not a number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ReleaseError("release: a key stands twice in one object")
    return found


def _parse(content: str | bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_no_constants, object_pairs_hook=_no_repeats)
    except ReleaseError:
        raise
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except ValueError as error:
        # Includes JSONDecodeError and the interpreter's limit on the digits of an integer.
        position = getattr(error, "lineno", None)
        problem = "not valid JSON" + (f" (line {position})" if position else "")
    raise ReleaseError(f"release: {problem}")


def _pretty(value: Any, indent: str = "") -> str:
    """Two-space JSON, but a list of plain values stays on one line (70,000 groups, few lines)."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{deeper}{json.dumps(k)}: {_pretty(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        rows = [deeper + _pretty(v, deeper) for v in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
