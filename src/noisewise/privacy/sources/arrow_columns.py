"""Columns of Arrow: what they hold, in plain words, and their values as numbers or level indices.

What a value means depends on its column's type and on that value, never on other records. Errors
name the column and quote no value.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisewise.artifact import DataError
from noisewise.artifact.validation import spellings
from noisewise.privacy.lattice import Coded
from noisewise.privacy.sources import csv_numbers

TYPE_WORDS = (
    (r"dictionary<values=([^,>]+).*", ""),
    (r"(large_)?(string|utf8)(_view)?", "text"),
    (r"timestamp|datetime", "dates and times"),
    (r"date", "dates"),
    (r"duration|interval|month", "lengths of time"),
    (r"time", "times of day"),
    (r"bool", "true or false"),
    (r"u?int\d*", "whole numbers"),
    (r"(half|half_)?float|double|decimal", "numbers"),
    (r"(large_|fixed_size_)?(binary|blob)|bytes", "bytes"),
    (r"(large_|fixed_size_)?list|array|struct|map|json|union|extension", "nested values"),
    (r"null", "nothing"),
)
"""Beginnings of the names that Arrow and Ibis give to types, and what a person calls them."""


def describe_type(kind: object) -> str:
    """Return in plain words what a column of an Arrow or Ibis type holds.

    Args:
        kind: the type, whose text begins with its name, such as ``timestamp[us]``.

    Returns:
        Words such as "text", or the type's own name where nobody has better words.
    """
    # Ibis marks a column without missing values by an exclamation mark.
    name = str(kind).lower().removeprefix("!")
    for pattern, words in TYPE_WORDS:
        match = re.match(pattern, name)
        if match:
            return words or describe_type(match.group(1))
    return str(kind)


def not_numeric(column: str, kind: object) -> DataError:
    """Return the error of a column that should hold numbers."""
    held = describe_type(kind)
    zone = " of a time zone; make dates of them, which count as days"
    zone = zone if held == "dates and times" else ""
    return DataError(f"column {column!r} must be numeric, but holds {held}{zone}")


def not_codable(column: str, kind: object) -> DataError:
    """Return the error of a column that should hold categories or ids."""
    return DataError(
        f"column {column!r} must hold text or whole numbers, but holds {describe_type(kind)}"
    )


def list_mismatch(code: Coded) -> DataError:
    """Return the error of text with a public list of numbers, or of numbers with one of text."""
    textual = isinstance(code.levels[0], str)
    held, listed = ("numbers", "text") if textual else ("text", "whole numbers")
    return DataError(f"column {code.column!r} holds {held}, but its public list is of {listed}")


def check_list(code: Coded, is_text: bool, holds_truth: bool, float_bits: int | None) -> None:
    """Refuse a column and a public list of which one holds text, unless both compare as text.

    Text compares with whole numbers where nothing else would count as another level, numbers
    compare with text where some level is one. Types and the list decide, never a record.
    """
    named = {int(v) for level in code.levels for v in spellings(level)[1:] if str(v) == level}
    if is_text:
        comparable = isinstance(code.levels[0], str) or code.other is None
    elif isinstance(code.levels[0], str):
        comparable = bool(named) or (holds_truth and set(truth_words(code)) <= set(code.levels))
    else:
        comparable, named = True, set(map(int, code.levels))
    if not comparable:
        raise list_mismatch(code)
    if float_bits is not None:
        check_floats(replace(code, levels=tuple(named)), float_bits)


def as_text(code: Coded) -> Coded:
    """Return a public list of whole numbers as the texts of their digits."""
    fill, other = (None if v is None else str(v) for v in (code.fill, code.other))
    return replace(code, levels=tuple(map(str, code.levels)), fill=fill, other=other)


def truth_words(code: Coded) -> tuple[str, str]:
    """Return the levels of a list of texts that stand for true and for false, else "1" and "0"."""
    true, false = (
        next((str(w) for w in spellings(truth)[1:] if w in code.levels), str(int(truth)))
        for truth in (True, False)
    )
    return true, false


def unfit(column: str, wanted: str) -> DataError:
    """Return the error of a value of the wrong type, which is not quoted."""
    return DataError(f"column {column!r} holds something that is not {wanted}")


def misfit(code: Coded) -> DataError:
    """Return the error of a value of the wrong type in a column with a public list."""
    textual = isinstance(code.levels[0], str)
    return unfit(code.column, "text" if textual else "a whole number, as its public list is")


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether a column of the type is read as numbers: numbers, or days."""
    if pa.types.is_dictionary(kind):
        return is_numeric(kind.value_type)
    return _holds_numbers(kind) or _holds_days(kind)


def _holds_days(kind: pa.DataType) -> bool:
    """Return whether a column counts as days since 1970-01-01: dates, and times on such days."""
    is_local = pa.types.is_timestamp(kind) and kind.tz is None
    return bool(pa.types.is_date(kind) or is_local)


