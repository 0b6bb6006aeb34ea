"""The rule itself: the generated NumPy reference called directly, tensor by tensor.

This is what every backend is compared with. It goes around the whole runtime: no plans, no cohorts, no
table of scalars, no workspace; each tensor has its own count and calls ``Definition.update`` with its
hyperparameters as they are. So a mistake of the runtime's, or of the passes that hoist scalars, can't hide on
both sides. Tensors meet only where the rule says so: in reductions over all of them, in shared states, and
where the gradient is evaluated again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.closures import GradientAt
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype
from solvergen.verify import order
from solvergen.verify.evaluations import gradient_at
from solvergen.verify.example import Example, Step, Tensor
from solvergen.verify.lines import lines_of, matrices_of, state_shape
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
        self.writes_grad = "grad" in definition.buffers_written(**options)
        self.grad_dtype = param.dtype
        self.written: HostArray | None = None  # what the last step has left in the gradient's buffer
        active = definition.active_state(**options)
        initial = definition.initial_state(**hyperparameters, **options)
        self.view = definition.view
        self.blocks = drawn.blocks
        self.arrays: dict[str, HostArray | None] = dict.fromkeys(s.name for s in definition.reference_arrays)
        self.lines = {s.name: s.rank for s in definition.reference_arrays if s.rank is not None}
        self.scalars: dict[str, float | None] = dict.fromkeys(definition.all_scalar_states)
        self.shared = tuple(name for name in definition.shared_states if name in active)
        for state in definition.state:
            value = initial[state.name]
            if state.name not in active or state.shape == "shared":
                continue
            if state.shape == "scalar":
                self.scalars[state.name] = float(drawn.scalars.get(state.name, value))
            elif state.name in drawn.arrays:
                self.arrays[state.name] = drawn.arrays[state.name]
            elif state.name in self.lines:
                shape = state_shape(self.view, self.lines[state.name], param.shape, drawn.blocks)
                self.arrays[state.name] = np.full(shape, value, np.float64)
            elif state.dtype:
                self.arrays[state.name] = _copy_of(param.astype(self.real), state.dtype)
            elif value == "param":
                self.arrays[state.name] = param.astype(self.real)
            else:
                self.arrays[state.name] = np.full(param.shape, value, self.real)

    def begin(
        self, gradient: HostArray, hyperparameters: Mapping[str, float], shared: Mapping[str, float]
    ) -> Any:
        """One update, as the language defines it: its results, or a generator that asks for reductions over
        all tensors and for gradients on the way to them. ``shared``: the states of the whole optimizer, as
        they are."""
        self.grad_dtype = gradient.dtype
        elements = self.elements
        arrays = (
            array if array is None else array.reshape(self._seen(name, elements))
            for name, array in self.arrays.items()
        )
        return self.definition.update(
            self.as_seen(self.param),
            self.as_seen(gradient),
            *arrays,
            *self.scalars.values(),
            *(shared[name] if name in self.shared else None for name in self.definition.shared_states),
            *hyperparameters.values(),
            float(self.t + 1),
            *self.options.values(),
            self.real.type,
            _rounding(self.param.dtype, self.real),
            *((float(self.param.ndim),) if self.view else ()),
        )

    @property
    def elements(self) -> tuple[int, ...]:
        """The shape in which the rule sees elements."""
        return matrices_of(self.view, self.param.shape, self.blocks) if self.view else self.param.shape

    def as_seen(self, array: HostArray) -> HostArray:
        """A parameter or a gradient as the rule sees it."""
        return array.astype(self.real).reshape(self.elements)

    def _seen(self, name: str, elements: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in which the rule sees a state."""
        return lines_of(self.lines[name], elements) if name in self.lines else elements

    def finish(self, results: tuple[Any, ...]) -> dict[str, float]:
        """Keep what the update returned. Returns the shared states as this tensor has them."""
        storage, shape, real = self.param.dtype, self.param.shape, self.real
        seen = self.elements

        def stored(elements: Any) -> HostArray:
            # A scalar stands for one value of every element, a line's for one of each of its own.
            array: HostArray = np.broadcast_to(np.asarray(elements, real), seen)
            lying: HostArray = array.reshape(shape)
            return lying

        def kept(name: str, lines: Any) -> HostArray:
            array: HostArray = np.broadcast_to(np.asarray(lines, np.float64), self._seen(name, seen))
            lying: HostArray = array.reshape(state_shape(self.view, self.lines[name], shape, self.blocks))
            return lying

        self.t += 1
        if self.writes_grad:
            self.written = np.array(stored(results[-1]).astype(self.grad_dtype))
        self.param = np.array(stored(results[0]).astype(storage))
        names = (*self.arrays, *self.scalars, *self.definition.shared_states)
        # Behind these there may be the gradient, as it is left in its buffer.
        rest = dict(zip(names, results[1 : len(names) + 1], strict=True))
        for name, value in rest.items():
            if name in self.definition.copies and self.arrays[name] is not None:
                self.arrays[name] = np.array(_copy_of(stored(value), self.definition.copies[name]))
            elif self.arrays.get(name) is not None:
                self.arrays[name] = np.array(kept(name, value) if name in self.lines else stored(value))
            elif self.scalars.get(name) is not None:
                self.scalars[name] = float(value)
        return {name: float(rest[name]) for name in self.shared}


