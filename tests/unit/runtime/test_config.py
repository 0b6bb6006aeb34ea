"""Configurations."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvergen.errors import HyperparameterError, OptimizerError
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, WarmSGD

F = np.float32


def through_json(config):
    return json.loads(json.dumps(config))


def test_everything_comes_back():
    opt = WarmSGD(
        np.ones(3, F),
        backend="numpy",
        lr=0.1 + 0.2,
        warmup=9,
        momentum=0.0,
        momentum_buffer=True,
        nonfinite="skip",
    )
    opt.groups[0].lr_mult = 0.5
    again = WarmSGD.from_config(np.ones(3, F), through_json(opt.get_config()))
    assert again.get_config() == opt.get_config()
    assert again.lr == 0.1 + 0.2
    assert again.groups[0].lr_mult == 0.5
    assert again.nonfinite == "skip"
    assert again.options == opt.options
    assert type(again) is WarmSGD
    a, b = opt.params[0], again.params[0]
    for _ in range(3):
        opt.step(np.ones(3, F))
        again.step(np.ones(3, F))
    assert_same_bits(a, b)


def test_derived_options_stay_derived():
    config = WarmSGD(np.ones(1, F), backend="numpy").get_config()
    assert config["groups"][0]["options"] == {"momentum_buffer": None, "nesterov": False}
    config["groups"][0]["hyperparameters"]["momentum"] = 0.0
    assert WarmSGD.from_config(np.ones(1, F), config).options["momentum_buffer"] is False


def test_the_layout_of_the_parameters_stays_their_own():
    config = Adam({"a": np.ones(1, F)}, backend="numpy", lr=0.5).get_config()
    assert "names" not in config["groups"][0]  # one group fits any parameters
    single = Adam.from_config(np.ones(2, F), config)
    single.step(np.ones(2, F))
    several = Adam.from_config([np.ones(2, F), np.ones(1, F)], config)
    several.step([np.ones(2, F), None])
    assert single.lr == several.lr == 0.5


def test_groups_by_name():
    def arrays():
        return {"a": np.ones(1, F), "b": np.ones(1, F), "c": np.ones(1, F)}

    opt = Adam(
        [
            {"params": {"c": np.ones(1, F), "a": np.ones(1, F)}, "lr": 0.1},
            {"params": {"b": np.ones(1, F)}, "amsgrad": True},
        ],
        backend="numpy",
    )
    config = through_json(opt.get_config())
    again = Adam.from_config(arrays(), config)  # a mapping without groups: the groups are the configuration's
    assert [g.names for g in again.groups] == [("c", "a"), ("b",)]
    assert again.groups[0].lr == 0.1
    assert again.groups[1].options["amsgrad"]
    again.step({"a": np.ones(1, F), "b": np.ones(1, F), "c": None})
    assert dict(again.steps) == {"a": 1, "b": 1, "c": 0}
    assert list(again.state["v_max"]) == ["b"]
    grouped = Adam.from_config([{"params": arrays()}], config)
    assert [g.names for g in grouped.groups] == [("c", "a"), ("b",)]
    grouped.step([arrays()])
    listed = Adam(
        [{"params": [np.ones(1, F)] * 1}, {"params": [np.ones(1, F)], "lr": 1.0}], backend="numpy"
    ).get_config()
    positional = Adam.from_config([np.ones(1, F), np.ones(1, F)], listed)
    assert [g.lr for g in positional.groups] == [0.001, 1.0]


def test_a_configuration_without_groups_of_its_own_settings_uses_defaults():
    config = {"optimizer": "adam", "groups": [{"hyperparameters": {"lr": 0.5}}]}
    opt = Adam.from_config(np.ones(1, F), {**config, "backend": "numpy"})
    assert opt.lr == 0.5
    assert opt.beta1 == 0.9
    assert opt.options["amsgrad"] is False


def valid():
    return Adam(
        [{"params": {"a": np.ones(1, F)}}, {"params": {"b": np.ones(1, F)}}], backend="numpy"
    ).get_config()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda c: c.update(optimizer="sgd"), OptimizerError, "configuration of 'sgd', not of 'adam'"),
        (lambda c: c.pop("optimizer"), OptimizerError, "has no 'optimizer'"),
        (lambda c: c.update(lr=1), OptimizerError, "unknown key 'lr'"),
        (lambda c: c.update(backened="numpy"), OptimizerError, "did you mean 'backend'"),
        (lambda c: c.update(groups=[]), OptimizerError, "at least one group"),
        (lambda c: c.update(groups=3), OptimizerError, "at least one group"),
        (lambda c: c["groups"].append(3), OptimizerError, "group 2 .* must be a mapping"),
        (lambda c: c["groups"].pop(), OptimizerError, "no group for 'b'"),
        (
            lambda c: c["groups"][0]["names"].append("z"),
            OptimizerError,
            "names 'z', but there is no such parameter",
        ),
        (lambda c: c["groups"][0]["names"].append("b"), OptimizerError, "two groups"),
        (lambda c: c["groups"][0].pop("names"), OptimizerError, "no 'names'"),
        (lambda c: c["groups"][0].update(name=[]), OptimizerError, "did you mean 'names'"),
        (lambda c: c["groups"][0]["hyperparameters"].update(lrr=1), HyperparameterError, "did you mean 'lr'"),
        (lambda c: c["groups"][0]["hyperparameters"].update(lr=-1), HyperparameterError, "at least 0"),
        (lambda c: c["groups"][0]["options"].update(amsgrad=1), HyperparameterError, "True or False"),
        (
            lambda c: c["groups"][0].update(names=None),
            OptimizerError,
            "'names' in group 0 .* list of strings",
        ),
        (lambda c: c["groups"][0].update(names=1), OptimizerError, "list of strings, not 1"),
        (lambda c: c["groups"][0].update(names=[["a"]]), OptimizerError, "list of strings"),
        (lambda c: c.update(groups=[{**c["groups"][0], "names": "ab"}]), OptimizerError, "list of strings"),
        (
            lambda c: c["groups"][1].update(hyperparameters=None),
            OptimizerError,
            "'hyperparameters' in group 1",
        ),
        (
            lambda c: c["groups"][0].update(hyperparameters=[]),
            OptimizerError,
            "must be a mapping, not \\[\\]",
        ),
        (lambda c: c["groups"][0].update(options=None), OptimizerError, "'options' in .* must be a mapping"),
        (lambda c: c["groups"][0].update(multipliers=5), OptimizerError, "'multipliers' in .*, not 5"),
        (
            lambda c: c["groups"][0]["options"].update(lr=1.0),
            OptimizerError,
            "'options' in group 0 .* has 'lr', which belongs in 'hyperparameters'",
        ),
        (
            lambda c: c["groups"][0]["hyperparameters"].update(amsgrad=True),
            OptimizerError,
            "has 'amsgrad', which belongs in 'options'",
        ),
        (
            lambda c: c["groups"][0]["hyperparameters"].update(lr_mult=2.0),
            OptimizerError,
            "belongs in 'multipliers'",
        ),
        (lambda c: c["groups"][0]["options"].update({3: True}), OptimizerError, "doesn't have"),
        (
            lambda c: c["groups"][0]["hyperparameters"].update(params=1),
            OptimizerError,
            "has 'params', which Adam doesn't have; there are",
        ),
        (lambda c: c.update(backend=5), OptimizerError, "backend must be a name"),
        (lambda c: c.update(nonfinite=[]), OptimizerError, "nonfinite"),
        (lambda c: c.update(nonfinite="maybe"), HyperparameterError, "nonfinite"),
        (lambda c: c.update(backend="tpu"), OptimizerError, "no backend 'tpu'"),
    ],
)
def test_configurations_that_do_not_fit(change, error, message):
    config = valid()
    change(config)
    with pytest.raises(error, match=message):
        Adam.from_config({"a": np.ones(1, F), "b": np.ones(1, F)}, config)


def test_what_is_no_configuration():
    for value in (None, [], "adam"):
        with pytest.raises(OptimizerError, match="must be a mapping"):
            Adam.from_config(np.ones(1, F), value)


def test_settings_come_from_one_place():
    with pytest.raises(OptimizerError, match="settings come from the configuration"):
        Adam.from_config([{"params": {"a": np.ones(1, F), "b": np.ones(1, F)}, "lr": 1}], valid())


def test_a_configuration_is_a_copy():
    opt = Adam(np.ones(1, F), backend="numpy")
    config = opt.get_config()
    config["groups"][0]["hyperparameters"]["lr"] = 7.0
    config["groups"][0]["options"]["amsgrad"] = True
    assert opt.lr == 0.001
    assert opt.options["amsgrad"] is False