def _holds_numbers(kind: pa.DataType) -> bool:
    t = pa.types
    # A column of nothing but NULL has the type "null": it is missing everywhere, not wrong.
    kinds = (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean, t.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def holds_text(kind: pa.DataType) -> bool:
    """Return whether a column of the type holds text."""
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def is_codable(kind: pa.DataType) -> bool:
    """Return whether a column of the type is read as categories or ids."""
    if pa.types.is_dictionary(kind):
        return is_codable(kind.value_type)
    return holds_text(kind) or (_holds_numbers(kind) and not pa.types.is_decimal(kind))


def column_floats(
    column: pa.Array, name: str, spelled: bool, dated: bool | None = None
) -> np.ndarray:
    """Return float64 with NaN for NULL; a copy only where there are NULLs or another type.

    A DataError where ``dated`` says that there are dates, or none, and it is otherwise.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if spelled and holds_text(column.type):
        column = csv_numbers.floats(column, name, dated)
    elif not pa.types.is_null(column.type):
        csv_numbers.check_dates(name, _holds_days(column.type), dated)
    if column.type != pa.float64():
        if not is_numeric(column.type):
            raise not_numeric(name, column.type)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        elif _holds_days(column.type):
            column = column.cast(pa.date32(), safe=False).cast(pa.int32())
        elif pa.types.is_decimal(column.type):
            # Arrow's own cast is an ulp off for one value in four; text is read correctly rounded.
            column = column.cast(pa.string())
        column = column.cast(pa.float64(), safe=False)
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def level_indices(column: pa.Array, code: Coded, spelled: bool = False) -> np.ndarray:
    """Return the index of each value in the public list; -1 missing, -2 unlisted."""
    if pa.types.is_dictionary(column.type):
        if holds_text(column.type.value_type) and len(column.dictionary) <= len(column):
            # Every distinct text is looked up once; the last index stands for NULL.
            distinct = pa.concat_arrays([column.dictionary, pa.nulls(1, column.type.value_type)])
            of_text = level_indices(distinct, code)
            places = column.indices.cast(pa.int64()).fill_null(len(of_text) - 1)
            return np.asarray(of_text[places.to_numpy(zero_copy_only=False)])
        column = column.dictionary_decode()
    textual = isinstance(code.levels[0], str)
    if spelled and holds_text(column.type) and not textual:
        index = csv_numbers.positions(column, code)
    else:
        if holds_text(column.type) != textual and not pa.types.is_null(column.type):
            column, code = _both_text(column, code)
        if spelled:
            csv_numbers.check_levels(column, code)
        index = _looked_up(column, code)
    if code.fill is not None:
        index[index == -1] = code.levels.index(code.fill)
    if code.other is not None:
        index[index == -2] = code.levels.index(code.other)
    return index


def _both_text(column: pa.Array, code: Coded) -> tuple[pa.Array, Coded]:
    """Return column and list as text: a whole number by its digits, others by "", no level."""
    kind = column.type
    bits = kind.bit_width if pa.types.is_floating(kind) else None
    check_list(code, holds_text(kind), pa.types.is_boolean(kind), bits)
    if holds_text(kind):
        return column, as_text(code)
    if pa.types.is_boolean(kind):
        return pc.if_else(column, *truth_words(code)), code
    if pa.types.is_floating(kind):
        x = _plain(column)
        is_whole = pc.and_(pc.less(pc.abs(x), float(exact_below(64))), pc.equal(pc.floor(x), x))
        digits = pc.if_else(is_whole, x, 0.0).cast(pa.int64()).cast(pa.string())
        return pc.if_else(is_whole, digits, ""), code
    return column.cast(pa.string()), code


def _looked_up(column: pa.Array, code: Coded) -> np.ndarray:
    column, levels = _comparable(column, code)
    positions: np.ndarray = (
        pc.index_in(column, value_set=levels).fill_null(-2).to_numpy(zero_copy_only=False)
    )
    index = positions.astype(np.int64)
    index[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return index


def _comparable(column: pa.Array, code: Coded) -> tuple[pa.Array, pa.Array]:
    """Return column and list in one type. NaN becomes NULL: both mean missing."""
    if isinstance(code.levels[0], str):
        return column.cast(pa.large_string()), pa.array(code.levels, pa.large_string())
    if pa.types.is_floating(column.type):
        check_floats(code, column.type.bit_width)
        return _plain(column), pa.array([float(v) for v in code.levels], pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.int64()), pa.array(code.levels, pa.int64())


def _plain(column: pa.Array) -> pa.Array:
    """Return float64 with NULL for NaN. Arrow compares bits: adding zero makes 0.0 of -0.0."""
    column = pc.add(column.cast(pa.float64()), 0.0)
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)


def exact_below(bits: int) -> int:
    """Return the least whole number that a float of so many bits may confuse with the next."""
    return {16: 2**11, 32: 2**24}.get(bits, 2**53)


def check_floats(code: Coded, bits: int) -> None:
    """Refuse a list that floats of so many bits cannot tell apart, whatever the records are."""
    if any(abs(int(level)) >= exact_below(bits) for level in code.levels):
        raise DataError(
            f"column {code.column!r} holds floating-point numbers, which cannot tell the whole "
            "numbers of its public list apart; store it as whole numbers or as text"
        )
