"""A statistic from outside the package: the guide "Add a statistic" quotes these files."""
