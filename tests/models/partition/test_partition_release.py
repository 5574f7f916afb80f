"""Owner's calls of the partition families: limit cases, sources, ledger, CLI, bad input."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import noisewise as nw
from noisewise.artifact import PartitionRelease, QuantileSum
from noisewise.cli.verbs import app
from noisewise.models.partition import partition_moments
from noisewise.privacy.ledger import open_ledger
from tests.reference import partition_reference as plain

ROWS, PARTITIONS = 6000, 30
REGRESSION: dict[str, Any] = {"x": ["a", "b"], "y": "y", "coefficient": "b"}
SURE: dict[str, Any] = {"epsilon": 1e7}


def frame(rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(21)
    a, b = rng.standard_normal(rows), rng.normal(2, 1, rows)
    return pd.DataFrame({"a": a, "b": b, "y": 1 + a - 0.5 * b + rng.standard_normal(rows)})


def probability(source: Any, **words: Any) -> PartitionRelease:
    given = {"at": -0.5, "epsilon": 1.0, "partitions": PARTITIONS, **REGRESSION, **words}
    return nw.release.posterior_probability(source, **given)


def quantile(source: Any, **words: Any) -> PartitionRelease:
    given = {"p": 0.3, "epsilon_bounds": 5.0, "epsilon_value": 5.0, "partitions": PARTITIONS}
    return nw.release.posterior_quantile(source, **{**given, **REGRESSION, **words})


def posterior(table: pd.DataFrame, prior: plain.Natural, coefficient: int = 1):  # type: ignore[no-untyped-def]
    data = plain.likelihood(table[["a", "b"]].to_numpy(), table["y"].to_numpy())
    return data.plus(prior).marginal(coefficient)


def zellner(table: pd.DataFrame) -> plain.Natural:
    prior = plain.zellner(table[["a", "b"]].to_numpy(), float(len(table)))
    return prior.plus(plain.flat_intercept(3))


@pytest.fixture
def _dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions by row number, so that a slow oracle can follow."""
    dealt = lambda rows, partitions: np.arange(rows) % partitions  # noqa: E731
    monkeypatch.setattr(partition_moments, "assign", dealt)


# -- limit cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("coefficient", ["a", "b", "intercept"])
def test_one_partition_and_no_noise_is_the_posterior(corrected: bool, coefficient: str) -> None:
    table = frame(400)
    t = posterior(table, zellner(table), ["a", "b", "intercept"].index(coefficient))
    at = float(t.ppf(0.2))
    made = probability(
        table, at=at, partitions=1, power=1.0, corrected=corrected, coefficient=coefficient, **SURE
    )
    assert made.probability == pytest.approx(0.2, abs=1e-5)
    wide = {"epsilon_bounds": 1e6, "epsilon_value": 1e7, "partitions": 1}
    assert quantile(table, p=0.2, coefficient=coefficient, **wide).quantile == pytest.approx(
        t.ppf(0.2), abs=1e-4
    )


def test_one_partition_with_a_normal_inverse_gamma_prior() -> None:
    table = frame(100)
    given = ([0.0, 1.0, 0.0], np.diag([1.0, 20.0, 1.0]), 2.0, 3.0)
    t = posterior(table, plain.normal_inverse_gamma(*given))
    prior = nw.priors.NormalInverseGamma(*given)
    made = probability(table, at=-0.3, partitions=1, power=1.0, prior=prior, **SURE)
    assert made.probability == pytest.approx(t.cdf(-0.3), abs=1e-5)
    assert made.model["prior"] == "normal-inverse-gamma"
    assert nw.Release.from_json(made.to_json()) == made


