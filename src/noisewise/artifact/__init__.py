"""THE WIRE: the one file between the owner and the analyst. numpy and the standard library only.

In the order of reading: ``release`` (what the file holds), ``statistics`` (what is summed),
``bounds`` (of columns), ``guarantee`` (the promise, and noise), ``sensitivity`` (what noise costs)
and ``claim_check`` (whether it gives what is promised), ``consistency`` (content that contradicts
itself), ``release_forms`` (what a release of each model holds), ``release_files`` (JSON, with
``low_memory_json``, ``atomic_file`` and ``folder_lock``; ``schema`` for readers without this
library), ``partition_answer``, ``clamping``, ``release_tables``, ``readable_numbers``,
``notebook_html`` and ``registry_record`` (what a release says), ``uncentred_products`` (what noise
makes useless). ``process_ending`` stops writers while the program is interrupted.
``errors``, ``user_warnings``, ``validation`` and ``version`` serve all of them.
"""

from noisewise.artifact.bounds import Bounds, CandidateCounts, Censored, Selection
from noisewise.artifact.errors import (
    AbsentError,
    ArgumentError,
    BudgetError,
    DataError,
    NoisewiseError,
    ReleaseError,
    SearchError,
    SourceError,
)
from noisewise.artifact.guarantee import Guarantee, Mechanism, Neighbours, Noise
from noisewise.artifact.partition_answer import PartitionRelease
from noisewise.artifact.release import Block, Groups, Population, Receipt, Release
from noisewise.artifact.sensitivity import Sensitivity
from noisewise.artifact.statistics import (
    CellSum,
    CellSums,
    Clamped,
    Gram,
    LeftOut,
    Monomials,
    PersonTables,
    PowerSums,
    ProbabilitySums,
    QuantileSum,
    Statistic,
    Tables,
    find_statistic,
    register_statistic,
    unregister_statistic,
)
from noisewise.artifact.validation import Level

__all__ = [
    "AbsentError",
    "ArgumentError",
    "Block",
    "Bounds",
    "BudgetError",
    "CandidateCounts",
    "CellSum",
    "CellSums",
    "Censored",
    "Clamped",
    "DataError",
    "Gram",
    "Groups",
    "Guarantee",
    "LeftOut",
    "Level",
    "Mechanism",
    "Monomials",
    "Neighbours",
    "Noise",
    "NoisewiseError",
    "PartitionRelease",
    "PersonTables",
    "Population",
    "PowerSums",
    "ProbabilitySums",
    "QuantileSum",
    "Receipt",
    "Release",
    "ReleaseError",
    "SearchError",
    "Selection",
    "Sensitivity",
    "SourceError",
    "Statistic",
    "Tables",
    "find_statistic",
    "register_statistic",
    "unregister_statistic",
]
