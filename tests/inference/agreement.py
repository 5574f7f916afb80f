"""When two Monte-Carlo answers agree: differences in standard errors."""

from __future__ import annotations

import numpy as np

from noisewise.inference import Posterior

TOLERANCE = 4.5
"""In standard errors. Two-sided, 7e-6 a comparison if errors were normal; errors of sds have
heavier tails than that, so the comparisons of one test together raise a false alarm in about one of
1,000 seeds. Seeds are fixed."""


def summary(post: Posterior, group: int | None = None) -> dict[str, np.ndarray]:
    """Mean and sd of every parameter with their standard errors, from the effective draws."""
    rows = []
    for name, values in post.draws.items():
        flat = (values if group is None else values[group]).ravel()
        ess = float(post.ess[name] if group is None else post.ess[name][group])
        mean, sd = flat.mean(), flat.std()
        # sd is not rank-normalised: its own effective size is smaller, by at most about two.
        error = np.std((flat - mean) ** 2) / (2 * sd) / np.sqrt(ess / 2)
        rows.append((mean, sd, sd / np.sqrt(ess), error))
    keys = ("mean", "sd", "mean_error", "sd_error")
    return dict(zip(keys, np.array(rows).T, strict=True))


def departures(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray:
    """Differences of means and of sds in their combined standard errors."""
    parts = [
        (one[k] - other[k]) / np.hypot(one[f"{k}_error"], other[f"{k}_error"])
        for k in ("mean", "sd")
    ]
    return np.concatenate(parts)


def known(mean: np.ndarray, sd: np.ndarray) -> dict[str, np.ndarray]:
    """An answer without Monte-Carlo error."""
    zero = np.zeros_like(mean)
    return {"mean": mean, "sd": sd, "mean_error": zero, "sd_error": zero}
