"""Discrete graphical models from noisy contingency tables."""
