"""Are posteriors honest, and how useful are they? Arrays and callables in, numbers out."""

from noisewise.diagnostics.coverage import Coverage, Wider, coverage, share_band, wider
from noisewise.diagnostics.deciles import decile_confusion, outer_deciles_kept
from noisewise.diagnostics.heldout import log_predictive, mean_absolute_error
from noisewise.diagnostics.kl import kl
from noisewise.diagnostics.mmd import mmd2
from noisewise.diagnostics.ranks import KS, ks, ks_limit, ranks, uniform_band
from noisewise.diagnostics.trials import Journal, run_trials

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
