"""Prior of a generalized linear model: of its predictor, in the units of the link."""

from __future__ import annotations

from dataclasses import dataclass

from noisewise.priors.conjugate import _finite, _positive


@dataclass(frozen=True)
class Predictor:
    """Normal prior of a predictor at the records' mean, and of slopes per standard deviation.

    ``level`` and ``level_sd`` are of the predictor (log odds, or the log of a rate) where every
    covariate is at the records' mean; ``slopes_sd`` is the deviation that all slopes together give
    to the predictor, were the covariates uncorrelated: each slope, per standard deviation of its
    column, has slopes_sd / √d. No unit of any column enters. What is left out is weak and made for
    the model.

    Example:
        >>> import noisewise as nw
        >>> nw.priors.Predictor(slopes_sd=1.0)
        Predictor(level=None, level_sd=None, slopes_sd=1.0)
    """

    level: float | None = None
    level_sd: float | None = None
    slopes_sd: float | None = None

    def __post_init__(self) -> None:
        if self.level is not None:
            object.__setattr__(self, "level", float(_finite(self.level, "level", 0)))
        for name in ("level_sd", "slopes_sd"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _positive(value, name))
