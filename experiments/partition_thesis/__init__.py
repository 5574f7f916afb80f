"""..."""

FIGURES = ()
