"""Simulated releases: is a method trustworthy here (``check``), and what will analysts get?"""

from noisewise.simulate.check import check
from noisewise.simulate.findings import Check, MethodCheck, load_check

__all__ = ["Check", "MethodCheck", "check", "load_check"]
