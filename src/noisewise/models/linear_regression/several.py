"""Several releases of the same records: one problem, the likelihoods multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from noisewise.inference.observation import averaged, reduced
from noisewise.models.linear_regression.problem import Problem


def together(problems: Sequence[Problem]) -> Problem:
    """Of releases alike but for their noise."""
    kept = reduced([p.observation for p in problems])
    first, *others = kept
    n = problems[0].n
    if problems[0].noisy_n:
        n = np.maximum(averaged(kept).z[:, -1], len(problems[0].x) + 3)
    return replace(
        problems[0], z=first.z, n=n, noise_scale=first.noise_scale, mechanism=first.mechanism,
        others=tuple(others), moments=None, exponents=(),
    )  # fmt: skip
