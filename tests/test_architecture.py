"""The pages about the code are true: packages, files, functions and public names exist."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import noisewise as nw
from tests.documents import ROOT
from tests.public_names import public_names

SOURCE = ROOT / "src" / "noisewise"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
HISTORY = {"reproduction.md"}
"""Pages that are records of a run, and name what there was then."""
PAGES = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in HISTORY
] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]  # fmt: skip
QUOTED = re.compile(r"`([\w./-]+\.(?:py|md|svg|json))`")
"""A file in back quotes."""
WRITTEN_BY_READERS = {
    "release.json", "release.py", "analyst.py", "simulate.py", "report.py", "__init__.py",
    "posterior.nc", "prior.json", "check.json", "model.json", "settings.json", "expected.json",
}  # fmt: skip
"""Names of files that every model has, or that a page's own commands write."""

READING_ORDERS = (
    "artifact", "cli", "models/graphical_model", "models/partition", "privacy", "privacy/ledger",
    "privacy/sources", "simulate",
)  # fmt: skip
"""Packages whose head says what each file is for."""
PARTS_OF_A_MODEL = {"__init__", "release", "analyst", "simulate", "report"}
"""Files that every package or model has; the architecture page explains them."""


@functools.cache
def pictures() -> ModuleType:
    """The script that draws the pictures; it lies beside the pages, in no package."""
    path = ROOT / "docs" / "_pictures" / "ways.py"
    specification = importlib.util.spec_from_file_location("ways", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # Its dataclass looks its own module up by name.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "ways", module)
        specification.loader.exec_module(module)
    return module


def rows(page: Path, header: str) -> list[list[str]]:
    """The rows of the table whose header begins like this, cell by cell."""
    text = page.read_text(encoding="utf-8")
    after = text.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [[c.strip() for c in line.strip("|").split("|")] for line in after.splitlines()[2:]]


def test_every_package_is_in_the_table() -> None:
    listed = [row[0].strip("`") for row in rows(ARCHITECTURE, "package")]
    folders = {f"{p.parent.name}/" for p in SOURCE.glob("*/__init__.py")}
    modules = {p.name for p in SOURCE.glob("*.py")} - {"__init__.py"}
    assert sorted(listed) == sorted(folders | modules)


def test_every_import_in_the_table_names_a_package() -> None:
    for _, _, allowed in rows(ARCHITECTURE, "package"):
        for name in re.findall(r"`([\w/.]+)`", allowed):
            assert name == "release.py" or (SOURCE / name).exists(), name


@pytest.mark.parametrize("package", READING_ORDERS)
def test_the_head_of_a_package_names_its_files(package: str) -> None:
    """A stranger reads there what each file is for; none is forgotten."""
    head = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text("utf-8"))) or ""
    named = set(re.findall(r"``(\w+)``", head))
    files = {path.stem for path in (SOURCE / package).glob("*.py")} - PARTS_OF_A_MODEL
    folders = {path.parent.name for path in (SOURCE / package).glob("*/__init__.py")}
    assert not (files | folders) - named


def test_where_to_begin_reading() -> None:
    """Every folder of models has a row, and its files exist."""
    listed = rows(ARCHITECTURE, "model")
    models = {f"models/{p.parent.name}/" for p in (SOURCE / "models").glob("*/__init__.py")}
    assert {row[0].strip("`") for row in listed} == models
    for folder, files in listed:
        for name in re.findall(r"`([\w.]+\.py)`", files):
            assert (SOURCE / folder.strip("`") / name).is_file(), f"{folder}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_named_file_exists(page: Path) -> None:
    """Paths are written from the root, or from src/noisewise; in a row, from its first cell."""
    for line in page.read_text(encoding="utf-8").splitlines():
        places = [ROOT, ROOT / "docs", SOURCE]
        if first := re.match(r"\| `([\w/]+/)`", line):
            places.append(SOURCE / first[1])
        for name in QUOTED.findall(line):
            known = name in WRITTEN_BY_READERS or any((p / name).is_file() for p in places)
            assert known, f"{page.name} names {name}, which does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_public_name_exists(page: Path) -> None:
    """Whatever a page calls nw.something is there."""
    for name in set(re.findall(r"\bnw((?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8"))):
        found: object = nw
        for part in name.strip(".").split("."):
            assert hasattr(found, part), f"{page.name} says nw{name}"
            found = getattr(found, part)


