"""Worked examples: how scripts are read and run, and what every one of them must have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.documents import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_hooks"))

import gallery
from worked_examples import cache
from worked_examples.cells import cells
from worked_examples.pages import NOT_RUN, page

DOCS = ROOT / "docs"
SCRIPTS = gallery.scripts(DOCS)
TOY = '''"""# Two and two

What is it?
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd

four = 2 + 2
print("It is", four)
figure, axis = plt.subplots()
axis.set_title("Nothing")

# %% [markdown]
# And as a *table*:

# %%
pd.DataFrame({"four": [four]})
'''


def run(script: Path) -> subprocess.CompletedProcess[str]:
    runner = DOCS / "_hooks" / "worked_examples" / "running.py"
    return subprocess.run(
        [sys.executable, str(runner), str(script), str(script.with_suffix(".ipynb"))],
        capture_output=True, text=True, check=False, cwd=script.parent,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    script = tmp_path_factory.mktemp("toy") / "toy.py"
    script.write_text(TOY)
    done = run(script)
    assert done.returncode == 0, done.stderr
    return script, json.loads(script.with_suffix(".ipynb").read_text())


def test_a_script_becomes_a_notebook(made: tuple[Path, dict[str, Any]]) -> None:
    _, notebook = made
    nbformat.validate(nbformat.from_dict(notebook))
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds == ["markdown", "code", "markdown", "code"]
    printed, drawn = notebook["cells"][1]["outputs"]
    assert printed["text"] == "It is 4\n"
    assert drawn["data"]["text/plain"] == "Nothing"
    assert "<td>4</td>" in notebook["cells"][3]["outputs"][0]["data"]["text/html"]


def test_a_notebook_becomes_a_page(made: tuple[Path, dict[str, Any]]) -> None:
    script, notebook = made
    files = page(script, cells(script), notebook)
    assert set(files) == {"toy.md", "toy-1.png"}
    text = str(files["toy.md"])
    parts = (
        "# Two and two", "toy.ipynb", "What is it?", "four = 2 + 2", "It is 4",
        "![Nothing](toy-1.png)", "*table*", "<td>4</td>",
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    unrun = page(script, cells(script), None)
    assert set(unrun) == {"toy.md"}
    assert NOT_RUN in str(unrun["toy.md"])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('"""No title."""\n\n# %%\nprint(1)\n', "must begin with a title"),
        ('"""# A title"""\nx = 1\n\n# %%\nprint(1)\n', "must begin with a docstring"),
        ('"""# A title"""\n\n# %% [markdown]\ntext\n', "text is written as comments"),
        ('"""# A title"""\n\n# %%\n1 / 0\n', "ZeroDivisionError"),
        ('"""# A title"""\n\n# %%\nimport os\nprint(os.getcwd())\n', "prints its folder"),
        (
            '"""# A title"""\n\n# %%\nimport matplotlib.pyplot as plt\n\nplt.plot([1])\n',
            "a picture needs a title",
        ),
    ],
)
def test_scripts_that_are_wrong(tmp_path: Path, script: str, message: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(script)
    done = run(path)
    assert done.returncode != 0
    assert message in done.stderr


def test_commands_are_run_too(tmp_path: Path) -> None:
    script = tmp_path / "toy.sh"
    script.write_text("# %% [markdown]\n# # A title\n\n# %%\necho two\n")
    assert run(script).returncode == 0
    code = json.loads(script.with_suffix(".ipynb").read_text())["cells"][1]
    assert code["source"] == "%%bash\necho two"
    assert code["outputs"][0]["text"] == "two\n"
    script.write_text("# %% [markdown]\n# # A title\n\n# %%\nfalse\necho two\n")
    assert "line 5: ended with 1" in run(script).stderr


def test_a_change_makes_a_script_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEPT", tmp_path / "kept")
    monkeypatch.delenv(cache.SWITCH, raising=False)
    script = tmp_path / "toy.py"
    texts = []
    for words in ("one", "one", "two"):
        script.write_text(
            f'"""# A title"""\n\n# %%\nimport time\n\nprint("{words}", time.time())\n'
        )
        (notebook,) = cache.notebooks([script])
        assert notebook is not None
        texts.append(notebook["cells"][1]["outputs"][0]["text"])
    assert texts[0] == texts[1]
    assert texts[2].startswith("two")
    assert len(list((tmp_path / "kept").iterdir())) == 1
    before = cache.digest(script)
    monkeypatch.setattr(cache, "library", lambda: "another")
    assert cache.digest(script) != before


def test_a_script_that_fails_ends_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "KEPT", tmp_path / "kept")
    monkeypatch.delenv(cache.SWITCH, raising=False)
    script = tmp_path / "toy.py"
    script.write_text('"""# A title"""\n\n# %%\nraise ValueError("no such thing")\n')
    with pytest.raises(cache.ExampleError, match="no such thing"):
        cache.notebooks([script])


# -- the examples themselves ---------------------------------------------------------------------


def test_every_example_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert len(SCRIPTS) >= 1
    for script in SCRIPTS:
        assert f"{script.parent.name}/{script.stem}.md" in nav


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_an_example_says_what_it_means(script: Path) -> None:
    """In words, and with a caution; it compiles, and its seeds are fixed."""
    found = cells(script)
    text = "\n".join(cell.source for cell in found if cell.is_text)
    code = "\n".join(cell.source for cell in found if not cell.is_text)
    if script.parent.name == "gallery":
        assert "## What it means" in text
        assert "## What not to conclude" in text
    if script.suffix == ".py":
        compile(code, script.name, "exec")
    assert "default_rng()" not in code
    for target in re.findall(r"\]\((\.\./[\w./-]+\.md)", text):
        assert (script.parent / target).resolve().exists(), target
