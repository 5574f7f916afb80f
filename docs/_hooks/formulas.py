"""Formulas as MathML when the site is built: browsers draw it themselves, nothing is loaded."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

# Code first: a dollar sign in it is no formula.
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", flags=re.DOTALL)
_FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<!\\)\$(?P<inline>[^$]+?)\$", flags=re.DOTALL)
_TAG = re.compile(r"\\tag\{([^}]*)\}")
_PLACE = "formula%dplace"

_made: list[str] = []


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave a word for each formula: a tag at the start of a line would end the paragraph."""
    _made.clear()
    parts = _CODE.split(markdown)
    return "".join(p if i % 2 else _FORMULA.sub(_placed, p) for i, p in enumerate(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Put the formulas where the words are."""
    for number, formula in enumerate(_made):
        html = html.replace(_PLACE % number, formula)
    return html


def _placed(found: re.Match[str]) -> str:
    display = "block" if found["block"] else "inline"
    formula = _TAG.sub(r"\\qquad (\1)", found["block"] or found["inline"])
    _made.append(convert(" ".join(formula.split()), display=display))
    return _PLACE % (len(_made) - 1)
