"""Figure 3.3: posterior probabilities by the -2 log p method."""

from experiments.partition_thesis.boxes import values
from experiments.partition_thesis.cutoffs import probability_figure

FIGURE = probability_figure(
    "3.3",
    "fisher",
    "Posterior probability by the −2 log p method",
    values,
    ("full", "plain", "noisy"),
)
