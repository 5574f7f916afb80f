"""The owner's audited core: a table and an order in, exact integer sums, noise, one release out."""

# The statistics that come with noisewise register their bounds and sums.
from noisewise.privacy import statistics as statistics
