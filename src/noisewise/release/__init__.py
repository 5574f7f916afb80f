"""OWNER: from a sensitive table to one public file."""

from noisewise.release.arguments import PrivateBounds
from noisewise.release.expfam import exponential_family
from noisewise.release.graphical import graphical_model
from noisewise.release.linear import linear_regression

__all__ = ["PrivateBounds", "exponential_family", "graphical_model", "linear_regression"]
