"""Several releases of one population: may their likelihoods be multiplied?

Releases of the same records share the exact sums s and differ in their noise only, which is drawn
afresh: p(z₁, z₂ | s) = p(z₁ | s) p(z₂ | s). That is wrong for other records (then s differs), for
records changed in between, and for one file given twice (then the noise is the same). A ledger's
dataset is a name the owner gave: two tables can be booked on it. So the sums themselves are
compared as well, whoever vouches for them (``disagreement.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from noisewise.artifact import ArgumentError, Release
from noisewise.inference import disagreement


def check(releases: Sequence[Release], *, same_population: bool) -> None:
    """Refuse what cannot be combined, naming the first thing that differs."""
    for number, other in enumerate(releases[1:], start=2):
        _alike(releases[0], other, number)
    for (i, one), (j, two) in combinations(enumerate(releases, start=1), 2):
        if _noise_is_shared(one, two):
            raise ArgumentError(
                f"release: {i} and {j} are the same release, whose noise was drawn once; "
                "give it once"
            )
    if not same_population and not _one_account(releases):
        raise ArgumentError(
            "same_population: say that these releases are of the same records, with "
            "same_population=True (--same-population); nothing in them proves it, since they do "
            "not name one dataset of one ledger. Releases of different populations must not be "
            "combined"
        )
    disagreement.check(list(releases))


def _alike(one: Release, other: Release, number: int) -> None:
    for what, first, second in (
        ("family", one.family, other.family),
        ("model", dict(one.model), dict(other.model)),
        ("groups", _groups(one), _groups(other)),
        ("bounds", dict(one.bounds), dict(other.bounds)),
        ("values for missing entries", dict(one.fill), dict(other.fill)),
        ("statistics", _main(one), _main(other)),
        ("policy on n (public or noisy)", one.population.policy, other.population.policy),
        ("number of records", one.population.sizes, other.population.sizes),
    ):
        if first != second:
            raise ArgumentError(
                f"release: 1 and {number} differ in their {what}: {_short(first)} and "
                f"{_short(second)}; only releases of the same columns, bounds and records can be "
                "combined"
            )


def _groups(release: Release) -> Any:
    return None if release.groups is None else (release.groups.column, release.groups.keys)


def _main(release: Release) -> Any:
    """What inference reads first; other blocks (monomials, counts of clamped) may differ."""
    return release.blocks[0].statistic


def _noise_is_shared(one: Release, two: Release) -> bool:
    """One file twice, or two texts of it.

    Two entries of a ledger are two draws, though their sums be equal (a small count often is).
    Without them, equal sums by chance are less likely than a slip.
    """
    if one.receipt is not None and two.receipt is not None:
        return one.receipt == two.receipt
    first, second = one.blocks[0], two.blocks[0]
    return first.noise == second.noise and bool((first.values == second.values).all())


def _one_account(releases: Sequence[Release]) -> bool:
    """The owner's ledger booked all of them on one dataset."""
    accounts = {
        None if r.receipt is None else (r.receipt.ledger, r.receipt.dataset) for r in releases
    }
    return len(accounts) == 1 and None not in accounts


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}…"
