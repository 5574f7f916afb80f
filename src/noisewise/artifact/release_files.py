"""Release ↔ JSON: versioned, readable by a person, strict on the way in.

The file carries a SHA-256 digest of its canonical content. That is no signature (anyone can compute
it): it catches a damaged or hand-edited file, whose numbers would look as valid as the true ones.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from noisewise.artifact import low_memory_json, validation
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.bounds import Bounds, CandidateCounts, Censored, Selection
from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.folder_lock import folder_lock
from noisewise.artifact.guarantee import Guarantee, Noise
from noisewise.artifact.low_memory_json import NamedRows
from noisewise.artifact.release import Block, Groups, Population, Receipt, Release
from noisewise.artifact.statistics.base import decode_statistic, encode_fields
from noisewise.artifact.statistics.counts import CellNames
from noisewise.artifact.user_warnings import warn_user
from noisewise.artifact.validation import Fields, located

FORMAT = "noisewise-release"
"""Says in the file that this is a release and not some other JSON."""

RELEASE_VERSION = 1
"""The version of the file format that is read and written."""

MAX_BYTES = 256 * 2**20
"""Far above a release of 70,000 groups (a few megabytes), far below what hurts a machine."""

PLAIN_BYTES = 2**20
"""Larger files are parsed in little memory; smaller ones at once, with the place of a slip."""

PIECE = 2**14
"""Entries of a list that are written at once for the digest (chosen)."""

HDF5 = b"\x89HDF"
"""How every netCDF file begins, a posterior's too: to open one here deserves a word of its own."""


def dumps(release: Release) -> str:
    """Return the content of the file."""
    content = encode(release)
    head = {"format": FORMAT, "version": RELEASE_VERSION}
    return _pretty({**head, **content, "sha256": canonical_digest(release)}) + "\n"


def loads(content: str | bytes, path: Path | None = None) -> Release:
    """Return the release in a file's content; every failure is a ReleaseError.

    Args:
        content: of the file.
        path: of the file, for messages.
    """
    name = "this" if path is None else repr(str(path))
    if len(content) > MAX_BYTES:
        raise ReleaseError(f"release: larger than {MAX_BYTES // 2**20} MiB")
    held = [content]
    del content  # whoever takes it from the list is the only one to keep it in memory
    parsed = _parse(held, name)
    _check_format(parsed, name)
    top = Fields(parsed, "release")
    del parsed
    top.take("format")
    version = validation.integer(top.take("version"), "release: version", 1)
    if version != RELEASE_VERSION:
        raise ReleaseError(
            f"release: the file has version {version}, this noisewise reads version "
            f"{RELEASE_VERSION}; a newer file needs a newer noisewise"
        )
    digest = top.take("sha256")
    release = decode(top)
    if not _is_text(digest, canonical_digest(release)):
        raise ReleaseError(
            "release: the content does not match its sha256; the file was changed or damaged"
        )
    return release


def _is_text(value: object, text: str) -> bool:
    """Return whether a value is that text; in a large file it may be an array."""
    return isinstance(value, str) and value == text


def _check_format(parsed: object, name: str) -> None:
    """Raise a ReleaseError for some other JSON."""
    if not isinstance(parsed, dict):
        why = f"it must be a JSON object, not {validation.shown(parsed)}"
    elif "format" not in parsed:
        why = "'format' is missing"
    elif not _is_text(parsed["format"], FORMAT):
        stated = validation.shown(parsed["format"])
        why = f"format must be {FORMAT!r}, not {stated}; this is some other JSON file"
    else:
        return
    raise ReleaseError(f"release: {name} is not a noisewise release: {why}")


def save(release: Release, path: Path) -> Path:
    """Write the file, whole or not at all; keep others of that name as ``path~1~``, ``path~2~``."""
    content = dumps(release).encode()
    # Two processes that save to one name take turns: neither replaces what it has not kept.
    with (
        folder_lock(path.parent),
        atomic_write(
            path, lambda why: ReleaseError(f"release: cannot write {path}: {why}")
        ) as temporary,
    ):
        temporary.write_bytes(content)
        # An earlier release was paid for as well, and no one can make it again.
        kept = _keep(path, content) if path.is_file() else None
    if kept is not None:
        warn_user(f"release: {path} held another file, which is kept as {kept}")
    return path


