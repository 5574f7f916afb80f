"""What a posterior keeps of the covariates: moments, from which nodes are made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noisewise.models.generalized_linear.cell_nodes import cell_nodes
from noisewise.models.generalized_linear.covariate_nodes import (
    CovariateNodes,
    box_nodes,
    normal_nodes,
    order_of,
)

SYMMETRIC = 1e-9
"""Rounding by which a covariance in a file may be off symmetry (chosen)."""


@dataclass(frozen=True, eq=False)
class CovariateMoments:
    """Posterior means of the covariates' mean and covariance in the box, by group.

    ``centre`` and ``half`` of the box of every column; which columns are ``indicators``; and the
    law that was made of these.
    """

    mean: np.ndarray
    covariance: np.ndarray
    centre: np.ndarray
    half: np.ndarray
    indicators: np.ndarray
    law: str

    def nodes(self, group: int) -> CovariateNodes:
        """Return nodes (node, column) in the user's units and their weights."""
        order = order_of(self.indicators)
        if self.law == "normal":
            nodes = normal_nodes(len(order))
        else:
            nodes = box_nodes(self.mean[group], self.covariance[group], self.indicators)
        factor = np.linalg.cholesky(self.covariance[group][np.ix_(order, order)])
        box = np.empty_like(nodes.z)
        box[:, order] = self.mean[group][order] + nodes.z @ factor.T
        return CovariateNodes(self.centre + self.half * box, nodes.weight)

    def attributes(self) -> dict[str, object]:
        """Return the fields in JSON's types, for a file."""
        return {
            "mean": self.mean.tolist(), "covariance": self.covariance.tolist(),
            "centre": self.centre.tolist(), "half": self.half.tolist(),
            "indicators": self.indicators.tolist(), "law": self.law,
        }  # fmt: skip

    @classmethod
    def from_attributes(cls, content: Mapping[str, Any], columns: int) -> CovariateMoments:
        """Return the moments that a file holds; a ValueError where they cannot be any."""
        fields = cls.checked_fields(content, columns)
        if (np.abs(fields["mean"]) > 1).any():
            raise ValueError("the covariates' moments are none")
        return cls(**fields, law=content["law"])

    @staticmethod
    def checked_fields(content: Mapping[str, Any], columns: int) -> dict[str, np.ndarray]:
        """Return the arrays that a file holds; a ValueError where they cannot be moments."""
        mean = np.asarray(content["mean"], float)
        groups = len(mean)
        wanted = {
            "mean": (groups, columns), "covariance": (groups, columns, columns),
            "centre": (columns,), "half": (columns,), "indicators": (columns,),
        }  # fmt: skip
        fields = {}
        for name, shape in wanted.items():
            array = np.asarray(content[name])
            wrong = array.dtype != bool if name == "indicators" else array.dtype.kind not in "if"
            if wrong or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the covariates' {name} is not what it should be")
            fields[name] = array if name == "indicators" else array.astype(float)
        covariance = fields["covariance"]
        if (
            (fields["half"] <= 0).any()
            or np.abs(covariance - np.swapaxes(covariance, 1, 2)).max() > SYMMETRIC
            or np.linalg.eigvalsh(covariance).min() <= 0
        ):
            raise ValueError("the covariates' moments are none")
        if content["law"] not in ("box", "normal"):
            raise ValueError("the law of the covariates is unknown")
        return fields


@dataclass(frozen=True, eq=False)
class DesignMoments(CovariateMoments):
    """Posterior means of the moments of a design's columns, in the user's units.

    ``indicators`` are the columns of levels. ``sizes`` and ``change`` say which atoms they are made
    of: design = atoms ``change``, the constant among both.
    """

    sizes: tuple[int, ...]
    change: np.ndarray

    def nodes(self, group: int) -> CovariateNodes:
        """Return nodes (node, column) of the design and their weights."""
        mean, covariance = self.atoms(group)
        columns = len(mean)
        nodes = (
            normal_nodes(columns)
            if self.law == "normal"
            else cell_nodes(mean, covariance, self.sizes)
        )
        atoms = np.ones((len(nodes.z), columns + 1))
        atoms[:, 1:] = mean + nodes.z @ np.linalg.cholesky(covariance).T
        return CovariateNodes((atoms @ self.change)[:, :-1], nodes.weight)

    def atoms(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of the atoms beside the constant."""
        back = np.linalg.inv(self.change)
        mean = np.append(self.mean[group], 1.0) @ back
        covariance = back[:-1].T @ self.covariance[group] @ back[:-1]
        return mean[1:], covariance[1:, 1:]

    def recoded(self, change: np.ndarray) -> DesignMoments:
        """Return the moments of another coding, whose coefficients are ``change`` times these."""
        back = np.linalg.inv(change)
        mean = np.column_stack([self.mean, np.ones(len(self.mean))]) @ back
        covariance = back[:-1].T @ self.covariance @ back[:-1]
        return replace(
            self, mean=mean[:, :-1], covariance=covariance[:, :-1, :-1],
            change=self.change @ back,
        )  # fmt: skip

    def attributes(self) -> dict[str, object]:
        """Return the fields in JSON's types, for a file."""
        return {
            **super().attributes(), "sizes": list(self.sizes), "change": self.change.tolist(),
        }  # fmt: skip

    @classmethod
    def read(cls, content: Mapping[str, Any], columns: int) -> DesignMoments:
        """Return the moments that a file holds; a ValueError where they cannot be any."""
        fields = cls.checked_fields(content, columns)
        sizes = tuple(content["sizes"])
        change = np.asarray(content["change"], float)
        whole = all(isinstance(c, int) and c > 1 for c in sizes)
        if not whole or sum(c - 1 for c in sizes) != int(fields["indicators"].sum()):
            raise ValueError("the factors' sizes are not what they should be")
        if change.shape != (columns + 1, columns + 1) or not np.isfinite(change).all():
            raise ValueError("the atoms of the design are not what they should be")
        if np.linalg.matrix_rank(change / np.abs(change).max(axis=0).clip(1e-300)) <= columns:
            raise ValueError("the columns of the design depend on each other")
        return cls(**fields, law=content["law"], sizes=sizes, change=change)
