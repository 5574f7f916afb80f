"""Draws of a regression's posterior: units, diagnostics, latent draws, and the cost of the noise.

*Latent draws.* The exact method also infers the sums s behind the noise and the law of x. Given s,
(μx, τ²) is normal-inverse-Wishart: exact, independent draws, made when first asked for (they cost
as much as the sampling), and only where all of them fit memory.

*Without noise.* How wide would the posterior be without privacy noise? By the law of total
variance, Var(θ | z) = E[Var(θ | s) | z] + Var(E[θ | s] | z), where s are the exact sums and z the
released ones. The first part is what too few records leave open, the second is due to the noise.
Var(θ | s) is the conjugate posterior's, in closed form:

    (θ, σ²) | s ~ NIG(mn, Λn, an, bn):  Var θ = bn/(an - 1) Λn⁻¹,  Var σ² = bn²/((an-1)² (an-2)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.linear_regression import censoring, collapsed, scale_free
from noisewise.models.linear_regression.censoring import Cuts
from noisewise.models.linear_regression.collapsed import BoxPrior
from noisewise.models.linear_regression.coordinates import Point, Shape, point, released
from noisewise.models.linear_regression.initial_values import DrawnParameters, prior_parameters
from noisewise.models.linear_regression.posterior import RegressionPosterior
from noisewise.models.linear_regression.problem import RegressionProblem
from noisewise.numerics.compilation import compiled
from noisewise.numerics.convergence import diagnose_groups
from noisewise.numerics.distributions import draw_inverse_wishart_factors
from noisewise.numerics.gram_packing import unpack
from noisewise.numerics.matrices import UNROLLED, entries
from noisewise.priors import NormalInverseGamma

MAX_LATENT_NUMBERS = 2**25
"""Numbers kept of s, μx and τ² in all: a quarter of a gigabyte (chosen)."""
MEDIAN_SIZE = 0.6745
"""Median of |ζ|, ζ ~ N(0, 1)."""
MAX_STATISTICS_AVERAGED = 400
"""Draws of s that ``deviations_without_noise`` averages over, spread evenly over the chains
(chosen)."""


def posterior_from_box(
    problem: RegressionProblem, parameters: np.ndarray, method: str, details: Mapping[str, Any]
) -> RegressionPosterior:
    """Return the posterior of draws (group, chain, draw, θ… σ²) in the box, with diagnostics.

    Methods that draw so have conjugate priors always.
    """
    problem = replace(problem, scale_free=False)
    user = np.moveaxis(problem.units.to_user(parameters), -1, 0)
    diagnostics = [diagnose_groups(values) for values in user]
    rhat, ess = (np.stack(side) for side in zip(*diagnostics, strict=True))
    return posterior_from_user(problem, user, rhat, ess, method, details)


def posterior_from_user(
    problem: RegressionProblem,
    user: np.ndarray,
    rhat: np.ndarray,
    ess: np.ndarray,
    method: str,
    details: Mapping[str, Any],
    latent: Mapping[str, np.ndarray] | None = None,
) -> RegressionPosterior:
    """Return the posterior of draws (parameter, group, chain, draw) in the user's units."""
    names = (*problem.x, "intercept", "sigma2")
    single = problem.keys is None

    def named(values: np.ndarray) -> dict[str, np.ndarray]:
        return {name: v[0] if single else v for name, v in zip(names, values, strict=True)}

    return RegressionPosterior(
        draws=named(user),
        rhat=named(rhat),
        ess=named(ess),
        method=method,
        x=problem.x,
        y=problem.y,
        keys=problem.keys,
        prior=prior_in_words(problem),
        details=details,
        latent=latent or {},
        prior_draws=partial(draws_before, problem),
        without_noise=partial(deviations_without_noise, problem, latent) if latent else None,
    )


def outline(
    problem: RegressionProblem, method: str, details: Mapping[str, Any]
) -> RegressionPosterior:
    """Return the posterior without its draws, as far as words are made of it."""
    size, groups = len(problem.x) + 2, len(problem.n)
    judged = np.empty((size, groups))
    return posterior_from_user(
        problem, np.empty((size, groups, 0, 0)), judged, judged, method, details
    )


def prior_in_words(problem: RegressionProblem) -> str:
    """Return the prior of a problem, for people and files."""
    if problem.scale_free:
        return scale_free.WORDS
    return f"response {problem.response}; covariates {problem.covariates}"


