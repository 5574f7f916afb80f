"""Groups in ``infer``: some of them, those left out, and pooling that is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from tests.artifact.factories import FACTORIES
from tests.inference.regressions import release, table

KEYS = ("a", "b", "c", "d")


def shares(keys: tuple[str, ...] = KEYS) -> nw.Release:
    owns = np.tile([0, 1, 1, 1], 10 * len(keys))
    people = pd.DataFrame({"area": np.repeat(keys, 40), "owns": owns})
    return nw.release.exponential_family(
        people, column="owns", family="bernoulli", groups={"area": keys}, epsilon=1.0
    )


def regression(sizes: tuple[int, ...]) -> nw.Release:
    rng = np.random.default_rng(4)
    return release([table(rng, n) for n in sizes], {"x1": (-1, 1), "y": (-1, 1)}, scale=0.5)


def test_some_groups_are_inferred_in_the_order_of_the_release() -> None:
    given = shares()
    post = nw.infer(given, "naive", groups=["d", "b"], draws=100)
    assert isinstance(post, nw.Posterior)
    assert post.keys == ("b", "d")
    alone = nw.infer(given.of_groups([1, 3]), "naive", draws=100)
    pd.testing.assert_frame_equal(post.summary(), alone.summary())


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (["e"], "groups: 'e' is no group of the release, which has 'a', 'b', 'c', 'd'"),
        ([], "groups: must name at least one"),
        ("a", r"groups: must be a list of keys, such as \['a'\]"),
    ],
)
def test_groups_that_are_not_there(groups: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.infer(shares(), groups=groups)


def test_a_release_without_groups_has_none_to_choose_or_to_pool() -> None:
    plain = nw.release.exponential_family(
        pd.DataFrame({"owns": [0, 1] * 50}), column="owns", family="bernoulli", epsilon=1.0
    )
    with pytest.raises(ArgumentError, match="groups: this release has none"):
        nw.infer(plain, groups=["a"])
    with pytest.raises(ArgumentError, match="pool: this release has no groups"):
        nw.infer(plain, pool=True)
    with pytest.raises(ArgumentError, match="groups are compared, and this posterior has none"):
        nw.infer(plain, "naive").ranks()


def test_the_status_counts_groups_that_could_not_be_inferred() -> None:
    with pytest.warns(UserWarning, match="2 of 4 groups"):
        post = nw.infer(regression((60, 2, 80, 0)), "naive", draws=100)
    assert "2 of 4 groups could not be inferred, since they have fewer than 3 records: g1, g3" in (
        post.status
    )


def test_groups_are_ranked_by_a_parameter_or_by_their_line() -> None:
    post = nw.infer(regression((60, 70, 80)), "naive", draws=100)
    assert isinstance(post, nw.Posterior)
    line = post.predict({"x1": 0.2}).expected
    above = post.probability_above(0.1, at={"x1": 0.2})
    assert above["probability"].tolist() == (line > 0.1).mean(axis=(1, 2)).tolist()
    assert list(post.ranks("x1").index) == ["g0", "g1", "g2"]
    with pytest.raises(ArgumentError, match="parameter: must be one of x1, intercept, sigma2"):
        post.ranks()
    with pytest.raises(ArgumentError, match="at: goes without parameter"):
        post.ranks("x1", at={"x1": 0.2})
    with pytest.raises(ArgumentError, match=r"^at: must give a value to each of x1"):
        post.ranks(at={"age": 0.2})
    with pytest.raises(ArgumentError, match="shrinkage: goes with pooled groups"):
        _ = post.shrinkage


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"features": {"area": ["a"]}}, "features: goes with pooled groups; give pool=True too"),
        ({"parent": "county"}, "parent: goes with pooled groups; give pool=True too"),
        ({"pool": 1}, "pool: must be True or False, not 1"),
        ({"pool": True, "method": "naive"}, "pool: 'naive' takes every group by itself; .*'exact'"),
        ({"pool": True, "groups": ["a", "b"]}, "pool: at least 3 groups are needed .*, not 2"),
        ({"pool": True, "features": {"area": ["a", "b", "c"], "x": [1, 2, 3]}}, "no row for group"),
    ],
)
def test_pooling_that_is_refused(words: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nw.infer(shares(), **words)


def test_a_model_that_cannot_pool_says_which_can() -> None:
    with pytest.raises(ArgumentError, match="pool: a graphical-model cannot pool its groups; lin"):
        nw.infer(FACTORIES["graphical"](), pool=True)
