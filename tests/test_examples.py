"""Every public name is documented: what it is or does, and an example that runs."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import noisewise as nw
from noisewise.models.exponential_family import families
from noisewise.models.exponential_family import release as family_release
from tests.public_names import public_names

SOURCE = Path(nw.__file__).parent
NAMES = dict(public_names())
DOCUMENTED = {n: v for n, v in NAMES.items() if inspect.isclass(v) or inspect.isfunction(v)}
CONSTANTS = set(NAMES) - set(DOCUMENTED)
EXAMPLES = {id(value): name for name, value in reversed(DOCUMENTED.items())}
"""Names by object, the shortest one for what has several: its example runs once."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def docstring(value: object) -> str:
    """Return an object's own docstring; a class does not inherit its base's."""
    own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return inspect.cleandoc(own or "")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder; families that an example registers are forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))
    monkeypatch.setattr(family_release, "SHAPES", dict(family_release.SHAPES))


@pytest.mark.parametrize("name", sorted(EXAMPLES.values()))
def test_the_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = doctest.DocTestParser().get_doctest(
        docstring(DOCUMENTED[name]), {}, name, filename=None, lineno=None
    )
    assert examples.examples, f"{name}: has no example"
    outcome = doctest.DocTestRunner(optionflags=FLAGS).run(examples)
    assert not outcome.failed, capsys.readouterr().out


def test_every_docstring_says_what_it_is_about() -> None:
    assert not [name for name, value in DOCUMENTED.items() if not docstring(value)]
    for name, value in DOCUMENTED.items():
        first = docstring(value).splitlines()[0]
        assert first.endswith((".", "?", "!")), f"{name}: {first}"


VERBS = {
    "Compare", "Cut", "Draw", "Forget", "Infer", "Make", "Read", "Release", "Return", "Run",
    "Simulate", "Write",
}  # fmt: skip
"""How the docstring of a function may begin."""


def test_functions_are_described_by_a_verb() -> None:
    begins = {n: docstring(f).split()[0] for n, f in DOCUMENTED.items() if inspect.isfunction(f)}
    assert not {name: word for name, word in begins.items() if word not in VERBS}


def sections(name: str, value: object) -> Iterator[str]:
    """Yield what the docstring of a public function lacks."""
    text = docstring(value)
    if list(inspect.signature(value).parameters) and "Args:" not in text:  # type: ignore[arg-type]
        yield f"{name}: Args"
    says = text.startswith("Return") or "Returns:" in text
    if getattr(value, "__annotations__", {}).get("return") not in (None, "None") and not says:
        yield f"{name}: Returns"


def test_functions_describe_arguments_and_results() -> None:
    public = {n: f for n, f in DOCUMENTED.items() if inspect.isfunction(f)}
    assert not [lack for name, function in public.items() for lack in sections(name, function)]


# -- constants -----------------------------------------------------------------------------------


def constants(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the public constants of a file, and whether each is explained.

    Names in capitals, and type aliases, which are named like classes; not type variables. A
    docstring follows them, or a comment stands right before them.
    """
    text = path.read_text()
    lines, body = text.splitlines(), ast.parse(text).body
    for place, statement in enumerate(body):
        names = [name for name in assigned(statement) if name[0].isupper() and len(name) > 1]
        if not names or "TypeVar(" in lines[statement.lineno - 1]:
            continue
        # A constant may be put together by several statements.
        after = next((s for s in body[place + 1 :] if not continues(s)), None)
        said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        yield names[0], said or lines[statement.lineno - 2].startswith("# ")


def assigned(statement: ast.stmt) -> list[str]:
    """Return the names that a statement assigns to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    several = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [target.id for target in several if isinstance(target, ast.Name)]


def continues(statement: ast.stmt) -> bool:
    """Tell whether a statement adds to a constant: ``A |= …``, ``A[…] = …``."""
    return isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
    )


def test_every_constant_says_what_it_is() -> None:
    assert {"nw.__version__", "nw.models.BUILT_IN", "nw.models.Method"} == CONSTANTS
    bare = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, said in constants(path)
        if not said and "cli" not in path.parts
    ]
    assert not bare
