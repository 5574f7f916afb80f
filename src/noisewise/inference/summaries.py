"""Posteriors of many groups without their draws: means, quantiles and convergence of each.

A summary of a million groups takes some 80 bytes for each group and parameter; four chains of a
thousand draws take 32,000. What needs draws is refused in a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.inference.results import (
    Posterior,
    Result,
    convergence_in_words,
    poorly_sampled,
)

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = {"q025": (1 - 0.95) / 2, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q975": (1 + 0.95) / 2}
"""The quantiles that are kept, by their names in tables and files; the outer ones computed as
``Posterior.summary`` does, so that no digit differs."""
STATISTICS = ("mean", "sd", *QUANTILES, "rhat", "ess")
"""What is kept of each group and parameter, in this order."""
INTERVALS = {0.95: ("q025", "q975"), 0.5: ("q25", "q75")}
"""The central intervals that the quantiles give."""
ASK_FOR_DRAWS = "a summary keeps no draws; infer with keep='draws' (--keep draws)"
"""What is said where draws are needed."""


class GroupSummaries(NamedTuple):
    """Numbers (statistic, parameter, group) in the order of ``STATISTICS``; tries per group."""

    numbers: np.ndarray
    tries: np.ndarray


def summary_numbers(draws: np.ndarray, rhat: np.ndarray, ess: np.ndarray) -> np.ndarray:
    """Return numbers (statistic, parameter, group) of draws (parameter, group, chain, draw).

    Args:
        draws: of all parameters.
        rhat: R-hat (parameter, group).
        ess: effective draws, likewise.
    """
    flat = draws.reshape(*draws.shape[:2], -1)
    parts = [
        flat.mean(axis=-1)[None],
        flat.std(axis=-1, ddof=1)[None],
        np.quantile(flat, tuple(QUANTILES.values()), axis=-1),
        rhat[None],
        ess[None],
    ]
    return np.concatenate(parts)


def group_summaries(post: Posterior) -> GroupSummaries:
    """Return the numbers of a posterior, one parameter at a time."""
    parts = []
    for name, drawn in post.draws.items():
        values = drawn[None] if post.keys is None else drawn
        judged = (np.atleast_1d(side[name])[None] for side in (post.rhat, post.ess))
        parts.append(summary_numbers(values[None], *judged))
    numbers = np.concatenate(parts, axis=1)
    tries = np.broadcast_to(post.details.get("tries", 1), numbers.shape[-1:])
    return GroupSummaries(numbers, tries.astype(int))


@dataclass(frozen=True)
class SummaryWords:
    """What is said of a summary, in words: where it comes from, and what to know of it.

    ``model`` is the statistical model; ``group_column`` the column of the groups' keys, None where
    there are no groups.
    """

    model: str
    method: str
    title: str
    prior: str
    group_column: str | None
    guarantees: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def words_of(post: Posterior) -> SummaryWords:
    """Return what is said of a posterior."""
    columns = [r.groups.column for r in post.releases if r.groups is not None]
    column = None if post.keys is None else (columns[0] if columns else "group")
    return SummaryWords(
        post.model_name, post.method, post.title, post.prior, column, post.guarantees, post.cautions
    )


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorSummary(Result):
    """Mean, deviation, quantiles, R-hat and effective draws of every group and parameter.

    What ``infer`` returns where ``keep="summary"`` was asked for: no draws. ``numbers`` holds an
    array (parameter, group) for each of ``mean``, ``sd``, the quantiles ``q025``, ``q25``, ``q50``,
    ``q75`` and ``q975``, ``rhat`` and ``ess``; ``parameters`` names its rows and ``keys`` its
    columns, the groups (None where there are none). ``tries`` says how often each group was sampled
    until it converged or was given up.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> owns = pd.DataFrame({"owns": [0, 1, 1, 1] * 50})
        >>> release = nw.release.exponential_family(
        ...     owns, column="owns", family="bernoulli", epsilon=1.0
        ... )
        >>> summary = nw.infer(release, keep="summary")
        >>> list(summary.summary().columns)
        ['mean', 'sd', 'median', 'lower', 'upper', 'rhat', 'ess']
        >>> nw.load(summary.save("summary.parquet")).parameters
        ('p',)
        >>> summary.draws
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ArgumentError: draws: a summary keeps no draws; infer with ...
    """

    parameters: tuple[str, ...]
    numbers: Mapping[str, np.ndarray]
    keys: tuple[Level, ...] | None
    tries: np.ndarray
    words: SummaryWords

    model_name: ClassVar[str] = "posterior summary"

    @property
    def method(self) -> str:  # type: ignore[override]
        """How it was inferred."""
        return self.words.method

    @property
    def title(self) -> str:
        """Return what the posterior is of, such as ``spend on age, income``."""
        return self.words.title

    @property
    def prior(self) -> str:
        """Return the prior, in words."""
        return self.words.prior

    @property
    def guarantees(self) -> tuple[str, ...]:
        """Return what each release promised the people behind it."""
        return self.words.guarantees

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to know before the numbers, a sentence each, without its full stop."""
        return self.words.cautions

    @cached_property
    def _poor(self) -> np.ndarray:
        """Whether each group lacks convergence."""
        return poorly_sampled(self.numbers["rhat"], self.numbers["ess"])

    @property
    def unconverged(self) -> tuple[Level | None, ...]:
        """Return the keys of the groups that have not converged (None: the only one)."""
        keys = (None,) if self.keys is None else self.keys
        return tuple(keys[i] for i in np.flatnonzero(self._poor))

    @property
    def converged(self) -> bool:
        """Return whether R-hat is below 1.01 and 400 draws are effective, everywhere."""
        return not self._poor.any()

    @property
    def convergence(self) -> str:
        """Say whether it converged, and what to do if not."""
        if self.keys is not None and not self.keys:
            return "there are no groups in this part"
        groups = None if self.keys is None else len(self.keys)
        return convergence_in_words(
            int(self._poor.sum()), groups, self.numbers["rhat"], self.numbers["ess"]
        )

    @property
    def status(self) -> str:
        """Say whether it converged, what to do if not, and what else to know."""
        return ". ".join((self.convergence, *self.cautions))

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return mean, sd, median, central interval, R-hat and effective draws, by parameter.

        Args:
            interval: probability of the central interval: 0.95 or 0.5.

        Returns:
            A table with index ``parameter``, or (``group``, ``parameter``) where there are groups.
        """
        import pandas as pd

        from noisewise.inference.summary_table import summary_table

        low, high = _ends(interval)
        columns = {"mean": "mean", "sd": "sd", "median": "q50", "lower": low, "upper": high}
        columns |= {"rhat": "rhat", "ess": "ess"}
        groups = self.numbers["mean"].shape[1]
        content: dict[str, Any] = {"parameter": np.repeat(self.parameters, groups).astype(object)}
        content |= {name: self.numbers[source].ravel() for name, source in columns.items()}
        table = pd.DataFrame(content)
        if self.keys is None:
            return summary_table(table.set_index("parameter"), interval)
        table.insert(0, "group", [*self.keys] * len(self.parameters))
        return summary_table(table.set_index(["group", "parameter"]), interval)

    def table(self) -> pd.DataFrame:
        """Return all that is kept, one row per group and parameter, the groups in their order.

        Columns: the groups' key, named as in the release; ``parameter``, ``mean``, ``sd``,
        ``q025``, ``q25``, ``q50``, ``q75``, ``q975``, ``rhat``, ``ess``; ``tries`` and
        ``converged``, of the group.
        """
        import pandas as pd

        size, groups = self.numbers["mean"].shape
        content: dict[str, Any] = {"parameter": [*self.parameters] * groups}
        content |= {name: self.numbers[name].T.ravel() for name in STATISTICS}
        content |= {"tries": np.repeat(self.tries, size), "converged": np.repeat(~self._poor, size)}
        table = pd.DataFrame(content)
        if self.keys is not None:
            column = self.words.group_column or "group"
            names = [column if column not in content else f"{column} (group)", *table.columns]
            table.insert(0, names[0], [key for key in self.keys for _ in range(size)])
        return table

    def by_group(self, parameter: str | None = None, *, interval: float = 0.95) -> pd.DataFrame:
        """Return one row per group, for a map: where a parameter lies.

        Ranks and probabilities need draws: ``infer`` with ``keep="draws"``.

        Args:
            parameter: which; may be left out where there is one only.
            interval: probability of the central interval: 0.95 or 0.5.

        Returns:
            A table whose index holds the groups' keys, named as in the release: ``mean``, ``sd``,
            ``median``, ``lower``, ``upper``, ``rhat``, ``ess`` of the parameter; ``converged`` of
            the group.
        """
        import pandas as pd

        if self.keys is None:
            raise ArgumentError("parameter: groups are compared, and this summary has none")
        if parameter is None and len(self.parameters) == 1:
            parameter = self.parameters[0]
        if parameter not in self.parameters:
            raise ArgumentError(
                f"parameter: must be one of {', '.join(self.parameters)}, not {parameter!r}"
            )
        row, (low, high) = self.parameters.index(parameter), _ends(interval)
        columns = {"mean": "mean", "sd": "sd", "median": "q50", "lower": low, "upper": high}
        columns |= {"rhat": "rhat", "ess": "ess"}
        content: dict[str, Any] = {n: self.numbers[source][row] for n, source in columns.items()}
        index = pd.Index([*self.keys], name=self.words.group_column or "group")
        return pd.DataFrame({**content, "converged": ~self._poor}, index=index)

    @property
    def draws(self) -> NoReturn:  # type: ignore[override]
        """Raise an ArgumentError: a summary keeps no draws."""
        raise ArgumentError(f"draws: {ASK_FOR_DRAWS}")

    @property
    def covariates(self) -> NoReturn:
        """Raise an ArgumentError: they are asked for to predict, which needs draws."""
        raise ArgumentError(f"predict: {ASK_FOR_DRAWS}")

    def predict(self, new_x: Mapping[str, Any] | None = None, *, seed: int = 0) -> NoReturn:
        """Raise an ArgumentError: predictions need draws."""
        raise ArgumentError(f"predict: {ASK_FOR_DRAWS}")

    def ranks(self, parameter: str | None = None) -> NoReturn:
        """Raise an ArgumentError: ranks need draws."""
        raise ArgumentError(f"ranks: {ASK_FOR_DRAWS}")

    def probability_above(self, threshold: float, parameter: str | None = None) -> NoReturn:
        """Raise an ArgumentError: probabilities need draws."""
        raise ArgumentError(f"probability_above: {ASK_FOR_DRAWS}")

    def sample(self, n: int, *, seed: int = 0) -> NoReturn:
        """Raise an ArgumentError: synthetic records need draws."""
        raise ArgumentError(f"sample: {ASK_FOR_DRAWS}")

    def marginal(self, columns: str | Iterable[str]) -> NoReturn:
        """Raise an ArgumentError: probabilities need draws."""
        raise ArgumentError(f"marginal: {ASK_FOR_DRAWS}")

    def to_arviz(self) -> NoReturn:
        """Raise an ArgumentError: ArviZ reads draws."""
        raise ArgumentError(f"to_arviz: {ASK_FOR_DRAWS}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a Parquet file for ``nw.load`` and other tools; it appears whole or not at all.

        Its rows are those of ``table()``.
        """
        from noisewise.inference import summary_files

        return summary_files.save(self, Path(path))

    def __repr__(self) -> str:
        many = "" if self.keys is None else f" in {len(self.keys)} groups"
        return f"<PosteriorSummary of {self.title}{many} by {self.method}: {self.status}>"

    def _repr_html_(self) -> str:
        """Return for notebooks where the parameters lie, and whether to trust it."""
        from noisewise.artifact import notebook_html as notebook
        from noisewise.inference.summary_table import told_rows

        rows = self.summary().head(notebook.MOST_ROWS + 1).reset_index()
        head, cells = told_rows(rows, ("median", "lower", "upper", "mean", "sd"))
        return notebook.fragment(
            f"Posterior of {self.title}, without draws",
            (f"Method {self.method}; 95 % intervals. {self.status}", *self.guarantees),
            head, cells,
        )  # fmt: skip


def posterior_summary(
    parameters: Sequence[str],
    parts: Sequence[GroupSummaries],
    keys: tuple[Level, ...] | None,
    words: SummaryWords,
) -> PosteriorSummary:
    """Return the summary of groups in several parts, which follow each other."""
    size = len(parameters)
    empty = np.zeros((len(STATISTICS), size, 0))
    numbers = np.concatenate([empty, *(p.numbers for p in parts)], axis=2)
    tries = np.concatenate([np.zeros(0, int), *(p.tries for p in parts)])
    return PosteriorSummary(
        tuple(parameters), dict(zip(STATISTICS, numbers, strict=True)), keys, tries, words
    )


def summarised(post: Posterior) -> PosteriorSummary:
    """Return the summary of a posterior, whose draws may then be dropped."""
    return posterior_summary(tuple(post.draws), [group_summaries(post)], post.keys, words_of(post))


def _ends(interval: float) -> tuple[str, str]:
    """Return the names of the quantiles at the ends of a central interval."""
    if interval not in INTERVALS:
        raise ArgumentError(
            f"interval: must be 0.95 or 0.5, not {interval!r}: other quantiles were not kept; "
            "infer with keep='draws' (--keep draws)"
        )
    return INTERVALS[interval]
