"""The guide, executed as it is printed: a user's family in about thirty lines."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import noisewise as nw
from noisewise.models.exponential_family import release as owner
from noisewise.models.exponential_family.families import FAMILIES, Poisson
from tests.inference.agreement import TOLERANCE, departures, known, summary
from tests.models.exponential_family.cases import truncated_family_moments

GUIDE = Path(__file__).parents[3] / "docs" / "guide-your-own-family.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

pytestmark = pytest.mark.xdist_group("expfam")


@pytest.fixture(scope="module")
def guided() -> Iterator[dict[str, Any]]:
    """Run the guide; afterwards, forget its family."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for block in BLOCKS:
            exec(compile(block, str(GUIDE), "exec"), names)
    names["said"] = said.getvalue()
    yield names
    del FAMILIES["negative-binomial"], owner.SHAPES["negative-binomial"]


def test_the_family_is_about_thirty_lines() -> None:
    family = BLOCKS[1].split("@nw.register_family")[1]
    assert len([line for line in family.splitlines() if line.strip()]) <= 36


def test_the_posterior_covers_the_truth(guided: dict[str, Any]) -> None:
    """p = 0.4: within five posterior sds, 6e-7 by chance."""
    post = guided["posterior"]
    assert post.method == "exact"
    assert "p" in guided["said"]
    row = post.summary().loc["p"]
    assert abs(row["mean"] - 0.4) < 5 * row["sd"]


def test_moments_follow_by_differentiation(guided: dict[str, Any]) -> None:
    family = guided["NegativeBinomial"](3.0)
    eta = family.natural(np.array([0.4]))
    x = np.arange(2, 8)
    weight = stats.nbinom.pmf(x, 3, 0.4)
    mean, variance = truncated_family_moments(family, 1.0, 7.0, eta)
    centre = weight @ x / weight.sum()
    assert float(mean[0]) == pytest.approx(centre, rel=1e-8)
    assert float(variance[0, 0]) == pytest.approx(
        weight @ (x - centre) ** 2 / weight.sum(), rel=1e-6
    )


def test_gibbs_and_exact_agree(guided: dict[str, Any]) -> None:
    """2,000 records: two comparisons."""
    gibbs = nw.infer(guided["release"], "gibbs")
    off = departures(summary(gibbs), summary(guided["posterior"]))
    assert np.abs(off).max() < TOLERANCE


def test_without_noise_it_is_conjugate(guided: dict[str, Any]) -> None:
    """ε so large that noise is nil; an interval that holds everything.

    Clamped: a sum over kept records alone would also fit a p so small that most were dropped.
    """
    release = nw.release.exponential_family(
        guided["pd"].DataFrame({"visits": guided["visits"]}),
        column="visits", family="negative-binomial", known={"r": 3}, bounds=(0, 60),
        outside="clamp", epsilon=1e6,
    )  # fmt: skip
    s = int(guided["visits"].sum())
    law = stats.beta(1 + 3 * 2000, 1 + s)
    expected = known(np.array([law.mean()]), np.array([law.std()]))
    off = departures(summary(nw.infer(release)), expected)
    assert np.abs(off).max() < TOLERANCE


def test_a_name_can_be_taken_once(guided: dict[str, Any]) -> None:
    with pytest.raises(nw.ArgumentError, match="already"):
        nw.register_family(guided["NegativeBinomial"])
    with pytest.raises(nw.ArgumentError, match="already"):
        nw.release.register_family("negative-binomial")
    with pytest.raises(nw.ArgumentError, match="subclass"):
        nw.register_family(int)  # type: ignore[type-var]


def test_a_family_that_lacks_a_part_is_refused_with_the_list_of_parts() -> None:
    class Incomplete(nw.Family):
        name = "incomplete"
        parameters = ("rate",)

    with pytest.raises(
        nw.ArgumentError, match=r"Incomplete lacks domains, prior, cdf, .* has name"
    ):
        nw.register_family(Incomplete)
    assert "incomplete" not in FAMILIES


def test_a_family_states_a_domain_for_every_parameter() -> None:
    class Undecided(Poisson):
        name = "undecided"
        domains = ("positive", "positive")

    with pytest.raises(nw.ArgumentError, match="one domain per parameter, out of unit, positive"):
        nw.register_family(Undecided)


def test_its_known_parameter_is_needed(guided: dict[str, Any]) -> None:
    with pytest.raises(nw.ArgumentError, match="r: family='negative-binomial' needs it"):
        nw.release.exponential_family(
            guided["pd"].DataFrame({"visits": [1]}), column="visits",
            family="negative-binomial", bounds=(0, 9), epsilon=1,
        )  # fmt: skip
