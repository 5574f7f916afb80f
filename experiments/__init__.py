"""Experiments: the papers' comparisons. Nothing here releases anyone's data."""
