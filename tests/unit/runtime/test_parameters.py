"""The layouts in which parameters and gradients may come."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest

from solvergen.errors import ArrayError, HyperparameterError, UnknownName
from solvergen.runtime.parameters import read_parameters
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam

F = np.float32


def array(value=1.0):
    return np.full(3, value, F)


def test_one_array():
    param = array()
    opt = Adam(param, backend="numpy")
    opt.step(array())
    assert opt.params[0] is param
    assert opt.params["0"] is param
    assert list(opt.params) == ["0"]
    assert param[0] != 1.0


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("gradients", [list, tuple])
def test_sequences(kind, gradients):
    params = [array(), array(2.0)]
    opt = Adam(kind(params), backend="numpy")
    opt.step(gradients([array(), None]))
    assert list(opt.steps.items()) == [("0", 1), ("1", 0)]
    assert opt.params[1] is params[1]
    with pytest.raises(UnknownName, match="no tensor 2"):
        opt.params[2]
    with pytest.raises(UnknownName, match="no tensor -1"):
        opt.params[-1]
    with pytest.raises(KeyError):
        opt.params[True]


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
def test_mappings(kind):
    params = {"layer1.weight": array(), "b/ias": array(2.0), "ünïcode": array(3.0)}
    opt = Adam(kind(params), backend="numpy")
    shuffled = {"ünïcode": array(3), "layer1.weight": None, "b/ias": array(2)}
    opt.step(kind(shuffled))
    assert dict(opt.steps) == {"layer1.weight": 0, "b/ias": 1, "ünïcode": 1}
    assert list(opt.params) == list(params)
    assert opt.state["m"]["b/ias"][0] == F(F(1 - 0.9) * F(2))
    assert opt.state["m"]["ünïcode"][0] == F(F(1 - 0.9) * F(3))
    with pytest.raises(UnknownName, match=r"did you mean 'layer1.weight'"):
        opt.state["m"]["layer1.wieght"]
    with pytest.raises(UnknownName, match="no tensor 0"):
        opt.params[0]  # the user gave names, so positions mean nothing


def test_a_mapping_of_one():
    param = array()
    Adam({"w": param}, backend="numpy").step({"w": array()})
    assert param[0] != 1.0


def test_a_mapping_that_makes_up_its_entries():
    from collections import defaultdict

    opt = Adam({"w": array()}, backend="numpy")
    with pytest.raises(ArrayError):
        opt.step(defaultdict(lambda: array()))
    with pytest.raises(ArrayError):
        opt.step(defaultdict(int, {"v": array()}))
    assert opt.t == 0


def grouped():
    return [
        {"params": {"w1": array(), "w2": array()}, "lr": 0.1, "amsgrad": True},
        {"params": {}},
        {"params": {"b1": array()}, "lr": 0.2, "lr_mult": 2, "decay_mult": 0.0, "weight_decay": 0.1},
    ]


def test_groups():
    opt = Adam(grouped(), backend="numpy", beta1=0.5)
    assert [g.lr for g in opt.groups] == [0.1, 0.001, 0.2]
    assert [g.beta1 for g in opt.groups] == [0.5] * 3
    assert [g.lr_mult for g in opt.groups] == [1.0, 1.0, 2.0]
    assert [g.decay_mult for g in opt.groups] == [1.0, 1.0, 0.0]
    assert [g.options["amsgrad"] for g in opt.groups] == [True, False, False]
    assert [g.names for g in opt.groups] == [("w1", "w2"), (), ("b1",)]
    assert list(opt.state["v_max"]) == ["w1", "w2"]
    assert "b1" not in opt.state["v_max"]


def same_step(gradients):
    """Where a grouped optimizer ends after a step with these gradients."""
    opt = Adam(grouped(), backend="numpy")
    opt.step(gradients)
    return [opt.params[n].copy() for n in ("w1", "w2", "b1")], dict(opt.steps)


def test_gradients_of_groups_come_by_group_or_flat():
    g1, g2, g3 = array(1), array(2), array(3)
    expected, steps = same_step([{"w1": g1, "w2": g2}, {}, {"b1": g3}])
    assert steps == {"w1": 1, "w2": 1, "b1": 1}
    for form in ({"w1": g1, "w2": g2, "b1": g3}, {"b1": g3, "w2": g2, "w1": g1}, (g1, g2, g3)):
        got, _ = same_step(form)
        for a, b in zip(got, expected, strict=True):
            assert_same_bits(a, b)
    _, steps = same_step([None, {}, {"b1": g3}])
    assert steps == {"w1": 0, "w2": 0, "b1": 1}
    _, steps = same_step([{"w1": None, "w2": g2}, None, None])
    assert steps == {"w1": 0, "w2": 1, "b1": 0}


def test_groups_of_lists_and_of_single_arrays():
    params = [array() for _ in range(4)]
    opt = Adam([{"params": params[:2]}, {"params": params[2]}, {"params": (params[3],)}], backend="numpy")
    assert [g.names for g in opt.groups] == [("0", "1"), ("2",), ("3",)]
    opt.step([[array(), None], array(), (array(),)])
    assert list(opt.steps.values()) == [1, 0, 1, 1]
    opt.step([array(), array(), None, None])
    assert list(opt.steps.values()) == [2, 1, 1, 1]
    opt.step([None, None, None])
    assert list(opt.steps.values()) == [2, 1, 1, 1]
    assert opt.params[3] is params[3]
    for wrong, message in [
        ([array()] * 5, "4 parameters, but 5 gradients"),
        ([[array(), array()], array()], "3 groups of parameters, but 2 of gradients"),
        ([[array()], array(), [array()]], "2 parameters, but 1 gradients"),
        (array(), "in groups"),
        (None, "in groups"),
    ]:
        with pytest.raises(ArrayError, match=message):
            opt.step(wrong)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([], "empty list"),
        ((), "empty tuple"),
        ({}, "empty dict"),
        (None, "None"),
        ((a for a in [array()]), r"read once only; pass list"),
        (iter([array()]), "read once only"),
        ([[array()]], "don't nest"),
        ({"a": {"b": array()}}, r"params\['a'\].*don't nest"),
        ({1: array()}, "names of parameters are strings"),
        ({"": array()}, "not empty"),
        ([{"params": [array()]}, array()], r"params\[1\].*among groups"),
        ([array(), {"params": [array()]}], r"params\[0\].*among groups"),
        ([{"w": array()}], "has no 'params'"),
        ([{}], "has no 'params'"),
        ([{"params": None}], "None"),
        ([{"params": {"a": array()}}, {"params": {"a": array()}}], "two parameters have the name 'a'"),
        ([{"params": {"1": array()}}, {"params": [array()]}], "two parameters have the name '1'"),
    ],
)
def test_structures_that_are_refused(params, message):
    with pytest.raises(ArrayError, match=message):
        Adam(params, backend="numpy")


def test_unknown_settings_of_groups():
    with pytest.raises(HyperparameterError, match=r"params\[1\] has the unknown setting 'learning_rate'"):
        Adam([{"params": [array()]}, {"params": [array()], "learning_rate": 1}], backend="numpy")
    with pytest.raises(HyperparameterError, match="did you mean 'beta1'"):
        Adam([{"params": [array()], "bta1": 0.5}], backend="numpy")
    with pytest.raises(HyperparameterError, match="did you mean 'params'"):
        Adam([{"params": [array()], "parms": []}], backend="numpy")


def test_the_order_of_tensors_is_the_order_given():
    read = read_parameters([{"params": [1, 2]}, {"params": {"x": 3}}, {"params": 4}])
    assert read.names == ("0", "1", "x", "3")
    assert read.arrays == (1, 2, 3, 4)
    assert not read.layout.by_position
