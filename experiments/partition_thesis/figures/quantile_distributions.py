"""Figure 4.1: posterior quantiles by partitions."""

from experiments.partition_thesis.boxes import values
from experiments.partition_thesis.quantile_pictures import quantile_figure

FIGURE = quantile_figure(
    "4.1", "Posterior quantiles of the slope by partitions", values, ("full", "plain", "noisy")
)
