"""Numbers as CSV files spell them: what a cell means depends on that cell alone.

Nothing is guessed from other cells. A number is what Arrow reads as float64; a level of a list of
whole numbers is compared exactly, never as a float; true and false are 1 and 0 in either. A date,
with a time of day or without, is a number too: days since 1970-01-01.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisewise.artifact import DataError
from noisewise.artifact.validation import FALSE_WORDS, TRUE_WORDS
from noisewise.privacy.lattice import Coded

TRUE, FALSE = TRUE_WORDS, FALSE_WORDS
"""Spellings of 1 and of 0."""
BLANKS = " \t"
"""Characters around a number that Arrow ignores."""
EXACT_FLOATS = 2**53
"""From here on, several whole numbers are one float64."""

_WHOLE = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?)?$"
_LARGE_FLOAT = r"^-?([0-9]{16,}\.0|[0-9](\.[0-9]+)?e\+[0-9]+)$"


def are_usual(cells: set[str], kind: pa.DataType) -> bool:
    """Return whether Arrow's own parser is likely to read such cells as that type."""
    if kind == pa.int64():
        return all(map(_WHOLE.fullmatch, cells))
    return kind != pa.float64() or cells.isdisjoint((*TRUE, *FALSE))


def floats(text: pa.Array, column: str = "", dated: bool | None = None) -> pa.Array:
    """Read each cell as float64; NULL stays NULL. Raise ArrowInvalid where one is no number.

    A DataError where a cell is a date and ``dated`` says that there are none, or the reverse.
    """
    text = pc.utf8_trim(text, BLANKS)
    text = pc.if_else(pc.is_in(text, pa.array(TRUE)), "1", text)
    text = pc.if_else(pc.is_in(text, pa.array(FALSE)), "0", text)
    is_date = pc.match_substring_regex(text, _DATE)
    for cell in pc.unique(is_date).drop_null().to_pylist():
        check_dates(column, cell, dated)
    if not pc.any(is_date).as_py():
        return text.cast(pa.float64())
    nothing = pa.scalar(None, text.type)
    day = pc.utf8_slice_codeunits(pc.if_else(is_date, text, nothing), 0, 10)
    days = day.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
    return pc.coalesce(days, pc.if_else(is_date, nothing, text).cast(pa.float64()))


def check_dates(column: str, holds_dates: bool, dated: bool | None) -> None:
    """Refuse dates where a column's bounds are numbers, and numbers where they are dates.

    None stands for bounds that may be either.
    """
    if dated is not None and holds_dates != dated:
        held, given = ("dates", "numbers") if holds_dates else ("numbers", "dates")
        raise DataError(
            f"column {column!r} holds {held}, but its bounds are {given}: bounds of dates are two "
            "dates, those of numbers two numbers"
        )


def positions(text: pa.Array, code: Coded) -> np.ndarray:
    """Return the index of each cell in a list of whole numbers; -1 missing, -2 not listed."""
    listed: dict[object, int] = {level: index for index, level in enumerate(code.levels)}
    encoded = text.dictionary_encode()
    # The last entry is for missing cells.
    places = [listed.get(whole(cell), -2) for cell in encoded.dictionary.to_pylist()] + [-1]
    indices = encoded.indices.fill_null(len(places) - 1).to_numpy(zero_copy_only=False)
    index: np.ndarray = np.array(places, np.int64)[indices]
    return index


def whole(cell: str) -> int | None:
    """Read a cell as a whole number, exactly; None: a number, but not a whole one.

    A cell that is spelled as a float of 2**53 or more is refused: its writer may have merged it
    with its neighbours (pandas makes floats of a whole column where one value is missing).
    """
    cell = cell.strip(BLANKS)
    if cell in TRUE or cell in FALSE:
        return int(cell in TRUE)
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if _HEXADECIMAL.fullmatch(cell):
        return (int(cell, 16) + 2**63) % 2**64 - 2**63  # as Arrow reads an int64
    if not _DECIMAL.fullmatch(cell):
        raise ValueError("not a number")
    value = Decimal(cell)
    if value.copy_abs() >= EXACT_FLOATS:
        raise ValueError("a float that may stand for several whole numbers")
    return int(value) if value == value.to_integral_value() else None


def check_levels(text: pa.Array, code: Coded) -> None:
    """Refuse "7.0" where "7" is a level and what is not listed counts as another.

    A missing value makes pandas write a whole column so, and every record would change its level.
    """
    if code.other is None or isinstance(code.levels[0], int):
        return
    respelt = {f"{level}.0" for level in code.levels if _WHOLE.fullmatch(str(level))}
    strange = pa.array(sorted(respelt - set(map(str, code.levels))), pa.string())
    if pc.any(pc.is_in(text, strange)).as_py():
        raise DataError(
            f"column {code.column!r} holds a level of its public list as a floating-point number; "
            "write whole numbers without a point"
        )


def check_ids(ids: pa.Array, column: str) -> None:
    """Refuse ids that were written as floats too large to tell two people apart."""
    large = pc.match_substring_regex(ids, _LARGE_FLOAT)
    for cell in ids.filter(large).to_pylist():
        if Decimal(cell).copy_abs() >= EXACT_FLOATS:
            raise merged_ids(column)


def merged_ids(column: str) -> DataError:
    """Return the error of ids that are floats, each of which may stand for several people."""
    return DataError(
        f"column {column!r} holds ids as floating-point numbers of 2**53 or more, which cannot "
        "tell people apart; store them as whole numbers or as text"
    )


def broken_ids(column: str) -> DataError:
    """Return the error of float ids that are no whole numbers, which each width rounds its way."""
    return DataError(
        f"column {column!r} holds ids as floating-point numbers that are not whole, which are "
        "rounded differently in other files or types; store them as whole numbers or as text"
    )
