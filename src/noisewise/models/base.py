"""The contract of a statistical model, and the list of the models that are known.

A model is one folder. Its ``__init__`` holds a light description, a subclass of `Model`, and
registers it. The four parts of a model are imported by name when they are first asked for, so that
the owner's half never loads the analyst's and the other way round:

* ``release.py`` with ``OWNER``, an `Owner`: what to publish, and how the owner asks for it;
* ``analyst.py`` with ``ANALYST``, an `Analyst`: from a release to a posterior, method by method;
* ``simulate.py`` with ``SIMULATOR``, a `Simulator`: simulated releases, for ``check`` and ``plan``;
* ``report.py`` with ``page``, the page that ``report`` writes about a result.

``infer``, ``check``, ``plan``, ``predict``, ``report``, the files and the command line ask the list
and know no model by name. This module imports ``artifact`` only.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from noisewise.artifact import ArgumentError, Censored, Release
from noisewise.artifact.release_forms import ReleaseForm, discover_with, forget_form, register_form
from noisewise.artifact.user_warnings import warn_user

if TYPE_CHECKING:
    import numpy as np

    from noisewise.inference.population import PublicFeatures
    from noisewise.inference.results import Posterior, Result
    from noisewise.inference.slabs import SlabMethod
    from noisewise.simulate.calibration_check import Check
    from noisewise.simulate.trials import Outcome, Scene, Trials

Progress = Callable[[int, int], None]
"""Called with steps done and steps in all."""

P = TypeVar("P")
"""A model's problem: everything its methods need, read from a release once."""

Method = Callable[[P, int, int, int, "Progress | None"], "Result"]
"""Problem, seed, chains, draws per chain and progress in; a result out."""

WordKind = Literal[
    "column",
    "columns",
    "bounds",
    "interval",
    "censored",
    "censored-interval",
    "cliques",
    "levels",
    "list",
    "fill",
    "level",
    "value",
    "assignments",
    "number",
    "numbers",
    "count",
    "flag",
    "text",
]
"""How the text of a command-line option becomes a Python value (``cli/model_commands.py``)."""


@dataclass(frozen=True)
class Word:
    """One argument of a model's release function, as the command line asks for it.

    The option is ``--name`` with dashes for underscores. ``planned`` tells whether ``plan`` asks
    for it too; an argument that only matters for real records, such as a fill value, is not.
    ``plan_default`` is what ``plan`` takes for a required argument: it reads no table.

    Example:
        >>> import noisewise as nw
        >>> nw.models.Word("x", "column", "the covariate", required=True).kind
        'column'
    """

    name: str
    kind: WordKind
    help: str
    required: bool = False
    default: object = None
    planned: bool = True
    plan_default: object = None


@dataclass(frozen=True)
class Owner:
    """The owner's part: the function that releases, and its own arguments.

    ``privacy`` names the shared privacy options that the function takes (``privacy/options.py``).
    ``prepare`` may turn the values of the command line into the function's keyword arguments.
    ``planned`` tells whether releases can be planned.

    Example:
        >>> import noisewise as nw
        >>> owner = nw.models.find("graphical-model").owner()
        >>> tuple(word.name for word in owner.words)
        ('clique', 'levels', 'fill', 'other')
    """

    release: Callable[..., Release]
    words: tuple[Word, ...]
    summary: str
    privacy: tuple[str, ...]
    prepare: Callable[[Mapping[str, object]], dict[str, object]] = dict
    planned: bool = True


def renaming(**names: str) -> Callable[[Mapping[str, object]], dict[str, object]]:
    """Return a ``prepare`` that gives words of the command line the function's own names."""
    return lambda words: {names.get(word, word): value for word, value in words.items()}


def with_censored_bounds(words: Mapping[str, object]) -> dict[str, object]:
    """Return the words of a command line with those of ``--censored`` among the bounds.

    The release functions have one argument for both: a ``Censored`` among the bounds.
    """
    joined = dict(words)
    cut, natural = joined.pop("censored", None), joined.pop("bounds", None)
    if isinstance(cut, Mapping):
        given = dict(natural) if isinstance(natural, Mapping) else {}
        if twice := [column for column in cut if column in given]:
            raise ArgumentError(f"censored: {twice[0]!r} has bounds already; give one of the two")
        return {**joined, "bounds": {**given, **cut}}
    if isinstance(cut, Censored):
        if natural is not None:
            raise ArgumentError("censored: there are bounds already; give one of the two")
        return {**joined, "bounds": cut}
    if cut is not None:
        raise TypeError("censored: must be a Censored, or one for each column")
    return dict(words)


