"""(ε, δ) by the Gaussian's profile: exact sums over discrete noise, and claims that are refused.

The proof is docs/proofs/gaussian.md.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ReleaseError, Selection
from noisewise.artifact.guarantee import DISCRETENESS, SMOOTHING, gaussian_delta
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.privacy.ledger import open_ledger
from noisewise.privacy.mechanisms import OWNER_CAUTION, calibrate, gaussian_budget, zcdp_budget
from tests.artifact.factories import FACTORIES

CLAIMS = [(0.1, 1e-6), (0.3, 1e-9), (1.0, 1e-5), (1.0, 1e-2), (3.0, 1e-6), (8.0, 1e-12)]
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
SHIFTS = [(1,), (3,), (40,), (1, 1), (3, 3), (1, 7)]


def log_mass(values: np.ndarray, scale: float) -> np.ndarray:
    """Discrete Gaussian, at whole numbers that leave out next to nothing of it."""
    weights = -(values**2) / (2 * scale**2)
    reach = np.arange(-math.ceil(40 * scale) - 40, math.ceil(40 * scale) + 41)
    return weights - math.log(np.exp(-(reach**2) / (2 * scale**2)).sum())


def exact_delta(epsilon: float, scales: list[float], shift: tuple[int, ...]) -> float:
    """δ of noise on each coordinate against the same noise, shifted: Σ max(0, P - exp(ε) Q)."""
    p, q = np.zeros(()), np.zeros(())
    for scale, step in zip(scales, shift, strict=True):
        k = np.arange(-math.ceil(12 * scale) - step, math.ceil(12 * scale) + 2 * step + 1.0)
        p = np.add.outer(p, log_mass(k, scale))
        q = np.add.outer(q, log_mass(k - step, scale))
    loss = np.maximum(p - q - epsilon, 0.0)
    return float((np.exp(p) * -np.expm1(-loss)).sum())


def upper_tail(x: Decimal) -> Decimal:
    """Q(x) to 40 digits: by a series of positive terms, and by Laplace's continued fraction."""
    density = (-x * x / 2).exp() / (2 * PI).sqrt()
    if abs(x) > 2:
        fraction = abs(x)
        for n in range(600, 0, -1):
            fraction = abs(x) + n / fraction
        return density / fraction if x > 0 else 1 - density / fraction
    term, total, n = x, Decimal(0), 1
    while abs(term) > Decimal(10) ** -60:
        total += term
        n += 2
        term *= x * x / n
    return Decimal("0.5") - density * total


def profile(epsilon: float, rho: float) -> Decimal:
    """δ of continuous Gaussian noise, to more digits than float64 has."""
    with decimal.localcontext(prec=60):
        mu, e = (2 * Decimal(rho)).sqrt(), Decimal(epsilon)
        return upper_tail(e / mu - mu / 2) - e.exp() * upper_tail(e / mu + mu / 2)


def calibrated_scales(epsilon: float, delta: float, shift: tuple[int, ...]) -> list[float]:
    """One scale for all coordinates, as a block has."""
    bound = Sensitivity(sum(shift), sum(s * s for s in shift))
    rho = gaussian_budget(epsilon, delta)
    return [calibrate("gaussian", bound, rho, SMOOTHING).noise.scale] * len(shift)


def gram(**given: Any) -> nw.Release:
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "mechanism": "gaussian", **given}
    limits = dict.fromkeys("abc", (0, 1))
    blank = nw.release.Blank(1000)
    return nw.release.linear_regression(blank, x=["a", "b"], y="c", bounds=limits, **options)


