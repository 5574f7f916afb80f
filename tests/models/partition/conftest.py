"""The fixtures of the privacy tests: bad calls must spend and draw nothing here either."""

from tests.privacy.conftest import fresh_ledger, refused

__all__ = ["fresh_ledger", "refused"]
