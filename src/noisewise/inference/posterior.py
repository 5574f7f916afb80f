"""What an analyst gets: draws in the user's units, and a plain word on whether to trust them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.artifact import ArgumentError, Release
from noisewise.inference.prediction import Prediction, predict, predict_record

if TYPE_CHECKING:
    import pandas as pd

RHAT = 1.01
ESS = 400


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws by parameter name: arrays (chain, draw), or (group, chain, draw) where grouped.

    ``rhat`` and ``ess`` hold one number (or one per group) for each parameter. ``family`` is the
    exponential family where it is one; then ``y`` is its column and ``x`` is empty.
    ``prior_draws(number)`` draws the parameters from the prior. ``latent`` holds what else a method
    infers, where it fits memory: for ``exact`` regression the sums behind the noise ``s`` (in the
    box), and the mean ``mu_x`` and covariance ``tau2`` of the covariates (user's units), arrays
    (…, chain, draw, …). ``details`` tells tries, divergences, projections and seconds.
    ``guarantees`` says in words what each release promised the people behind it; ``releases`` are
    the public files themselves. ``without_noise()`` gives the standard deviation to be expected of
    every parameter had the sums been published as they are (``without_noise.py`` of each family).
    """

    draws: Mapping[str, np.ndarray]
    rhat: Mapping[str, np.ndarray]
    ess: Mapping[str, np.ndarray]
    method: str
    x: tuple[str, ...]
    y: str
    keys: tuple[str | int, ...] | None = None
    prior: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    latent: Mapping[str, np.ndarray] = field(default_factory=dict)
    family: Any = None
    prior_draws: Callable[[int], Mapping[str, np.ndarray]] | None = None
    guarantees: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()
    without_noise: Callable[[], Mapping[str, np.ndarray]] | None = None

    @property
    def unconverged(self) -> tuple[str | int | None, ...]:
        """Keys of the groups that have not converged (None: the only one)."""
        worst = np.max([np.atleast_1d(r) for r in self.rhat.values()], axis=0)
        least = np.min([np.atleast_1d(e) for e in self.ess.values()], axis=0)
        bad = ~((worst < RHAT) & (least >= ESS))
        keys = (None,) if self.keys is None else self.keys
        return tuple(k for k, b in zip(keys, bad, strict=True) if b)

    @property
    def converged(self) -> bool:
        """R-hat below 1.01 and at least 400 effective draws, for every parameter and group."""
        return not self.unconverged

    @property
    def status(self) -> str:
        """In words, with what to do."""
        bad = self.unconverged
        if not bad:
            return f"converged: R-hat < {RHAT} and at least {ESS} effective draws everywhere"
        many = "" if self.keys is None else f" in {len(bad)} of {len(self.keys)} groups"
        worst = max(float(np.max(r)) for r in self.rhat.values())
        least = min(float(np.min(e)) for e in self.ess.values())
        return (
            f"not converged{many}: R-hat up to {worst:.3f}, {least:.0f} effective draws at the "
            f"least (wanted: below {RHAT}, at least {ESS}). Ask for more draws, or a tighter prior"
        )

    def summary(self, interval: float = 0.95) -> pd.DataFrame:
        """Mean, sd, central interval, R-hat and effective draws, one row per (group,) parameter."""
        import pandas as pd

        if not 0 < interval < 1:
            raise ArgumentError(f"interval: must be between 0 and 1, not {interval!r}")
        tails = (1 - interval) / 2, (1 + interval) / 2
        frames = []
        for name, values in self.draws.items():
            flat = values.reshape(-1 if self.keys is not None else 1, np.prod(values.shape[-2:]))
            low, high = np.quantile(flat, tails, axis=1)
            frame = pd.DataFrame(
                {
                    "parameter": name,
                    "mean": flat.mean(axis=1),
                    "sd": flat.std(axis=1, ddof=1),
                    "lower": low,
                    "upper": high,
                    "rhat": np.atleast_1d(self.rhat[name]),
                    "ess": np.atleast_1d(self.ess[name]),
                }
            )
            if self.keys is not None:
                frame.insert(0, "group", list(self.keys))
            frames.append(frame)
        table = pd.concat(frames, ignore_index=True)
        return table.set_index(["group", "parameter"] if self.keys is not None else "parameter")

    def predict(self, new_x: Mapping[str, float] | None = None, *, seed: int = 0) -> Prediction:
        """The posterior predictive of y at given covariates, in the user's units.

        A UserWarning tells of covariates outside the release's public bounds, where no record was
        seen. Of an exponential family there are no covariates: the prediction is of one new record.
        """
        if self.family is not None:
            if new_x:
                raise ArgumentError("new_x: there are no covariates; leave it out")
            return predict_record(self.family, self.draws, seed)
        if not isinstance(new_x, Mapping) or set(new_x) != set(self.x):
            raise ArgumentError(
                f"new_x: must give a value to each of {', '.join(self.x)}, and to nothing else"
            )
        at = {}
        for column in self.x:
            value = new_x[column]
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise ArgumentError(f"new_x[{column!r}]: must be one number, not {value!r}")
            if not np.isfinite(value):
                raise ArgumentError(f"new_x[{column!r}]: must be a finite number, not {value!r}")
            at[column] = float(value)
        for told in self._unseen(at):
            warnings.warn(told, UserWarning, stacklevel=2)
        return predict(self.draws, at, seed)

    def _unseen(self, at: Mapping[str, float]) -> list[str]:
        """Covariates beyond the bounds, in words; a posterior made by hand has no bounds."""
        bounds = self.releases[0].bounds if self.releases else {}
        return [
            f"{column} = {value:g} lies outside its public bounds, {bounds[column].lower:g} to "
            f"{bounds[column].upper:g}: no record was seen there, and the prediction extends a "
            "straight line"
            for column, value in at.items()
            if column in bounds and not bounds[column].lower <= value <= bounds[column].upper
        ]

    def to_arviz(self) -> Any:
        """As ArviZ's own type (dims chain, draw, group)."""
        from noisewise.inference.arviz import inference_data

        return inference_data(self.draws, self.keys)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a netCDF file that ArviZ and others read; it appears whole or not at all.

        ``nw.load_posterior(path)`` gives the posterior back, without ``latent``.
        """
        from noisewise.inference import file

        return file.save(self, Path(path))

    def __repr__(self) -> str:
        if self.family is not None:
            told = f"{self.family.name} by {self.method}, prior {self.prior}"
            return f"<Posterior of {self.y}, {told}: {self.status}>"
        return f"<Posterior of {self.y} on {', '.join(self.x)} by {self.method}: {self.status}>"

    def _repr_html_(self) -> str:
        """For notebooks: where the parameters lie, and whether to trust it."""
        from noisewise.artifact import notebook

        numbers = ("mean", "sd", "lower", "upper")
        rows = self.summary().head(notebook.MOST_ROWS + 1).reset_index()
        names = [c for c in rows if c in ("group", "parameter")]
        shown = [
            (*(str(row[c]) for c in names), *(f"{row[c]:.4g}" for c in numbers))
            for _, row in rows.iterrows()
        ]
        return notebook.fragment(
            f"Posterior of {self.y}" + (f" on {', '.join(self.x)}" if self.x else ""),
            (f"Method {self.method}; 95 % intervals. {self.status}", *self.guarantees),
            (*names, *numbers), shown,
        )  # fmt: skip