@pytest.mark.usefixtures("_dealt")
@pytest.mark.parametrize("tempered", [True, False])
def test_without_noise_the_mean_of_the_partitions_is_recovered(tempered: bool) -> None:
    table = frame()
    share = 1 if tempered else PARTITIONS
    expected = []
    for j in range(PARTITIONS):
        rows = table.iloc[j::PARTITIONS]
        x = rows[["a", "b"]].to_numpy()
        prior = plain.zellner(x, ROWS / share).plus(plain.flat_intercept(3))
        expected.append(posterior(rows, prior).cdf([-0.6, -0.5]))
    made = probability(table, at=[-0.6, -0.5], power=1.0, tempered=tempered, **SURE)
    found = made.table()["value"]
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-5)


@pytest.mark.usefixtures("_dealt")
def test_without_noise_fishers_sum_and_the_mean_quantile_are_recovered() -> None:
    table = frame()
    tails, quantiles = [], []
    for j in range(PARTITIONS):
        rows = table.iloc[j::PARTITIONS]
        x, y = rows[["a", "b"]].to_numpy(), rows["y"].to_numpy()
        prior = plain.zellner(x, float(ROWS)).plus(plain.flat_intercept(3))
        tails.append(-2 * np.log(max(posterior(rows, prior).cdf(-0.5), 0.001)))
        data = plain.likelihood(x, y).plus(plain.zellner(x, float(ROWS))).times(PARTITIONS)
        quantiles.append(data.plus(plain.flat_intercept(3)).marginal(1).ppf(0.3))
    made = probability(table, method="fisher", **SURE)
    assert made.table()["value"][0] == pytest.approx(sum(tails), abs=1e-3)
    made = quantile(table, epsilon_bounds=1e6, epsilon_value=1e7)
    spec: Any = made.blocks[0].statistic
    clipped = np.clip(quantiles, spec.centre - spec.radius, spec.centre + spec.radius)
    assert made.quantile == pytest.approx(np.mean(clipped), abs=1e-4)


def test_many_partitions_agree_with_the_full_posterior() -> None:
    """ε = 1e7: what is left is the partitions' own error, 0.3 standard deviations or so."""
    table = frame(20_000)
    t = posterior(table, zellner(table))
    made = probability(table, at=[float(t.ppf(p)) for p in (1e-4, 0.9999)], partitions=100, **SURE)
    low, high = np.ravel(made.probability)
    assert low < 0.05
    assert high > 0.95
    found = quantile(table, p=0.5, epsilon_bounds=1e5, epsilon_value=1e7, partitions=100).quantile
    assert abs(found - t.mean()) < t.std()


def test_a_vanishing_budget_says_nothing() -> None:
    made = probability(frame(), epsilon=1e-4)
    low, high = made.interval(0.9)
    assert low < 1e-3
    assert high > 1 - 1e-3


# -- what the file says --------------------------------------------------------------------------


def test_cutoffs_share_the_budget_explicitly() -> None:
    one, three = probability(frame()), probability(frame(), at=[-0.6, -0.5, -0.4])
    assert three.guarantee.epsilon == three.blocks[0].noise.cost == 1.0
    assert three.blocks[0].noise.scale == pytest.approx(3 * one.blocks[0].noise.scale)
    assert np.shape(three.probability) == (3,)


def test_the_parts_of_a_quantile_add_up_to_the_whole() -> None:
    # 1.1 + 2.2 is not 3.3 in floating point. Less for the search would fail now and then.
    made = quantile(frame(), epsilon_bounds=1.1, epsilon_value=2.2, scale=0.2, partitions=300)
    assert made.guarantee.epsilon == 3.3
    statistic = made.blocks[0].statistic
    assert isinstance(statistic, QuantileSum)
    assert statistic.search_cost == 1.1
    assert made.blocks[0].noise.cost == pytest.approx(2.2, abs=1e-15)
    assert nw.Release.from_json(made.to_json()) == made


def test_add_remove_hides_n_and_needs_a_public_g() -> None:
    with pytest.raises(nw.ArgumentError, match="n is secret, so Zellner's g must be given"):
        probability(frame(), neighbours="add-remove")
    made = probability(frame(), neighbours="add-remove", prior=nw.release.Zellner(5000))
    assert made.n is None
    assert made.guarantee.neighbours == "add-remove"
    assert str(ROWS) not in made.to_json()


