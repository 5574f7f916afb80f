"""A release as data frames: its numbers in box units, or in the user's.

pandas is loaded only when a data frame is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from noisewise.artifact.release import Block, Release


def _frame(
    release: Release, block: Block, values: np.ndarray, spread: np.ndarray, column: str
) -> pd.DataFrame:
    """Return the long form: all statistics of the first group, then of the second, …"""
    import pandas as pd

    keys = (None,) if release.groups is None else release.groups.keys
    names = block.statistic.names
    return pd.DataFrame(
        {
            "group": np.repeat(np.array(keys, dtype=object), len(names)),
            "statistic": np.tile(np.array(names, dtype=object), len(keys)),
            "value": values.T.ravel(),
            column: np.tile(spread, len(keys)) if spread.ndim == 1 else spread.T.ravel(),
        }
    )


def box_table(release: Release) -> pd.DataFrame:
    """Return the released numbers: regression statistics in box units, counts as counts."""
    import pandas as pd

    frames = [_frame(release, b, b.scaled, b.noise_scales, "noise_scale") for b in release.blocks]
    return pd.concat(frames, ignore_index=True)


def user_table(release: Release) -> pd.DataFrame:
    """Return sums of the clamped columns in the user's units, with the noise's deviation."""
    import pandas as pd

    frames = []
    for block in release.blocks:
        shown = block.statistic.in_user_units(release, block)
        if shown is not None:
            frames.append(_frame(release, block, *shown, "noise_sd"))
    if not frames:  # no statistic has sums in the user's units
        return box_table(release).iloc[:0].rename(columns={"noise_scale": "noise_sd"})
    return pd.concat(frames, ignore_index=True)
