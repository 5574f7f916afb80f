"""Simulated releases: is a method trustworthy here (``check``), and what will analysts get?

``calibration_check`` is the one, ``planning`` the other, with ``epsilon_search`` (the smallest ε
for a wanted width); ``trials`` is what they share, ``pooled_trials`` that of groups that learn from
each other.
"""

from noisewise.simulate.calibration_check import Check, MethodCheck, check, load_check
from noisewise.simulate.planning import Plan, plan

__all__ = ["Check", "MethodCheck", "Plan", "check", "load_check", "plan"]