# -- sources -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # DuckDB warns of its own, and pandas' options to come
def test_every_source_gives_the_same_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dealt = lambda rows, partitions: np.zeros(rows, int)  # noqa: E731  # order does not matter
    monkeypatch.setattr(partition_moments, "assign", dealt)
    table = frame()
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    sources = [
        table,
        pa.Table.from_pandas(table),
        pl.from_pandas(table),
        tmp_path / "t.parquet",
        str(tmp_path / "t.csv"),
        ibis.memtable(pa.Table.from_pandas(table)),
        ibis.duckdb.connect().read_parquet(str(tmp_path / "t.parquet")),
    ]
    found = [probability(s, partitions=1, at=-0.51, power=1.0, **SURE).probability for s in sources]
    assert found == pytest.approx([found[0]] * len(found), abs=1e-5)


def test_missing_values_are_refused_filled_or_left_out() -> None:
    table = frame()
    table.loc[::50, "a"] = np.nan
    with pytest.raises(nw.DataError, match="column 'a' has missing values"):
        probability(table)
    made = probability(table, fill={"a": 0.0})
    assert made.fill == {"a": 0.0}
    words = {"neighbours": "add-remove", "prior": nw.release.Zellner(1e4)}
    assert 0 <= probability(table, **words).probability <= 1


def test_memory_does_not_grow_with_rows() -> None:
    class Endless:
        """A stream of equal batches."""

        def __init__(self, batches: int) -> None:
            self.batches = batches

        def stream(self, plan: Any, progress: Any = None) -> Any:
            rng = np.random.default_rng(1)
            for _ in range(self.batches):
                yield {c: rng.standard_normal(2**15) for c in plan.numeric}, None

    from noisewise.models.partition.sample_and_aggregate import regression_question
    from noisewise.privacy.options import PrivacyOptions

    asked = regression_question(
        x=["a", "b"], y="y", coefficient="a", partitions=500, prior=None, fill=None,
        options=PrivacyOptions(epsilon=1.0),
    )  # fmt: skip
    peaks = []
    for batches in (4, 40):
        tracemalloc.start()
        partition_moments.read_partitions(Endless(batches), asked.plan, 500)  # type: ignore[arg-type]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


# -- the ledger ----------------------------------------------------------------------------------


def account(path: Path, budget: float) -> Path:
    with open_ledger(path, create=True) as ledger:
        ledger.set_budget("people", epsilon=budget)
    return path


def spent(path: Path) -> float:
    with open_ledger(path) as ledger:
        (found,) = ledger.accounts()
    return found.spent


def test_the_ledger_is_charged_the_whole(tmp_path: Path) -> None:
    ledger = account(tmp_path / "ledger.db", 2.0)
    words = {"ledger": ledger, "scale": 0.2, "partitions": 60}
    made = quantile(frame(), epsilon_bounds=0.4, epsilon_value=0.5, **words)
    assert spent(ledger) == 0.9
    assert made.receipt is not None
    probability(frame(), ledger=ledger)
    assert spent(ledger) == pytest.approx(1.9)
    with pytest.raises(nw.BudgetError):
        probability(frame(), ledger=ledger)
    assert spent(ledger) == pytest.approx(1.9)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            {"epsilon_bounds": 0.5},
            r"epsilon_bounds = 15, and needs about 20: .*raise epsilon_bounds",
        ),
        ({"epsilon_bounds": 1.0, "centred": False}, "= 30, and needs about 40"),
        ({"epsilon_bounds": 3.0, "centred": False, "coverage": 0.2}, "= 90, and needs about 100"),
    ],
)
def test_a_weak_search_is_warned_of_before_anything_is_spent(
    words: dict[str, Any], told: str, tmp_path: Path
) -> None:
    ledger = account(tmp_path / "ledger.db", 30.0)
    with pytest.raises(UserWarning, match=told):
        quantile(frame(100), ledger=ledger, **words)
    assert spent(ledger) == 0


