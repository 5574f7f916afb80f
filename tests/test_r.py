"""The page on R: its script runs in a real R, on files that noisewise wrote."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.documents import ROOT
from tests.report.pages import regression

PAGE = ROOT / "docs" / "howto-r.md"


@pytest.fixture(scope="module")
def rscript() -> str:
    path = shutil.which("Rscript")
    if path is None:
        pytest.skip("no R: install it (Debian: apt-get install r-base-core)")
    libraries = "stopifnot(all(c('jsonlite', 'ncdf4') %in% rownames(installed.packages())))"
    if subprocess.run([path, "-e", libraries], capture_output=True, check=False).returncode:
        pytest.skip("R lacks packages (Debian: apt-get install r-cran-jsonlite r-cran-ncdf4)")
    return path


def in_r(rscript: str, script: str, folder: Path) -> str:
    ended = subprocess.run(
        [rscript, "-e", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_ten_lines_of_the_page(rscript: str, tmp_path: Path) -> None:
    post = regression(("schooling",))
    post.releases[0].save(tmp_path / "release.json")
    post.save(tmp_path / "posterior.nc")
    (script,) = re.findall(r"^```r\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    printed = in_r(rscript, script, tmp_path)
    read = [float(v) for v in printed.splitlines()[1].split()]
    wanted = np.quantile(post.draws["schooling"], (0.025, 0.5, 0.975))
    np.testing.assert_allclose(read, wanted, atol=6e-4)
    assert (tmp_path / "posterior.png").stat().st_size > 5000


def test_variables_are_where_the_page_says(rscript: str, tmp_path: Path) -> None:
    post = regression(("schooling",), groups=3)
    path = post.save(tmp_path / "posterior.nc").name
    sizes = in_r(
        rscript,
        f'library(ncdf4); f <- nc_open("{path}"); cat(f$var[["posterior/schooling"]]$size, "\\n");'
        'cat(ncatt_get(f, "posterior", "status")$value, "\\n");'
        'x <- ncvar_get(f, "posterior/schooling"); cat(mean(x[2, , ]))',
        tmp_path,
    ).splitlines()
    assert sizes[0].split() == ["3", "1000", "4"]
    assert sizes[1].startswith("converged")
    assert float(sizes[2]) == pytest.approx(post.draws["schooling"][1].mean(), rel=1e-5)
