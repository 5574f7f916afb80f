"""Baseline: DP-SGD on the model's log-likelihood (Abadi et al. 2016), as in thesis 3.3.1.

It satisfies (ε, δ = 1/N) under add-remove neighbours, a weaker promise than the releases' pure ε
(errata E8), and is no release: the whole table is read at every step. Noise is NumPy's, because
this is a simulation. A record's gradient is 1[x_C] - μ(θ); clipped to ``CLIP`` in L2 norm, so that
a Poisson sample's sum has sensitivity ``CLIP``. The noise multiplier is the smallest that
dp-accounting's PLD accountant allows.

    python -m experiments.graphical_models.dpsgd --out FILE
"""

from __future__ import annotations

import json

import dp_accounting
import jax.numpy as jnp
import numpy as np
from dp_accounting.pld import PLDAccountant

from experiments.graphical_models import simulate
from experiments.graphical_models.accuracy import EPSILONS, GRAPHS, options
from noisewise.infer.graphical.model import GraphicalModel
from noisewise.infer.graphical.oracle import Oracle, compiled
from noisewise.infer.graphical.structure import Structure

CLIP = 2.0
STEPS = 200
RATE = 1.0


def noise_multiplier(epsilon: float, delta: float, sampling: float, steps: int) -> float:
    """σ/CLIP for ``steps`` Poisson-sampled Gaussian steps."""

    def event(multiplier: float) -> dp_accounting.DpEvent:
        step = dp_accounting.PoissonSampledDpEvent(
            sampling, dp_accounting.GaussianDpEvent(multiplier)
        )
        return dp_accounting.SelfComposedDpEvent(step, steps)

    return float(
        dp_accounting.calibrate_dp_mechanism(
            PLDAccountant, event, epsilon, delta,
            bracket_interval=dp_accounting.LowerEndpointAndGuess(0.1, 2.0), tol=1e-2,
        )
    )  # fmt: skip


def fit(
    model: Structure, records: dict[str, np.ndarray], epsilon: float, rng: np.random.Generator,
    rate: float = RATE,
) -> np.ndarray:  # fmt: skip
    """Potentials after ``STEPS`` noisy steps; records are level indices."""
    n = len(next(iter(records.values())))
    sampling = min(1.0, max(0.01, 256 / n))
    sigma = CLIP * noise_multiplier(epsilon, 1 / n, sampling, STEPS)
    cells = [
        np.ravel_multi_index(tuple(records[v] for v in c), model.shape(c)) + w.start
        for c, w in zip(model.cliques, model.slices, strict=True)
    ]
    both, theta = compiled(Oracle(model, "exact")), np.zeros(model.dimension)
    for _ in range(STEPS):
        mu = np.asarray(both(jnp.asarray(theta))[1])
        chosen = np.nonzero(rng.random(n) < sampling)[0]
        gradient = clipped_sum([c[chosen] for c in cells], mu)
        gradient += rng.normal(0, sigma, model.dimension)
        # Cells are rare: a step of the size of their curvature, μ, would need 1/μ.
        theta += rate * len(theta) / len(cells) * gradient / (sampling * n) / 10
    return theta


def clipped_sum(cells: list[np.ndarray], mu: np.ndarray) -> np.ndarray:
    """Σ over records of their clipped gradients: ‖1[x] - μ‖² = |C| - 2 Σ_C μ_C(x_C) + ‖μ‖²."""
    own = sum(mu[c] for c in cells)
    norm = np.sqrt(np.maximum(len(cells) - 2 * own + mu @ mu, 1e-12))
    weight = np.minimum(1.0, CLIP / norm)
    total = -weight.sum() * mu
    for c in cells:
        total += np.bincount(c, weights=weight, minlength=len(mu))
    return np.asarray(total)


def main() -> None:
    """KL(truth‖model), one JSON line per trial."""
    words = options().parse_args()
    with open(words.out, "a", encoding="utf-8") as out:
        for kind in words.graphs:
            for trial in range(words.trials):
                rng = np.random.default_rng([words.seed, GRAPHS.index(kind), trial])
                true = simulate.truth(simulate.graph(kind, rng), rng)
                for n in words.sizes:
                    records = true.sample(n, seed=trial)
                    for epsilon in EPSILONS:
                        theta = fit(true.structure, records, epsilon, rng)
                        made = GraphicalModel(true.structure, true.levels, theta, "dp-sgd", n)
                        line = {"graph": kind, "trial": trial, "n": n, "epsilon": epsilon}
                        out.write(json.dumps({**line, "dp_sgd": true.kl(made)}) + "\n")
                        out.flush()


if __name__ == "__main__":
    main()
