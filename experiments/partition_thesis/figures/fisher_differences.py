"""Figure 3.4: full-data probability minus the -2 log p method's."""

from experiments.partition_thesis.boxes import differences
from experiments.partition_thesis.cutoffs import probability_figure

FIGURE = probability_figure(
    "3.4",
    "fisher",
    "Full-data probability minus the −2 log p method's",
    differences,
    ("plain", "noisy"),
)
