"""A report says everything, escapes everything, and reads well: without a browser."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.cli.verbs import app
from noisewise.report import drawings, html
from tests.artifact.factories import FACTORIES
from tests.inference.regressions import release as released
from tests.models.linear_regression.factor_posteriors import (
    BOUNDS,
    LEVELS,
    WIDE,
    factor_posterior,
)
from tests.report.pages import of_family, regression

EVIL = "<script>alert(1)</script>"
SECTIONS = ("result", "promise", "released", "posterior", "privacy", "prediction", "convergence")


class Outline(HTMLParser):
    """Tags with their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


PAGES = {
    "one covariate": regression,
    "twenty covariates": lambda: regression(tuple(f"x{i}" for i in range(20))),
    "groups": lambda: regression(groups=30),
    "odd names": lambda: regression((EVIL, 'a"b')),
    "counts": lambda: of_family("poisson"),
    "categories": lambda: of_family("categorical"),
    "factors": lambda: factor_posterior(WIDE),
    "odd levels": lambda: factor_posterior("pay ~ C(sex)", {"sex": (EVIL, 'a"b')}),
    "factors, groups": lambda: factor_posterior(WIDE, groups=3),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_complete_and_accessible(name: str) -> None:
    page = nw.report.render(PAGES[name]())
    outline = Outline(page)
    tags = {tag for tag, _ in outline.found}
    assert not tags & {"script", "link", "img", "iframe", "b"}
    assert len(outline.all("h1")) == 1
    assert outline.all("html")[0]["lang"] == "en"
    assert {"main", "nav", "header", "footer"} <= tags
    assert all(
        attrs.get("role") == "img" and attrs.get("aria-label") for attrs in outline.all("svg")
    )
    assert len(outline.all("table")) == len(outline.all("caption")) > 0
    assert all(attrs.get("scope") in ("row", "col") for attrs in outline.all("th"))
    ids = [attrs["id"] for _, attrs in outline.found if attrs.get("id")]
    assert len(ids) == len(set(ids))
    anchors = {attrs["href"] for attrs in outline.all("a")}
    assert anchors <= {f"#{i}" for i in ids}
    assert not re.search(r"https?://|url\(|@import", page)
    assert "nan" not in re.sub(r"<[^>]*>", " ", page).lower().split()


def test_everything_asked_for_is_there() -> None:
    page = nw.report.render(regression())
    for name in SECTIONS:
        assert f'<section id="{name}"' in page
    assert "differential privacy" in page
    assert "variance due to privacy" in page
    assert "75%" in page  # sd 0.2, of which 0.1 would remain: three quarters of the variance
    assert "prior: what was believed before" in page
    assert "Not checked" in page


def test_warnings_are_shown() -> None:
    assert "Do not rely on these intervals" in nw.report.render(
        replace(regression(), method="naive")
    )
    stuck = {n: np.array(1.2) for n in ("dose", "intercept", "sigma2")}
    page = nw.report.render(replace(regression(), rhat=stuck))
    assert 'class="verdict bad"' in page
    assert "not converged: R-hat up to 1.200" in page


def test_what_a_posterior_does_not_carry_is_left_out() -> None:
    bare = replace(
        regression(), releases=(), guarantees=(), prior_draws=None, without_noise=None, prior=""
    )
    page = nw.report.render(bare)
    assert "does not say what was promised" in page
    assert '<section id="prediction"' not in page
    assert '<section id="released"' not in page


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_text_in_both_themes() -> None:
    css = Path(html.__file__).with_name("style.css").read_text()
    light, dark = (
        dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)[:2]
    )
    assert set(light) == set(dark)
    for theme in (light, dark):
        for text in ("ink", "muted", "accent", "warn"):
            for ground in ("paper", "soft"):
                assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0, 1), (-3.2, 17.9), (1e-9, 3e-9), (0.2414, 0.2957), (5, 5)):
        ticks = drawings.Scale(low, high, 0, 100).ticks()
        assert 1 <= len(ticks) <= 7
        assert all(low - 1e-12 <= t <= high + 1e-12 for t in ticks)


