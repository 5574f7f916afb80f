"""Figure 3.2: full-data probability minus the normality method's."""

from experiments.partition_thesis.boxes import differences
from experiments.partition_thesis.cutoffs import probability_figure

FIGURE = probability_figure(
    "3.2",
    "normality",
    "Full-data probability minus the normality method's",
    differences,
    ("plain", "noisy"),
)
