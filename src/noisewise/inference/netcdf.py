"""netCDF files of others, read with care: what a file announces is checked before it is allocated.

netCDF 4 is HDF5, in which a few kilobytes can announce terabytes, name other files on the reader's
disk, or repeat one text a million times. So variables are read one by one, each charged to a budget
that follows from the size of the file; links and data outside the file are refused; and whatever
the library says of a damaged file becomes one ArgumentError.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from noisewise.artifact import ArgumentError

FREE_BYTES, MAX_RATIO = 2**26, 32
"""A file may hold 64 MiB, and 32 times its own size (chosen): random draws hardly compress."""
MAX_BYTES = 2**35
"""All variables of a file together (chosen): 70,000 groups with thousands of draws are 10 GiB."""
MAX_MEMBERS = 10_000
"""Variables or attributes of one group (chosen)."""
MAX_ATTRIBUTE = 2**20
"""Characters of an attribute (chosen); HDF5 itself keeps 64 KiB in the usual place."""
TEXTS_AT_ONCE = 64
"""Texts that are read together: each may be as long as the file (chosen)."""
DEFLATE, SHUFFLE, FLETCHER32 = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, 3
"""Filters of HDF5 whose results are no larger than can be told; xarray asks for the first."""
MAX_DEFLATE_RATIO = 1032
"""No deflated text grows by more: 258 bytes for two bits (RFC 1951)."""
HARMLESS_CHUNK = FREE_BYTES // MAX_DEFLATE_RATIO
"""Stored bytes of a chunk that cannot fill more than 64 MiB, and so are not inflated twice."""
HEAP = re.compile(rb"GCOL\x01")
"""How a global heap of HDF5, where texts of any length are kept, begins: its name and version."""
MIN_HEAP = 4096
"""Bytes of such a heap at least, says HDF5."""
NOT_A_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
"""How netCDF marks a dimension without labels, which HDF5 can only keep as a data set."""

Attributes = dict[str, str | int]
"""Words and whole numbers about a group."""


@dataclass(frozen=True)
class Group:
    """One group of a netCDF file: its variables and what is said about it."""

    variables: dict[str, np.ndarray] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)


class _Budget:
    """The bytes that a file of this size may still ask for."""

    def __init__(self, file_bytes: int) -> None:
        self._left = min(MAX_BYTES, FREE_BYTES + MAX_RATIO * file_bytes)

    def charge(self, size: int, what: str) -> None:
        """Take so many bytes; a ValueError where the file cannot hold them."""
        self._left -= size
        if self._left < 0:
            raise ValueError(f"{what} claims {size} bytes, more than such a file can hold")


def read_groups(path: Path, names: tuple[str, ...]) -> dict[str, Group]:
    """Return those of the named groups that the file has.

    Args:
        path: a netCDF file, by anyone.
        names: groups to be read; the rest of the file is not looked at.
    """
    try:
        budget = _Budget(path.stat().st_size)
        with h5py.File(path, "r") as file:
            _check_heaps(path, file)
            return {name: _group(file, name, budget) for name in names if name in file}
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it is not a netCDF file, or damaged"
    except Exception as error:  # noqa: BLE001  # the library raises anything over a damaged file
        # The words may quote the file.
        why = ascii(str(error))[1:-1][:200] or type(error).__name__
    raise ArgumentError(f"path: {str(path)!r} cannot be read as a posterior: {why}")


def group_digest(name: str, group: Group) -> str:
    """Return a digest of a group's name and variables: shapes, types and all bits of the values."""
    total = hashlib.sha256(name.encode())
    for variable, values in sorted(group.variables.items()):
        said = [variable, values.dtype.kind, list(values.shape)]
        total.update(json.dumps(said).encode())
        if values.dtype == object:
            total.update(json.dumps(values.tolist()).encode())
        else:
            total.update(np.ascontiguousarray(values).data)
    return total.hexdigest()


