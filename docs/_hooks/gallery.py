"""Worked examples and the command-line reference, made when the site is built.

Every script in ``docs/gallery`` and ``docs/explanation`` becomes a page beside it, with what it
printed and drew, and a notebook. A script that fails ends the build.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from worked_examples.cache import ExampleError, notebooks
from worked_examples.cells import LANGUAGES, cells
from worked_examples.pages import overview, page

FOLDERS = ("gallery", "explanation")
"""Where scripts are, below the folder of pages."""
PLACE = "<!-- the examples -->"
"""Where the gallery's first page shows all of them."""

_cards: list[str] = []


def scripts(docs: Path, nav: Any = None) -> list[Path]:
    """Return all scripts, in the order of the navigation."""
    found = [p for f in FOLDERS for p in sorted((docs / f).glob("*")) if p.suffix in LANGUAGES]
    order = re.findall(r"[\w/-]+(?=\.md)", json.dumps(nav))
    places = {name: place for place, name in enumerate(order)}
    return sorted(found, key=lambda p: places.get(f"{p.parent.name}/{p.stem}", len(places)))


def on_files(files: Files, *, config: Any) -> Files:
    """Run what must be run, and add pages, pictures and notebooks."""
    found = scripts(Path(config["docs_dir"]), config["nav"])
    try:
        made = list(zip(found, [cells(script) for script in found], notebooks(found), strict=True))
    except (ExampleError, ValueError) as error:
        raise PluginError(str(error)) from None
    entries = []
    for script, parts, notebook in made:
        content = page(script, parts, notebook)
        if notebook is not None:
            content[f"{script.stem}.ipynb"] = json.dumps(notebook, indent=1)
        for name, text in content.items():
            where = f"{script.parent.name}/{name}"
            files.append(File.generated(config, where, content=text))
        if script.parent.name == "gallery":
            entries.append((script, parts, content))
    _cards[:] = [overview(entries)]
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show all examples on the gallery's first page."""
    return markdown.replace(PLACE, "".join(_cards))
