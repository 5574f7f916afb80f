"""The field: noisewise and other methods on the same tables with the same ε and δ, in one run.

python -m experiments.field [--data FOLDER] [--out results] [--quick]
                            [--page docs/evidence-field.md]
"""

from experiments.field.figure import FIGURE

FIGURES = (FIGURE,)
