"""One page with every verdict and picture, from the files that runs left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from experiments.reproduce.figure import Figure

COLOURS = 64
INTRODUCTION = """# Reproduction of the papers

Every figure of the papers and every claim about it, tested. This page is written by
`noisewise reproduce --page docs/reproduction.md` (with `--quick`: fewer trials, same code, minutes
on two cores); nothing in it is typed by hand but the claims and reasons in
`experiments/*/expected.json`. Where results of a full run are at hand they are shown, and marked;
all others are quick ones. E1 to E19 are the papers' errors that this project corrects; "as printed"
is noise by the papers' sensitivity, "ours" by the proved one (docs/proofs/sensitivity.md).

Privacy noise in these experiments comes from NumPy: they are simulations with known truth, not
releases of anyone's data.
"""


def write(page: Path, figures: Sequence[Figure], size: str, out: Path) -> None:
    """The page, and the pictures in a folder of its name beside it."""
    found = [entry for figure in figures if (entry := _result(figure, size, out))]
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    lines = [INTRODUCTION, *_summary(found)]
    for entry in found:
        name = f"{entry['figure'].name}.png"
        _small(entry["folder"] / "figure.png", pictures / name)
        lines += _section(entry, f"{pictures.name}/{name}")
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _result(figure: Figure, size: str, out: Path) -> dict[str, Any] | None:
    """Of a full run, where there is one."""
    for kind in ("full", size):
        folder = out / figure.name / kind
        if (folder / "verdicts.json").exists():
            told = {n: json.loads((folder / f"{n}.json").read_text("utf-8")) for n in _FILES}
            return {"figure": figure, "folder": folder, "size": kind, **told}
    return None


_FILES = ("verdicts", "provenance")


def _summary(found: Sequence[dict[str, Any]]) -> list[str]:
    rows = [row for entry in found for row in entry["verdicts"]]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    told = ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items()))
    surprises = [row for row in rows if not row["as_expected"]]
    lines = [f"**{len(found)} figures, {len(rows)} claims.** {told}.", ""]
    if surprises:
        names = ", ".join(row["id"] for row in surprises)
        lines += [f"Not as expected: {names}.", ""]
    lines += ["## Claims that do not hold, or differ", ""]
    for row in rows:
        if row["verdict"] != "holds":
            lines.append(
                f"- [{row['figure']}](#{_anchor(row['figure'])}), {row['where']}: {row['claim']} "
                f"Measured: {row['ours']:.3g} (wanted {row['limit']}). {row['why']}"
            )
    return [*lines, "", "## All verdicts", "", *_table(rows, with_figure=True), ""]


def _section(entry: dict[str, Any], picture: str) -> list[str]:
    figure, told = entry["figure"], entry["provenance"]
    versions = told["versions"]
    lines = [
        f"## {figure.name}", "", f"{figure.title} ({figure.paper}).", "",
        f"![{figure.title}]({picture})", "",
        f"`{told['command']}`, seed {told['seed']}, {entry['size']} run, commit "
        f"{told['commit']}, noisewise {versions['noisewise']}, jax {versions['jax']}, "
        f"numpy {versions['numpy']}, {told['device']}, {told['date']}, {told['seconds']:g} s"
        f"{_resumed(told)}.", "",
    ]  # fmt: skip
    return [*lines, *_table(entry["verdicts"], with_figure=False), ""]


def _resumed(told: dict[str, Any]) -> str:
    count = told["cells_from_an_earlier_run"]
    return f" (and {count} cells computed before, for another figure or run)" if count else ""


def _table(rows: Iterable[dict[str, Any]], *, with_figure: bool) -> list[str]:
    head = ["claim", "paper", "ours", "verdict"]
    head = ["figure", *head] if with_figure else [*head[:3], "test", head[3]]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        mark = "" if row["as_expected"] else f" (**expected: {row['expected']}**)"
        verdict, ours = f"{row['verdict']}{mark}", f"{row['ours']:.3g}"
        if with_figure:
            link = f"[{row['figure']}](#{_anchor(row['figure'])})"
            cells = [link, row["claim"], row["paper"], ours, verdict]
        else:
            told = f"{row['claim']} ({row['where']})"
            cells = [told, row["paper"], ours, f"{row['measure']} {row['limit']}", verdict]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return lines if len(lines) > 2 else []


def _anchor(name: str) -> str:
    """As GitHub makes it of a heading."""
    return name.lower().replace(".", "")


def _small(source: Path, target: Path) -> None:
    """Line art needs few colours."""
    with Image.open(source) as picture:
        picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)
