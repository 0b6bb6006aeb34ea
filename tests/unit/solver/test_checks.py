"""Each check of Caffe's Init has an input that only it refuses; each surprise one that it warns of."""

from __future__ import annotations

from typing import Any

import pytest

from solvergen.solver import SolverParameters, SolverParametersError
from solvergen.solver.parameters.checks import REFUSALS
from solvergen.solver.parameters.surprises import SURPRISES

pytest.importorskip("google.protobuf")

SOUND = """net: "n" base_lr: 0.1 lr_policy: "fixed" max_iter: 10 momentum: 0.9
snapshot_prefix: "p" solver_mode: CPU"""


def read(more: str, without: str = "") -> SolverParameters:
    from solvergen.solver.parameters.prototxt import parse_prototxt

    kept = " ".join(word for word in _fields(SOUND) if word.split(":")[0] not in without.split())
    return parse_prototxt(f"{kept}\n{more}")


def _fields(text: str) -> list[str]:
    words = text.split()
    return [f"{name} {value}" for name, value in zip(words[::2], words[1::2], strict=True)]


def errors(params: SolverParameters) -> list[str]:
    return [f.sentence for f in params.check() if f.severity == "error"]


def warned(params: SolverParameters) -> list[str]:
    """Warnings, but for the net's file, which isn't there."""
    return [text for text in params.warnings if "there is no file" not in text]


def test_the_sound_one_is_sound():
    assert errors(read("")) == warned(read("")) == []
    assert read("").checked() == read("")


@pytest.mark.parametrize(
    ("more", "without", "field", "said"),
    [
        ('type: "SGD" solver_type: ADAM', "", "solver_type", "both type and its predecessor"),
        ('type: "sgd"', "", "type", "unknown solver type 'sgd'; did you mean 'SGD'?"),
        ('type: "AdamW"', "", "type", 'write optimizer: "AdamW"'),
        ('type: "Adam" optimizer: "AdamW"', "", "type", "leave one of them out"),
        ("", "net", None, "no net to train"),
        ('weights: "a.caffemodel,"', "", "weights", "a file without a name; give one, or leave it out"),
        ('weights: ""', "", "weights", "a file without a name"),
        ('train_net: "t"', "", "train_net", "net and train_net all say what to train"),
        ('net_param { name: "x" }', "", "net_param", "all say what to train"),
        ('test_net: "t" test_interval: 1', "", "test_iter", "1 test nets need as many test_iter"),
        (
            'train_net: "t" test_net: "u" test_iter: [1, 2] test_interval: 1',
            "net",
            "test_iter",
            "go with as many",
        ),
        (
            "test_iter: 1 test_interval: 1 test_state {} test_state {}",
            "",
            "test_state",
            "given 2 times for 1",
        ),
        ("test_iter: 1", "", "test_interval", "test_interval must be above 0"),
        ("average_loss: 0", "", "average_loss", "at least 1"),
        ("snapshot: 5", "snapshot_prefix", "snapshot", "snapshot_prefix isn't"),
        ('type: "AdaGrad"', "", "momentum", "can't be used with AdaGrad"),
        ('type: "RMSProp"', "", "momentum", "can't be used with RMSProp"),
        ('type: "RMSProp" rms_decay: 1', "momentum", "rms_decay", "below 1, not 1.0"),
        ('type: "RMSProp" rms_decay: -0.5', "momentum", "rms_decay", "at least 0"),
        ("", "lr_policy", "lr_policy", "lr_policy is missing"),
        ('lr_policy: "multifixed"', "lr_policy", "lr_policy", "piecewise"),
        ('lr_policy: "stepearly"', "lr_policy", "lr_policy", "plateau"),
        ('lr_policy: "triangular"', "lr_policy", "lr_policy", "one_cycle"),
        ('lr_policy: "Step" stepsize: 3', "lr_policy", "lr_policy", "did you mean 'step'?"),
        ('lr_policy: "step" gamma: 0.1', "lr_policy", "stepsize", "stepsize must be above 0"),
        ('lr_policy: "sigmoid" gamma: 0.1', "lr_policy", "stepsize", "stepsize must be above 0"),
        ('lr_policy: "exp" gamma: -0.1', "lr_policy", "gamma", "gamma must be at least 0"),
        ('lr_policy: "inv" gamma: -0.1 power: 1', "lr_policy", "gamma", "gamma must be at least 0"),
        ('regularization_type: "L3" weight_decay: 1', "", "regularization_type", "unknown regularization"),
        ("base_lr: nan", "base_lr", "base_lr", "must be finite"),
        ("clip_gradients: nan", "", "clip_gradients", "must be a number"),
        ("iter_size: 0", "", "iter_size", "at least 1"),
        ("base_lr: -0.1", "base_lr", "base_lr", "at least 0, not -0.1"),
        ("keep_snapshots: 0", "", "keep_snapshots", "at least 1"),
        ("test_iter: 0 test_interval: 1", "", "test_iter", "every test_iter must be at least 1"),
        ('type: "Adam" momentum2: 1', "", "momentum2", "below 1"),
        ('type: "AdaDelta" momentum: 1', "momentum", "momentum", "below 1"),
        ('optimizer: "Adamw"', "momentum", "optimizer", "did you mean 'AdamW'?"),
        (
            'optimizer: "AdamW" hyperparameter { name: "beta" value: 1 }',
            "momentum",
            "hyperparameters",
            "no 'beta'",
        ),
        (
            'optimizer: "AdamW" hyperparameter { name: "lr" value: 1 }',
            "momentum",
            "hyperparameters",
            "base_lr",
        ),
        (
            'optimizer: "AdamW" hyperparameter { name: "beta1" value: 1 }',
            "momentum",
            "hyperparameters",
            "beta1 must be",
        ),
        (
            'optimizer: "AdamW" hyperparameter { name: "beta1" flag: true }',
            "momentum",
            "hyperparameters",
            "is a number",
        ),
    ],
)
def test_refused(more, without, field, said):
    params = read(more, without)
    found = [finding for finding in params.check() if finding.severity == "error"]
    assert [finding.field for finding in found] == [field]
    assert said in found[0].sentence
    if field is not None and params.has(field):
        assert found[0].location is not None
    with pytest.raises(SolverParametersError):
        params.checked()


