"""Every error a person can meet, in one place.

Messages name the argument, the value and what is accepted. They never quote a record: a value
read from the sensitive table must not reach a log file through a stack trace.
"""


class NoisewiseError(Exception):
    """Base of all errors raised on purpose by noisewise.

    Example:
        >>> import noisewise as nw
        >>> try:
        ...     nw.Release.load("nowhere.json")
        ... except nw.NoisewiseError as error:
        ...     print(type(error).__name__)
        ReleaseError
    """


class ArgumentError(NoisewiseError, ValueError):
    """A call that cannot be carried out as written.

    Example:
        >>> import noisewise as nw
        >>> nw.release.Blank(0)
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ArgumentError: n: must be a whole number from 1 to ..., not 0
    """


class DataError(NoisewiseError, ValueError):
    """The table does not fit what was asked of it (never quotes a record).

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> pets = pd.DataFrame({"pet": ["cat", "dog", "newt"]})
        >>> nw.release.exponential_family(
        ...     pets, column="pet", family="categorical", levels=["cat", "dog"], epsilon=1.0
        ... )
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.DataError: column 'pet' holds a value outside its public list. ...
    """


class SourceError(NoisewiseError, OSError):
    """The table, database or file could not be read.

    Example:
        >>> import noisewise as nw
        >>> nw.release.exponential_family(
        ...     "nowhere.csv", column="visits", family="poisson", bounds=(0, 20), epsilon=1.0
        ... )
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.SourceError: ...
    """


class BudgetError(NoisewiseError, ValueError):
    """The ledger refuses: nothing was drawn.

    Example:
        >>> import noisewise as nw, pandas as pd
        >>> from noisewise.privacy.ledger import open_ledger
        >>> with open_ledger("budget.db", create=True) as ledger:
        ...     account = ledger.set_budget("survey", epsilon=1.0)
        >>> nw.release.exponential_family(
        ...     pd.DataFrame({"owns": [0, 1, 1]}), column="owns", family="bernoulli", epsilon=2.0,
        ...     ledger="budget.db",
        ... )
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.BudgetError: ...
    """


class SearchError(NoisewiseError, RuntimeError):
    """A private search ended without an answer. What it spent stays spent.

    Example:
        >>> import noisewise as nw
        >>> nw.release.posterior_quantile(
        ...     nw.datasets.social_mobility(tracts=5), x="pir", y="kir", coefficient="intercept",
        ...     p=0.5, partitions=10, centred=False, scale=1e-6, doublings=1, epsilon_bounds=100.0,
        ...     epsilon_value=1.0,
        ... )
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.SearchError: ...
    """


class ReleaseError(NoisewiseError, ValueError):
    """A release file, or the content for one, is not valid.

    Example:
        >>> import noisewise as nw
        >>> nw.Release.from_json("{}")
        Traceback (most recent call last):
        ...
        noisewise.artifact.errors.ReleaseError: ...
    """


class AbsentError(ReleaseError, AttributeError):
    """The release is of a family that has no such thing."""
