"""The few pieces of HTML a page is made of. Every text that comes in is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.version import VERSION

SHOWN_ROWS = 30
"""Rows of a table that a page shows, at most (chosen)."""

# Nothing may be loaded, run or sent, whatever stands in the text.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def number(value: float) -> str:
    """Four digits: enough for a person, and no more than the noise deserves."""
    return "–" if not np.isfinite(value) else f"{value:.4g}"


def text(tag: str, content: str, css: str = "") -> str:
    """One element around plain text."""
    named = f' class="{css}"' if css else ""
    return f"<{tag}{named}>{escape(content)}</{tag}>"


def paragraphs(*content: str) -> str:
    """Plain sentences."""
    return "".join(text("p", one) for one in content if one)


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Numbers to the right, words to the left; a long one is folded away whole."""
    numeric = [
        bool(rows) and all(isinstance(row[i], float | int) for row in rows)
        for i in range(len(head))
    ]
    titles = "".join(
        f'<th scope="col"{" class=n" if right else ""}>{escape(name)}</th>'
        for name, right in zip(head, numeric, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, numeric)}</tr>" for row in rows)
    made = (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if len(rows) <= SHOWN_ROWS:
        return made
    return folded(f"{caption}: {len(rows)} rows", made)


def _cells(row: Sequence[object], numeric: Sequence[bool]) -> str:
    made = []
    for place, (value, right) in enumerate(zip(row, numeric, strict=True)):
        shown = number(value) if isinstance(value, float) else str(value)
        if place == 0:
            made.append(f'<th scope="row">{escape(shown)}</th>')
        else:
            made.append(f"<td{' class=n' if right else ''}>{escape(shown)}</td>")
    return "".join(made)


def folded(summary: str, content: str) -> str:
    """Shown when asked for."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def verdict(good: bool, headline: str, *more: str) -> str:
    """A box with a plain word in it."""
    css = "verdict" if good else "verdict bad"
    return f'<div class="{css}"><p><strong>{escape(headline)}</strong></p>{paragraphs(*more)}</div>'


def figure(drawing: str, caption: str = "") -> str:
    """A drawing and what it is of."""
    return f"<figure>{drawing}{text('figcaption', caption) if caption else ''}</figure>"


def grid(figures: Iterable[str]) -> str:
    """Side by side where there is room."""
    return f'<div class="grid">{"".join(figures)}</div>'


def legend(*entries: tuple[str, str]) -> str:
    """Coloured squares and what they stand for."""
    keys = (f'<span class="key {css}"></span>{escape(name)} &nbsp; ' for css, name in entries)
    return f'<p class="quiet">{"".join(keys)}</p>'


def section(name: str, title: str, *content: str) -> tuple[str, str, str]:
    """Anchor, title and content: what a page is a list of."""
    return name, title, "".join(content)


def page(title: str, lead: str, sections: Iterable[tuple[str, str, str]]) -> str:
    """The whole file."""
    parts = [part for part in sections if part[2]]
    listed = "".join(f'<li><a href="#{name}">{escape(told)}</a></li>' for name, told, _ in parts)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(told)}'
        f"</h2>{content}</section>"
        for name, told, content in parts
    )
    style = files("noisewise.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><header>"
        f"<h1>{escape(title)}</h1>{lead}</header>"
        f'<nav aria-label="Sections"><ul>{listed}</ul></nav><main>{body}</main>'
        f'<footer class="quiet">Made by noisewise {VERSION}. This file is complete in itself: it '
        "loads nothing and runs nothing.</footer></body></html>\n"
    )


def write(content: str, path: Path) -> Path:
    """The file, whole or not at all."""
    with atomic_write(
        path, lambda why: ArgumentError(f"--out: cannot write {str(path)!r}: {why}")
    ) as beside:
        beside.write_text(content, encoding="utf-8")
    return path
