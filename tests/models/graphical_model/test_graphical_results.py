"""Results of graphical models: tables with labels, groups as an axis, and files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noisewise as nw
from noisewise import GraphicalGroups, GraphicalModel, GraphicalPosterior
from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model import model_files
from noisewise.models.graphical_model.marginal_oracle import compiled_oracle
from noisewise.models.graphical_model.structure import structure

VERSION_0_1 = Path(__file__).parents[2] / "fixtures" / "version_0_1"
LEVELS: dict[str, Any] = {"a": ("u", "v"), "b": (0, 1, 2), "chain": ("only",)}
STRUCTURE = structure({c: len(v) for c, v in LEVELS.items()}, [("a", "b"), ("b", "chain"), ("a",)])


def model(seed: int = 0, converged: bool = True) -> GraphicalModel:
    theta = np.random.default_rng(seed).normal(size=STRUCTURE.dimension)
    return GraphicalModel(STRUCTURE, LEVELS, theta, "cgm", 100.0, converged=converged)


def posterior(seed: int = 0, draws: int = 200) -> GraphicalPosterior:
    """Independent draws about a model's potentials, as two chains."""
    made = model(seed)
    rng = np.random.default_rng(seed)
    theta = made.potentials + 0.3 * rng.normal(size=(2, draws, STRUCTURE.dimension))
    oracle = compiled_oracle(made._oracle)
    mu = np.array([[np.asarray(oracle(row)[1]) for row in chain] for chain in theta])
    return GraphicalPosterior(made, mu, theta, np.exp(rng.normal(size=(2, draws))))


@pytest.fixture(scope="module")
def drawn() -> GraphicalPosterior:
    return posterior()


@pytest.fixture(scope="module")
def drawn_groups(drawn: GraphicalPosterior) -> GraphicalGroups[GraphicalPosterior]:
    return GraphicalGroups({"north": drawn, "south": posterior(1)})


def test_marginals_are_labelled_by_public_levels(drawn: GraphicalPosterior) -> None:
    for result in (model(), drawn):
        table = result.marginal(("b", "a"))
        assert table.dims == ("b", "a")
        assert table["b"].values.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(table, result.marginal_array(("b", "a")))
        assert float(table.sel(a="v", b=2)) == result.marginal_array(("a", "b"))[1, 2]
        assert result.marginal("a").dims == ("a",)
    ends = drawn.interval(("a", "b"), 0.9)
    assert ends.dims == ("bound", "a", "b")
    assert (ends.sel(bound="lower") < ends.sel(bound="upper")).all()
    np.testing.assert_array_equal(ends, drawn.interval_array(("a", "b"), 0.9))


def test_records_are_a_data_frame() -> None:
    records = model().sample(500, seed=3)
    assert isinstance(records, pd.DataFrame)
    assert list(records) == ["a", "b", "chain"]
    assert records["b"].isin(LEVELS["b"]).all()
    assert np.isfinite(model().loglikelihood(records))


def test_summary_has_a_row_per_level(drawn: GraphicalPosterior) -> None:
    fit: Any = model().summary()
    table: Any = drawn.summary(0.9)
    assert list(fit) == ["share"]
    assert list(table) == ["share", "sd", "lower", "upper", "rhat", "ess"]
    assert fit.index.names == table.index.names == ["column", "level"]
    for column, levels in LEVELS.items():
        assert fit.loc[column].index.tolist() == list(levels)
        np.testing.assert_allclose(fit.loc[column, "share"], model().marginal(column))
        np.testing.assert_allclose(table.loc[column, "share"], drawn.marginal(column))
        np.testing.assert_allclose(table.loc[column, "upper"], drawn.interval(column, 0.9)[1])
    assert np.isnan(table.loc[("chain", "only"), "rhat"])
    assert table["rhat"].dropna().lt(1.1).all()
    for result in (model(), drawn):
        with pytest.raises(ArgumentError, match="interval: must be between 0 and 1, not 2"):
            result.summary(2)


def test_draws_go_to_arviz_with_levels_as_coordinates(drawn: GraphicalPosterior) -> None:
    data: Any = drawn.to_arviz()
    held = data.posterior
    assert held["p[a,b]"].dims == ("chain", "draw", "a", "b")
    # A column called chain would clash with ArviZ's own dimension.
    assert held["p[b,chain]"].dims == ("chain", "draw", "b", "chain_")
    np.testing.assert_array_equal(held["p[a,b]"].sel(a="u", b=1), drawn.draws["a", "b"][..., 0, 1])
    assert held["tau"].shape == (2, 200)


def test_results_share_what_other_results_have(drawn: GraphicalPosterior) -> None:
    for result in (model(), drawn):
        assert result.model_name == "graphical-model"
        assert result.keys is None
    assert not hasattr(model(), "draws")


