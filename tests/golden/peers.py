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
    found: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    together: bool = False,
    shared: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Run:
    """``case`` by optimizers with torch's interface, one for each tensor, since some count by the group.

    ``rename`` makes the group's settings of our hyperparameters, ``constant`` are further arguments.
    ``states``: state of the spec -> theirs, or a function that finds it in their state (or the common
    names). torch's default type is float64 meanwhile, since some of its optimizers keep scalars in that.
    ``values_at(step, tensor)`` replaces ``case.at`` where theirs read a value at another step than ours.
    ``found``: state -> a function of the optimizer and the tensor, where it isn't kept in their state.
    ``together``: one optimizer has all tensors, for rules that look over all of them. ``shared``: shared
    state -> a function of that optimizer.
    """
    import torch

    at = values_at or (lambda step, tensor: case.at(step))
    of = dict(states) if isinstance(states, Mapping) else {name: name for name in states}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        tensors = {n: torch.from_numpy(np.array(p)).requires_grad_() for n, p in parameters().items()}
        options = case.options if constant is None else constant
        names = [[*tensors]] if together else [[name] for name in tensors]
        made = [make([tensors[n] for n in some], **rename(at(1, some[0])), **options) for some in names]
        recorded = []
        for step in range(1, STEPS + 1):
            of_step = gradients(step, dense=case.dense)
            for some, optimizer in zip(names, made, strict=True):
                optimizer.param_groups[0].update(rename(at(step, some[0])))
                for name in some:
                    g = of_step[name]
                    tensors[name].grad = None if g is None else torch.from_numpy(np.array(g))
                if any(of_step[name] is not None for name in some):
                    optimizer.step()
            if step in RECORDED:
                recorded.append(join({n: t.detach().numpy() for n, t in tensors.items()}))
    finally:
        torch.set_default_dtype(before)
    optimizers = {name: optimizer for some, optimizer in zip(names, made, strict=True) for name in some}
    final = {}
    readers = {ours: _reader(theirs) for ours, theirs in of.items()} | dict(found or {})
    for ours, reader in readers.items():
        values = {n: reader(optimizers[n], t) for n, t in tensors.items()}
        if all(value is not None for value in values.values()):
            final[ours] = _row(
                {n: v.detach().numpy() if torch.is_tensor(v) else np.float64(v) for n, v in values.items()}
            )
    final |= {ours: np.array([float(theirs(made[0]))]) for ours, theirs in (shared or {}).items()}
    return np.array(recorded), final


def _reader(theirs: str | Callable[[Mapping[str, Any]], Any]) -> Callable[[Any, Any], Any]:
    """A function of a torch optimizer and a tensor that finds a state: by its name, or by a function."""
    if callable(theirs):
        return lambda optimizer, tensor: theirs(optimizer.state[tensor])
    return lambda optimizer, tensor: optimizer.state[tensor].get(theirs)


def run_optax(
    case: Case,
    make: Callable[[Values], Any],
    states: Mapping[str, str | Callable[[Any], Any]],
    *,
    together: bool = False,
    shared: Mapping[str, str] | None = None,
) -> Run:
    """``case`` by optax: ``make`` gives the transformation for the hyperparameters in force.

    Each tensor has a state of its own, since optax steps all leaves at once. ``states``: state of the
    spec -> the field of optax's state, or a function that finds it. ``together``: all tensors are the
    leaves of one state, each with a gradient at every step, for rules that look over all of them.
    ``shared``: shared state -> the field of that state.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import optax

    tensors = {n: jnp.asarray(p) for n, p in parameters().items()}
    if together:
        return _run_optax_together(case, make, states, shared or {}, tensors)
    optax_states = {n: make(case.at(1)).init(p) for n, p in tensors.items()}

    def step(number: int, name: str, gradient: np.ndarray) -> None:
        rule = make(case.at(number))
        updates, optax_states[name] = rule.update(jnp.asarray(gradient), optax_states[name], tensors[name])
        tensors[name] = optax.apply_updates(tensors[name], updates)
        assert tensors[name].dtype == jnp.float64

    recorded = []
    for number in range(1, STEPS + 1):
        for name, gradient in gradients(number, dense=case.dense).items():
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


def _run_optax_together(
    case: Case,
    make: Callable[[Values], Any],
    states: Mapping[str, str | Callable[[Any], Any]],
    shared: Mapping[str, str],
    tensors: dict[str, Any],
) -> Run:
    """``case`` by optax, all tensors in one state."""
    import jax.numpy as jnp
    import optax

    assert case.dense, "optax steps all leaves at once"
    state = make(case.at(1)).init(tensors)
    recorded = []
    for number in range(1, STEPS + 1):
        of_step = {n: jnp.asarray(g) for n, g in gradients(number, dense=True).items()}
        updates, state = make(case.at(number)).update(of_step, state, tensors)
        tensors = optax.apply_updates(tensors, updates)
        assert all(t.dtype == jnp.float64 for t in tensors.values())
        if number in RECORDED:
            recorded.append(join({n: np.asarray(t) for n, t in tensors.items()}))
    final = {}
    for ours, theirs in states.items():
        leaves = theirs(state) if callable(theirs) else optax.tree.get(state, theirs)
        final[ours] = _row({n: np.asarray(leaf) for n, leaf in leaves.items()})
    final |= {ours: np.array([float(optax.tree.get(state, theirs))]) for ours, theirs in shared.items()}
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
