"""Thesis chapter 4: calibration of noise-aware and other posteriors."""
