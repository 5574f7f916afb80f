"""One page with every verdict and picture, from the files that runs left behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from experiments.reproduce import catalogue
from experiments.reproduce.figure import Figure
from experiments.reproduce.verdicts import Claim, judge

COLOURS = 64
INTRODUCTION = """# Reproduction of the papers

Every figure of the papers and every claim about it, tested. This page is written by
`noisewise reproduce --page docs/reproduction.md` (with `--quick`: fewer trials, same code, minutes
on two cores); nothing in it is typed by hand but the claims and reasons in
`experiments/*/expected.json`. Where there is a full run it is shown, and marked; all others are
quick ones. E1 to E19 are the papers' errors that this project corrects ([errata](errata.md)); "as
printed" is noise by the papers' sensitivity, "ours" by the
[proved one](proofs/sensitivity.md).

Privacy noise in these experiments comes from NumPy: they are simulations with known truth, not
releases of anyone's data.
"""


def write(
    page: Path, figures: Sequence[Figure], size: str, out: Path,
    claims: Callable[[Figure], Sequence[Claim]] = catalogue.claims,
) -> None:  # fmt: skip
    """The page, and in a folder of its name beside it each figure's picture and measures.

    Figures that were not run again are shown as that folder has them: full before quick, new before
    old. Claims are judged as they stand now.
    """
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    for figure in figures:
        told = _kept(figure, size, out, folder)
        if told is not None:
            rows = [judge(c, told["measures"], told["size"]).row() for c in claims(figure)]
            found.append({"figure": figure, "provenance": told, "verdicts": rows})
    lines = [INTRODUCTION, *_summary(found)]
    for entry in found:
        lines += _section(entry, f"{folder.name}/{entry['figure'].name}.png")
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _kept(figure: Figure, size: str, out: Path, folder: Path) -> dict[str, Any] | None:
    """Provenance and measures of the best run there is, copied to the folder if it is a new one."""
    record = folder / f"{figure.name}.json"
    old = _read(record) if record.exists() else None
    for kind in ("full", size):
        run = out / figure.name / kind
        if (run / "provenance.json").exists():
            told = {"size": kind, **_read(run / "provenance.json")}
            record.write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
            _small(run / "figure.png", folder / f"{figure.name}.png")
            return told
        if old is not None and old["size"] == kind:
            return old
    return old


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


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
        f"`{told['command']}`, seed {told['seed']}, {told['size']} run, commit {told['commit']}, "
        f"noisewise {versions['noisewise']}, jax {versions['jax']}, numpy {versions['numpy']}, "
        f"{told['device']}, {told['date']}, {told['computing']:,.0f} s of computing.", "",
    ]  # fmt: skip
    return [*lines, *_table(entry["verdicts"], with_figure=False), ""]


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
