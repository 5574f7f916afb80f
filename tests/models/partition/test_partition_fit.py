"""Random partitions, one pass, batched fits: against loops, and against themselves in pieces."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from noisewise.artifact import ArgumentError
from noisewise.models.partition.conjugate_regression import (
    NormalInverseGammaPrior,
    Zellner,
    fit,
    prior_of,
)
from noisewise.models.partition.partition_moments import (
    MomentsAccumulator,
    PartitionMoments,
    assign,
)
from tests.reference import partition_reference as plain

NIG = NormalInverseGammaPrior(
    np.array([0.5, -1.0, 2.0]),
    np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.0], [0.1, 0.0, 0.5]]),
    shape=3.0,
    rate=2.0,
)


def simulated(rows: int, seed: int = 1, offset: float = 0.0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(offset, 1, rows), rng.normal(3 - offset, 2, rows)
    return [a, b, 1 + 2 * a - 0.5 * b + rng.standard_normal(rows)]


def moments_of(
    columns: list[np.ndarray], partition: np.ndarray, partitions: int
) -> PartitionMoments:
    accumulator = MomentsAccumulator(len(columns), partitions)
    accumulator.add(columns, partition)
    return accumulator.result()


# -- assignment ----------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3, 1000, 4096, 4097, 70_000])
def test_assignment_is_uniform(partitions: int) -> None:
    """False alarm 1e-6: chi-square over at most 1,000 bins of partitions."""
    found = assign(200_000, partitions)
    assert found.min() >= 0
    assert found.max() < partitions
    bins = min(partitions, 1000)
    edges = np.array([partitions * i // bins for i in range(bins + 1)])
    observed = np.histogram(found, edges - 0.5)[0]
    if bins > 1:
        assert stats.chisquare(observed, np.diff(edges) / partitions * 200_000).pvalue > 1e-6


def test_assignment_rejects_the_uneven_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,535 would favour low numbers: 65,536 is no multiple of 1,000."""
    drawn = [np.array([65_535, 64_999, 65_000, 7], np.uint16), np.array([1000, 5], np.uint16)]
    monkeypatch.setattr(os, "urandom", lambda size: drawn.pop(0).tobytes())
    assert assign(4, 1000).tolist() == [999, 7, 0, 5]


def test_assignment_asks_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return real(size)

    monkeypatch.setattr(os, "urandom", urandom)
    assign(100, 10)
    assert sum(asked) >= 200


# -- moments -------------------------------------------------------------------------------------


def test_moments_equal_a_loop_over_partitions() -> None:
    columns, partition = simulated(500), np.random.default_rng(2).integers(0, 7, 500)
    found = moments_of(columns, partition, 9)
    for j in range(7):
        rows = np.column_stack(columns)[partition == j]
        assert found.sizes[j] == len(rows)
        np.testing.assert_allclose(found.means[j], rows.mean(axis=0), rtol=1e-12)
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(found.products[j], centred.T @ centred, rtol=1e-9)
    assert found.sizes[7:].tolist() == [0, 0]
    assert not found.products[7:].any()


@pytest.mark.parametrize("piece", [1, 7, 499, 16_384, 20_000])
def test_where_a_batch_ends_changes_no_bit(piece: int) -> None:
    """Else a longer record in a CSV file could move every partition by a rounding error."""
    columns, partition = simulated(40_000), np.random.default_rng(3).integers(0, 20, 40_000)
    if piece < 400:
        columns, partition = [x[:3000] for x in columns], partition[:3000]
    whole = moments_of(columns, partition, 20)
    accumulator = MomentsAccumulator(3, 20)
    for start in range(0, len(partition), piece):
        window = slice(start, start + piece)
        accumulator.add([x[window] for x in columns], partition[window])
    pieces = accumulator.result()
    for name in ("sizes", "means", "products"):
        assert (getattr(whole, name) == getattr(pieces, name)).all()


def test_a_common_offset_does_not_eat_the_digits() -> None:
    partition = np.random.default_rng(4).integers(0, 5, 1000)
    near = moments_of(simulated(1000), partition, 5)
    far = moments_of(simulated(1000, offset=1e7), partition, 5)
    a, b = (fit(m, 0, Zellner(1000.0), 1.0, 0.2) for m in (near, far))
    np.testing.assert_allclose(a.location, b.location, rtol=1e-5)
    np.testing.assert_allclose(a.scale, b.scale, rtol=1e-3)


# -- the fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", [0, 1, 2])
@pytest.mark.parametrize("kind", ["zellner", "nig"])
@pytest.mark.parametrize(("power", "share"), [(1.0, 1 / 6), (2.0, 1 / 3), (6.0, 1.0), (1.0, 1.0)])
def test_every_partition_is_a_textbook_regression(
    coefficient: int, kind: str, power: float, share: float
) -> None:
    columns, partition = simulated(400), np.random.default_rng(5).integers(0, 6, 400)
    prior = Zellner(300.0) if kind == "zellner" else NIG
    found = fit(moments_of(columns, partition, 6), coefficient, prior, power, share)
    at = (-0.6, 0.0, 1.9, 2.1)
    for j in range(6):
        rows = np.column_stack(columns)[partition == j]
        data = plain.likelihood(rows[:, :2], rows[:, 2]).times(power)
        carried = (
            plain.zellner(rows[:, :2], 300.0).times(6 * share).plus(plain.flat_intercept(3))
            if kind == "zellner"
            else plain.normal_inverse_gamma(NIG.mean, NIG.precision, 3.0, 2.0).times(share)
        )
        t = data.plus(carried).marginal(coefficient)
        np.testing.assert_allclose(found.probabilities(at)[j], t.cdf(at), atol=1e-9)
        np.testing.assert_allclose(found.quantiles(0.3)[j], t.ppf(0.3), rtol=1e-8)


