"""The package as a whole: versions, what an import needs, where randomness may come from."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import noisewise as nw

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "noisewise"
OWNERS_FILES = [
    *sorted((SOURCE / "privacy").rglob("*.py")),
    *sorted((SOURCE / "models").glob("*/release.py")),
    *sorted(p for p in (SOURCE / "models" / "partition").glob("*.py") if p.name != "report.py"),
]


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == nw.__version__


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocker())
{code}
"""
OWNERS = ("opendp", "pyarrow", "pandas", "ibis", "polars", "duckdb", "psycopg", "pyspark")
ANALYSTS = ("jax", "jaxlib", "numpyro", "arviz")


def run_without(blocked: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    script = BLOCKED.format(blocked=set(blocked), code=code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


@pytest.mark.parametrize("module", ["noisewise", "noisewise.artifact"])
def test_the_wire_needs_numpy_only(module: str) -> None:
    """An analyst's machine has no OpenDP, and a release can be read there."""
    code = f"import {module}, noisewise; noisewise.Release; noisewise.DataError"
    ended = run_without((*OWNERS, *ANALYSTS, "scipy", "typer", "rich"), code)
    assert ended.returncode == 0, ended.stderr


def test_the_owners_half_needs_nothing_of_the_analysts() -> None:
    code = "import noisewise; noisewise.release.linear_regression; import noisewise.cli.verbs"
    engines = ("ibis", "polars", "duckdb", "psycopg", "pyspark")
    ended = run_without((*ANALYSTS, *engines), code)
    assert ended.returncode == 0, ended.stderr


def test_the_analysts_half_needs_nothing_of_the_owners() -> None:
    """Nor ArviZ, numpyro or mbi, until a method asks for them."""
    code = "from noisewise.inference import methods; methods('linear-regression')"
    ended = run_without((*OWNERS, "arviz", "numpyro", "mbi", "networkx"), code)
    assert ended.returncode == 0, ended.stderr


def test_the_blocker_blocks() -> None:
    ended = run_without(OWNERS, "import noisewise; noisewise.release.linear_regression")
    assert ended.returncode != 0
    assert "is blocked" in ended.stderr


# -- where randomness comes from -------------------------------------------------------------------


def imported(path: Path) -> set[str]:
    """Every module a file imports, and every ``module.name`` it imports or looks up."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            full = {"np": "numpy"}.get(node.value.id, node.value.id)
            found.add(f"{full}.{node.attr}")
    return found


@pytest.mark.parametrize("path", OWNERS_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_of_the_owners_half_has_randomness_of_its_own(path: Path) -> None:
    """Privacy noise from a seeded generator is no privacy: OpenDP draws it, in one file."""
    assert len(OWNERS_FILES) > 30
    forbidden = {"random", "numpy.random", "jax.random", "jax", "torch", "scipy.stats"}
    assert not imported(path) & forbidden


def test_opendp_is_called_in_one_file() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(name.partition(".")[0] == "opendp" for name in imported(path))
    }
    assert callers == {"privacy/mechanisms.py"}


def test_mbi_is_called_in_one_file() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(name.partition(".")[0] == "mbi" for name in imported(path))
    }
    assert callers == {"models/graphical_model/structure.py"}


# -- documentation ---------------------------------------------------------------------------------


def undocumented(path: Path) -> Iterator[str]:
    """Public classes, functions and methods without a docstring, and the file itself."""
    tree = ast.parse(path.read_text())
    if not ast.get_docstring(tree):
        yield str(path)
    owners: list[ast.Module | ast.ClassDef] = [tree]
    for owner in owners:
        for node in owner.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                overloaded = any(ast.unparse(d) == "overload" for d in node.decorator_list)
                if not ast.get_docstring(node) and not overloaded:
                    yield f"{path}: {node.name}"
                if isinstance(node, ast.ClassDef):
                    owners.append(node)


def test_everything_public_is_documented() -> None:
    assert not [name for path in SOURCE.rglob("*.py") for name in undocumented(path)]


def test_everything_promised_can_be_had() -> None:
    for name in nw.release.__all__:
        assert getattr(nw.release, name)
    assert set(nw.__all__) == set(dir(nw))


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()
