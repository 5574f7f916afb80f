"""The partition thesis: posterior probabilities and quantiles from random partitions."""

from experiments.partition_thesis.figures import (
    fisher_differences,
    fisher_distributions,
    normality_differences,
    normality_distributions,
    quantile_differences,
    quantile_distributions,
)

FIGURES = (
    normality_distributions.FIGURE,
    normality_differences.FIGURE,
    fisher_distributions.FIGURE,
    fisher_differences.FIGURE,
    quantile_distributions.FIGURE,
    quantile_differences.FIGURE,
)
