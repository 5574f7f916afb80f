"""Links: the mean of a response given its predictor, and its moments under a normal predictor.

A response y has E[y | t] = h(t) at the predictor t = a + bᵀz, where the covariates z are whitened.
With t ~ N(a, v), v = |b|², and g_k(a, v) = E h^(k)(t), Stein's identity gives the mean of (y, yz),

    m = (g0, b g1),

and R, the covariance of (y, yz) after projection off (1, z, zzᵀ), whose sums are fixed by the
covariates' own moments:

    R = [[R00, r bᵀ], [r b, c0 I + c1 b bᵀ]].

For y in {0, 1}:  c0 = g0 (1 - g0) - v g1²,  R00 = c0 - ½ v² g2²,
                  r = g1 (1 - 2 g0) - 2 v g1 g2 - ½ v² g2 g3,
                  c1 = g2 (1 - 2 g0) - 2 g1² - v g2² - 2 v g1 g3 - ½ v² g3².
For counts, with M1 = exp(a + v/2) and the factorial moment M2 = exp(2a + 2v):
                  c0 = M2 + M1 - M1² (1 + v),  R00 = c0 - ½ v² M1²,
                  r = 2 M2 + M1 - M1² (2 + 2v + ½ v²),  c1 = 4 M2 + M1 - M1² (4 + 3v + ½ v²).

A logistic variate is 2K times a normal one, K of Kolmogorov's distribution (D. F. Andrews,
C. L. Mallows, "Scale mixtures of normal distributions", JRSS B 36, 1974): the logistic function is
a mixture of probits, Σ w_i Φ(t / √c_i), and so are its g_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import expit, ndtr
from jax.scipy.stats import norm

import noisewise.numerics.jax_settings  # noqa: F401  # float64
from noisewise.models.generalized_linear.response_laws import LARGEST_LOG_RATE

MIXTURE_TERMS = 12
"""Terms of the mixture: the logistic function and its first three derivatives are then right to
3e-8 everywhere, and so are all g_k (tested)."""
KOLMOGOROV_RANGE = (0.28, 2.52)
"""Where the mixture's nodes lie, evenly in log K (chosen: the least error of all four)."""


class NormalMoments(NamedTuple):
    """Moments of (y, yz) under normal covariates: m = (mean, slope b), and the parts of R."""

    mean: jax.Array
    slope: jax.Array
    corner: jax.Array
    plain: jax.Array
    cross: jax.Array
    outer: jax.Array


class VarianceShare(NamedTuple):
    """E[Var(y | t) (1, z)(1, z)ᵀ] under normal covariates, in the parts of R."""

    corner: jax.Array
    plain: jax.Array
    cross: jax.Array
    outer: jax.Array


@dataclass(frozen=True)
class Link:
    """A response's law given its predictor.

    ``mean`` h(t) and ``second`` E[y² | t]; ``moments(a, v)`` under normal covariates;
    ``given_records(a, v)`` the part of R that is the response's own scatter. ``counts`` tells
    counts from responses that are 0 or 1.
    """

    name: str
    counts: bool
    mean: Callable[[jax.Array], jax.Array]
    second: Callable[[jax.Array], jax.Array]
    moments: Callable[[jax.Array, jax.Array], NormalMoments]
    given_records: Callable[[jax.Array, jax.Array], VarianceShare]

    def rough_predictor(self, mean: np.ndarray) -> np.ndarray:
        """Return the predictor t at which E[y | t] is this mean, by the logistic inverse or log."""
        if self.counts:
            return np.asarray(np.log(mean))
        return np.asarray(np.log(mean) - np.log1p(-mean))


def _logistic_mixture() -> tuple[np.ndarray, np.ndarray]:
    """Return the weights w_i and variances c_i of the logistic function's mixture of probits."""
    low, high = np.log(KOLMOGOROV_RANGE)
    k = np.exp(np.linspace(low, high, MIXTURE_TERMS))
    j = np.arange(1, 200)[:, None]
    density = 8 * k * np.sum((-1.0) ** (j + 1) * j**2 * np.exp(-2 * j**2 * k**2), axis=0)
    weights = density * k
    return weights / weights.sum(), 4 * k**2


LOGISTIC_WEIGHTS, LOGISTIC_VARIANCES = _logistic_mixture()
"""The mixture of probits that is the logistic function."""