def test_a_search_with_enough_budget_is_not_warned_of() -> None:
    quantile(frame(), epsilon_bounds=0.7, partitions=60)
    quantile(frame(), epsilon_bounds=0.7, partitions=60, centred=False)


def test_a_search_without_result_has_spent_its_budget(tmp_path: Path) -> None:
    ledger = account(tmp_path / "ledger.db", 30.0)
    words = {"ledger": ledger, "centred": False, "scale": 1e-9, "doublings": 2}
    with pytest.raises(nw.SearchError, match="no bound within its cap"):
        quantile(frame(), **words)
    assert spent(ledger) == 10.0
    with pytest.raises(nw.SearchError, match="no interval was found"):
        quantile(frame(), ledger=ledger, scale=1e-12)
    assert spent(ledger) == 20.0


def test_refusals_cost_nothing(tmp_path: Path) -> None:
    ledger = account(tmp_path / "ledger.db", 2.0)
    with pytest.raises(nw.DataError):
        probability(frame(), partitions=1000, ledger=ledger)
    assert spent(ledger) == 0


# -- bad input -----------------------------------------------------------------------------------


def test_more_partitions_than_rows_allow() -> None:
    with pytest.raises(nw.DataError, match=r"more than the table's rows allow.*=400 or fewer"):
        probability(frame(), partitions=401)
    probability(frame(), partitions=400)
    with pytest.raises(nw.DataError, match="there are too few records"):
        probability(frame(10), partitions=1)
    with pytest.raises(nw.DataError, match="has no rows"):
        probability(frame(0))


def test_rank_deficient_partitions_are_refused_by_name_only() -> None:
    table = frame()
    table["a"] = 0.0
    table.loc[:20, "a"] = 12345.678  # present in a few partitions only
    with pytest.raises(nw.DataError, match="rank-deficient") as caught:
        probability(table, partitions=300)
    assert "12345" not in str(caught.value)
    prior = nw.priors.NormalInverseGamma(np.zeros(3), np.eye(3), 1.0, 1.0)
    probability(table, partitions=300, prior=prior)


def test_a_single_wild_record_stops_nothing() -> None:
    table = frame()
    table.loc[7, "a"] = np.inf
    table.loc[8, "y"] = 1e300
    assert 0 <= probability(table, partitions=100).probability <= 1


BAD_PROBABILITY = [
    ({"coefficient": "c"}, "coefficient: must be one of a, b or 'intercept', not 'c'"),
    ({"coefficient": "y"}, "coefficient: must be one of"),
    ({"partitions": 0}, r"partitions: must be in \[1, "),
    ({"partitions": 2.5}, "partitions: must be a whole number, not 2.5"),
    ({"partitions": True}, "partitions: must be a whole number"),
    ({"at": []}, "at: must be 1 to"),
    ({"at": [1.0, 1]}, "at: names a cutoff twice"),
    ({"at": "low"}, "at: must be a number, not 'low'"),
    ({"at": float("nan")}, "at: must be a finite number"),
    ({"method": "magic"}, "method: must be one of normality, fisher, not 'magic'"),
    ({"floor": 1.0, "method": "fisher"}, "floor: must be between 0 and 1"),
    ({"epsilon": 0}, "epsilon: must be"),
    ({"y": "a"}, "y: must be one column that is not among x"),
    ({"neighbours": "both"}, "neighbours: must be"),
    ({"corrected": 1}, "corrected: must be True or False, not 1"),
    ({"power": 0}, r"power: must be in \[1/64, 64\]"),
    ({"fill": {"c": 1}}, "fill: 'c' is not among a, b, y"),
    ({"prior": "weak"}, "prior: must be nw.priors.NormalInverseGamma"),
]


@pytest.mark.parametrize(("words", "message"), BAD_PROBABILITY, ids=lambda v: str(v)[:40])
def test_bad_arguments_of_a_probability(words: dict[str, Any], message: str) -> None:
    with pytest.raises(nw.ArgumentError, match=message):
        probability(frame(100), **words)


