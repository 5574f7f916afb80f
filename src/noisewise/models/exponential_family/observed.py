"""What the owner summed of each record: the statistic itself, or what an interval left of it.

Records outside [lower, upper] contribute nothing (``drop``, thesis 4.3.1) or what the nearer end
would (``clamp``). ``whole``: the interval inside which a statistic is the sum as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from noisewise.artifact import PowerSums


@partial(jax.tree_util.register_dataclass, data_fields=["lower", "upper"], meta_fields=["outside"])
@dataclass(frozen=True)
class Interval:
    """Public ends and what happened beyond them; ``keep`` means that nothing lies beyond.

    The ends are data to JAX: another interval is not another compilation.
    """

    lower: Any
    upper: Any
    outside: Literal["drop", "clamp", "keep"] = field(metadata={"static": True})

    def below(self, whole: bool) -> Any:
        """The largest x that is outside on the left, or for continuous x the end itself."""
        return jnp.ceil(self.lower) - 1.0 if whole else self.lower

    def above(self, whole: bool) -> Any:
        """The largest x inside."""
        return jnp.floor(self.upper) if whole else self.upper


def interval(statistic: PowerSums, bounded: bool, whole: bool) -> Interval:
    """Read from a release. Clamping whole numbers rounds the ends, half up, as the lattice does."""
    if bounded:
        return Interval(statistic.lower, statistic.upper, "keep")
    lower, upper = statistic.lower, statistic.upper
    if whole and statistic.outside == "clamp":
        lower, upper = float(math.floor(lower + 0.5)), float(math.floor(upper + 0.5))
    return Interval(lower, upper, statistic.outside)