def _probits(
    a: jax.Array, v: jax.Array, weights: np.ndarray, variances: np.ndarray
) -> tuple[jax.Array, ...]:
    """Return g0, 1 - g0, g1, g2 and g3 of a mixture of probits."""
    # One axis over the terms, not a loop: it compiles in a fraction of the time.
    wide = (-1, *(1,) * max(jnp.ndim(a), jnp.ndim(v)))
    weight, scale = weights.reshape(wide), jnp.sqrt(variances.reshape(wide) + v)
    q = a / scale
    density = norm.pdf(q) / scale
    parts = ndtr(q), ndtr(-q), density, -q * density / scale, (q**2 - 1) * density / scale**2
    return tuple((weight * part).sum(axis=0) for part in parts)


def normal_derivatives(link: str, a: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    """Return g0, 1 - g0, g1, g2 and g3 of the logistic or the probit link."""
    if link == "probit":
        return _probits(a, v, np.ones(1), np.ones(1))
    return _probits(a, v, LOGISTIC_WEIGHTS, LOGISTIC_VARIANCES)


def _binary_moments(link: str, a: jax.Array, v: jax.Array) -> NormalMoments:
    g0, rest, g1, g2, g3 = normal_derivatives(link, a, v)
    c0 = g0 * rest - v * g1**2
    off = rest - g0
    return NormalMoments(
        g0,
        g1,
        c0 - 0.5 * v**2 * g2**2,
        c0,
        g1 * off - 2 * v * g1 * g2 - 0.5 * v**2 * g2 * g3,
        g2 * off - 2 * g1**2 - v * g2**2 - 2 * v * g1 * g3 - 0.5 * v**2 * g3**2,
    )


def _logistic_share(a: jax.Array, v: jax.Array) -> VarianceShare:
    """Return the share of the response's scatter: h (1 - h) = h', so Stein's identity applies."""
    _, _, g1, g2, g3 = normal_derivatives("logistic", a, v)
    return VarianceShare(g1, g1, g2, g3)


LOGITS_OF_A_PROBIT = 1.702
"""The logistic function at 1.702 t is within 0.01 of the normal distribution's at t."""


def _probit_share(a: jax.Array, v: jax.Array) -> VarianceShare:
    """Return the share of the response's scatter, nearly: that of a logistic response."""
    unit = LOGITS_OF_A_PROBIT
    _, _, g1, g2, g3 = normal_derivatives("logistic", unit * a, unit**2 * v)
    return VarianceShare(g1, g1, unit * g2, unit**2 * g3)


def _rate(a: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.exp(jnp.minimum(a + 0.5 * v, LARGEST_LOG_RATE))


def _poisson_moments(a: jax.Array, v: jax.Array) -> NormalMoments:
    # M2 = M1² exp(v); differences of the two are written without cancellation.
    m1 = _rate(a, v)
    square, more = m1**2, jnp.expm1(jnp.minimum(v, LARGEST_LOG_RATE))
    c0 = m1 + square * (more - v)
    return NormalMoments(
        m1,
        m1,
        m1 + square * (more - v - 0.5 * v**2),
        c0,
        m1 + square * (2 * (more - v) - 0.5 * v**2),
        m1 + square * (4 * more - 3 * v - 0.5 * v**2),
    )


def _poisson_share(a: jax.Array, v: jax.Array) -> VarianceShare:
    rate = _rate(a, v)
    return VarianceShare(rate, rate, rate, rate)


def _count_mean(t: jax.Array) -> jax.Array:
    return jnp.exp(jnp.minimum(t, LARGEST_LOG_RATE))


def _count_second(t: jax.Array) -> jax.Array:
    rate = _count_mean(t)
    return rate + rate**2


LINKS = {
    "logistic": Link(
        "logistic", False, expit, expit, lambda a, v: _binary_moments("logistic", a, v),
        _logistic_share,
    ),
    "probit": Link(
        "probit", False, ndtr, ndtr, lambda a, v: _binary_moments("probit", a, v), _probit_share
    ),
    "poisson": Link(
        "poisson", True, _count_mean, _count_second, _poisson_moments, _poisson_share
    ),
}  # fmt: skip
"""The links by name."""
