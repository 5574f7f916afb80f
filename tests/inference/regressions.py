"""Small regressions to infer from: tables, releases made by hand, and problems in the box.

Noise comes from NumPy: these are simulations, not releases of anyone's data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from noisewise.artifact import (
    Block,
    Bounds,
    Gram,
    Groups,
    Guarantee,
    Mechanism,
    Monomials,
    Noise,
    Population,
    Release,
    Statistic,
)
from noisewise.artifact import sensitivity as wire
from noisewise.artifact.guarantee import zcdp_epsilon
from noisewise.models.linear_regression.problem import (
    RegressionProblem,
    Units,
    default_covariates,
    default_response,
    regression_problem,
)
from noisewise.priors import NormalInverseGamma, NormalInverseWishart
from tests.reference import regression_reference as reference

GROUPS, CHAINS, DRAWS = 4, 4, 1000
"""The shape that tests share: compiling takes longer than sampling."""


def table(rng: np.random.Generator, n: int, d: int = 1, slope: float = 0.8) -> np.ndarray:
    """n records (x_1 … x_d, y) well inside the box."""
    x = rng.normal(0.1, 0.25, (n, d))
    y = x @ np.full(d, slope) / d - 0.1 + rng.normal(0, 0.15, n)
    return np.column_stack([x, y])


def paper_table(rng: np.random.Generator, n: int) -> np.ndarray:
    """One covariate, everything drawn from the paper's priors; not clamped, as in the paper."""
    p = reference.paper_priors()
    theta, variance, mu, tau2 = (v[0] for v in reference.prior_parameters(rng, p, 1))
    x = rng.normal(mu, np.sqrt(tau2), n)
    return np.column_stack([x, theta[0] * x + theta[1] + rng.normal(0, np.sqrt(variance), n)])


def sensitivity(columns: int) -> float:
    """Δ1 of errata E1."""
    return columns * (columns + 2) ** 2 / (2 * (columns + 1))


def families(p: reference.Priors) -> tuple[NormalInverseGamma, NormalInverseWishart]:
    """The oracle's priors as the library's."""
    return (
        NormalInverseGamma(p.m0, p.lam0, p.a0, p.b0),
        NormalInverseWishart(p.mu0, p.kappa0, p.psi0, p.nu0),
    )


def problem(
    tables: Sequence[np.ndarray], scale: float, *, seed: int = 0, mechanism: Mechanism = "laplace",
    priors: reference.Priors | None = None, noisy_n: bool = False,
) -> RegressionProblem:  # fmt: skip
    """Tables in the box, one per group, with noise of that scale on their statistics."""
    rng = np.random.default_rng(seed)
    q = tables[0].shape[1]
    exact = np.array([reference.statistic(w) for w in tables])
    n = np.array([float(len(w)) for w in tables])
    if noisy_n:
        exact = np.column_stack([exact, n])
    draw = rng.laplace if mechanism == "laplace" else rng.normal
    z = exact + draw(0, scale, exact.shape)
    sizes = np.maximum(z[:, -1], q + 2) if noisy_n else n
    inner, outer = families(priors or reference.paper_priors(q - 1))
    names = tuple(f"x{i + 1}" for i in range(q - 1))
    units = Units(np.zeros(q), np.ones(q))
    keys = tuple(range(len(tables)))
    return RegressionProblem(
        names, "y", z, sizes, noisy_n, scale, mechanism, inner, outer, units, keys
    )


def block(
    statistic: Statistic,
    tables: Sequence[np.ndarray],
    scale: float,
    mechanism: Mechanism,
    seed: int,
    relation: wire.Relation,
) -> Block:
    """Products of columns in the box, summed, with noise, on the lattice."""
    rng = np.random.default_rng(seed)
    products = getattr(statistic, "products", ())
    sums = np.array([[np.prod(w[:, p], axis=1).sum() for w in tables] for p in products])
    step = statistic.units[0]
    draw = rng.laplace if mechanism == "laplace" else rng.normal
    values = np.rint((sums + draw(0, scale, sums.shape)) / step).astype(np.int64)
    bound = wire.sensitivity(statistic, relation)
    noise = Noise(mechanism, scale / step, bound.l1 if mechanism == "laplace" else bound.l2, 1e30)
    cost = float(bound.cost(noise)) * (1 + 1e-12)
    return Block(statistic, replace(noise, cost=cost), values)


def release(
    tables: Sequence[np.ndarray], bounds: Mapping[str, tuple[float, float]], *, scale: float = 1.0,
    mechanism: Mechanism = "laplace", monomials: bool = False, grouped: bool = True,
    secret_n: bool = False, seed: int = 0, y: str | None = None,
) -> Release:  # fmt: skip
    """A release of tables in the user's units, columns in the order of the bounds."""
    columns = tuple(bounds)
    response = columns[-1] if y is None else y
    x = tuple(c for c in columns if c != response)
    limits = {c: Bounds(*b) for c, b in bounds.items()}
    centre = np.array([b.centre for b in limits.values()])
    half = np.array([b.half_width for b in limits.values()])
    boxed = [(w - centre) / half for w in tables]
    relation: wire.Relation = "add-remove" if secret_n else "replace-one"
    blocks = [block(Gram(columns, count=secret_n), boxed, scale, mechanism, seed, relation)]
    if monomials:
        chosen = [w[:, [columns.index(c) for c in x]] for w in boxed]
        blocks.append(block(Monomials(x), chosen, scale, mechanism, seed + 1, relation))
    sizes = () if secret_n else tuple(len(w) for w in tables)
    cost = sum(b.noise.cost for b in blocks) * (1 + 1e-12)
    return Release(
        family="linear-regression",
        model={"x": x, "y": response},
        guarantee=Guarantee(
            cost if mechanism == "laplace" else zcdp_epsilon(cost, 1e-6),
            "add-remove" if secret_n else "replace-one",
            0.0 if mechanism == "laplace" else 1e-6,
            None if mechanism == "laplace" else cost,
            within="place" if grouped and not secret_n else None,
        ),
        population=Population("noisy" if secret_n else "public", sizes),
        blocks=tuple(blocks),
        bounds=limits,
        groups=Groups("place", tuple(f"g{i}" for i in range(len(tables)))) if grouped else None,
    )


def conjugate_defaults(release: Release) -> dict[str, NormalInverseGamma | NormalInverseWishart]:
    """The priors made from the bounds: defaults of all methods, but ``exact`` has another."""
    given = regression_problem(release, None)
    return {
        "response": default_response(given.units),
        "covariates": default_covariates(given.units),
    }
