"""What a partition release answers: rescaling, intervals, the curve, and contradictions."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from noisewise.artifact import (
    AbsentError,
    ArgumentError,
    Block,
    Noise,
    ProbabilitySums,
    QuantileSum,
    ReleaseError,
    partition_answer,
)
from noisewise.artifact.partition_answer import (
    Answer,
    chi_square_survival,
    nearest_monotone,
    noise_quantile,
)
from tests.artifact.factories import FACTORIES, content_of, partitioned, redigested, regression
from tests.artifact.refusals import Edit, both, drop, put, refused
from tests.reference.partition_reference import discrete_laplace, pava

QUIET = Noise("laplace", 1e-3, 1e-3, 1.0)


def answered(
    means: list[float], partitions: int, power: float = 1.0, corrected: bool = True
) -> Any:
    spec = ProbabilitySums(("x", "y"), "x", tuple(range(len(means))), partitions, power=power)
    sums = np.rint(np.array(means) * partitions * 2**30).astype(np.int64)
    return Answer(spec, QUIET, sums, corrected)


@pytest.mark.parametrize("partitions", [1, 2, 40, 1000])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_rescaling_follows_its_formulas(partitions: int, power: float) -> None:
    means = [0.48, 0.5, 0.503]
    z = stats.norm.ppf(means)
    corrected = stats.norm.cdf(np.sqrt(partitions * (1 + 1 / power) - 1) * z)
    thesis = stats.norm.cdf(np.sqrt(partitions / power) * z)
    found = answered(means, partitions, power)
    np.testing.assert_allclose(found.probability, corrected, rtol=1e-6)
    plain = dataclasses.replace(found, corrected=False)
    np.testing.assert_allclose(plain.probability, thesis, rtol=1e-6)


def test_the_correction_is_errata_e16_for_many_partitions() -> None:
    found = answered([0.49], 100_000).probability
    assert found == pytest.approx(stats.norm.cdf(math.sqrt(200_000) * stats.norm.ppf(0.49)), 1e-2)


def quantile_answer(mean: float, cost: float = 0.5, search: str = "centred") -> Answer:
    """Mean in radii from the centre; 64 partitions in 2 ± 2, or in ± 2."""
    centre = 2.0 if search == "centred" else 0.0
    spec = QuantileSum(("x", "y"), "x", 0.5, 64, centre, 2.0, search, cost)  # type: ignore[arg-type]
    noise = Noise("laplace", 2.0**32, 2.0**32, 1.0)
    return Answer(spec, noise, np.array([round(mean * 64 * 2**30)], np.int64), True)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (quantile_answer(0.3), []),
        (quantile_answer(0.3, cost=0.3), ["needs about 20: it may have missed"]),
        (quantile_answer(0.3, 0.5, "symmetric"), ["needs about 40: it may have missed"]),
        (quantile_answer(0.3, 0.7, "symmetric"), []),
        (quantile_answer(0.97), ["(0 to 4); what lies beyond was clipped"]),
        (quantile_answer(-1.2), ["at the edge"]),
        # Not at the edge itself, but its noise reaches it.
        (quantile_answer(0.88), ["at the edge"]),
        (quantile_answer(1.0, cost=0.1), ["it may have missed", "at the edge"]),
        (answered([0.4], 64), []),
    ],
)
def test_what_the_interval_does_not_cover_is_said(found: Answer, told: list[str]) -> None:
    assert len(found.cautions) == len(told)
    for caution, words in zip(found.cautions, told, strict=True):
        assert words in caution
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        ends = found.interval()
    assert [str(w.message) for w in heard] == list(found.cautions)
    assert found.band()[0].tolist() == list(ends)


def test_the_odds_of_an_empty_interval_are_those_of_the_threshold() -> None:
    """The 81 and the 1 in 22 of ``partition_answer.py``, from the search's own penalties."""
    from noisewise.models.partition.posterior_quantile import MAX_WORTH, candidates

    public = candidates(1.0)
    empty = np.exp(-public.nats).sum()
    assert empty == pytest.approx(81, abs=0.5)
    lead = public.worth[public.radius == 1.0][0] / MAX_WORTH * partition_answer.STRENGTH_NEEDED / 2
    assert 1 / 25 < empty * math.exp(-lead) < 1 / 20


