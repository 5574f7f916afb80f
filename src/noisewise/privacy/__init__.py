"""The owner's audited core: a table and an order in, exact integer sums, noise, one release out."""