def tables(epsilon: float) -> nw.Release:
    return nw.release.graphical_model(
        nw.release.Blank(1000), cliques=[("a",)], levels={"a": [0, 1]},
        epsilon=epsilon, mechanism="gaussian", delta=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_discrete_noise_keeps_the_claim(
    epsilon: float, delta: float, shift: tuple[int, ...]
) -> None:
    scales = calibrated_scales(epsilon, delta, shift)
    if len(shift) == 2 and scales[0] > 60:
        pytest.skip("too many lattice points to add up")
    assert exact_delta(epsilon, scales, shift) <= delta
    # A twentieth less noise than large scales need breaks it: the sum can tell.
    if min(scales) > 20:
        assert exact_delta(epsilon, [0.95 * s for s in scales], shift) > delta


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS[2:])
def test_two_parts_of_unlike_noise_compose(epsilon: float, delta: float) -> None:
    """One person moves one part by 1 and the other by 5; a fifth of the budget is the first's."""
    rho = gaussian_budget(epsilon, delta)
    parts = [(1, 0.2 * rho), (5, 0.8 * rho)]
    noises = [
        calibrate("gaussian", Sensitivity(d, d * d), share, SMOOTHING).noise for d, share in parts
    ]
    assert exact_delta(epsilon, [n.scale for n in noises], (1, 5)) <= delta


def test_the_profile_of_continuous_noise_fails_on_the_lattice() -> None:
    """Why a variance of 2 is added: without it small noise breaks the claim."""
    delta = float(profile(4.27, 0.5))
    assert exact_delta(4.27, [1.0], (1,)) > 1.8 * delta


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 7.3, 40.0, 650.0])
@pytest.mark.parametrize("steps", [-1.0, 0.1, 2.0, 4.5, 9.0, 30.0])
def test_rounding_is_on_the_safe_side(epsilon: float, steps: float) -> None:
    """At ε = μ²/2 + steps μ, whose δ is near Q(steps)."""
    mu = epsilon / (math.sqrt(steps**2 / 4 + epsilon / 2) + steps / 2)
    rho = mu**2 / 2
    true = profile(epsilon - DISCRETENESS, rho) * (1 + Decimal(DISCRETENESS))
    read, written = gaussian_delta(epsilon, rho), gaussian_delta(epsilon, rho, OWNER_CAUTION)
    assert true < Decimal(read) < Decimal(written)
    first, b = upper_tail(Decimal((epsilon - DISCRETENESS) / mu - mu / 2)), epsilon / mu + mu / 2
    assert b > 36 or Decimal(written) - true < first * Decimal("1e-9")


@pytest.mark.parametrize(
    ("epsilon", "rho"),
    [(1e308, 1e308), (1e-300, 1.0), (1.0, 5e-324), (1e12, 5.0), (1.0, 1e308), (5e-324, 5e-324)],
)
def test_extreme_claims_have_a_delta(epsilon: float, rho: float) -> None:
    assert 0 < gaussian_delta(epsilon, rho) <= 1


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_the_budget_is_as_large_as_allowed(epsilon: float, delta: float) -> None:
    rho = gaussian_budget(epsilon, delta)
    assert gaussian_delta(epsilon, rho) <= delta < gaussian_delta(epsilon, rho * 1.0001)
    assert rho > zcdp_budget(epsilon, delta)


def test_noise_is_a_twentieth_less_than_by_zcdp() -> None:
    noise = gram().block("gram").noise
    by_zcdp = noise.sensitivity / math.sqrt(2 * zcdp_budget(1.0, 1e-5))
    assert 0.90 * by_zcdp < noise.scale < 0.95 * by_zcdp


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 5.0, 20.0])
def test_no_release_has_more_noise_than_by_zcdp(epsilon: float) -> None:
    """Counts at a generous ε have noise of a few steps, which zCDP needs less of."""
    noise = tables(epsilon).block("tables").noise
    assert noise.scale <= math.sqrt(1 / zcdp_budget(epsilon, 1e-6)) * (1 + 1e-12)
    assert (tables(epsilon).guarantee.smoothing == 0) == (epsilon > 1)


def test_a_release_with_a_private_search_follows_the_profile() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(5, 1, (4000, 3)), columns=list("abc"))
    release = nw.release.linear_regression(
        frame, x=["a", "b"], y="c", bounds=dict.fromkeys("abc", nw.release.PrivateBounds((0, 100))),
        epsilon=2.0, mechanism="gaussian", delta=1e-6,
    )  # fmt: skip
    assert release.guarantee.smoothing == SMOOTHING
    assert nw.Release.from_json(release.to_json()) == release


