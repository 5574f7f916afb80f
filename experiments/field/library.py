"""``diffprivlib.models.LinearRegression`` as it comes, where diffprivlib can be imported.

Version 0.6.6 imports a name that scikit-learn 1.9.1, of ``constraints.txt``, does not have; so it
is no dependency of the experiments. With scikit-learn 1.7.2 it works, and the study has it where
both are installed by hand: ``pip install --no-deps diffprivlib==0.6.6 scikit-learn==1.7.2``.

Given to it are the public bounds and ε; everything else is its default. Read in its source: the
means of covariates and of the response take ε/(d + 1) each and the rest ε d/(d + 1), in all
ε (d + 2)/(d + 1); and noise of Σ x² is by the square of the lower bound only.
"""

from __future__ import annotations

import warnings

import numpy as np


def installed() -> bool:
    """Return whether the library can be imported."""
    try:
        import diffprivlib.models  # noqa: F401
    except ImportError:
        return False
    return True


def library_fit(seed: int, records: np.ndarray, epsilon: float) -> np.ndarray:
    """Return slopes and intercept of records in the box [-1, 1]."""
    from diffprivlib.models import LinearRegression

    d = records.shape[1] - 1
    model = LinearRegression(
        epsilon=epsilon, bounds_X=(-np.ones(d), np.ones(d)), bounds_y=(-1.0, 1.0), random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(records[:, :-1], records[:, -1])
    return np.append(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
