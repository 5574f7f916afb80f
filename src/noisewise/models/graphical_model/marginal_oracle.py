"""The marginal oracle: exact where the junction tree fits memory, loopy belief propagation else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import jax

from noisewise.artifact import ArgumentError
from noisewise.artifact.user_warnings import warn_user
from noisewise.models.graphical_model import belief_propagation, elimination
from noisewise.models.graphical_model.structure import Structure

DEFAULT_MEMORY = 2 * 2**30
"""Bytes an exact junction tree may take, unless the analyst says otherwise (chosen)."""


@dataclass(frozen=True)
class Oracle:
    """A(θ) of one structure and its gradient. Hashable, so that it is compiled only once."""

    model: Structure
    kind: Literal["exact", "loopy"]

    @property
    def log_partition(self) -> Callable[[jax.Array], jax.Array]:
        """Return θ → A(θ)."""
        algorithm = elimination if self.kind == "exact" else belief_propagation
        return partial(algorithm.log_partition, self.model)

    @property
    def value_and_marginals(self) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
        """Return θ → A(θ), μ(θ) = ∇A(θ)."""
        return jax.value_and_grad(self.log_partition)

    @property
    def marginals(self) -> Callable[[jax.Array], jax.Array]:
        """Return θ → μ(θ)."""
        return jax.grad(self.log_partition)


@lru_cache(maxsize=64)
def compiled_oracle(oracle: Oracle) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Return θ → A(θ), μ(θ), compiled, to be called from Python."""
    return jax.jit(oracle.value_and_marginals)


def describe_size(model: Structure) -> str:
    """Describe the predicted size of the junction tree in words."""
    return (
        f"junction tree of {len(model.tree)} cliques, the largest over "
        f"{max(len(c) for c in model.tree)} columns, {model.cells} cells: "
        f"{model.predicted_bytes / 2**20:.3g} MiB"
    )


def choose_oracle(
    model: Structure, inference: str = "auto", memory: float = DEFAULT_MEMORY
) -> Oracle:
    """Choose exact or loopy inference by the predicted size, before anything is built.

    Args:
        model: variables and cliques.
        inference: ``"auto"``, ``"exact"`` or ``"loopy"``.
        memory: bytes an exact junction tree may take.

    Returns:
        The oracle. Under ``"auto"`` a UserWarning says so where it is loopy.
    """
    if inference not in ("auto", "exact", "loopy"):
        raise ArgumentError(f"inference: must be auto, exact or loopy, not {inference!r}")
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not memory > 0:
        raise ArgumentError(f"memory: must be a number of bytes above zero, not {memory!r}")
    fits = model.predicted_bytes <= memory
    if inference == "exact" and not fits:
        raise ArgumentError(
            f"inference: exact would need a {describe_size(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed. Raise memory=, use inference='loopy' "
            "(approximate), or ask for smaller or fewer cliques"
        )
    if inference == "auto" and not fits:
        warn_user(
            f"exact inference would need a {describe_size(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed: loopy belief propagation is used instead, which is "
            "approximate. Raise memory=, or ask for smaller or fewer cliques"
        )
    return Oracle(model, "exact" if fits and inference != "loopy" else "loopy")