def _keep(path: Path, content: bytes) -> Path | None:
    """Give what is at the path a name of its own; return that, or None where it is no news."""
    former = path.read_bytes()
    if former == content:
        return None
    number = 1
    while (kept := Path(f"{path}~{number}~")).exists():
        if kept.read_bytes() == former:
            return None
        number += 1
    try:
        os.link(path, kept)  # at once: the path itself is about to be another file
    except OSError:
        kept.write_bytes(former)  # a file system without links
    return kept


def load(path: Path) -> Release:
    """Return the release in a file; refuse oversized ones before they are in memory."""
    if "\0" in str(path):
        raise ReleaseError(f"release: {validation.shown(str(path))} is not a file name")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReleaseError(f"release: {path} is larger than {MAX_BYTES // 2**20} MiB")
        with open(path, "rb") as file:
            # A pipe or a growing file has no honest size. No name here, so that it can be freed.
            return loads(file.read(MAX_BYTES + 1), path)
    except OSError as error:
        raise ReleaseError(f"release: cannot read {path}: {error.strerror}") from None


def canonical_digest(release: Release) -> str:
    """Return a digest of the content: neither order of keys nor white space matters."""
    total = hashlib.sha256()
    for text in _canonical(encode(release)):
        total.update(text.encode())
    return total.hexdigest()


def _canonical(value: Any) -> Iterator[str]:
    """Yield JSON with sorted keys and without blanks; long lists in pieces, to save memory."""
    if isinstance(value, dict | _Rows):
        pairs = value.sorted_items() if isinstance(value, _Rows) else sorted(value.items())
        sign = "{"
        for key, held in pairs:
            yield f"{sign}{json.dumps(key)}:"
            yield from _canonical(held)
            sign = ","
        yield "{}" if sign == "{" else "}"
    elif isinstance(value, list) and any(isinstance(held, dict) for held in value):
        for number, held in enumerate(value):
            yield "," if number else "["
            yield from _canonical(held)
        yield "]"
    elif isinstance(value, np.ndarray | list | tuple) and len(value) > PIECE:
        for start in range(0, len(value), PIECE):
            yield f"{',' if start else '['}{_compact(value[start : start + PIECE])[1:-1]}"
        yield "]"
    else:
        yield _compact(value)


def _compact(value: Any) -> str:
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_constants(name: str) -> float:
    raise ReleaseError(f"release: {name} stands for a number; all numbers must be finite")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        validation.distinct([name for name, _ in pairs], "release: the keys of a JSON object")
    return unique


def _parse(held: list[str | bytes], name: str) -> object:
    """Parse JSON as RFC 8259 has it: UTF-8, no byte-order mark; and no key twice, no NaN.

    Args:
        held: the content alone, which is taken out and freed as early as can be.
        name: of the file, for messages.
    """
    content = held.pop()
    large, posterior = len(content) > PLAIN_BYTES, content[: len(HDF5)] == HDF5
    try:
        if large:
            held.append(content if isinstance(content, bytes) else content.encode())
            content = "of a large file"
            return low_memory_json.parse(held, object_pairs_hook=_no_repeats)
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return json.loads(text, parse_constant=_no_constants, object_pairs_hook=_no_repeats)
    except ReleaseError:
        raise
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeError as error:
        problem = "not UTF-8 text"
        if isinstance(error, UnicodeDecodeError) and not large:
            problem += f" (byte {error.start})"
        if posterior:
            problem = "it holds a posterior, which load_posterior opens"
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        problem = f"not valid JSON (line {error.lineno}, column {error.colno}): {what}"
        if large:  # places in what was left of the text
            problem = f"not valid JSON: {what}"
    except ValueError:
        # What remains is the interpreter's limit on the digits of an integer.
        problem = "a whole number has thousands of digits"
    if not content:
        problem = "the file is empty"
    raise ReleaseError(f"release: {name} is not a noisewise release, or damaged: {problem}")


