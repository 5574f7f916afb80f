"""The forms of release a file may hold, one per model.

A model registers its form when it is imported; reading a file asks the form whether the parts of
the release fit each other. A form has the name of its model, which the file calls ``family``; a
``kind`` is always that of a statistic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisewise.artifact.errors import ReleaseError
from noisewise.artifact.validation import shown

if TYPE_CHECKING:
    from noisewise.artifact.release import Release


@dataclass(frozen=True)
class ReleaseForm:
    """What a release of one model holds, as far as the file itself can tell.

    ``statistics`` are the kinds of which the release must hold at least one. ``check`` raises a
    ReleaseError where the model's entries (``Release.model``) and the statistics do not fit.
    ``release_type`` is the class that stands for such a release.
    """

    name: str
    statistics: tuple[str, ...]
    check: Callable[[Release], None]
    release_type: type[Release]


_FORMS: dict[str, ReleaseForm] = {}
_DISCOVERIES: list[Callable[[], None]] = []


def register_form(form: ReleaseForm) -> None:
    """Make releases of one more model known to every reader of files."""
    _FORMS[form.name] = form


def forget_form(name: str) -> None:
    """Forget a form again."""
    _FORMS.pop(name, None)


def discover_with(load: Callable[[], None]) -> None:
    """Call ``load`` when a name is not known: it may register further forms."""
    _DISCOVERIES.append(load)


def discover() -> None:
    """Load what may register further forms and statistics."""
    for load in _DISCOVERIES:
        load()


def find_form(name: object) -> ReleaseForm:
    """Return the form of that name; a ReleaseError names those there are."""
    if isinstance(name, str) and name not in _FORMS:
        discover()
    if not isinstance(name, str) or name not in _FORMS:
        raise ReleaseError(f"family must be one of {', '.join(_FORMS)}, not {shown(name)}")
    return _FORMS[name]


def release_type(name: object) -> type[Release]:
    """Return the class for releases of that model; the plain one where the name is not known."""
    from noisewise.artifact.release import Release

    return _FORMS[name].release_type if isinstance(name, str) and name in _FORMS else Release
