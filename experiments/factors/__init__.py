"""Regressions with factors: made-up tables, test error beside AdaSSP, calibration and widths.

python -m experiments.factors              test error on a table shaped like ACSincome
python -m experiments.factors.calibration  coverage and widths of the intervals of every coefficient
"""
