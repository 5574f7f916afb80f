"""Posterior probabilities and quantiles by random partitions (sample and aggregate).

G. Amitai, "Bayesian inference via partitioning under differential privacy" (Duke, 2018), with
errata E4, E5 and E16. The way of a table: ``assignment`` (who goes where) → ``moments`` (one pass)
→ ``fit`` (all partitions at once) → ``lattice`` (whole numbers) → noise; for quantiles a ``search``
for the interval comes before the lattice. Proofs: ``docs/proofs/partition.md``.
"""
