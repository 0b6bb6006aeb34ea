"""From parameters to an optimizer: which class, its hyperparameters and options, and what wraps it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.blocks import BLOCKS
from solvergen.runtime.definition import Definition, definition_of
from solvergen.runtime.naming import quoted
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.wrappers import Wrappers
from solvergen.solver.devices import backend_of, count_gpus
from solvergen.solver.parameters.error import SolverParametersError
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.model import SolverParameters
from solvergen.solver.registry import find_optimizer, optimizer_names

if TYPE_CHECKING:
    from typing import NoReturn

    from solvergen.runtime.constraints import Constraint

CAFFE: Mapping[str, str] = MappingProxyType(
    {
        "SGD": "CaffeSGD",
        "Nesterov": "CaffeNesterov",
        "AdaGrad": "CaffeAdaGrad",
        "RMSProp": "CaffeRMSProp",
        "AdaDelta": "CaffeAdaDelta",
        "Adam": "CaffeAdam",
    }
)
"""Caffe's ``type``, and the generated optimizer that computes the same."""

_OF_CAFFE = ("momentum", "momentum2", "rms_decay", "delta", "weight_decay")
"""Hyperparameters of those that are parameters of the solver, by the same names."""


@dataclass(frozen=True)
class Chosen:
    """An optimizer class, and what to make it with: ``make`` does. The rate is the first one's base."""

    optimizer_class: type[Optimizer]
    hyperparameters: Mapping[str, float]
    options: Mapping[str, bool]
    wrappers: Wrappers | None
    blocks: Mapping[str, int | str] = field(default_factory=dict, kw_only=True)
    constraints: Mapping[str, Constraint] = field(default_factory=dict, kw_only=True)
    """Both by the names of the net's parameters."""

    def make(self, params: Any, *, backend: str = "auto", **changes: Any) -> Optimizer:
        """The optimizer of these tensors; ``changes`` take the place of what is chosen.

        Blocks and constraints are those of the parameters' names: an OptimizerError where ``params``, a
        mapping or groups of some, has no such names.
        """
        made: dict[str, Any] = {**self.hyperparameters, **self.options, "wrappers": self.wrappers}
        if self.blocks:
            made["blocks"] = self.blocks
        optimizer = self.optimizer_class(params, backend=backend, **{**made, **changes})
        if self.constraints:
            optimizer.constraint = self.constraints
        return optimizer


@dataclass(frozen=True)
class Choice(Chosen):
    """The same with the backend that solver_mode means here, and what is to be said about it."""

    backend: str
    warnings: tuple[str, ...]


def chosen(params: SolverParameters, *, gpus: Callable[[], int] = count_gpus) -> Choice:
    """Which optimizer the parameters mean, and on which backend.

    Raises:
        SolverParametersError: there is no such optimizer, or it doesn't take these hyperparameters.
        BackendUnavailable: ``device_id`` says a GPU that isn't there.
    """
    optimizer = optimizer_of(params)
    backend, warnings = backend_of(params, gpus)
    told = [*warnings]
    if "lr" not in definition_of(optimizer.optimizer_class).hyperparameter_names:
        told.append(f"optimizer {params.optimizer} has no learning rate: base_lr and its policy do nothing")
    return Choice(
        optimizer.optimizer_class,
        optimizer.hyperparameters,
        optimizer.options,
        optimizer.wrappers,
        backend,
        tuple(told),
        blocks=optimizer.blocks,
        constraints=optimizer.constraints,
    )


def optimizer_of(params: SolverParameters) -> Chosen:
    """Which optimizer the parameters mean. Raises SolverParametersError."""
    choice = _of_caffe(params) if params.optimizer is None else _of_ours(params, params.optimizer)
    definition = definition_of(choice.optimizer_class)
    if params.blocks and definition.view != BLOCKS:
        _refuse(params, "blocks", f"{definition.class_name} doesn't use blocks: leave the argument out")
    try:
        # On one element: the optimizer itself knows best what it takes.
        choice.make([np.zeros(1, np.float32)], backend="numpy")
    except (HyperparameterError, OptimizerError) as error:
        where = "type" if params.optimizer is None else "optimizer"
        _refuse(params, "hyperparameters" if params.has("hyperparameters") else where, str(error))
    return replace(choice, blocks=params.blocks, constraints=params.constraints)


