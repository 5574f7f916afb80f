"""Carry a script out, cell by cell, and write what it printed and drew as a notebook.

    python docs/_hooks/worked_examples/running.py SCRIPT NOTEBOOK

Like Jupyter: what a cell prints, and the value of its last line, stand below it. Pictures are
matplotlib figures, drawn by pyplot or returned by the last line. The script runs in an empty folder
and with a ledger of its own. A script that reads ``GALLERY_POSTGRES`` is given the URL of a
throw-away database, one that imports pyspark a Java, where the machine has them; a script must say
in words what it leaves out where it has not.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
ROOT = Path(__file__).parents[3]

from worked_examples.cells import LANGUAGES, Cell, cells  # noqa: E402

COLUMNS = 100
"""Characters of a line that is printed (chosen): it scrolls on a phone."""
DPI = 110
"""Points per inch of pictures (chosen): about 800 for the width of a page."""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
"""Of notebooks. Commands run in a Python kernel too, by ``%%bash``."""
POSTGRES = "GALLERY_POSTGRES"
"""The environment variable with the URL of a database."""


def notebook(path: Path) -> dict[str, Any]:
    """Run a script and return it as a notebook (nbformat 4.5), outputs included.

    ``metadata.noisewise.complete`` tells whether every server the script asks for was there.
    """
    language = LANGUAGES[path.suffix]
    found = cells(path)
    began = time.perf_counter()
    with _folder() as folder, _servers(path, Path(folder)) as complete:
        if language == "python":
            outputs = _python(found, path.name)
        else:
            outputs = [[] if cell.is_text else _shell(cell, path.name) for cell in found]
    made = [
        _cell(number, cell, printed, language)
        for number, (cell, printed) in enumerate(zip(found, outputs, strict=True))
    ]
    if folder in (text := json.dumps(made)):
        at = text.index(folder)
        raise RuntimeError(f"{path.name}: prints its folder: …{text[max(0, at - 80) : at + 80]}…")
    about = {
        "complete": complete,
        "version": version("noisewise"),
        "day": time.strftime("%Y-%m-%d"),
        "seconds": round(time.perf_counter() - began),
    }
    return {
        "cells": made,
        "metadata": {"kernelspec": KERNEL, "noisewise": about},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Work in an empty folder, with a ledger of its own and lines of one width."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ |= {
            "NOISEWISE_HOME": str(Path(folder) / "home"),
            "COLUMNS": str(COLUMNS),
            "MPLBACKEND": "agg",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        yield folder


@contextlib.contextmanager
def _servers(path: Path, folder: Path) -> Iterator[bool]:
    """Start what a script asks for; yield whether all of it is there."""
    script = path.read_text(encoding="utf-8")
    sys.path.insert(0, str(ROOT))
    complete = True
    with contextlib.ExitStack() as stack:
        if POSTGRES in script and POSTGRES not in os.environ:
            from tests.engines.postgres import PostgresMissing, postgres_server

            try:
                os.environ[POSTGRES] = stack.enter_context(postgres_server())
            except PostgresMissing:
                complete = False
        if "pyspark" in script:
            from tests.engines.engines import JavaMissing, find_java

            try:
                find_java(folder)
            except JavaMissing:
                complete = False
        yield complete


def _cell(number: int, cell: Cell, outputs: list[Any], language: str) -> dict[str, Any]:
    """Return a cell as notebooks have it."""
    about: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
    if cell.is_text:
        return {"cell_type": "markdown", **about, "source": cell.source}
    source = cell.source if language == "python" else f"%%bash\n{cell.source}"
    code = {"execution_count": number, "outputs": outputs, "source": source}
    return {"cell_type": "code", **about, **code}


# -- Python --------------------------------------------------------------------------------------


def _python(found: list[Cell], name: str) -> list[list[Any]]:
    """Run cells of Python with the same names; return what each gave."""
    import pandas as pd

    pd.set_option("display.width", COLUMNS)
    warnings.showwarning = _warn
    names: dict[str, Any] = {"__name__": "__main__"}
    return [[] if cell.is_text else _run(cell, name, names) for cell in found]


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning without the path of the file it came from."""
    print(f"{category.__name__}: {message}", file=sys.stderr)


def _run(cell: Cell, name: str, names: dict[str, Any]) -> list[Any]:
    """Run one cell; return what it printed and drew, and the value of its last line."""
    body = ast.parse("\n" * (cell.line - 1) + cell.source, filename=name).body
    shown = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, warned = io.StringIO(), io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(warned):
        exec(compile(ast.Module(body, []), name, "exec"), names)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), name, "eval"), names)
    return [*_stream("stdout", printed), *_stream("stderr", warned), *_figures(), *_value(value)]


def _stream(name: str, text: io.StringIO) -> list[Any]:
    printed = text.getvalue()
    return [{"output_type": "stream", "name": name, "text": printed}] if printed.strip() else []


def _figures() -> list[Any]:
    """Return pyplot's open figures, and close them."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return []
    drawn = [_picture(plt.figure(number)) for number in plt.get_fignums()]
    plt.close("all")
    return drawn


def _picture(figure: Any) -> dict[str, Any]:
    """Return a figure as PNG, and its title as words for those who cannot see it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI, facecolor="white", bbox_inches="tight")
    titles = [axis.get_title(loc) for axis in figure.axes for loc in ("left", "center")]
    words = next((text for text in [figure.get_suptitle(), *titles] if text), "")
    if not words:
        raise ValueError("a picture needs a title, which is also what a screen reader says")
    data = {
        "image/png": base64.b64encode(drawn.getvalue()).decode(),
        "text/plain": " ".join(words.split()),
    }
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _value(value: Any) -> list[Any]:
    """Return what a notebook shows of a value."""
    if value is None or type(value).__module__.startswith("matplotlib"):
        return [_picture(value)] if hasattr(value, "savefig") else []
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return [{"output_type": "display_data", "data": data, "metadata": {}}]


# -- shell ---------------------------------------------------------------------------------------


def _shell(cell: Cell, name: str) -> list[Any]:
    """Run one cell of commands, which must succeed; return what they printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell.source], check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name}, line {cell.line}: ended with {done.returncode}\n{done.stdout}")
    return _stream("stdout", io.StringIO(done.stdout))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(notebook(Path(sys.argv[1]).resolve()), indent=1))
