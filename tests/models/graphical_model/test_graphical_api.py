"""From a release to a model through ``nw.infer``: options, groups, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw


def people(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = (a + rng.integers(0, 2, n)) % 3
    return pd.DataFrame({"a": a, "b": b, "c": np.where(rng.random(n) < 0.8, b, 0), "g": a % 2})


LEVELS = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1, 2]}
CLIQUES = [("a", "b"), ("b", "c")]


def release(**more: Any) -> Any:
    words: dict[str, Any] = {"cliques": CLIQUES, "levels": LEVELS, "epsilon": 2.0, **more}
    return nw.release.graphical_model(people(), **words)


@pytest.mark.parametrize("mechanism", [{}, {"mechanism": "gaussian", "delta": 1e-6}])
def test_cgm_is_the_default_and_learns(mechanism: dict[str, Any]) -> None:
    frame, found = people(), nw.infer(release(**mechanism))
    assert found.method == "cgm"
    truth = frame.groupby(["a", "c"]).size().unstack(fill_value=0).to_numpy() / len(frame)
    # b screens c from a in these data, so the model has (a, c) right without a table of it. Noise
    # moves a cell by 2·4/2 counts of 3000, sampling by 20: 0.03 is beyond chance.
    np.testing.assert_allclose(found.marginal(("a", "c")), truth, atol=0.03)
    records = found.sample(100)
    assert set(records) == {"a", "b", "c"}
    assert np.isfinite(found.loglikelihood(frame))


def test_secret_n_and_groups() -> None:
    secret = nw.infer(release(neighbours="add-remove"), method="naive-mle", lam=1e-3)
    assert secret.details["secret_n"]
    assert secret.n == pytest.approx(3000, abs=60)
    grouped = nw.infer(release(groups={"g": [0, 1]}), method="cgm")
    assert set(grouped) == {0, 1}
    assert grouped[0].marginal("a")[1] < 0.1 < grouped[1].marginal("a")[1]


def test_tables_weighed_by_person() -> None:
    frame = people()
    frame["user"] = np.arange(len(frame)) // 3
    made = nw.release.graphical_model(
        frame, cliques=CLIQUES, levels=LEVELS, epsilon=2.0, unit="user"
    )
    assert "replacing all records of any one person by any others (all rows of one 'user')" in (
        made.statement()
    )
    found = nw.infer(made)
    assert isinstance(found, nw.GraphicalModel)
    assert found.n == 1000
    np.testing.assert_allclose(
        found.marginal("a"), frame["a"].value_counts(normalize=True).sort_index(), atol=0.04
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"method": "exact"}, "must be one of cgm, naive-mle, bayes, not 'exact'"),
        ({"estep": "loopy"}, "estep: must be dual or nlbp, not 'loopy'"),
        ({"spread": 0}, "spread: must be a number above zero, not 0"),
        ({"lam": 1.0}, "lam: is no option of cgm, which has tied, inference, memory"),
        ({"method": "naive-mle", "lam": -1.0}, "lam: must be a number above zero, not -1.0"),
        ({"tied": [[("a", "b"), ("a", "c")]]}, "is not a clique of the release"),
        ({"tied": "yes"}, "tied: must be True, or lists of cliques"),
        ({"inference": "magic"}, "inference: must be auto, exact or loopy"),
        ({"inference": "exact", "memory": 64}, "exact would need a junction tree of 2 cliques"),
        ({"memory": -1}, "memory: must be a number of bytes above zero"),
        ({"prior": 3}, "do not go with a graphical model"),
        ({"method": "bayes", "law": "flat"}, "law: must be one of log-gamma, normal, not"),
        ({"method": "bayes", "tied": True}, "tied: bayes has no tied potentials"),
    ],
)
def test_options_are_checked(words: dict[str, Any], message: str) -> None:
    with pytest.raises(nw.ArgumentError, match=message):
        nw.infer(release(), **words)


def test_options_of_graphical_models_are_refused_elsewhere() -> None:
    made = nw.release.exponential_family(
        people(), column="a", family="categorical", levels=[0, 1, 2], epsilon=1.0
    )
    with pytest.raises(nw.ArgumentError, match="lam: is no option of this model"):
        nw.infer(made, lam=1.0)


def test_a_tree_too_large_is_told_and_bayes_refuses_it() -> None:
    """Its sampler cannot go through loopy belief propagation."""
    made = release()
    with pytest.warns(UserWarning, match="loopy belief propagation is used instead"):
        assert nw.infer(made, memory=1).inference == "loopy"
    for words in ({"memory": 1}, {"inference": "loopy"}):
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(nw.ArgumentError, match="bayes needs exact inference, here a junction"),
        ):
            nw.infer(made, method="bayes", **words)
