"""Make a finding smaller.

Hypothesis would shrink what it drew, choices; but it doesn't know that rules are elementwise, so that one
element of one tensor nearly always shows the same fault. So an example is cut down as data: each cut is
kept if the backend still differs from the rule. Every cut makes something smaller that can't grow again
(steps, tensors, settings away from their defaults, elements, significant bits), so this comes to an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition
from solvergen.verify.disagreement import Disagreement, has_element
from solvergen.verify.example import Example, Step, Tensor
from solvergen.verify.lines import axes_of, counts_of_blocks
from solvergen.verify.settings import Space

Examine = Callable[[Example], Disagreement | None]
Cut = Callable[[Disagreement, Space], Iterator[Example]]

ROUNDS = 8
"""At most so often is every kind of cut tried again, since one makes room for another."""

SIZES = (*range(1, 10), 15, 16, 17, 31, 32, 33, 63, 64, 65)
"""Numbers of elements that are tried first: a fault of heads or tails needs only one more than a vector."""

FEW = 8
"""In tensors of at most so many elements each one is made simpler by itself."""


def shrunk(found: Disagreement, examine: Examine, space: Space) -> Disagreement:
    """The smallest disagreement that cutting ``found`` leads to.

    ``examine`` runs an example; ``space`` says which settings are valid.
    """
    cuts: tuple[Cut, ...] = (
        _steps,
        _tensors,
        _settings,
        _gradients,
        _elements,
        _zeros,
        _hyperparameters,
        _bits,
    )
    for _ in range(ROUNDS):
        before = found
        for cut in cuts:
            found = _try_all(found, cut, examine, space)
        if found is before:
            break
    return found


def _try_all(found: Disagreement, cut: Cut, examine: Examine, space: Space) -> Disagreement:
    """Keep taking the first smaller example of one kind that still shows a disagreement."""
    while True:
        smaller = next(
            (d for e in cut(found, space) if (d := examine(e)) is not None and _alike(d, found)), None
        )
        if smaller is None:
            return found
        found = smaller


def _alike(one: Disagreement, other: Disagreement) -> bool:
    """Whether both are differences or both errors, so that a cut doesn't end at another fault."""
    return (one.difference is None) == (other.difference is None)


def _steps(found: Disagreement, space: Space) -> Iterator[Example]:
    """Without the steps after the finding, without its first step, without all but the last."""
    example = found.example
    if found.difference is not None and 0 < found.difference.step < len(example.steps):
        yield replace(example, steps=example.steps[: found.difference.step])
    if len(example.steps) > 1:
        yield replace(example, steps=example.steps[-1:])
        yield replace(example, steps=example.steps[1:])
        yield replace(example, steps=example.steps[:-1])


def _tensors(found: Disagreement, space: Space) -> Iterator[Example]:
    """Only the tensor of the finding; without one of the others. Groups without tensors go too."""
    example = found.example
    count = len(example.tensors)
    here = [
        i for i, t in enumerate(example.tensors) if found.difference and t.name == found.difference.tensor
    ]
    if count > 1:
        for i in here:
            yield _keep(example, [i])
        for i in range(count):
            if i not in here:
                yield _keep(example, [k for k in range(count) if k != i])


def _keep(example: Example, kept: list[int]) -> Example:
    """``example`` with some of its tensors only."""
    used = sorted({example.tensors[i].group for i in kept})
    tensors = [replace(example.tensors[i], group=used.index(example.tensors[i].group)) for i in kept]
    steps = [
        replace(
            step,
            gradients=tuple(step.gradients[i] for i in kept),
            hyperparameters=tuple(step.hyperparameters[g] for g in used),
        )
        for step in example.steps
    ]
    return replace(
        example, groups=tuple(example.groups[g] for g in used), tensors=tuple(tensors), steps=tuple(steps)
    )


