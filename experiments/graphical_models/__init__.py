"""Thesis chapter 3: learning graphical models from noisy tables, and what it is compared with."""
