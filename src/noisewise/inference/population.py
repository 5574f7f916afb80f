"""What pooled groups share: the population's draws, public features, ranks and exceedances.

A pooled posterior has two levels: the parameters of each group, and those of the population from
which the groups are drawn. ``PopulationPosterior`` holds the second. Whether the data or the prior
speaks is told by comparing both distributions: the data have spoken where they halved the distance
of the quartiles. A deviation between groups can also be bounded from above only, where zero is
nearly as credible as its mean: then the width of the groups' intervals rests on its prior.

Features of groups must be public, since nothing protects them: the people in the data are protected
by the noise of the release alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Level
from noisewise.artifact.validation import shown
from noisewise.numerics.convergence import diagnose

if TYPE_CHECKING:
    import pandas as pd

FEWEST_GROUPS = 3
"""Groups below which no spread between them can be learnt (chosen)."""
POPULATION_RHAT = 1.02
"""R-hat of the population below which chains are taken to agree (chosen)."""
POPULATION_ESS = 200
"""Effective draws of the population that are enough for its quantiles (chosen)."""
LEAST_CONTRACTION = 0.5
"""Share of the prior's interquartile range that data must take away to have spoken (chosen)."""
MAX_LOWER_SHARE = 0.25
"""The 2.5 % quantile of a deviation over its median, below which it is bounded from above only
(chosen): 0.05 for a uniform law that begins at zero, 0.19 for a Rayleigh law, 0.5 for a normal law
whose mean is four of its deviations."""
LEARNT, MOSTLY_PRIOR, UPPER_BOUND = "learnt from data", "mostly prior", "upper bound only"
"""What can be said of a parameter of the population."""
SIZE_EXPONENT = "size exponent"
"""The population's parameter by which variance between groups falls with their size."""
SIZE_POWER, SIZE_POWER_SD = 0.3, 0.45
"""Mean and deviation of its prior: those of 57 groupings of real tables
(``experiments.pooling.group_sizes``; docs/evidence-small-areas.md)."""
LOG_SIZE = "log size"
"""The feature that every group has: the logarithm of its size."""
SIZE_EFFECT = 0.4
"""Prior deviation of what a standard deviation of log size shifts groups by, in deviations between
groups: that of 82 parameters of the same groupings."""
LEAST_SPREAD_OF_SIZES = 1e-6
"""Deviation of log sizes below which they are taken for alike (chosen)."""
SEEN_SIZE = 3.0
"""Noise scales from which a secret size is taken as it was released (chosen)."""
DECILE = 0.1
"""Share of the groups in the top and in the bottom decile."""
QUARTILES_APART = 1.3489795
"""Distance of the quartiles of a normal law, in its deviations."""
MAX_RANKS = 2 * 10**8
"""Ranks that are held in memory together (chosen: 0.8 GB); beyond, draws are thinned."""
MAX_COLLINEARITY = 1e-6
"""Relative size of what other features leave of one, below which they hold it all (chosen)."""