def _of_caffe(params: SolverParameters) -> Chosen:
    name = CAFFE.get(params.type)
    if name is None:
        _refuse(params, "type", f"unknown solver type {quoted(params.type)}; {meant(params.type, CAFFE)}")
    class_ = find_optimizer(name)
    assert class_ is not None
    known = definition_of(class_).hyperparameter_names
    values = {"lr": params.base_lr, **{n: getattr(params, n) for n in _OF_CAFFE if n in known}}
    options = {"l1": _is_l1(params)}
    return Chosen(class_, MappingProxyType(values), MappingProxyType(options), _wrappers(params))


def _of_ours(params: SolverParameters, name: str) -> Chosen:
    class_ = find_optimizer(name)
    if class_ is None:
        hint = meant(name, optimizer_names())
        if not hint.startswith("did you mean"):
            hint += "; one of your own is known once the module of --net gives it to register_optimizer"
        _refuse(params, "optimizer", f"no optimizer {quoted(name)}; {hint}")
    definition = definition_of(class_)
    values: dict[str, float] = {}
    if "lr" in definition.hyperparameter_names:
        values["lr"] = params.base_lr
    options: dict[str, bool] = {}
    for key, value in params.hyperparameters.items():
        _place(params, definition, key, value, values, options)
    decay = params.weight_decay
    wrappers = _wrappers(params, l1=decay if _is_l1(params) else 0.0, l2=0.0 if _is_l1(params) else decay)
    return Chosen(class_, MappingProxyType(values), MappingProxyType(options), wrappers)


def _place(
    params: SolverParameters,
    definition: Definition,
    key: str,
    value: float | bool,
    values: dict[str, float],
    options: dict[str, bool],
) -> None:
    """Put one of ``hyperparameters`` where it belongs."""
    named = f"optimizer {definition.class_name}"
    known = definition.hyperparameter_names
    switches = [option.name for option in definition.options]
    if key == "lr":
        _refuse(params, "hyperparameters", f"the lr of {named} is base_lr, and follows lr_policy")
    if key in switches:
        if not isinstance(value, bool):
            _refuse(params, "hyperparameters", f"{key} of {named} is true or false, not {value!r}")
        options[key] = value
    elif key in known:
        if isinstance(value, bool):
            _refuse(params, "hyperparameters", f"{key} of {named} is a number, not {value!r}")
        values[key] = value
    else:
        others = [name for name in (*known, *switches) if name != "lr"]
        _refuse(params, "hyperparameters", f"{named} has no {quoted(key)}; {meant(key, others)}")


def _wrappers(params: SolverParameters, *, l1: float = 0.0, l2: float = 0.0) -> Wrappers | None:
    """What Caffe does to the summed gradient before the rule: clip, normalise, decay. None: nothing.

    The Solver sums the passes of iter_size up itself, in the net's own diffs.
    """
    clip = params.clip_gradients
    made: dict[str, Any] = {}
    if 0.0 <= clip < math.inf:  # nothing is above infinity
        made["clip_grad_norm"] = clip
    if params.iter_size > 1:
        made["normalize"] = 1.0 / params.iter_size
    if l1:
        made["l1"] = l1
    if l2:
        made["l2"] = l2
    return Wrappers(order="caffe", **made) if made else None


def _is_l1(params: SolverParameters) -> bool:
    return params.weight_decay != 0.0 and params.regularization_type == "L1"


def _refuse(params: SolverParameters, name: str, said: str) -> NoReturn:
    raise SolverParametersError([params.finding(name, said)])
