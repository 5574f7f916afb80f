"""The privacy core's side: how far one person moves Σ |u|, and how it is summed. See proof.md."""

import numpy as np

from noisewise.privacy.lattice import boxed
from noisewise.privacy.sensitivity import (
    PublicColumns,
    Sensitivity,
    StatisticPrivacy,
    register_privacy,
)
from noisewise.privacy.sum_plan import Histogram, Part
from tests.toy_statistic.absolute_sum import AbsoluteSum


@register_privacy(AbsoluteSum.kind)
class AbsoluteSumPrivacy(StatisticPrivacy[AbsoluteSum]):
    """Bound, sums and weight of the statistic."""

    weight = 0.2

    def bound(self, statistic: AbsoluteSum, replace: bool) -> Sensitivity:
        """Return the bound of proof.md: |u| lies in [0, F], F = 2**bits."""
        largest = 2**statistic.bits
        return Sensitivity(largest, largest**2)

    def part(self, statistic: AbsoluteSum, columns: PublicColumns) -> Part:
        """Count the records on each lattice point: every engine can do that."""
        column = statistic.column
        limits, fill = columns.bounds[column], columns.number(column)
        return Histogram(boxed(column, limits, bits=statistic.bits, fill=fill))

    def integers(self, statistic: AbsoluteSum, sums: np.ndarray) -> np.ndarray:
        """Return Σ |u| from the counts on the points -F, …, F, one row."""
        points = np.abs(np.arange(-(2**statistic.bits), 2**statistic.bits + 1))
        return (points @ sums)[None, :]