def draws_before(problem: RegressionProblem, number: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw every coefficient and the error variance from the problem's prior, by name."""
    names = (*problem.x, "intercept", "sigma2")
    rng = np.random.default_rng(seed)
    if problem.scale_free:
        size = float(problem.n[0])
        drawn, _, _ = scale_free.draw_parameters(rng, (number,), len(problem.x), size)
    elif problem.cuts is None:
        return prior_draws(problem.response, names, number, seed)
    else:
        drawn = prior_parameters(rng, problem.box_prior, (number,))
    box = parameters_before_clamping(drawn, problem.cuts)
    return dict(zip(names, problem.units.to_user(box).T, strict=True))


def parameters_before_clamping(drawn: DrawnParameters, cuts: Cuts | None) -> np.ndarray:
    """Return (θ, σ²) of drawn laws (draw, parameter), of the records before clamping if cut."""
    box = np.column_stack([drawn.theta, drawn.variance])
    if cuts is None:
        return box
    covariance = drawn.x_factor @ np.swapaxes(drawn.x_factor, -1, -2)
    return censoring.unclamped_parameters(box, drawn.x_mean, covariance, cuts)[0]


def prior_draws(
    prior: NormalInverseGamma, names: tuple[str, ...], number: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Draw every coefficient and the error variance from a conjugate prior, by name."""
    rng = np.random.default_rng(seed)
    sigma2 = prior.rate / rng.standard_gamma(prior.shape, number)
    white = rng.standard_normal((len(prior.mean), number))
    # Λ0 = L Lᵀ: L⁻ᵀ times white noise has covariance Λ0⁻¹.
    spread = np.linalg.solve(np.linalg.cholesky(prior.precision).T, white) * np.sqrt(sigma2)
    return dict(zip(names, [*(prior.mean[:, None] + spread), sigma2], strict=True))


def latent_fit(shape: Shape, draws: int) -> bool:
    """Return whether so many draws of s, μx and τ² are worth their memory."""
    d = shape.q - 1
    return draws * (2 * shape.dimension + d + d * d) <= MAX_LATENT_NUMBERS


def _by_median(problem: RegressionProblem) -> bool:
    """Return whether deviations given s are drawn with the rest, since no formula has them."""
    return problem.scale_free or problem.cuts is not None


class LatentDraws(Mapping[str, np.ndarray]):
    """Draws of s, μx and τ² by name, made when first asked for.

    Where scales are unknown or bounds cut values off, also ``deviation``: of every parameter given
    s and the scales, in the user's units.
    """

    def __init__(
        self, make: Callable[[], Mapping[str, np.ndarray]], problem: RegressionProblem
    ) -> None:
        self._make = make
        self.names = ("s", "mu_x", "tau2", *(("deviation",) if _by_median(problem) else ()))

    @cached_property
    def _draws(self) -> Mapping[str, np.ndarray]:
        return self._make()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise KeyError(name)
        return self._draws[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class CovariateLaw(NamedTuple):
    """Draws of mean and covariance of x in the box; the statistic and the prior they are given."""

    mean: np.ndarray
    covariance: np.ndarray
    at: Point
    prior: BoxPrior


@partial(compiled, static_argnums=3)
def _statistics_and_priors(
    v: jax.Array, n: jax.Array, given: BoxPrior | None, shape: Shape
) -> tuple[Point, BoxPrior]:
    """Return the statistic and the prior at coordinates (draw, coordinate)."""

    def one(v: jax.Array, n: jax.Array) -> tuple[Point, BoxPrior]:
        at = point(v, shape, n)
        return at, scale_free.prior_at(at, v, shape, given)[0]

    both: tuple[Point, BoxPrior] = jax.vmap(one)(v, n)
    return both


def draw_covariate_law(
    rng: np.random.Generator,
    n: np.ndarray,
    given: BoxPrior | None,
    shape: Shape,
    positions: np.ndarray,
) -> CovariateLaw:
    """Draw (μx, τ²) given s at positions (draw, coordinate, chain, group).

    Draws lead with (group, chain, draw); ``at`` and ``prior`` have those axes as one.
    """
    v = np.transpose(positions, (3, 2, 0, 1))
    batch, d = v.shape[:3], shape.q - 1
    n = np.broadcast_to(n[:, None, None], batch)
    flat = jnp.asarray(v.reshape(-1, v.shape[-1])), jnp.asarray(n.reshape(-1))
    at, prior = _statistics_and_priors(*flat, given, shape)
    mean, n = np.asarray(at.mean)[:, :d], np.asarray(at.n)
    factor = np.asarray(at.factor)[:, :d, : min(d, shape.rank)]
    kappa = np.asarray(prior.x_kappa)
    x_mean = np.asarray(prior.x_mean)
    off = mean - x_mean
    weight = (kappa * n / (kappa + n))[:, None, None]
    scale = np.asarray(prior.x_scale) + n[:, None, None] * (factor @ np.swapaxes(factor, 1, 2))
    scale = scale + weight * off[:, :, None] * off[:, None, :]
    df = np.asarray(prior.x_df) + n
    root = draw_inverse_wishart_factors(rng, np.linalg.cholesky(scale), df)
    centre = (kappa[:, None] * x_mean + n[:, None] * mean) / (kappa + n)[:, None]
    white = np.einsum("bij,bj->bi", root, rng.standard_normal(mean.shape))
    x_mean = centre + white / np.sqrt(kappa + n)[:, None]
    covariance = root @ np.swapaxes(root, 1, 2)
    return CovariateLaw(x_mean.reshape(*batch, d), covariance.reshape(*batch, d, d), at, prior)


@partial(compiled, static_argnums=4)
def _draw_given_sums(
    key: jax.Array,
    positions: jax.Array,
    n: jax.Array,
    given: BoxPrior | None,
    shape: Shape,
    back: tuple[np.ndarray, np.ndarray],
) -> jax.Array:
    """Draw (θ, σ²) given s at every position (draw, coordinate, chain, group); map them back."""
    draws, size, chains, groups = positions.shape
    if shape.q > UNROLLED:
        flat = jnp.moveaxis(positions[..., 0], 2, 0).reshape(-1, size)

        def one(now: tuple[jax.Array, jax.Array]) -> jax.Array:
            key, v = now
            at = point(v, shape, n)
            prior, _ = scale_free.prior_at(at, v, shape, given)
            return collapsed.draw_parameters(key, at, prior, ())

        drawn = jax.lax.map(one, (jax.random.split(key, len(flat)), flat))
        drawn = drawn.T.reshape(-1, 1, chains, draws)
    else:
        v = entries(jnp.moveaxis(positions, 0, 1), 1)
        at = point(v, shape, n)
        prior, _ = scale_free.prior_at(at, v, shape, given)
        drawn = collapsed.draw_parameters(key, at, prior, (draws, chains, groups))
        drawn = jnp.transpose(drawn, (0, 3, 2, 1))
    return jnp.einsum("ij,jgct->igct", back[0], drawn) + back[1][:, None, None, None]


def draw_coefficients(
    key: jax.Array,
    positions: jax.Array,
    n: jax.Array,
    given: BoxPrior | None,
    shape: Shape,
    back: tuple[np.ndarray, np.ndarray],
    cuts: Cuts | None,
) -> jax.Array | np.ndarray:
    """Draw (θ, σ²) given s: (parameter, group, chain, draw), in the user's units.

    Args:
        key: the source of randomness.
        positions: of the sampler, plain coordinates (draw, coordinate, chain, group).
        n: records of every group; shaped as the density reads it.
        given: the prior in the box; None where scales are unknown.
        shape: of the statistic.
        back: from the box to the user's units.
        cuts: which bounds cut values off; what is drawn is then of records before clamping.
    """
    if cuts is None:
        user: jax.Array = _draw_given_sums(key, positions, n, given, shape, back)
        return user
    drawn, _, _ = _draw_unclamped(key, positions, n, given, shape, cuts)
    return np.asarray(np.einsum("ij,gctj->igct", back[0], drawn) + back[1][:, None, None, None])


def _draw_unclamped(
    key: jax.Array,
    positions: jax.Array,
    n: jax.Array,
    given: BoxPrior | None,
    shape: Shape,
    cuts: Cuts,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw (θ, σ²), μx and τ² of records before clamping (group, chain, draw, …), in the box."""
    identity = np.eye(shape.q + 1), np.zeros(shape.q + 1)
    first, second = jax.random.split(key)
    clamped = np.asarray(_draw_given_sums(first, positions, n, given, shape, identity))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(second)))
    sizes = np.atleast_1d(np.asarray(n).squeeze())
    law = draw_covariate_law(rng, sizes, given, shape, np.asarray(positions))
    return censoring.unclamped_parameters(
        np.moveaxis(clamped, 0, -1), law.mean, law.covariance, cuts
    )


