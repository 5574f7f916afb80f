"""Populations, groups and releases drawn from the pooled model, as the sampler holds them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from noisewise.models.linear_regression import pooled_density, pooled_moves, pooled_population
from noisewise.models.linear_regression.coordinates import Shape, full_rank
from noisewise.models.linear_regression.pooled_moves import Setting
from noisewise.models.linear_regression.pooled_population import PopulationShape
from noisewise.numerics.matrices import entries, stacked
from tests.reference import pooled_reference as reference


def lower(matrix: np.ndarray | None) -> np.ndarray:
    assert matrix is not None
    return np.linalg.cholesky(matrix)


def stacked_laws(laws: list[reference.Law]) -> pooled_density.PopulationLaw:
    """Return populations, one for each chain."""

    def over(values: list[Any]) -> jax.Array:
        return jnp.asarray(np.moveaxis(np.array(values), 0, -1)[..., None])

    nested = laws[0].parents is not None
    return pooled_density.PopulationLaw(
        over([law.b for law in laws]),
        over([lower(law.t) for law in laws]),
        over([lower(law.parents) for law in laws]) if nested else None,
        over([law.level for law in laws]),
        over([law.level_sd for law in laws]),
        over([law.x_mean for law in laws]),
        over([lower(law.omega) for law in laws]),
        over([lower(law.sigma0) for law in laws]),
        over([law.df for law in laws]),
        over([law.log_units for law in laws]),
        over([law.size_exponent for law in laws]),
    )


def geometric_mean(sizes: tuple[int, ...]) -> float:
    return float(stats.gmean(np.maximum(sizes, 1)))


def log_sizes(sizes: tuple[int, ...]) -> np.ndarray:
    """Return (1, group) logs of sizes over their geometric mean."""
    return np.log(np.maximum(sizes, 1) / geometric_mean(sizes))[None]


class Drawn(NamedTuple):
    """Exact draws (chain) from the joint distribution of population, groups and releases."""

    phi: jax.Array
    position: jax.Array
    white_parents: jax.Array
    data: pooled_density.GroupData
    setting: Setting

    def noisy(self, mechanism: str) -> Drawn:
        """Return the draws with noise on their sums."""
        rng = np.random.default_rng(1)
        draw = rng.laplace if mechanism == "laplace" else rng.normal
        data = self.data._replace(z=self.data.z + draw(0, 1.0, self.data.z.shape))
        return self._replace(data=data, setting=self.setting._replace(mechanisms=(mechanism,)))

    def part(self, chains: slice) -> Drawn:
        """Return some of the draws."""
        data = self.data._replace(z=self.data.z[:, chains])
        white = self.white_parents[:, chains]
        return Drawn(self.phi[:, chains], self.position[:, chains], white, data, self.setting)


@cache
def drawn(
    chains: int,
    sizes: tuple[int, ...],
    d: int,
    parents: tuple[int, ...] | None = None,
    k: int = 1,
    seed: int = 0,
    farthest: float = np.log(5),
) -> Drawn:
    """Return as many draws as chains, without noise."""
    rng = np.random.default_rng(seed)
    groups, nested, p = len(sizes), parents is not None, d + 1
    features = np.linalg.qr(
        np.column_stack([np.ones(groups), rng.standard_normal((groups, k - 1))])
    )[0]
    features = (features * np.sqrt(groups) * np.sign(features[0, 0])).T
    parent_of = parents or (0,) * groups
    number = max(parent_of) + 1
    laws, white = [], rng.standard_normal((chains, number, p))
    v, z, xi, zeta = [], [], [], []
    for chain in range(chains):
        units = reference.draw_log_units(rng, d, farthest)
        law = reference.draw_law(rng, d, k, nested=nested, units=units)
        laws.append(law)
        added = white[chain] @ lower(law.parents).T if nested else np.zeros((number, p))
        of = [
            reference.draw_group(
                rng, law, features[:, g], n, added[parent_of[g]], n_mean=geometric_mean(sizes)
            )
            for g, n in enumerate(sizes)
        ]
        sums = np.array([reference.packed_sums(g.records) for g in of])
        z.append(sums)
        v.append([reference.coordinates(rng, g.records) for g in of])
        xi.append([(g.log_variance - law.level) / law.level_sd for g in of])
        zeta.append([np.linalg.solve(lower(law.omega), g.mu - law.x_mean) for g in of])
    data = pooled_density.GroupData(
        jnp.asarray(np.moveaxis(np.array(z), -1, 0)),
        jnp.asarray(np.array(sizes, float)[None]),
        jnp.ones(()),
        jnp.asarray(features[:, None]),
        jnp.asarray(log_sizes(sizes)),
        jnp.asarray(parents) if nested else None,
    )
    position = np.concatenate(
        [np.moveaxis(np.array(v), -1, 0), np.array(xi)[None], np.moveaxis(np.array(zeta), -1, 0)]
    )
    setting = Setting(full_rank(d + 1), PopulationShape(d, k, nested), ("none",))
    phi = pooled_population.coordinates_of(stacked_laws(laws))
    return Drawn(phi, jnp.asarray(position), jnp.asarray(np.moveaxis(white, -1, 0)), data, setting)


def groups_at(
    position: jax.Array, white: jax.Array, data: pooled_density.GroupData, shape: Shape
) -> pooled_moves.Groups:
    """Return the groups at a position (coordinate, chain, group)."""
    v, xi, zeta = pooled_density.position_parts(entries(position, 1), shape)
    at, _ = pooled_density.statistic(v, shape, data.n)
    return pooled_moves.Groups(at, xi, zeta, white)


def flat(groups: pooled_moves.Groups, position: jax.Array, shape: Shape) -> jax.Array:
    """Return the position (coordinate, chain, group) of groups."""
    v = pooled_density.coordinates_of(groups.at, entries(position, 1)[: shape.statistic], shape)
    return jnp.concatenate([stacked(v), groups.xi[None], stacked(groups.zeta)])
