"""Are posteriors honest, and how useful are they? Arrays and callables in, numbers out."""

from noisewise.diagnostics.calibration import (
    KS,
    Coverage,
    Wider,
    coverage,
    ks,
    ks_limit,
    ranks,
    share_band,
    uniform_band,
    wider,
)
from noisewise.diagnostics.scores import (
    decile_confusion,
    kl,
    log_predictive,
    mean_absolute_error,
    mmd2,
    outer_deciles_kept,
)
from noisewise.diagnostics.trial_journal import Journal, run_trials

__all__ = [
    "KS",
    "Coverage",
    "Journal",
    "Wider",
    "coverage",
    "decile_confusion",
    "kl",
    "ks",
    "ks_limit",
    "log_predictive",
    "mean_absolute_error",
    "mmd2",
    "outer_deciles_kept",
    "ranks",
    "run_trials",
    "share_band",
    "uniform_band",
    "wider",
]
