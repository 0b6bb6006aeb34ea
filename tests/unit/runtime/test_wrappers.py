"""``Wrappers``: what may be said, and what it becomes."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import solvergen
from generated.adam.wrapped import WrappedAdam
from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.wrappers import (
    PREFIX,
    Wrappers,
    wrapper_hyperparameters,
    wrapper_options,
    wrappers_of,
)

DEFINITION = WrappedAdam.definition

SOME = (
    Wrappers(),
    Wrappers(accumulate=4, accumulation="sum", order="caffe"),
    Wrappers(unscale=1024, clip_value=0.5, clip_tensor_norm=2, clip_grad_norm=1.5, clip_eps=1e-6),
    Wrappers(l1=0.1, l2=0.2, weight_decay=0.3, maximize=True),
    Wrappers(bounds=(-1, 2.5)),
    Wrappers(bounds=(None, 0)),
    Wrappers(bounds=(0, 3)),
    Wrappers(non_negative=True, average=0.99),
    Wrappers(average=0),
)


def test_it_is_found_in_the_package():
    assert solvergen.Wrappers is Wrappers
    with pytest.raises(AttributeError, match="Wrapper"):
        _ = solvergen.Wrapper


@pytest.mark.parametrize("wrappers", SOME, ids=repr)
def test_through_json(wrappers):
    assert Wrappers.from_config(json.loads(json.dumps(wrappers.get_config()))) == wrappers


@pytest.mark.parametrize("wrappers", SOME, ids=repr)
def test_through_hyperparameters_and_options(wrappers):
    defaults = {h.name: h.default for h in DEFINITION.hyperparameters}
    values = {**defaults, **wrapper_hyperparameters(wrappers, DEFINITION)}
    options = wrapper_options(wrappers)
    assert set(values) == set(DEFINITION.hyperparameter_names)
    assert {o for o in DEFINITION.option_names if o.startswith(PREFIX)} == set(options)
    assert wrappers_of(values, options) == wrappers


def test_what_says_nothing_is_the_default_of_every_hyperparameter():
    defaults = {h.name: h.default for h in DEFINITION.hyperparameters}
    for name, value in wrapper_hyperparameters(Wrappers(), DEFINITION).items():
        assert value == defaults[name], name
    assert not any(wrapper_options(Wrappers()).values())


def test_text():
    assert repr(Wrappers()) == "Wrappers()"
    assert repr(Wrappers(clip_grad_norm=1, non_negative=True)) == (
        "Wrappers(clip_grad_norm=1.0, non_negative=True)"
    )
    for wrappers in SOME:
        assert eval(repr(wrappers)) == wrappers  # noqa: S307


def test_a_lower_bound_of_zero_is_non_negative():
    assert Wrappers(bounds=(0, 1)) == Wrappers(non_negative=True, bounds=(None, 1))
    assert Wrappers(bounds=(-0.0, None)) == Wrappers(non_negative=True)


def test_numbers_of_other_types():
    made = Wrappers(accumulate=np.int64(3), l2=np.float32(0.5), bounds=[np.float64(1), 2])
    assert (made.accumulate, type(made.accumulate)) == (3, int)
    assert (made.l2, type(made.l2)) == (0.5, float)
    assert made.bounds == (1.0, 2.0)
    json.dumps(made.get_config())


def test_it_never_changes():
    with pytest.raises(FrozenInstanceError):
        Wrappers().l2 = 1.0
    assert replace(Wrappers(l1=1), l2=2) == Wrappers(l1=1, l2=2)
    assert len({Wrappers(l2=1), Wrappers(l2=1.0), Wrappers()}) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"accumulate": 0}, "accumulate must be a whole number of at least 1"),
        ({"accumulate": 1.5}, "accumulate must be a whole number"),
        ({"accumulate": True}, "accumulate must be a number"),
        ({"accumulation": "max"}, "accumulation must be 'mean' or 'sum', not 'max'"),
        ({"order": None}, "order must be 'average' or 'caffe'"),
        ({"unscale": 0}, "unscale must be above 0, not 0"),
        ({"unscale": None}, "unscale must be a number"),
        ({"clip_value": 0}, "clip_value must be above 0 .None for no clipping."),
        ({"clip_tensor_norm": -1}, "clip_tensor_norm must be above 0"),
        ({"clip_grad_norm": math.nan}, "clip_grad_norm is NaN"),
        ({"clip_grad_norm": math.inf}, "clip_grad_norm must be a finite number"),
        ({"clip_eps": -1e-6}, "clip_eps must be at least 0"),
        ({"l1": -1}, "l1 must be at least 0"),
        ({"l2": "1"}, "l2 must be a number"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"maximize": 1}, "maximize must be True or False"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (1, 2, 3)}, "bounds must be a pair"),
        ({"bounds": (2, 1)}, "the lower bound 2.0 is above the upper bound 1.0"),
        ({"bounds": (None, -1), "non_negative": True}, "the lower bound 0.0 is above"),
        ({"bounds": (1, None), "non_negative": True}, "non_negative is a lower bound of 0"),
        ({"bounds": (math.nan, None)}, "the lower bound is NaN"),
        ({"average": 1.5}, "average must be a decay from 0 to 1"),
        ({"average": True}, "average must be a number"),
    ],
)
def test_what_is_refused(said, words):
    with pytest.raises(HyperparameterError, match=words):
        Wrappers(**said)


def test_configurations_that_are_none():
    with pytest.raises(OptimizerError, match="must be a mapping"):
        Wrappers.from_config([])
    with pytest.raises(OptimizerError, match=r"unknown key 'clip_norm'.*clip"):
        Wrappers.from_config({"clip_norm": 1})
