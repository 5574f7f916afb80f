"""Draws of pooled groups between the sampler and the posterior: what is kept, and when it ends."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.pooling import tracts
from noisewise.models.linear_regression import pooled_exact, pooled_posterior
from noisewise.models.linear_regression.pooled_exact import PooledDraws, SweepDraws
from noisewise.models.linear_regression.problem import RegressionProblem

GROUPS = 7


def sweeps(begin: int, number: int) -> SweepDraws:
    """Return a block in which every number says which sweep it is of."""
    which = jnp.arange(begin, begin + number, dtype=float)

    def wide(*shape: int) -> Any:
        return jnp.broadcast_to(which.reshape(-1, *(1 for _ in shape)), (number, *shape))

    return SweepDraws(wide(2, 4, GROUPS), wide(4, GROUPS), wide(11, 4))


def test_every_stride_th_sweep_is_kept_and_nothing_else_is_held() -> None:
    kept = pooled_exact._Kept(20, 3, np.float32)
    for begin in range(0, 60, 10):
        kept.add(sweeps(begin, 10))
    assert kept.full
    theta, log_variance, phi = kept.arrays()
    np.testing.assert_array_equal(theta[:, 0, 0, 0], np.arange(2, 60, 3))
    assert [str(a.dtype) for a in (theta, log_variance, phi)] == ["float32", "float32", "float64"]
    assert all(a.base is None for row in kept.groups for a in row)
    kept.thin()
    kept.add(sweeps(60, 10))
    np.testing.assert_array_equal(kept.phi()[:, 0, 0], np.arange(5, 70, 6))
    some, _ = kept.some(3)
    assert some.shape == (11, 2, 4, 3)


def problem() -> RegressionProblem:
    return tracts.regression(np.zeros((GROUPS, 5)), np.full(GROUPS, 50), 1.0)


def test_groups_are_moved_to_the_user_s_units_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = problem()
    rng = np.random.default_rng(0)
    theta, log_variance = rng.normal(size=(5, 2, 4, GROUPS)), rng.normal(size=(5, 4, GROUPS))
    box = np.concatenate([theta, np.exp(log_variance)[:, None]], axis=1)
    expected = given.units.to_user(box.transpose(3, 2, 0, 1)).transpose(3, 0, 1, 2)
    monkeypatch.setattr(pooled_posterior, "GROUPS_AT_ONCE", 3)
    drawn = pooled_posterior._user_draws(theta, log_variance, given)
    np.testing.assert_allclose(drawn, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("late", "expected"), [(0, 1000), (2, 4000), (100, pooled_exact.MAX_SWEEPS)]
)
def test_sweeps_go_on_until_groups_have_settled(
    monkeypatch: pytest.MonkeyPatch, late: int, expected: int
) -> None:
    rng = np.random.default_rng(1)
    begun = pooled_exact.SweepState(None, None, None, None, None, 0)  # type: ignore[arg-type]

    def advance(*_: Any) -> tuple[Any, Any]:
        block = [rng.normal(size=(50, *s)) for s in ((2, 4, GROUPS), (4, GROUPS), (3, 4))]
        return begun, (SweepDraws(*map(jnp.asarray, block)), jnp.zeros(GROUPS))

    monkeypatch.setattr(pooled_exact, "start", lambda *_: (begun, None))
    monkeypatch.setattr(pooled_exact, "_warm_up", lambda *_, **__: (begun, {}))
    monkeypatch.setattr(pooled_exact, "advance", advance)
    asked: list[tuple[int, ...]] = []

    def settled(theta: np.ndarray, log_variance: np.ndarray) -> bool:
        asked.append(theta.shape)
        return len(asked) > late

    drawn: PooledDraws = pooled_exact.sample(tracts.pooled(problem()), 0, 4, 250, settled=settled)
    assert drawn.sweeps == expected
    assert drawn.theta.shape == (250, 2, 4, GROUPS)
    assert set(asked) == {(250, 2, 4, GROUPS)}
