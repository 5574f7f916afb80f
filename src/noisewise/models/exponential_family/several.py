"""Several releases of the same records: one problem where the exact method has a place for it.

Normal noises are one normal noise. Laplace noises are not one of anything: the counts of a
categorical column are summed over one by one, so that any noise will do; the Fourier series of the
other families (``kernel.py``) stands for one release's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.inference.observation import Observation, averaged, reduced
from noisewise.models.exponential_family.families import Categorical
from noisewise.models.exponential_family.problem import Problem


def together(problems: Sequence[Problem]) -> Problem:
    """Of releases alike but for their noise; one alone is left as it is."""
    one = problems[0]
    if len(problems) == 1:
        return one
    kept = reduced([Observation(p.z, p.scale, p.mechanism) for p in problems])
    if len(kept) > 1 and not isinstance(one.family, Categorical):
        raise ArgumentError(
            f"release: releases of a {one.family.name} column can be combined where all have "
            "Gaussian noise; with Laplace noise, those of a categorical column and of a linear "
            "regression can"
        )
    first, *others = kept
    made = replace(
        one, z=first.z, scale=first.noise_scale, mechanism=first.mechanism, others=tuple(others),
        between=one.family.whole and first.mechanism == "gaussian",
    )  # fmt: skip
    if one.counted is None:
        return made
    if isinstance(one.family, Categorical):
        counted, scale = averaged(kept).z.sum(axis=1), 0.0
    else:
        sizes = [_size(p) for p in problems]
        counted, scale = averaged(sizes).z[:, 0], averaged(sizes).noise_scale
    n = np.maximum(np.rint(counted), 1.0)
    return replace(made, counted=counted, count_scale=scale, n=n)


def _size(problem: Problem) -> Observation:
    counted = np.asarray(problem.counted)
    return Observation(counted[:, None], problem.count_scale, problem.mechanism)
