"""The command as a person runs it, shared with the command line's own tests."""

from tests.cli.conftest import noisewise

__all__ = ["noisewise"]
