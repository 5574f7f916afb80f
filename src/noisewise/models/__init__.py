"""The statistical models, one folder each."""
