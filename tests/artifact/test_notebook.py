"""What a notebook shows of a release and of a posterior."""

from __future__ import annotations

from noisewise.artifact import notebook_html
from tests.report.pages import regression

EVIL = "<img src=x>"


def test_release() -> None:
    shown = regression((EVIL,)).releases[0]._repr_html_()
    assert "Release: linear-regression" in shown
    assert "differential privacy" in shown
    assert EVIL not in shown
    assert "&lt;img src=x&gt;*effect" in shown
    assert shown.count("<tr>") == 1 + 5
    grouped = regression(groups=30).releases[0]._repr_html_()
    assert "30 groups" in grouped
    assert grouped.count("<tr>") == 1 + notebook_html.MOST_ROWS
    assert "more rows" in grouped


def test_posterior() -> None:
    shown = regression((EVIL,))._repr_html_()
    assert "Posterior of effect on &lt;img src=x&gt;" in shown
    assert "converged: R-hat" in shown
    assert shown.count("<tr>") == 1 + 3
    assert EVIL not in shown
    many = regression(groups=30)._repr_html_()
    assert '<th scope="col">group</th>' in many