def _check_heaps(path: Path, file: h5py.File) -> None:
    """Raise a ValueError where a heap of texts is damaged: HDF5 2.0 may read on in it for ever.

    A part of no size is never passed by ``H5HG__cache_heap_deserialize``.
    """
    if file.id.get_create_plist().get_sizes() != (8, 8):
        raise ValueError("its addresses and lengths are not of 64 bits")
    with path.open("rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as content:
        past = 0
        for match in HEAP.finditer(content):
            place, end = match.start() + 16, match.start()
            if place <= len(content):
                end += int.from_bytes(content[place - 8 : place], "little")
            if not match.start() + MIN_HEAP <= end <= len(content):
                continue  # not a heap; HDF5 refuses it as well
            damaged = match.start() < past  # none lies within another
            past = end
            while place + 16 <= end and not damaged:
                number, size = struct.unpack_from("<H6xQ", content, place)
                taken = 16 + -(-size // 8) * 8 if number else size
                damaged = not 0 < taken <= end - place
                place += taken
            if damaged:
                raise ValueError("a heap of texts is damaged")


def _group(file: h5py.File, name: str, budget: _Budget) -> Group:
    group = _inside(file, name)
    if not isinstance(group, h5py.Group) or len(group) > MAX_MEMBERS:
        raise ValueError(f"{name} is not a group of up to {MAX_MEMBERS} variables")
    variables = {}
    for member in group:
        data = _inside(group, member)
        if not isinstance(data, h5py.Dataset):
            raise ValueError(f"{name} holds something that is no variable")
        if not str(_attribute(data, "NAME")).startswith(NOT_A_VARIABLE):
            variables[member] = _values(data, f"{name}: {member!a}", budget)
    if len(group.attrs) > MAX_MEMBERS:
        raise ValueError(f"{name} has too many attributes")
    said = {key: _attribute(group, key) for key in group.attrs}
    return Group(variables, {key: value for key, value in said.items() if value is not None})


def _inside(group: h5py.Group, name: str) -> object:
    """Return a member that lies in this very file: a link may lead to any other."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name!a} is a link")
    return group[name]


def _values(data: h5py.Dataset, where: str, budget: _Budget) -> np.ndarray:
    """Return a variable's numbers or texts; its size is checked before they are read."""
    if data.is_virtual or data.external:
        raise ValueError(f"{where} lies outside the file")
    size = math.prod(data.shape)
    budget.charge(size * max(8, data.dtype.itemsize), where)
    if data.chunks is not None and math.prod(data.chunks) > size + 2**17:
        raise ValueError(f"{where} has chunks larger than itself")
    _check_chunks(data, where)
    if h5py.check_string_dtype(data.dtype) is not None:
        return _texts(data, where, budget)
    if data.dtype.kind not in "iuf" or data.dtype.itemsize > 8:
        raise ValueError(f"{where} holds neither numbers nor text")
    values: np.ndarray = data[()]
    return values.astype(bool) if _attribute(data, "dtype") == "bool" else np.asarray(values)


def _check_chunks(data: h5py.Dataset, where: str) -> None:
    """Raise a ValueError where a chunk is more than it claims: HDF5 inflates it to its end."""
    properties = data.id.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    if not {*filters} <= {DEFLATE, SHUFFLE, FLETCHER32} or filters.count(DEFLATE) > 1:
        raise ValueError(f"{where} is packed in a way that no posterior is")
    if DEFLATE not in filters:
        return
    stored: list[Any] = []
    data.id.chunk_iter(stored.append)
    # A checksum of four bytes may have been added before.
    claimed = math.prod(data.chunks) * data.id.get_type().get_size() + 4
    for chunk in stored:
        skipped = chunk.filter_mask >> filters.index(DEFLATE) & 1
        if skipped or chunk.size <= HARMLESS_CHUNK:
            continue
        _, packed = data.id.read_direct_chunk(chunk.chunk_offset)
        if len(zlib.decompressobj().decompress(packed, claimed + 1)) > claimed:
            raise ValueError(f"{where} has a chunk that is larger than it claims")


def _texts(data: h5py.Dataset, where: str, budget: _Budget) -> np.ndarray:
    """Return texts, a few at a time: thousands may point to one and the same long text."""
    if data.ndim != 1:
        raise ValueError(f"{where} must be a list of texts")
    texts: list[str] = []
    for start in range(0, data.shape[0], TEXTS_AT_ONCE):
        some = list(data.asstr()[start : start + TEXTS_AT_ONCE])
        budget.charge(sum(map(len, some)), where)
        texts += some
    result = np.empty(len(texts), object)
    result[:] = texts
    return result


def _attribute(owner: h5py.Group | h5py.Dataset, name: str) -> str | int | None:
    """Return an attribute that is one text or one whole number; None for any other, or none."""
    if name not in owner.attrs:
        return None
    kept = owner.attrs.get_id(name)
    if kept.shape not in ((), (1,)):
        return None
    if h5py.check_string_dtype(kept.dtype) is None and kept.dtype.kind not in "iu":
        return None
    value = np.asarray(owner.attrs[name]).reshape(-1)[0]
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        return int(value)
    value = str(value)  # h5py gives a NumPy text
    if len(value) > MAX_ATTRIBUTE:
        raise ValueError(f"attribute {name!a} is too long")
    return value
