"""Whether two samplers agree: shares of draws below common quantiles."""

from __future__ import annotations

import numpy as np

from noisewise.numerics.convergence import _ess

QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference of shares of draws (chain, draw), in standard errors.

    Shares, and not means, since tails may be so heavy that means say nothing.
    """
    largest = 0.0
    for q in np.quantile(np.concatenate([ours.ravel(), theirs.ravel()]), QUANTILES):
        shares = [(some < q).astype(float) for some in (ours, theirs)]
        error = np.sqrt(sum(share.var() / _effective(share) for share in shares))
        largest = max(largest, float(abs(shares[0].mean() - shares[1].mean()) / error))
    return largest


def _effective(draws: np.ndarray) -> float:
    """Return the effective number of draws behind their mean, chains cut in halves.

    Not by ranks, as ``diagnose``: an indicator has two values, and ranks would be all ties.
    """
    half = draws.shape[-1] // 2
    return float(_ess(np.concatenate([draws[:, :half], draws[:, half : 2 * half]])))