class Whole:
    """All tensors of an optimizer, and the states that are one number for all of them.

    ``positions``: the indices of ``tensors`` by their places in the optimizer, which the order of reductions
    over all tensors and the choice of the one that speaks for the optimizer go by.
    """

    def __init__(
        self, tensors: Sequence[Followed], positions: Sequence[int], shared: Mapping[str, float]
    ) -> None:
        self.tensors = tensors
        self.positions = positions
        self.shared = dict(shared)

    def step(
        self,
        gradients: Sequence[HostArray | None],
        hyperparameters: Sequence[Mapping[str, float]],
        nonfinite: str = "propagate",
    ) -> str:
        """One step; both sequences have an entry for each tensor, None where it takes no part.

        ``nonfinite`` is the policy. Returns what became of the step: "applied", "skipped" or "raised".
        """
        for tensor in self.tensors:
            tensor.written = None
        refused = "skipped" if nonfinite == "skip" else "raised"
        if not is_applied(nonfinite, (gradient for gradient in gradients if gradient is not None)):
            return refused
        begun = {
            place: self.tensors[i].begin(gradient, hyperparameters[i], self.shared)
            for place, i in enumerate(self.positions)
            if (gradient := gradients[i]) is not None
        }
        size = sum(gradient.size for gradient in gradients if gradient is not None)
        evaluations = itertools.count(2)

        def evaluate(places: Mapping[int, GradientAt]) -> dict[int, HostArray]:
            number = next(evaluations)
            anew = {place: self._gradient(number, gradients, place, ask) for place, ask in places.items()}
            if set(places) != set(begun):
                raise CompilerBug("some tensors evaluate their gradients, and others don't")
            if not is_applied(nonfinite, anew.values()):
                raise _Refused
            return {
                place: self.tensors[self.positions[place]].as_seen(gradient)
                for place, gradient in anew.items()
            }

        try:
            results = _in_lock_step(begun, len(self.positions), float(size), evaluate)
        except _Refused:
            return refused
        found = [self.tensors[self.positions[place]].finish(result) for place, result in results.items()]
        self.shared.update(found[0] if found else {})
        return "applied"

    def _gradient(
        self, number: int, gradients: Sequence[HostArray | None], place: int, ask: GradientAt
    ) -> HostArray:
        index = self.positions[place]
        drawn, tensor = gradients[index], self.tensors[index]
        if drawn is None:
            raise CompilerBug(f"a tensor without a gradient asks for one: {ask!r:.80}")
        there = np.broadcast_to(np.asarray(ask.param, tensor.real), tensor.elements)
        return gradient_at(number, drawn, there.astype(tensor.param.dtype).reshape(drawn.shape))


class _Refused(Exception):
    """The policy leaves the step out because of a later evaluation."""


def _in_lock_step(
    begun: Mapping[int, Any],
    places: int,
    size: float,
    evaluate: Callable[[Mapping[int, GradientAt]], Mapping[int, HostArray]],
) -> dict[int, tuple[Any, ...]]:
    """What updates return, by place. One that asks for a reduction over all tensors, or for its gradient,
    waits until all others have come as far in the program. ``size``: elements of all tensors that take part.
    """
    results: dict[int, tuple[Any, ...]] = {}
    asked: dict[int, Any] = {}

    def go_on(place: int, answer: float | HostArray | None) -> None:
        try:
            asked[place] = begun[place].send(answer)
        except StopIteration as end:
            results[place] = end.value

    for place, work in begun.items():
        if isinstance(work, tuple):
            results[place] = work
        else:
            go_on(place, None)
    while asked:
        index = min(ask.index for ask in asked.values())
        served = {place: ask for place, ask in asked.items() if ask.index == index}
        if all(isinstance(ask, GradientAt) for ask in served.values()):
            answers = evaluate(served)
            for place in served:
                del asked[place]
                go_on(place, answers[place])
            continue
        kind = next(iter(served.values())).kind
        terms = [served[place].total if place in served else 0.0 for place in range(places)]
        answer = _value_of(kind, terms, size)
        for place in served:
            del asked[place]
            go_on(place, answer)
    return {place: results[place] for place in begun}


