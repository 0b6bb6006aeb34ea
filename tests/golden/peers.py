"""How other packages run a case: in float64, on the CPU, on the data of all golden runs.

Imported by ``make_goldens.py`` only: each function imports its package when it is called.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.golden.case import Case, Run
from tests.golden.data import RECORDED, SHAPES, STEPS, gradients, join, parameters

Values = Mapping[str, float]


def renamed(values: Values, **names: str) -> dict[str, Any]:
    """``values`` with some keys replaced; ``beta1="betas[0]"`` puts a value into a tuple ``betas``."""
    out: dict[str, Any] = {}
    tuples: dict[str, dict[int, float]] = {}
    for ours, value in values.items():
        theirs = names.get(ours, ours)
        if theirs.endswith("]"):
            name, _, index = theirs[:-1].partition("[")
            tuples.setdefault(name, {})[int(index)] = value
        elif theirs:
            out[theirs] = value
    return {**out, **{name: tuple(v for _, v in sorted(parts.items())) for name, parts in tuples.items()}}


def run_torch(
    case: Case,
    make: Callable[..., Any],
    rename: Callable[[Values], Mapping[str, Any]],
    states: Mapping[str, str | Callable[[Mapping[str, Any]], Any]] | Sequence[str],
    *,
    constant: Mapping[str, Any] | None = None,
    values_at: Callable[[int, str], Values] | None = None,
) -> Run:
    """``case`` by optimizers with torch's interface, one for each tensor, since some count by the group.

    ``rename`` makes the group's settings of our hyperparameters, ``constant`` are further arguments.
    ``states``: state of the spec -> theirs, or a function that finds it in their state (or the common
    names). torch's default type is float64 meanwhile, since some of its optimizers keep scalars in that.
    ``values_at(step, tensor)`` replaces ``case.at`` where theirs read a value at another step than ours.
    """
    import torch

    at = values_at or (lambda step, tensor: case.at(step))
    of = dict(states) if isinstance(states, Mapping) else {name: name for name in states}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        tensors = {n: torch.from_numpy(np.array(p)).requires_grad_() for n, p in parameters().items()}
        options = case.options if constant is None else constant
        optimizers = {name: make([t], **rename(at(1, name)), **options) for name, t in tensors.items()}
        recorded = []
        for step in range(1, STEPS + 1):
            for name, gradient in gradients(step).items():
                optimizers[name].param_groups[0].update(rename(at(step, name)))
                if gradient is not None:
                    tensors[name].grad = torch.from_numpy(np.array(gradient))
                    optimizers[name].step()
            if step in RECORDED:
                recorded.append(join({n: t.detach().numpy() for n, t in tensors.items()}))
    finally:
        torch.set_default_dtype(before)
    final = {}
    for ours, theirs in of.items():
        states_of = {n: optimizers[n].state[t] for n, t in tensors.items()}
        found = {n: theirs(s) if callable(theirs) else s.get(theirs) for n, s in states_of.items()}
        if all(value is not None for value in found.values()):
            final[ours] = _row(
                {n: v.detach().numpy() if torch.is_tensor(v) else np.float64(v) for n, v in found.items()}
            )
    return np.array(recorded), final


def run_optax(
    case: Case,
    make: Callable[[Values], Any],
    states: Mapping[str, str | Callable[[Any], Any]],
) -> Run:
    """``case`` by optax: ``make`` gives the transformation for the hyperparameters in force.

    Each tensor has a state of its own, since optax steps all leaves at once. ``states``: state of the
    spec -> the field of optax's state, or a function that finds it.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import optax

    tensors = {n: jnp.asarray(p) for n, p in parameters().items()}
    optax_states = {n: make(case.at(1)).init(p) for n, p in tensors.items()}

    def step(number: int, name: str, gradient: np.ndarray) -> None:
        rule = make(case.at(number))
        updates, optax_states[name] = rule.update(jnp.asarray(gradient), optax_states[name], tensors[name])
        tensors[name] = optax.apply_updates(tensors[name], updates)
        assert tensors[name].dtype == jnp.float64

    recorded = []
    for number in range(1, STEPS + 1):
        for name, gradient in gradients(number).items():
            if gradient is not None:
                step(number, name, gradient)
        if number in RECORDED:
            recorded.append(join({n: np.asarray(t) for n, t in tensors.items()}))
    final = {
        ours: _row(
            {
                n: np.asarray(theirs(s) if callable(theirs) else optax.tree.get(s, theirs))
                for n, s in optax_states.items()
            }
        )
        for ours, theirs in states.items()
    }
    return np.array(recorded), final


def run_keras(
    case: Case,
    make: Callable[[Values], Any],
    rename: Callable[[Values], Mapping[str, float]],
    states: Mapping[str, str],
) -> Run:
    """``case`` by Keras on JAX, an optimizer for each tensor, so that each has its own count.

    ``rename`` gives attributes to be set at each step; ``states``: state of the spec -> the end of the
    name of Keras's variable.
    """
    keras = keras_module()
    variables, optimizers = {}, {}
    for name, value in parameters().items():
        variables[name] = keras.Variable(value, dtype="float64", name=name)
        optimizers[name] = make(case.at(1))
        optimizers[name].build([variables[name]])
    recorded = []
    for number in range(1, STEPS + 1):
        for name, gradient in gradients(number).items():
            for attribute, value in rename(case.at(number)).items():
                setattr(optimizers[name], attribute, value)
            if gradient is not None:
                optimizers[name].apply([keras.ops.convert_to_tensor(gradient, dtype="float64")])
        if number in RECORDED:
            recorded.append(join({n: np.asarray(v.value) for n, v in variables.items()}))
    final = {}
    for ours, theirs in states.items():
        found = {
            n: [np.asarray(v.value) for v in o.variables if v.name.endswith(theirs)]
            for n, o in optimizers.items()
        }
        if all(len(values) == 1 for values in found.values()):
            final[ours] = _row({n: values[0] for n, values in found.items()})
    return np.array(recorded), final


def keras_module() -> Any:
    """Keras, on JAX and in float64 (the backend is chosen when it is first imported)."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import jax

    jax.config.update("jax_enable_x64", True)
    keras = importlib.import_module("keras")
    keras.config.set_floatx("float64")
    return keras


def timm_optimizer(module: str, name: str) -> Any:
    """An optimizer of timm's, without the rest of timm, which needs torchvision."""
    if "timm" not in sys.modules:
        spec = importlib.util.find_spec("timm")
        assert spec is not None, "timm isn't installed"
        assert spec.submodule_search_locations is not None
        package = types.ModuleType("timm")
        package.__spec__ = spec
        package.__path__ = list(spec.submodule_search_locations)
        optim = types.ModuleType("timm.optim")
        optim.__path__ = [os.path.join(path, "optim") for path in package.__path__]
        sys.modules.update({"timm": package, "timm.optim": optim})
    return getattr(importlib.import_module(f"timm.optim.{module}"), name)


def _row(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """A row of elements; for scalar state (one number whatever the tensor's shape) one of tensors."""
    shapes = {n: np.shape(value) for n, value in tensors.items()}
    if shapes == dict(SHAPES):
        return join(tensors)
    assert all(shape == () for shape in shapes.values()), shapes
    return np.array([float(tensors[n]) for n in SHAPES])
