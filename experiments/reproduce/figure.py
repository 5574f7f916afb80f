"""What a figure is: how its table is computed, drawn and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.reproduce.store import TrialStore

if TYPE_CHECKING:
    import pandas as pd

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure of one paper.

    ``run`` gives the tidy table behind it, heavy loops through the store; ``draw`` a matplotlib
    Figure of it; ``measure`` the numbers that claims speak of, by the measure's id. Figures of one
    ``study`` share its settings (under the study's name) and its finished cells.
    """

    name: str
    paper: str
    title: str
    run: Callable[[Settings, TrialStore], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Any]
    measure: Callable[[pd.DataFrame], dict[str, float]]
    study: str = ""

    @property
    def settings_name(self) -> str:
        """Where its settings are found, and its trials kept."""
        return self.study or self.name
