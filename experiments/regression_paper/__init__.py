"""Differentially Private Bayesian Linear Regression (Bernstein & Sheldon, NeurIPS 2019)."""

from experiments.reproduce.figure import Figure

FIGURES: tuple[Figure, ...] = ()
