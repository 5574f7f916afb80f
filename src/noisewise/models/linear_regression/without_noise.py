"""How wide the posterior would be without privacy noise: what the noise cost the analyst.

By the law of total variance, Var(θ | z) = E[Var(θ | s) | z] + Var(E[θ | s] | z), where s are the
exact sums and z the released ones. The first part is what too few records leave open, the second is
due to the noise. Var(θ | s) is the conjugate posterior's, in closed form:

    (θ, σ²) | s ~ NIG(mn, Λn, an, bn):  Var θ = bn/(an - 1) Λn⁻¹,  Var σ² = bn²/((an-1)² (an-2)).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from noisewise.models.linear_regression.problem import Problem

MOST = 400
"""Draws of s that are averaged over, spread evenly over the chains."""


def deviations(problem: Problem, latent: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """√E[Var(parameter | s) | z] per parameter, in the user's units; one per group if grouped."""
    s = latent["s"]
    grouped = problem.keys is not None
    flat = s.reshape(len(problem.n) if grouped else 1, -1, s.shape[-1])
    flat = flat[:, :: max(1, flat.shape[1] // MOST)]
    found = np.stack([_expected(problem, row, n) for row, n in zip(flat, problem.n, strict=True)])
    names = (*problem.x, "intercept", "sigma2")
    return {name: v if grouped else v[0] for name, v in zip(names, found.T, strict=True)}


def _expected(problem: Problem, s: np.ndarray, n: float) -> np.ndarray:
    """Of one group, from draws of s (draw, component) in the order of the released sums."""
    prior = problem.box_prior
    q = len(problem.x) + 1
    pairs = q * (q + 1) // 2
    rows, columns = np.triu_indices(q)
    gram = np.zeros((len(s), q + 1, q + 1))
    gram[:, rows, columns] = gram[:, columns, rows] = s[:, :pairs]
    gram[:, :q, q] = gram[:, q, :q] = s[:, pairs : pairs + q]
    count = s[:, -1] if problem.noisy_n else np.full(len(s), n)
    gram[:, q, q] = count
    # Columns are (x, y, 1); the design is (x, 1).
    design = [*range(q - 1), q]
    precision, mean = np.asarray(prior.precision), np.asarray(prior.mean)
    joint = precision + gram[:, design][:, :, design]
    moment = precision @ mean + gram[:, design, q - 1]
    at = np.linalg.solve(joint, moment[..., None])[..., 0]
    rate = gram[:, q - 1, q - 1] + mean @ precision @ mean - np.einsum("ti,ti->t", at, moment)
    # A difference of large numbers: rounding must not make a variance negative.
    rate = float(prior.rate) + np.maximum(rate, 0.0) / 2
    shape = float(prior.shape) + count / 2
    variance = np.zeros((len(s), q + 1, q + 1))
    variance[:, :q, :q] = (rate / (shape - 1))[:, None, None] * np.linalg.inv(joint)
    variance[:, q, q] = rate**2 / ((shape - 1) ** 2 * np.maximum(shape - 2, 0.5))
    back = problem.units.from_box[0]
    return np.asarray(np.sqrt(np.diagonal(back @ variance.mean(axis=0) @ back.T)))
