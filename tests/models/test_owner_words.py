"""The owner's part of every model: its words are the arguments of its release function."""

from __future__ import annotations

import inspect

import pandas as pd
import pytest

import noisewise as nw
from noisewise.artifact import ArgumentError
from noisewise.models.partition.sample_and_aggregate import question_arguments
from noisewise.privacy.options import OPTIONS
from noisewise.release import Zellner

MODELS = (
    "linear-regression",
    "exponential-family",
    "graphical-model",
    "posterior-probability",
    "posterior-quantile",
)


@pytest.mark.parametrize("name", MODELS)
def test_words_and_options_are_all_of_the_arguments(name: str) -> None:
    owner = nw.models.find(name).owner()
    arguments = inspect.signature(owner.release).parameters
    given = {word.name: word.default for word in owner.words}
    # --censored is a way to say bounds.
    words = {k for k in owner.prepare(given) if k != "censored"}
    assert words | set(owner.privacy) == set(arguments) - {"source", "progress"}
    assert set(owner.privacy) <= set(OPTIONS)


@pytest.mark.parametrize("name", MODELS)
def test_words_have_the_defaults_of_the_arguments(name: str) -> None:
    owner = nw.models.find(name).owner()
    arguments = inspect.signature(owner.release).parameters
    for word in owner.words:
        argument = arguments.get(word.name)
        if argument is None or argument.default in (inspect.Parameter.empty, None):
            continue
        assert (word.default or False) == argument.default, word.name
        assert not word.required


@pytest.mark.parametrize("name", MODELS)
def test_words_are_described(name: str) -> None:
    owner = nw.models.find(name).owner()
    assert owner.summary.endswith(".")
    for word in owner.words:
        assert word.help
        assert not word.help.endswith(".")


def test_an_owner_releases_from_words() -> None:
    owner = nw.models.find("exponential-family").owner()
    frame = pd.DataFrame({"hits": [1, 2, 3]})
    words = {"column": "hits", "family": "binomial", "binomial_trials": 5}
    assert owner.release(frame, **owner.prepare(words), epsilon=1.0).model["trials"] == 5


def test_a_prior_from_words() -> None:
    assert question_arguments({"x": ["a"], "g": 3.0})["prior"] == Zellner(3.0)
    normal = question_arguments({"x": ["a"], "normal": "1,2,3"})["prior"]
    assert isinstance(normal, nw.priors.NormalInverseGamma)
    for words, said in (
        ({"normal": "1,2"}, "--normal: must be PRECISION,SHAPE,RATE, not '1,2'"),
        ({"normal": "1,2,x"}, "--normal: must be PRECISION,SHAPE,RATE"),
        ({"normal": "1,2,0"}, "--normal: all three must be above zero"),
        ({"normal": "1,2,3", "g": 1}, "--normal: another prior than --g"),
    ):
        with pytest.raises(ArgumentError, match=said):
            question_arguments({"x": ["a"], **words})
