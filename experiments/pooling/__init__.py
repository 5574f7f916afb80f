"""Groups that learn from each other: calibration, usefulness and cost of pooled regressions.

python -m experiments.pooling calibration --groups 50 --epsilon 1 --trials 60 --processes 2
python -m experiments.pooling useful --groups 500 --epsilon 1 --trials 4
python -m experiments.pooling two --groups 500 --epsilon 1 --trials 4
python -m experiments.pooling tails --groups 500 --epsilon 1 --trials 4
python -m experiments.pooling sbc --groups 8 --epsilon 1 --trials 150 --processes 2
python -m experiments.pooling speed --groups 500 --epsilon 1
python -m experiments.pooling.real_table --data FOLDER
"""