def draw_latent(
    rng: np.random.Generator, problem: RegressionProblem, shape: Shape, positions: np.ndarray
) -> Mapping[str, np.ndarray]:
    """Draw s, μx and τ² (group, chain, draw, …) at positions (draw, coordinate, chain, group).

    ``s`` in the box, in the order of ``coordinates.released``; ``mu_x`` and ``tau2`` (mean and
    covariance of the covariates) in the user's units; the rest as in ``LatentDraws``.
    """
    batch, d = positions.shape[3:1:-1] + positions.shape[:1], shape.q - 1
    given = None if shape.scale_free else problem.box_prior
    law = draw_covariate_law(rng, problem.n, given, shape, positions)
    sums = compiled(jax.vmap(lambda p: released(p, noisy_n=shape.noisy_n)))(law.at)
    latent = {"s": np.asarray(sums).reshape(*batch, -1)}
    x_mean, covariance = law.mean, law.covariance
    if problem.cuts is not None:
        n = jnp.asarray(problem.n[0] if shape.q > UNROLLED else problem.n[None])
        keys = jax.random.split(jax.random.key(rng.integers(2**31)))
        pair = [_draw_unclamped(key, jnp.asarray(positions), n, given, shape, problem.cuts)
                for key in keys]  # fmt: skip
        _, x_mean, covariance = pair[0]
        # Two draws given the same s are apart by √2 of its deviation given s.
        apart = problem.units.to_user(pair[0][0]) - problem.units.to_user(pair[1][0])
        latent["deviation"] = np.abs(apart) / (np.sqrt(2) * MEDIAN_SIZE)
    elif shape.scale_free:
        deviation = _deviations(problem, law.at, law.prior)
        latent["deviation"] = deviation.reshape(*batch, d + 2)
    half, middle = problem.units.half[:d], problem.units.centre[:d]
    return {**latent, "mu_x": middle + half * x_mean, "tau2": covariance * half[:, None] * half}


