"""Every registered method of linear regression, held to one contract."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import Mechanism, Release
from noisewise.inference import methods
from tests.inference.agreement import TOLERANCE, departures, summary
from tests.inference.regressions import (
    CHAINS,
    DRAWS,
    GROUPS,
    conjugate_defaults,
    release,
    table,
)

pytestmark = [pytest.mark.xdist_group("one-covariate"), pytest.mark.usefixtures("optimised")]

EVERY = tuple(methods("linear-regression"))
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
    """Four groups; only the first, without groups, where records are sampled one by one."""
    words: dict[str, Any] = {
        "scale": 2.0,
        "mechanism": mechanism,
        "monomials": True,
        "secret_n": secret_n,
    }
    four = release(tables(GROUPS), BOUNDS, **words)
    if method != "mcmc-individual":
        return four
    one = release(tables(GROUPS)[:1], BOUNDS, grouped=False, **words)
    return with_values(one, [b.values[:, :1] for b in four.blocks])


def with_values(given: Release, values: list[np.ndarray]) -> Release:
    """The same release with other noisy sums."""
    pairs = zip(given.blocks, values, strict=True)
    blocks = tuple(replace(b, values=v.copy()) for b, v in pairs)
    return replace(given, blocks=blocks)


@cache
def posterior(method: str) -> Any:
    return nw.infer(published(method), method, draws=kept(method))


def kept(method: str) -> int:
    """Sampling records takes its time."""
    return 500 if method == "mcmc-individual" else DRAWS


@pytest.mark.parametrize("method", EVERY)
def test_shapes_names_and_diagnostics(method: str) -> None:
    post = posterior(method)
    lead = () if method == "mcmc-individual" else (GROUPS,)
    assert (post.method, post.x, post.y, tuple(post.draws)) == (method, ("dose",), "effect", NAMES)
    for name in NAMES:
        assert post.draws[name].shape == (*lead, CHAINS, kept(method))
        assert post.rhat[name].shape == post.ess[name].shape == lead
        assert np.isfinite(post.draws[name]).all()
    assert (post.draws["sigma2"] > 0).all()
    assert post.keys == (None if method == "mcmc-individual" else ("g0", "g1", "g2", "g3"))
    assert len(post.summary()) == 3 * (len(post.keys) if post.keys else 1)
    assert post.predict({"dose": 1.0}).interval(0.9).shape == (*lead, 2)


@pytest.mark.parametrize("method", [m for m in EVERY if m.startswith("gibbs")])
def test_gibbs_reports_projections(method: str) -> None:
    assert 0 <= posterior(method).details["projected_share"] <= 1


def test_exact_and_mcmc_individual_agree() -> None:
    """n = 30, one covariate, priors made from the bounds: 6 comparisons."""
    slow = posterior("mcmc-individual")
    assert slow.converged, slow.status
    given = published("exact")
    quick: Any = nw.infer(given, prior=conjugate_defaults(given))
    assert quick.converged, quick.status
    assert slow.details["divergences"].sum() < 10
    off = departures(summary(quick, 0), summary(slow))
    assert np.abs(off).max() < TOLERANCE


@pytest.mark.parametrize(
    "method", [*BATCHED, pytest.param("mcmc-individual", marks=pytest.mark.evidence)]
)
def test_the_same_seed_gives_the_same_draws(method: str) -> None:
    again = nw.infer(published(method), method, seed=0, draws=kept(method))
    for name in NAMES:
        np.testing.assert_array_equal(again.draws[name], posterior(method).draws[name])


@pytest.mark.parametrize("method", BATCHED)
def test_a_groups_posterior_does_not_depend_on_its_neighbours_in_the_batch(method: str) -> None:
    """Groups in reverse order, another seed: 24 comparisons."""
    given = published(method)
    reverse = with_values(given, [b.values[:, ::-1] for b in given.blocks])
    other: Any = nw.infer(reverse, method, seed=7)
    assert (other.draws["dose"][::-1] != posterior(method).draws["dose"]).any()
    for group in range(GROUPS):
        one, two = summary(posterior(method), group), summary(other, GROUPS - 1 - group)
        if posterior(method).unconverged or other.unconverged:
            one, two = ({**s, **_doubled(s)} for s in (one, two))
        assert np.abs(departures(one, two)).max() < TOLERANCE


def _doubled(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With few effective draws the error is itself uncertain."""
    return {k: 2 * v for k, v in found.items() if k.endswith("error")}


@pytest.mark.parametrize("method", ["gibbs-update", "gibbs-noisy"])
def test_gibbs_says_what_it_assumes_of_a_secret_n(method: str) -> None:
    post: Any = nw.infer(published(method, secret_n=True), method)
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
    batch = release(tables(GROUPS)[:1] * GROUPS, BOUNDS, monomials=True)
    four = with_values(batch, [np.repeat(b.values, GROUPS, axis=1) for b in alone.blocks])
    first: Any = nw.infer(alone, method, seed=3)
    one = summary(first)
    many: Any = nw.infer(four, method, seed=4)
    for group in range(GROUPS):
        assert np.abs(departures(one, summary(many, group))).max() < TOLERANCE


@pytest.mark.parametrize("asked", [True, None, False])
def test_a_bar_for_those_who_ask(asked: bool | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody watches a test's standard error: only True shows one."""
    nw.infer(published("naive"), "naive", progress=asked)
    nw.infer(published("exact"), "exact", progress=asked)
    shown = capsys.readouterr().err
    assert ("sampling (exact)" in shown) == (asked is True)
