"""Figure 4.2: full-data quantile minus the partitions'."""

from experiments.partition_thesis.boxes import differences
from experiments.partition_thesis.quantile_pictures import quantile_figure

FIGURE = quantile_figure(
    "4.2", "Full-data quantile minus the partitions'", differences, ("plain", "noisy")
)