def test_groups_are_a_mapping_and_an_axis(
    drawn_groups: GraphicalGroups[GraphicalPosterior],
) -> None:
    fits = GraphicalGroups({1: model(), 2: model(1)})
    for groups in (fits, drawn_groups):
        keys = groups.group_keys
        assert tuple(groups) == tuple(groups.keys()) == keys
        assert len(groups) == 2
        table = groups.marginal(("b", "a"))
        assert table.dims == ("group", "b", "a")
        for key in keys:
            np.testing.assert_array_equal(table.sel(group=key), groups[key].marginal(("b", "a")))
        frame: Any = groups.summary()
        assert frame.index.names == ["group", "column", "level"]
        pd.testing.assert_frame_equal(frame.loc[keys[1]], groups[keys[1]].summary())
        records = groups.sample(50, seed=1)
        assert list(records) == ["group", "a", "b", "chain"]
        assert records["group"].value_counts().to_dict() == dict.fromkeys(keys, 50)
        assert groups.model_name == "graphical-model"
        # Each group has a stream of its own.
        again = GraphicalGroups({1: model(), 2: model()}).sample(200)
        halves = [again[again["group"] == k]["b"].to_numpy() for k in (1, 2)]
        assert (halves[0] != halves[1]).any()
    ends = drawn_groups.interval("a")
    assert ends.dims == ("group", "bound", "a")
    np.testing.assert_array_equal(ends.sel(group="south"), drawn_groups["south"].interval("a"))
    data: Any = drawn_groups.to_arviz()
    held = data.posterior["p[a,b]"]
    assert held.dims == ("chain", "draw", "group", "a", "b")
    with pytest.raises(ArgumentError, match="'cgm' gives no draws; infer with 'bayes'"):
        fits.interval("a")


def test_groups_say_which_have_not_converged() -> None:
    assert GraphicalGroups({"n": model()}).status == "converged in all 1 groups"
    groups = GraphicalGroups({"n": model(), "s": model(converged=False)})
    assert not groups.converged
    assert groups.unconverged == ("s",)
    assert groups.status.startswith("not converged in 1 of 2 groups (s); s: not converged: the")
    assert groups.method == "cgm"


def test_groups_of_different_things_are_refused(drawn: GraphicalPosterior) -> None:
    mixed: Any = {1: model(), 2: drawn}
    nothing: Any = {}
    for results in (nothing, mixed):
        with pytest.raises(ArgumentError, match="results: must be one or more results of one"):
            GraphicalGroups(results)


def test_groups_are_one_file(
    drawn_groups: GraphicalGroups[GraphicalPosterior], tmp_path: Path
) -> None:
    fits = GraphicalGroups({1: model(), 2: model(1)})
    both: list[Any] = [fits, drawn_groups]
    for number, groups in enumerate(both):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = groups.save(folder / "groups")
        assert [p.name for p in folder.iterdir()] == ["groups"]
        copies: list[Any] = [GraphicalGroups.load(path), nw.load_posterior(path)]
        for again in copies:
            assert again.group_keys == groups.group_keys
            pd.testing.assert_frame_equal(again.summary(), groups.summary())
            assert type(again[groups.group_keys[0]]) is type(groups[groups.group_keys[0]])
    with pytest.raises(ArgumentError, match="holds several groups"):
        GraphicalPosterior.load(tmp_path / "1" / "groups")
    with pytest.raises(ArgumentError, match="holds one GraphicalModel, not groups"):
        GraphicalGroups.load(model().save(tmp_path / "m.json"))