def test_command_writes_a_small_page(tmp_path: Path) -> None:
    post = regression(tuple(f"x{i}" for i in range(20)))
    names = tuple(post.draws)
    before = {n: np.zeros(20_000) for n in names}
    replace(post, prior_draws=lambda number: before).save(tmp_path / "p.nc")
    out = tmp_path / "r.html"
    result = CliRunner().invoke(app, ["report", str(tmp_path / "p.nc"), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert out.stat().st_size < 3_000_000
    again = CliRunner().invoke(app, ["report", str(tmp_path / "p.nc"), "-o", str(out)])
    assert again.exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["p.nc", "r.html"]


def test_a_place_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "p.nc"
    of_family("poisson").save(source)

    def asked(out: Path) -> str:
        with pytest.raises(ArgumentError) as refused:
            CliRunner().invoke(
                app, ["report", str(source), "--out", str(out)], catch_exceptions=False
            )
        return str(refused.value)

    assert "there is no folder" in asked(tmp_path / "absent" / "r.html")
    (tmp_path / "file").write_text("x")
    assert "is not a page; it will not be overwritten" in asked(tmp_path / "file")
    assert "cannot be written" in asked(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("noisewise.artifact.atomic_file.os.replace", full)
    assert "No space left on device" in asked(tmp_path / "r.html")
    assert sorted(os.listdir(tmp_path)) == ["file", "p.nc"]


def test_other_files_are_told_apart(tmp_path: Path) -> None:
    release = regression().releases[0]
    path = release.save(tmp_path / "r.json")
    with pytest.raises(ArgumentError, match="run noisewise infer on it first"):
        CliRunner().invoke(
            app, ["report", str(path), "-o", str(tmp_path / "o.html")], catch_exceptions=False
        )
    with pytest.raises(ArgumentError, match="No such file"):
        CliRunner().invoke(
            app, ["report", "absent.nc", "-o", str(tmp_path / "o.html")], catch_exceptions=False
        )


def test_partition_release_is_its_own_answer(tmp_path: Path) -> None:
    made = nw.release.posterior_quantile(
        nw.datasets.social_mobility(tracts=10), x=["pir"], y="kir", coefficient="pir", p=0.5,
        epsilon_bounds=2.0, epsilon_value=2.0, partitions=20,
    )  # fmt: skip
    page = nw.report.render(made)
    assert "The answer" in page
    assert html.number(made.quantile) in page
    assert "do not cover a private search that missed" in page
    assert "may have missed" not in page


def test_a_weak_search_is_on_the_page() -> None:
    made = FACTORIES["posterior-quantile-symmetric"]()
    page = nw.report.render(made)
    assert "it may have missed" in page


def test_graphical_model_has_a_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = {"a": rng.choice(["u", "v"], 300).tolist(), "b": rng.choice(["p", "q"], 300).tolist()}
    import pandas as pd

    tables = nw.release.graphical_model(
        pd.DataFrame(table), cliques=[("a", "b")], levels={"a": ["u", "v"], "b": ["p", "q"]},
        epsilon=2.0,
    )  # fmt: skip
    model = nw.infer(tables, method="naive-mle")
    page = nw.report.render(model)
    assert "Shares of a: u" in page
    assert model.method in page


def test_a_check_may_be_given_by_its_file(tmp_path: Path) -> None:
    settings = nw.release.exponential_family(
        nw.release.Blank(500), column="v", family="poisson", bounds=(0, 20), epsilon=1.0
    )
    check = nw.check(settings, ["exact"], trials=50)
    path = check.save(tmp_path / "check.json")
    release = nw.release.exponential_family(
        pa.table({"v": [1, 2, 3] * 50}), column="v", family="poisson", bounds=(0, 20),
        epsilon=1.0,
    )  # fmt: skip
    result = nw.infer(release, draws=200)
    assert nw.report.render(result, path) == nw.report.render(result, check)
    with pytest.raises(nw.ArgumentError, match=r"check: must be what nw\.check returned"):
        nw.report.render(result, 3)  # type: ignore[arg-type]
    with pytest.raises(nw.ArgumentError, match=r"^check: 'nowhere\.json' cannot be read"):
        nw.report.save(result, tmp_path / "page.html", check="nowhere.json")
    with pytest.raises(nw.ArgumentError, match=r"^cannot write"):
        check.save(tmp_path / "missing" / "check.json")


def test_the_check_of_another_model_is_refused() -> None:
    other = nw.simulate.Check({"family": "exponential-family", "what": "visits"}, ())
    with pytest.raises(ArgumentError, match="give the check of the same release"):
        nw.report.render(regression(), other)


def test_levels_are_drawn_against_their_reference() -> None:
    table = np.random.default_rng(0).uniform(0, 1, (200, 3))
    given = released([table], BOUNDS, grouped=False)
    page = nw.report.render(factor_posterior(WIDE, releases=(given,)))
    for level in ("female", "1", "none"):
        assert f">{level} (reference)</text>" in page
    for factor in ("sex", "region", "degree"):
        assert f"<figcaption>C({factor})</figcaption>" in page
        assert f"<figcaption>wages by {factor}: the mean of records</figcaption>" in page
        assert all(f">{level}" in page for level in LEVELS[factor])
    assert "<figcaption>wages over age</figcaption>" in page
    assert "<figcaption>C(sex)[T.male]</figcaption>" not in page.partition('id="convergence"')[0]
    assert "times wider by privacy" in page


def test_a_reference_that_leaves_deviations_unknown() -> None:
    """What a sum of coefficients would cost without privacy is not made up."""
    page = nw.report.render(factor_posterior().with_reference(region=9))
    cost = page.partition('id="privacy"')[2].partition("</section>")[0]
    assert "C(sex)[T.male]" in cost
    assert "intercept" not in cost


def test_long_names_are_broken_not_cut() -> None:
    name = "C(occupation)[T.managers, directors and senior officials of the public service]"
    drawn = drawings.bars("cost", (name, "b"), np.array([0.5, 0.2]))
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert " ".join(words[:-3]).replace("&#x27;", "'") == name
    assert max(map(len, words)) <= drawings.CHARACTERS


def test_a_few_draws_far_out_leave_a_drawing_its_shape() -> None:
    from noisewise.plots import near_interval, window
    from noisewise.report.drawings import axis_number

    rng = np.random.default_rng(0)
    drawn = rng.normal(0, 1, 4000)
    assert near_interval(drawn) == (drawn.min(), drawn.max())
    drawn[7] = -5e8
    for low, high in (near_interval(drawn), window(rng.normal(0, 3, 9000), drawn)):
        assert -40 < low < -2
        assert 2 < high < 40
    assert [axis_number(v) for v in (1e4, 19_500, 5e8, 0.25)] == [
        "10,000",
        "19,500",
        "500M",
        "0.25",
    ]