@pytest.mark.parametrize("partitions", [3, 20, 200])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_corrected_means_recover_the_full_posterior(partitions: int, power: float) -> None:
    """Known variances: β̂_j = β̂ + scatter of mean zero. Average of 4,000 scatters."""
    rng = np.random.default_rng(9)
    z = -0.8
    scatter = rng.standard_normal((4000, partitions))
    scatter -= scatter.mean(axis=1, keepdims=True)
    # In units of a partition's sd, b - β̂ = z/√M.
    p = stats.norm.cdf(np.sqrt(power) * (z / np.sqrt(partitions) - scatter)).mean(axis=1)
    found = [answered([m], partitions, power).probability for m in p]
    assert np.mean(found) == pytest.approx(stats.norm.cdf(z), abs=0.016)
    thesis = [answered([m], partitions, power, corrected=False).probability for m in p]
    assert np.mean(thesis) > stats.norm.cdf(z) + 0.03


def test_sums_that_noise_drove_out_of_range_are_clamped() -> None:
    found = answered([-0.2, 0.5, 1.7], 10)
    low, middle, high = found.probability
    assert 0 <= low < 1e-9
    assert middle == pytest.approx(0.5)
    assert 1 - 1e-9 < high <= 1


def test_noise_stretches_the_corrected_answer_by_a_bounded_factor() -> None:
    for scale, c in ((1e-3, 1.0), (1e12, math.sqrt(1.75))):
        found = dataclasses.replace(answered([0.497], 10), noise=Noise("laplace", scale, scale, 1))
        z = stats.norm.ppf(0.497) * math.sqrt(19)
        assert found.probability == pytest.approx(stats.norm.cdf(c * z), rel=1e-6)
        thesis = dataclasses.replace(found, corrected=False).probability
        assert thesis == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.497) * math.sqrt(10)), 1e-6)


@pytest.mark.parametrize("half", [1, 2, 50, 1000, 200_000])
def test_chi_square_survival(half: int) -> None:
    for x in (1e-9, 0.3, half, 2.0 * half, 2 * half + 6 * math.sqrt(half), 9.0 * half + 40):
        assert chi_square_survival(x, half) == pytest.approx(
            stats.chi2.sf(x, 2 * half), rel=1e-6, abs=1e-15
        )
    assert chi_square_survival(-1.0, half) == 1.0


def test_fisher_answers_by_chi_square() -> None:
    spec = ProbabilitySums(("x", "y"), "x", (0.0,), 10, "fisher", 0.001)
    sums = np.array([round(23.0 / spec.step)])
    found = Answer(spec, QUIET, sums, True)
    assert found.probability == pytest.approx(stats.chi2.sf(23.0, 20))
    assert spec.step * 2**30 == pytest.approx(-2 * math.log(0.001))


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 300.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_noise_quantile_is_the_least_that_covers(scale: float, level: float) -> None:
    k, mass = discrete_laplace(scale, int(60 * scale) + 5)
    q = noise_quantile(Noise("laplace", scale, scale, 1.0), level)
    assert mass[np.abs(k) <= q].sum() >= level - 1e-12
    assert q == 0 or mass[np.abs(k) <= q - 1].sum() < level


def test_intervals_enclose_the_exact_answer_as_often_as_they_say() -> None:
    """2,000 draws at 90 %: fewer than 1,730 enclosed has probability below 1e-6."""
    rng = np.random.default_rng(3)
    scale = 0.002 * 100 * 2**30
    noise = Noise("laplace", scale, scale, 1.0)
    exact = answered([0.49], 100)
    hits = 0
    for eta in np.rint(rng.laplace(0, scale, 2000)).astype(np.int64):
        noisy = dataclasses.replace(exact, noise=noise, sums=exact.sums + eta)
        low, high = noisy.interval(0.9)
        hits += low <= exact.probability <= high
    assert 1730 <= hits <= 1870


