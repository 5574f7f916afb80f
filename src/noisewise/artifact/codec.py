"""Release ↔ JSON: versioned, readable by a person, strict on the way in.

The file carries a SHA-256 digest of its canonical content. That is no signature (anyone can compute
it): it catches a damaged or hand-edited file, whose numbers would look as valid as the true ones.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisewise.artifact import check, decode, encode
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.release import Release
from noisewise.artifact.whole import whole

FORMAT = "noisewise-release"
VERSION = 1
MAX_BYTES = 256 * 2**20
"""Far above a release of 70,000 groups (a few megabytes), far below what hurts a machine."""

HDF5 = b"\x89HDF"


def dumps(release: Release) -> str:
    """The content of the file."""
    content = encode.release(release)
    head = {"format": FORMAT, "version": VERSION}
    return _pretty({**head, **content, "sha256": _digest(_canonical(content))}) + "\n"


def loads(content: str | bytes) -> Release:
    """Parse strictly; every failure is a ReleaseError."""
    if len(content) > MAX_BYTES:
        raise ReleaseError(f"release: larger than {MAX_BYTES // 2**20} MiB")
    top = decode.Fields(_parse(content), "release")
    if (found := top.take("format")) != FORMAT:
        raise ReleaseError(
            f"release: format must be {FORMAT!r}, not {check.shown(found)}; "
            "this is some other JSON file"
        )
    version = check.integer(top.take("version"), "release: version", 1)
    if version != VERSION:
        raise ReleaseError(
            f"release: the file has version {version}, this noisewise reads version {VERSION}; "
            "a newer file needs a newer noisewise"
        )
    digest = top.take("sha256")
    release = decode.release(top)
    if digest != _digest(canonical(release)):
        raise ReleaseError(
            "release: the content does not match its sha256; the file was changed or damaged"
        )
    return release


def save(release: Release, path: Path) -> Path:
    """The file, whole or not at all; another one of that name is kept as ``path~``."""
    content = dumps(release).encode()
    with whole(path, lambda why: ReleaseError(f"release: cannot write {path}: {why}")) as temporary:
        temporary.write_bytes(content)
        # An earlier release was paid for as well, and no one can make it again.
        if path.is_file() and path.read_bytes() != content:
            shutil.copyfile(path, f"{path}~")
    return path


def load(path: Path) -> Release:
    """Read a file, refusing oversized ones before they are in memory."""
    if "\0" in str(path):
        raise ReleaseError(f"release: {check.shown(str(path))} is not a file name")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReleaseError(f"release: {path} is larger than {MAX_BYTES // 2**20} MiB")
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)  # a pipe or a growing file has no honest size
    except OSError as error:
        raise ReleaseError(f"release: cannot read {path}: {error.strerror}") from None
    return loads(content)


def canonical(release: Release) -> str:
    """One text per meaning: the order of keys and the white space of a file do not matter."""
    return _canonical(encode.release(release))


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _no_constants(name: str) -> float:
    raise ReleaseError(f"release: {name} stands for a number; all numbers must be finite")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        check.distinct([name for name, _ in pairs], "release: the keys of a JSON object")
    return found


def _parse(content: str | bytes) -> Any:
    """JSON as RFC 8259 has it: UTF-8 only, no byte-order mark; and no key twice, no NaN."""
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return json.loads(text, parse_constant=_no_constants, object_pairs_hook=_no_repeats)
    except ReleaseError:
        raise
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
        if isinstance(content, bytes) and content.startswith(HDF5):
            problem = "this file holds a posterior, which load_posterior opens, not a release"
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        problem = f"not valid JSON (line {error.lineno}, column {error.colno}): {what}"
    except ValueError:
        # What remains is the interpreter's limit on the digits of an integer.
        problem = "a whole number has thousands of digits"
    raise ReleaseError(f"release: {problem}" if content else "release: the file is empty")


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
