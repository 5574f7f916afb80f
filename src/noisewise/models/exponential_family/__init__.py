"""Exponential families of one column, from noisy sums of it."""
