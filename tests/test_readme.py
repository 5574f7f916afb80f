"""README and documentation work verbatim: every block is run, in order, in an empty folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from noisewise import datasets
from tests.documents import ROOT, blocks, run

pytestmark = pytest.mark.usefixtures("optimised")
RUN_ELSEWHERE = {
    "howto-engines.md",
    "guide-your-own-family.md",
    "guide-add-a-statistic.md",
    "guide-add-a-model.md",
    "guide-add-a-method.md",
    "guide-add-an-engine.md",
}
"""Pages that are run where their servers are (tests/engines), where a family or a statistic may be
registered and forgotten again, or with the files they quote (tests/test_guides.py)."""
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if blocks(page) and page.name not in RUN_ELSEWHERE
]


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    pq.write_table(datasets.social_mobility(tracts=5), "people.parquet")
    assert run(ROOT / "README.md") >= 10
    assert (tmp_path / "release.json").exists()
    assert (tmp_path / "report.html").exists()
    assert len((tmp_path / "records.csv").read_text().splitlines()) == 1001


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page) > 0


def test_all_pages_with_code_are_known() -> None:
    assert {page.name for page in PAGES} >= {
        "tutorial-owner.md", "tutorial-analyst.md", "howto-bounds.md", "howto-epsilon.md",
        "howto-ledger.md",
        "howto-report.md", "howto-formulas.md", "howto-small-areas.md", "howto-logistic.md",
        "howto-many-groups.md", "tutorial-real-table.md", "howto-r.md",
    }  # fmt: skip


def built(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """As ``make docs`` does, but for examples, which take minutes (tests/site/test_pages.py).

    Not --quiet: MkDocs then counts no warnings, strict or not.
    """
    config = (ROOT / "mkdocs.yml").read_text().replace("docs_dir: docs", f"docs_dir: {docs}")
    config = config.replace(" docs/_hooks", f" {ROOT}/docs/_hooks").replace(
        "paths: [src]", f"paths: [{ROOT}/src]"
    )
    (site.parent / "mkdocs.yml").write_text(config)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(site)],
        cwd=site.parent, capture_output=True, text=True, check=False,
        env={
            "PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "HOME": str(site.parent),
            "NOISEWISE_GALLERY": "off",
        },
    )  # fmt: skip


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = built(ROOT / "docs", site)
    assert done.returncode == 0, done.stderr
    reference = (site / "api.html").read_text()
    assert 'id="noisewise.inference.api.infer"' in reference
    assert "public bounds per numeric column" in reference  # an argument's own words
    proofs = (site / "proofs" / "sensitivity.html").read_text()
    assert proofs.count("<math") > 100
    assert "$" not in proofs.split("<article")[1].split("</article>")[0]
    for page in site.rglob("*.html"):
        assert "fonts.googleapis" not in page.read_text()


def test_a_broken_link_breaks_the_site(tmp_path: Path) -> None:
    """All pages are there, but empty: that link is the only thing to warn of."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for page in (tmp_path / "docs").rglob("*.md"):
        page.write_text("# A page\n")
    for folder in ("gallery", "explanation"):
        for script in (tmp_path / "docs" / folder).glob("*.??"):
            if script.suffix in (".py", ".sh"):
                head = '"""# A page"""' if script.suffix == ".py" else "# %% [markdown]\n# # A page"
                script.write_text(f"{head}\n\n# %%\nprint(1)\n")
    (tmp_path / "docs" / "index.md").write_text("[nowhere](nowhere.md)")
    done = built(tmp_path / "docs", tmp_path / "site")
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
    assert done.stderr.count("WARNING") == 1
