"""Linear regression from a noisy Gram matrix: one file per method."""
