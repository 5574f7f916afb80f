"""Simulated releases: is a method trustworthy here (``check``), and what will analysts get?"""

from noisewise.simulate.check import check
from noisewise.simulate.findings import Check, MethodCheck, load_check
from noisewise.simulate.forecast import Plan
from noisewise.simulate.plan import plan

__all__ = ["Check", "MethodCheck", "Plan", "check", "load_check", "plan"]