def _deviations(problem: RegressionProblem, at: Point, prior: BoxPrior) -> np.ndarray:
    """Return deviations (draw, parameter) given s and the scales, in the user's units."""
    given = compiled(jax.vmap(collapsed.conjugate))(at, prior)
    inverse = np.linalg.inv(np.asarray(given.factor))
    slopes = np.swapaxes(inverse, 1, 2) @ inverse
    d = slopes.shape[1]
    mean, n = np.asarray(at.mean)[:, :d], np.asarray(at.n)
    # The intercept is the response's mean less the slopes times the covariates' means.
    pull = np.einsum("tij,tj->ti", slopes, mean)
    shape, rate = np.asarray(given.shape), np.asarray(given.rate)
    variance = np.zeros((len(n), d + 2, d + 2))
    variance[:, :d, :d] = slopes
    variance[:, :d, d] = variance[:, d, :d] = -pull
    variance[:, d, d] = 1 / n + np.sum(pull * mean, axis=1)
    variance *= (rate / (shape - 1))[:, None, None]
    variance[:, d + 1, d + 1] = rate**2 / ((shape - 1) ** 2 * np.maximum(shape - 2, 0.5))
    back = problem.units.from_box[0]
    return np.asarray(np.sqrt(np.diagonal(back @ variance @ back.T, axis1=1, axis2=2)))


def deviations_without_noise(
    problem: RegressionProblem, latent: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return √E[Var(parameter | s) | z] by name, in the user's units; one per group if grouped.

    Where scales are unknown or bounds cut values off, the median over s in place of the mean: a
    slope on a column that the noise hides has no variance.
    """
    grouped = problem.keys is not None
    values = latent["deviation" if _by_median(problem) else "s"]
    flat = values.reshape(len(problem.n) if grouped else 1, -1, values.shape[-1])
    flat = flat[:, :: max(1, flat.shape[1] // MAX_STATISTICS_AVERAGED)]
    if _by_median(problem):
        deviations = np.median(flat, axis=1)
    else:
        deviations = np.stack(
            [_expected_deviation(problem, row, n) for row, n in zip(flat, problem.n, strict=True)]
        )
    names = (*problem.x, "intercept", "sigma2")
    return {name: v if grouped else v[0] for name, v in zip(names, deviations.T, strict=True)}


def _expected_deviation(problem: RegressionProblem, s: np.ndarray, n: float) -> np.ndarray:
    """Return the deviations of one group, from draws of s (draw, component)."""
    prior = problem.box_prior
    q = len(problem.x) + 1
    count = s[:, -1] if problem.noisy_n else np.full(len(s), n)
    # Columns are (x, y, 1); the design is (x, 1).
    gram = np.zeros((len(s), q + 1, q + 1))
    gram[:, :q, :q], totals = unpack(s, q)
    gram[:, :q, q] = gram[:, q, :q] = totals
    gram[:, q, q] = count
    design = [*range(q - 1), q]
    precision, mean = np.asarray(prior.precision), np.asarray(prior.mean)
    joint = precision + gram[:, design][:, :, design]
    moment = precision @ mean + gram[:, design, q - 1]
    at = np.linalg.solve(joint, moment[..., None])[..., 0]
    rate = gram[:, q - 1, q - 1] + mean @ precision @ mean - np.einsum("ti,ti->t", at, moment)
    # A difference of large numbers: rounding must not make a variance negative.
    rate = float(prior.rate) + np.maximum(rate, 0.0) / 2
    shape = float(prior.shape) + count / 2
    variance = np.zeros((len(s), q + 1, q + 1))
    variance[:, :q, :q] = (rate / (shape - 1))[:, None, None] * np.linalg.inv(joint)
    variance[:, q, q] = rate**2 / ((shape - 1) ** 2 * np.maximum(shape - 2, 0.5))
    back = problem.units.from_box[0]
    return np.asarray(np.sqrt(np.diagonal(back @ variance.mean(axis=0) @ back.T)))
