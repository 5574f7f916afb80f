"""Simulated releases: is a method trustworthy here (``check``), and what will analysts get?"""

from noisewise.simulate.calibration_check import check
from noisewise.simulate.check_result import Check, MethodCheck, load_check
from noisewise.simulate.plan_result import Plan
from noisewise.simulate.planning import plan

__all__ = ["Check", "MethodCheck", "Plan", "check", "load_check", "plan"]
