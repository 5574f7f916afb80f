"""HTML elements that a page is made of. Every text that comes in is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from noisewise.artifact import ArgumentError
from noisewise.artifact.atomic_file import atomic_write
from noisewise.artifact.readable_numbers import readable
from noisewise.artifact.version import VERSION

SHOWN_ROWS = 30
"""A table with more rows is folded away until the reader opens it (chosen)."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content Security Policy: nothing may be loaded, run or sent, whatever stands in the text."""


def number(value: float) -> str:
    """Return a number with four digits: enough to read, and no more than the noise deserves."""
    return "–" if not np.isfinite(value) else readable(value)


def text(tag: str, content: str, css: str = "") -> str:
    """Return one element around plain text."""
    named = f' class="{css}"' if css else ""
    return f"<{tag}{named}>{escape(content)}</{tag}>"


def paragraphs(*content: str) -> str:
    """Return each text as a paragraph."""
    return "".join(text("p", one) for one in content if one)


def findings(sentences: Sequence[str]) -> str:
    """Return the sentences with which a page begins; what stands in backticks is a column."""
    if not sentences:
        return ""
    return f'<div class="findings">{"".join(map(_with_names, sentences))}</div>'


def _with_names(sentence: str) -> str:
    # A number and its percent sign stay on one line.
    parts = (escape(part).replace(" %", "\u00a0%") for part in sentence.split("`"))
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
    return f"<p>{marked}</p>"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table, numbers to the right and words to the left; a long one is folded away."""
    numeric = [
        bool(rows) and all(isinstance(row[i], float | int) for row in rows)
        for i in range(len(head))
    ]
    titles = "".join(
        f'<th scope="col"{" class=n" if right else ""}>{escape(name)}</th>'
        for name, right in zip(head, numeric, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, numeric)}</tr>" for row in rows)
    element = (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if len(rows) <= SHOWN_ROWS:
        return element
    return folded(f"{caption}: {len(rows)} rows", element)


def _cells(row: Sequence[object], numeric: Sequence[bool]) -> str:
    cells = []
    for place, (value, right) in enumerate(zip(row, numeric, strict=True)):
        shown = number(value) if isinstance(value, float) else str(value)
        if place == 0:
            cells.append(f'<th scope="row">{escape(shown)}</th>')
        else:
            cells.append(f"<td{' class=n' if right else ''}>{escape(shown)}</td>")
    return "".join(cells)


def folded(summary: str, content: str) -> str:
    """Return content that is hidden until the reader opens it."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def verdict(good: bool, headline: str, *more: str) -> str:
    """Return a box with a headline, coloured by whether the news is good."""
    css = "verdict" if good else "verdict bad"
    return f'<div class="{css}"><p><strong>{escape(headline)}</strong></p>{paragraphs(*more)}</div>'


def figure(drawing: str, caption: str = "") -> str:
    """Return a drawing below its caption."""
    return f"<figure>{text('figcaption', caption) if caption else ''}{drawing}</figure>"


def grid(figures: Iterable[str]) -> str:
    """Return figures side by side where there is room."""
    return f'<div class="grid">{"".join(figures)}</div>'


def legend(*entries: tuple[str, str]) -> str:
    """Return coloured squares (by style class) and what they stand for."""
    keys = (f'<span class="key {css}"></span>{escape(name)} &nbsp; ' for css, name in entries)
    return f'<p class="quiet">{"".join(keys)}</p>'


def section(name: str, title: str, *content: str) -> tuple[str, str, str]:
    """Return anchor, title and content: what a page is a list of."""
    return name, title, "".join(content)


def page(title: str, lead: str, sections: Iterable[tuple[str, str, str]]) -> str:
    """Return the whole document; sections without content are left out."""
    parts = [part for part in sections if part[2]]
    listed = "".join(f'<li><a href="#{name}">{escape(head)}</a></li>' for name, head, _ in parts)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(head)}'
        f"</h2>{content}</section>"
        for name, head, content in parts
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
    """Write the file, whole or not at all, and return its path."""
    with atomic_write(
        path, lambda why: ArgumentError(f"cannot write {str(path)!r}: {why}")
    ) as beside:
        beside.write_text(content, encoding="utf-8")
    return path
