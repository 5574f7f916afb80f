"""A table of the form of the Opportunity Insights study of Illinois (thesis, section 5.4).

One row per person: the tract they grew up in, their parents' income rank (``pir``) and their own
as adults (``kir``), both in [0, 1]. The published form is reproduced: 3,108 tracts whose sizes have
a long tail from 20 to 446, and a line per tract that scatters around ``kir = 0.35 + 0.3 pir``. The
numbers are made up here (the real records are not public); they are simulated, so NumPy's generator
is the right one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TRACTS = 3108
"""Census tracts of Illinois in the study."""
SMALLEST_TRACT, LARGEST_TRACT = 20, 446
"""People in the smallest and the largest tract, as published."""


def social_mobility(*, tracts: int = TRACTS, seed: int = 0) -> pa.Table:
    """Simulate a table of people: their tract, their parents' income rank and their own.

    Args:
        tracts: number of census tracts.
        seed: of the simulation.

    Returns:
        Columns ``tract`` (whole number), ``pir``, ``kir``; about 280,000 rows at full size.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.social_mobility(tracts=5).column_names
        ['tract', 'pir', 'kir']
    """
    if tracts < 1:
        raise ValueError(f"tracts: must be at least 1, not {tracts!r}")
    rng = np.random.default_rng(seed)
    sizes = tract_sizes(rng, tracts)
    tract = np.repeat(np.arange(tracts), sizes)
    rows = len(tract)
    intercept = rng.normal(0.35, 0.06, tracts)[tract]
    slope = rng.normal(0.30, 0.08, tracts)[tract]
    # Neighbourhoods differ in wealth: parents' ranks gather around the tract's own level.
    wealth = rng.beta(4, 4, tracts)
    spread = rng.uniform(4, 12, tracts)
    pir = rng.beta((wealth * spread)[tract], ((1 - wealth) * spread)[tract])
    kir = np.clip(intercept + slope * pir + rng.normal(0, 0.2, rows), 0, 1)
    order = rng.permutation(rows)
    return pa.table({"tract": tract[order], "pir": pir[order], "kir": kir[order]})


def tract_sizes(rng: np.random.Generator, tracts: int) -> np.ndarray:
    """Draw people per tract: log-normal between the published extremes, which both occur."""
    sizes = np.clip(np.rint(rng.lognormal(4.3, 0.6, tracts)), SMALLEST_TRACT, LARGEST_TRACT).astype(
        np.int64
    )
    if tracts > 1:
        sizes[rng.permutation(tracts)[:2]] = SMALLEST_TRACT, LARGEST_TRACT
    return np.asarray(sizes)
