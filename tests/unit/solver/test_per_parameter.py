"""Blocks and constraints of single parameters, as solver files say them."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

from solvergen.constraints import MaxNorm, MinMax, NonNegative, UnitNorm
from solvergen.errors import OptimizerError
from solvergen.optimizers import AdamMini
from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters, SolverParametersError, chosen
from solvergen.solver.files import read_state
from solvergen.solver.parameters.report import as_data, effective
from solvergen.solver.parameters.yaml_form import parse_yaml
from solvergen.solver.training.error import TrainingError

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((12, 4)), RNG.standard_normal((12, 2))

YAML = """\
base_lr: 0.125
lr_policy: fixed
max_iter: 9
solver_mode: CPU
snapshot_format: SAFETENSORS
optimizer: AdamMini
blocks: {a.weights: rows, c.weights: 2}
constraints:
  a.weights: {constraint: MaxNorm, max_value: 0.5, axis: [1]}
  a.bias: {constraint: MinMax, high: 0.01}
  c.bias: NonNegative
"""


def net() -> DenseNet:
    return DenseNet(X, Y, [InnerProduct("a", 4, "tanh"), InnerProduct("c", 2)], batch_size=4)


def solver(text: str = YAML, prefix: Any = None) -> Solver:
    params = parse_yaml(text, "s.yaml").checked()
    return Solver(params.replaced(snapshot_prefix=prefix), net(), backend="numpy")


def values(of: Solver) -> dict[str, Any]:
    return {blob.name: blob.data for blob in of.net.learnable}


def test_what_is_said() -> None:
    params = parse_yaml(YAML)
    assert params.blocks == {"a.weights": "rows", "c.weights": 2}
    assert params.constraints == {
        "a.weights": MaxNorm(0.5, (1,)),
        "a.bias": MinMax(None, 0.01),
        "c.bias": NonNegative(),
    }
    same = SolverParameters(**{name: getattr(params, name) for name in params.given})
    assert same == params == copy.deepcopy(params) == pickle.loads(pickle.dumps(params))  # noqa: S301
    assert json.loads(json.dumps(as_data(params)["constraints"]))["c.bias"] == {"constraint": "NonNegative"}
    shown = "\n".join(effective(params))
    assert "\nblocks:\n  a.weights: rows\n  c.weights: 2\n" in shown
    assert "\nconstraints:\n  a.weights: {constraint: MaxNorm, max_value: 0.5, axis: [1]}\n" in shown
    assert parse_yaml(shown) == params
    assert SolverParameters().blocks == SolverParameters().constraints == {}


def test_shown_mappings_say_in_yaml_what_they_hold() -> None:
    params = SolverParameters(
        optimizer="AdamMini",
        hyperparameters={
            "eps": 1e300,
            "beta1": 0.10000000149011612,
            "beta2": -0.0,
            "on": True,
            "0": math.inf,
        },
        policy={
            "name": "no",
            "text": 'a "b": {c}\n',
            "empty": "",
            "whole": 10**400,
            "some": [1e-9, 2],
            "é": False,
        },
        blocks={"1.weight": 2, "null": "rows", "a, b": 3, "# x": 4, "über.w": 5},
        constraints={"w": MaxNorm(1e300, None), "v": MinMax(-1e-300, None), "- x": NonNegative()},
    )
    assert parse_yaml("\n".join(effective(params))) == params


def test_numbers_of_mappings_are_double_in_json() -> None:
    params = SolverParameters(
        base_lr=0.1,
        hyperparameters={"eps": 1e300, "beta1": 0.10000000149011612},
        policy={"rates": [1e300, math.inf, 0.1]},
        constraints={"w": MaxNorm(1e300), "v": MinMax(0.10000000149011612, None)},
    )
    data = json.loads(json.dumps(as_data(params), allow_nan=False))
    assert data["base_lr"] == 0.1
    assert data["hyperparameters"] == {"eps": 1e300, "beta1": 0.10000000149011612}
    assert data["policy"] == {"rates": [1e300, "inf", 0.1]}
    assert data["constraints"]["w"] == {"constraint": "MaxNorm", "max_value": 1e300, "axis": 0}
    assert data["constraints"]["v"]["low"] == 0.10000000149011612


def test_an_optimizer_made_by_hand_has_them_too() -> None:
    choice = chosen(parse_yaml(YAML).checked())
    arrays = {blob.name: blob.data for blob in net().learnable}
    optimizer = choice.make(arrays, backend="numpy")
    assert optimizer.constraint == choice.constraints
    assert len(optimizer.constraint) == 3
    assert {state.shape for state in optimizer.state["exp_avg_sq"].values()} == {(4,), (1,), (2,)}
    assert choice.make([{"params": arrays}], backend="numpy").constraint == choice.constraints
    with pytest.raises(
        OptimizerError, match=r"blocks has 'a\.weights', which is not the name of a parameter there"
    ):
        choice.make(list(arrays.values()), backend="numpy")
    with pytest.raises(
        OptimizerError, match=r"constraint has 'c\.bias', which is not the name of a parameter"
    ):
        choice.make({name: arrays[name] for name in arrays if name != "c.bias"}, backend="numpy")


def test_the_rule_does_it() -> None:
    one = solver()
    other = net()
    params = {blob.name: blob.data for blob in other.learnable}
    optimizer = AdamMini(params, lr=0.125, blocks={"a.weights": "rows", "c.weights": 2}, backend="numpy")
    optimizer.constraint = {
        "a.weights": MaxNorm(0.5, (1,)),
        "a.bias": MinMax(None, 0.01),
        "c.bias": NonNegative(),
    }
    one.step(3)
    for _ in range(3):
        other.clear_diffs()
        other.forward_backward()
        optimizer.step({blob.name: blob.diff for blob in other.learnable})
    for name, value in values(one).items():
        np.testing.assert_array_equal(value, params[name])
    assert np.linalg.norm(params["a.weights"], axis=1).max() <= 0.5 + 1e-6
    assert params["a.bias"].max() <= np.float32(0.01)
    assert {state.shape for state in one.optimizer.state["exp_avg_sq"].values()} == {(4,), (1,), (2,)}


def test_with_caffes_rules() -> None:
    text = "base_lr: 1\nlr_policy: fixed\nmax_iter: 2\nsolver_mode: CPU\nmomentum: 0.9\nclip_gradients: 5\n"
    one = solver(text + "constraints: {a.weights: {constraint: UnitNorm, axis: 1}}")
    one.step(2)
    np.testing.assert_allclose(np.linalg.norm(values(one)["a.weights"], axis=1), 1, rtol=1e-6)
    assert one.param.constraints == {"a.weights": UnitNorm(1)}


def test_a_run_that_goes_on(tmp_path: Any) -> None:
    whole = solver(prefix=str(tmp_path / "s"))
    whole.step(4)
    _, state = whole.snapshot()
    whole.step(4)
    again = solver(prefix=str(tmp_path / "s"))
    again.restore(state)
    assert again.optimizer.constraint == whole.optimizer.constraint
    again.step(4)
    for name, value in values(again).items():
        np.testing.assert_array_equal(value, values(whole)[name])
    assert read_state(state).extra["blocks"] == {"a.weights": 4, "c.weights": 2}

    other = solver(YAML.replace("c.weights: 2", "c.weights: 4"), prefix=str(tmp_path / "s"))
    before = {name: np.array(value) for name, value in values(other).items()}
    with pytest.raises(
        TrainingError, match=r"'c\.weights' falls into 2 blocks in it, and into 4 here: give bl"
    ):
        other.restore(state)
    assert other.iter == 0
    for name, value in values(other).items():
        np.testing.assert_array_equal(value, before[name])
    other.restore(state, history=False)
    assert other.iter == 4


BASE = "base_lr: 1\nlr_policy: fixed\noptimizer: AdamMini\n"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("blocks: 3", "4:1", "blocks must be a mapping of parameters' names to values, not '3'"),
        (
            "blocks: {a: 2, b: 0}",
            "4:16",
            "blocks has 'b': a number of blocks is a whole number of at least 1",
        ),
        ("blocks:\n  a: columns", "5:3", "not 'columns'"),
        ("blocks:\n  a: 1.5", "5:3", "not '1.5'"),
        ("blocks:\n  a: true", "5:3", "not 'True'"),
        ("blocks: {1: 2}", "4:10", "blocks has the key '1', which isn't a name"),
        ("constraints: [x]", "4:1", "constraints must be a mapping"),
        (
            "constraints: {a: NonNegative, b: MaxNrm}",
            "4:31",
            "no constraint 'MaxNrm'; did you mean 'MaxNorm'",
        ),
        ("constraints:\n  a: {axis: 1}", "5:3", "has 'a': it names no constraint; there are 'MaxNorm'"),
        (
            "constraints:\n  a: {constraint: MaxNorm, max_val: 1}",
            "5:3",
            "MaxNorm has no 'max_val'; did you mean 'max_value'",
        ),
        (
            "constraints: {a: {constraint: NonNegative, axis: 1}}",
            "4:15",
            "NonNegative has no 'axis'; it takes none",
        ),
        ("constraints:\n  a: {constraint: MaxNorm, max_value: -1}", "5:3", "max_value of MaxNorm must be"),
        ("constraints:\n  a: MinMax", "5:3", "MinMax without low and high would do nothing"),
    ],
)
def test_refused_with_the_place(text: str, place: str, said: str) -> None:
    with pytest.raises(SolverParametersError) as caught:
        parse_yaml(BASE + text, "s.yaml")
    assert str(caught.value).startswith(f"s.yaml:{place}: ")
    assert said in str(caught.value)


def test_an_optimizer_without_blocks_is_refused_without_a_net() -> None:
    with pytest.raises(SolverParametersError, match=r"s\.yaml:4:1: .*AdamW doesn't use blocks"):
        parse_yaml(BASE.replace("AdamMini", "AdamW") + "blocks: {a: 2}", "s.yaml").checked()


def test_what_the_net_doesnt_have() -> None:
    text = YAML.replace("c.weights: 2", "c.weigths: 2").replace("axis: [1]", "axis: [2]").replace("rows", "3")
    with pytest.raises(SolverParametersError) as caught:
        solver(text)
    assert [str(finding) for finding in caught.value.findings] == [
        "s.yaml:7:10: error: parameter 'a.weights' of shape (4, 4) can't be divided into 3 equal blocks: "
        "their number must divide the first axis, or be its length times a number that divides the "
        "second, and so on",
        "s.yaml:7:24: error: blocks has 'c.weigths', which is not a parameter that the net learns; "
        "did you mean "
        "'c.weights'?",
        "s.yaml:9:3: error: MaxNorm of parameter 'a.weights' has axis 2, but the parameter has 2 axes: it is "
        "(4, 4)",
    ]


def test_in_prototxt_there_is_a_hint() -> None:
    pytest.importorskip("google.protobuf")
    from solvergen.solver.parameters.prototxt import parse_prototxt

    with pytest.raises(SolverParametersError, match=r"no field 'constraints'.*it can only be given in YAML"):
        parse_prototxt('base_lr: 1 constraints { name: "a" }')
