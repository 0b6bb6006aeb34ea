"""SolverParameters: fields and defaults are Caffe's; presence, replacement and copies are kept straight."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from solvergen.solver import NetState, SolverParameters, SolverParametersError, UnknownParameter
from solvergen.solver.parameters.model import CONVERSIONS, DEFAULTS, OWN
from solvergen.solver.parameters.proto.messages import message_class

pytest.importorskip("google.protobuf")


def test_fields_and_defaults_are_those_of_the_message():
    fields = [field for field in message_class("SolverParameter").DESCRIPTOR.fields if field.number < 1000]
    assert list(CONVERSIONS)[: len(fields)] == [
        field.name for field in sorted(fields, key=lambda field: field.number)
    ]
    assert tuple(CONVERSIONS)[len(fields) :] == OWN
    for field in fields:
        found = DEFAULTS[field.name]
        if field.is_repeated:
            assert found == ()
        elif (
            field.message_type is not None
            or field.name == "solver_type"
            or (field.type == field.TYPE_STRING and not field.has_default_value)
        ):
            assert found is None
        elif field.enum_type is not None:
            assert found == field.enum_type.values_by_number[field.default_value].name
        elif field.type == field.TYPE_FLOAT:
            assert found == np.float32(field.default_value)
        else:
            assert found == field.default_value
            assert type(found) is type(field.default_value)


def test_a_field_that_is_not_given_has_its_default():
    params = SolverParameters()
    assert params.given == ()
    assert {name: getattr(params, name) for name in CONVERSIONS} == dict(DEFAULTS)
    assert not params.has("type")
    assert SolverParameters(type="SGD").has("type")


def test_floats_are_caffes():
    assert SolverParameters(base_lr=0.1).base_lr == float(np.float32(0.1))
    assert repr(SolverParameters(base_lr=0.1, gamma=1e-12)) == "SolverParameters(base_lr=0.1, gamma=1e-12)"
    assert SolverParameters(base_lr=np.float32(3)).base_lr == 3.0
    big = float(np.finfo(np.float32).max)
    assert SolverParameters(base_lr=big).base_lr == big
    assert repr(SolverParameters(base_lr=big)) == "SolverParameters(base_lr=3.4028235e+38)"


def test_what_may_stand_for_a_value():
    params = SolverParameters(
        max_iter=1e3, stepvalue=5, solver_mode=0, snapshot_format=0, test_state=[{"stage": "x", "level": 2}]
    )
    assert params.max_iter == 1000
    assert type(params.max_iter) is int
    assert params.stepvalue == (5,)
    assert params.solver_mode == "CPU"
    assert params.snapshot_format == "HDF5"
    assert params.test_state == (NetState(stage=("x",), level=2),)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("base_lr", "0.1", "must be a number"),
        ("base_lr", True, "must be a number"),
        ("base_lr", 1e39, "beyond the range"),
        ("base_lr", 10**400, "0': it is too large for a float"),
        ("base_lr", np.finfo(np.longdouble).max, "float"),
        ("max_iter", Fraction(10**400, 3), "too large for a float"),
        ("hyperparameters", {"beta1": 10**400}, "has 'beta1', which can't be '1000"),
        ("policy", {"end_rate": Fraction(10**400)}, "has 'end_rate', which can't be '1000"),
        ("policy", {"rates": [1, Fraction(10**400)]}, "has 'rates', which can't be '1000"),
        ("max_iter", 1.5, "whole number"),
        ("max_iter", float("inf"), "whole number"),
        ("max_iter", 2**31, "beyond the range of int32"),
        ("random_seed", 2**63, "beyond the range of int64"),
        ("debug_info", 1, "true or false"),
        ("solver_mode", "gpu", "did you mean 'GPU'?"),
        ("solver_mode", 2, "can't be '2'"),
        ("net", 3, "must be a string"),
        ("test_state", [{"stages": "x"}], "did you mean 'stage'?"),
        ("train_state", {"phase": "train"}, "phase can't be 'train'"),
        ("hyperparameters", {"beta1": "x"}, "must be a number"),
        ("policy", "cosine", "must be a mapping"),
        ("stepvalue", ["a"], "whole number"),
    ],
)
def test_values_that_a_field_cannot_have(name, value, said):
    with pytest.raises(SolverParametersError) as caught:
        SolverParameters(**{name: value})
    assert str(caught.value).startswith(f"error: {name} ")
    assert said in str(caught.value)


def test_every_wrong_value_is_said_at_once():
    with pytest.raises(SolverParametersError) as caught:
        SolverParameters(base_lr="x", max_iter="y")
    assert [finding.field for finding in caught.value.findings] == ["base_lr", "max_iter"]


def test_replaced():
    params = SolverParameters(base_lr=1, gamma=2)
    assert params.replaced(gamma=None, power=3) == SolverParameters(base_lr=1, power=3)
    assert not params.replaced(gamma=None).has("gamma")
    with pytest.raises(SolverParametersError, match="did you mean 'base_lr'"):
        params.replaced(base_rl=3)


def test_a_keyword_that_is_no_parameter():
    with pytest.raises(
        SolverParametersError, match="no parameter 'base_rl'; did you mean 'base_lr'"
    ) as raised:
        SolverParameters(base_rl=3)
    assert type(raised.value) is UnknownParameter
    assert isinstance(raised.value, TypeError)
    with pytest.raises(SolverParametersError, match="no parameter '_given'; there are "):
        SolverParameters(_given=frozenset())


def test_copies_are_the_same_and_nothing_changes():
    params = SolverParameters(
        base_lr=0.1, policy={"name": "cosine", "warmup": 3}, optimizer="AdamW", hyperparameters={"eps": 1e-6}
    )
    for other in (copy.deepcopy(params), pickle.loads(pickle.dumps(params))):  # noqa: S301
        assert other == params
        assert other.given == params.given
    with pytest.raises(AttributeError):
        params.base_lr = 3
    with pytest.raises(TypeError):
        params.policy["name"] = "x"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SGD", "SGD"),
        ("NESTEROV", "Nesterov"),
        ("ADAGRAD", "AdaGrad"),
        ("RMSPROP", "RMSProp"),
        ("ADADELTA", "AdaDelta"),
        ("ADAM", "Adam"),
    ],
)
def test_the_old_enum_becomes_the_type(old, new):
    params = SolverParameters.parse_prototxt(f'solver_type: {old} lr_policy: "fixed" net: "n"')
    assert params.type == new
    assert not params.has("type")


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("one.txt", 'base_lr: 0.5 lr_policy: "fixed" max_iter: 7 net: "n"', SolverParameters.from_prototxt),
        ("one.txt", "base_lr: 0.5\nlr_policy: fixed\nmax_iter: 7\n", SolverParameters.from_yaml),
    ],
)
def test_the_form_may_be_said_whatever_the_ending(tmp_path, name, text, read):
    path = tmp_path / name
    path.write_text(text + "\n")
    params = read(path)
    assert (params.base_lr, params.lr_policy, params.max_iter) == (0.5, "fixed", 7)
    assert params.source == path
    path.write_text(text.replace("fixed", "fixd") + "\n")
    with pytest.raises(SolverParametersError, match="fixd"):
        read(path)


@pytest.mark.parametrize("name", ["none.prototxt", "none.yaml"])
def test_a_file_that_isnt_there(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(SolvergenError, match=f"{name}: No such file or directory$") as caught:
        SolverParameters.from_file(path)
    assert isinstance(caught.value, OSError)
    with pytest.raises(SolvergenError, match="Is a directory"):
        SolverParameters.from_prototxt(tmp_path)