@dataclass(frozen=True)
class Question:
    """What an analyst asks beyond the release: a prior, the model's own words, the method chosen.

    ``pool`` holds the public features of the groups where these are to learn from each other (the
    constant alone where there are none), and None where they are not.

    Example:
        >>> import noisewise as nw
        >>> nw.models.Question(words={"z": "age"}).only(("x", "y"), "linear-regression")
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ArgumentError: z: is no option of this model ...
    """

    prior: Any = None
    words: Mapping[str, Any] = field(default_factory=dict)
    method: str | None = None
    pool: PublicFeatures | None = None

    def only(self, known: Sequence[str], model: str) -> None:
        """Raise an ArgumentError at a word that the model does not know."""
        for word in self.words:
            if word not in known:
                has = f"it takes {', '.join(known)}" if known else "it takes none"
                raise ArgumentError(f"{word}: is no option of this model ({model}); {has}")


class Analyst(ABC, Generic[P]):
    """The analyst's part: problems, methods, and what can be asked of a posterior.

    Example:
        >>> import noisewise as nw
        >>> list(nw.models.find("graphical-model").analyst().methods)
        ['cgm', 'naive-mle', 'bayes']
    """

    methods: ClassVar[Mapping[str, Method[Any]]]
    """The methods by name, best first."""
    combining: tuple[str, ...] = ()
    """Methods that take several releases of the same records."""
    pooling: tuple[str, ...] = ()
    """Methods that let groups learn from each other, best first (``Question.pool``)."""
    posterior: ClassVar[type[Posterior]]
    """The class of the posteriors that ``restore`` makes."""
    summarising: bool = True
    """Whether ``keep="summary"`` can sum its posteriors up: they are draws by parameter."""
    least_records: int = 1
    """Records without which nothing can be inferred of a group; ``infer`` leaves it out."""

    def default_method(self, release: Release) -> str:
        """Return the method to use where none is named; the first, unless overridden."""
        return next(iter(self.methods))

    @abstractmethod
    def problem(self, releases: Sequence[Release], question: Question) -> P:
        """Read one release, or several of the same records, into what the methods need."""

    def cautions(
        self, problem: P, question: Question, releases: Sequence[Release]
    ) -> tuple[str, ...]:
        """Return warnings about the problem, before anything is sampled."""
        return ()

    def in_slabs(self, problem: P, method: str) -> SlabMethod | None:
        """Return how groups are summed up while they are sampled; None where all are held first."""
        return None

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> Posterior:
        """Return a posterior that was read from a file.

        ``common`` holds the fields that every posterior has, ``attributes`` what
        ``Posterior.attributes`` gave to the file: the others, with lists in place of tuples.
        """
        own: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()
        }
        return self.posterior(**common, **own)