def test_quantiles_answer_in_the_coefficients_unit() -> None:
    spec = QuantileSum(("x", "y"), "x", 0.5, 50, 2.0, 0.5, "centred", 1.0)
    noise = Noise("laplace", 2.0**30, 2.0**30, 1.0)
    found = Answer(spec, noise, np.array([25 * 2**30]), True)
    assert found.quantile == pytest.approx(2.25)
    low, high = found.interval(0.9)
    assert high - 2.25 == pytest.approx(2.25 - low) == pytest.approx(math.log(10) / 50 / 2, 1e-6)
    far = dataclasses.replace(found, sums=np.array([10**15]))
    assert far.quantile == 2.5


def test_the_curve_is_the_nearest_monotone_one() -> None:
    noisy = [0.40, 0.47, 0.44, 0.52, 0.50, 0.60]
    assert nearest_monotone(np.array(noisy)).tolist() == pytest.approx(pava(noisy))
    spec = ProbabilitySums(("x", "y"), "x", (3.0, 1.0, 2.0), 100)
    sums = np.rint(np.array([0.51, 0.49, 0.48]) * 100 * 2**30).astype(np.int64)
    scale = 0.01 * 100 * 2**30
    curve = Answer(spec, Noise("laplace", scale, scale, 1), sums, True).curve(0.9)
    assert curve["at"].tolist() == [1.0, 2.0, 3.0]
    assert curve["probability"].is_monotonic_increasing
    assert curve["probability"][0] == curve["probability"][1]
    assert curve["lower"].is_monotonic_increasing
    assert curve["upper"].is_monotonic_increasing
    assert (curve["lower"] <= curve["upper"]).all()


def test_a_fisher_curve_increases_too() -> None:
    spec = ProbabilitySums(("x", "y"), "x", (1.0, 2.0, 3.0), 10, "fisher", 0.01)
    sums = np.rint(np.array([30, 31, 12]) / spec.step).astype(np.int64)
    curve = Answer(spec, QUIET, sums, True).curve()
    assert curve["probability"].is_monotonic_increasing


# -- reached from a release ----------------------------------------------------------------------


def test_a_release_answers_in_the_owners_rescaling_and_in_the_other() -> None:
    spec = ProbabilitySums(("x", "y"), "x", (0.0,), 100)
    sums = np.array([[round(0.49 * 100 * 2**30)]])
    made = partitioned(dataclasses.replace(spec, columns=("pir", "kir"), coefficient="pir"))
    block = Block(made.blocks[0].statistic, made.blocks[0].noise, sums)
    made = dataclasses.replace(made, blocks=(block,))
    thesis = dataclasses.replace(made, model={**made.model, "rescaling": "thesis"})
    assert made.probability == made.answer(corrected=True).probability
    assert thesis.probability == made.answer(corrected=False).probability != made.probability
    assert isinstance(made.probability, float)
    assert isinstance(made.interval(0.9), tuple)


def test_several_cutoffs_answer_as_arrays() -> None:
    made = FACTORIES["posterior-probability"]()
    assert made.probability.shape == (3,)
    assert made.interval().shape == (3, 2)
    assert len(made.table()) == len(made.table("user")) == 3


def test_other_families_say_what_they_are() -> None:
    for name in ("probability", "quantile"):
        with pytest.raises(AttributeError, match=f"LinearRegressionRelease.*{name}"):
            getattr(regression(), name)
        assert not hasattr(regression(), name)
    assert not hasattr(regression(), "interval")
    with pytest.raises(AbsentError, match=r"ask \.quantile"):
        FACTORIES["posterior-quantile"]().probability  # noqa: B018
    with pytest.raises(AbsentError, match=r"ask \.probability"):
        FACTORIES["posterior-probability"]().quantile  # noqa: B018
    with pytest.raises(AbsentError, match=r"ask \.quantile"):
        FACTORIES["posterior-quantile"]().answer().curve()


