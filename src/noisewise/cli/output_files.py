"""Where a release goes, and what is said when it is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import typer

from noisewise.artifact import ArgumentError, NoisewiseError, Release, ReleaseError
from noisewise.cli import options as o

PAGE = b"<!doctype html>"


def writable(
    out: Path,
    ours: Callable[[Path], bool] | None = None,
    what: str = "release",
    option: str = "--out",
) -> None:
    """Checked before budget or time is spent: a result that cannot be written would be lost.

    A file that is there already is replaced only if it is ``ours``, a release unless told.
    """
    ours = ours or _is_release
    if not out.parent.is_dir():
        raise ArgumentError(f"{option}: there is no folder {str(out.parent)!r}")
    # A device or a pipe would be replaced by an ordinary file.
    if (out.exists() and not out.is_file()) or not os.access(out.parent, os.W_OK):
        raise ArgumentError(f"{option}: {str(out)!r} cannot be written")
    if out.exists() and not ours(out):
        raise ArgumentError(
            f"{option}: {str(out)!r} exists and is not a {what}; it will not be overwritten"
        )


def is_page(path: Path) -> bool:
    """Whether a file may be one of our pages: HTML it is, at least."""
    with open(path, "rb") as opened:
        return opened.read(len(PAGE)).lower() == PAGE


def _is_release(path: Path) -> bool:
    try:
        Release.load(path)
    except ReleaseError:
        return False
    return True


def finish(release: Release, out: Path, as_json: bool, ledger: str | None = None) -> None:
    """Save it, and say what was promised."""
    try:
        release.save(out)
    except ReleaseError:
        # The budget is spent: what it bought must not be lost to a full disk.
        typer.echo(release.to_json())
        typer.echo("the release is on standard output instead", err=True)
        raise
    if as_json:
        spent = {"epsilon": release.guarantee.epsilon, "rho": release.guarantee.rho}
        o.show_json({"out": str(out), "family": release.family, **spent})
    else:
        typer.echo(f"wrote {out}: {release.statement()}{_booked(release, ledger)}")


def _booked(release: Release, ledger: str | None) -> str:
    """On which dataset: a slip of the account shows here, or never."""
    if release.receipt is None or ledger is None:
        return ""
    dataset = release.receipt.dataset
    return f" Booked on dataset {dataset!r}{_left(ledger, dataset)}."


def _left(ledger: str, dataset: str) -> str:
    from noisewise.privacy.ledger import open_ledger

    try:
        with open_ledger(ledger) as book:
            (account,) = (a for a in book.accounts() if a.dataset == dataset)
    except (NoisewiseError, ValueError):
        # The release is made and written: a ledger out of reach by now is no failure of it.
        return ""
    return f", where {account.parameter} {account.remaining:g} of {account.budget:g} is left"
