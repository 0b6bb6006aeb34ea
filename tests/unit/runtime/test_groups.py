"""Hyperparameters, multipliers and options."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from solvergen.errors import HyperparameterError, OptimizerError, UnknownAttribute
from solvergen.runtime.optimizer import Optimizer
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, WarmSGD

F = np.float32


def adam(**settings):
    return Adam(np.ones(3, F), backend="numpy", **settings)


def warm(**settings):
    return WarmSGD(np.ones(3, F), backend="numpy", **settings)


BAD_NUMBERS = [
    math.nan, np.nan, F("nan"), True, False, np.True_, "0.1", "", None, [0.1], (0.1,), np.array([0.1]),
    np.array(0.1), 1j, np.complex64(1), Decimal("0.1"), object(), 10**400, b"1", {},
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=lambda value: repr(value)[:40].partition(" at 0x")[0])
def test_what_is_no_number(value):
    with pytest.raises(HyperparameterError, match="lr"):
        adam(lr=value)
    opt = adam()
    for change in (
        lambda: setattr(opt, "lr", value),
        lambda: setattr(opt.groups[0], "lr", value),
        lambda: opt.set(beta1=0.5, lr=value),
        lambda: opt.groups[0].set(beta1=0.5, lr=value),
        lambda: setattr(opt.groups[0], "lr_mult", value),
    ):
        with pytest.raises(HyperparameterError, match="lr"):
            change()
    assert opt.lr == 0.001
    assert opt.beta1 == 0.9
    assert opt.groups[0].lr_mult == 1.0


@pytest.mark.parametrize(
    "value", [1, 1.0, F(0.5), np.float64(0.5), np.int64(2), Fraction(1, 3), np.float16(0.25), 0]
)
def test_what_is_a_number(value):
    opt = adam(lr=value)
    assert opt.lr == float(value)
    assert type(opt.lr) is float
    opt.lr = value
    assert type(opt.groups[0].lr) is float


@pytest.mark.parametrize(
    ("cls", "name", "value", "message"),
    [
        (Adam, "lr", -1e-300, "lr must be at least 0, not -1e-300"),
        (Adam, "lr", -math.inf, "lr must be a finite number, not -inf"),
        (Adam, "lr", math.inf, "lr must be a finite number, not inf"),
        (Adam, "eps", F(math.inf), "eps must be a finite number"),
        (Adam, "lr", np.longdouble("1e4000"), "lr is too large for a float"),
        (Adam, "beta1", 1.0, "beta1 must be at least 0 and below 1, not 1.0"),
        (Adam, "beta2", 1.5, "below 1"),
        (Adam, "beta2", -0.1, "at least 0"),
        (WarmSGD, "pull", -10.0, "above -10 and at most 10"),
        (WarmSGD, "pull", 10.1, "at most 10"),
        (WarmSGD, "warmup", 2.5, "whole number"),
        (WarmSGD, "warmup", 0, "at least 1"),
        (WarmSGD, "warmup", math.inf, "finite number"),
        (WarmSGD, "warmup", 2**54, "whole number"),
    ],
)
def test_ranges(cls, name, value, message):
    with pytest.raises(HyperparameterError, match=message):
        cls(np.ones(3, F), backend="numpy", **{name: value})
    opt = cls(np.ones(3, F), backend="numpy")
    before = opt.groups[0].hyperparameters
    with pytest.raises(ValueError, match=message):
        setattr(opt, name, value)
    assert opt.groups[0].hyperparameters == before


def test_limits_themselves():
    assert warm(pull=10.0).pull == 10.0
    assert warm(pull=np.nextafter(-10.0, 0)).pull > -10.0
    assert warm(warmup=2**53).warmup == 2**53
    assert adam(lr=sys.float_info.max).lr == sys.float_info.max
    assert math.copysign(1.0, adam(weight_decay=-0.0).weight_decay) == -1.0


def test_integers_read_back_as_integers():
    opt = warm(warmup=7.0)
    assert opt.warmup == 7
    assert type(opt.warmup) is int
    assert type(opt.groups[0].warmup) is int
    opt.warmup = np.int32(9)
    assert opt.warmup == 9
    assert type(opt.get_config()["groups"][0]["hyperparameters"]["warmup"]) is int


def test_one_value_for_all_groups():
    opt = Adam(
        [{"params": [np.ones(1, F)], "lr": 0.1}, {"params": [np.ones(1, F)], "lr": 0.2}], backend="numpy"
    )
    with pytest.raises(HyperparameterError, match=r"different lr \(0.1, 0.2\); read opt.groups\[i\].lr"):
        _ = opt.lr
    assert opt.beta1 == 0.9
    opt.groups[1].lr = 0.1
    assert opt.lr == 0.1
    opt.lr = 0.5
    assert [g.lr for g in opt.groups] == [0.5, 0.5]


def test_a_change_is_made_in_all_groups_or_in_none():
    opt = WarmSGD(
        [{"params": [np.ones(1, F)]}, {"params": [np.ones(1, F)], "momentum": 0.0}], backend="numpy"
    )
    with pytest.raises(HyperparameterError, match="momentum_buffer"):
        opt.momentum = 0.5  # fine in group 0, but group 1 was made without a buffer
    assert [g.momentum for g in opt.groups] == [0.9, 0.0]
    opt.set(lr=0.3, weight_decay=0.1)
    assert opt.lr == 0.3
    with pytest.raises(HyperparameterError):
        opt.set(lr=0.4, weight_decay=-1)
    assert opt.lr == 0.3
    with pytest.raises(UnknownAttribute, match="did you mean 'weight_decay'"):
        opt.set(lr=0.4, weight_decy=0)
    assert opt.lr == 0.3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("learning_rate", "no attribute 'learning_rate'; did you mean 'lr'"),
        ("beta_1", "did you mean 'beta1'"),
        ("LR", "no attribute 'LR'"),
        ("weight_deacy", "did you mean 'weight_decay'"),
        ("amsgrad", r"option.*opt.options\['amsgrad'\]"),
        ("lr_mult", r"opt.groups\[i\].lr_mult"),
        ("stat", "did you mean 'state'"),
        ("shadows", r"Adam has shadows only if it is made with wrappers=Wrappers\(shadow=\.\.\.\)"),
    ],
)
def test_unknown_attributes_are_errors(name, message):
    opt = adam()
    with pytest.raises(UnknownAttribute, match=message):
        setattr(opt, name, 0.1)
    with pytest.raises(AttributeError, match=message):
        getattr(opt, name)
    assert not hasattr(opt, name)


@pytest.mark.parametrize("name", ["t", "steps", "state", "params", "groups", "options", "backend"])
def test_read_only_attributes(name):
    opt = adam()
    with pytest.raises(UnknownAttribute, match="read-only"):
        setattr(opt, name, 1)


@pytest.mark.parametrize("name", ["step", "definition", "set", "save"])
def test_methods_are_not_overwritten(name):
    opt = adam()
    with pytest.raises(UnknownAttribute):
        setattr(opt, name, 1)


def test_attributes_of_groups():
    group = adam().groups[0]
    with pytest.raises(UnknownAttribute, match="did you mean 'beta1'"):
        group.bta1 = 1
    with pytest.raises(UnknownAttribute, match="did you mean 'beta1'"):
        _ = group.bta1
    with pytest.raises(UnknownAttribute, match="option"):
        group.amsgrad = True
    for name in ("names", "options", "hyperparameters", "set"):
        with pytest.raises(UnknownAttribute):
            setattr(group, name, 1)
    with pytest.raises(TypeError):
        group.options["amsgrad"] = True
    group.hyperparameters["lr"] = 5  # a copy
    assert group.lr == 0.001
    assert {"lr", "lr_mult", "set", "names"} <= set(dir(group))
    assert "lr=0.001" in repr(group)


@pytest.mark.parametrize("value", [1, 0, None, "yes", "True", 1.0, [], np.array(True)])
def test_options_are_bools(value):
    with pytest.raises(HyperparameterError, match="amsgrad must be True or False"):
        adam(amsgrad=value)
    with pytest.raises(HyperparameterError, match="amsgrad must be"):
        Adam([{"params": [np.ones(1, F)], "amsgrad": value}], backend="numpy")


def test_options_of_numpy_bools():
    opt = adam(amsgrad=np.True_)
    assert opt.options["amsgrad"] is True
    assert opt.options == {"amsgrad": True, "maximize": False}


def test_options_of_groups_may_differ():
    opt = Adam([{"params": [np.ones(1, F)], "amsgrad": True}, {"params": [np.ones(1, F)]}], backend="numpy")
    with pytest.raises(OptimizerError, match=r"opt.groups\[i\].options"):
        _ = opt.options
    opt.step([np.ones(1, F), np.ones(1, F)])
    assert list(opt.state["v_max"]) == ["0"]
    assert "amsgrad=<by group>" in repr(opt)


def test_derived_options():
    assert warm().options["momentum_buffer"] is True
    assert warm(momentum=0.0).options["momentum_buffer"] is False
    assert warm(momentum=0.0, momentum_buffer=True).options["momentum_buffer"] is True
    assert warm(momentum_buffer=False).options["momentum_buffer"] is False
    assert list(warm(momentum=0.0).state) == ["start", "mu_product"]


@pytest.mark.parametrize(("start", "to", "which"), [(0.9, 0.0, "off"), (0.0, 0.5, "on")])
def test_a_change_that_would_flip_a_derived_option_is_refused(start, to, which):
    opt = warm(momentum=start)
    with pytest.raises(
        HyperparameterError, match=f"momentum={to} would turn momentum_buffer {which}"
    ) as raised:
        opt.momentum = to
    assert f"momentum_buffer={to != 0}" in str(raised.value)
    assert opt.momentum == start
    explicit = warm(momentum=start, momentum_buffer=start != 0)
    explicit.momentum = to  # what the text advises
    explicit.step(np.ones(3, F))
    opt.lr = 0.5  # others may change
    assert opt.lr == 0.5


def test_constraints():
    with pytest.raises(HyperparameterError, match="nesterov needs momentum above 0"):
        warm(nesterov=True, momentum=0.0)
    opt = warm(nesterov=True, momentum_buffer=True)
    with pytest.raises(HyperparameterError, match="nesterov needs momentum above 0"):
        opt.momentum = 0.0
    assert opt.momentum == 0.9


@pytest.mark.parametrize("value", [-1, -1e-9, math.inf])
def test_multipliers_are_finite_and_not_negative(value):
    with pytest.raises(HyperparameterError, match="lr_mult must be a finite number"):
        Adam([{"params": [np.ones(1, F)], "lr_mult": value}], backend="numpy")
    opt = adam()
    with pytest.raises(HyperparameterError, match="decay_mult must be"):
        opt.groups[0].decay_mult = value


def test_multipliers_where_they_would_do_nothing():
    class NoDecay(Optimizer):
        definition = replace(
            Adam.definition,
            hyperparameters=tuple(h for h in Adam.definition.hyperparameters if h.name == "eps"),
            options_of=lambda **_: {},
            constraints=lambda **_: None,
            initial_state=lambda **_: {"m": 0.0, "v": 0.0, "v_max": 0.0},
        )

        def __init__(self, params):
            super().__init__(params, hyperparameters={}, options={}, backend="numpy")

    opt = NoDecay(np.ones(2, F))
    assert opt.groups[0].multipliers == {}
    with pytest.raises(UnknownAttribute, match="has no weight_decay, so it has no decay_mult"):
        _ = opt.groups[0].decay_mult
    with pytest.raises(HyperparameterError, match="has no weight_decay, so decay_mult would do nothing"):
        opt.groups[0].decay_mult = 1.0
    with pytest.raises(HyperparameterError, match="has no lr, so lr_mult would do nothing"):
        NoDecay([{"params": [np.ones(2, F)], "lr_mult": 2.0}])


def test_multipliers_multiply_in_float64():
    lr, lr_mult, decay, decay_mult = 0.1, 0.3, 0.7, 0.1
    first, second = np.ones(4, F), np.ones(4, F)
    opt = Adam(
        [{"params": [first], "lr_mult": lr_mult, "decay_mult": decay_mult}],
        backend="numpy",
        lr=lr,
        weight_decay=decay,
    )
    plain = Adam(second, backend="numpy", lr=lr * lr_mult, weight_decay=decay * decay_mult)
    gradient = np.full(4, 0.25, F)
    for _ in range(3):
        opt.step([gradient])
        plain.step(gradient)
    assert_same_bits(first, second)
    assert opt.lr == lr  # as given
    opt.groups[0].set(lr_mult=1.0, decay_mult=0.0)
    plain.set(lr=lr, weight_decay=0.0)
    opt.step([gradient])
    plain.step(gradient)
    assert_same_bits(first, second)


def test_a_product_that_overflows():
    opt = adam(lr=1e200)
    for change in ({"lr_mult": 1e200}, {"lr": 1e300, "lr_mult": 1e9}):
        with pytest.raises(HyperparameterError, match="lr times lr_mult is too large for a float"):
            opt.groups[0].set(**change)
    assert (opt.lr, opt.groups[0].lr_mult) == (1e200, 1.0)
    opt.groups[0].lr_mult = 1e100
    with pytest.raises(HyperparameterError, match="too large"):
        opt.lr = 1e250


def test_a_configuration_is_strict_json():
    json.dumps(adam(lr=sys.float_info.max, eps=5e-324).get_config(), allow_nan=False)


def test_unknown_constructor_arguments_of_the_base_class():
    class Direct(Optimizer):
        definition = Adam.definition

        def __init__(self, params, hyperparameters, options):
            super().__init__(params, hyperparameters=hyperparameters, options=options, backend="numpy")

    with pytest.raises(HyperparameterError, match="has no 'lrr'; did you mean 'lr'"):
        Direct(np.ones(1, F), {"lrr": 1.0}, {})
    with pytest.raises(HyperparameterError, match="has no 'amsgrda'"):
        Direct(np.ones(1, F), {}, {"amsgrda": True})
    assert Direct(np.ones(1, F), {"lr": 2}, {}).lr == 2.0  # the rest has its defaults


def test_subclasses_share_the_attributes():
    class Mine(Adam):
        """No definition of its own."""

    opt = Mine(np.ones(1, F), backend="numpy", lr=0.5)
    assert opt.lr == 0.5
    opt.lr = 0.25
    assert opt.groups[0].lr == 0.25
    assert repr(opt).startswith("Mine(lr=0.25, ")


def test_the_documentation_of_a_hyperparameter():
    assert Adam.lr.__doc__ == "step size"


@pytest.mark.parametrize("policy", ["ignore", "", None, True, 1, ["skip"]])
def test_unknown_policies(policy):
    with pytest.raises(HyperparameterError, match="nonfinite must be"):
        adam(nonfinite=policy)
    opt = adam()
    with pytest.raises(HyperparameterError, match="nonfinite must be"):
        opt.nonfinite = policy
    assert opt.nonfinite == "propagate"


def test_what_is_there_but_can_not_be_assigned():
    class Own(Adam):
        note = "mine"

    opt = Own(np.ones(2, F), backend="numpy")
    for name in ("step", "definition", "note", "save", "from_config"):
        with pytest.raises(UnknownAttribute, match=f"^{name} of Own can't be assigned$"):
            setattr(opt, name, 1)
    for name in ("set", "check", "options", "names", "_values", "__class__"):
        with pytest.raises(UnknownAttribute, match=f"^{name} of a group can't be assigned$"):
            setattr(opt.groups[0], name, 1)


def test_the_base_class_says_that_it_has_no_rule():
    for make in (
        lambda: Optimizer(np.ones(2, F), hyperparameters={}, options={}),
        lambda: Optimizer.from_config(np.ones(2, F), Adam(np.ones(2, F), backend="numpy").get_config()),
    ):
        with pytest.raises(OptimizerError, match="Optimizer has no rule of its own; use a generated"):
            make()
    assert not hasattr(Optimizer.__new__(Optimizer), "_groups")
    assert not hasattr(Optimizer.__new__(Adam), "nothing")
