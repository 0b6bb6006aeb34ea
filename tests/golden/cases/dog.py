"""dog by the authors' package dog-optimizer, and by optax; both need a gradient of every tensor."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"reps_rel": 0.05, "eps": 1e-3}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}}

CASES = tuple(
    Case(
        name,
        values,
        {"average": name == "dog_x_average"},
        by=name.partition("_x_")[0],
        changes=_CHANGES,
        dense=True,
    )
    for name, values in (
        ("dog", _COMMON),
        ("dog_x_decay", {**_COMMON, "weight_decay": 0.3, "lr": 0.8}),
        ("dog_x_average", {**_COMMON, "gamma": 5.0}),
        ("optax", _COMMON),
        ("optax_x_decay", {**_COMMON, "weight_decay": 0.3, "lr": 0.8}),
    )
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    from dog import DoG

    return run_dog(case, DoG, together=True)


def run_dog(case: Case, rule: Any, *, together: bool) -> Run:
    """One of the package's two rules, with its averager if the case says so."""
    import torch
    from dog import PolynomialDecayAverager

    average = case.options["average"]

    def make(params: Any, gamma: float = 8.0, **settings: float) -> Any:
        made = rule(params, **settings)
        if average:
            model = torch.nn.Module()
            model.all = torch.nn.ParameterList(params)  # other objects, but the same numbers
            made.averager = PolynomialDecayAverager(model, gamma)
            made.register_step_post_hook(lambda *_: made.averager.step())
        return made

    def beside(optimizer: Any, tensor: Any, those: Any) -> Any:
        (group,) = optimizer.param_groups
        return next(x for p, x in zip(group["params"], those, strict=True) if p is tensor)

    def mean(optimizer: Any, tensor: Any) -> Any:
        return beside(optimizer, tensor, optimizer.averager.averaged_model.all)

    def first(optimizer: Any, tensor: Any) -> Any:
        return beside(optimizer, tensor, optimizer.param_groups[0]["init_buffer"])

    def of_group(name: str) -> Any:
        return lambda optimizer, *_: optimizer.param_groups[0][name]

    # The sum begins at eps there.
    def squares(optimizer: Any, *_: Any) -> Any:
        (group,) = optimizer.param_groups
        return group["G"] - group["eps"]

    of_all = {"max_distance": of_group("rbar"), "grad_sum_sq": squares}
    tensors = {"x0": first, **({"average_param": mean} if average else {})}
    return run_torch(
        case,
        make,
        dict,
        (),
        constant={},
        found=tensors if together else {**tensors, **{n: _one(f) for n, f in of_all.items()}},
        together=together,
        shared=of_all if together else None,
    )


def _one(reader: Any) -> Any:
    """The only number of an optimizer that has one tensor."""
    return lambda optimizer, tensor: float(reader(optimizer)[0])


def _run_optax(case: Case) -> Run:
    from optax.contrib import dog

    def make(values: Values) -> Any:
        theirs = renamed(values, lr="learning_rate", reps_rel="")
        return dog(init_step=("heuristic", values["reps_rel"]), **theirs)

    return run_optax(
        case,
        make,
        {"x0": "init_params"},
        together=True,
        shared={"max_distance": "max_dist", "grad_sum_sq": "sum_sq_norm_grads"},
    )