def _settings(found: Disagreement, space: Space) -> Iterator[Example]:
    """With everything that isn't a number of the rule at its simplest."""
    example = found.example
    if example.start:
        yield replace(example, start=0)
    if example.nonfinite != "propagate":
        yield replace(example, nonfinite="propagate")
    if example.reuse:
        yield replace(example, reuse=False)
    for name in example.shared:
        yield replace(example, shared={k: v for k, v in example.shared.items() if k != name})
    for i, group in enumerate(example.groups):
        for name in group.multipliers:
            left = {k: v for k, v in group.multipliers.items() if k != name}
            yield replace(example, groups=_with(example.groups, i, replace(group, multipliers=left)))
    for i, tensor in enumerate(example.tensors):
        if tensor.arrays or tensor.scalars:
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, arrays={}, scalars={})))
        for name in tensor.scalars:
            left = {k: v for k, v in tensor.scalars.items() if k != name}
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, scalars=left)))
        for name in tensor.arrays:
            others = {k: v for k, v in tensor.arrays.items() if k != name}
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, arrays=others)))
        if tensor.offset:
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, offset=0)))
        lines = _lines(space.definition)
        for count in sorted(n for n in counts_of_blocks(tensor.shape) if 0 < n < tensor.blocks):
            yield replace(example, tensors=_with(example.tensors, i, _divided(tensor, count, lines)))
    for i, step in enumerate(example.steps):
        if step.offset:
            yield replace(example, steps=_with(example.steps, i, replace(step, offset=0)))


def _gradients(found: Disagreement, space: Space) -> Iterator[Example]:
    """Without one of the gradients."""
    example = found.example
    for i, step in enumerate(example.steps):
        for k, gradient in enumerate(step.gradients):
            if gradient is not None:
                yield _with_step(example, i, replace(step, gradients=_with(step.gradients, k, None)))


