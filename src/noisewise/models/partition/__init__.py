"""Posterior probabilities and quantiles by random partitions (sample and aggregate).

G. Amitai, "Bayesian inference via partitioning under differential privacy" (Duke, 2018), with
errata E4, E5 and E16. A table passes ``partition_moments`` (who goes where, and one pass),
``conjugate_regression`` (all partitions at once) and ``sample_and_aggregate`` (whole numbers, then
noise); for quantiles a ``private_interval_search`` comes before the whole numbers.
``probability`` and ``quantile`` are what an owner calls. Proofs: ``docs/proofs/partition.md``.
"""
