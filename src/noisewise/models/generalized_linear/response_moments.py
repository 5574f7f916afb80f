"""Mean and covariance of the response's sums, given the covariates' own sums.

With the covariates' mean x̄ and factor L (S = n L Lᵀ) held fixed, the whitened records z satisfy
Σ z = 0 and Σ z zᵀ = n I exactly, and the sums (Σ y, Σ y z) are nearly normal (central limit
theorem) with mean n m and covariance n R,

    m = E[h(t) (1, z)],   R = E[y² (1, z)(1, z)ᵀ] - C Cᵀ,   t = a + bᵀ z,

where C holds the coefficients of h(t) (1, z) on an orthonormal basis of (1, z, zzᵀ): what the fixed
sums explain. Under normal covariates both have closed forms (``links.py``); under any other law of
z, given as nodes, they are sums. Where covariates are many, the part of R that is the response's
own scatter, E[Var(y | t) (1, z)(1, z)ᵀ], is summed over nodes and the rest, a few per cent, is that
of normal covariates.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisewise.models.generalized_linear.covariate_nodes import CovariateNodes
from noisewise.models.generalized_linear.links import Link
from noisewise.numerics.matrices import Matrix, is_entries, joined, listed, scaled, single

MOST_PROJECTED = 3
"""Up to this many covariates R is projected under their own law (chosen: it costs d³ sums)."""


class NodeArrays(NamedTuple):
    """Nodes for the density: z (column, node, …) and weights (node, …).

    ``products`` (feature, node, …) are the weighted functions that are summed: (1, z) times the
    basis of (1, z, zzᵀ), or times (1, z) where covariates are many. A trailing axis holds groups
    where they are batched.
    """

    z: jax.Array
    weight: jax.Array
    products: jax.Array


class SumMoments(NamedTuple):
    """Mean m and covariance R of (y, yz) for one record."""

    mean: Matrix
    covariance: Matrix


def node_arrays(nodes: CovariateNodes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of ``NodeArrays`` for one group."""
    z, weight = nodes
    d = z.shape[1]
    one = np.column_stack([np.ones(len(z)), z])
    basis = one
    if d <= MOST_PROJECTED:
        basis = np.column_stack([one, _squares(z, weight)])
    products = np.einsum("q,qi,qj->ijq", weight, one, basis).reshape(-1, len(weight))
    return z.T, weight, products


def _squares(z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return functions that span z zᵀ beside (1, z), orthonormal under the weights.

    Always as many; those that depend on others (an indicator's square) are zero.
    """
    d = z.shape[1]
    rows, columns = np.triu_indices(d)
    one = np.column_stack([np.ones(len(z)), z])
    products = z[:, rows] * z[:, columns]
    off = products - one @ (one.T @ (weight[:, None] * products))
    values, vectors = np.linalg.eigh((off.T * weight) @ off)
    size = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
    return np.asarray(off @ (vectors * size))


def normal_sums(link: Link, a: jax.Array, b: Matrix) -> SumMoments:
    """Return the moments under normal covariates."""
    v = (b**2).sum()
    parts = link.moments(a, v)
    mean = joined(single(parts.mean, b), scaled(parts.slope, b))
    return SumMoments(mean, _patterned(b, parts.corner, parts.plain, parts.cross, parts.outer))


def _patterned(
    b: Matrix, corner: jax.Array, plain: jax.Array, cross: jax.Array, outer: jax.Array
) -> Matrix:
    """Return [[corner, cross bᵀ], [cross b, plain I + outer b bᵀ]]."""
    d = len(b)
    if not is_entries(b):
        inner = plain * jnp.eye(d) + outer * b[:, None] * b[None]
        top = jnp.concatenate([corner[None], cross * b])
        return jnp.concatenate([top[None], jnp.column_stack([cross * b, inner])])
    rows = [[corner, *(cross * e for e in b)]]
    for i in range(d):
        inner = [outer * b[i] * b[j] + (plain if i == j else 0.0) for j in range(d)]
        rows.append([cross * b[i], *inner])
    return listed(rows)


def node_sums(link: Link, a: jax.Array, b: Matrix, nodes: NodeArrays) -> SumMoments:
    """Return the moments under the law that the nodes stand for."""
    d = len(b)
    t = a + sum(_spread(nodes.z[k], b) * b[k] for k in range(d))
    mean, second = link.mean(t), link.second(t)
    if d > MOST_PROJECTED:
        return _scatter_of_nodes(link, a, b, nodes, mean, second)
    explained = _sums(nodes.products, mean, b, d + 1)
    raw = explained if not link.counts else _sums(nodes.products, second, b, d + 1)
    covariance = [
        [raw[i][j] - sum(x * y for x, y in zip(explained[i], explained[j], strict=True))
         for j in range(d + 1)]
        for i in range(d + 1)
    ]  # fmt: skip
    return SumMoments(_of([row[0] for row in explained], b), _of(covariance, b))


def _scatter_of_nodes(
    link: Link, a: jax.Array, b: Matrix, nodes: NodeArrays, mean: jax.Array, second: jax.Array
) -> SumMoments:
    """Return m, and R as the response's scatter over nodes, the rest that of normal covariates."""
    size, v = len(b) + 1, (b**2).sum()
    first = _sums(nodes.products[:size], mean, b, 1)[0]
    scatter = _sums(nodes.products, second - mean**2, b, size)
    covariance = _of(scatter, b)
    whole, own = link.moments(a, v), link.given_records(a, v)
    covariance = covariance + _patterned(
        b, whole.corner - own.corner, whole.plain - own.plain,
        whole.cross - own.cross, whole.outer - own.outer,
    )  # fmt: skip
    return SumMoments(_of(first, b), covariance)


def _spread(values: jax.Array, b: Matrix) -> jax.Array:
    """Return nodes (node, …) with an axis for the chains, where positions are batched."""
    return values[:, None] if is_entries(b) else values


def _sums(products: jax.Array, values: jax.Array, b: Matrix, rows: int) -> list[list[jax.Array]]:
    """Return the sums of products (row × column, node, …) times values, as rows and columns."""
    if not is_entries(b):
        flat = products @ values
    elif values.shape[-1] == 1:
        flat = (products[..., 0] @ values[..., 0])[..., None]
    else:
        flat = jnp.einsum("kqg,qcg->kcg", products, values)
    columns = len(flat) // rows
    return [[flat[i * columns + j] for j in range(columns)] for i in range(rows)]


def _of(values: list, b: Matrix) -> Matrix:  # type: ignore[type-arg]
    """Return numbers, or rows of them, as a matrix of the same kind as b."""
    if is_entries(b):
        return listed(values)
    return jnp.stack([jnp.stack(row) if isinstance(row, list) else row for row in values])