def test_every_step_of_the_pictures_is_a_function() -> None:
    for _, steps in pictures().PICTURES.values():
        for step in steps:
            module, _, name = step.function.partition(":")
            found: object = importlib.import_module(f"noisewise.{module}")
            for part in name.split("."):
                found = getattr(found, part)
            assert callable(found), step.function


@pytest.mark.parametrize("name", ["way-of-a-record.svg", "way-of-a-release.svg"])
def test_the_pictures_are_up_to_date(name: str) -> None:
    title, steps = pictures().PICTURES[name]
    drawn = pictures().drawn(title, steps)
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == drawn, (
        "run: python docs/_pictures/ways.py"
    )


def test_the_python_reference_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"heading: (\S+)", page))
    # The errors and the diagnostics are there a module at a time, with everything in them.
    whole = set(re.findall(r"::: (\S+)\n(?!    options)", f"{page}\n"))
    shown = {id(value) for name, value in public_names() if name in listed}
    functions_and_classes = {
        name: value for name, value in public_names() if isinstance(value, type | FunctionType)
    }
    assert not {
        name
        for name, value in functions_and_classes.items()
        if id(value) not in shown and value.__module__ not in whole
    }
    assert len(re.findall(r"^::: ", page, re.MULTILINE)) == len(listed) + len(whole)
    for address, heading in re.findall(r"::: (\S+)\n    options:\n      heading: (\S+)", page):
        module, _, name = address.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        if heading.startswith("nw."):
            promised: object = nw
            for part in heading.split(".")[1:]:
                promised = getattr(promised, part)
            assert found is promised, heading


def test_the_fields_of_a_release_file_are_listed() -> None:
    from noisewise.artifact.schema import schema

    listed = rows(ROOT / "docs" / "reference-file-format.md", "field")
    fields = [name for row in listed for name in re.findall(r"`(\w+)`", row[0])]
    assert fields == list(schema()["properties"])


def test_one_version_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {nw.__version__}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{nw.__version__}]" in changes


def test_every_page_is_in_the_navigation() -> None:
    """Under one of the kinds; the home page links all but single examples and kinds of evidence."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": ([\w/-]+\.md)", navigation)
    docs = ROOT / "docs"
    scripts = [*docs.glob("gallery/*.[ps][yh]"), *docs.glob("explanation/*.[ps][yh]")]
    pages = [*docs.rglob("*.md"), *(script.with_suffix(".md") for script in scripts)]
    assert sorted(listed) == sorted(str(page.relative_to(docs)) for page in pages)
    kinds = re.findall(r"^  - (\w[\w ]*):$", navigation, flags=re.MULTILINE)
    assert kinds == ["Tutorials", "How to", "Reference", "Explanation", "Gallery"]
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "](gallery/index.md)" in home
    for page in listed:
        assert page.startswith(("index", "evidence-", "gallery/")) or f"]({page})" in home, page


def imported(path: Path) -> set[str]:
    """The modules that a file imports when it is imported itself."""
    return modules_of(ast.parse(path.read_text(encoding="utf-8")).body)


def modules_of(statements: list[ast.stmt]) -> set[str]:
    """The modules that these statements import, not those inside of them."""
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def imported_anywhere(path: Path) -> set[str]:
    """The modules that a file imports at any time, but for those of types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    inside = ast.Module([n for n in ast.walk(tree) if isinstance(n, ast.stmt)], [])
    return modules_of(inside.body)


def test_every_module_that_imports_jax_makes_its_settings() -> None:
    """Directly or through another: sums of 10⁸ records do not fit single precision."""
    settings = "noisewise.numerics.jax_settings"
    names = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
    }
    imports = {name: imported(path) for name, path in names.items()}

    def reached(name: str) -> set[str]:
        found, new = set[str](), {name}
        while new:
            found |= new
            new = {m for n in new for m in imports[n] if m in imports} - found
        return found

    for name, path in names.items():
        anywhere = imported_anywhere(path)
        if any(m.split(".")[0] == "jax" for m in anywhere):
            assert settings in reached(name) | anywhere, name