@dataclass(frozen=True, eq=False)
class PopulationPosterior:
    """Draws of the population's parameters, arrays (chain, draw) by name.

    ``prior_draws`` holds draws of the same parameters from the prior, of any number, to compare
    with (of regressions: given the scales of the columns, which the release tells soonest).
    ``deviations`` names those parameters that are deviations between groups. ``variance`` holds, by
    parameter of the groups, the median variance between groups about what their features say: one
    number, or one per group. ``features`` are the public ones, None for none.

    Example:
        >>> import numpy as np
        >>> from noisewise.inference.population import PopulationPosterior
        >>> rng = np.random.default_rng(0)
        >>> population = PopulationPosterior(
        ...     {"mean": rng.normal(2, 0.1, (4, 500)), "sd": abs(rng.normal(0, 1, (4, 500)))},
        ...     {"mean": rng.normal(0, 3, 5000), "sd": abs(rng.normal(0, 1, 5000))},
        ...     deviations=("sd",),
        ... )
        >>> population.judgement
        {'mean': 'learnt from data', 'sd': 'mostly prior'}
        >>> list(population.summary().columns)
        ['mean', 'sd', 'lower', 'upper', 'rhat', 'ess', 'judgement']
    """

    draws: Mapping[str, np.ndarray]
    prior_draws: Mapping[str, np.ndarray]
    deviations: tuple[str, ...] = ()
    variance: Mapping[str, np.ndarray] = field(default_factory=dict)
    features: PublicFeatures | None = None

    def __post_init__(self) -> None:
        if absent := [name for name in self.draws if name not in self.prior_draws]:
            raise ValueError(f"prior_draws: lacks {absent[0]!r}")

    @cached_property
    def _diagnosed(self) -> tuple[dict[str, float], dict[str, float]]:
        pairs = {n: diagnose(np.asarray(d, float)) for n, d in self.draws.items()}
        return {n: float(p[0]) for n, p in pairs.items()}, {
            n: float(p[1]) for n, p in pairs.items()
        }

    @property
    def rhat(self) -> dict[str, float]:
        """Return R-hat by parameter."""
        return self._diagnosed[0]

    @property
    def ess(self) -> dict[str, float]:
        """Return the effective number of draws by parameter."""
        return self._diagnosed[1]

    @property
    def converged(self) -> bool:
        """Return whether R-hat is below 1.02 and 200 draws are effective, for every parameter."""
        return (
            max(self.rhat.values()) < POPULATION_RHAT and min(self.ess.values()) >= POPULATION_ESS
        )

    @property
    def judgement(self) -> dict[str, str]:
        """Return by parameter whether the data or the prior says where it lies."""
        return {name: self._judged(name) for name in self.draws}

    def _judged(self, name: str) -> str:
        after, before = np.ravel(self.draws[name]), np.ravel(self.prior_draws[name])
        left = _quartile_distance(after) / max(_quartile_distance(before), np.finfo(float).tiny)
        if left > 1 - LEAST_CONTRACTION:
            return MOSTLY_PRIOR
        lower, median = np.quantile(after, (0.025, 0.5))
        if name in self.deviations and lower < MAX_LOWER_SHARE * median:
            return UPPER_BOUND
        return LEARNT

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to know before the numbers, a sentence each, without its full stop."""
        said = []
        unlearnt = [n for n, j in self.judgement.items() if j == MOSTLY_PRIOR]
        sizes = SIZE_EXPONENT in unlearnt
        unlearnt = [name for name in unlearnt if not _is_of_sizes(name)]
        bounded = [n for n, j in self.judgement.items() if j == UPPER_BOUND]
        if unlearnt:
            said.append(
                f"The release tells little of the population's {', '.join(unlearnt)}: what is said "
                "of it is mostly the prior"
            )
        if bounded:
            said.append(
                f"The release bounds {', '.join(bounded)} from above only: how much groups differ "
                "was not learnt, and the width of their intervals rests on its prior"
            )
        if sizes:
            said.append(
                "The release does not say whether small groups differ more than large ones: the "
                "width of small groups' intervals rests on what was seen in other tables"
            )
        return tuple(said)

    @property
    def convergence(self) -> str:
        """Say whether the population converged, and what to do if not."""
        if self.converged:
            return "population converged"
        return (
            f"population not converged: R-hat up to {max(self.rhat.values()):.3f}, "
            f"{min(self.ess.values()):.0f} effective draws at the least (wanted: below "
            f"{POPULATION_RHAT}, at least {POPULATION_ESS}). Do not use these results: leave out "
            "the groups that the noise hides most (groups=), or infer the groups without pooling"
        )

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Return mean, sd, central interval, R-hat, effective draws and who speaks, by parameter.

        Args:
            interval: probability of the central interval.

        Returns:
            A table with index ``parameter``.
        """
        import pandas as pd

        tails = _tails(interval)
        flat = {name: np.ravel(drawn) for name, drawn in self.draws.items()}
        rows = [
            (d.mean(), d.std(ddof=1), *np.quantile(d, tails), self.rhat[n], self.ess[n], j)
            for (n, d), j in zip(flat.items(), self.judgement.values(), strict=True)
        ]
        columns = ["mean", "sd", "lower", "upper", "rhat", "ess", "judgement"]
        return pd.DataFrame(rows, pd.Index(list(flat), name="parameter"), columns)

    def shrinkage(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return 1 - (posterior variance)/(variance between groups), by parameter, one per group.

        Near 1 a group's own records speak; near 0 (or below, where the population's mean is itself
        uncertain) the population does. Posterior variances are those of normal laws with the same
        quartiles, since tails may be so long that there is none.

        Args:
            draws: of the groups' parameters, arrays (group, chain, draw) by name.
        """
        return {
            name: 1 - _robust_variance(draws[name]) / np.asarray(between)
            for name, between in self.variance.items()
        }


def _is_of_sizes(name: str) -> bool:
    return name in (SIZE_EXPONENT, LOG_SIZE) or name.startswith(f"{LOG_SIZE} on ")


def _quartile_distance(values: np.ndarray) -> float:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low)


def _robust_variance(draws: np.ndarray) -> np.ndarray:
    """Return the variance of a normal law with the quartiles of the draws, of every group."""
    low, high = np.quantile(draws, (0.25, 0.75), axis=(-2, -1))
    return np.asarray(((high - low) / QUARTILES_APART) ** 2)


def _tails(interval: float) -> tuple[float, float]:
    if not 0 < interval < 1:
        raise ArgumentError(f"interval: must be between 0 and 1, not {interval!r}")
    return (1 - interval) / 2, (1 + interval) / 2


def log_relative_sizes(n: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """Return the log of every group's size over the geometric mean of the sizes that are known.

    Zero, as of a group of middling size, where nothing is known of it: of groups without records,
    and where the noise of a secret size may be all there is to see; for all groups, where secret
    sizes differ no more than their noise.

    Args:
        n: sizes of the groups; secret ones as the release says them.
        noise: scale of the noise on secret sizes.
    """
    known = n > SEEN_SIZE * noise
    logs = np.log(np.where(known, n, 1.0))
    if not known.any() or logs[known].std() <= max(
        LEAST_SPREAD_OF_SIZES, SEEN_SIZE * noise / np.median(n[known])
    ):
        return np.zeros(len(n))
    return np.where(known, logs - logs[known].mean(), 0.0)


def standard_sizes(log_size: np.ndarray) -> np.ndarray:
    """Return logs of sizes with deviation 1; zeros where all are alike."""
    spread = log_size.std()
    return np.asarray(log_size / spread if spread > LEAST_SPREAD_OF_SIZES else 0 * log_size)


# -- what people publish about places --------------------------------------------------------------


def ranks(values: np.ndarray, keys: Sequence[Level], interval: float = 0.95) -> pd.DataFrame:
    """Return where every group ranks among all, 1 for the largest value, with intervals.

    Ranks are worked out draw by draw: the rank of a mean would hide how uncertain it is.

    Args:
        values: draws of a quantity, an array (group, chain, draw).
        keys: the groups' names.
        interval: probability of the central interval of a rank.

    Returns:
        A table with index ``group``: the median rank, its interval ``lower`` and ``upper``, and
        the probabilities that the group is in the top and in the bottom decile of all groups.

    Example:
        >>> import numpy as np
        >>> from noisewise.inference.population import ranks
        >>> values = np.array([[[0.1, 0.2]], [[0.5, 0.6]], [[0.3, 0.7]]])
        >>> ranks(values, ["a", "b", "c"])["rank"].tolist()
        [3.0, 1.5, 1.5]
    """
    import pandas as pd

    tails = _tails(interval)
    flat = np.reshape(values, (len(values), -1))
    flat = flat[:, :: max(1, -(-flat.size // MAX_RANKS))]
    placed = np.empty(flat.shape, np.int32)
    order = np.argsort(-flat, axis=0, kind="stable")
    np.put_along_axis(placed, order, np.arange(1, len(flat) + 1, dtype=np.int32)[:, None], axis=0)
    many = max(1, round(DECILE * len(flat)))
    # A rank is a whole number: the interval has the least that holds its probability.
    low = np.quantile(placed, tails[0], axis=1, method="inverted_cdf")
    high = np.quantile(placed, tails[1], axis=1, method="inverted_cdf")
    return pd.DataFrame(
        {
            "rank": np.median(placed, axis=1),
            "lower": low.astype(int),
            "upper": high.astype(int),
            "top_decile": (placed <= many).mean(axis=1),
            "bottom_decile": (placed > len(flat) - many).mean(axis=1),
        },
        pd.Index(list(keys), name="group"),
    )


def exceedance(
    values: np.ndarray, keys: Sequence[Level], threshold: float, interval: float = 0.95
) -> pd.DataFrame:
    """Return the probability that a quantity is above a threshold, group by group.

    Args:
        values: draws of the quantity, an array (group, chain, draw).
        keys: the groups' names.
        threshold: in the quantity's units.
        interval: probability of the quantity's central interval.

    Returns:
        A table with index ``group``: the ``probability``, and the quantity's ``mean``, ``median``,
        ``lower`` and ``upper``.

    Example:
        >>> import numpy as np
        >>> from noisewise.inference.population import exceedance
        >>> values = np.array([[[0.1, 0.2, 0.5, 0.6]], [[0.5, 0.6, 0.7, 0.8]]])
        >>> exceedance(values, ["a", "b"], 0.4)["probability"].to_dict()
        {'a': 0.5, 'b': 1.0}
    """
    import pandas as pd

    if isinstance(threshold, bool) or not np.isscalar(threshold) or not np.isfinite(threshold):
        raise ArgumentError(f"threshold: must be a finite number, not {threshold!r}")
    flat = np.reshape(values, (len(values), -1))
    low, high = np.quantile(flat, _tails(interval), axis=1)
    return pd.DataFrame(
        {
            "probability": (flat > threshold).mean(axis=1),
            "mean": flat.mean(axis=1),
            "median": np.median(flat, axis=1),
            "lower": low,
            "upper": high,
        },
        pd.Index(list(keys), name="group"),
    )


# -- public features -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PublicFeatures:
    """What is publicly known of the groups, a row each, in the order of the release's keys.

    ``values`` (group, 1 + feature) begin with the constant 1; features are standardised, which
    ``centre`` and ``unit`` undo. Where groups lie in larger ones, ``parent`` is the column that
    says in which, ``parents`` names these, and ``parent_of`` holds the place of each group's.
    """

    values: np.ndarray
    names: tuple[str, ...] = ()
    centre: np.ndarray = field(default_factory=lambda: np.zeros(0))
    unit: np.ndarray = field(default_factory=lambda: np.zeros(0))
    parent: str | None = None
    parents: tuple[Level, ...] = ()
    parent_of: np.ndarray | None = None

    def row(self, features: Mapping[str, float] | None) -> np.ndarray:
        """Return the constant and the standardised features of a new group.

        Args:
            features: a number for each feature by name; None where there are none.
        """
        given = dict(features or {})
        if unknown := [name for name in given if name not in self.names]:
            known = f"there are {', '.join(self.names)}" if self.names else "there are none"
            raise ArgumentError(f"features: {shown(unknown[0])} is no feature; {known}")
        if absent := [name for name in self.names if name not in given]:
            raise ArgumentError(f"features: {shown(absent[0])} is missing; a new group needs it")
        numbers = [_number(given[name], name) for name in self.names]
        return np.append(1.0, (np.array(numbers, float) - self.centre) / self.unit)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ArgumentError(f"features: {shown(name)} must be a number, not {shown(value)}")
    if not np.isfinite(value):
        raise ArgumentError(f"features: {shown(name)} must be finite, not {value!r}")
    return float(value)


def public_features(
    table: Any, keys: Sequence[Level], column: str, parent: str | None = None
) -> PublicFeatures:
    """Return a table of public features in the order of a release's groups, standardised.

    Args:
        table: a data frame, or columns by name; None for no features. The groups' keys are in the
            column that is named as in the release, or else in the frame's index. Rows of other
            groups are ignored.
        keys: the release's groups.
        column: the column that holds the groups' keys.
        parent: the column that says in which larger group each group lies.

    Raises:
        ArgumentError: a key is missing or comes twice, or a feature is no number, missing, constant
            or a linear combination of others.

    Example:
        >>> from noisewise.inference.population import public_features
        >>> table = {"tract": ["b", "a", "c"], "poverty": [0.1, 0.3, 0.2]}
        >>> public_features(table, ["a", "b", "c"], "tract").values.round(1).tolist()
        [[1.0, 1.2], [1.0, -1.2], [1.0, 0.0]]
    """
    constant = np.ones((len(keys), 1))
    if table is None:
        if parent is not None:
            raise ArgumentError(f"parent: {parent!r} must be a column of features; give these too")
        return PublicFeatures(constant)
    frame = _aligned(_frame(table), keys, column)
    parents, parent_of = _parents(frame, parent)
    names = tuple(str(name) for name in frame.columns if name != parent)
    if taken := [name for name in names if _is_of_sizes(name)]:
        raise ArgumentError(
            f"features: {shown(taken[0])} is what the population's own parameter of the groups' "
            "sizes is called; call it otherwise"
        )
    values = (
        np.column_stack([_numbers(frame, name) for name in names]) if names else constant[:, :0]
    )
    centre, unit = values.mean(axis=0), values.std(axis=0)
    for name, spread, size in zip(names, unit, np.abs(values).max(axis=0, initial=0), strict=True):
        if spread <= MAX_COLLINEARITY * size:
            raise ArgumentError(
                f"features: {shown(name)} is the same in every group, and so tells none from "
                "another; leave it out"
            )
    full = np.hstack([constant, (values - centre) / unit])
    _refuse_collinear(full, names)
    return PublicFeatures(full, names, centre, unit, parent, parents, parent_of)


def _frame(table: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "to_pandas"):  # polars and Arrow
        return pd.DataFrame(table.to_pandas())
    if isinstance(table, Mapping):
        try:
            return pd.DataFrame(dict(table))
        except ValueError as error:
            raise ArgumentError(f"features: must be columns of one length ({error})") from None
    raise ArgumentError(
        f"features: must be a data frame, or columns by name, not {type(table).__name__}"
    )


def _aligned(frame: pd.DataFrame, keys: Sequence[Level], column: str) -> pd.DataFrame:
    """Return the rows of the groups in their order; keys are compared as text."""
    import pandas as pd

    if column not in frame.columns and isinstance(frame.index, pd.RangeIndex):
        # Numbers of rows are no keys, though whole numbers that are keys may look like them.
        there = ", ".join(shown(str(c)) for c in frame.columns)
        raise ArgumentError(
            f"features: there is no column {column!r}, which must hold the groups' keys (or give "
            f"them as the index); there are {there}"
        )
    indexed = frame.set_index(column) if column in frame.columns else frame
    labels = [str(label) for label in indexed.index]
    place = {label: i for i, label in enumerate(labels)}
    wanted = [str(key) for key in keys]
    if absent := [key for key in wanted if key not in place]:
        others = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise ArgumentError(
            f"features: there is no row for group {shown(absent[0])}{others}; every group of the "
            f"release needs one, with its key in column {column!r} or in the index"
        )
    if len(place) < len(labels):
        seen: set[str] = set()
        twice = next((k for k in labels if k in seen or seen.add(k)), "")  # type: ignore[func-returns-value]
        if twice in set(wanted):
            raise ArgumentError(f"features: group {shown(twice)} has two rows; give one")
    return indexed.iloc[[place[key] for key in wanted]]


def _parents(
    frame: pd.DataFrame, parent: str | None
) -> tuple[tuple[Level, ...], np.ndarray | None]:
    """Return the larger groups, and the place of each group's among them."""
    if parent is None:
        return (), None
    if parent not in frame.columns:
        raise ArgumentError(f"parent: {shown(parent)} is no column of features")
    labels = frame[parent].tolist()
    if any(not isinstance(v, str | int | np.integer) for v in labels):
        raise ArgumentError(
            f"parent: {shown(parent)} must hold text or whole numbers, none missing"
        )
    parents = tuple(dict.fromkeys(labels))
    if len(parents) < FEWEST_GROUPS:
        raise ArgumentError(
            f"parent: {shown(parent)} names {len(parents)}; at least {FEWEST_GROUPS} are needed to "
            "learn how they differ"
        )
    place = {key: i for i, key in enumerate(parents)}
    return parents, np.array([place[v] for v in labels])


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """Return one feature as finite numbers."""
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(frame[name].dtype):
        raise ArgumentError(
            f"features: {shown(name)} holds no numbers; leave it out, code it as numbers, or give "
            f"parent={shown(name)} if the groups lie in it"
        )
    numbers = frame[name].to_numpy(dtype=float, na_value=np.nan)
    if not np.isfinite(numbers).all():
        where = frame.index[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise ArgumentError(
            f"features: {shown(name)} is missing or infinite in group {shown(where)}"
        )
    return np.asarray(numbers)


def _refuse_collinear(full: np.ndarray, names: Sequence[str]) -> None:
    """Raise an ArgumentError at the first feature that the constant and those before it hold."""
    if len(names) >= len(full):
        raise ArgumentError(
            f"features: must be fewer than the {len(full)} groups, not {len(names)}; leave some out"
        )
    for i, name in enumerate(names, start=1):
        before, this = full[:, :i], full[:, i]
        left = this - before @ np.linalg.lstsq(before, this, rcond=None)[0]
        if np.linalg.norm(left) <= MAX_COLLINEARITY * np.linalg.norm(this):
            raise ArgumentError(
                f"features: {shown(name)} follows from the features before it "
                f"({', '.join(names[: i - 1])}) by a linear formula; leave one out"
            )
