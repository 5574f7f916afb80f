"""``noisewise demo``: both people's journey on shipped data, told in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from noisewise.artifact import ArgumentError, Release
from noisewise.cli.console import plain_console
from noisewise.cli.inspect import show

if TYPE_CHECKING:
    from noisewise.inference import Result

FORMULA = "log_wage ~ schooling + C(sex)"
BOUNDS = {"log_wage": (0, 6), "schooling": (0, 24)}
LEVELS = {"sex": ["male", "female"]}
"""What the demo's owner releases: an hourly wage lies between 1 and 400."""
WHO = "schooling=12,sex=female"
"""Whose wage the demo predicts, in the words of the command line (chosen)."""
X, Y = "wine_per_capita", "cirrhosis_death_rate"
"""Covariate and response of the small table that shows the danger."""
EPSILON = 1.0
"""The budget of each release (chosen)."""
COPIES = 100
"""Files that another draw of the noise would have given (chosen)."""


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the demo's files.")
    ] = Path("demo-output"),
) -> None:
    """Release, inspect, infer, predict and report, on shipped data; and why noise matters."""
    console = plain_console()
    _make(out)
    release = _owner(out, console)
    post = _analyst(release, out, console)
    _danger(console)
    console.print("\n7. Everything about this posterior is in one page. Open it in a browser:")
    from noisewise import report

    # To be copied: never broken into lines.
    page = report.save(post, out / "report.html")
    console.print(f"   {page.resolve()}", soft_wrap=True)
    console.print("\nThe same by hand, or with data of your own:")
    for command in (
        f"noisewise inspect {out / 'release.json'}",
        f"noisewise infer {out / 'release.json'} --out {out / 'posterior.nc'}",
        f"noisewise predict {out / 'posterior.nc'} --at {WHO}",
        f"noisewise ledger show {out / 'ledger.db'}",
    ):
        console.print(f"   {command}", soft_wrap=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--out: {str(folder)!r} cannot be made: {error.strerror}") from None


def _owner(out: Path, console: Console) -> Release:
    """Release the sensitive table; return the public file's content."""
    from noisewise import datasets, release
    from noisewise.privacy.ledger import open_ledger

    console.print("THE OWNER", style="bold")
    table = datasets.wages()
    console.print(
        f"1. The sensitive table: {table.num_rows:,} employees with schooling, sex and the "
        "logarithm of their hourly wage. (It is made up: one more year of schooling raises wages "
        "by 9 %, and women earn 18 % less than men of the same schooling.)"
    )
    book = out / "ledger.db"
    with open_ledger(book, create=True) as ledger:
        if not any(a.dataset == "wages" for a in ledger.accounts()):
            ledger.set_budget("wages", epsilon=100.0, neighbours="replace-one")
    console.print(f"2. A ledger with a budget of epsilon = 100 for it: {book}")
    made = release.linear_regression(
        table, formula=FORMULA, bounds=BOUNDS, levels=LEVELS, epsilon=EPSILON, ledger=book,
        dataset="wages",
    )  # fmt: skip
    path = made.save(out / "release.json")
    console.print(
        f"3. Exact integer sums, noise from OpenDP, spend written down first. "
        f"The public file: {path}\n"
    )
    show(Release.load(path), console)
    return Release.load(path)


def _analyst(release: Release, out: Path, console: Console) -> Result:
    """Infer with the noise in mind; return the posterior."""
    from noisewise.inference import infer

    console.print("\nTHE ANALYST, who has that file and nothing else", style="bold")
    console.print(
        "4. What do wages go with? By a method that models the noise (exact), and by one that "
        "ignores it (naive):\n"
    )
    posts = {method: infer(release, method) for method in ("exact", "naive")}
    posts["exact"].save(out / "posterior.nc")
    table = Table(title="Change of the wage in per cent; 95 % intervals", title_justify="left")
    for name in ("", "method", "median", "lower", "upper"):
        table.add_column(name, justify="left" if name in ("", "method") else "right")
    names = {"schooling": "one more year of schooling", "C(sex)[T.female]": "women, beside men"}
    for name, words in names.items():
        for method, post in posts.items():
            percent = 100 * np.expm1(np.ravel(post.draws[name]))
            numbers = np.quantile(percent, [0.5, 0.025, 0.975])
            table.add_row(words, method, *(f"{v:.1f}" for v in numbers))
    console.print(table)
    console.print(posts["exact"].status)
    wage = posts["exact"].predict({"schooling": 12, "sex": "female"})
    low, high = np.exp(wage.interval(0.9))
    console.print(
        f"\n5. Prediction for women with 12 years of schooling: 90 % of them would earn between "
        f"{low:.0f} and {high:.0f} an hour.\n   With so many people epsilon = {EPSILON:g} is "
        "enough: intervals that allow for the noise are wider, and still far from zero."
    )
    return posts["exact"]


def _danger(console: Console) -> None:
    """Count, over many releases of one table, how often each method would have misled."""
    import pyarrow as pa

    from noisewise import datasets, release
    from noisewise.datasets import CIRRHOSIS_BOUNDS
    from noisewise.inference import infer

    table = datasets.cirrhosis()
    x, y = (np.asarray(table[c], dtype=float) for c in (X, Y))
    slope = float(np.polyfit(x, y, 1)[0])
    copies = [table.append_column("copy", pa.array([i] * table.num_rows)) for i in range(COPIES)]
    made = release.linear_regression(
        pa.concat_tables(copies), x=[X], y=Y, bounds={c: CIRRHOSIS_BOUNDS[c] for c in (X, Y)},
        epsilon=EPSILON, groups={"copy": range(COPIES)}, sizes="public",
    )  # fmt: skip
    console.print(
        "\n6. Why ignoring the noise is dangerous: a small table, of 46 US states, wine drinking "
        "and cirrhosis deaths (Brownlee 1965; imagine each row were a person). It is no secret: "
        f"without noise the slope is {slope:.2f}. Had the owner drawn other noise, the "
        f"analyst would have seen another file; of {COPIES} such files:\n"
    )
    shown = Table(title="Number of files in which the 95 % interval …", title_justify="left")
    shown.add_column("method")
    for name in ("holds that slope", "is sure of a sign", "is sure of the wrong sign"):
        shown.add_column(name, justify="right")
    counts = {}
    for method in ("exact", "naive"):
        drawn = infer(made, method, draws=250, progress=False).draws[X].reshape(COPIES, -1)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
        held, sure, wrong = (low <= slope) & (slope <= high), (low > 0) | (high < 0), high < 0
        counts[method] = [int(v.sum()) for v in (held, sure, wrong)]
        shown.add_row(method, *map(str, counts[method]))
    console.print(shown)
    held, sure, wrong = counts["naive"]
    console.print(
        f"Ignoring the noise gives an answer that looks precise and is not: its intervals miss in "
        f"{COPIES - held} of {COPIES}, and in {wrong} they are sure that wine protects the liver. "
        f"The exact method says what can be known from so few records at epsilon = {EPSILON:g}: "
        "here, little. More records, or a larger epsilon, would tell more; noisewise plan says how "
        "much."
    )
