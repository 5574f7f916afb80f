"""Where no sum comes near z: there Laplace noise is a plain exponential, and needs no transform.

If s < z surely, E exp(-|z-s|/b) = e^{-z/b} M(1/b)ⁿ with M the moment generating function of one
record's contribution x; likewise e^{z/b} M(-1/b)ⁿ if s > z. "Surely" is under the tilted law, of
density e^{x/b}/M(1/b), because the error is P_tilted(s > z). With v the variance of x, w its range
and g = e^{w/b}, tilting moves the mean by at most vg/b and multiplies the variance by at most g;
Bennett's inequality then bounds the sum: farther from its mean than 8 deviations and 12 ranges it
has probability below e^-32.

The Fourier series is left with the parameters whose sums come near z. Its period shrinks from all
possible sums to those few deviations, and with it the number of terms, tenfold or more.
"""

from __future__ import annotations

import numpy as np

from noisewise.models.exponential_family.likelihood import Record

QUIET = 2.0
"""A range of this many noise scales: beyond, tilting says little, and all sums count as near."""


def stray(variance: np.ndarray, width: float | np.ndarray, depth: float = 32.0) -> np.ndarray:
    """How far a sum of this variance strays from its mean (Bennett), below e^-depth."""
    return np.asarray(np.sqrt(2 * depth * variance) + (0.35 * depth + 0.8) * width)


def near(
    z: np.ndarray, n: float, ends: tuple[float, float], mean: np.ndarray, variance: np.ndarray,
    scale: float, mechanism: str,
) -> np.ndarray:  # fmt: skip
    """(release, parameter): whether s may be as near z as to need the transform."""
    low, high = ends
    width = high - low
    if mechanism == "gaussian":
        # Beyond eight scales the noise has density below e^-32.
        reach = stray(n * variance, width) + 8 * scale
        return np.asarray(np.abs(z[:, None] - n * mean) < reach)
    if width > QUIET * scale:
        return np.ones((len(z), len(mean)), bool)
    g = np.exp(width / scale)
    reach = n * variance * g / scale + stray(n * variance * g, width)
    above = np.minimum(n * mean + reach, n * high)
    below = np.maximum(n * mean - reach, n * low)
    return np.asarray((z[:, None] < above) & (z[:, None] > below))


def likelihood(
    record: Record, mean: np.ndarray, z: np.ndarray, n: float, scale: float, mechanism: str
) -> np.ndarray:
    """(release, parameter) where z is not near, in the units of the transform's."""
    if mechanism == "gaussian":
        return np.zeros((len(z), len(mean)))
    up, down = (n * np.log(record.probability @ np.exp(t * record.added / scale)) for t in (1, -1))
    at = z[:, None]
    # Near the mean neither formula holds, and an exponent may be anything.
    exponent = np.where(at > n * mean, up - at / scale, down + at / scale)
    return np.asarray(np.exp(np.minimum(exponent, 0.0)))
