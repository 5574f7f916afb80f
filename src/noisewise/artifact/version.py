"""The version that a release file names; pyproject.toml says the same (a test compares)."""

VERSION = "0.2.0"
"""The version of the package."""