class Simulator(ABC, Generic[P]):
    """The simulated releases behind ``check`` and ``plan``.

    Example:
        >>> import noisewise as nw
        >>> nw.models.find("linear-regression").simulator().yardstick(("naive",))
        ('exact',)
    """

    clamping_biases: bool = False
    """Whether clamped records bias the model's results: its methods do not know of bounds."""

    reference_method: str | None = None
    """The exact method, with whose intervals those of others are compared where it was run."""
    interval_methods: tuple[str, ...] = ()
    """The methods that give intervals, where not all do."""

    @abstractmethod
    def usual_methods(self, release: Release) -> tuple[str, ...]:
        """Return the methods worth trying, best first."""

    def yardstick(self, methods: tuple[str, ...]) -> tuple[str, ...]:
        """Return methods to run beside these for comparison, where that costs little."""
        return ()

    def posed(self, problem: P, method: str) -> P:
        """Return the problem as a method takes it: another where its default prior is another.

        The very same object where it is the same.
        """
        return problem

    @abstractmethod
    def template(self, problem: P, n: int | None) -> P:
        """Return the problem with one group of n records (None: as many as its median group)."""

    def planned_trials(self, problem: P) -> int:
        """Return the simulated releases of a plan for every ε, unless their number is given."""
        return 50

    @abstractmethod
    def from_prior(self, rng: np.random.Generator, problem: P, trials: int) -> Trials[P]:
        """Draw truths from the prior, and a simulated release of each."""

    @abstractmethod
    def scene(
        self, problem: P, n: int, guesses: Mapping[str, Any], trials: int, seed: int
    ) -> Scene[P]:
        """Make records at one guessed truth, for every trial of a plan."""

    @abstractmethod
    def run(
        self, trials: Trials[P], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer every trial by one method."""

    def run_planned(
        self, trials: Trials[P], method: str, seed: int, progress: Progress | None = None
    ) -> Outcome:
        """Infer every trial of a plan: as ``run`` does, unless mean widths take less."""
        return self.run(trials, method, seed, progress)

    @abstractmethod
    def settings(self, problem: P) -> dict[str, object]:
        """Return what is simulated, for people and files.

        At least ``what``, ``n``, ``mechanism`` and ``noise_scale``.
        """


class Model:
    """One statistical model: its name, its statistics, and where its parts are.

    The parts are files in the folder of the description, or of the description it derives from,
    unless a method that returns one is overridden.

    Example:
        >>> import noisewise as nw
        >>> nw.models.find("linear-regression").statistics
        ('gram', 'cell-sums')
    """

    name: ClassVar[str]
    """The model in release files and on the command line, such as ``linear-regression``."""
    statistics: ClassVar[tuple[str, ...]]
    """Kinds of statistics of which a release must hold at least one."""
    release_type: ClassVar[type[Release]] = Release
    also_reads: ClassVar[tuple[str, ...]] = ()
    """Other models whose releases can be inferred as this one, where the analyst asks for it."""
    asked_as: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """What ``model=`` may say of it, and the words that each stands for (``Question.words``)."""
    owner_file: ClassVar[str] = "release"
    """The file with the owner's part, where a folder holds several models."""

    def check(self, release: Release) -> None:
        """Raise a ReleaseError where the model's entries and the statistics do not fit."""
        return

    def owner(self) -> Owner:
        """Return the owner's part."""
        part: Owner = self._file(self.owner_file).OWNER
        return part

    def analyst(self) -> Analyst[Any]:
        """Return the analyst's part; an ArgumentError where nothing is left to infer."""
        part: Analyst[Any] = self._file("analyst").ANALYST
        return part

    def simulator(self) -> Simulator[Any]:
        """Return the simulator; an ArgumentError where nothing can be simulated."""
        part: Simulator[Any] = self._file("simulate").SIMULATOR
        return part

    def restore(self, common: Mapping[str, Any], attributes: Mapping[str, Any]) -> Posterior:
        """Return a posterior that was read from a file, as ``Analyst.restore`` does.

        A model overrides this where that takes less than the analyst's part, which imports JAX.
        """
        return self.analyst().restore(common, attributes)

    def readers(self) -> Mapping[bytes, Callable[[Path], Result]]:
        """Return who reads the model's own file formats, by the bytes they begin with."""
        return {}

    def page(self, result: Result | Release, check: Check | None = None) -> str:
        """Return the HTML page about a result."""
        written: str = self._file("report").page(result, check)
        return written

    def findings(self, result: Result | Release) -> tuple[str, ...]:
        """Return what was found, in plain sentences; none where the model has no words for it."""
        told = getattr(self._file("report"), "findings", None)
        return () if told is None else tuple(told(result))

    def _file(self, name: str) -> ModuleType:
        """Return one of the folder's files, imported when it is first asked for."""
        address = _address(type(self), name)
        if address is None:
            raise ArgumentError(f"model: {self.name!r} has no file {name}.py")
        return import_module(address)


MODEL_PARTS = {"owner": "release", "analyst": "analyst", "simulator": "simulate", "page": "report"}
"""The parts of every model beside its name and statistics, and the files that hold them."""

_MODELS: dict[str, Model] = {}

M = TypeVar("M", bound=type[Model])


def _missing_parts(model: type[Model]) -> list[str]:
    """Return what is neither an attribute of the class nor a file beside it."""
    missing = [name for name in ("name", "statistics") if not hasattr(model, name)]
    for part, file in {**MODEL_PARTS, "owner": model.owner_file}.items():
        if getattr(model, part) is getattr(Model, part) and _address(model, file) is None:
            missing.append(part)
    return missing


def _address(model: type[Model], file: str) -> str | None:
    """Return the module of that name in the folder of the class, or of the nearest ancestor's."""
    for kind in model.__mro__:
        is_folder = hasattr(sys.modules.get(kind.__module__), "__path__")
        if is_folder and find_spec(f"{kind.__module__}.{file}") is not None:
            return f"{kind.__module__}.{file}"
    return None


def register(model: M) -> M:
    """Make a model known to the whole library; usable as a decorator.

    Args:
        model: a subclass of `Model` that has all parts.

    Returns:
        The class itself.

    Example:
        >>> import noisewise as nw
        >>> from noisewise.models.linear_regression import LinearRegression
        >>> @nw.models.register
        ... class MyRegression(LinearRegression):
        ...     name = "my-regression"
        >>> "my-regression" in nw.models.names()
        True
        >>> nw.models.unregister("my-regression")
    """
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise ArgumentError("model: must be a subclass of noisewise.models.Model")
    if missing := _missing_parts(model):
        raise ArgumentError(
            f"model: {model.__name__} lacks {', '.join(missing)}; a model has name, statistics, "
            + ", ".join(MODEL_PARTS)
        )
    if model.name in _MODELS:
        raise ArgumentError(
            f"model: there is a model {model.name!r} already; there are {', '.join(_MODELS)}"
        )
    described = model()
    _MODELS[model.name] = described
    register_form(ReleaseForm(model.name, model.statistics, described.check, model.release_type))
    return model


def unregister(name: str) -> None:
    """Forget a model that was registered from outside (for tests and notebooks).

    Args:
        name: of the model; one that is not known is ignored.

    Example:
        >>> import noisewise as nw
        >>> from noisewise.models.linear_regression import LinearRegression
        >>> class Passing(LinearRegression):
        ...     name = "passing"
        >>> model = nw.models.register(Passing)
        >>> nw.models.unregister("passing")
        >>> "passing" in nw.models.names()
        False
    """
    if name in _MODELS and type(_MODELS[name]).__module__.startswith("noisewise."):
        raise ArgumentError(f"model: {name!r} comes with noisewise and stays")
    _MODELS.pop(name, None)
    forget_form(name)


def find(name: str) -> Model:
    """Return the model of that name; an ArgumentError names those there are.

    Args:
        name: as in release files and on the command line.

    Example:
        >>> import noisewise as nw
        >>> nw.models.find("exponential-family").statistics
        ('power-sums', 'tables')
        >>> nw.models.find("time-series")
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ArgumentError: model: there is no 'time-series'; there are ...
    """
    if name not in _MODELS:
        load_plugins()
    if name not in _MODELS:
        raise ArgumentError(f"model: there is no {name!r}; there are {', '.join(_MODELS)}")
    return _MODELS[name]


def find_asked(family: str, asked: str | None) -> tuple[Model, Mapping[str, Any]]:
    """Return the model as which a release is inferred, and the words that the analyst's stands for.

    Args:
        family: the model of the release.
        asked: what the analyst said by ``model=``; None for the release's own model.

    Example:
        >>> import noisewise as nw
        >>> model, words = nw.models.find_asked("linear-regression", "probit")
        >>> model.name, words
        ('logistic-regression', {'link': 'probit'})
    """
    own = find(family)
    if asked is None:
        return own, {}
    load_plugins()
    able = [m for m in _MODELS.values() if family in (m.name, *m.also_reads)]
    for model in able:
        if asked == model.name:
            return model, next(iter(model.asked_as.values()), {})
        if asked in model.asked_as:
            return model, model.asked_as[asked]
    there = [word for m in able for word in (m.asked_as or (m.name,))]
    raise ArgumentError(
        f"model: a {family} release can be inferred as {', '.join(there)}, not {asked!r}"
    )


def refuse_reserved(model: Model, words: Iterable[str]) -> None:
    """Raise an ArgumentError at a word that only ``model=`` may say."""
    reserved = {word for stands_for in model.asked_as.values() for word in stands_for}
    for word in words:
        if word in reserved:
            there = ", ".join(map(repr, model.asked_as))
            raise ArgumentError(f"{word}: is said by model=, which may be {there}")


def names() -> tuple[str, ...]:
    """Return the names of all models, in the order in which they were registered.

    Example:
        >>> import noisewise as nw
        >>> nw.models.names()[:2]
        ('linear-regression', 'exponential-family')
    """
    load_plugins()
    return tuple(_MODELS)


@cache
def load_plugins() -> None:
    """Import the models that installed packages declare as entry points ``noisewise.models``."""
    for entry in entry_points(group="noisewise.models"):
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001  # whatever the other package does wrong
            warn_user(
                f"the model {entry.name!r} of another package ({entry.value}) could not be loaded "
                f"and is left out: {type(error).__name__}: {error}"
            )


discover_with(load_plugins)
