"""Accounts, entries and costs of a ledger, in exact whole numbers of 10⁻¹²; names of accounts.

A budget is a promise, so its arithmetic must not drift. Every amount is read as the decimal number
a person would write (the shortest one that names the float: ``0.1`` is one tenth) and kept as a
whole number of 10⁻¹². A spend is rounded up and a budget down: ten spends of 0.1 fit exactly into
1.0, and rounding can waste budget but never overdraw it.

Two currencies. A *pure* account adds up ε (basic composition). A *zCDP* account adds up ρ, and
takes a pure ε-release as ρ = ε²/2 (M. Bun and T. Steinke, "Concentrated Differential Privacy",
TCC 2016, Proposition 1.4).

A budget that can be had twice under names that a person takes for one is no budget. So a name is
brought to one form before it is looked up or kept: Unicode's NFKC form, case folded, blanks and
dashes made alike, digits of every script written 0 to 9. What no form can settle is refused:
characters that nobody sees, letters of several scripts in one name, and letters that pass for
others. The look-alikes are those of Latin among Cyrillic, Greek, Armenian and phonetic letters: the
common ones of Unicode's confusables (UTS 39), not all of them.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from noisewise.artifact import ArgumentError, Guarantee

Accounting = Literal["pure", "zcdp"]
"""The currency of an account or a cost."""
Kind = Literal["budget", "spend"]
"""What an entry of a history records."""

UNITS_PER_ONE = 10**12
"""Units in an epsilon or rho of 1 (chosen: finer than any budget, and 64 bits reach 9 million)."""
MAX_UNITS = 2**63 - 1
"""The largest amount: both databases keep 64-bit integers. As a budget it stands for "no cap"."""
NO_CAP = "none"
"""What an entry says was asked for where an account has no cap."""
NO_RELEASE = "no release came of the spend "
"""How the entry begins that says a spend was for nothing; the spend's own name follows."""
MAX_NAME_LENGTH = 200
"""Characters of a name of a dataset, a relation or a unit (chosen)."""
HASH_LENGTH = 12
"""Hexadecimal digits of a hash in a name (chosen: 48 bits, for a handful of names)."""
PARAMETER = {"pure": "epsilon", "zcdp": "rho"}
"""What the amounts of each currency are called."""

RECORD = "record"
"""The privacy unit where each record is protected by itself."""
COLUMN = "column:"
"""Goes before the name of a column that would read like something else, such as "record"."""


def unit_word(column: str | None) -> str:
    """Return a privacy unit as one word: "record", or the column that says whose a record is."""
    if column is None:
        return RECORD
    return COLUMN + column if column == RECORD or column.startswith(COLUMN) else column


def exact(value: object, name: str) -> Fraction:
    """Return the decimal number a float stands for; refuse all but positive, finite numbers."""
    # A numpy float prints its type in its repr, hence float() first.
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(f"{name}={value!r}: expected a positive, finite number")
    return Fraction(repr(number))


def spend_units(amount: Fraction, name: str) -> int:
    """Return an amount to be taken away, rounded up to whole units."""
    return _within_64_bits(math.ceil(amount * UNITS_PER_ONE), name)


def budget_units(amount: Fraction, name: str) -> int:
    """Return an amount to be made available, rounded down to whole units."""
    units = _within_64_bits(math.floor(amount * UNITS_PER_ONE), name)
    if units < 1:
        raise ArgumentError(f"{name}={float(amount)!r}: a budget is at least 1e-12")
    return units


def _within_64_bits(units: int, name: str) -> int:
    if units >= MAX_UNITS:
        raise ArgumentError(
            f"{name} is too large: amounts are kept in 64 bits, up to {decimal(MAX_UNITS - 1)}"
        )
    return units


def decimal(units: int) -> str:
    """Return units as a decimal number, exactly: ``100000000000`` is ``0.1``."""
    whole, rest = divmod(units, UNITS_PER_ONE)
    return f"{whole}.{rest:012d}".rstrip("0").rstrip(".")


def budget_words(units: int) -> str:
    """Return a budget as a decimal number, or "no cap"."""
    return decimal(units) if units < MAX_UNITS else "no cap"