def claimed(release: nw.Release, **changes: Any) -> nw.Release:
    """The same noise with another claim: refused, unless it is true."""
    return dataclasses.replace(release, guarantee=dataclasses.replace(release.guarantee, **changes))


@pytest.mark.parametrize("make", [gram, lambda: tables(1.0)], ids=["sums", "counts"])
def test_claims_below_the_truth_are_refused(make: Callable[[], nw.Release]) -> None:
    release = make()
    rho = release.guarantee.rho
    assert rho is not None
    claimed(release, epsilon=release.guarantee.epsilon * (1 + 1e-9))
    for change in (
        {"epsilon": release.guarantee.epsilon * (1 - 1e-7)},
        {"delta": release.guarantee.delta * (1 - 1e-6)},
        {"rho": rho * (1 + 1e-6)},
    ):
        with pytest.raises(ReleaseError, match="Gaussian noise of rho"):
            claimed(release, **change)
    with pytest.raises(ReleaseError, match=r"the parts cost|its noise gives rho"):
        claimed(release, rho=math.nextafter(rho, 0))


def test_less_noise_than_the_profile_needs_is_refused() -> None:
    """Also noise that zCDP's own ρ would cover: the 2 that is added counts."""
    release = tables(1.0)
    block = release.blocks[0]
    for scale in (block.noise.scale * (1 - 1e-12), math.sqrt(block.noise.scale**2 - 1.9)):
        less = dataclasses.replace(block, noise=dataclasses.replace(block.noise, scale=scale))
        with pytest.raises(ReleaseError, match="its noise gives rho"):
            dataclasses.replace(release, blocks=(less,))


def test_noise_without_the_added_variance_backs_no_claim() -> None:
    """A scale below the root of 2, under a claim that zCDP does not give."""
    release = tables(20.0)
    rho = gaussian_budget(20.0, 1e-6)
    with pytest.raises(ReleaseError, match="its noise gives rho"):
        claimed(release, rho=rho)


def test_noise_that_is_not_gaussian_needs_zcdp() -> None:
    """Bounds chosen by noisy maxima, in files of version 0.1."""
    release = gram(split={"gram": 1.0})
    noisy_maxima = Selection("a", nw.Bounds(0, 1), 512, (0.01, 0.99), 1e-9)
    rho = release.guarantee.rho
    assert rho is not None
    with pytest.raises(ReleaseError, match=r"imply epsilon 1\.0"):
        dataclasses.replace(
            claimed(release, epsilon=1.01, rho=rho + 1e-8), selections=(noisy_maxima,)
        )


def test_claims_by_zcdp_are_accepted_as_before() -> None:
    release = FACTORIES["graphical-gaussian"]()
    assert release.guarantee.smoothing == 0
    assert nw.Release.from_json(release.to_json()) == release


def test_a_ledger_is_charged_the_rho_of_the_noise(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(100, 3)), columns=list("abc"))
    book = tmp_path / "book.db"
    with open_ledger(book, create=True) as ledger:
        ledger.set_budget("people", rho=zcdp_budget(1.0, 1e-5))
    options: dict[str, Any] = {"mechanism": "gaussian", "delta": 1e-5, "ledger": book}
    options |= {"x": ["a", "b"], "y": "c", "bounds": dict.fromkeys("abc", (0, 1))}
    # Less noise costs more: a cap in ρ is reached by an ε that zCDP would have allowed.
    with pytest.raises(nw.BudgetError, match=r"asks for rho 0\.0359"):
        nw.release.linear_regression(frame, epsilon=1.0, **options)
    release = nw.release.linear_regression(frame, epsilon=0.9, **options)
    with open_ledger(book) as ledger:
        assert ledger.accounts()[0].spent == pytest.approx(release.guarantee.rho, abs=1e-11)