@pytest.mark.parametrize("level", [0, 1, -0.5, 90, "0.9", True, math.nan])
def test_odd_levels_are_refused(level: object) -> None:
    with pytest.raises(ArgumentError, match="level: must be a number between 0 and 1"):
        FACTORIES["posterior-quantile"]().interval(level)


SPEC, NOISE = "blocks.0.statistic", "blocks.0.noise"
WRONG: dict[str, tuple[str, Edit, str]] = {
    "sensitivity divided by M (E4)": (
        "posterior-probability-fisher",
        both(put(f"{NOISE}.sensitivity", 1.0), put(f"{NOISE}.scale", 2.0)),
        "claims epsilon = 1.0; its noise gives epsilon = 2048",
    ),
    "half the interval": (
        "posterior-quantile",
        put(f"{NOISE}.sensitivity", 2.0**30),
        "one person can move the sums by 2147483648.0",
    ),
    "a search that was not paid for": (
        "posterior-quantile", put(f"{SPEC}.search_cost", 0.51), "more than the 1.0 claimed"
    ),
    "a centre of a symmetric search": (
        "posterior-quantile-symmetric", put(f"{SPEC}.centre", 1.0), "has its centre at 0"
    ),
    "no cutoffs": ("posterior-probability", put(f"{SPEC}.at", []), "at must hold 1 to"),
    "a cutoff twice": ("posterior-probability", put(f"{SPEC}.at", [1, 1.0, 2]), "must not repeat"),
    "p outside (0, 1)": ("posterior-quantile", put(f"{SPEC}.p", 1), "p must be between 0 and 1"),
    "an unknown coefficient": (
        "posterior-quantile", put(f"{SPEC}.coefficient", "age"), "must be a covariate or"
    ),
    "another coefficient": (
        "posterior-quantile", put("model.coefficient", "pir"), "'coefficient' must be that of"
    ),
    "no partitions": ("posterior-quantile", put(f"{SPEC}.partitions", 0), "partitions must be"),
    "no radius": ("posterior-quantile", put(f"{SPEC}.radius", 0), "radius must be above zero"),
    "a floor for normality": (
        "posterior-probability", put(f"{SPEC}.floor", 0.1), "floor goes with method 'fisher'"
    ),
    "fisher without a floor": (
        "posterior-probability-fisher", put(f"{SPEC}.floor", None), "floor goes with method"
    ),
    "a power beyond use": ("posterior-probability", put(f"{SPEC}.power", 65), "power must be in"),
    "no rescaling": ("posterior-probability", drop("model.rescaling"), "'rescaling' must be one"),
    "other columns": ("posterior-probability", put("model.x", ["kir"]), "'x' and 'y' must be"),
    "another family": (
        "posterior-probability", put("family", "posterior-quantile"), "needs quantile-sum"
    ),
    "groups": (
        "posterior-quantile",
        both(put("groups", {"column": "g", "keys": ["a"]}), put("guarantee.within", "g")),
        "is over the whole table",
    ),
    "a lone column": ("posterior-quantile", put(f"{SPEC}.columns", ["kir"]), "and then the resp"),
}  # fmt: skip


@pytest.mark.parametrize(("factory", "edit", "fragment"), WRONG.values(), ids=WRONG.keys())
def test_partition_releases_that_contradict_themselves(
    factory: str, edit: Edit, fragment: str
) -> None:
    content = content_of(FACTORIES[factory]())
    edit(content)
    refused(redigested(content), fragment)


def test_a_partition_statistic_stands_alone() -> None:
    made = FACTORIES["posterior-quantile"]()
    with pytest.raises(ReleaseError, match="stands alone, in a release of its own family"):
        dataclasses.replace(regression(), blocks=(*regression().blocks, *made.blocks))
