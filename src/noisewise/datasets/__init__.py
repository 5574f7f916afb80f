"""One table that ships with noisewise, one made up, and two simulated after studies.

``cirrhosis``: drinking and cirrhosis in 46 US states (K. A. Brownlee, Statistical Theory and
Methodology in Science and Engineering, 2nd ed., Wiley 1965, pp. 464-465).

``wages``: made up, of employees: schooling, sex and the logarithm of the hourly wage. One more year
of schooling raises wages by 9 %, women earn 18 % less than men of the same schooling (``WAGES``).

``social_mobility``: the Opportunity Insights study of Illinois (thesis, section 5.4). One row per
person: the tract they grew up in, their parents' income rank (``pir``) and their own as adults
(``kir``), both in [0, 1]. The published form is reproduced: 3,108 tracts whose sizes have a long
tail from 20 to 446, and a line per tract that scatters around ``kir = 0.35 + 0.3 pir``.

``wifi_log``: connections to wireless access points of one building (thesis, section 3.3.4), that is
sessions of users at places over three weeks, with heavy-tailed activity (most people are hardly
ever seen, a few all day long). ``hour_segments`` is the loader, for such a log or a real one: it
notes where each person is every ten minutes and cuts a day into hours, the records of a graphical
model. A person is one day of one user.

All numbers but those of ``cirrhosis`` are made up, so NumPy's generator is the right one.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

__all__ = [
    "cirrhosis",
    "cirrhosis_path",
    "hour_segments",
    "social_mobility",
    "wages",
    "wifi_log",
]

CIRRHOSIS_BOUNDS = {
    "urban_percent": (0.0, 100.0),
    "late_births_reciprocal": (0.0, 100.0),
    "wine_per_capita": (0.0, 40.0),
    "liquor_per_capita": (0.0, 200.0),
    "cirrhosis_death_rate": (0.0, 150.0),
}
"""Round limits anyone could have named without the table: a share is at most 100 %, and so on."""

WAGES = {"schooling": float(np.log(1.09)), "C(sex)[T.female]": float(np.log(0.82))}
"""What the logarithm of a wage changes by, for one more year of schooling and for women."""
TRACTS = 3108
"""Census tracts of Illinois in the study."""
SMALLEST_TRACT, LARGEST_TRACT = 20, 446
"""People in the smallest and the largest tract, as published."""


def cirrhosis_path() -> Path:
    """Return where the CSV file lies on disk.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.cirrhosis_path().name
        'cirrhosis.csv'
    """
    return Path(str(files("noisewise.datasets") / "cirrhosis.csv"))


def cirrhosis() -> pa.Table:
    """Return the table: 46 rows, one per state; all columns numeric.

    Example:
        >>> import noisewise as nw
        >>> table = nw.datasets.cirrhosis()
        >>> table.num_rows, table.column_names[0]
        (46, 'urban_percent')
    """
    return pyarrow.csv.read_csv(cirrhosis_path())


def wages(*, people: int = 20_000, seed: int = 0) -> pa.Table:
    """Simulate a table of employees: years of schooling, sex, and the log of the hourly wage.

    Args:
        people: number of rows.
        seed: of the simulation.

    Returns:
        Columns ``schooling`` (whole years), ``sex`` (female or male), ``log_wage``.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.wages(people=100).column_names
        ['schooling', 'sex', 'log_wage']
    """
    if people < 1:
        raise ValueError(f"people: must be at least 1, not {people!r}")
    rng = np.random.default_rng(seed)
    sex = rng.choice(["female", "male"], people, p=[0.48, 0.52])
    schooling = np.clip(np.rint(rng.normal(12.5, 2.6, people)), 6, 20)
    log_wage = (
        1.85
        + WAGES["schooling"] * schooling
        + WAGES["C(sex)[T.female]"] * (sex == "female")
        + rng.normal(0, 0.45, people)
    )
    return pa.table({"schooling": schooling.astype(np.int64), "sex": sex, "log_wage": log_wage})


def social_mobility(*, tracts: int = TRACTS, seed: int = 0) -> pa.Table:
    """Simulate a table of people: their tract, their parents' income rank and their own.

    Args:
        tracts: number of census tracts.
        seed: of the simulation.

    Returns:
        Columns ``tract`` (whole number), ``pir``, ``kir``; about 280,000 rows at full size.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.social_mobility(tracts=5).column_names
        ['tract', 'pir', 'kir']
    """
    if tracts < 1:
        raise ValueError(f"tracts: must be at least 1, not {tracts!r}")
    rng = np.random.default_rng(seed)
    sizes = tract_sizes(rng, tracts)
    tract = np.repeat(np.arange(tracts), sizes)
    rows = len(tract)
    intercept = rng.normal(0.35, 0.06, tracts)[tract]
    slope = rng.normal(0.30, 0.08, tracts)[tract]
    # Neighbourhoods differ in wealth: parents' ranks gather around the tract's own level.
    wealth = rng.beta(4, 4, tracts)
    spread = rng.uniform(4, 12, tracts)
    pir = rng.beta((wealth * spread)[tract], ((1 - wealth) * spread)[tract])
    kir = np.clip(intercept + slope * pir + rng.normal(0, 0.2, rows), 0, 1)
    order = rng.permutation(rows)
    return pa.table({"tract": tract[order], "pir": pir[order], "kir": kir[order]})


def tract_sizes(rng: np.random.Generator, tracts: int) -> np.ndarray:
    """Draw people per tract: log-normal between the published extremes, which both occur."""
    sizes = np.clip(np.rint(rng.lognormal(4.3, 0.6, tracts)), SMALLEST_TRACT, LARGEST_TRACT).astype(
        np.int64
    )
    if tracts > 1:
        sizes[rng.permutation(tracts)[:2]] = SMALLEST_TRACT, LARGEST_TRACT
    return np.asarray(sizes)


UNSEEN = "none"
"""The level of a step at which nobody saw the person."""
STEPS, MINUTES = 6, 10
"""Steps in a segment, and the minutes between them."""
_STEPS_PER_DAY = 24 * STEPS
_FIRST_DAY = np.datetime64("2020-03-02T00:00:00", "s")
"""A Monday (chosen)."""
_MAX_SESSIONS = 40
"""Sessions of one person on one day, at most (chosen)."""


def place_names(places: int) -> tuple[str, ...]:
    """Return the public list of places, most popular first."""
    return tuple(f"ap{i:02d}" for i in range(places))


def wifi_log(*, users: int = 12_000, days: int = 21, places: int = 15, seed: int = 0) -> pa.Table:
    """Simulate a log of sessions.

    Args:
        users: number of people who may come.
        days: length of the log.
        places: number of access points.
        seed: of the simulation.

    Returns:
        Columns ``user``, ``place``, ``start`` and ``end`` (timestamps), in order of start.

    Example:
        >>> import noisewise as nw
        >>> nw.datasets.wifi_log(users=5, days=2).column_names
        ['user', 'place', 'start', 'end']
    """
    for name, value in (("users", users), ("days", days), ("places", places)):
        if value < 1:
            raise ValueError(f"{name}: must be at least 1, not {value!r}")
    rng = np.random.default_rng(seed)
    # How likely a user is to come on a day, and for how many sessions: both with long tails.
    comes = np.clip(rng.lognormal(-0.8, 0.8, users), 0.02, 0.98)
    busy = 1 + rng.pareto(1.5, users)
    home = _popular(rng, places, users)
    user, day = np.nonzero(rng.random((users, days)) < comes[:, None])
    sessions = np.minimum(rng.poisson(busy[user]) + 1, _MAX_SESSIONS)
    owner = np.repeat(np.arange(len(user)), sessions)
    start, length = _times(rng, sessions, owner)
    place = _moves(rng, places, home[user[owner]])
    kept = start < 24 * 60
    begin = _FIRST_DAY + (60 * (day[owner] * 24 * 60 + start)[kept]).astype("timedelta64[s]")
    end = begin + (60 * length[kept]).astype("timedelta64[s]")
    order = np.argsort(begin, kind="stable")
    names = np.array(place_names(places))
    return pa.table(
        {
            "user": user[owner][kept][order],
            "place": names[place[kept][order]],
            "start": begin[order],
            "end": end[order],
        }
    )


def hour_segments(log: pa.Table | str | os.PathLike[str]) -> pa.Table:
    """Cut a log into hours in which a person was seen.

    Args:
        log: a table, or the path of a CSV or Parquet file, with columns ``user``, ``place``,
            ``start`` and ``end``. Where sessions overlap, the one that began last counts. Hours in
            which a person was never seen are left out: a rule that looks at one person only.

    Returns:
        Columns ``person``, ``hour``, ``t0`` … ``t5``: where the person was, every ten minutes.

    Example:
        >>> import noisewise as nw
        >>> log = nw.datasets.wifi_log(users=5, days=2)
        >>> nw.datasets.hour_segments(log).column_names
        ['person', 'hour', 't0', 't1', 't2', 't3', 't4', 't5']
    """
    table = _read(log)
    owner = np.unique(table["user"].to_numpy(), return_inverse=True)[1]
    places, place = np.unique(table["place"].to_numpy(), return_inverse=True)
    first, stop = (_slot(table[name]) for name in ("start", "end"))
    count = np.maximum(stop - first, 0)
    session = np.repeat(np.arange(len(count)), count)
    slot = first[session] + np.arange(len(session)) - np.repeat(np.cumsum(count) - count, count)
    low = int(slot.min()) // _STEPS_PER_DAY if len(slot) else 0
    days = (int(slot.max()) // _STEPS_PER_DAY - low + 1) if len(slot) else 1
    person = owner[session] * days + slot // _STEPS_PER_DAY - low
    hour = slot % _STEPS_PER_DAY // STEPS
    keys, row = np.unique(person * 24 + hour, return_inverse=True)
    seen = np.zeros((len(keys), STEPS), np.int64)
    # Sessions are in order of start: the last one written is the one that began last.
    seen[row, slot % STEPS] = place[session] + 1
    names = np.array([UNSEEN, *places])
    columns = {f"t{j}": names[seen[:, j]] for j in range(STEPS)}
    return pa.table({"person": keys // 24, "hour": keys % 24, **columns})


def _read(log: pa.Table | str | os.PathLike[str]) -> pa.Table:
    """Return the log in order of start; refuse one that lacks a column."""
    if not isinstance(log, pa.Table):
        path = Path(log)
        read = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.parquet.read_table
        log = read(path)
    for name in ("user", "place", "start", "end"):
        if name not in log.column_names:
            raise ValueError(f"log: has no column {name!r}; it needs user, place, start and end")
    return log.sort_by("start")


def _slot(times: pa.ChunkedArray) -> np.ndarray:
    """Count ten-minute marks before a time: a session is seen at marks start ≤ t < end."""
    seconds = times.cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    return np.asarray(-(-seconds // (60 * MINUTES)))


def _popular(rng: np.random.Generator, places: int, count: int) -> np.ndarray:
    """Draw places with shares 1, 1/2, 1/3, …"""
    share = 1 / (1 + np.arange(places))
    return np.asarray(rng.choice(places, count, p=share / share.sum()))


def _moves(rng: np.random.Generator, places: int, home: np.ndarray) -> np.ndarray:
    """Draw places: mostly one's own, often one next to it, sometimes any."""
    kind = rng.random(len(home))
    near = np.clip(home + rng.choice((-1, 1), len(home)), 0, places - 1)
    return np.where(kind < 0.5, home, np.where(kind < 0.75, near, _popular(rng, places, len(home))))


def _times(
    rng: np.random.Generator, sessions: np.ndarray, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw minutes of the day at which sessions begin, and how long they last."""
    arrival = rng.triangular(7 * 60, 10 * 60, 20 * 60, len(sessions))[owner]
    length = np.clip(rng.lognormal(3.3, 0.9, len(owner)), 2, 240)
    # Often straight on to the next place, sometimes out of sight for a while.
    gap = np.where(rng.random(len(owner)) < 0.5, 0.0, rng.exponential(40, len(owner)))
    step = length + gap
    total = np.cumsum(step) - step
    first = np.cumsum(sessions) - sessions
    return arrival + total - total[first][owner], length