@pytest.mark.parametrize("partitions", [1, 8])
def test_tempered_partitions_together_carry_the_prior_once(partitions: int) -> None:
    """E16. The product of the partitions' posteriors is the posterior given all data."""
    columns, partition = simulated(300), np.arange(300) % partitions
    rows = np.column_stack(columns)
    prior = plain.normal_inverse_gamma(NIG.mean, NIG.precision, 3.0, 2.0)
    parts = [
        plain.likelihood(rows[partition == j, :2], rows[partition == j, 2]).plus(
            prior.times(1 / partitions)
        )
        for j in range(partitions)
    ]
    product = parts[0]
    for part in parts[1:]:
        product = product.plus(part)
    whole = plain.likelihood(rows[:, :2], rows[:, 2]).plus(prior)
    np.testing.assert_allclose(product.marginal(0).stats(), whole.marginal(0).stats())


def test_the_untempered_g_prior_shrinks_every_partition() -> None:
    """E16: by 1/101 with partitions of 100; tempered, by one in 100,001."""
    columns, partition = simulated(20_000), np.arange(20_000) % 200
    moments = moments_of(columns, partition, 200)
    flat = fit(moments, 0, Zellner(1e12), 1.0, 1.0).location.mean()
    tempered = fit(moments, 0, Zellner(20_000.0), 1.0, 1 / 200).location.mean()
    whole = fit(moments, 0, Zellner(20_000.0), 1.0, 1.0).location.mean()
    assert tempered / flat == pytest.approx(20_000 / 20_001, abs=1e-9)
    assert whole / flat == pytest.approx(100 / 101, abs=1e-9)


def test_partitions_without_a_posterior_are_marked_and_harm_no_other() -> None:
    columns, partition = simulated(600), np.arange(600) % 6
    clean = fit(moments_of(columns, partition, 7), 0, Zellner(1e6), 1.0, 1.0)
    columns[0][partition == 1] = 3.0  # constant: collinear with the intercept
    columns[1][partition == 2] = 2 * columns[0][partition == 2]  # collinear with another
    columns[0][3] = np.inf
    columns[2][4] = 1e200  # its square overflows
    found = fit(moments_of(columns, partition, 7), 0, Zellner(1e6), 1.0, 1.0)
    assert found.usable.tolist() == [True, False, False, False, False, True, False]
    for j in (0, 5):
        assert found.location[j] == clean.location[j]
        assert found.scale[j] == clean.scale[j]
    assert np.isnan(found.probabilities((0.0,))[[1, 2, 3, 4, 6]]).all()
    assert np.isnan(found.quantiles(0.5)[[1, 2, 3, 4, 6]]).all()


def test_a_proper_prior_fits_even_an_empty_partition() -> None:
    columns = simulated(50)
    found = fit(moments_of(columns, np.zeros(50, int), 2), 0, NIG, 1.0, 0.5)
    t = plain.normal_inverse_gamma(NIG.mean, NIG.precision, 3.0, 2.0).times(0.5).marginal(0)
    assert found.probabilities((1.0,))[1, 0] == pytest.approx(t.cdf(1.0))


# -- priors --------------------------------------------------------------------------------------


def test_priors_are_recognised_by_their_fields() -> None:
    given = SimpleNamespace(mean=[0, 0], precision=np.eye(2), shape=1, rate=1)
    assert isinstance(prior_of(given, 2), NormalInverseGammaPrior)
    assert prior_of(None, 2) == Zellner()
    assert Zellner().settled(50) == Zellner(50.0)


@pytest.mark.parametrize(
    ("prior", "fragment"),
    [
        ("flat", "prior: must be nw.priors.NormalInverseGamma"),
        (SimpleNamespace(mean=[0], precision=np.eye(2), shape=1, rate=1), "mean must be 2"),
        (SimpleNamespace(mean=[0, 0], precision=[[1, 0], [0, -1]], shape=1, rate=1), "definite"),
        (SimpleNamespace(mean=[0, 0], precision=np.eye(2), shape=0, rate=1), "shape: must be"),
        (SimpleNamespace(mean=["a", 0], precision=np.eye(2), shape=1, rate=1), "must be numbers"),
    ],
)
def test_odd_priors_are_refused(prior: object, fragment: str) -> None:
    with pytest.raises(ArgumentError, match=fragment):
        prior_of(prior, 2)


def test_zellner_needs_a_positive_g() -> None:
    with pytest.raises(ArgumentError, match="prior: g: must be above zero"):
        Zellner(0)