@pytest.mark.parametrize(
    "more",
    [
        'test_net: "t" test_iter: [1, 2] test_interval: 1',
        'test_iter: [1, 2] test_interval: 1 test_state { stage: "x" } test_state {}',
        'regularization_type: "NONE" weight_decay: 0',
        "clip_gradients: 0",
        "test_interval: 100",
        "snapshot: 5",
        "clip_gradients: 35 iter_size: 32",
        "display: -5",
        "random_seed: 0",
    ],
)
def test_not_refused(more):
    assert errors(read(more)) == []


@pytest.mark.parametrize(
    ("more", "without", "said"),
    [
        ('type: "Adam"', "momentum", "beta1"),
        ('type: "AdaDelta" base_lr: 1', "momentum base_lr", "it remembers nothing"),
        ('type: "Nesterov"', "momentum", "plain gradient descent"),
        ("", "momentum", "plain gradient descent"),
        ("clip_gradients: 0", "", "every gradient zero"),
        ("clip_gradients: 10 iter_size: 4", "", "clipped at 2.5; clip_gradients: 40 clips the mean at 10"),
        ('type: "Adam" weight_decay: 0.1', "", '"AdamW"'),
        ('type: "AdaDelta"', "", "base_lr: 1 is the paper's"),
        ("", "base_lr", "base_lr isn't given"),
        ('lr_policy: "step" stepsize: 3', "lr_policy", "the rate is 0 from the first stepsize on"),
        ('lr_policy: "multistep" stepvalue: 3', "lr_policy", "the rate is 0 from the first stepvalue on"),
        ('lr_policy: "sigmoid" stepsize: 3 gamma: 1', "lr_policy", "rises"),
        ('lr_policy: "poly"', "lr_policy", "power isn't given"),
        ('lr_policy: "exp" gamma: 1.5', "lr_policy", "the rate grows"),
        ('lr_policy: "multistep" gamma: 0.5', "lr_policy", "no stepvalue"),
        ('lr_policy: "multistep" gamma: 0.5 stepvalue: [5, 3]', "lr_policy", "don't rise"),
        ("gamma: 0.1 stepsize: 5", "", "lr_policy 'fixed' doesn't use gamma and stepsize"),
        ("rms_decay: 0.5", "", "type 'SGD' doesn't use rms_decay"),
        ('optimizer: "AdamW"', "", "optimizer 'AdamW' doesn't use momentum"),
        ('hyperparameter { name: "x" value: 1 }', "", "none is given"),
        ("solver_type: SGD", "", "old form"),
        ("test_interval: 5", "", "nothing is tested"),
        ("display: -5", "", "Caffe takes that for 5"),
        ("", "max_iter", "max_iter is 0"),
        ("", "snapshot_prefix", "'_iter_N'"),
        ('snapshot_prefix: "no/where"', "snapshot_prefix", "there is no folder 'no' for snapshots"),
        ('regularization_type: "NONE"', "", "isn't one of Caffe's"),
        ("layer_wise_reduce: true", "", "several GPUs"),
        ("train_state { phase: TEST }", "", "in phase TEST"),
    ],
)
def test_warned_of(more, without, said):
    params = read(more, without)
    assert errors(params) == []
    found = warned(params)
    assert len(found) == 1, found
    assert said in found[0]


def test_a_missing_net_is_a_warning():
    assert [text for text in read("").warnings if "there is no file 'n'" in text]


def test_python_and_yaml_need_no_net():
    params = SolverParameters(
        base_lr=1,
        lr_policy="fixed",
        max_iter=3,
        test_iter=[1],
        test_interval=1,
        momentum=0.9,
        snapshot_prefix="p",
    )
    assert params.check() == []


def test_every_check_is_one_that_can_fail():
    """Each function finds something for some input above: none is dead."""
    inputs: list[Any] = [
        *(case for mark in test_refused.pytestmark for case in mark.args[1]),
        *(case for mark in test_warned_of.pytestmark for case in mark.args[1]),
    ]
    read_ones = [read(case[0], case[1]) for case in inputs]
    for check in (*REFUSALS, *SURPRISES):
        assert any(list(check(params)) for params in read_ones), check.__name__
