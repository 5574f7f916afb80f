"""Baseline: DP-SGD on the model's log-likelihood (Abadi et al. 2016), as in thesis 3.3.1.

It satisfies (ε, δ = 1/N) under add-remove neighbours, a weaker promise than the releases' pure ε
(errata E8), and is no release: the whole table is read at every step. Noise is NumPy's, because
this is a simulation. A record's gradient is 1[x_C] - μ(θ); clipped to ``CLIP`` in L2 norm, so that
a Poisson sample's sum has sensitivity ``CLIP``. Where a person has several records, theirs is the
mean of the records' gradients. The noise multiplier is the smallest that dp-accounting's PLD
accountant allows (or its Rényi accountant, much faster).

    python -m experiments.graphical_models.dpsgd --out FILE
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import dp_accounting
import jax.numpy as jnp
import numpy as np
import pandas as pd
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import sparse

from experiments.graphical_models import simulate
from experiments.graphical_models.accuracy import EPSILONS, GRAPHS, options
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import Oracle, compiled_oracle
from noisewise.models.graphical_model.structure import Structure

CLIP = 2.0
STEPS = 200
RATE = 1.0


ACCOUNTANTS = {"pld": PLDAccountant, "rdp": lambda: RdpAccountant(range(2, 128))}
"""Rényi accounting takes seconds, and a sixth more noise at N = 2000, ε = 0.1; more below."""


@lru_cache(maxsize=64)
def noise_multiplier(
    epsilon: float, delta: float, sampling: float, steps: int, accountant: str = "pld"
) -> float:
    """σ/CLIP for ``steps`` Poisson-sampled Gaussian steps."""

    def event(multiplier: float) -> dp_accounting.DpEvent:
        step = dp_accounting.PoissonSampledDpEvent(
            sampling, dp_accounting.GaussianDpEvent(multiplier)
        )
        return dp_accounting.SelfComposedDpEvent(step, steps)

    return float(
        dp_accounting.calibrate_dp_mechanism(
            ACCOUNTANTS[accountant], event, epsilon, delta,
            bracket_interval=dp_accounting.LowerEndpointAndGuess(0.1, 2.0), tol=1e-2,
        )
    )  # fmt: skip


def features(
    model: Structure, records: Mapping[str, np.ndarray] | pd.DataFrame
) -> sparse.csr_array:
    """A row per record with ones in its cells; records are level indices."""
    cells = [
        np.ravel_multi_index(tuple(np.asarray(records[v]) for v in c), model.shape(c)) + w.start
        for c, w in zip(model.cliques, model.slices, strict=True)
    ]
    n, width = len(cells[0]), len(cells)
    ends = np.arange(n + 1) * width
    columns = np.stack(cells, axis=1).ravel()
    return sparse.csr_array((np.ones(n * width), columns, ends), shape=(n, model.dimension))


def fit(
    model: Structure, place: np.ndarray, people: sparse.csr_array, epsilon: float,
    rng: np.random.Generator, rate: float = RATE, accountant: str = "pld",
) -> np.ndarray:  # fmt: skip
    """Free parameters after ``STEPS`` noisy steps; a row of ``people`` is one's mean cells."""
    n, free = people.shape[0], int(place.max()) + 1
    tie = sparse.csr_array(
        (np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), free)
    )
    own = sparse.csr_array(people @ tie)
    squares = np.asarray(own.multiply(own).sum(axis=1)).ravel()
    sampling = min(1.0, max(0.01, 256 / n))
    sigma = CLIP * noise_multiplier(epsilon, 1 / n, sampling, STEPS, accountant)
    both, psi = compiled_oracle(Oracle(model, "exact")), np.zeros(free)
    for _ in range(STEPS):
        mean = tie.T @ np.asarray(both(jnp.asarray(psi[place]))[1])
        chosen = np.nonzero(rng.random(n) < sampling)[0]
        gradient = clipped_sum(own[chosen], squares[chosen], mean)
        gradient += rng.normal(0, sigma, free)
        # Cells are rare: a step of the size of their curvature, μ, would need 1/μ.
        psi += rate * free / len(model.cliques) * gradient / (sampling * n) / 10
    return psi


class Tuned(NamedTuple):
    """The best score over step sizes, that step size, and seconds of the last, compiled fit."""

    score: float
    rate: float
    seconds: float


def tuned(
    fit: Callable[[float], np.ndarray], score: Callable[[np.ndarray], float], rates: Sequence[float]
) -> Tuned:
    """The step size is picked by ``score``, larger is better, in hindsight: free of charge."""
    scores, seconds = [], 0.0
    for rate in rates:
        start = time.perf_counter()
        psi = fit(rate)
        seconds = time.perf_counter() - start
        scores.append(score(psi))
    best = int(np.nanargmax(scores))
    return Tuned(scores[best], rates[best], seconds)


def clipped_sum(own: sparse.csr_array, squares: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Σ over people of their clipped gradients: ‖f - μ‖² = ‖f‖² - 2 fᵀμ + ‖μ‖²."""
    norm = np.sqrt(np.maximum(squares - 2 * (own @ mean) + mean @ mean, 1e-12))
    weight = np.minimum(1.0, CLIP / norm)
    return np.asarray(own.T @ weight - weight.sum() * mean)


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
                        theta = fit(
                            true.structure, np.arange(true.structure.dimension),
                            features(true.structure, records), epsilon, rng,
                        )  # fmt: skip
                        made = GraphicalModel(true.structure, true.levels, theta, "dp-sgd", n)
                        line = {"graph": kind, "trial": trial, "n": n, "epsilon": epsilon}
                        out.write(json.dumps({**line, "dp_sgd": true.kl(made)}) + "\n")
                        out.flush()


if __name__ == "__main__":
    main()
