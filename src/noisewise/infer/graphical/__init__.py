"""Discrete graphical models from noisy contingency tables (thesis chapter 3)."""
