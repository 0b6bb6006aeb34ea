"""The same rule in torch and optax, made from what the spec says of its counterparts."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from solvergen.bench.contenders import Draw
from solvergen.bench.timing import Contender
from solvergen.errors import BenchmarkError
from solvergen.runtime.arrays import HostArray
from solvergen.spec.model import Counterpart

_ARGUMENT = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MEMBER = re.compile(r"([A-Za-z_]\w*)\[(\d)\]", re.ASCII)


def torch_peer(counterpart: Counterpart, values: Mapping[str, Any], draw: Draw, threads: int) -> Contender:
    """An optimizer of torch's with its fused kernel, or as it comes where it has none.

    Raises BenchmarkError if torch isn't installed, hasn't the class, or refuses the values.
    """
    torch = _imported("torch")
    cls = _found(counterpart.name, "torch")
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise BenchmarkError(f"{counterpart.name} is no optimizer of torch's")
    arguments = arguments_for(counterpart, values, cls)
    torch.set_num_threads(threads)
    params = [torch.nn.Parameter(_torch_tensor(torch, array)) for array in draw()]
    label = f"torch {counterpart.name.rpartition('.')[2]}"
    try:
        optimizer = cls(params, fused=True, **arguments)
        label += ", fused"
    except (TypeError, RuntimeError, ValueError):
        try:
            optimizer = cls(params, **arguments)
        except (TypeError, RuntimeError, ValueError) as problem:
            raise BenchmarkError(f"{counterpart.name} refuses these values: {problem}") from problem

    def receive(gradients: list[Any]) -> None:
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = _torch_tensor(torch, gradient)

    return Contender(label, lambda _: optimizer.step(), receive)


def _torch_tensor(torch: Any, array: HostArray) -> Any:
    """The array as a tensor of the same memory; torch knows NumPy's own types, and so not its bfloat16."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def optax_peer(counterpart: Counterpart, values: Mapping[str, Any], draw: Draw, threads: int) -> Contender:
    """A transformation of optax's, update and application in one jitted function that takes over the memory.

    JAX chooses its threads itself. For float64 it is told to have that type, in the whole process. Raises
    BenchmarkError if optax isn't installed, or refuses the values.
    """
    optax, jax = _imported("optax"), _imported("jax")
    make = _found(counterpart.name, "optax")
    if not callable(make):
        raise BenchmarkError(f"{counterpart.name} can't be called")
    try:
        rule = make(**arguments_for(counterpart, values, make))
    except (TypeError, ValueError) as problem:
        raise BenchmarkError(f"{counterpart.name} refuses these values: {problem}") from problem
    arrays = draw()
    if arrays[0].dtype == np.float64:  # JAX would make float32 of it
        jax.config.update("jax_enable_x64", True)
    params = [jax.device_put(array) for array in arrays]
    state = rule.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(params: Any, state: Any, gradients: Any) -> Any:
        updates, state = rule.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    held = [params, state]

    def step(gradients: Any) -> None:
        held[:] = update(held[0], held[1], gradients)
        jax.block_until_ready(held[0])

    return Contender(
        f"optax {counterpart.name.rpartition('.')[2]}, jitted",
        step,
        lambda gradients: jax.block_until_ready([jax.device_put(gradient) for gradient in gradients]),
    )


PEERS: Mapping[str, Callable[[Counterpart, Mapping[str, Any], Draw, int], Contender]] = {
    "torch": torch_peer,
    "optax": optax_peer,
}
"""Libraries that can be timed, by the name that specs give them."""


def arguments_for(
    counterpart: Counterpart, values: Mapping[str, Any], callee: Callable[..., Any]
) -> dict[str, Any]:
    """What to call the counterpart with, so that it runs with our ``values``.

    What it lacks, and what it has only as part of an expression, stays at its own default. So does what is 0
    here and None there: optax keeps a buffer for a momentum of 0, and none without a momentum.
    """
    maps = dict(counterpart.maps)
    known = inspect.signature(callee).parameters
    arguments: dict[str, Any] = {}
    members: dict[str, dict[int, Any]] = {}
    for name, value in values.items():
        target = maps.get(name, name)
        if name in counterpart.lacks or (value == 0 and target in known and known[target].default is None):
            continue
        if member := _MEMBER.fullmatch(target):
            members.setdefault(member[1], {})[int(member[2])] = value
        elif _ARGUMENT.fullmatch(target) and target in known:
            arguments[target] = value
    for name, parts in members.items():
        default = known[name].default if name in known else ()
        # A tuple of another length than the default's is all ours.
        kept = default if isinstance(default, tuple) and max(parts) < len(default) else sorted(parts)
        arguments[name] = tuple(parts.get(index, value) for index, value in enumerate(kept))
    return arguments


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise BenchmarkError(f"{name} isn't installed ({problem})") from problem


def _found(path: str, library: str) -> Any:
    """The object of ``library`` that a dotted path names. A spec can't have anything else imported."""
    module, _, name = path.rpartition(".")
    if module.partition(".")[0] != library:
        raise BenchmarkError(f"{path} is not part of {library}")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise BenchmarkError(f"there is no {path} in what is installed ({problem})") from problem
