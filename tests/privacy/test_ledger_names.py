"""One name, one account: blanks, case and look-alike letters make no second budget (finding 11)."""

from __future__ import annotations

import sqlite3
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisewise.artifact import ArgumentError, BudgetError
from noisewise.privacy.ledger import Cost, Ledger, open_ledger
from noisewise.privacy.ledger.accounts import LOOK_ALIKES, account_name, likeness, one_form
from noisewise.privacy.ledger.hash_chain import sealed
from noisewise.privacy.ledger.spending_rules import opened

TENTH = Cost("pure", 0.1, "replace-one")
SPELLINGS = [
    "people 2020",
    "People 2020",
    "  people 2020 ",
    "people  2020",
    "PEOPLE\u00a02020",
    "ｐｅｏｐｌｅ 2020",
    "people ２０２０",
    "people ٢٠٢٠",
]
REFUSED = {
    "Cyrillic e": ("p\u0435ople", "Cyrillic and Latin"),
    "Greek omicron": ("pe\u03bfple", "Greek and Latin"),
    "all Cyrillic": ("\u0441\u043e\u0440", "looks like 'c'"),
    "all Greek": ("\u03bf\u03bf", "looks like 'o'"),
    "phonetic a": ("d\u0251ta", "looks like 'a'"),
    "direction": ("people\u202e", "printable"),
    "zero width": ("peo\u200bple", "printable"),
    "control": ("peo\x07ple", "printable"),
    "variation selector": ("people\ufe0f", "hardly be seen"),
    "loose mark": ("people\u0335", "hardly be seen"),
    "Hangul filler": ("people\u3164", "hardly be seen"),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "ledger.db", create=True)


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_one_name_are_one_account(ledger: Ledger, name: str) -> None:
    ledger.set_budget(name, epsilon=0.2)
    for again in (SPELLINGS[0], SPELLINGS[2]):
        assert ledger.spend(again, TENTH, "a release").dataset == "people 2020"
    for again in SPELLINGS:
        with pytest.raises(BudgetError, match="0 remains"):
            ledger.spend(again, TENTH, "too much")
        ledger.set_budget(again, epsilon=0.2)
    assert [account.dataset for account in ledger.accounts()] == ["people 2020"]
    assert ledger.audit() == ()


@pytest.mark.parametrize(("name", "why"), REFUSED.values(), ids=REFUSED)
def test_names_that_pass_for_others_are_refused(ledger: Ledger, name: str, why: str) -> None:
    with pytest.raises(ArgumentError, match=why) as caught:
        ledger.set_budget(name, epsilon=1.0)
    assert str(caught.value).isprintable()
    assert ledger.accounts() == ()


@pytest.mark.parametrize(
    "name",
    [
        "données",
        "Ελλάδα",
        "люди 2020",
        "人々のデータ",
        "हिन्दी",
        "ไทยแลนด์",
        "İstanbul",
        "a–b",
        "ä [red]%s?",
    ],
)
def test_honest_names_of_many_languages_are_kept(ledger: Ledger, name: str) -> None:
    ledger.set_budget(name, epsilon=1.0)
    ledger.spend(name, TENTH, "a release")
    assert ledger.accounts()[0].dataset == account_name(name)


@given(st.text(max_size=30))
def test_a_form_is_its_own_form(name: str) -> None:
    assert one_form(one_form(name)) == one_form(name)
    assert likeness(one_form(name)) == likeness(name)
    try:
        kept = account_name(name)
    except ArgumentError:
        return
    assert kept == account_name(kept) == account_name(f" {kept.upper()} ").casefold() or (
        one_form(kept.upper()) != kept  # a few letters have no way back from upper case
    )


def test_the_look_alikes_are_folded_letters_of_other_alphabets() -> None:
    for letter, latin in LOOK_ALIKES.items():
        assert chr(letter).casefold() == chr(letter)
        assert chr(letter).isalpha()
        assert unicodedata.name(chr(latin)).startswith("LATIN SMALL LETTER")
        assert latin < 128


# -- ledgers of version 0.1 --------------------------------------------------------------------


def old_accounts(path: Path, *names: str) -> None:
    """A ledger in which version 0.1 opened accounts of these very names, with a budget of 1."""
    with open_ledger(path, create=True) as ledger:
        home = ledger.id
    database = sqlite3.connect(path)
    for name in names:
        account = opened(home, name, "pure", 1.0, None)
        entry = sealed(
            entry=f"e-{name}", dataset=name, number=1, kind="budget", accounting="pure",
            asked="1.0", units=10**12, former_units=None, neighbours=None,
            description="budget set", created="2025-01-01", previous=home, unit=None,
        )  # fmt: skip
        row = (*vars(account).values(),)
        database.execute(f"INSERT INTO noisewise_account VALUES ({','.join('?' * 8)})", row)
        database.execute("UPDATE noisewise_account SET entries = 1, head = ? WHERE dataset = ?",
                         (entry.digest, name))  # fmt: skip
        columns = vars(entry)
        database.execute(
            f"INSERT INTO noisewise_entry ({','.join(columns)}) "
            f"VALUES ({','.join('?' * len(columns))})",
            (*columns.values(),),
        )
    database.commit()
    database.close()


@pytest.mark.parametrize("name", ["People", " people", "pe\u03bfple"])
def test_an_old_name_goes_on_however_it_is_typed(name: str, tmp_path: Path) -> None:
    old_accounts(tmp_path / "ledger.db", name)
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spend("people", TENTH, "a release").dataset == name
        ledger.spend(name, TENTH, "a release")
        ledger.set_budget("PEOPLE", epsilon=2.0)
        (account,) = ledger.accounts()
        assert (account.dataset, account.budget, account.spent) == (name, 2.0, 0.2)
        assert ledger.audit() == ()


def test_old_twins_are_read_and_spend_once_one_is_closed(tmp_path: Path) -> None:
    old_accounts(tmp_path / "ledger.db", "people", "People ")
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert len(ledger.accounts()) == 2
        assert ledger.audit() == ()
        for name in ("people", "People ", "PEOPLE"):
            with pytest.raises(BudgetError, match=r"are one name.*close the other.*ledger set"):
                ledger.spend(name, TENTH, "a release")
        ledger.set_budget("People ", epsilon=1e-12)
        assert ledger.spend("people", TENTH, "a release").dataset == "people"
        with pytest.raises(BudgetError, match="are one name"):
            ledger.spend("People ", Cost("pure", 1e-12, "replace-one"), "the closed one")
        assert ledger.audit() == ()