def _elements(found: Disagreement, space: Space) -> Iterator[Example]:
    """With fewer elements in a tensor: the one that differs alone, the end from it on, one less."""
    d, example = found.difference, found.example
    for i, tensor in enumerate(example.tensors):
        size = tensor.param.size
        if size < 2:
            continue
        lines = _lines(space.definition)
        if len(tensor.shape) > 1 and space.definition.has_lines:
            yield from _parts(example, i, space.definition)
        if d is not None and d.tensor == tensor.name and d.index is not None and d.buffer not in lines:
            at = int(np.ravel_multi_index(d.index, tensor.shape))
            yield _cut(example, i, slice(at, at + 1), lines)
            if at + 1 < size:
                yield _cut(example, i, slice(0, at + 1), lines)
            if at:
                yield _cut(example, i, slice(at, size), lines)
        for kept in (*(n for n in SIZES if n < size), size - size // 2, size - 1):
            yield _cut(example, i, slice(size - kept, size), lines)
            yield _cut(example, i, slice(0, kept), lines)
        if len(tensor.shape) > 1:
            yield _cut(example, i, slice(0, size), lines)


def _lines(definition: Definition) -> list[str]:
    """The names of the states of lines."""
    return [name for names in definition.line_states.values() for name in names]


def _divided(tensor: Tensor, blocks: int, lines: Collection[str]) -> Tensor:
    """``tensor`` in other blocks, whose states begin as the rule says."""
    if tensor.blocks == blocks:
        return tensor
    arrays = {name: array for name, array in tensor.arrays.items() if name not in lines}
    return replace(tensor, blocks=blocks, arrays=arrays)


def _parts(example: Example, index: int, definition: Definition) -> Iterator[Example]:
    """With a part of an axis of a tensor, its lines staying lines; blocks stay as many, or become one."""
    tensor = example.tensors[index]
    ranks = {state.name: state.rank for state in definition.reference_arrays}
    for axis, length in enumerate(tensor.shape):
        for kept in dict.fromkeys((1, length // 2, length - 1)):
            if not 0 < kept < length:
                continue
            for places in (range(kept), range(length - kept, length)):

                def cut(
                    array: HostArray, axes: Sequence[int], axis: int = axis, places: range = places
                ) -> HostArray:
                    if axis not in axes:
                        return array
                    few: HostArray = np.take(array, places, axes.index(axis))
                    return few

                whole = range(len(tensor.shape))
                arrays = {
                    name: cut(
                        array,
                        whole
                        if (rank := ranks[name]) is None
                        else axes_of(definition.view, rank, len(whole)),
                    )
                    for name, array in tensor.arrays.items()
                }
                steps = [
                    step
                    if (gradient := step.gradients[index]) is None
                    else replace(step, gradients=_with(step.gradients, index, cut(gradient, whole)))
                    for step in example.steps
                ]
                few = cut(tensor.param, whole)
                fewer = replace(tensor, param=few, arrays=arrays)
                if tensor.blocks not in counts_of_blocks(few.shape, few.size):
                    fewer = _divided(fewer, 1, _lines(definition))
                yield replace(example, tensors=_with(example.tensors, index, fewer), steps=tuple(steps))


def _cut(example: Example, index: int, part: slice, lines: Collection[str]) -> Example:
    """``example`` with one tensor cut down to some of its elements, in one dimension. States of ``lines``,
    which are others then, begin as the rule says; blocks that don't divide what is left become one."""

    def cut(array: HostArray) -> HostArray:
        few: HostArray = array.reshape(-1)[part].copy()
        return few

    tensor = example.tensors[index]
    steps = [
        step
        if (gradient := step.gradients[index]) is None
        else replace(step, gradients=_with(step.gradients, index, cut(gradient)))
        for step in example.steps
    ]
    few = cut(tensor.param)
    fewer = replace(
        tensor,
        param=few,
        arrays={name: cut(array) for name, array in tensor.arrays.items() if name not in lines},
        blocks=tensor.blocks if tensor.blocks in counts_of_blocks(few.shape, few.size) else 1,
    )
    tensors = _with(example.tensors, index, fewer)
    return replace(example, tensors=tensors, steps=tuple(steps))


def _zeros(found: Disagreement, space: Space) -> Iterator[Example]:
    """With zeros for all values of an array but the one that differs; then with zeros altogether."""
    d, example = found.difference, found.example
    for i, tensor in enumerate(example.tensors):
        at = d.index if d is not None and d.tensor == tensor.name else None
        for zeroed in _zeroed(tensor.param, at):
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, param=zeroed)))
        for name, array in tensor.arrays.items():
            for zeroed in _zeroed(array, at):
                changed = replace(tensor, arrays={**tensor.arrays, name: zeroed})
                yield replace(example, tensors=_with(example.tensors, i, changed))
        for k, step in enumerate(example.steps):
            gradient = step.gradients[i]
            if gradient is not None:
                for zeroed in _zeroed(gradient, at):
                    yield _with_step(example, k, replace(step, gradients=_with(step.gradients, i, zeroed)))


def _zeroed(array: HostArray, at: tuple[int, ...] | None) -> Iterator[HostArray]:
    zeros = np.zeros_like(array)
    if array.tobytes() == zeros.tobytes():
        return
    yield zeros
    if at is not None and array.size > 1 and has_element(array, at):
        one = zeros.copy()
        one[at] = array[at]
        if one.tobytes() != array.tobytes():
            yield one