def _value_of(kind: str, terms: Sequence[float], size: float) -> float:
    """A reduction over all tensors, from each one's total (+0.0 where it takes no part)."""
    total = order.total_over_all(terms, order.larger if kind == "max_abs" else order.add, 0.0)
    if kind == "norm2":
        return math.sqrt(total) if total >= 0 else math.nan
    if kind == "mean":
        return total / size if size else math.nan
    return total


def _rounding(storage: np.dtype[Any], real: np.dtype[Any]) -> Callable[[Any], Any]:
    """Rounding to the parameter's storage type and back."""
    if storage == real:
        return lambda elements: elements
    return lambda elements: np.asarray(elements).astype(storage).astype(real)


def _copy_of(param: HostArray, dtype: str) -> HostArray:
    """A parameter in another storage type: rounded to float32 first, whatever it is."""
    single: HostArray = param.astype(np.float32).astype(numpy_dtype(dtype))
    return single


def effective_of(
    definition: Definition, hyperparameters: Mapping[str, float], multipliers: Mapping[str, float]
) -> dict[str, float]:
    """Hyperparameters as the update sees them, in the definition's order: after a group's multipliers."""
    factor = {"lr": multipliers.get("lr_mult", 1.0)}
    decays = ("weight_decay", "wrap_l1", "wrap_l2", "wrap_weight_decay")
    factor |= dict.fromkeys(decays, multipliers.get("decay_mult", 1.0))
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
        whole = whole_of(definition, example)
        trace = [_moment(example, whole, "made")]
        for step in example.steps:
            values = [hyperparameters_of(definition, example, step, drawn) for drawn in example.tensors]
            outcome = whole.step(step.gradients, values, example.nonfinite)
            trace.append(_moment(example, whole, outcome))
    return tuple(trace)


def is_applied(nonfinite: str, gradients: Iterable[HostArray]) -> bool:
    """Whether a step with these gradients changes anything, under a policy."""
    return nonfinite == "propagate" or all(_is_finite(g) for g in gradients)


def positions_of(tensors: Sequence[Tensor]) -> list[int]:
    """The indices of tensors by their places in the optimizer, which has them by group."""
    return sorted(range(len(tensors)), key=lambda index: tensors[index].group)


def whole_of(definition: Definition, example: Example) -> Whole:
    """The optimizer that ``example`` is a run of, before its first step."""
    first = example.steps[0]
    values = [hyperparameters_of(definition, example, first, tensor) for tensor in example.tensors]
    options = [options_of(definition, example, tensor) for tensor in example.tensors]
    tensors = [
        Followed(definition, mine, given, drawn, example.start)
        for mine, given, drawn in zip(options, values, example.tensors, strict=True)
    ]
    positions = positions_of(example.tensors)
    shared: dict[str, float] = {}
    for index in positions:
        # One that only some groups have begins as the first of them says.
        initial = definition.initial_state(**values[index], **options[index])
        shared = {**{name: float(initial[name]) for name in tensors[index].shared}, **shared}
    return Whole(tensors, positions, {name: example.shared.get(name, x) for name, x in shared.items()})


def _is_finite(gradient: HostArray) -> bool:
    return bool(np.isfinite(gradient.astype(np.float64)).all())


def _moment(example: Example, whole: Whole, outcome: str) -> Moment:
    """What there is now. Arrays are never changed in place here, so they need no copies."""
    names = [tensor.name for tensor in example.tensors]
    tensors = whole.tensors
    buffers = [
        {name: a for name, a in (*t.arrays.items(), ("param", t.param), ("grad", t.written)) if a is not None}
        for t in tensors
    ]
    scalars = [{name: s for name, s in t.scalars.items() if s is not None} for t in tensors]
    return Moment(
        outcome,
        dict(zip(names, buffers, strict=True)),
        dict(zip(names, scalars, strict=True)),
        {name: t.t for name, t in zip(names, tensors, strict=True)},
        dict(whole.shared),
    )