def _pretty(value: Any, indent: str = "") -> str:
    """Return two-space JSON in which a list of plain values stays on one line."""
    deeper = indent + "  "
    if isinstance(value, _Rows) or (isinstance(value, dict) and value):
        rows = [f"{deeper}{json.dumps(k)}: {_pretty(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        rows = [deeper + _pretty(v, deeper) for v in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, allow_nan=False)


@dataclass(frozen=True)
class _Rows:
    """Values by name, as the rows of a matrix: a dictionary of a million arrays takes too much."""

    names: Sequence[str]
    matrix: np.ndarray

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield names with their rows."""
        return zip(self.names, self.matrix, strict=True)

    def sorted_items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield names with their rows, in the order of the names."""
        if isinstance(self.names, CellNames):
            return ((name, self.matrix[i]) for name, i in self.names.in_order())
        return iter(sorted(self.items(), key=lambda item: item[0]))


# -- release to dictionaries ---------------------------------------------------------------------


def encode(value: Release) -> dict[str, Any]:
    """Return everything but the envelope (format, version, digest); values are still arrays."""
    return {
        "family": value.family,
        "model": {k: list(v) if isinstance(v, tuple) else v for k, v in value.model.items()},
        "guarantee": _encode_guarantee(value.guarantee),
        "population": encode_fields(value.population),
        "groups": None if value.groups is None else encode_fields(value.groups),
        "bounds": {c: _encode_bounds(b) for c, b in value.bounds.items()},
        "fill": dict(value.fill),
        "selections": [_encode_selection(s) for s in value.selections],
        "blocks": [_encode_block(b) for b in value.blocks],
        "receipt": None if value.receipt is None else encode_fields(value.receipt),
        "software": value.software,
        "created": value.created,
        # Absent where nothing was selected, as in files of version 0.1: their digests stay valid.
        **({} if value.where is None else {"where": value.where}),
    }


def _encode_guarantee(value: Guarantee) -> dict[str, Any]:
    optional = ("unit", "max_records")
    fields = encode_fields(value)
    return {k: v for k, v in fields.items() if v is not None or k not in optional}


def _encode_bounds(value: Bounds) -> dict[str, float | str] | list[float]:
    if isinstance(value, Censored):
        return {"lower": value.lower, "upper": value.upper, "cut": value.sides}
    return [value.lower, value.upper]


def _encode_selection(value: Selection) -> dict[str, Any]:
    fields = encode_fields(value)
    search, half = fields.pop("search"), fields.pop("half_candidates")
    # Files of version 0.1 have half_candidates and no counts; each form is written as it was.
    how = (
        {"half_candidates": half}
        if search is None
        else {**encode_fields(search), "noise": encode_fields(search.noise)}
    )
    return {
        "column": value.column,
        "within": [value.within.lower, value.within.upper],
        **how,
        "quantiles": fields["quantiles"],
        "cost": value.cost,
    }


def _encode_block(block: Block) -> dict[str, Any]:
    return {
        "statistic": block.statistic.encode(),
        "noise": encode_fields(block.noise),
        "values": _Rows(block.statistic.names, block.values),
    }


# -- dictionaries to release, strictly -----------------------------------------------------------


def decode(top: Fields) -> Release:
    """Return the release that the content below the envelope describes."""
    groups, receipt = top.take("groups"), top.take("receipt")
    model = {k: _words(v, f"model: {validation.shown(k)}") for k, v in top.object("model").items()}
    bounds = {
        c: _bounds(b, f"bounds: {validation.shown(c)}") for c, b in top.object("bounds").items()
    }
    blocks = [_block(b, f"blocks[{i}]") for i, b in enumerate(top.items("blocks"))]
    selections = [_selection(s, f"selections[{i}]") for i, s in enumerate(top.items("selections"))]
    created = top.take("created")
    if created != "":
        validation.text(created, "created")
    fields = {
        "family": top.take("family"),
        "model": model,
        "guarantee": _guarantee(top.take("guarantee")),
        "population": _population(top.take("population")),
        "blocks": tuple(blocks),
        "bounds": bounds,
        "groups": None if groups is None else _groups(groups),
        "fill": top.object("fill"),
        "selections": tuple(selections),
        "receipt": None if receipt is None else _receipt(receipt),
        "software": top.take("software"),
        "created": created,
        "where": top.optional("where"),
    }
    top.done()
    return Release(**fields)


def _words(value: Any, where: str) -> str | int | float | tuple[str, ...]:
    if isinstance(value, list):
        return tuple(validation.text(v, where) for v in value)
    if isinstance(value, str):
        return validation.text(value, where)
    validation.real(value, where)
    return value  # type: ignore[no-any-return]  # an int stays an int, a float a float


def _bounds(value: Any, where: str) -> Bounds:
    if not isinstance(value, dict):
        return _pair(value, where)
    f = Fields(value, where)
    lower, upper, sides = (f.take(name) for name in ("lower", "upper", "cut"))
    f.done()
    with located(where):
        return Censored(lower, upper, sides)


def _pair(value: Any, where: str) -> Bounds:
    if not isinstance(value, list) or len(value) != 2:
        raise ReleaseError(f"{where}: must be [lower, upper], not {validation.shown(value)}")
    with located(where):
        return Bounds(*value)


def _guarantee(value: Any) -> Guarantee:
    f = Fields(value, "guarantee")
    decoded = Guarantee(
        epsilon=f.take("epsilon"),
        neighbours=f.take("neighbours"),
        delta=f.take("delta"),
        rho=f.take("rho"),
        within=f.take("within"),
        unit=f.optional("unit"),
        max_records=f.optional("max_records"),
    )
    f.done()
    return decoded


def _population(value: Any) -> Population:
    f = Fields(value, "population")
    decoded = Population(f.take("policy"), tuple(f.items("sizes")), f.take("total"))
    f.done()
    return decoded


def _groups(value: Any) -> Groups:
    f = Fields(value, "groups")
    decoded = Groups(f.take("column"), tuple(f.items("keys")))
    f.done()
    return decoded


def _receipt(value: Any) -> Receipt:
    f = Fields(value, "receipt")
    decoded = Receipt(f.take("ledger"), f.take("dataset"), f.take("entry"))
    f.done()
    return decoded


def _selection(value: Any, where: str) -> Selection:
    f = Fields(value, where)
    quantiles = f.items("quantiles")
    if len(quantiles) != 2:
        raise ReleaseError(f"{where}: 'quantiles' must be [low, high]")
    within = _pair(f.take("within"), f"{where}: within")
    column, cost, noise = f.take("column"), f.take("cost"), f.optional("noise")
    half = f.take("half_candidates") if noise is None else None
    parts = [] if noise is None else [f.items("candidates"), f.take("anchor"), f.items("counts")]
    f.done()
    with located(where):
        search = None
        if noise is not None:
            candidates, anchor, counts = parts
            search = CandidateCounts(tuple(candidates), anchor, tuple(counts), _noise(noise))
        return Selection(column, within, half, (quantiles[0], quantiles[1]), cost, search)


def _block(value: Any, where: str) -> Block:
    f = Fields(value, where)
    spec, noise, values = f.take("statistic"), f.take("noise"), f.take("values")
    if not isinstance(values, dict | NamedRows):
        raise ReleaseError(
            f"{where}: 'values' must be a JSON object, not {validation.shown(values)}"
        )
    f.done()
    with located(where):
        statistic = decode_statistic(_plain(spec))
        del spec  # in a large file its lists of levels take memory
        # Counted before a name is built: a small file may announce millions of them.
        components = len(statistic.units)
        given = len(values.rows) if isinstance(values, NamedRows) else len(values)
        if given != components:
            raise ReleaseError(
                f"'values' holds {given} components, {statistic.kind} has {components}"
            )
        return Block(statistic, _noise(noise), _matrix(values, statistic.names))


def _plain(value: object) -> object:
    """Return JSON whose cuts are put back: a statistic of one's own may have a field ``values``."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, NamedRows):
        return _no_repeats(list(zip(value.names(), value.rows.tolist(), strict=True)))
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _noise(value: Any) -> Noise:
    f = Fields(value, "noise")
    parts = [f.take(name) for name in ("mechanism", "scale", "sensitivity", "cost")]
    f.done()
    return Noise(*parts)


def _matrix(columns: dict[str, Any] | NamedRows, names: Sequence[str]) -> np.ndarray:
    """Return the values as a matrix; names and widths are checked before it is allocated."""
    if isinstance(columns, NamedRows):
        if columns.named(names):
            return columns.rows
        columns = _no_repeats(list(zip(columns.names(), columns.rows.tolist(), strict=True)))
    if odd := set(columns) ^ set(names):
        there = "unknown" if min(odd) in columns else "missing"
        raise ReleaseError(
            "'values' must hold exactly the components of the statistic; "
            f"{validation.shown(min(odd))} is {there}"
        )
    rows = [columns[n] for n in names]
    width = len(rows[0]) if isinstance(rows[0], list) else -1
    for name, row in zip(names, rows, strict=True):
        where = f"values of {validation.shown(name)}"
        if not isinstance(row, list) or len(row) != width or width < 1:
            raise ReleaseError(f"{where} must be a list, as long as the others")
        for v in row:
            if type(v) is not int or not -validation.MAX_INT - 1 <= v <= validation.MAX_INT:
                raise ReleaseError(
                    f"{where} must be 64-bit whole numbers, not {validation.shown(v)}"
                )
    return np.array(rows, dtype=np.int64)
