"""Tables that ship with noisewise, and generators of tables that cannot be shipped."""

from noisewise.datasets.cirrhosis import cirrhosis, cirrhosis_path
from noisewise.datasets.simulated_tables import hour_segments, social_mobility, wifi_log

__all__ = ["cirrhosis", "cirrhosis_path", "hour_segments", "social_mobility", "wifi_log"]