def test_a_posterior_is_one_file_without_pickles(drawn: GraphicalPosterior, tmp_path: Path) -> None:
    path = drawn.save(tmp_path / "p.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["p.npz"]
    with np.load(path, allow_pickle=False) as held:
        assert json.loads(str(held["model"]))["columns"] == ["a", "b", "chain"]
    again: Any = nw.load_posterior(path)
    np.testing.assert_array_equal(again.potential_draws, drawn.potential_draws)
    np.testing.assert_array_equal(again.model.potentials, drawn.model.potentials)


def test_files_of_version_0_1_are_read() -> None:
    numbers = json.loads((VERSION_0_1 / "numbers.json").read_text())
    old: dict[str, Any] = {
        "graphical/cgm": nw.load_posterior(VERSION_0_1 / "graphical-cgm.json"),
        "graphical/bayes": nw.load_posterior(VERSION_0_1 / "graphical-bayes.npz"),
    }
    assert isinstance(old["graphical/cgm"], GraphicalModel)
    assert isinstance(old["graphical/bayes"], GraphicalPosterior)
    for name, result in old.items():
        for columns, shares in numbers[name].items():
            table = result.marginal(columns.split(","))
            np.testing.assert_allclose(np.ravel(table), shares, rtol=1e-10)


@pytest.mark.parametrize("method", ["cgm", "naive-mle"])
def test_fits_are_those_of_version_0_1(method: str) -> None:
    numbers = json.loads((VERSION_0_1 / "numbers.json").read_text())
    found: Any = nw.infer(nw.Release.load(VERSION_0_1 / "graphical.json"), method=method)
    for columns, shares in numbers[f"graphical/{method}"].items():
        np.testing.assert_allclose(np.ravel(found.marginal(columns.split(","))), shares, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"potentials": [0.0]}, "potentials must be 11 finite numbers"),
        ({"potentials": ["0"] * 11}, "potentials must be 11 finite numbers"),
        ({"levels": {"a": ["u", "u"], "b": [0], "chain": ["x"]}}, "levels of 'a' must be distinct"),
        ({"levels": {"a": [1.5], "b": [0], "chain": ["x"]}}, "levels of 'a' must be distinct"),
        ({"cliques": [["a", "b"]]}, "cliques must hold every column"),
        ({"cliques": [["a", "z"], ["b", "chain"]]}, "cliques must hold every column"),
        ({"cliques": []}, "cliques must be lists of distinct columns"),
        ({"columns": ["a", "a", "b"]}, "columns must be distinct names"),
        ({"columns": None}, "columns must have levels"),
        ({"n": -1}, "n must be a number of people"),
        ({"n": 10**400}, "is damaged"),
        ({"inference": "magic"}, "inference must be exact or loopy"),
        ({"details": []}, "details must be an object"),
        ({"version": 7}, "version 7, this reads 1"),
        ({"format": "other"}, "is not a noisewise graphical model"),
    ],
)
def test_damaged_models_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = model().save(tmp_path / "m.json")
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, **change}))
    with pytest.raises(ArgumentError, match="does not match its sha256"):
        nw.load_posterior(path)
    del kept["sha256"]
    path.write_text(json.dumps({**kept, **change}))
    with pytest.raises(ArgumentError, match=message):
        nw.load_posterior(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"n": NaN}', "NaN is not a finite number"),
        ('{"n": 1e999}', "1e999 is not a finite number"),
        ('{"n": ' + "[" * 100_000, "is nested too deeply to be a graphical model"),
        ('{"n": 1', "cannot be read as a graphical model"),
        ("[]", "is not a noisewise graphical model"),
    ],
)
def test_texts_that_are_no_model_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        GraphicalModel.load(path)


def test_a_text_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = model().save(tmp_path / "m.json")
    monkeypatch.setattr(model_files, "MAX_JSON_BYTES", 100)
    with pytest.raises(ArgumentError, match="more than the 100 of any graphical model"):
        GraphicalModel.load(path)


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    """An array file that claims a shape and holds nothing of it."""
    out = io.BytesIO()
    content = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, content)
    return out.getvalue()


def array(values: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(values))
    return out.getvalue()


CELLS = STRUCTURE.dimension


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("marginal_draws", header((10**6, 10**6, CELLS)), "more than the file can hold"),
        ("marginal_draws", header((2, 200, CELLS)), "cannot be read as draws"),
        ("marginal_draws", header((2, 200, CELLS), "|O"), "must be numbers of 64 bits, not object"),
        ("marginal_draws", array(np.zeros((2, 200, 3))), r"must be of shape \(any, any, 11\)"),
        ("tau", array(np.zeros((2, 7))), r"tau must be of shape \(2, 200\), not \(2, 7\)"),
        ("tau", array(np.full((2, 200), np.nan)), "tau holds numbers that are not finite"),
        ("model", array(1.0), "model must be text, not float64"),
        ("model", array("{"), "cannot be read as a graphical model"),
        ("model", b"nonsense", "cannot be read as draws"),
    ],
)
def test_damaged_draws_are_refused(
    name: str, content: bytes, message: str, drawn: GraphicalPosterior, tmp_path: Path
) -> None:
    with zipfile.ZipFile(drawn.save(tmp_path / "good.npz")) as good:
        parts = {n: good.read(n) for n in good.namelist()}
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as bad:
        for part, held in {**parts, f"{name}.npy": content}.items():
            bad.writestr(part, held)
    with pytest.raises(ArgumentError, match=message):
        nw.load_posterior(path)


def test_an_archive_cut_short_is_refused(drawn: GraphicalPosterior, tmp_path: Path) -> None:
    path = drawn.save(tmp_path / "p.npz")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ArgumentError, match=r"p\.npz: cannot be read as draws"):
        nw.load_posterior(path)
    with pytest.raises(ArgumentError, match="cannot be read as draws"):
        GraphicalPosterior.load(tmp_path / "missing.npz")
