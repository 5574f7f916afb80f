"""Which releases may be combined: of the same columns, bounds and records, and each once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError, Bounds, Noise, ReleaseError
from noisewise.artifact.release import Receipt
from noisewise.inference import combine
from tests.inference.regressions import release, table

BOUNDS = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}


def made(seed: int = 0, records: int = 30, **words: Any) -> nw.Release:
    tables = [table(np.random.default_rng(0), records) for _ in range(2)]
    words = {"grouped": False, "scale": 2.0, "bounds": BOUNDS, **words}
    chosen = tables if words["grouped"] else tables[:1]
    return release(chosen, words.pop("bounds"), seed=seed, **words)


def booked(given: nw.Release, dataset: str, entry: str, ledger: str = "l1") -> nw.Release:
    return replace(given, receipt=Receipt(ledger, dataset, entry))


def test_it_must_be_said() -> None:
    one, two = made(1), made(2)
    with pytest.raises(ArgumentError, match=r"same_population=True .--same-population.; nothing"):
        nw.infer([one, two])
    combine.check([one, two], same_population=True)


def test_a_ledger_proves_it() -> None:
    one, two = booked(made(1), "people", "e1"), booked(made(2), "people", "e2")
    combine.check([one, two], same_population=False)
    for other in (booked(two, "firms", "e2"), booked(two, "people", "e2", "l2"), made(2)):
        with pytest.raises(ArgumentError, match="do not name one dataset of one ledger"):
            combine.check([one, other], same_population=False)


def test_a_release_is_given_once() -> None:
    one = made(1)
    again = nw.Release.from_json(one.to_json())
    with pytest.raises(ArgumentError, match="2 and 3 are the same release, whose noise was drawn"):
        combine.check([made(2), one, again], same_population=True)
    twins = booked(made(1), "people", "e1"), booked(made(2), "people", "e1")
    with pytest.raises(ArgumentError, match="the same release"):
        combine.check(twins, same_population=True)


OTHERS: dict[str, Callable[[], nw.Release]] = {
    "number of records: (30,) and (31,)": lambda: made(2, records=31),
    "bounds": lambda: made(2, bounds={"a": (-1.0, 1.0), "b": (-1.0, 2.0)}),
    "model": lambda: made(2, y="a"),
    "model: {'x': ('a',), 'y': 'b'} and {'x': ('c',)": lambda: made(
        2, bounds={"c": (-1.0, 1.0), "b": (-1.0, 1.0)}
    ),
    "groups": lambda: made(2, grouped=True),
    "statistics": lambda: made(2, secret_n=True),
    "values for missing entries": lambda: replace(made(2), fill={"a": 0.0}),
    "family": lambda: nw.release.exponential_family(
        pd.DataFrame({"a": [1, 0]}), column="a", family="bernoulli", epsilon=1.0
    ),
}


@pytest.mark.parametrize("differs", OTHERS)
def test_what_differs_is_named(differs: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        nw.infer([made(1), OTHERS[differs]()], same_population=True)
    assert f"1 and 2 differ in their {differs}" in str(refused.value)


def test_other_noise_and_other_extras_may_differ() -> None:
    other = made(2, scale=1.0, mechanism="gaussian", monomials=True)
    combine.check([made(1), other], same_population=True)
    assert other.bounds == {c: Bounds(*b) for c, b in BOUNDS.items()}


@pytest.mark.parametrize("method", ["gibbs-update", "naive", "mcmc-individual"])
def test_other_methods_say_which_can(method: str) -> None:
    with pytest.raises(ArgumentError, match=f"'{method}' takes one release; .* by 'exact' only"):
        nw.infer([made(1), made(2)], method, same_population=True)


@pytest.mark.parametrize("given", [[], None, [made(1), None], 7])
def test_no_releases(given: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a Release, or a list of them"):
        nw.infer(given)


@pytest.mark.parametrize("given", ["r.json", ["r.json"]])
def test_a_path_is_read(given: Any) -> None:
    with pytest.raises(ReleaseError, match=r"cannot read r\.json"):
        nw.infer(given)


def test_both_guarantees_are_kept(tmp_path: Path) -> None:
    """Categories, which need no compilation worth mentioning."""
    frame = pd.DataFrame({"c": ["x", "y", "y"] * 20})
    both = [
        nw.release.exponential_family(
            frame, column="c", family="categorical", levels=["x", "y"], epsilon=e
        )
        for e in (0.5, 0.75)
    ]
    post = nw.infer(iter(both), same_population=True)
    assert post.guarantees == tuple(r.guarantee.statement() for r in both)
    back: Any = nw.load_posterior(post.save(tmp_path / "p.nc"))
    assert back.guarantees == post.guarantees
    one = nw.infer([both[0]])
    np.testing.assert_array_equal(one.draws["p[x]"], nw.infer(both[0]).draws["p[x]"])


# -- sums that contradict it -----------------------------------------------------------------------


def counted(ones: int, mechanism: Literal["laplace", "gaussian"]) -> nw.Release:
    """200 records, so many of them 1."""
    frame = pd.DataFrame({"a": [1] * ones + [0] * (200 - ones)})
    delta = None if mechanism == "laplace" else 1e-6
    return nw.release.exponential_family(
        frame, column="a", family="bernoulli", epsilon=1.0, mechanism=mechanism, delta=delta
    )


@pytest.mark.parametrize("same_population", [True, False])
@pytest.mark.parametrize(
    "mechanisms", [("laplace",) * 2, ("gaussian",) * 2, ("laplace", "gaussian")]
)
def test_different_tables_on_one_account_are_refused(
    mechanisms: tuple[Any, Any], same_population: bool
) -> None:
    one, two, other = (
        booked(counted(ones, mechanism), "people", f"e{i}")
        for i, (ones, mechanism) in enumerate(
            zip((40, 40, 160), (*mechanisms, mechanisms[1]), strict=True)
        )
    )
    combine.check([one, two], same_population=same_population)
    with pytest.raises(ArgumentError, match=r"1 and 3 cannot be .* same records.* infer them"):
        combine.check([one, two, other], same_population=same_population)
    with pytest.raises(ArgumentError, match="cannot be releases of the same records"):
        nw.infer([one, other], same_population=same_population)


def test_equal_sums_of_two_entries_are_two_draws() -> None:
    """A count with little noise often comes out the same twice; a ledger knows that it was two."""
    one = booked(counted(40, "laplace"), "people", "e1")
    two = booked(one, "people", "e2")
    combine.check([one, two], same_population=False)
    with pytest.raises(ArgumentError, match="are the same release"):
        combine.check([one, booked(one, "people", "e1")], same_population=False)
    with pytest.raises(ArgumentError, match="are the same release"):
        combine.check([one, replace(two, receipt=None)], same_population=True)


def test_a_regression_of_other_records_is_refused() -> None:
    one, two = made(1, scale=0.01), made(2, scale=0.01)
    combine.check([one, two], same_population=True)
    gram = two.blocks[0]
    values = gram.values.copy()
    values[2, 0] += round(combine.difference_limit(gram.noise, gram.noise, 1e-12)) + 2**40
    moved = replace(two, blocks=(replace(gram, values=values), *two.blocks[1:]))
    with pytest.raises(ArgumentError, match=re.escape(repr(gram.statistic.names[2]))):
        combine.check([one, moved], same_population=True)


LAWS = [
    (Noise("laplace", 3.0, 3.0, 1.0), Noise("laplace", 3.0, 3.0, 1.0)),
    (Noise("laplace", 0.2, 0.2, 1.0), Noise("laplace", 5.0, 5.0, 1.0)),
    (Noise("gaussian", 2.0, 2.0, 1.0), Noise("gaussian", 4.0, 4.0, 1.0)),
    (Noise("laplace", 2.0, 2.0, 1.0), Noise("gaussian", 6.0, 6.0, 1.0)),
    (Noise("gaussian", 0.4, 0.4, 1.0), Noise("laplace", 0.3, 0.3, 1.0)),
]


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize("chance", [1e-2, 1e-6, 1e-12])
def test_the_limit_against_the_exact_law(laws: tuple[Noise, Noise], chance: float) -> None:
    """Never too small; and a third of it would be, so it is not idle."""
    k = np.arange(-600, 601)
    law = np.ones(1)
    for noise in laws:
        d = np.abs(k) / noise.scale
        p = np.exp(-d if noise.mechanism == "laplace" else -(d**2) / 2)
        law = np.convolve(law, p / p.sum())
    apart = np.abs(np.arange(len(law)) - len(law) // 2)
    t = combine.difference_limit(*laws, chance)
    assert law[apart > t].sum() <= chance
    assert law[apart > t / 3].sum() > chance
