"""Pooled groups against NUTS over population, parameters and statistics, generatively."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisewise.models.linear_regression import pooled_exact, pooled_population, pooled_start
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
)
from tests.reference import pooled_reference as reference

SIZES, NOISE = (30, 80, 200), 2.0
FARTHEST_UNIT = np.log(1e4)
LOG_SIZES = np.log(SIZES) - np.log(SIZES).mean()
REGRESSORS = np.column_stack([np.ones(3), LOG_SIZES / LOG_SIZES.std()])


def release(seed: int) -> np.ndarray:
    """Return noisy sums of three groups."""
    rng = np.random.default_rng(seed)
    law = reference.Law(
        np.array([[0.4, 0.1], [0.1, 0.0]]), np.diag([0.2, 0.15]) ** 2, None, np.log(0.06), 0.3,
        np.array([-0.2]), np.array([[0.04]]), np.array([[0.1]]), 12.0, np.zeros(3),
        0.5,
    )  # fmt: skip
    n_mean = float(stats.gmean(SIZES))
    groups = [reference.draw_group(rng, law, u, n, n_mean=n_mean)
              for u, n in zip(REGRESSORS, SIZES, strict=True)]  # fmt: skip
    sums = np.array([reference.packed_sums(g.records) for g in groups])
    return sums + NOISE * rng.standard_normal(sums.shape)


def generative(z: np.ndarray) -> None:
    """Draw population, parameters and statistics, and observe z; for numpyro."""
    import numpyro
    import numpyro.distributions as dist

    def sample(name: str, law: Any) -> jax.Array:
        drawn: jax.Array = numpyro.sample(name, law)
        return drawn

    def chi(name: str, df: Any) -> jax.Array:
        return sample(name, dist.Gamma(jnp.asarray(df) / 2, 0.5))

    def log_unit(name: str, low: float, power: float, unit: float = 1.0) -> jax.Array:
        """Draw the log of a unit, within its limits; its power over ``unit`` is beta-prime."""
        value = sample(f"{name} at", dist.Uniform(-FARTHEST_UNIT, FARTHEST_UNIT))
        at = power * value - np.log(unit)
        numpyro.factor(f"{name} law", low * at - (low + 0.5) * jnp.logaddexp(0.0, at))
        return value

    def deviation(name: str, scale: Any) -> jax.Array:
        return scale * jnp.sqrt(2 * sample(f"{name} r", dist.Gamma(1.0, 1.0)) / chi(name, 2.0))

    log_a, log_b = log_unit("log_a", 0.15, 2), log_unit("log_b", 0.5, 2)
    log_g = log_unit("log_g", 0.5, 1, 3.0)
    slopes = jnp.exp(0.5 * log_g + log_b - log_a)
    b = sample("b", dist.Normal(0.0, jnp.stack([slopes, jnp.asarray(3.0)])))
    r = sample("t r", dist.Gamma(jnp.ones(2), 1.0))
    square = chi("t chi", np.array([3.0, 2.0]))
    below = sample("t below", dist.Normal(0, 1))
    root = jnp.diag(jnp.sqrt(square)).at[1, 0].set(below)
    scales = jnp.stack([slopes, jnp.exp(log_b)]) * jnp.sqrt(2 * r)
    factor = jnp.diag(scales) @ jnp.linalg.inv(root).T
    t = factor @ factor.T
    level = sample("level", dist.Normal(2 * log_b, 1.0))
    level_sd, x_sd = deviation("level_sd", 0.5), deviation("x_sd", jnp.exp(log_a))
    x_mean = sample("x_mean", dist.Normal(0, 1))
    sigma0 = sample("sigma0", dist.Gamma(2.0, 2 * jnp.exp(-2 * log_a)))
    df = jnp.exp(sample("eta", dist.Uniform(0, np.log(300)))) + 2
    n, groups = np.array(SIZES, float), len(SIZES)
    exponent = 0.3 + 0.45 * sample("exponent white", dist.Normal(0, 1))
    wider = jnp.exp(-0.5 * exponent * LOG_SIZES)[:, None]
    effect = 0.4 * factor @ sample("effect white", dist.Normal(0, 1).expand([2]))
    theta = (
        b
        + REGRESSORS[:, 1:] * effect
        + wider * sample("theta white", dist.Normal(0, 1).expand([groups, 2])) @ factor.T
    )
    log_variance = level + level_sd * sample("xi", dist.Normal(0, 1).expand([groups]))
    mu = x_mean + x_sd * sample("zeta", dist.Normal(0, 1).expand([groups]))
    tau2 = df * sigma0 / sample("tau chi", dist.Gamma(df / 2, 0.5).expand([groups]))
    x_bar = mu + jnp.sqrt(tau2 / n) * sample("x_bar", dist.Normal(0, 1).expand([groups]))
    s_xx = tau2 * chi("s_xx", n - 1)
    sd = jnp.exp(0.5 * log_variance)
    slope = theta[:, 0] + sd / jnp.sqrt(s_xx) * sample("slope", dist.Normal(0, 1).expand([groups]))
    line = theta[:, 0] * (x_bar - x_mean) + theta[:, 1]
    y_bar = line + sd / np.sqrt(n) * sample("y_bar", dist.Normal(0, 1).expand([groups]))
    rss = sd**2 * chi("rss", n - 2)
    s_xy = slope * s_xx
    sums = jnp.stack(
        [
            s_xx + n * x_bar**2,
            s_xy + n * x_bar * y_bar,
            rss + slope * s_xy + n * y_bar**2,
            n * x_bar,
            n * y_bar,
        ],
        axis=1,
    )
    for name, value in {
        "B1": b[0], "B2": b[1], "size1": effect[0], "size2": effect[1],
        "sd1": jnp.sqrt(t[0, 0]), "sd2": jnp.sqrt(t[1, 1]),
        "rho": t[0, 1] / jnp.sqrt(t[0, 0] * t[1, 1]), "l0": level, "w": level_sd, "mu0": x_mean,
        "omega": x_sd, "Sigma0": sigma0, "df": df, "lambda": log_variance,
        "log a": log_a, "log b": log_b, "log g": log_g, "gamma": exponent,
        "theta": jnp.stack([theta[:, 0], theta[:, 1] - theta[:, 0] * x_mean], axis=1),
    }.items():  # fmt: skip
        numpyro.deterministic(name, value)
    numpyro.sample("z", dist.Normal(sums, NOISE), obs=z)


def by_nuts(z: np.ndarray) -> dict[str, np.ndarray]:
    from numpyro.infer import MCMC, NUTS

    sampler = MCMC(
        NUTS(generative, target_accept_prob=0.9), num_warmup=1000, num_samples=3000, num_chains=4,
        chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    sampler.run(jax.random.key(1), z)
    drawn = sampler.get_samples(group_by_chain=True)
    return {name: np.asarray(value) for name, value in drawn.items()}


def by_sweeps(z: np.ndarray, draws: int) -> dict[str, np.ndarray]:
    units = Units(np.zeros(2), np.ones(2))
    problem = RegressionProblem(
        ("x",), "y", z, np.array(SIZES, float), False, NOISE, "gaussian", default_response(units),
        default_covariates(units), units, (0, 1, 2),
    )  # fmt: skip
    pooled = pooled_start.PooledProblem(
        problem, np.ones((3, 1)), None, pooled_population.default_prior(2)
    )
    sampled = pooled_exact.sample(pooled, 0, 4, draws, max_sweeps=draws)
    phi = sampled.phi.transpose(1, 2, 0)
    direction = phi[6]
    return {
        "B1": phi[0], "B2": phi[1], "size1": phi[2], "size2": phi[3], "sd1": phi[4], "sd2": phi[5],
        "rho": direction / np.sqrt(1 + direction**2), "l0": phi[7], "w": phi[8], "mu0": phi[9],
        "omega": phi[10], "Sigma0": np.exp(2 * phi[11]), "df": np.exp(phi[12]) + 2,
        "log a": phi[13], "log b": phi[14], "log g": phi[15], "gamma": phi[16],
        "theta": sampled.theta.transpose(2, 0, 3, 1),
        "lambda": sampled.log_variance.transpose(1, 0, 2),
    }  # fmt: skip


@pytest.mark.evidence
def test_sweeps_agree_with_nuts_over_everything() -> None:
    """Twenty-six marginals of three groups under Gaussian noise, apart by at most 0.05."""
    z = release(3)
    ours, theirs = by_sweeps(z, 12_000), by_nuts(z)
    apart = {}
    for name, value in ours.items():
        a = value.reshape(value.shape[0] * value.shape[1], -1)
        b = theirs[name].reshape(len(theirs[name].reshape(-1, a.shape[1])), -1)
        for column in range(a.shape[1]):
            apart[f"{name}{column}"] = stats.ks_2samp(a[:, column], b[:, column]).statistic
    print({name: round(float(value), 3) for name, value in apart.items()})
    assert max(apart.values()) <= 0.05
