"""The owner's audited core: a table and a request in, exact integer sums, noise, one release out.

In the order of reading: ``options`` (ε, δ, neighbours, unit and so on, as users give them),
``arguments`` (columns, bounds and groups, checked), ``budget`` (what is promised, and the share of
each statistic), ``pipeline`` (``publish``: check, sum, pay, draw, write), ``selection`` (which
records, and which neighbours that allows), ``sources`` (tables, files and engines), ``sum_plan``,
``lattice`` and ``sums`` (exact integers), ``statistic_privacy`` (what each statistic sums),
``private_bounds`` (bounds found by noisy counts), ``mechanisms`` (noise, by OpenDP alone) and
``ledger``. How far one person can move a statistic stands in ``noisewise.artifact.sensitivity``,
where readers of a file check it too.
"""

# The statistics that come with noisewise register what they sum.
from noisewise.privacy import statistic_privacy as statistic_privacy
