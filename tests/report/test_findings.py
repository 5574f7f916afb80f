"""What a page begins with: sentences that say no more than the intervals do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Bounds
from noisewise.report import html, sentences
from tests.models.linear_regression.test_factors_posterior import factor_posterior
from tests.report.pages import of_family, regression
from tests.report.test_report import BOUNDS, WIDE, released


def normal(mean: float, sd: float, *lead: int) -> np.ndarray:
    """Return draws (…, 4, 1000) that are spread as a normal law, without chance."""
    from scipy.stats import norm

    flat = mean + sd * norm.ppf((np.arange(4000) + 0.5) / 4000)
    shuffled = np.random.default_rng(0).permutation(flat).reshape(4, 1000)
    return np.broadcast_to(shuffled, (*lead, 4, 1000)).copy()


def with_slope(mean: float, sd: float, groups: int = 0, **words: Any) -> Any:
    post = regression(groups=groups, **words)
    lead = (groups,) if groups else ()
    return replace(post, draws={**post.draws, "dose": normal(mean, sd, *lead)})


def test_a_clear_slope_is_told_with_its_interval_and_what_privacy_cost() -> None:
    (said,) = nw.report.findings(with_slope(0.49, 0.066))
    assert said == (
        "One more unit of `dose` goes with 0.49 higher `effect` (95 % interval 0.36 to 0.62, which "
        "allows for too few people and for the privacy noise)."
    )
    narrower = with_slope(0.49, 0.066, without_noise=lambda: {"dose": np.array(0.033)})
    (said,) = nw.report.findings(narrower)
    assert "; without privacy an interval would be about 0.13 wide)." in said


def test_a_negative_slope_is_lower_by_a_positive_number() -> None:
    (said,) = nw.report.findings(with_slope(-3.0, 0.5))
    assert "goes with 3.0 lower `effect` (95 % interval 2.0 to 4.0" in said


def test_an_interval_with_both_signs_is_no_finding() -> None:
    (said,) = nw.report.findings(with_slope(0.1, 0.1))
    assert said.startswith("The release does not say whether one more unit of `dose` goes with")
    hidden = with_slope(1e9, 1e12, details={"hidden": ("dose",)})
    (said,) = nw.report.findings(hidden)
    assert said.startswith("The privacy noise hides how much `dose` varies: the release does not")
    assert not re.search(r"\d", said)


def test_what_must_not_be_quoted_says_so_first() -> None:
    post = replace(with_slope(0.49, 0.06), rhat=dict.fromkeys(("dose", "intercept"), 1.3))
    assert "do not quote" in nw.report.findings(post)[0]
    naive = replace(with_slope(0.49, 0.06), method="naive")
    first, said = nw.report.findings(naive)
    assert "do not quote them" in first
    assert "which ignores the privacy noise and is too narrow" in said
    assert "allows for" not in said


def test_every_group_is_named() -> None:
    post = with_slope(0.0, 0.1, groups=4)
    drawn = np.stack([normal(m, 0.1) for m in (1.0, -1.0, 0.05, 2.0)])
    first, second = nw.report.findings(replace(post, draws={**post.draws, "dose": drawn}))
    a, b, c, d = map(str, post.keys or ())
    assert first == (
        f"One more unit of `dose` goes with higher `effect` in {a}, {d}, and with lower `effect` "
        f"in {b}; of {c} the release does not say whether it goes with higher or lower `effect`."
    )
    assert all(f"{name} " in second for name in (a, b, c, d))
    many = nw.report.findings(with_slope(1.0, 0.1, groups=30))
    assert "all 30 groups" in many[0]
    assert "the two highest and the two lowest" in many[1]


def test_levels_are_compared_with_the_reference() -> None:
    given = released([np.random.default_rng(0).uniform(0, 1, (200, 3))], BOUNDS, grouped=False)
    said = nw.report.findings(factor_posterior(WIDE, releases=(given,)))
    text = " ".join(said)
    assert "`region` 2 against 1: 4.00 higher `wages`" in text
    # Age is in a product with sex and squared: two records are compared, not a unit of it.
    assert "One more unit of `age`" not in text
    assert "`age` 71.5 rather than 34.5" in text
    assert "`sex` being male" in text
    assert len(said) <= sentences.MOST_SENTENCES + 2


def test_an_estimate_of_two_records_is_that_of_their_predictions() -> None:
    given = released([np.random.default_rng(0).uniform(0, 1, (200, 3))], BOUNDS, grouped=False)
    post = factor_posterior("wages ~ age + I(age**2)", releases=(given,))
    d = post.draws
    change = 37 * d["age"] + (71.5**2 - 34.5**2) * d["I(age ** 2)"]
    mean, *_ = sentences.told((change.mean(),), float(np.ptp(np.quantile(change, (0.025, 0.975)))))
    assert f"goes with {mean} higher" in nw.report.findings(post)[0]


def test_families_tell_means_and_shares() -> None:
    assert nw.report.findings(of_family("poisson"))[0].startswith(
        "The mean of `count` is about 2.7"
    )
    shares = nw.report.findings(of_family("categorical"))
    assert len(shares) == 3
    assert all(re.match(r"About \d+ % of the records have `count` ", s) for s in shares)
    page = nw.report.render(of_family("categorical"))
    assert "<b>green</b>" not in page


def test_numbers_have_the_digits_that_their_interval_deserves() -> None:
    assert sentences.told((0.4713, 0.3217, 0.6272), 0.3055) == ["0.47", "0.32", "0.63"]
    assert sentences.told((38012.0, 35511.0), 5000.0) == ["38,000", "35,500"]
    assert sentences.told((-0.001, 0.2), 0.4) == ["0.00", "0.20"]
    assert [sentences.step(Bounds(*ends)) for ends in ((0, 1), (0, 120), (0, 1e5), (0, 0.02))] == [
        1.0, 1.0, 1e4, 1e-3,
    ]  # fmt: skip


def test_only_results_have_findings() -> None:
    with pytest.raises(ArgumentError, match="findings are of what infer returned"):
        nw.report.findings(3)  # type: ignore[arg-type]
    assert html.findings(()) == ""
    assert html.findings(["<b> of `a<b`"]) == (
        '<div class="findings"><p>&lt;b&gt; of <code>a&lt;b</code></p></div>'
    )
