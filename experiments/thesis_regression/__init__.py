"""Chapter 5 of the thesis: the regression study again, and the social-mobility case study."""

from experiments.reproduce.figure import Figure

FIGURES: tuple[Figure, ...] = ()
