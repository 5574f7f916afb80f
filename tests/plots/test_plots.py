"""Pictures are drawn, show what they should, and refuse what they cannot."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import noisewise as nw
from noisewise import priors
from noisewise.models.exponential_family import families
from noisewise.models.exponential_family.analyst import naive
from noisewise.models.exponential_family.problem import FamilyProblem
from noisewise.models.exponential_family.truncation import Interval
from tests.models.linear_regression.factor_posteriors import factor_posterior

pytestmark = pytest.mark.xdist_group("expfam")


@pytest.fixture(scope="module")
def post() -> nw.Posterior:
    given = FamilyProblem(
        families.Bernoulli(), Interval(0.0, 1.0, "keep"), "owns", np.array([[30.0], [60.0]]),
        np.array([100.0, 100.0]), 5.0, "laplace", priors.Beta(1, 1), ("a", "b"),
    )  # fmt: skip
    return naive(given, 0, 4, 1000)


def test_a_trace_shows_every_chain(post: nw.Posterior) -> None:
    figure = nw.plots.trace(post, group="a", truth={"p": 0.3}, draws=100)
    (axis,) = figure.axes
    assert len(axis.lines) == 5
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), post.draws["p"][0, 0, :100])
    kept = io.BytesIO()
    figure.savefig(kept, format="png")
    assert kept.getvalue().startswith(b"\x89PNG")


def test_the_posterior_stands_against_its_prior(post: nw.Posterior) -> None:
    figure = nw.plots.posterior_against_prior(post, group="b", truth={"p": 0.6})
    axis: Any = figure.axes[0]
    prior, posterior = (p.get_data() for p in axis.patches)
    np.testing.assert_allclose(prior.values[1:-1], 1, atol=0.3)  # uniform: 5 sds of a bin
    edges = posterior.edges
    assert edges[int(np.argmax(posterior.values))] == pytest.approx(0.6, abs=0.08)
    assert (posterior.values * np.diff(edges)).sum() == pytest.approx(1)


def test_what_cannot_be_drawn(post: nw.Posterior) -> None:
    with pytest.raises(nw.ArgumentError, match="one of a, b"):
        nw.plots.trace(post)
    with pytest.raises(nw.ArgumentError, match="'q' is unknown"):
        nw.plots.trace(post, group="a", parameters=["q"])
    with pytest.raises(nw.ArgumentError, match="no prior"):
        nw.plots.posterior_against_prior(replace(post, prior_draws=None), group="a")
    alone = replace(post, keys=None, draws={"p": post.draws["p"][0]})
    with pytest.raises(nw.ArgumentError, match="no groups"):
        nw.plots.trace(alone, group="a")


def test_ranks_and_coverage_are_drawn_in_their_bands() -> None:
    u = {"honest": np.linspace(0.01, 0.99, 50), "narrow": np.repeat([0.0, 1.0], 20)}
    axis: Any = nw.plots.rank_ecdf(u).axes[0]
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["95% band", *u]
    points: Any = nw.plots.coverage_points({"slope": 0.94, "σ²": 0.5}, 0.95, 100).axes[0]
    assert list(points.lines[1].get_xdata()) == [0.94, 0.5]
    with pytest.raises(nw.ArgumentError, match="u: must have"):
        nw.plots.rank_ecdf({})


def test_long_names_of_terms_are_broken_not_cut() -> None:
    post = factor_posterior("pay ~ C(sex)").with_reference(sex="male")
    figure = nw.plots.trace(post)
    figure.canvas.draw()
    for axis in figure.axes:
        box = axis.yaxis.label.get_window_extent()
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.height
    assert "".join(figure.axes[0].get_ylabel().split()) == "".join(post.x[0].split())
