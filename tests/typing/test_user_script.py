"""Type checkers see what users see: one run of ``mypy --strict``, as a user would start it."""

from __future__ import annotations

import ast
import inspect
import os
import pydoc
import re
import shutil
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import noisewise as nw
from noisewise.models.graphical_model import GraphicalOptions
from noisewise.models.graphical_model.analyst import OPTIONS, SHARED_OPTIONS
from tests.public_names import PUBLIC_MODULES, public_names

HERE = Path(__file__).parent
SCRIPT, WRONG = HERE / "user_script.py", HERE / "wrong_calls.py"
ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """Return mypy's errors by file and line; the project's own configuration is out of sight."""
    folder = tmp_path_factory.mktemp("user")
    for file in (SCRIPT, WRONG):
        shutil.copy(file, folder)
    package = Path(nw.__file__).parents[1]
    checked = package.parent / ".mypy_cache"
    if checked.is_dir():  # what `make lint` knows of other libraries; mypy reads the rest anew
        shutil.copytree(checked, folder / "cache", ignore=shutil.ignore_patterns("noisewise*"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "--no-error-summary",
         "--hide-error-context", "--cache-dir", "cache", SCRIPT.name, WRONG.name],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(package)},
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    errors: dict[str, dict[int, str]] = {SCRIPT.name: {}, WRONG.name: {}}
    for line in done.stdout.splitlines():
        match = ERROR.match(line)
        if match:
            shown = match["code"] if match["file"] == WRONG.name else line
            errors[match["file"]][int(match["line"])] = shown
        else:
            assert ": note: " in line, line
    return errors


def test_a_users_script_passes(complaints: dict[str, dict[int, str]]) -> None:
    assert not complaints[SCRIPT.name]


def test_wrong_calls_are_errors(complaints: dict[str, dict[int, str]]) -> None:
    expected = {
        number: line.rpartition("# wrong: ")[2].strip()
        for number, line in enumerate(WRONG.read_text().splitlines(), start=1)
        if "# wrong: " in line and not line.startswith('"')
    }
    assert len(expected) > 20
    assert complaints[WRONG.name] == expected


def test_the_script_names_everything_public() -> None:
    names = {n.id for n in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(n, ast.Name)}
    for node in ast.walk(ast.parse(SCRIPT.read_text())):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    public = {name for module in PUBLIC_MODULES for name in module.__all__}
    assert not sorted(public - names)


# -- annotations ---------------------------------------------------------------------------------


def functions(name: str, value: object) -> Iterator[tuple[str, types.FunctionType]]:
    """Yield a public function, or the public methods and properties of a class."""
    if isinstance(value, types.FunctionType):
        yield name, value
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    for base in value.__mro__:
        if not base.__module__.startswith("noisewise"):
            continue
        for attribute, held in vars(base).items():
            raw: object = held
            if isinstance(raw, classmethod | staticmethod):
                raw = raw.__func__
            elif isinstance(raw, property):
                raw = raw.fget
            else:
                raw = getattr(raw, "func", raw)  # cached_property
            if isinstance(raw, types.FunctionType) and not attribute.startswith("_"):
                yield f"{name}.{attribute}", raw


FUNCTIONS = dict(pair for name, value in public_names() for pair in functions(name, value))


def test_no_public_function_returns_any() -> None:
    assert len(FUNCTIONS) > 150
    returned = {name: f.__annotations__.get("return", "nothing") for name, f in FUNCTIONS.items()}
    assert not [n for n, what in returned.items() if what in ("nothing", "Any", typing.Any)]


def test_every_argument_of_a_public_function_is_annotated() -> None:
    bare = [
        f"{name}: {argument.name}"
        for name, function in FUNCTIONS.items()
        for argument in inspect.signature(function).parameters.values()
        if argument.annotation is inspect.Parameter.empty and argument.name not in ("self", "cls")
    ]
    assert not bare


# -- infer ---------------------------------------------------------------------------------------


def test_help_shows_the_signature_of_infer() -> None:
    assert list(inspect.signature(nw.infer).parameters) == [
        "release", "method", "model", "prior", "x", "y", "formula", "seed", "chains", "draws",
        "progress", "same_population", "pool", "features", "parent", "groups", "keep", "out",
        "part", "options",
    ]  # fmt: skip
    page = pydoc.plain(pydoc.render_doc(nw.infer))
    assert "\ninfer(\n" in page or "\ninfer(release" in page
    assert "Infer a posterior" in page
    assert "method: left out, the model's best" in page


def test_type_checkers_know_every_option_of_graphical_models() -> None:
    known = {*SHARED_OPTIONS, *(name for names in OPTIONS.values() for name in names)}
    assert set(GraphicalOptions.__annotations__) == known
