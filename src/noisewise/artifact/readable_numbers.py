"""Numbers as a person reads them: 38,012 rather than 3.8e+04, and no probability of 2.58e-104."""

from __future__ import annotations

import math

GROUPED = 10_000
"""From here on numbers have no decimals and a comma before every three digits (chosen): shorter
ones, years among them, read better without."""
WHOLE = 1_000_000
"""Below it no digit before the decimal point is rounded away (chosen)."""
LONGEST = 1e15
"""From here on numbers are written with an exponent: sixteen digits are not read (chosen)."""
RAREST = 1e-4
"""Probabilities below it, or as near to one, are told by this limit (chosen: a chance of one in
ten thousand is as good as never, and models are not right that far out in their tails)."""


def readable(value: float, digits: int = 4) -> str:
    """Return a number with so many digits, large ones in full and with commas.

    Example:
        >>> from noisewise.artifact.readable_numbers import readable
        >>> readable(38012.3), readable(0.123456), readable(87_773_123.0)
        ('38,012', '0.1235', '87,770,000')
        >>> readable(9183.4, 3)
        '9183'
    """
    size = abs(value)
    if not math.isfinite(value) or size >= LONGEST:
        return f"{value:.{digits}g}"
    # What is rounded up to the limit is written as the limit is.
    rounded = float(f"{size:.{digits}g}")
    if rounded < GROUPED:
        return f"{value:.0f}" if rounded >= 10**digits else f"{value:.{digits}g}"
    if size >= WHOLE:
        value = float(f"{value:.{digits}g}")
    decimals = max(0, digits - len(f"{size:.0f}"))
    return f"{value:,.{decimals}f}"


def in_full(value: float) -> str:
    """Return a number that somebody gave, such as a bound, with all of its digits.

    Example:
        >>> from noisewise.artifact.readable_numbers import in_full
        >>> in_full(1e6), in_full(63_770.25), in_full(1950.0), in_full(0.1)
        ('1,000,000', '63,770.25', '1950', '0.1')
    """
    return f"{value:,.15g}" if abs(value) >= GROUPED else f"{value:.15g}"


def range_in_full(lower: float, upper: float) -> str:
    """Return in words what two numbers enclose, each with all of its digits.

    Example:
        >>> from noisewise.artifact.readable_numbers import range_in_full
        >>> range_in_full(0, 1e6)
        '0 to 1,000,000'
    """
    return f"{in_full(lower)} to {in_full(upper)}"


def probability(value: float) -> str:
    """Return a probability with four digits; of extreme ones only that they are.

    Example:
        >>> from noisewise.artifact.readable_numbers import probability
        >>> probability(0.25), probability(2.58e-104), probability(1 - 1e-9)
        ('0.25', 'below 0.0001', 'above 0.9999')
    """
    if value < RAREST:
        return f"below {RAREST:g}"
    if value > 1 - RAREST:
        return f"above {1 - RAREST:g}"
    return f"{value:.4g}"


def probability_range(lower: float, upper: float) -> str:
    """Return in words where a probability lies.

    Example:
        >>> from noisewise.artifact.readable_numbers import probability_range
        >>> probability_range(0.2, 0.3), probability_range(1e-200, 1e-90)
        ('0.2 to 0.3', 'below 0.0001')
    """
    ends = probability(lower), probability(upper)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
