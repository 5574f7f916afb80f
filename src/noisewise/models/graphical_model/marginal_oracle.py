"""Which log-partition function: exact where the junction tree fits, loopy BP otherwise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import jax

from noisewise.artifact import ArgumentError
from noisewise.models.graphical_model import exact, loopy
from noisewise.models.graphical_model.structure import Structure

MEMORY = 2 * 2**30
"""Bytes an exact junction tree may take, unless the analyst says otherwise."""

Inference = Literal["auto", "exact", "loopy"]


@dataclass(frozen=True)
class Oracle:
    """A(θ) of one structure. Hashable, so that what it compiles is compiled once."""

    model: Structure
    kind: Literal["exact", "loopy"]

    @property
    def log_partition(self) -> Callable[[jax.Array], jax.Array]:
        """θ → A(θ)."""
        return partial((exact if self.kind == "exact" else loopy).log_partition, self.model)

    @property
    def value_and_marginals(self) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
        """θ → A(θ), μ(θ) = ∇A(θ)."""
        return jax.value_and_grad(self.log_partition)

    @property
    def marginals(self) -> Callable[[jax.Array], jax.Array]:
        """θ → μ(θ)."""
        return jax.grad(self.log_partition)


@lru_cache(maxsize=64)
def compiled(oracle: Oracle) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """A and μ, ready to be called from Python."""
    return jax.jit(oracle.value_and_marginals)


def size_in_words(model: Structure) -> str:
    """The predicted size, for people."""
    return (
        f"junction tree of {len(model.tree)} cliques, the largest over "
        f"{max(len(c) for c in model.tree)} columns, {model.cells} cells: "
        f"{model.predicted_bytes / 2**20:.3g} MiB"
    )


def choose(model: Structure, inference: str = "auto", memory: float = MEMORY) -> Oracle:
    """Predict the size first; nothing is built that does not fit."""
    if inference not in ("auto", "exact", "loopy"):
        raise ArgumentError(f"inference: must be auto, exact or loopy, not {inference!r}")
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not memory > 0:
        raise ArgumentError(f"memory: must be a number of bytes above zero, not {memory!r}")
    fits = model.predicted_bytes <= memory
    if inference == "exact" and not fits:
        raise ArgumentError(
            f"inference: exact would need a {size_in_words(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed. Raise memory=, use inference='loopy' "
            "(approximate), or ask for smaller or fewer cliques"
        )
    if inference == "auto" and not fits:
        warnings.warn(
            f"exact inference would need a {size_in_words(model)}, more than the "
            f"{memory / 2**20:.3g} MiB allowed: loopy belief propagation is used instead, which is "
            "approximate. Raise memory=, or ask for smaller or fewer cliques",
            stacklevel=2,
        )
    return Oracle(model, "exact" if fits and inference != "loopy" else "loopy")
