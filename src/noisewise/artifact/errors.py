"""Every error a person can meet, in one place.

Messages name the argument, the value and what is accepted. They never quote a record: a value
read from the sensitive table must not reach a log file through a stack trace.
"""


class NoisewiseError(Exception):
    """Base of all errors raised on purpose by noisewise."""


class ArgumentError(NoisewiseError, ValueError):
    """A call that cannot be carried out as written."""


class DataError(NoisewiseError, ValueError):
    """The table does not fit what was asked of it (never quotes a record)."""


class SourceError(NoisewiseError, OSError):
    """The table, database or file could not be read."""


class BudgetError(NoisewiseError, ValueError):
    """The ledger refuses: nothing was drawn."""


class SearchError(NoisewiseError, RuntimeError):
    """A private search ended without an answer. What it spent stays spent."""


class ReleaseError(NoisewiseError, ValueError):
    """A release file, or the content for one, is not valid."""


class AbsentError(ReleaseError, AttributeError):
    """The release is of a family that has no such thing."""
