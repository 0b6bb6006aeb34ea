"""The specs that come along: what they call things, and the choices that they document."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.spec.names import PREDECLARED
from solvergen.spec.reader import read_specs

ROOT = Path(__file__).parents[3]
SPECS = {spec.name: spec for spec in read_specs(ROOT / "specs")}

CLASSES = {
    "adabelief": "AdaBelief",
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adafactor": "Adafactor",
    "adam_mini": "AdamMini",
    "adamax": "Adamax",
    "adamp": "AdamP",
    "adamw": "AdamW",
    "adan": "Adan",
    "ademamix": "AdEMAMix",
    "adopt": "ADOPT",
    "aggmo": "AggMo",
    "asgd": "ASGD",
    "caffe_adadelta": "CaffeAdaDelta",
    "caffe_adagrad": "CaffeAdaGrad",
    "caffe_adam": "CaffeAdam",
    "caffe_nesterov": "CaffeNesterov",
    "caffe_rmsprop": "CaffeRMSProp",
    "caffe_sgd": "CaffeSGD",
    "came": "CAME",
    "cautious_adamw": "CautiousAdamW",
    "dadapt_adamw": "DAdaptAdamW",
    "diffgrad": "DiffGrad",
    "dog": "DoG",
    "extragradient": "Extragradient",
    "fromage": "Fromage",
    "ftrl": "FTRL",
    "grokfast_adamw": "GrokfastAdamW",
    "heun": "Heun",
    "lamb": "LAMB",
    "laprop": "LaProp",
    "lars": "LARS",
    "ldog": "LDoG",
    "lion": "Lion",
    "lookahead": "Lookahead",
    "madgrad": "MADGRAD",
    "mars_adamw": "MarsAdamW",
    "nadam": "NAdam",
    "novograd": "NovoGrad",
    "optimistic_sgd": "OptimisticSGD",
    "prodigy": "Prodigy",
    "qhadam": "QHAdam",
    "radam": "RAdam",
    "rk23": "RK23",
    "rk45": "RK45",
    "rk45_adaptive": "RK45Adaptive",
    "rmsprop": "RMSprop",
    "rmsprop_tf": "RMSpropTF",
    "rowwise_adagrad": "RowwiseAdagrad",
    "rprop": "Rprop",
    "sam": "SAM",
    "schedule_free_adamw": "ScheduleFreeAdamW",
    "schedule_free_sgd": "ScheduleFreeSGD",
    "sgd": "SGD",
    "sgdp": "SGDP",
    "signsgd": "SignSGD",
    "sm3": "SM3",
    "stable_adamw": "StableAdamW",
    "yogi": "Yogi",
}


def defaults(name):
    return {h.name: h.default for h in SPECS[name].hyperparameters}


def test_all_sixty():
    assert {name: spec.class_name for name, spec in SPECS.items()} == CLASSES


@pytest.mark.parametrize("name", SPECS)
def test_says_what_a_reader_needs(name):
    spec = SPECS[name]
    assert Path(spec.path).stem == name
    assert spec.summary.endswith(".")
    assert spec.references
    assert len(spec.conventions) >= 2
    assert all(h.doc for h in spec.hyperparameters)
    assert all(o.doc for o in spec.options)
    assert all(s.doc for s in spec.state)
    assert spec.hyperparameters[0].name == "lr"
    names = [x.name for group in (spec.hyperparameters, spec.options, spec.state) for x in group]
    assert len(names) == len({name.lower() for name in names} - set(PREDECLARED))


def test_caffe_s_names_and_defaults():
    """As in caffe.proto; momentum and weight_decay have none there, so they are 0 (base_lr too)."""
    decay = {"lr": 0.01, "weight_decay": 0.0}
    assert defaults("caffe_sgd") == {**decay, "momentum": 0.0}
    assert defaults("caffe_nesterov") == {**decay, "momentum": 0.0}
    assert defaults("caffe_adagrad") == {**decay, "delta": 1e-8}
    assert defaults("caffe_rmsprop") == {**decay, "rms_decay": 0.99, "delta": 1e-8}
    assert defaults("caffe_adadelta") == {**decay, "momentum": 0.0, "delta": 1e-8}
    assert defaults("caffe_adam") == {**decay, "momentum": 0.0, "momentum2": 0.999, "delta": 1e-8}
    for name in CLASSES:
        if name.startswith("caffe_"):
            assert [(o.name, o.default) for o in SPECS[name].options] == [("l1", False)]


def test_state_is_in_the_order_of_caffe_s_snapshots():
    one, two = ["history"], ["history", "history2"]
    for name, states in {
        "sgd": one,
        "nesterov": one,
        "adagrad": one,
        "rmsprop": one,
        "adadelta": two,
        "adam": two,
    }.items():
        spec = SPECS[f"caffe_{name}"]
        assert [s.name for s in spec.state] == states
        assert all(s.init == 0 and s.shape == "param" and s.when is None for s in spec.state)


def test_torch_s_names_and_defaults():
    assert defaults("sgd") == {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0}
    assert defaults("adam") == {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0}
    assert [s.name for s in SPECS["sgd"].state] == ["momentum_buffer"]
    assert [s.name for s in SPECS["adam"].state] == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert defaults("lion") == {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0}
    assert [s.name for s in SPECS["lion"].state] == ["exp_avg"]


TORCH = {
    "adadelta": ({"lr": 1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0}, ["square_avg", "acc_delta"]),
    "adagrad": (
        {"lr": 1e-2, "lr_decay": 0, "eps": 1e-10, "weight_decay": 0, "initial_accumulator_value": 0},
        ["state_sum"],
    ),
    "adamax": (
        {"lr": 2e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0},
        ["exp_avg", "exp_inf"],
    ),
    "adamw": (
        {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-2},
        ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"],
    ),
    "asgd": ({"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0}, ["ax"]),
    "nadam": (
        {"lr": 2e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0, "momentum_decay": 4e-3},
        ["exp_avg", "exp_avg_sq", "mu_product"],
    ),
    "radam": (
        {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0, "threshold": 5},
        ["exp_avg", "exp_avg_sq"],
    ),
    "rmsprop": (
        {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0},
        ["square_avg", "momentum_buffer", "grad_avg"],
    ),
    "rprop": (
        {"lr": 1e-2, "eta_minus": 0.5, "eta_plus": 1.2, "min_step_size": 1e-6, "max_step_size": 50},
        ["prev", "step_size"],
    ),
}
"""Defaults and state of torch's other rules, with its names (its sum is state_sum, since sum will be a
function; betas, etas and step_sizes are pairs there)."""


@pytest.mark.parametrize("name", TORCH)
def test_torch_s_names_and_defaults_of_the_others(name):
    expected, states = TORCH[name]
    assert defaults(name) == expected
    assert [s.name for s in SPECS[name].state] == states


@pytest.mark.parametrize("name", CLASSES)
def test_every_rule_says_where_it_was_published(name):
    """A paper by its arXiv number or DOI, or where else it can be found."""
    assert any(r.arxiv or r.doi or r.url for r in SPECS[name].references)
