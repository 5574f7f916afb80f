"""Simulated releases: is a method trustworthy here (``check``), and what will analysts get?"""

from noisewise.simulate.calibration_check import Check, MethodCheck, check, load_check
from noisewise.simulate.planning import Plan, plan

__all__ = ["Check", "MethodCheck", "Plan", "check", "load_check", "plan"]