def printable(value: object, name: str) -> str:
    """Return a name that every store, terminal and JSON file can carry, or refuse it."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_LENGTH:
        raise ArgumentError(
            f"{name}={value!r}: expected a text of 1 to {MAX_NAME_LENGTH} characters"
        )
    if not value.isprintable():
        raise ArgumentError(f"{name}={value!r}: expected printable characters only")
    return value


def fitting(text: str) -> str:
    """Return a text that a ledger can keep: one too long, or not printable, ends in its hash."""
    if text.isprintable() and len(text) <= MAX_NAME_LENGTH:
        return text
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return f"{plain[: MAX_NAME_LENGTH - HASH_LENGTH - 1]} {hash_mark(text)}"


def hash_mark(text: str) -> str:
    """Return a short hash that tells a text from others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


@dataclass(frozen=True)
class Cost:
    """What a release costs: ε if ``accounting`` is "pure", ρ if it is "zcdp".

    ``neighbours`` names the relation the guarantee holds under. The ledger does not interpret it;
    it only insists that all spends of one account agree. So it does with ``unit``: what one person
    is taken to be, a record or all records with one value of a column (:func:`unit_word`).
    """

    accounting: Accounting
    amount: float
    neighbours: str
    unit: str = RECORD

    def __post_init__(self) -> None:
        if self.accounting not in get_args(Accounting):
            raise ArgumentError(f'accounting={self.accounting!r}: expected "pure" or "zcdp"')
        exact(self.amount, PARAMETER[self.accounting])
        printable(self.neighbours, "neighbours")
        printable(self.unit, "unit")

    @property
    def asked(self) -> str:
        """Return the amount as written into the ledger, the shortest text that names the float."""
        return repr(float(self.amount))

    def __str__(self) -> str:
        return f"{PARAMETER[self.accounting]} {self.asked}"


def cost_of(guarantee: Guarantee, unit: str | None = None) -> Cost:
    """Return the cost of a whole release, from the guarantee in its file.

    ``unit`` is the column that says whose a record is, where the release protects people. A column
    whose name is too long for a ledger is told from others by a hash.
    """
    amount = guarantee.epsilon if guarantee.rho is None else guarantee.rho
    relation, person = fitting(guarantee.relation), fitting(unit_word(unit))
    return Cost(guarantee.accounting, amount, relation, person)


@dataclass(frozen=True)
class Account:
    """One dataset's budget and what is left of it.

    Fields are the stored columns, amounts in whole units; the properties speak ε or ρ. ``entries``
    counts the history (budget changes and spends) and ``head`` is the digest of its last entry.
    ``unit`` is None until it is set or the first spend decides; with spends, it is None only in an
    account that version 0.1 wrote. An account without a cap has an infinite budget.
    """

    dataset: str
    accounting: Accounting
    neighbours: str | None
    budget_units: int
    spent_units: int
    entries: int
    head: str
    unit: str | None = None

    @property
    def parameter(self) -> str:
        """Return "epsilon" or "rho": what the amounts of this account mean."""
        return PARAMETER[self.accounting]

    @property
    def capped(self) -> bool:
        """Return whether a budget was set; else spends are only counted."""
        return self.budget_units < MAX_UNITS

    @property
    def budget(self) -> float:
        """Return all that may ever be spent; infinity without a cap."""
        return self.budget_units / UNITS_PER_ONE if self.capped else math.inf

    @property
    def spent(self) -> float:
        """Return what is spent so far."""
        return self.spent_units / UNITS_PER_ONE

    @property
    def remaining_units(self) -> int:
        """Return what may still be spent, in whole units."""
        return self.budget_units - self.spent_units

    @property
    def remaining(self) -> float:
        """Return what may still be spent; infinity without a cap."""
        return self.remaining_units / UNITS_PER_ONE if self.capped else math.inf


