"""Files of graphical models: JSON, and archives of arrays (npz); nothing in them can execute.

A file may come from anyone. Sizes are checked before anything is allocated, numbers must be finite,
and whatever is wrong is one ``ArgumentError`` that names the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write

MAX_JSON_BYTES = 2**30
"""Of a JSON file or text (chosen): forty million potentials with all their digits."""
MAX_ARRAY_BYTES = 2**33
"""Of one array in an archive (chosen): a thousand draws of a million cells."""
FREE_BYTES, MAX_RATIO = 2**26, 32
"""An array may take 64 MiB, and 32 times the size of its file (chosen): random draws hardly
compress, and zlib's deflate could hide a thousand times a file's size in it."""


def write_json(content: Mapping[str, Any], path: Path) -> Path:
    """Write a JSON file with its digest, whole or not at all; return its path."""
    plain = json.loads(json.dumps(content, allow_nan=False))
    text = json.dumps({**plain, "sha256": _digest(plain)})
    with atomic_write(
        path, lambda why: ArgumentError(f"{path}: cannot be written ({why})")
    ) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise ArgumentError(
                f"{path}: has {size} bytes, more than the {MAX_JSON_BYTES} of any graphical model"
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{path}: cannot be read as a graphical model ({_short(error)})"
        ) from None
    return parse_json(text, path)


def parse_json(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of one JSON object; ``path`` is the file that it came from."""
    try:
        content = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ArgumentError(f"{path}: is nested too deeply to be a graphical model") from None
    except ValueError as error:
        raise ArgumentError(
            f"{path}: cannot be read as a graphical model ({_short(error)})"
        ) from None
    if not isinstance(content, dict):
        raise ArgumentError(f"{path}: is not a noisewise graphical model")
    # Files of version 0.1 have no digest, nor has the model in an archive, which has its own.
    if "sha256" in content and content.pop("sha256") != _digest(content):
        raise ArgumentError(f"{path}: its content does not match its sha256; it was changed")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> Path:
    """Write a compressed npz archive, whole or not at all; return its path."""
    with (
        atomic_write(
            path, lambda why: ArgumentError(f"{path}: cannot be written ({why})")
        ) as temporary,
        temporary.open("wb") as out,
    ):
        # NumPy's stubs take the names for its own options.
        named: dict[str, Any] = dict(arrays)
        np.savez_compressed(out, **named)
    return path


class ArrayArchive:
    """A reader of npz archives that checks type and size of an array before it allocates one.

    Use it as a context manager: trouble with the file becomes an ``ArgumentError``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._bytes = path.stat().st_size
            self._zip = zipfile.ZipFile(path)
        except Exception as error:  # noqa: BLE001  # zipfile raises anything over a damaged file
            raise self._refusal(error) from None

    def __enter__(self) -> ArrayArchive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._zip.close()
        # NumPy takes the head of an array for Python, and may raise anything over it.
        if isinstance(error, Exception) and not isinstance(error, ArgumentError):
            raise self._refusal(error) from None

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._zip.namelist()

    def texts(self, name: str) -> np.ndarray:
        """Return an array of text."""
        return self._read(name, "U", None)

    def numbers(self, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
        """Return an array of finite float64 numbers of this shape; None leaves a length open."""
        values = self._read(name, "f", shape)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds numbers that are not finite")
        return values

    def _read(self, name: str, kind: str, wanted: tuple[int | None, ...] | None) -> np.ndarray:
        with self._zip.open(f"{name}.npy") as member:
            shape, dtype = self._header(member)
            expected = f"{name} must be {'text' if kind == 'U' else 'numbers of 64 bits'}"
            if dtype.kind != kind or (kind == "f" and dtype.itemsize != 8):
                raise ValueError(f"{expected}, not {dtype}")
            if wanted is not None and not _same_shape(shape, wanted):
                lengths = ", ".join("any" if n is None else str(n) for n in wanted)
                raise ValueError(f"{name} must be of shape ({lengths}), not {shape}")
            size = math.prod(shape) * dtype.itemsize
            if size > min(MAX_ARRAY_BYTES, FREE_BYTES + MAX_RATIO * self._bytes):
                raise ValueError(f"{name} claims {size} bytes, more than the file can hold")
        with self._zip.open(f"{name}.npy") as member:
            values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return values

    @staticmethod
    def _header(member: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        if np.lib.format.read_magic(member) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        return shape, dtype

    def _refusal(self, error: BaseException) -> ArgumentError:
        return ArgumentError(f"{self.path}: cannot be read as draws ({_short(error)})")


def _short(error: BaseException) -> str:
    """Return what a library says of a damaged file, which may quote the whole of it."""
    return ascii(str(error))[1:-1][:200]


def _same_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        w is None or n == w for n, w in zip(shape, wanted, strict=True)
    )
