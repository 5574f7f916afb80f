"""Discrete graphical models from noisy contingency tables.

The owner's file is ``release``. The analyst's, in the order of reading: ``structure`` (cliques and
junction tree), ``marginal_oracle`` (elimination, belief propagation), ``problem`` (a release as
arrays), ``maximum_likelihood`` (naive-mle), ``collective_em`` with ``e_step`` and
``log_partition_hessian`` (cgm), ``nuts`` with ``contrasts`` and ``fisher_information`` (bayes);
``fitted_model``, ``posterior`` and ``grouped_results`` are what an analyst gets, and
``model_files`` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from noisewise.artifact import Release
from noisewise.models.base import Model, register

if TYPE_CHECKING:
    from noisewise.inference.results import Result


class GraphicalModelRelease(Release):
    """Noisy contingency tables over cliques of categorical columns."""


class GraphicalOptions(TypedDict, total=False):
    """Options of ``infer`` for graphical models, for type checkers; ``analyst.py`` checks them."""

    tied: Literal[True] | Iterable[Iterable[Iterable[str]]] | None
    inference: Literal["auto", "exact", "loopy"]
    memory: float
    estep: Literal["dual", "nlbp"]
    spread: float
    lam: float
    law: Literal["log-gamma", "normal"]


@register
class GraphicalModelDescription(Model):
    """A graphical model over the cliques of the released tables."""

    name = "graphical-model"
    statistics = ("tables", "person-tables")
    release_type = GraphicalModelRelease

    def readers(self) -> Mapping[bytes, Callable[[Path], Result]]:
        """Return who reads the model's own files: JSON, or an archive of arrays."""
        from noisewise.models.graphical_model.grouped_results import load_graphical

        return {b"PK": load_graphical, b'{"': load_graphical}
