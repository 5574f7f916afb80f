"""For people who live in scikit-learn: an estimator that is fitted to a release.

Needs scikit-learn: ``pip install 'noisewise[sklearn]'``.
"""

from __future__ import annotations

try:
    from noisewise.sklearn.regression import NoisyLinearRegression
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "noisewise.sklearn: scikit-learn is not installed; pip install 'noisewise[sklearn]'",
        name="sklearn",
    ) from error

__all__ = ["NoisyLinearRegression"]
