"""The privacy core's side: how Σ |u| is summed, and its share of the budget."""

import numpy as np

from noisewise.privacy.lattice import boxed
from noisewise.privacy.statistic_privacy import PublicColumns, StatisticPrivacy, register_privacy
from noisewise.privacy.sum_plan import Histogram, Part
from tests.toy_statistic.absolute_sum import AbsoluteSum


@register_privacy(AbsoluteSum.kind)
class AbsoluteSumPrivacy(StatisticPrivacy[AbsoluteSum]):
    """Sums and weight of the statistic."""

    weight = 0.2

    def part(self, statistic: AbsoluteSum, columns: PublicColumns) -> Part:
        """Count the records on each lattice point: every engine can do that."""
        column = statistic.column
        limits, fill = columns.bounds[column], columns.number(column)
        return Histogram(boxed(column, limits, bits=statistic.bits, fill=fill))

    def integers(self, statistic: AbsoluteSum, sums: np.ndarray) -> np.ndarray:
        """Return Σ |u| from the counts on the points -F, …, F, one row."""
        points = np.abs(np.arange(-(2**statistic.bits), 2**statistic.bits + 1))
        return (points @ sums)[None, :]
