"""Powers and products of columns that noise makes nearly useless, because zero is far away.

Between 18 and 70, age and its square are nearly one line, and noise hides what tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noisewise.artifact.bounds import Bounds

UNCENTRED_SHARE = 0.5
"""Distance of the middle of a column's bounds from zero, in half widths, from which a warning says
that its powers should be taken of a shifted column (chosen: at one, where the lower bound is zero,
an even column and its square are correlated by 0.97; at a half by 0.89)."""


def uncentred_products(
    numeric: Iterable[tuple[str, ...]], bounds: Mapping[str, Bounds]
) -> list[str]:
    """Return a sentence for every column with powers or products and zero far from its middle.

    Args:
        numeric: columns of a regression, each a product of columns of the table.
        bounds: of the table's columns; those without are passed over.
    """
    products = [c for c in numeric if len(c) > 1]
    powers = {c for product in products for c in product if len(set(product)) == 1}
    sentences = []
    for column in dict.fromkeys(c for product in products for c in product):
        limits = bounds.get(column)
        if limits is None or abs(limits.centre) <= UNCENTRED_SHARE * limits.half_width:
            continue
        low, high = limits.lower - limits.centre, limits.upper - limits.centre
        line = (
            f"Between its bounds {column!r} and its powers are nearly one line, which makes "
            "intervals many times as wide"
            if column in powers
            else f"Zero is not in the middle of the bounds of {column!r}: its products then "
            "vary with the columns that it is multiplied with, and noise can make intervals "
            "two or three times as wide"
        )
        sentences.append(
            f"{line}: a formula cannot shift a column, so make one in the table, "
            f"{column} - {limits.centre:g} with bounds {low:g} to {high:g}, and take the powers "
            "and products of that."
        )
    return sentences
