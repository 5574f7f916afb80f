"""Names of accounts: one name, one account, however it is typed.

A budget that can be had twice under names that a person takes for one is no budget. So a name is
brought to one form before it is looked up or kept: Unicode's NFKC form, case folded, blanks and
dashes made alike, digits of every script written 0 to 9. What no form can settle is refused:
characters that nobody sees, letters of several scripts in one name, and letters that pass for
others. The look-alikes are those of Latin among Cyrillic, Greek, Armenian and phonetic letters: the
common ones of Unicode's confusables (UTS 39), not all of them.
"""

from __future__ import annotations

import unicodedata

from noisewise.artifact import ArgumentError
from noisewise.privacy.ledger.accounts import printable

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
