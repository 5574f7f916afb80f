"""Every family, every method, held to one contract: limits, shapes, batches, moments."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.inference import Posterior
from noisewise.models.exponential_family import truncation
from noisewise.models.exponential_family.analyst import ANALYST
from noisewise.models.exponential_family.exact import has_exact_method
from noisewise.models.exponential_family.family import Family
from tests.inference.agreement import TOLERANCE, departures, known, summary
from tests.models.exponential_family.cases import (
    CASES,
    CHAINS,
    DRAWS,
    GROUPS,
    Case,
    contribution,
    problem,
    truncated_family_moments,
)
from tests.reference import expfam_reference as reference

pytestmark = pytest.mark.xdist_group("expfam")
PAIRS = [(f, m) for f in CASES for m in ANALYST.methods if m != "exact" or has_exact_method(f)]


@cache
def tables(name: str, n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng([n, *name.encode()])
    return tuple(CASES[name].records(rng, n) for _ in range(GROUPS))


def run(method: str, given: Any, seed: int = 0) -> Posterior:
    post = ANALYST.methods[method](given, seed, CHAINS, DRAWS, None)
    assert isinstance(post, Posterior)
    return post


def expected(laws: list[Any]) -> dict[str, np.ndarray]:
    return known(np.array([v.mean() for v in laws]), np.array([v.std() for v in laws]))


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_without_noise_the_posterior_is_the_conjugate_one(name: str, method: str) -> None:
    """An interval that holds everything, noise of 1e-4: two to six comparisons on two tables."""
    case = CASES[name]
    cut = case.interval(wide=True)
    post = run(method, problem(case, tables(name, 100), 1e-4, interval=cut))
    assert post.converged, post.status
    for group in range(2):
        s = contribution(case.family, cut, tables(name, 100)[group]).sum(axis=0)
        off = departures(summary(post, group), expected(case.posterior(s, 100)))
        assert np.abs(off).max() < TOLERANCE


@pytest.mark.parametrize("name", [f for f in CASES if has_exact_method(f)])
def test_with_nothing_but_noise_exact_is_the_prior(name: str) -> None:
    case = CASES[name]
    post = run("exact", problem(case, tables(name, 20), 1e7))
    prior = expected(case.posterior(np.zeros(case.family.dimension), 0))
    for group in range(2):
        assert np.abs(departures(summary(post, group), prior)).max() < TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_with_nothing_but_noise_gibbs_is_nearly_the_prior(name: str) -> None:
    """The normal approximation counts for something: a fifth of the prior sd is allowed for it."""
    case = CASES[name]
    post = run("gibbs", problem(case, tables(name, 100), 1e7))
    prior = expected(case.posterior(np.zeros(case.family.dimension), 0))
    slack = 0.2 * prior["sd"]
    for group in range(2):
        found = summary(post, group)
        for k in ("mean", "sd"):
            off = np.abs(found[k] - prior[k])
            assert (off < slack + TOLERANCE * found[f"{k}_error"]).all()


def agreeing() -> list[Any]:
    """Compiling takes its time: three families in every run, the others as evidence."""
    found: list[Any] = []
    for name in filter(has_exact_method, CASES):
        often = name in ("bernoulli", "categorical", "exponential")
        for outside in ("drop",) if CASES[name].bounded else ("drop", "clamp"):
            found.append(pytest.param(name, outside, marks=() if often else pytest.mark.evidence))
    return found


@pytest.mark.parametrize(("name", "outside"), agreeing())
def test_exact_and_gibbs_agree_where_the_normal_approximation_holds(
    name: str, outside: str
) -> None:
    """100 records, noise as large as their spread; a tenth of an sd for the approximation."""
    case = CASES[name]
    noise = 5.0
    given = problem(case, tables(name, 100), noise, interval=case.interval(outside))
    one, other = run("exact", given), run("gibbs", given)
    for group in range(2):
        a, b = summary(one, group), summary(other, group)
        for k in ("mean", "sd"):
            error = np.hypot(a[f"{k}_error"], b[f"{k}_error"])
            assert (np.abs(a[k] - b[k]) < 0.1 * a["sd"] + TOLERANCE * error).all()


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_shapes_seeds_and_a_batch_of_one(name: str, method: str) -> None:
    """Same seed, same draws; a group alone has the posterior it has in a batch (MC error)."""
    case = CASES[name]
    given = problem(case, tables(name, 100), 5.0)
    post, again = run(method, given, 3), run(method, given, 3)
    assert tuple(post.draws) == case.family.names
    for key, values in post.draws.items():
        assert values.shape == (GROUPS, CHAINS, DRAWS)
        assert post.rhat[key].shape == post.ess[key].shape == (GROUPS,)
        np.testing.assert_array_equal(values, again.draws[key])
    if method == "gibbs":
        return  # another batch shape is another compilation; `evidence` covers it
    alone = problem(case, tables(name, 100)[:1], 5.0, grouped=False)
    alone.z[:] = given.z[:1]
    single = run(method, alone, 4)
    off = departures(summary(post, 0), summary(single))
    assert np.abs(off).max() < TOLERANCE


@pytest.mark.parametrize("name", [f for f in CASES if has_exact_method(f)])
def test_contribution_law(name: str) -> None:
    """Nothing about one record breaks the arithmetic, and it says little."""
    case = CASES[name]
    post = run("exact", problem(case, tables(name, 1), 2.0))
    prior = expected(case.posterior(np.zeros(case.family.dimension), 0))
    for group in range(GROUPS):
        found = summary(post, group)
        assert (np.abs(found["mean"] - prior["mean"]) < prior["sd"]).all()


def inside(family: Family, v: jax.Array, w: jax.Array, eta: jax.Array) -> truncation.RegionMoments:
    return truncation.region_moments(family, eta, lambda e: family.cdf(w, e) - family.cdf(v, e))


@pytest.mark.parametrize("name", [f for f in CASES if CASES[f].law is not None])
def test_truncated_moments_are_scipys(name: str) -> None:
    """Thesis eq. 4.3 and 4.4; and without dividing by the region's probability."""
    case = CASES[name]
    family, (low, high) = case.family, case.narrow
    eta = family.natural(jnp.array(case.theta))
    cut = case.interval()
    v, w = jnp.asarray(cut.below(family.whole)), jnp.asarray(cut.above(family.whole))
    scale = getattr(family, "scale", 1.0)
    mean, variance = reference.truncated_moments(case.law, low, high)
    found, spread = jax.jit(truncated_family_moments, static_argnums=0)(family, v, w, eta)
    assert float(found[0]) * scale == pytest.approx(mean, rel=1e-7)
    assert float(spread[0, 0]) * scale**2 == pytest.approx(variance, rel=1e-6)
    part = jax.jit(inside, static_argnums=0)(family, v, w, eta)
    np.testing.assert_allclose(part.first / part.q, found, rtol=1e-9)
    covariance = part.second / part.q - np.outer(part.first, part.first) / part.q**2
    np.testing.assert_allclose(covariance, spread, rtol=1e-6, atol=1e-12)
    every = jax.jit(truncation.untruncated_moments, static_argnums=0)(family, eta)
    assert float(every.first[0]) * scale == pytest.approx(case.law.mean(), rel=1e-9)


@pytest.mark.parametrize("outside", ["drop", "clamp"])
@pytest.mark.parametrize("name", [f for f in CASES if not CASES[f].bounded])
def test_the_joint_law_of_what_was_summed_and_what_is_wanted(name: str, outside: str) -> None:
    """Against a million simulated records: five standard errors, 3e-6 a comparison."""
    case: Case = CASES[name]
    x = case.records(np.random.default_rng(1), 1_000_000)
    cut = case.interval(outside)
    keep = case.interval("keep")
    pair = np.hstack([contribution(case.family, c, x) for c in (cut, keep)])
    eta = case.family.natural(jnp.array(case.theta))
    law = jax.jit(truncation.joint_moments, static_argnums=0)(case.family, cut, eta)
    error = pair.std(axis=0) / 1000
    assert (np.abs(pair.mean(axis=0) - law.mean) < 5 * error).all()
    centred = pair - pair.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / 1000
    assert (np.abs(products.mean(axis=0) - law.covariance) < 5 * error).all()