def _with(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    """``items`` with one of them replaced."""
    return (*items[:index], item, *items[index + 1 :])


def _with_step(example: Example, index: int, step: Step) -> Example:
    return replace(example, steps=_with(example.steps, index, step))


def _hyperparameters(found: Disagreement, space: Space) -> Iterator[Example]:
    """With hyperparameters that don't change on the way, at their defaults, or simpler."""
    example = found.example
    defaults = {h.name: float(h.default) for h in space.definition.hyperparameters}
    whole = {h.name for h in space.definition.hyperparameters if h.integer}
    for g in range(len(example.groups)):
        first = example.steps[0].hyperparameters[g]
        if any(step.hyperparameters[g] != first for step in example.steps):
            yield from _valid(example, g, [first] * len(example.steps), space)
        for name, default in defaults.items():
            held = {step.hyperparameters[g][name] for step in example.steps}
            if held != {default}:
                yield from _valid(
                    example, g, [{**step.hyperparameters[g], name: default} for step in example.steps], space
                )
            for value in held - {default}:
                for simpler in _simpler(value):
                    if simpler == default or (name in whole and not simpler.is_integer()):
                        continue
                    changed = [
                        {**s.hyperparameters[g], name: simpler}
                        if s.hyperparameters[g][name] == value
                        else s.hyperparameters[g]
                        for s in example.steps
                    ]
                    yield from _valid(example, g, changed, space)


def _valid(example: Example, g: int, values: list[Mapping[str, float]], space: Space) -> Iterator[Example]:
    """``example`` with other hyperparameters of a group, step by step, if the optimizer accepts them."""
    setting = example.groups[g].options
    options = space.resolved(setting, values[0])
    if options != space.resolved(setting, example.steps[0].hyperparameters[g]):
        return
    multipliers = example.groups[g].multipliers
    if all(space.accepts(setting, v, options, multipliers) and space.in_range(v) for v in values):
        steps = tuple(
            replace(step, hyperparameters=_with(step.hyperparameters, g, value))
            for step, value in zip(example.steps, values, strict=True)
        )
        yield replace(example, steps=steps)


def _bits(found: Disagreement, space: Space) -> Iterator[Example]:
    """With a simpler number in one place of a small array."""
    example = found.example
    for i, tensor in enumerate(example.tensors):
        if not 0 < tensor.param.size <= FEW:
            continue
        for changed in _simplified(tensor.param):
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, param=changed)))
        for name, array in tensor.arrays.items():
            for changed in _simplified(array):
                arrays = {**tensor.arrays, name: changed}
                yield replace(example, tensors=_with(example.tensors, i, replace(tensor, arrays=arrays)))
        for k, step in enumerate(example.steps):
            gradient = step.gradients[i]
            if gradient is not None:
                for changed in _simplified(gradient):
                    yield _with_step(example, k, replace(step, gradients=_with(step.gradients, i, changed)))


def _simplified(array: HostArray) -> Iterator[HostArray]:
    """``array`` with one element made simpler."""
    flat = array.reshape(-1)
    for at in range(flat.size):
        value = float(flat[at])
        for simpler in _simpler(value):
            changed = flat.copy()
            with np.errstate(all="ignore"):
                changed[at] = np.float64(simpler).astype(array.dtype)
            if _complexity(float(changed[at])) < _complexity(value):
                yield changed.reshape(array.shape)


def _complexity(value: float) -> tuple[int, int, int]:
    """How much it takes to write a number down: by kind, significant bits, exponent and sign."""
    if value == 0:
        return (0, 0, int(math.copysign(1.0, value) < 0))
    if not math.isfinite(value):
        return (2, int(value != value), int(value < 0))
    mantissa, exponent = math.frexp(abs(value))
    bits = 53 - ((int(mantissa * 2**53) & -int(mantissa * 2**53)).bit_length() - 1)
    return (1, bits * 64 + abs(exponent - 1), int(value < 0))


def _simpler(value: float) -> Iterator[float]:
    """Numbers that are simpler than ``value`` and may show the same, the simplest first."""
    near = [0.0, 1.0, -1.0, 2.0, 3.0]
    if math.isfinite(value) and value != 0:
        near.append(-value)
        mantissa, exponent = math.frexp(value)
        # Fewer significant bits, then an exponent nearer to that of 1.
        for kept in (1, 2, 4, 8, 12, 24, 32):
            near.append(math.ldexp(math.trunc(mantissa * 2.0**kept) / 2.0**kept, exponent))
        for nearer in (1, exponent // 2, exponent - 1 if exponent > 1 else exponent + 1):
            near.append(math.ldexp(mantissa, nearer))
    for number in near:
        if _complexity(number) < _complexity(value):
            yield number
