"""Pages of worked examples, made from their notebooks."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path
from typing import Any

from worked_examples.cells import LANGUAGES, Cell, title

NOT_RUN = "This copy of the page was built without running the example: what it prints is missing."
"""What a page says where scripts were not run."""
FENCE = "```"
"""What begins and ends code in Markdown."""


def page(script: Path, found: list[Cell], made: dict[str, Any] | None) -> dict[str, str | bytes]:
    """Return the page of a script and what belongs to it, by file name.

    Args:
        script: the file.
        found: its cells.
        made: its notebook; None if it was not run.
    """
    name = script.stem
    files: dict[str, str | bytes] = {}
    parts = []
    for number, cell in enumerate(found):
        if cell.is_text:
            parts.append(cell.source)
            continue
        parts.append(f"{FENCE}{LANGUAGES[script.suffix]}\n{cell.source}\n{FENCE}")
        for output in made["cells"][number]["outputs"] if made else ():
            parts.append(_shown(output, name, files))
    head, lead, *rest = (parts[0] + "\n\n").split("\n", 2)
    files[f"{name}.md"] = "\n\n".join([head, _downloads(script, made), lead, *rest, *parts[1:]])
    return files


def _downloads(script: Path, made: dict[str, Any] | None) -> str:
    """Return the line below the title: where the script and the notebook are."""
    links = f"[Script]({script.name})"
    if made is None:
        return f"{links}\n\n!!! note\n    {NOT_RUN}"
    about = made["metadata"]["noisewise"]
    ran = f"run with noisewise {about['version']} on {about['day']}, in {about['seconds']} seconds"
    return f"[Notebook]({script.stem}.ipynb) · {links} · {ran}"


def _shown(output: dict[str, Any], name: str, files: dict[str, str | bytes]) -> str:
    """Return one output as Markdown; its picture goes to the files."""
    if output["output_type"] == "stream":
        return _text(output["text"])
    data = output["data"]
    if "image/png" in data:
        count = sum(file.endswith(".png") for file in files) + 1
        files[f"{name}-{count}.png"] = base64.b64decode(data["image/png"])
        words = re.sub(r"[\[\]]", "", data["text/plain"])
        return f"![{words}]({name}-{count}.png)"
    if "text/html" in data:
        return f'<div class="printed">\n{_table(data["text/html"])}\n</div>'
    return _text(data["text/plain"])


def _text(printed: str) -> str:
    """Return what was printed: sentences are broken into lines on a phone, tables scroll."""
    kind = "" if re.search(r"\S {2,}\S|[─-╿]", printed) else " .sentences"
    return f"{FENCE} {{.text .printed{kind}}}\n{printed.rstrip()}\n{FENCE}"


def _table(html: str) -> str:
    """Return HTML without pandas' own style, and without empty lines, which would end it."""
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    html = re.sub(r'<table border="1" class="dataframe">', "<table>", html)
    html = html.replace("$", "&#36;")
    return "\n".join(line for line in html.splitlines() if line.strip())


def overview(entries: list[tuple[Path, list[Cell], dict[str, str | bytes]]]) -> str:
    """Return cards, one per example: its title, what it answers, and its last picture."""
    cards = [_card(script, found, files) for script, found, files in entries]
    return '<div class="gallery">\n' + "\n".join(cards) + "\n</div>\n"


def _card(script: Path, found: list[Cell], files: dict[str, str | bytes]) -> str:
    pictures = [name for name in files if name.endswith(".png")]
    picture = f'<img src="{pictures[-1]}" alt="">' if pictures else ""
    lead = " ".join(found[0].source.partition("\n")[2].strip().partition("\n\n")[0].split())
    return (
        f'<a class="card" href="{script.stem}.html">{picture}'
        f"<strong>{escape(title(found))}</strong><span>{escape(lead)}</span></a>"
    )