@dataclass(frozen=True)
class Entry:
    """One line of an account's history: a spend, or a budget set or changed.

    ``asked`` and ``accounting`` keep the request as it was made; ``units`` is the spend in the
    account's own currency, or the new budget, whose predecessor is ``former_units``. ``unit`` is
    None for spends that version 0.1 recorded.
    """

    entry: str
    dataset: str
    number: int
    kind: Kind
    accounting: Accounting
    asked: str
    units: int
    former_units: int | None
    neighbours: str | None
    description: str
    created: str
    previous: str
    digest: str
    unit: str | None = None

    @property
    def amount(self) -> float:
        """Return the spend, or the new budget, in the account's own ε or ρ."""
        return self.units / UNITS_PER_ONE

    @property
    def former(self) -> float | None:
        """Return the budget before this change; None for spends and for the first budget."""
        return None if self.former_units is None else self.former_units / UNITS_PER_ONE

    def columns(self) -> tuple[str | int | None, ...]:
        """Return all that the digest covers; the unit where there is one, as of version 0.2."""
        covered = {name: value for name, value in vars(self).items() if name != "digest"}
        unit = covered.pop("unit")
        return (*covered.values(), *(() if unit is None else (unit,)))


@dataclass(frozen=True)
class Finding:
    """Something an audit found wrong.

    ``dataset`` is None if it concerns no account here, ``entry`` names the spend of a release.
    """

    dataset: str | None
    problem: str
    entry: str | None = None

    def __str__(self) -> str:
        return self.problem if self.dataset is None else f"{self.dataset}: {self.problem}"


LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝѵӏүҽ" + "αονρικυχωηϲϳ" + "օոսհցքյ" + "ɑɡɩɪǀᴀʙᴄᴅᴇɢʜᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ",
    "aeopcyxijsdhqwvlye" + "aovpikuxwncj" + "onuhgpj" + "agiilabcdeghjklmnoprtuvwyz",
)
"""Letters, case folded, that pass for a Latin one (from UTS 39's list of confusables)."""

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800") | {
    chr(c) for c in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Characters that are printable in Python's sense, and empty on a screen."""

ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"})
"""Scripts whose accents Unicode has in one character with the letter."""

EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"})
"""Scripts that are written together in Chinese, Japanese and Korean; they count as one."""


def account_name(given: object) -> str:
    """Return the one form of an account's name, or refuse a name that passes for another.

    Raises:
        ArgumentError: no text, too long, characters nobody sees, several scripts, look-alikes.
    """
    name = printable(one_form(given) if isinstance(given, str) else given, "dataset")
    letters = [c for c in name if c.isalpha()]
    scripts = {_script(c) for c in letters}
    # NFKC has joined a letter and its usual marks: what is left of them is none of the alphabet's.
    loose = scripts <= ALPHABETS and any(unicodedata.combining(c) for c in name)
    if loose or any(c in INVISIBLE for c in name):
        raise ArgumentError(f"dataset={name!a}: has marks or characters that can hardly be seen")
    if len(scripts) > 1:
        listed = " and ".join(sorted(s.capitalize() for s in scripts))
        raise ArgumentError(
            f"dataset={name!a}: mixes letters of {listed}, which may look alike; write it in one "
            "script"
        )
    passing = [c for c in letters if ord(c) in LOOK_ALIKES]
    if passing and (scripts == {"LATIN"} or len(passing) == len(letters)):
        raise ArgumentError(
            f"dataset={name!a}: {passing[0]!a} looks like {passing[0].translate(LOOK_ALIKES)!r}; "
            "choose a name that cannot be taken for another"
        )
    return name


def one_form(name: str) -> str:
    """Return a name in NFKC, case folded, with single blanks, plain dashes and digits 0 to 9."""
    # Folding can undo NFKC, and NFKC folding, for a few letters: twice is enough (UAX 31).
    folded = unicodedata.normalize("NFKC", name).casefold()
    folded = unicodedata.normalize("NFKC", folded).casefold()
    # Turkish has i with a dot and without, in both cases; folding knows only the one of English.
    folded = folded.replace("i\u0307", "i").replace("ı", "i")
    words = "".join(map(_plain, folded)).split(" ")
    return " ".join(word for word in words if word)


def likeness(name: str) -> str:
    """Return what a name looks like: equal for two names that a person may take for one."""
    return " ".join(one_form(name).translate(LOOK_ALIKES).split())


def _plain(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    return "-" if category == "Pd" or character == "−" else character


def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    word = unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
    return "CJK" if word in EAST_ASIAN else word
