"""Optimizers by kind, for the index. A spec that isn't named here stands under the last heading."""

from __future__ import annotations

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Descent and momentum", ("sgd", "aggmo", "asgd", "schedule_free_sgd", "optimistic_sgd", "lookahead")),
    (
        "The gradient at several points",
        ("heun", "rk23", "rk45", "rk45_adaptive", "extragradient", "sam"),
    ),
    ("By the signs of gradients", ("signsgd", "lion", "rprop")),
    ("A learning rate for each element", ("adagrad", "adadelta", "rmsprop", "rmsprop_tf")),
    ("Dual averaging", ("ftrl", "madgrad")),
    ("Adam", ("adam", "adamw", "adamax", "adam_mini")),
    (
        "Adam with another momentum",
        (
            "nadam",
            "qhadam",
            "laprop",
            "ademamix",
            "adan",
            "grokfast_adamw",
            "mars_adamw",
            "schedule_free_adamw",
        ),
    ),
    (
        "Adam with another second moment or length of step",
        ("adabelief", "adopt", "diffgrad", "radam", "yogi", "stable_adamw", "cautious_adamw"),
    ),
    ("Scaled to the norms of tensors", ("lars", "lamb", "novograd", "fromage")),
    ("Without a learning rate to choose", ("prodigy", "dadapt_adamw", "dog", "ldog")),
    (
        "Caffe's solvers",
        ("caffe_sgd", "caffe_nesterov", "caffe_adagrad", "caffe_rmsprop", "caffe_adadelta", "caffe_adam"),
    ),
)

OTHERS = "Others"


def by_kind(names: list[str]) -> list[tuple[str, list[str]]]:
    """``names`` under their headings, in the order of the table; headings without any are left out."""
    known = {name for _, members in KINDS for name in members}
    kinds = [(kind, [name for name in members if name in names]) for kind, members in KINDS]
    kinds.append((OTHERS, [name for name in names if name not in known]))
    return [(kind, members) for kind, members in kinds if members]
