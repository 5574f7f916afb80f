"""The wifi log as a learning problem (thesis 3.3.4): people, their tables, their held-out days.

A person (one day of one user) weighs one in every table, 1/K for each of the K hours in which they
were seen, as ``release.graphical_model(unit=…)`` has it: the sensitivity is the number of tables
under add-remove neighbours, twice that under replace-one (errata E3; the thesis: once). The thesis
counts K over pairs of steps that are not both unseen; here hours that are all unseen are left out
beforehand. Time-homogeneous chain: one potential for all five pairs of neighbours, one for t0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from experiments.exponential_families.simulate import discrete_laplace
from experiments.graphical_models import dpsgd
from noisewise import datasets
from noisewise.datasets import STEPS, UNSEEN, place_names
from noisewise.models.graphical_model.fitted_model import GraphicalModel
from noisewise.models.graphical_model.marginal_oracle import choose_oracle
from noisewise.models.graphical_model.problem import TablesProblem
from noisewise.models.graphical_model.structure import Structure, structure

HELD_OUT = 0.25


@dataclass(frozen=True)
class People:
    """Mean cells of each person (person, cell), in random order, learners before the held-out."""

    model: Structure
    levels: dict[str, tuple[str, ...]]
    place: np.ndarray
    learners: sparse.csr_array
    held_out: sparse.csr_array

    def released(
        self, n: int, epsilon: float, moved: int, rng: np.random.Generator
    ) -> TablesProblem:
        """Noisy tables of the first n learners; NumPy's noise, a simulation."""
        exact = np.asarray(self.learners[:n].sum(axis=0)).ravel()
        scale = moved * len(self.model.cliques) / epsilon
        noise = discrete_laplace(rng, scale, exact.shape) if epsilon < np.inf else 0.0
        return TablesProblem(
            self.model, dict(self.levels), exact + noise, float(n), scale, "laplace",
            choose_oracle(self.model), self.place, False,
        )  # fmt: skip

    def score(self, model: GraphicalModel) -> float:
        """Mean log-likelihood of an hour of a person who was held out."""
        mean = np.asarray(self.held_out.mean(axis=0)).ravel()
        return float(mean @ model.potentials - model.log_partition)


@lru_cache(maxsize=2)
def people(users: int, places: int, seed: int) -> People:
    """From the log to people's cells."""
    segments = datasets.hour_segments(datasets.wifi_log(users=users, places=places, seed=seed))
    listed = (UNSEEN, *place_names(places))
    index = {name: i for i, name in enumerate(listed)}
    steps = [f"t{j}" for j in range(STEPS)]
    codes = {t: np.array([index[v] for v in segments[t].to_pylist()]) for t in steps}
    pairs = list(itertools.pairwise(steps))
    model = structure(dict.fromkeys(steps, len(listed)), [*pairs, (steps[0],)])
    cells = dpsgd.features(model, codes)
    _, person, hours = np.unique(
        segments["person"].to_numpy(), return_inverse=True, return_counts=True
    )
    weights = sparse.csr_array((1 / hours[person], (person, np.arange(len(person)))))
    mean = sparse.csr_array(weights @ cells)
    mean = mean[np.random.default_rng([seed, 1]).permutation(len(hours))]
    cut = round((1 - HELD_OUT) * len(hours))
    shared = len(listed) ** 2
    place = np.concatenate([np.tile(np.arange(shared), STEPS - 1), shared + np.arange(len(listed))])
    levels = dict.fromkeys(steps, listed)
    return People(model, levels, place, mean[:cut], mean[cut:])
