"""Calibration of generalized linear models: simulated covariates of many shapes, and real tables.

``simulate`` makes releases, ``tables`` the real tables;
``python -m experiments.generalized_linear`` runs a study and prints a line of JSON per cell.
"""
