"""Accounting without being asked: every release of the command line is counted somewhere."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import noisewise as nw
from noisewise.privacy.ledger import open_ledger, source_ledger
from noisewise.privacy.ledger.default_ledger import FILE_NAME

Run = Callable[..., Any]
COUNT = ("--column", "owns", "--family", "bernoulli")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder."""
    monkeypatch.setenv("NOISEWISE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "People.csv"
    path.parent.mkdir()
    pd.DataFrame({"owns": [0, 1, 1], "who": ["a", "a", "b"]}).to_csv(path, index=False)
    return path


@pytest.fixture
def release(noisewise: Run, tmp_path: Path) -> Run:
    """Release the share of owners, each time to a file of its own."""
    made: list[Path] = []

    def call(source: object, *more: object, epsilon: float = 0.5) -> Any:
        made.append(tmp_path / f"{len(made)}.json")
        words = (*COUNT, "--epsilon", epsilon, "--out", made[-1], *more)
        return noisewise("release", "exponential-family", source, *words)

    return call


def spent(ledger: Path) -> dict[str, float]:
    with open_ledger(ledger) as book:
        assert book.audit() == ()
        return {account.dataset: account.spent for account in book.accounts()}


def test_spends_add_up_beside_the_data(release: Run, people: Path, home: Path) -> None:
    first, second = release(people), release(people, epsilon=0.25)
    ledger = people.parent / FILE_NAME
    assert first.out.endswith(
        f"Counted on dataset 'people.csv' of {ledger}: epsilon 0.5 so far, no cap.\n"
    )
    assert "epsilon 0.75 so far, no cap" in second.out
    assert spent(ledger) == {"people.csv": 0.75}
    assert not home.exists()


def test_a_link_and_another_spelling_of_the_path_are_the_same_data(
    release: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(people)
    monkeypatch.chdir(people.parent)
    for spelling in (people, link, "People.csv", "../data/./People.csv"):
        assert release(spelling).code == 0
    assert spent(people.parent / FILE_NAME) == {"people.csv": 2.0}


def test_a_folder_or_a_pattern_of_one_file_is_that_file(release: Run, people: Path) -> None:
    for source in (people, people.parent, *(people.parent / p for p in ("[P]eople.csv", "**/P*"))):
        assert release(source).code == 0
    assert spent(people.parent / FILE_NAME) == {"people.csv": 2.0}


def test_folders_and_patterns_of_several_files_have_accounts_of_their_own(
    release: Run, people: Path, tmp_path: Path
) -> None:
    people.with_name("more.csv").write_bytes(people.read_bytes())
    for source in (people.parent, people.parent / "*.csv"):
        assert release(source).code == 0
    assert spent(tmp_path / FILE_NAME) == {"data": 0.5}
    assert spent(people.parent / FILE_NAME) == {"*.csv": 0.5}


@pytest.mark.parametrize("capped", ["data/People.csv", "data", "data/*.csv", "data/**/*e.csv"])
def test_no_other_spelling_gets_around_a_cap(
    noisewise: Run, release: Run, people: Path, tmp_path: Path, capped: str
) -> None:
    people.with_name("more.csv").write_bytes(people.read_bytes())
    folder, _, name = capped.partition("/")
    ledger = people.parent / FILE_NAME if name else tmp_path / FILE_NAME
    noisewise("ledger", "set", ledger, "--dataset", name or folder, "--epsilon", 0.5)
    several = [tmp_path / s for s in ("data", "data/*.csv", "data/[Pm]*", "*/*.csv")]
    for source in several:
        if source != tmp_path / capped:
            refused = release(source)
            assert refused.code == 1
            assert "has records of dataset" in refused.err
            assert "Say which account pays, with --ledger and --dataset" in refused.err
    own = tmp_path / capped
    assert sum(release(own).code for _ in range(2)) == 1  # the second finds nothing left
    assert spent(ledger) == {(name or folder).casefold(): 0.5}


def test_a_table_has_one_account_however_its_url_is_written(
    monkeypatch: pytest.MonkeyPatch, people: Path
) -> None:
    def name(url: str) -> str:
        return source_ledger(url).dataset

    same = ["postgres://me@h/db#t", "postgresql://h:5432/db#public.t", "postgresql:///db?host=H#t"]
    same += ["postgresql://h:5432/?dbname=db&sslmode=require#t", "postgresql://db:pw@h?port=5432#t"]
    assert {name(url) for url in same} == {"postgresql://h/db#t"}
    other = ["postgresql:///db?host=h1#t", "postgresql:///db?host=h2#t", "postgresql://h/db#s.t"]
    other += ["postgresql://h:5433/db#t", "postgresql://h,g:1/db#t", "postgresql:///?service=a#t"]
    assert len({name(url) for url in (*same, *other)}) == 1 + len(other)
    monkeypatch.setenv("PGHOST", "h")
    assert name("postgresql:///db#t") == name(same[0])
    duck = f"duckdb://{people.parent}/a.db#"
    assert name(f"{duck}main.t") == name(f"{duck}t") == "a.db#t"


def test_unlike_promises_are_counted_apart(noisewise: Run, release: Run, people: Path) -> None:
    release(people)
    ended = release(people, "--neighbours", "add-remove")
    assert "'people.csv (add-remove)'" in ended.out
    apart = "apart from that, epsilon 0.5 in 'people.csv'"
    total = "together at most epsilon 1.5 under replace-one neighbours"
    assert ended.out.endswith(f"{apart}; {total}.\n")
    gaussian = ("--mechanism", "gaussian", "--delta", "1e-6")
    third = release(people, *gaussian).out
    assert "rho" in third
    assert third.endswith("'people.csv (add-remove)', which do not add up with it.\n")
    counted = spent(people.parent / FILE_NAME)
    assert set(counted) == {"people.csv", "people.csv (add-remove)", "people.csv (rho)"}
    assert counted["people.csv"] == 0.5
    assert "…" not in noisewise("ledger", "show", people.parent / FILE_NAME).out


def test_people_are_counted_apart_from_records(
    noisewise: Run, release: Run, people: Path, tmp_path: Path
) -> None:
    release(people)
    words = ("--clique", "owns", "--levels", "owns=0,1", "--unit", "who", "--epsilon", 1)
    ended = noisewise("release", "graphical-model", people, *words, "--out", tmp_path / "g.json")
    assert "epsilon 0.5 in 'people.csv'" in ended.out
    assert spent(people.parent / FILE_NAME) == {"people.csv": 0.5, "people.csv (unit who)": 1.0}


def test_units_that_differ_in_case_are_counted_apart(
    noisewise: Run, people: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(people)
    rows.assign(WHO=rows["who"], **{"x" * 199: rows["who"]}).to_csv(people, index=False)
    words = ("--clique", "owns", "--levels", "owns=0,1", "--epsilon", 1, "--out")
    for unit in ("who", "WHO", "x" * 199):
        out = tmp_path / f"{unit[:5]}.json"
        ended = noisewise("release", "graphical-model", people, "--unit", unit, *words, out)
        assert (ended.code, ended.err) == (0, "")
    assert list(spent(people.parent / FILE_NAME).values()) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("ledger", [(), ("--no-ledger",)])
def test_a_group_column_with_a_long_name(
    release: Run, people: Path, ledger: tuple[str, ...], tmp_path: Path
) -> None:
    group = "g" * 190
    pd.read_csv(people).assign(**{group: ["a", "a", "b"]}).to_csv(people, index=False)
    ended = release(people, "--groups", f"{group}=a,b", "--sizes", "public", *ledger)
    assert (ended.code, ended.err) == (0, "")
    if not ledger:
        book = people.parent / FILE_NAME
        with open_ledger(book) as opened:
            assert opened.audit([nw.Release.load(tmp_path / "0.json")]) == ()


def test_a_cap_that_was_set_is_kept(noisewise: Run, release: Run, people: Path) -> None:
    release(people)
    ledger = people.parent / FILE_NAME
    shown = noisewise("ledger", "show", ledger).out
    assert "no cap" in shown
    (account,) = json.loads(noisewise("ledger", "show", ledger, "--json").out)["accounts"]
    assert (account["budget"], account["remaining"], account["spent"]) == (None, None, 0.5)
    assert noisewise("ledger", "set", ledger, "--dataset", "People.csv", "--epsilon", 1).code == 0
    history = noisewise("ledger", "show", ledger, "--dataset", "people.csv").out
    assert "exponential-family" in history
    assert "…" not in history
    with open_ledger(ledger) as book:
        assert book.entries()[0].created[:19].replace("T", " ") in history
    assert "no cap → 1" in " ".join(history.split())
    assert "epsilon 0 of 1 is left" in release(people).out
    refused = release(people)
    assert refused.code == 1
    assert "0 remains" in refused.err
    other = release(people, "--neighbours", "add-remove")
    assert other.code == 1
    assert "do not add up" in other.err
    assert spent(ledger) == {"people.csv": 1.0}


def test_only_a_word_turns_it_off(release: Run, people: Path, tmp_path: Path) -> None:
    ended = release(people, "--no-ledger")
    assert (ended.code, ended.err) == (0, "")
    assert "Counted" not in ended.out
    assert nw.Release.load(tmp_path / "0.json").receipt is None
    assert not (people.parent / FILE_NAME).exists()
    both = release(people, "--no-ledger", "--ledger", tmp_path / "ledger.db")
    assert both.err == "error: --no-ledger: contradicts --ledger; give one of them\n"


def test_a_release_that_is_refused_leaves_no_ledger(release: Run, people: Path, home: Path) -> None:
    assert release(people, epsilon=-1).code == 1
    assert release(people.parent / "nowhere.csv").code == 1
    assert list(people.parent.iterdir()) == [people]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(release: Run, people: Path, home: Path) -> None:
    people.parent.chmod(0o500)
    try:
        ended = release(people)
    finally:
        people.parent.chmod(0o700)
    assert ended.code == 0
    assert "cannot be written" in ended.out
    assert spent(home / "ledger.db") == {str(people).casefold(): 0.5}


def test_a_ledger_that_is_not_ours_to_write_is_not_passed_by(
    release: Run, people: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert release(people).code == 0
    ledger = people.parent / FILE_NAME
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != ledger and may(path, mode))
    refused = release(people)
    assert refused.code == 1
    assert repr(str(ledger)) in refused.err
    assert refused.err.endswith("name a ledger with --ledger\n")
    assert not home.exists()


def test_where_it_is_counted(
    people: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://me:secret@db.example.org:5433/Census?sslmode=require#public.People"
    found = source_ledger(url)
    assert found.path == home / "ledger.db"
    assert found.dataset == "postgresql://db.example.org:5433/census#people"
    duck = source_ledger(f"duckdb://{people.parent}/a.db#people")
    assert (duck.path, duck.dataset) == (people.parent / FILE_NAME, "a.db#people")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        aside = source_ledger(str(people))
    assert aside.path == home / "ledger.db"
    assert "cannot be written" in aside.aside
    monkeypatch.delenv("NOISEWISE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert source_ledger(url).path == tmp_path / "xdg" / "noisewise" / "ledger.db"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert source_ledger(url).path == tmp_path / ".local/share/noisewise/ledger.db"
    names = {source_ledger(str(people.parent / f"{'x' * 190}{i}.csv")).dataset for i in range(9)}
    assert len(names) == 9
    assert max(map(len, names)) <= 200


def test_a_file_name_that_no_account_could_have(release: Run, people: Path) -> None:
    for name in ("данные people.csv", "a\u200bb.csv", "tab\tname.csv"):
        odd = people.with_name(name)
        odd.write_bytes(people.read_bytes())
        ended = release(odd)
        assert (ended.code, ended.err) == (0, "")
    assert set(spent(people.parent / FILE_NAME).values()) == {0.5}


# -- large and small epsilon ---------------------------------------------------------------------


def test_a_large_epsilon_has_to_be_meant(release: Run, people: Path) -> None:
    refused = release(people, epsilon=101)
    assert refused.code == 1
    assert refused.err.startswith("error: --epsilon: 101 is above 100 and protects nobody")
    assert refused.err.endswith("say --large-epsilon\n")
    assert not (people.parent / FILE_NAME).exists()
    assert release(people, "--large-epsilon", epsilon=101).code == 0
    assert "99.9994 % sure (odds of 162,755 to 1)" in release(people, epsilon=12).out


def test_python_warns_of_a_large_epsilon_and_goes_on() -> None:
    people = pd.DataFrame({"owns": [0, 1, 1]})
    words: dict[str, Any] = {"column": "owns", "family": "bernoulli"}
    with pytest.warns(UserWarning, match=r"1000 is above 100.*large_epsilon=True"):
        nw.release.exponential_family(people, **words, epsilon=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nw.release.exponential_family(people, **words, epsilon=1000, large_epsilon=True)
        nw.release.exponential_family(people, **words, epsilon=100)
        nw.release.exponential_family(nw.release.Blank(9), **words, epsilon=1000)


def test_a_small_epsilon_gets_a_word_before_it_is_spent(release: Run, people: Path) -> None:
    ended = release(people, epsilon=0.01)
    assert ended.err.startswith("warning: --epsilon: 0.01 is so small that the noise is more than")
    assert release(people, "--neighbours", "add-remove", epsilon=0.01).err == ""  # n is a secret


def test_a_delta_above_one_over_n_gets_a_word(release: Run, people: Path) -> None:
    pd.DataFrame({"owns": [0, 1] * 1000}).to_csv(people, index=False)
    noise = ("--mechanism", "gaussian", "--delta")
    ended = release(people, *noise, 0.0006)
    assert ended.err.startswith("warning: --delta: 0.0006 is above one over the 2000 records")
    assert release(people, *noise, 0.0005).err == ""
    assert release(people, *noise, 0.0006, "--neighbours", "add-remove").err == ""  # n is a secret


def test_what_goes_together_is_said_with_dashes(release: Run, people: Path) -> None:
    assert "--max-records: goes with --unit, the column" in release(people, "--max-records", 2).err
    assert "--sizes: goes with --groups; without" in release(people, "--sizes", "public").err


def test_the_ledger_is_shown_without_its_path(
    release: Run, noisewise: Run, people: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(people.parent)
    nothing = noisewise("ledger", "show")
    beside = people.parent / FILE_NAME
    assert (nothing.code, nothing.err) == (
        1, f"error: there is no ledger in {beside} or {home / 'ledger.db'}; name one\n"
    )  # fmt: skip
    home.mkdir()
    with open_ledger(home / "ledger.db", create=True) as book:
        book.set_budget("elsewhere", epsilon=1.0)
    assert "elsewhere" in noisewise("ledger", "show").out
    release(people)
    shown = noisewise("ledger", "show", "--json")
    assert shown.err == f"The ledger in {beside}:\n"
    assert [account["dataset"] for account in json.loads(shown.out)["accounts"]] == ["people.csv"]
