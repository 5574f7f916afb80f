"""The noise as a Fourier series on the distances that can occur.

p(z | s) ∝ K(s - z), K(d) = exp(-|d|/b) or exp(-d²/2b²): so on the lattice of a release as in the
continuum, since z and s are both lattice points. With |s - z| ≤ W, any periodic function that
agrees with K on [-W, W] will do, and its coefficients c_k give

    E[K(s - z)] = c_0 + 2 Σ_k c_k Re[ φ_s(kh) e^{-ikhz} ],   h = 2π/L,

errata E19 without its quadrature error: only the series is cut off. For Laplace noise K itself,
repeated with period L = 2W, has c_k = (2/Lb)(1 - (-1)^k e^{-L/2b}) / (1/b² + k²h²).
On whole numbers the series is finite: a discrete Fourier transform of odd length L.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

TAIL = 32.0
"""Noise beyond TAIL scales (Laplace), or √(2·TAIL) (Gaussian), has density below e^-32."""


class Series(NamedTuple):
    """Frequencies kh and coefficients, doubled for k > 0."""

    frequency: np.ndarray
    coefficient: np.ndarray


def series(reach: float, scale: float, mechanism: str, whole: bool, highest: float) -> Series:
    """Right for distances up to ``reach``, with frequencies up to ``highest``."""
    far = TAIL * scale if mechanism == "laplace" else math.sqrt(2 * TAIL) * scale
    period = reach + far
    if mechanism == "laplace" or whole:
        period = min(2 * reach, period)
    if whole:
        return _finite(2 * math.ceil(period / 2) + 1, scale, mechanism, highest)
    h = 2 * np.pi / period
    k = np.arange(1 + max(1, math.ceil(highest / h)))
    if mechanism == "laplace":
        sign = 1 - np.where(k % 2, -1.0, 1.0) * np.exp(-period / (2 * scale))
        c = 2 / (period * scale) * sign / (1 / scale**2 + (k * h) ** 2)
    else:
        c = math.sqrt(2 * np.pi) * scale / period * np.exp(-((scale * k * h) ** 2) / 2)
    return Series(k * h, np.where(k > 0, 2.0, 1.0) * c)


def _finite(period: int, scale: float, mechanism: str, highest: float) -> Series:
    """Distances on a circle of ``period`` whole steps."""
    d = np.minimum(np.arange(period), period - np.arange(period)) / scale
    kernel = np.exp(-d if mechanism == "laplace" else -(d**2) / 2)
    c = np.fft.rfft(kernel).real / period
    h = 2 * np.pi / period
    kept = min(len(c), 1 + max(1, math.ceil(highest / h)))
    k = np.arange(kept)
    return Series(k * h, np.where(k > 0, 2.0, 1.0) * c[:kept])
