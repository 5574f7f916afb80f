"""Linear regression from a noisy Gram matrix."""
