"""Small tables for notebooks: HTML fragments that follow the notebook's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST_ROWS = 12
"""Rows that a notebook shows (chosen)."""


def fragment(
    title: str, sentences: Sequence[str], head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Return a title, sentences and a table, all escaped; of many rows the first ones."""
    paragraphs = "".join(f"<p>{escape(s)}</p>" for s in sentences if s)
    titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    more = f"<p>and {left} more rows</p>" if left > 0 else ""
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><strong>{escape(title)}</strong>{paragraphs}{table}{more}</div>"
