"""Calibration on tables that nobody here wrote, with bounds that fit and bounds guessed too wide.

python -m experiments.real_tables [--samples 200] [--seed 7] [--data FOLDER] [--out FILE]
                                  [--covariates 1 2 3]
"""

from experiments.real_tables.figure import FIGURE

FIGURES = (FIGURE,)
