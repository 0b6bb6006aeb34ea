"""What other versions of Caffe have in solver files, and which of our words does the same."""

from __future__ import annotations

from collections.abc import Mapping

_WARMUP = 'here any policy warms up: policy_setting { name: "warmup" value: 500 }'
_PLATEAU = 'here that is lr_policy: "plateau", with policy_setting { name: "patience" value: 10 } and more'
_PIECEWISE = 'here that is lr_policy: "piecewise", with the policy settings "boundaries" and "rates"'
_SEVERAL = "several GPUs aren't used here"
_NET = "it is a net's: a solver's file names the net's, as net: \"train_val.prototxt\""
_DETECTION = "it is of a fork for detection; evaluation is the net's own matter here"

FIELDS: Mapping[str, str] = {
    "warmup_iter": _WARMUP,
    "warmup_iters": _WARMUP,
    "warmup_start_lr": _WARMUP,
    "warmup_step": _WARMUP,
    "warmup_steps": _WARMUP,
    "warmup_ratio": _WARMUP,
    "warm_up": _WARMUP,
    "rampup_interval": _WARMUP,
    "rampup_lr": _WARMUP,
    "start_lr_policy": _WARMUP,
    "plateau_winsize": _PLATEAU,
    "winstep": _PLATEAU,
    "stagelr": _PIECEWISE,
    "stageiter": _PIECEWISE,
    "min_lr": 'here that is a policy setting: "end_rate" of "linear" and "cosine", "least_rate" of "plateau"',
    "max_lr": 'here that is base_lr, with lr_policy: "one_cycle"',
    "local_lr_auto": 'here that is optimizer: "LARS"',
    "larc": 'here that is optimizer: "LARS"',
    "larc_policy": 'here that is optimizer: "LARS"',
    "local_gw_ratio": 'here that is optimizer: "LARS"',
    "layer": _NET,
    "layers": _NET,
    "input": _NET,
    "input_shape": _NET,
    "input_dim": _NET,
    "eval_type": _DETECTION,
    "ap_version": _DETECTION,
    "show_per_class_result": _DETECTION,
    "device_ids": _SEVERAL,
    "gpu": "here that is device_id",
    "learning_rate": "here, as in Caffe, that is base_lr",
    "lr": "here, as in Caffe, that is base_lr",
    "solver": "here, as in Caffe, that is type",
    "momentum1": "here, as in Caffe, Adam's first decay is momentum",
    "beta1": "here, as in Caffe, Adam's first decay is momentum",
    "beta2": "here, as in Caffe, Adam's second decay is momentum2",
    "epsilon": "here, as in Caffe, that is delta",
    "regu_param": "here, as in Caffe, that is weight_decay",
    "batch_size": "it is the net's; iter_size sums several batches",
}
"""Fields of forks and of other programs, and what to write instead."""

POLICIES: Mapping[str, str] = {
    "multifixed": '"piecewise" does the same, with the policy settings "boundaries" and "rates"',
    "stepearly": '"plateau" lowers the rate when the loss no longer falls',
    "triangular": '"cosine" with restarts and "one_cycle" rise and fall; "piecewise" takes any list of rates',
    "cyclical": '"cosine" with restarts and "one_cycle" rise and fall',
    "cosine_annealing": '"cosine" does the same',
    "cosine_decay": '"cosine" does the same',
    "sgdr": '"cosine" does the same, with the policy setting "restarts"',
    "onecycle": '"one_cycle" does the same',
    "warmup": 'any policy warms up with the policy setting "warmup"',
    "poly_warmup": '"poly" does the same with the policy setting "warmup"',
    "multistep_warmup": '"multistep" does the same with the policy setting "warmup"',
    "step_warmup": '"step" does the same with the policy setting "warmup"',
    "exponential": '"exp" does the same',
    "const": '"fixed" does the same',
    "burnin": 'any policy warms up with the policy setting "warmup"',
}
"""Policies of forks, and ours that does the same if there is one."""
