"""Figure 3.1: posterior probabilities by the normality method."""

from experiments.partition_thesis.boxes import values
from experiments.partition_thesis.cutoffs import probability_figure

FIGURE = probability_figure(
    "3.1",
    "normality",
    "Posterior probability by the normality method",
    values,
    ("full", "plain", "noisy"),
)
