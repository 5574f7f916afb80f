"""What is summed over the records: one small type per statistic, each describing itself."""

from noisewise.artifact.statistics.base import (
    MAX_ROWS,
    Exponents,
    Statistic,
    decode_statistic,
    find_statistic,
    known_statistics,
    register_statistic,
    unregister_statistic,
)
from noisewise.artifact.statistics.cell_sums import CellSum, CellSums
from noisewise.artifact.statistics.counts import Clamped, LeftOut, PersonTables, Tables
from noisewise.artifact.statistics.partition_sums import (
    PartitionStatistic,
    ProbabilitySums,
    QuantileSum,
)
from noisewise.artifact.statistics.polynomial_sums import Gram, Monomials, PowerSums

__all__ = [
    "MAX_ROWS",
    "CellSum",
    "CellSums",
    "Clamped",
    "Exponents",
    "Gram",
    "LeftOut",
    "Monomials",
    "PartitionStatistic",
    "PersonTables",
    "PowerSums",
    "ProbabilitySums",
    "QuantileSum",
    "Statistic",
    "Tables",
    "decode_statistic",
    "find_statistic",
    "known_statistics",
    "register_statistic",
    "unregister_statistic",
]
