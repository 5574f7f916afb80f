"""Tables that ship with noisewise, and generators of tables that cannot be shipped."""

from noisewise.datasets.cirrhosis import cirrhosis, cirrhosis_path
from noisewise.datasets.mobility import social_mobility

__all__ = ["cirrhosis", "cirrhosis_path", "social_mobility"]
