"""The noise, attacked: an audit never finds more than the claim, and does find a planted fault.

Each audit's bound exceeds a true claim with probability at most 1 %; OpenDP's noise cannot be
seeded (it must not be), so the false-alarm rate of a run of ``make test`` is at most 1 % per
audit, in practice far less: the bound sits two interval widths below the truth.
"""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from noisewise.artifact import Clamped, Gram, Monomials, PowerSums, Statistic, Tables
from noisewise.artifact.sensitivity import Relation, sensitivity
from noisewise.privacy import mechanisms
from noisewise.privacy.mechanisms import Calibrated, calibrate, zcdp_budget
from tests.privacy.audit import epsilon_lower_bound
from tests.reference.sensitivity_reference import monomial_contribution, power_contribution

OUTPUTS = 200_000
DELTA = 1e-5


def worst_pair(statistic: Statistic, relation: Relation) -> tuple[np.ndarray, np.ndarray]:
    """Exact vectors of two neighbouring tables that are as far apart as the bound allows."""
    high, low = _worst_records(statistic)
    if relation == "add-remove":
        low = np.zeros_like(high)
    rest = 10 * high  # what the other records contribute: any constant
    return rest + low, rest + high


def _worst_records(statistic: Statistic) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(statistic, Gram | Monomials):
        count = getattr(statistic, "count", False)
        k, unit = len(statistic.columns), 2**statistic.bits
        low = -unit / (k + 1) if isinstance(statistic, Gram) else -0.6 * unit
        points = [unit] * k, [round(low)] * k
        pair = [monomial_contribution(statistic, p, count=count) for p in points]
    elif isinstance(statistic, PowerSums):
        unit = 2**statistic.bits
        pair = [power_contribution(statistic, u, count=statistic.count) for u in (unit, -unit // 2)]
    elif isinstance(statistic, Tables):
        sizes = statistic.sizes
        pair = [[int(i == cell) for size in sizes for i in range(size)] for cell in (0, 1)]
    else:
        pair = [[1, 1], [0, 0]]
    return np.array(pair[0]), np.array(pair[1])


def laplace(statistic: Statistic, relation: Relation, epsilon: float) -> Calibrated:
    return calibrate("laplace", sensitivity(statistic, relation), epsilon)


def halved(honest: Calibrated) -> Calibrated:
    """The same claim with half the noise; the file's own check is bypassed, as a bug would."""
    noise = copy.copy(honest.noise)
    object.__setattr__(noise, "scale", noise.scale / 2)
    make = mechanisms._laplace if noise.mechanism == "laplace" else mechanisms._gaussian
    return dataclasses.replace(honest, noise=noise, measurement=make(noise.scale))


def test_gram_release_keeps_its_promise_and_half_the_noise_does_not() -> None:
    statistic, epsilon = Gram(("a",), count=False), 1.0
    honest = laplace(statistic, "replace-one", epsilon)
    s0, s1 = worst_pair(statistic, "replace-one")
    found = epsilon_lower_bound(honest, s0, s1, OUTPUTS)
    caught = epsilon_lower_bound(halved(honest), s0, s1, OUTPUTS)
    assert 0.8 * epsilon < found <= epsilon
    assert caught > epsilon


def test_gaussian_keeps_its_promise_and_half_the_noise_does_not() -> None:
    """An audit at δ sees less of a Gaussian: its worst event is rare. It still sees a halving."""
    statistic, epsilon = Tables((("a",),), {"a": (0, 1)}), 1.0
    rho = zcdp_budget(epsilon, DELTA)
    honest = calibrate("gaussian", sensitivity(statistic, "replace-one"), rho)
    s0, s1 = worst_pair(statistic, "replace-one")
    found = epsilon_lower_bound(honest, s0, s1, OUTPUTS, DELTA)
    assert found <= epsilon
    # zCDP's conversion leaves slack, so a halved scale (ρ × 4) is judged by what it really implies.
    assert epsilon_lower_bound(halved(honest), s0, s1, OUTPUTS, DELTA) > 1.5 * found


ALL = [
    (Gram(("a", "b"), False), "replace-one"),
    (Gram(("a", "b"), True), "add-remove"),
    (Monomials(("a",)), "replace-one"),
    (Monomials(("a",)), "add-remove"),
    (PowerSums("a", -1, 1, "drop", 2, False), "replace-one"),
    (PowerSums("a", -1, 1, "drop", 2, True), "add-remove"),
    (Tables((("a",), ("b",)), {"a": (0, 1, 2), "b": (0, 1)}), "replace-one"),
    (Tables((("a",), ("b",)), {"a": (0, 1, 2), "b": (0, 1)}), "add-remove"),
    (Clamped(("a", "b")), "replace-one"),
    (Clamped(("a", "b")), "add-remove"),
]


@pytest.mark.evidence
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(("statistic", "relation"), ALL, ids=lambda v: getattr(v, "kind", str(v)))
def test_every_statistic_under_audit(
    statistic: Statistic, relation: Relation, epsilon: float
) -> None:
    s0, s1 = worst_pair(statistic, relation)
    honest = laplace(statistic, relation, epsilon)
    found = epsilon_lower_bound(honest, s0, s1, OUTPUTS)
    caught = epsilon_lower_bound(halved(honest), s0, s1, OUTPUTS)
    print(f"{statistic.kind} {relation}: claim {epsilon}, found {found:.3f}, halved {caught:.3f}")
    assert found <= epsilon < caught
