"""``noisewise ledger``: what a person sees, and what a script reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from noisewise.artifact import (
    ArgumentError,
    Block,
    BudgetError,
    Guarantee,
    Noise,
    Population,
    Receipt,
    Release,
    SourceError,
    Tables,
)
from noisewise.cli.ledger import app
from noisewise.privacy.ledger import cost_of, open_ledger


@pytest.fixture
def book(tmp_path: Path) -> str:
    path = str(tmp_path / "ledger.db")
    call("set", path, "--dataset", "people", "--epsilon", "1", "--neighbours", "replace-one")
    return path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False, env={"COLUMNS": "160"})


def read(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json").stdout)


def a_release(path: Path, ledger: str | None, epsilon: float = 0.25) -> Path:
    """A small release file, paid for where a ledger is given."""
    guarantee = Guarantee(epsilon=epsilon, neighbours="replace-one")
    receipt: Receipt | None = None
    if ledger:
        with open_ledger(ledger) as opened:
            receipt = opened.spend(None, cost_of(guarantee), f"release {path.name}")
    table = Block(
        Tables((("a",),), {"a": ("yes", "no")}),
        Noise("laplace", scale=2 / epsilon, sensitivity=2.0, cost=epsilon),
        np.array([[3], [4]]),
    )
    return Release(
        family="graphical-model",
        model={},
        guarantee=guarantee,
        population=Population("public", (7,)),
        blocks=(table,),
        receipt=receipt,
    ).save(path)


def test_set_then_show(book: str) -> None:
    shown = call("show", book)
    assert shown.exit_code == 0
    for word in ("people", "epsilon", "replace-one", "remaining"):
        assert word in shown.stdout
    (account,) = read("show", book)["accounts"]
    assert account == {
        "dataset": "people",
        "accounting": "pure",
        "budget": 1.0,
        "spent": 0.0,
        "remaining": 1.0,
        "neighbours": "replace-one",
        "unit": None,
        "entries": 1,
    }


def test_show_one_dataset_with_its_history(book: str, tmp_path: Path) -> None:
    a_release(tmp_path / "r.json", book)
    call("set", book, "--dataset", "people", "--epsilon", "2")
    shown = call("show", book, "--dataset", "people").stdout
    for word in ("release r.json", "0.25", "1 → 2"):
        assert word in shown
    entries = read("show", book, "--dataset", "people")["entries"]
    assert [(e["kind"], e["amount"], e["former"]) for e in entries] == [
        ("budget", 1.0, None),
        ("spend", 0.25, None),
        ("budget", 2.0, 1.0),
    ]
    with pytest.raises(BudgetError, match="'people'"):
        call("show", book, "--dataset", "pepole")


def test_a_note_names_the_spend_by_its_number(book: str, tmp_path: Path) -> None:
    release = Release.load(a_release(tmp_path / "r.json", book))
    assert release.receipt is not None
    with open_ledger(book) as opened:
        assert opened.note_lost(release.receipt.entry, "KeyboardInterrupt")
    shown = call("show", book, "--dataset", "people").stdout
    assert "no release came of the spend no. 2: KeyboardInterrupt" in shown


def test_a_new_account_is_said_to_be_new(book: str) -> None:
    opened = call("set", book, "--dataset", "pepole", "--epsilon", "1").stdout
    assert opened.endswith("Opened a new account 'pepole'; the others are 'people'.\n")
    assert "new account" not in call("set", book, "--dataset", "people", "--epsilon", "2").stdout
    assert "it is the only one" in call("set", f"{book}2", "--dataset", "a", "--rho", "1").stdout


def test_markup_in_a_name_is_shown_as_it_is(book: str) -> None:
    call("set", book, "--dataset", "[red]people[/red]", "--rho", "0.5")
    assert "[red]people[/red]" in call("show", book).stdout


def test_a_mistake_in_set_leaves_no_ledger_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    with pytest.raises(ArgumentError, match="exactly one"):
        call("set", path, "--dataset", "people")
    with pytest.raises(ArgumentError, match="replace-one, add-remove"):
        call("set", path, "--dataset", "people", "--rho", "1", "--neighbours", "replace_one")
    with pytest.raises(SourceError, match="noisewise ledger set"):
        call("show", path)


def test_a_sound_ledger_and_its_releases(book: str, tmp_path: Path) -> None:
    first, second = (a_release(tmp_path / f"{i}.json", book) for i in range(2))
    copy = tmp_path / "copy.json"
    copy.write_bytes(first.read_bytes())
    sound = call("audit", book, str(first), str(second), str(copy))
    assert sound.exit_code == 0
    assert "2 release(s) paid for" in sound.stdout
    assert read("audit", book, str(first))["sound"] is True


def test_an_unpaid_release_is_found(book: str, tmp_path: Path) -> None:
    unpaid = str(a_release(tmp_path / "unpaid.json", ledger=None))
    result = call("audit", book, unpaid)
    assert result.exit_code == 1
    assert "no ledger paid for this release" in result.stdout


def test_a_release_that_costs_more_than_was_paid_is_found_by_file(
    book: str, tmp_path: Path
) -> None:
    cheap = Release.load(a_release(tmp_path / "cheap.json", book)).receipt
    dear = Release.load(a_release(tmp_path / "dear.json", ledger=None, epsilon=0.5))
    doctored = replace(dear, receipt=cheap).save(tmp_path / "doctored.json")
    result = call("audit", book, str(doctored))
    assert result.exit_code == 1
    assert "paid for epsilon 0.25, the release costs epsilon 0.5" in result.stdout
    (finding,) = read("audit", book, str(doctored))["findings"]
    assert cheap is not None
    assert (finding["entry"], finding["files"]) == (cheap.entry, [str(doctored)])


def test_the_unit_is_set_and_shown(book: str) -> None:
    call("set", book, "--dataset", "visits", "--epsilon", "1", "--unit", "user")
    assert "user" in call("show", book, "--dataset", "visits").stdout
    units = {a["dataset"]: a["unit"] for a in read("show", book)["accounts"]}
    assert units == {"people": None, "visits": "user"}
    (entry,) = read("show", book, "--dataset", "visits")["entries"]
    assert entry["unit"] == "user"
