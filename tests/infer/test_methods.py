"""Every registered method of linear regression, held to one contract."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.infer.agreement import TOLERANCE, departures, summary
from tests.infer.regressions import CHAINS, DRAWS, GROUPS, release, table

import noisewise as nw
from noisewise.artifact import Mechanism, Release
from noisewise.infer import METHODS, Posterior

pytestmark = pytest.mark.xdist_group("one-covariate")

EVERY = tuple(METHODS["linear-regression"])
BATCHED = tuple(m for m in EVERY if m != "mcmc-individual")
BOUNDS = {"dose": (0.0, 4.0), "effect": (-2.0, 2.0)}
NAMES = ("dose", "intercept", "sigma2")


def tables(groups: int) -> list[np.ndarray]:
    """Thirty records each, in the user's units."""
    rng = np.random.default_rng(0)
    boxed = [table(rng, 30) for _ in range(groups)]
    return [w * 2 + np.array([2.0, 0.0]) for w in boxed]


@cache
def published(method: str, *, secret_n: bool = False, mechanism: Mechanism = "laplace") -> Release:
    """Four groups; one table without groups where records are sampled one by one."""
    alone = method == "mcmc-individual"
    return release(
        tables(1 if alone else GROUPS), BOUNDS, scale=1.0, mechanism=mechanism, monomials=True,
        grouped=not alone, secret_n=secret_n,
    )  # fmt: skip


@cache
def posterior(method: str, seed: int = 0) -> Posterior:
    draws = 500 if method == "mcmc-individual" else DRAWS
    return nw.infer(published(method), method, seed=seed, draws=draws)


@pytest.mark.parametrize("method", EVERY)
def test_shapes_names_and_diagnostics(method: str) -> None:
    post = posterior(method)
    lead, draws = ((), 500) if method == "mcmc-individual" else ((GROUPS,), DRAWS)
    assert (post.method, post.x, post.y, tuple(post.draws)) == (method, ("dose",), "effect", NAMES)
    for name in NAMES:
        assert post.draws[name].shape == (*lead, CHAINS, draws)
        assert post.rhat[name].shape == post.ess[name].shape == lead
        assert np.isfinite(post.draws[name]).all()
    assert (post.draws["sigma2"] > 0).all()
    assert post.keys == (None if method == "mcmc-individual" else ("g0", "g1", "g2", "g3"))
    assert len(post.summary()) == 3 * (len(post.keys) if post.keys else 1)
    assert post.predict({"dose": 1.0}).interval(0.9).shape == (*lead, 2)


@pytest.mark.parametrize("method", [m for m in EVERY if m.startswith("gibbs")])
def test_gibbs_reports_projections(method: str) -> None:
    assert 0 <= posterior(method).details["projected_share"] <= 1


@pytest.mark.parametrize("method", EVERY)
def test_the_same_seed_gives_the_same_draws_and_another_others(method: str) -> None:
    draws = 500 if method == "mcmc-individual" else DRAWS
    again = nw.infer(published(method), method, seed=0, draws=draws)
    for name in NAMES:
        np.testing.assert_array_equal(again.draws[name], posterior(method).draws[name])
    if method != "mcmc-individual":
        assert (posterior(method, 1).draws["dose"] != again.draws["dose"]).any()


@pytest.mark.parametrize("method", BATCHED)
def test_a_groups_posterior_does_not_depend_on_its_neighbours_in_the_batch(method: str) -> None:
    """Groups in reverse order, another seed: 24 comparisons."""
    given = published(method)
    blocks = tuple(type(b)(b.statistic, b.noise, b.values[:, ::-1].copy()) for b in given.blocks)
    fields = {f: getattr(given, f) for f in ("family", "model", "guarantee", "population")}
    reverse = Release(**fields, blocks=blocks, bounds=given.bounds, groups=given.groups)
    other = nw.infer(reverse, method, seed=7)
    for group in range(GROUPS):
        one, two = summary(posterior(method), group), summary(other, GROUPS - 1 - group)
        if posterior(method).unconverged or other.unconverged:
            one, two = ({**s, **_doubled(s)} for s in (one, two))
        assert np.abs(departures(one, two)).max() < TOLERANCE


def _doubled(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With few effective draws the error is itself uncertain."""
    return {k: 2 * v for k, v in found.items() if k.endswith("error")}


@pytest.mark.parametrize("method", [m for m in EVERY if m.startswith("gibbs")])
def test_gibbs_says_what_it_assumes_of_a_secret_n(method: str) -> None:
    post = nw.infer(published(method, secret_n=True), method)
    assert "noisy number of records" in post.details["assumes"]


@pytest.mark.evidence
@pytest.mark.parametrize("method", BATCHED)
def test_gaussian_noise(method: str) -> None:
    """``exact`` is the standard; gibbs and naive need only run and be finite."""
    post = nw.infer(published(method, mechanism="gaussian"), method)
    assert all(np.isfinite(v).all() for v in post.draws.values())


@pytest.mark.evidence
@pytest.mark.parametrize("method", BATCHED)
def test_one_table_alone_is_a_batch_of_one(method: str) -> None:
    """The first group's statistics as an ungrouped release: 6 comparisons."""
    alone = release(tables(GROUPS)[:1], BOUNDS, monomials=True, grouped=False)
    batch = release(tables(GROUPS)[:1] * 4, BOUNDS, monomials=True)
    values = [np.repeat(b.values, 4, axis=1) for b in alone.blocks]
    blocks = tuple(
        type(b)(b.statistic, b.noise, v) for b, v in zip(batch.blocks, values, strict=True)
    )
    fields = {f: getattr(batch, f) for f in ("family", "model", "guarantee", "population")}
    four = Release(**fields, blocks=blocks, bounds=batch.bounds, groups=batch.groups)
    one = summary(nw.infer(alone, method, seed=3))
    for group in range(GROUPS):
        many = summary(nw.infer(four, method, seed=4), group)
        assert np.abs(departures(one, many)).max() < TOLERANCE
