"""Well-formed content with a right digest that cannot be true: refused, and said why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from noisewise.artifact import Block, PersonTables, ReleaseError, Tables
from tests.artifact.factories import (
    FACTORIES,
    block,
    calibrated,
    content_of,
    noise,
    redigested,
    regression,
)
from tests.artifact.refusals import Edit, both, check_case, drop, put, refused

FULL = "regression-with-everything"
NOISE, GRAM = "blocks.0.noise", "blocks.0.statistic"

SHAPES: dict[str, tuple[str, Edit, str]] = {
    "a component too few": (
        "regression", drop("blocks.0.values.pir"), "holds 8 components, gram has 9"
    ),
    "a component too many": (
        "regression", put("blocks.0.values.n", [1]), "holds 10 components, gram has 9"
    ),
    "a component misnamed": (
        "regression",
        both(drop("blocks.0.values.pir"), put("blocks.0.values.rip", [1])),
        "exactly the components of the statistic; 'pir' is missing",
    ),
    "a ragged row": (
        "regression-public-sizes", put("blocks.0.values.pir", [1, 2, 3]), "as long as the others"
    ),
    "an empty row": ("regression", put("blocks.0.values.pir*pir", []), "'pir*pir' must be a list"),
    "a number for a row": ("regression", put("blocks.0.values.pir", 5), "'pir' must be a list"),
    "more groups than values": (
        "regression-groups-add-remove",
        put("groups.keys", ["a", "b", "c", "d", "e"]),
        "gram: values for 4 groups, but the release has 5",
    ),
    "more groups than sizes": (
        "regression-public-sizes", put("population.sizes", [9, 0, 120]), "3 sizes for 4 groups"
    ),
    "a size without groups": (
        "regression", put("population.sizes", [9, 10]), "2 sizes for 1 groups"
    ),
    "no groups": ("regression-groups-add-remove", put("groups.keys", []), "must not be empty"),
    "a group twice": (
        "regression-groups-add-remove",
        put("groups.keys", ["a", "b", "c", "a"]),
        "groups: keys must not repeat an entry: 'a' stands twice",
    ),
    "groups of mixed type": (
        "regression-groups-add-remove",
        put("groups.keys", ["a", "b", "c", 4]),
        "groups: keys must be all text or all whole numbers",
    ),
    "grouped by a released column": (
        "regression-groups-add-remove", put("groups.column", "pir"), "groups: the group column"
    ),
    "no statistics": ("regression", put("blocks", []), "at least one statistic"),
    "a clique that is no list": (
        "graphical", put("blocks.0.statistic.cliques.0", "sex"), "must be a list of lists"
    ),
    "no cliques": ("graphical", put("blocks.0.statistic.cliques", []), "must not be empty"),
    "a clique twice": (
        "graphical",
        put("blocks.0.statistic.cliques.2", ["smokes", "sex"]),
        "tables: cliques must not repeat an entry",
    ),
    "levels missing": (
        "graphical", drop("blocks.0.statistic.levels.sex"), "'sex' is in one of the two only"
    ),
    "levels that are no list": (
        "graphical", put("blocks.0.statistic.levels.sex", "fm"), "levels of 'sex' must be a list"
    ),
    "no levels": ("graphical", put("blocks.0.statistic.levels.sex", []), "must not be empty"),
    "a level that is a float": (
        "graphical", put("blocks.0.statistic.levels.sex", [1.5]), "or a whole number, not 1.5"
    ),
    "cells that are named alike": (
        "categorical",
        both(
            put("blocks.0.statistic.cliques", [["a"], ["a", "b"]]),
            put("blocks.0.statistic.levels", {"a": ["1", "1,b=2"], "b": ["2", "3"]}),
            put("blocks.0.values", {f"a=1{e}": [0] for e in ("", ",b=2", ",b=3", ",b=2,b=3")}),
            put("fill", {}),
        ),
        "holds 4 components, tables has 6",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("factory", "edit", "fragment"), SHAPES.values(), ids=SHAPES.keys())
def test_wrong_shapes(factory: str, edit: Edit, fragment: str) -> None:
    check_case(factory, edit, fragment)


CONTRADICTIONS: dict[str, tuple[str, Edit, str]] = {
    "too little Laplace noise": (
        "regression", put(f"{NOISE}.scale", 1e3), "blocks[0]: noise: scale 1000.0 is too small for"
    ),
    "too little Gaussian noise": (
        "regression-gaussian", put(f"{NOISE}.scale", 1e9), "is too small for sensitivity"
    ),
    "a cost too low for the noise": (
        "regression", put(f"{NOISE}.cost", 0.2), "is too small for sensitivity"
    ),
    "no noise": ("regression", put(f"{NOISE}.scale", 0), "scale must be above zero, not 0.0"),
    "a sensitivity that is made up": (
        "regression",
        both(
            put(f"{NOISE}.sensitivity", 1e-9), put(f"{NOISE}.scale", 1e-6),
            put(f"{NOISE}.cost", 1e-3), put("guarantee.epsilon", 1e-3),
        ),
        "guarantee: claims epsilon = 0.001; its noise gives epsilon = 1.00664e+16",
    ),
    "a rho that the noise does not give": (
        "regression-gaussian",
        both(put(f"{NOISE}.sensitivity", 1.0), put(f"{NOISE}.scale", 2.0**28)),
        "claims rho = 1.0, epsilon = 7.766",
    ),
    "a stated sensitivity below the proved one": (
        "regression-add-remove",
        put(f"{NOISE}.sensitivity", 9.375 * 4**15),
        "gram: states sensitivity 10066329600.0; one person can move the sums by 10737418240.0",
    ),
    "a stated cost below the noise's": (
        FULL,
        both(put(f"{NOISE}.cost", 0.25 * (1 - 1e-10)), put("selections.0.cost", 0.01)),
        "gram: states cost 0.249999999975; its noise costs 0.25",
    ),
    "one ulp too little noise": (
        "bernoulli", put(f"{NOISE}.scale", math.nextafter(2.0, 0)), "noise gives epsilon = 0.500001"
    ),
    "noise without end": ("regression", put(f"{NOISE}.scale", 1e308), "scale must be in [8.67e-19"),
    "noise too small to be any": (
        "regression", put(f"{NOISE}.scale", 5e-324), "scale must be in [8.67e-19, 7.21e+16]"
    ),
    "a name that turns the line around": (
        "regression-groups-add-remove",
        put("groups.keys", ["a", "b", "c", "\u202egnp.exe"]),
        "groups: keys[3] must be printable text, not '\\u202egnp.exe'",
    ),
    "a negative budget": ("regression", put("guarantee.epsilon", -1), "epsilon must be above zero"),
    "parts that cost more than the whole": (
        FULL, put("guarantee.epsilon", 0.7), "the parts cost 0.75, more than the 0.7 claimed"
    ),
    "a choice of bounds that was not paid for": (
        FULL, put("selections.0.cost", 0.5), "the parts cost 1.125, more than the 1.0 claimed"
    ),
    "parts beyond all numbers": (
        FULL,
        both(put("selections.0.cost", 1.7e308), put(f"{NOISE}.cost", 1.7e308)),
        "the parts cost 1.7976931348623157e+308, more than",
    ),
    "parts that cost more than rho": (
        "regression-gaussian", put("guarantee.rho", 0.2), "more than the 0.2 claimed"
    ),
    "rho that implies more than epsilon": (
        "regression-gaussian",
        put("guarantee.epsilon", 7.2),
        "rho 1.0 has delta 1.33722e-06 at epsilon 7.2, more than the 1e-06 claimed",
    ),
    "delta without rho": ("regression", put("guarantee.delta", 1e-6), "delta must be 0 where rho"),
    "rho without delta": ("regression-gaussian", put("guarantee.delta", 0), "delta must be in (0"),
    "Gaussian noise under a pure guarantee": (
        "regression-gaussian",
        both(put("guarantee.rho", None), put("guarantee.delta", 0.0)),
        "gram: gaussian noise under a pure guarantee",
    ),
    "Laplace noise under zCDP": (
        "regression",
        both(put("guarantee.rho", 1.0), put("guarantee.delta", 1e-6)),
        "gram: laplace noise under a zcdp guarantee",
    ),
    "public n under add-remove": (
        "regression", put("guarantee.neighbours", "add-remove"), "under add-remove neighbours n is"
    ),
    "secret n under replace-one": (
        "regression-add-remove",
        put("guarantee.neighbours", "replace-one"),
        "under replace-one neighbours n is public",
    ),
    "a public total under add-remove": (
        "regression-add-remove", put("population.total", 50), "the total is secret too"
    ),
    "a total that is not the sum": (
        "regression-public-sizes", put("population.total", 99), "the sum of sizes, 133, not 99"
    ),
    "sizes beside a noisy policy": (
        "regression", put("population.policy", "noisy"), "sizes go with policy 'public'"
    ),
    "a public policy without sizes": (
        "regression", put("population.sizes", []), "sizes go with policy 'public'"
    ),
    "within groups without groups": (
        "regression", put("guarantee.within", "tract"), "go with a guarantee within that group"
    ),
    "public group sizes without the guarantee": (
        "regression-public-sizes",
        put("guarantee.within", None),
        "public group sizes go with a guarantee within that group",
    ),
    "within groups under add-remove": (
        "regression-groups-add-remove",
        put("guarantee.within", "tract"),
        "within goes with replace-one neighbours only",
    ),
    "a noisy count beside a public n": (
        "regression",
        both(put(f"{GRAM}.count", True), put("blocks.0.values.n", [1000])),
        "gram: n is public: no noisy count belongs to the statistic",
    ),
    "a secret n that was not counted": (
        "regression-add-remove",
        both(put(f"{GRAM}.count", False), drop("blocks.0.values.n")),
        "gram: n is secret: a noisy count belongs to the statistic",
    ),
    "bounds missing": ("regression", drop("bounds.kir"), "bounds: must be given for exactly"),
    "bounds extra": ("regression", put("bounds.age", [0, 1]), "released; 'age' is not one"),
    "bounds of a categorical column": (
        "categorical", put("bounds.sex", [0, 1]), "numeric columns released; 'sex' is not one"
    ),
    "an interval unlike the bounds": (
        "bernoulli", put("bounds.owns", [0, 2]), "differs from the column's bounds"
    ),
    "an interval that does not fit its lattice": (
        "normal-squares",
        put("blocks.0.statistic.scale", 16.0),
        "power-sums: the interval (140.0, 210.0) does not fit origin 175.0 and scale 16.0",
    ),
    "chosen bounds outside the search": (
        FULL,
        put("selections.0.within", [0, 100]),
        "selection: bounds of 'alter' lie outside the search",
    ),
    "a search whose noise is worth less than it costs": (
        "regression-searched",
        put("selections.0.noise.scale", 7.9),
        "selections[0]: noise: scale 7.9 is too small for sensitivity",
    ),
    "a search that states too small a sensitivity": (
        "regression-searched",
        both(put("selections.0.noise.sensitivity", 1.0), put("selections.0.noise.scale", 4.0)),
        "selection: 'alter': states sensitivity 1.0; one person can move the sums by 2.0",
    ),
    "a search that claims more than the whole": (
        "regression-searched",
        both(
            put("selections.0.noise.sensitivity", 1.0), put("selections.0.noise.scale", 2.0),
            put("selections.0.noise.cost", 0.75), put("selections.0.cost", 0.75),
        ),
        "guarantee: claims epsilon = 1.0; its noise gives epsilon = 1.25",
    ),
    "a search for people with noise for records": (
        "regression-searched-people",
        both(
            put("selections.0.noise.sensitivity", 1.0), put("selections.0.noise.scale", 1.4143),
        ),
        "guarantee: claims rho = 1.0",
    ),
    "a search with other noise": (
        "regression-searched",
        put("selections.0.noise.mechanism", "gaussian"),
        "selection: gaussian noise under a pure guarantee",
    ),
    "a search that states two costs": (
        "regression-searched", put("selections.0.cost", 0.5), "selection: costs 0.5, but its noise"
    ),
    "candidates that descend": (
        "regression-searched", put("selections.0.candidates.1", -150), "candidates must ascend"
    ),
    "candidates that stop short": (
        "regression-searched", put("selections.0.candidates.0", -120), "reach from end to end of"
    ),
    "no candidates": (
        "regression-searched", put("selections.0.candidates", []), "must be 2 to 2000 candidates"
    ),
    "an anchor between candidates": (
        "regression-searched", put("selections.0.anchor", 1), "anchor must be one of the candidates"
    ),
    "counts of other candidates": (
        "regression-searched", put("selections.0.counts", [1, 2]), "2 counts for 7 candidates"
    ),
    "counts that are not whole": (
        "regression-searched", put("selections.0.counts.0", 0.5), "counts must be a whole number"
    ),
    "two kinds of searches in one": (
        "regression-searched",
        put("selections.0.half_candidates", 5),
        "selections[0]: unknown field 'half_candidates'",
    ),
    "a selection of an unknown column": (
        FULL, put("selections.0.column", "age"), "selection: 'age' has no bounds in this release"
    ),
    "the same statistic twice": (
        FULL,
        lambda content: content["blocks"].append(content["blocks"][2]),
        "blocks: kinds must not repeat an entry: 'clamped' stands twice",
    ),
    "a fill for an unknown column": (
        "regression", put("fill.age", 1), "fill: 'age' is not a column of this release"
    ),
    "a text to fill a number": ("regression", put("fill.pir", "a"), "fill: 'pir' must be a number"),
    "a fill that is no level": (
        "categorical", put("fill.sex", "q"), "fill: 'q' is not a level of 'sex'"
    ),
    "a response that was not released": (
        "regression", put("model.y", "wage"), "model: 'wage' is not a column of the gram"
    ),
    "no covariates": ("regression", put("model.x", []), "model: 'x' must be a list of columns"),
    "no response": ("regression", drop("model.y"), "model: 'y' must be a non-empty text"),
    "no distribution": ("bernoulli", put("model", {}), "model: 'distribution' must be"),
    "tables for a regression": (
        "categorical", put("family", "linear-regression"), "a linear-regression release needs gram"
    ),
    "a regression for a graphical model": (
        "regression", put("family", "graphical-model"), "a graphical-model release needs tables"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("factory", "edit", "fragment"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys()
)
def test_content_that_contradicts_itself(factory: str, edit: Edit, fragment: str) -> None:
    check_case(factory, edit, fragment)


# -- small files that announce much ------------------------------------------------------------

MANY = [f"c{i}" for i in range(3000)]
BOMBS: dict[str, tuple[str, Edit, str]] = {
    "a Gram of thousands of columns": (
        "regression", put(f"{GRAM}.columns", MANY), "gram: 4504501 components, more than 2000000"
    ),
    "a Gram of endless names": (
        "regression",
        put(f"{GRAM}.columns", [f"{i:04000}" for i in range(500)]),
        "gram: the component names exceed",
    ),
    "monomials of hundreds of columns": (
        FULL, put("blocks.1.statistic.columns", MANY[:300]), "monomials: 348881875 components"
    ),
    "a table of hundreds of columns": (
        "graphical",
        both(
            put("blocks.0.statistic.cliques", [MANY]),
            put("blocks.0.statistic.levels", {c: [0, 1] for c in MANY}),
        ),
        "tables: 2097152 components, more than 2000000",
    ),
    "a table of endless names": (
        "graphical",
        both(
            put("blocks.0.statistic.cliques", [MANY]),
            put("blocks.0.statistic.levels", {c: [0, 1][: 1 + (c in MANY[:17])] for c in MANY}),
        ),
        "tables: the component names exceed",
    ),
    "a table of millions of cells": (
        "graphical",
        both(
            put("blocks.0.statistic.cliques", [MANY[:20]]),
            put("blocks.0.statistic.levels", {c: [0, 1] for c in MANY[:20]}),
        ),
        "components, tables has 1048576",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("factory", "edit", "fragment"), BOMBS.values(), ids=BOMBS.keys())
def test_small_files_cannot_claim_all_of_memory(factory: str, edit: Edit, fragment: str) -> None:
    check_case(factory, edit, fragment)


def test_every_factory_refuses_its_own_file_with_any_value_removed() -> None:
    for make in FACTORIES.values():
        content = content_of(make())
        for held in content["blocks"]:
            held["values"].popitem()
        refused(redigested(content), " components, ")


def test_components_that_are_named_alike_cannot_be_told_apart() -> None:
    twins = Tables((("a",), ("a", "b")), {"a": ("1", "1,b=2"), "b": ("2", "3")})
    with pytest.raises(ReleaseError, match="component names must not repeat an entry: 'a=1,b=2'"):
        Block(twins, noise("laplace", 4, 1), np.zeros((6, 1), np.int64))


def test_one_statistic_by_person_does_not_protect_people_of_the_others() -> None:
    token = PersonTables((("sex",),), {"sex": ("f", "m")}, unit="pid")
    extra = block(token, calibrated(token, "laplace", "add-remove", 0.01))
    with pytest.raises(ReleaseError, match="all statistics must weigh people of one column"):
        regression(neighbours="add-remove", sizes=(), blocks=(extra,))
