"""Tables a person can read, from a Release. pandas is loaded only when one is asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from noisewise.artifact.statistics import Gram, Monomials

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.artifact.guarantee import Noise
    from noisewise.artifact.release import Block, Release


def noise_sd(noise: Noise) -> float:
    """Standard deviation of the noise, in the block's integer unit.

    Of the discrete distributions, P(k) ∝ exp(-|k|/b) or exp(-k²/2b²): below the continuous √2 b
    and b where the scale is a step or less, as it is for counts at a generous ε.
    """
    if noise.mechanism == "laplace":
        half_step = 1 / (2 * noise.scale)
        return 1 / (math.sqrt(2.0) * math.sinh(half_step)) if half_step < 700 else 0.0
    if noise.scale > 10:
        return noise.scale  # exact in float64: they differ by a factor of 1 - 4π²b² exp(-2π²b²)
    k = np.arange(1, 400)
    weights = 2 * np.exp(-((k / noise.scale) ** 2) / 2)
    return math.sqrt(float(k**2 @ weights) / (1 + float(weights.sum())))


def _frame(
    release: Release, block: Block, values: np.ndarray, spread: np.ndarray, column: str
) -> pd.DataFrame:
    """Long form: all statistics of the first group, then of the second, …"""
    import pandas as pd

    keys = (None,) if release.groups is None else release.groups.keys
    names = block.statistic.names
    return pd.DataFrame(
        {
            "group": np.repeat(np.array(keys, dtype=object), len(names)),
            "statistic": np.tile(np.array(names, dtype=object), len(keys)),
            "value": values.T.ravel(),
            column: np.tile(spread, len(keys)) if spread.ndim == 1 else spread.T.ravel(),
        }
    )


def box_table(release: Release) -> pd.DataFrame:
    """The released numbers as they are: regression statistics in box units, counts as counts."""
    import pandas as pd

    frames = [_frame(release, b, b.scaled, b.noise_scales, "noise_scale") for b in release.blocks]
    return pd.concat(frames, ignore_index=True)


def user_table(release: Release) -> pd.DataFrame:
    """Sums of the clamped columns in the user's units, with the standard deviation of the noise."""
    import pandas as pd

    frames = []
    for block in release.blocks:
        if isinstance(block.statistic, Monomials):
            continue  # moments of the box; their only reader is a sampler that works in the box
        values, spread = block.scaled, noise_sd(block.noise) * np.array(block.statistic.units)
        if isinstance(block.statistic, Gram):
            values, spread = _unscale_gram(release, block)
        frames.append(_frame(release, block, values, spread, "noise_sd"))
    return pd.concat(frames, ignore_index=True)


def _unscale_gram(release: Release, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """With x = c + h u: Σ x_i x_j = h_i h_j Σ u_i u_j + c_i h_j Σ u_j + c_j h_i Σ u_i + c_i c_j n.

    Linear in the released components, which carry independent noise: so is the variance.
    """
    statistic = block.statistic
    products = getattr(statistic, "products", ())
    index = {p: r for r, p in enumerate(products)}
    centre = [release.bounds[c].centre for c in statistic.columns]
    half = [release.bounds[c].half_width for c in statistic.columns]
    transform = np.zeros((len(products), len(products)))
    constant = np.zeros(len(products))
    for row, product in enumerate(products):
        for chosen in range(2 ** len(product)):
            kept = tuple(i for b, i in enumerate(product) if chosen >> b & 1)
            left = [i for b, i in enumerate(product) if not chosen >> b & 1]
            weight = math.prod(half[i] for i in kept) * math.prod(centre[i] for i in left)
            if kept in index:
                transform[row, index[kept]] += weight
            else:
                constant[row] += weight
    sizes = 0 if release.n is None else np.atleast_1d(release.n)
    values = transform @ block.scaled + np.outer(constant, sizes)
    sd = noise_sd(block.noise) * np.array(statistic.units)
    return values, np.sqrt(transform**2 @ sd**2)
