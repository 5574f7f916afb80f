"""Made-up tables with factors, deterministic by seed; NumPy only.

``wages`` has the shape of a labour survey of 54,875 people (log wage on education and sex),
``acs_income`` that of ACSincome (F. Ding et al., Retiring Adult, NeurIPS 2021): an income and seven
factors, 39 indicator columns in all, correlated and with rare levels. Its law has interactions and
skewed, heteroskedastic errors, which no additive normal model has: no method is favoured.
``two_factors`` is a regression on one number and factors of two and five levels whose law is that
of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from noisewise.formula import Formula, Term


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name (levels as texts), public bounds and levels, and the formula asked."""

    columns: dict[str, np.ndarray]
    bounds: dict[str, tuple[float, float]]
    levels: Mapping[str, tuple[str | int, ...]]
    formula: str

    @property
    def response(self) -> str:
        """Return the column to be explained."""
        return self.formula.partition("~")[0].strip()

    @property
    def parsed(self) -> Formula:
        """Return the formula as ``noisewise.formula.parse`` does, which needs formulaic."""
        terms = []
        for text in self.formula.partition("~")[2].split("+"):
            parts = text.strip().split(":")
            factors = tuple(p[2:-1] for p in parts if p.startswith("C("))
            numeric = tuple(sorted(p for p in parts if not p.startswith("C(")))
            terms.append(Term(numeric, factors, text.strip()))
        return Formula(
            self.formula, self.response, tuple(terms), {f: f"C({f})" for f in self.levels}
        )

    def __len__(self) -> int:
        return len(self.columns[self.response])

    def some(self, rows: np.ndarray) -> Table:
        """Return the table of some of the records."""
        chosen = {name: column[rows] for name, column in self.columns.items()}
        return Table(chosen, self.bounds, self.levels, self.formula)


# -- wages -----------------------------------------------------------------------------------------

WAGES = 54_875
"""Records of the survey whose shape is made."""
YEARS = (0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22)
"""Years of school."""
YEAR_SHARES = (
    0.004,
    0.004,
    0.007,
    0.014,
    0.02,
    0.022,
    0.03,
    0.04,
    0.36,
    0.15,
    0.10,
    0.16,
    0.06,
    0.02,
    0.009,
)
"""Their shares: most leave school at 12 (chosen)."""
LOG_WAGE_DEVIATION = 0.93
"""Deviation of log wages given education and sex (chosen: with the Gram matrix of the three columns
the posterior deviation of the slope over its standard error is then that of the survey)."""
WAGE_BOUNDS = {"education": (0.0, 22.0), "female": (0.0, 1.0), "wage": (0.0, 15.0)}
"""Public bounds where ``female`` is a number."""


def wages(n: int = WAGES, seed: int = 0) -> Table:
    """Make log wages: a slope of .09 a year of education, women .3 below men."""
    rng = np.random.default_rng([seed, 1])
    female = (rng.random(n) < 0.49).astype(int)
    education = rng.choice(YEARS, n, p=np.array(YEAR_SHARES) / sum(YEAR_SHARES)).astype(float)
    wage = 9.0 + 0.09 * education - 0.3 * female + rng.normal(0, LOG_WAGE_DEVIATION, n)
    columns = {"education": education, "female": female, "wage": wage}
    bounds = {name: WAGE_BOUNDS[name] for name in ("education", "wage")}
    return Table(columns, bounds, {"female": (0, 1)}, "wage ~ education + C(female)")


# -- income ----------------------------------------------------------------------------------------

INCOMES = 50_000
"""Records of the table of incomes."""
SHARES = {
    "sex": (.52, .48),
    "schooling": (.24, .20, .19, .14, .09, .06, .04, .025, .015),
    "occupation": (.35, .25, .17, .12, .08, .03),
    "marital": (.53, .31, .10, .04, .02),
    "age": (.22, .20, .18, .15, .11, .08, .04, .02),
    "race": (.66, .13, .09, .06, .03, .015, .01, .003, .002),
    "worker": (.68, .13, .08, .05, .03, .02, .01),
}  # fmt: skip
"""Factors and the shares of their levels: 46 levels, 39 indicator columns (chosen)."""
EFFECTS = {
    "sex": .18, "schooling": .32, "occupation": .30, "marital": .12, "age": .25, "race": .08,
    "worker": .12,
}  # fmt: skip
"""How much the effects of a factor scatter, on the scale of log incomes (chosen)."""
CORRELATION = 0.35
"""Correlation of the normal scores behind the factors (chosen)."""
INCOME_CAP = 250.0
"""Upper bound of incomes, in thousands; what is above is clamped."""


def acs_income(n: int = INCOMES, seed: int = 0) -> Table:
    """Make incomes in thousands and seven correlated factors.

    Log incomes have additive effects, an interaction of age with schooling and one of sex with
    marital status, and skewed errors; incomes themselves are therefore far from additive and
    normal. The law depends on the seed as well.
    """
    rng = np.random.default_rng([seed, 2])
    shared = rng.standard_normal(n) * np.sqrt(CORRELATION)
    codes, log_income = {}, np.full(n, 3.45)
    for name, shares in SHARES.items():
        score = shared + rng.standard_normal(n) * np.sqrt(1 - CORRELATION)
        ends = np.quantile(score, np.cumsum(shares)[:-1])
        # Which level stands where on the score is arbitrary: correlation is not an order.
        codes[name] = rng.permutation(len(shares))[np.searchsorted(ends, score)]
        log_income += (EFFECTS[name] * rng.standard_normal(len(shares)))[codes[name]]
    for one, other, size in (("age", "schooling", 0.10), ("sex", "marital", 0.12)):
        effects = size * rng.standard_normal((len(SHARES[one]), len(SHARES[other])))
        log_income += effects[codes[one], codes[other]]
    # A gamma of mean zero, skewed to the left, beside a normal: most people lie near the top.
    log_income += 0.35 * rng.standard_normal(n) - 0.25 * (rng.gamma(2.0, 1.0, n) - 2.0)
    income = np.minimum(np.exp(log_income), INCOME_CAP)
    levels = {f: tuple(f"{f[0]}{i}" for i in range(len(s))) for f, s in SHARES.items()}
    columns = {f: np.array(levels[f])[codes[f]] for f in SHARES}
    formula = "income ~ " + " + ".join(f"C({f})" for f in SHARES)
    return Table({**columns, "income": income}, {"income": (0.0, INCOME_CAP)}, levels, formula)


# -- one number, two factors -----------------------------------------------------------------------

A_EFFECTS, B_EFFECTS = (0.0, 0.4), (0.0, 0.3, -0.3, 0.5, -0.5)
"""Effects of the levels (chosen)."""
B_SHARES = (0.40, 0.28, 0.20, 0.10, 0.02)
"""Shares of the five levels."""


def two_factors(rng: np.random.Generator, n: int) -> Table:
    """Make y = x/2 + effects of A (two levels alike) and B (five, the last rare) + N(0, 1)."""
    x = rng.uniform(-1, 1, n)
    a, b = rng.integers(0, 2, n), rng.choice(5, n, p=B_SHARES)
    y = 0.5 * x + np.array(A_EFFECTS)[a] + np.array(B_EFFECTS)[b] + rng.standard_normal(n)
    levels = {"A": ("a1", "a2"), "B": ("b1", "b2", "b3", "b4", "b5")}
    columns = {"x": x, "A": np.array(levels["A"])[a], "B": np.array(levels["B"])[b], "y": y}
    return Table(columns, {"x": (-1.0, 1.0), "y": (-4.0, 4.0)}, levels, "y ~ x + C(A) + C(B)")
