"""``infer``: pick the family's method, run it, and say whether it converged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from noisewise.artifact import ArgumentError, Release
from noisewise.inference import combine
from noisewise.inference.posterior import Posterior
from noisewise.inference.progress import Report, reporting
from noisewise.models.exponential_family import analyst as expfam
from noisewise.models.graphical_model import analyst as graphical
from noisewise.models.linear_regression import (
    exact,
    gibbs_noisy,
    gibbs_prior,
    gibbs_update,
    individual_mcmc,
    naive,
    prior_check,
)
from noisewise.models.linear_regression.problem import combined_problem, regression_problem

Method = Callable[[Any, int, int, int, Report | None], Posterior]
"""Problem of the family, seed, chains, draws, progress."""

METHODS: dict[str, dict[str, Method]] = {
    "linear-regression": {
        "exact": exact.run,
        "gibbs-update": gibbs_update.run,
        "gibbs-prior": gibbs_prior.run,
        "gibbs-noisy": gibbs_noisy.run,
        "mcmc-individual": individual_mcmc.run,
        "naive": naive.run,
    },
    "exponential-family": expfam.METHODS,
    "graphical-model": graphical.METHODS,
}


def infer(
    release: Release | Iterable[Release],
    method: str | None = None,
    *,
    prior: Any = None,
    x: str | Iterable[str] | None = None,
    y: str | None = None,
    seed: int = 0,
    chains: int = 4,
    draws: int = 1000,
    progress: Report | bool | None = None,
    same_population: bool = False,
    **options: Any,
) -> Any:
    """The posterior given a release.

    Args:
        release: what the owner published; or several releases of the same records (of the same
            columns and bounds, with other ε or mechanisms), whose likelihoods multiply.
        method: left out, ``exact`` where there is one, else ``gibbs``. Linear regression: ``exact``
            (models data and noise exactly, at a cost that does not grow with n); the paper's
            ``gibbs-update``, ``gibbs-prior`` and ``gibbs-noisy`` (sums normal by the central limit
            theorem, moments of x inferred, from the prior, or released) and ``mcmc-individual``
            (every record a latent variable); or ``naive`` (ignores the noise; for comparison
            only). Exponential families: ``exact`` (``normal``: if n is public), ``gibbs`` (sums
            normal by the central limit theorem) and ``naive``. Graphical models: ``cgm`` (the
            default; EM that accounts for the noise) and ``naive-mle`` (ignores it) give a
            ``GraphicalModel``, ``bayes`` a ``GraphicalPosterior``.
        prior: ``{"response": NormalInverseGamma, "covariates": NormalInverseWishart}`` in the
            user's units; either may be left out for a weak default. Exponential families: one
            ``Beta``, ``Gamma``, ``Dirichlet`` or ``NormalInverseGamma``.
        x: covariates, if others than the owner named: any released columns.
        y: response, likewise. The Gram matrix is released once; every regression on it is free.
        seed: the analyst's own randomness; the same seed gives the same draws.
        chains: independent chains, started apart.
        draws: draws kept per chain.
        progress: a bar on a terminal unless False; True shows one anywhere; or a function to be
            called with steps done and steps in all.
        same_population: several releases are of the same records. To be said by the analyst, unless
            they name one dataset of one ledger. Sums further apart than the noise of both allows
            are refused in either case.
        options: of graphical models. ``lam`` (naive-mle; 1e-5), ``estep`` (cgm; ``"dual"`` or
            ``"nlbp"``), ``spread`` (cgm; π/√6), ``law`` of the potentials (bayes; ``"log-gamma"``
            or ``"normal"``), ``tied`` (True, or lists of cliques that share a
            potential), ``inference`` (``"auto"``, ``"exact"``, ``"loopy"``), ``memory`` (bytes an
            exact junction tree may take).
    """
    releases = _listed(release)
    release = releases[0]
    if len(releases) > 1:
        combine.check(releases, same_population=same_population)
    if release.family not in METHODS:
        raise ArgumentError(
            f"release: there is no inference for family {release.family!r} yet; "
            f"there is for {', '.join(METHODS)}"
        )
    methods = METHODS[release.family]
    if method is None:
        method = _best(release)
    if method not in methods:
        raise ArgumentError(f"method: must be one of {', '.join(methods)}, not {method!r}")
    for name, value, least in (("chains", chains, 2), ("draws", draws, 100)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(
                f"{name}: must be a whole number of at least {least}, not {value!r}"
            )
    if len(releases) > 1 and method != "exact":
        raise ArgumentError(
            f"method: {method!r} takes one release; several are combined by 'exact' only, of "
            "linear regression and exponential families"
        )
    if release.family == "graphical-model":
        if x is not None or y is not None or prior is not None:
            raise ArgumentError("x, y, prior: do not go with a graphical model; see its options")
        with reporting(progress, f"fitting ({method})") as report:
            return graphical.run(release, method, options, seed, chains, draws, report)
    if options:
        raise ArgumentError(f"{min(options)}: is an option of graphical models only")
    if release.family == "exponential-family" and (x is not None or y is not None):
        raise ArgumentError("x, y: go with linear regression; this release has one column")
    given: Any
    if release.family == "exponential-family":
        given = expfam.together([expfam.problem(r, prior) for r in releases])
    elif len(releases) > 1:
        given = combined_problem([regression_problem(r, prior, x, y) for r in releases])
    else:
        given = regression_problem(release, prior, x, y)
    if release.family == "linear-regression" and not {"response", "covariates"} <= {*(prior or ())}:
        warning = prior_check.caution(given)
        if warning is not None:
            warnings.warn(warning, UserWarning, stacklevel=2)
    with reporting(progress, f"sampling ({method})") as report:
        post = methods[method](given, seed, chains, draws, report)
    promised = tuple(r.statement() for r in releases)
    return replace(post, guarantees=promised, releases=tuple(releases))


def _listed(release: Any) -> list[Release]:
    """One or several."""
    given = [release] if isinstance(release, Release) else release
    made = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if not made or not all(isinstance(r, Release) for r in made):
        raise ArgumentError(
            "release: must be a Release, or a list of them; read a file with nw.Release.load(path)"
        )
    return made


def _best(release: Release) -> str:
    if release.family == "graphical-model":
        return "cgm"
    return expfam.best(release) if release.family == "exponential-family" else "exact"
