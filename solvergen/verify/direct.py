"""The rule itself: the generated NumPy reference called directly, tensor by tensor.

This is what every backend is compared with. It goes around the whole runtime: no plans, no cohorts, no
table of scalars; each tensor has its own count and calls ``Definition.update`` with its hyperparameters
as they are. So a mistake of the runtime's, or of the passes that hoist scalars, can't hide on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import compute_dtype
from solvergen.verify.example import Example, Step, Tensor
from solvergen.verify.trace import Moment, Trace


class Followed:
    """One tensor with everything that the rule keeps of it."""

    def __init__(
        self,
        definition: Definition,
        options: Mapping[str, bool],
        hyperparameters: Mapping[str, float],
        drawn: Tensor,
        start: int,
    ) -> None:
        param = drawn.param
        self.definition = definition
        self.options = options
        self.param = param.copy()
        self.t = start
        self.real = compute_dtype(param.dtype.name)
        active = definition.active_state(**options)
        initial = definition.initial_state(**hyperparameters, **options)
        self.arrays: dict[str, HostArray | None] = dict.fromkeys(definition.array_states)
        self.scalars: dict[str, float | None] = dict.fromkeys(definition.scalar_states)
        for state in definition.state:
            value = initial[state.name]
            if state.name not in active:
                continue
            if state.shape == "scalar":
                self.scalars[state.name] = float(drawn.scalars.get(state.name, value))
            elif state.name in drawn.arrays:
                self.arrays[state.name] = drawn.arrays[state.name]
            elif value == "param":
                self.arrays[state.name] = param.astype(self.real)
            else:
                self.arrays[state.name] = np.full(param.shape, value, self.real)

    def step(self, gradient: HostArray, hyperparameters: Mapping[str, float]) -> None:
        """One update, as the language defines it."""
        self.t += 1
        storage, shape, real = self.param.dtype, self.param.shape, self.real

        def stored(elements: Any) -> HostArray:
            # A scalar stands for one value of every element.
            array: HostArray = np.broadcast_to(np.asarray(elements, real), shape)
            return array

        results = self.definition.update(
            self.param.astype(real),
            gradient.astype(real),
            *self.arrays.values(),
            *self.scalars.values(),
            *hyperparameters.values(),
            float(self.t),
            *self.options.values(),
            real.type,
            _rounding(storage, real),
        )
        param, rest = results[0], results[1:]
        self.param = np.array(stored(param).astype(storage))
        for name, value in zip((*self.arrays, *self.scalars), rest, strict=True):
            if name in self.arrays and self.arrays[name] is not None:
                self.arrays[name] = np.array(stored(value))
            elif name in self.scalars and self.scalars[name] is not None:
                self.scalars[name] = float(value)


def _rounding(storage: np.dtype[Any], real: np.dtype[Any]) -> Callable[[Any], Any]:
    """Rounding to the parameter's storage type and back."""
    if storage == real:
        return lambda elements: elements
    return lambda elements: np.asarray(elements).astype(storage).astype(real)


def effective_of(
    definition: Definition, hyperparameters: Mapping[str, float], multipliers: Mapping[str, float]
) -> dict[str, float]:
    """Hyperparameters as the update sees them, in the definition's order: after a group's multipliers."""
    factor = {"lr": multipliers.get("lr_mult", 1.0), "weight_decay": multipliers.get("decay_mult", 1.0)}
    return {name: hyperparameters[name] * factor.get(name, 1.0) for name in definition.hyperparameter_names}


def hyperparameters_of(
    definition: Definition, example: Example, step: Step, tensor: Tensor
) -> dict[str, float]:
    """Hyperparameters as the update of ``tensor`` sees them in ``step``."""
    group = example.groups[tensor.group]
    return effective_of(definition, step.hyperparameters[tensor.group], group.multipliers)


def options_of(definition: Definition, example: Example, tensor: Tensor) -> dict[str, bool]:
    """Options of the group of ``tensor``; derived ones are decided when it is made."""
    derived = definition.options_of(**example.steps[0].hyperparameters[tensor.group])
    given = example.groups[tensor.group].options
    return {name: derived[name] if value is None else value for name, value in given.items()}


def run_directly(definition: Definition, example: Example) -> Trace:
    """What the rule makes of ``example``."""
    with np.errstate(all="ignore"):
        tensors = [_make(definition, example, index) for index in range(len(example.tensors))]
        trace = [_moment(example, tensors, "made")]
        for step in example.steps:
            present = [g for g in step.gradients if g is not None]
            outcome = "applied"
            if not is_applied(example.nonfinite, present):
                outcome = "skipped" if example.nonfinite == "skip" else "raised"
            else:
                for tensor, drawn, gradient in zip(tensors, example.tensors, step.gradients, strict=True):
                    if gradient is not None:
                        tensor.step(gradient, hyperparameters_of(definition, example, step, drawn))
            trace.append(_moment(example, tensors, outcome))
    return tuple(trace)


def is_applied(nonfinite: str, gradients: Iterable[HostArray]) -> bool:
    """Whether a step with these gradients changes anything, under a policy."""
    return nonfinite == "propagate" or all(_is_finite(g) for g in gradients)


def _make(definition: Definition, example: Example, index: int) -> Followed:
    drawn = example.tensors[index]
    values = hyperparameters_of(definition, example, example.steps[0], drawn)
    return Followed(definition, options_of(definition, example, drawn), values, drawn, example.start)


def _is_finite(gradient: HostArray) -> bool:
    return bool(np.isfinite(gradient.astype(np.float64)).all())


def _moment(example: Example, tensors: Sequence[Followed], outcome: str) -> Moment:
    """What there is now. Arrays are never changed in place here, so they need no copies."""
    names = [tensor.name for tensor in example.tensors]
    buffers = [
        {**{name: a for name, a in t.arrays.items() if a is not None}, "param": t.param} for t in tensors
    ]
    scalars = [{name: s for name, s in t.scalars.items() if s is not None} for t in tensors]
    return Moment(
        outcome,
        dict(zip(names, buffers, strict=True)),
        dict(zip(names, scalars, strict=True)),
        {name: t.t for name, t in zip(names, tensors, strict=True)},
    )