BAD_QUANTILE = [
    ({"p": 0.0}, "p: must be between 0 and 1, not 0.0"),
    ({"p": 1}, "p: must be between 0 and 1, not 1"),
    ({"p": 1.5}, "p: must be between 0 and 1, not 1.5"),
    ({"p": "half"}, "p: must be a number, not 'half'"),
    ({"epsilon_bounds": 0}, "epsilon_bounds: must be above zero"),
    ({"epsilon_value": -1}, "epsilon_value: must be above zero"),
    ({"epsilon_bounds": 1e18, "epsilon_value": 0.1}, "epsilon_value: vanishes beside"),
    ({"scale": 0}, "scale: must be above zero"),
    ({"scale": 1e200}, "scale: must be between 1e-100 and 1e100"),
    ({"centred": "yes"}, "centred: must be True or False"),
    ({"coverage": 1.0}, "coverage: must be between 0 and 1"),
    ({"doublings": -1}, r"doublings: must be in \[0, 200\]"),
    ({"coefficient": "z"}, "coefficient: must be one of"),
]


@pytest.mark.parametrize(("words", "message"), BAD_QUANTILE, ids=lambda v: str(v)[:40])
def test_bad_arguments_of_a_quantile(words: dict[str, Any], message: str) -> None:
    with pytest.raises(nw.ArgumentError, match=message):
        quantile(frame(100), **words)


def test_a_missing_column_and_a_column_of_words() -> None:
    with pytest.raises(nw.DataError, match="column 'c' is not in"):
        probability(frame(), x=["a", "b", "c"])
    with pytest.raises(nw.DataError, match="column 'a' must be numeric"):
        probability(pa.Table.from_pandas(frame().assign(a="x")))


# -- the command line ----------------------------------------------------------------------------


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, [str(w) for w in words])


def test_the_command_line_makes_and_inspects_both(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "t.parquet")
    ledger = account(tmp_path / "ledger.db", 100.0)
    common = ["--x", "a", "--x", "b", "--y", "y", "--coefficient", "b", "--partitions", 30]
    common += ["--ledger", ledger, "--out", tmp_path / "r.json"]
    source = tmp_path / "t.parquet"
    done = invoked(
        "release", "posterior-probability", source, *common, "--at", -0.6, "--at", -0.4,
        "--epsilon", 2, "--no-corrected", "--g", 1000,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    made: Any = nw.Release.load(tmp_path / "r.json")
    assert made.model["rescaling"] == "thesis"
    assert made.model["prior_g"] == 1000
    shown = json.loads(invoked("inspect", tmp_path / "r.json", "--json").output)
    assert shown["answer"] == pytest.approx(made.probability.tolist())
    assert "answer: " in invoked("inspect", tmp_path / "r.json").output
    (tmp_path / "r.json").unlink()
    done = invoked(
        "release", "posterior-quantile", source, *common, "--p", 0.5, "--epsilon-bounds", 20,
        "--epsilon-value", 3, "--normal", "0.1,1,1", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["epsilon"] == 23
    other: Any = nw.Release.load(tmp_path / "r.json")
    assert other.quantile == pytest.approx(-0.5, abs=0.3)
    assert spent(ledger) == 25.0


def test_the_command_line_refuses_before_it_spends(tmp_path: Path) -> None:
    words = ["--x", "a", "--y", "y", "--coefficient", "a", "--partitions", 30, "--at", 0]
    words += ["--epsilon", 1]
    result = invoked("release", "posterior-probability", "t.csv", *words, "--out", "no/where.json")
    assert isinstance(result.exception, nw.ArgumentError)
    for prior in (["--normal", "1,2"], ["--normal", "1,1,-1"], ["--normal", "1,1,1", "--g", 2]):
        result = invoked(
            "release", "posterior-probability", "t.csv", *words, *prior, "--out", tmp_path / "r"
        )
        assert isinstance(result.exception, nw.ArgumentError)
        assert "--normal" in str(result.exception)
