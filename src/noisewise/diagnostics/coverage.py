"""Credible intervals: how often they hold the truth, and what chance alone allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, eq=False)
class Coverage:
    """Share of trials covered (…), and the mean width of the intervals, per trailing axis."""

    level: float
    share: np.ndarray
    width: np.ndarray
    trials: int


def coverage(draws: np.ndarray, truth: np.ndarray, level: float = 0.95) -> Coverage:
    """Central intervals of draws (trial, draw, …) against the truth (trial, …)."""
    if not 0 < level < 1:
        raise ValueError(f"level: must be between 0 and 1, not {level!r}")
    draws, truth = np.asarray(draws), np.asarray(truth)
    if draws.shape[:1] + draws.shape[2:] != truth.shape:
        raise ValueError(
            "draws: must have the shape of truth with an axis of draws after the first, "
            f"not {draws.shape} beside {truth.shape}"
        )
    low, high = _ends(draws, level)
    inside = (low <= truth) & (truth <= high)
    return Coverage(level, inside.mean(axis=0), (high - low).mean(axis=0), len(truth))


@dataclass(frozen=True, eq=False)
class Wider:
    """Mean logarithm of a ratio of widths, and its standard error, per trailing axis."""

    mean: np.ndarray
    error: np.ndarray


def wider(draws: np.ndarray, others: np.ndarray, level: float = 0.95) -> Wider:
    """How much wider central intervals are than others of the same trials (trial, draw, …)."""
    widths = [np.subtract(*_ends(np.asarray(d), level)[::-1]) for d in (draws, others)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(widths[0] / widths[1])
    ratio = np.where(np.isfinite(ratio), ratio, np.nan)
    count = np.isfinite(ratio).sum(axis=0)
    return Wider(np.nanmean(ratio, axis=0), np.nanstd(ratio, axis=0, ddof=1) / np.sqrt(count))


def _ends(draws: np.ndarray, level: float) -> np.ndarray:
    return np.asarray(np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1))


def share_band(level: float, trials: int, sure: float = 0.95) -> tuple[float, float]:
    """Shares that a true coverage of ``level`` gives with probability of at least ``sure``."""
    low, high = stats.binom.interval(sure, trials, level)
    return float(low / trials), float(high / trials)
