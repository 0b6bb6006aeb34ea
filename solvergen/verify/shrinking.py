"""Make a finding smaller where Hypothesis can't.

Hypothesis shrinks what it drew: choices. It doesn't know that rules are elementwise, so that one element
of one tensor nearly always shows the same fault. Here an example is cut down as data: each cut is kept if
the backend still differs from the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from solvergen.verify.disagreement import Disagreement
from solvergen.verify.example import Example, Step

HostArray = np.ndarray[Any, np.dtype[Any]]
Examine = Callable[[Example], Disagreement | None]

ROUNDS = 8
"""At most so often is every cut tried again, since one cut makes room for another."""


def shrunk(found: Disagreement, examine: Examine) -> Disagreement:
    """The smallest disagreement that cutting ``found`` leads to. ``examine`` runs an example."""
    for _ in range(ROUNDS):
        before = found
        for cut in (_steps, _tensors, _settings, _gradients, _elements, _zeros):
            found = _try_all(found, cut, examine)
        if found is before:
            break
    return found


def _try_all(
    found: Disagreement, cut: Callable[[Disagreement], Iterator[Example]], examine: Examine
) -> Disagreement:
    """Keep taking the first smaller example of one kind that still shows a disagreement."""
    while True:
        smaller = next((d for e in cut(found) if (d := examine(e)) is not None and _alike(d, found)), None)
        if smaller is None:
            return found
        found = smaller


def _alike(one: Disagreement, other: Disagreement) -> bool:
    """Whether both are differences or both errors, so that a cut doesn't end at another fault."""
    return (one.difference is None) == (other.difference is None)


def _steps(found: Disagreement) -> Iterator[Example]:
    """Without the steps after the finding, without its first step, without all but the last."""
    example = found.example
    if found.difference is not None and 0 < found.difference.step < len(example.steps):
        yield replace(example, steps=example.steps[: found.difference.step])
    if len(example.steps) > 1:
        yield replace(example, steps=example.steps[-1:])
        yield replace(example, steps=example.steps[1:])
        yield replace(example, steps=example.steps[:-1])


def _tensors(found: Disagreement) -> Iterator[Example]:
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


def _settings(found: Disagreement) -> Iterator[Example]:
    """With everything that isn't a number of the rule at its simplest."""
    example = found.example
    if example.start:
        yield replace(example, start=0)
    if example.nonfinite != "propagate":
        yield replace(example, nonfinite="propagate")
    if example.reuse:
        yield replace(example, reuse=False)
    for i, group in enumerate(example.groups):
        for name in group.multipliers:
            left = {k: v for k, v in group.multipliers.items() if k != name}
            yield replace(example, groups=_with(example.groups, i, replace(group, multipliers=left)))
    for i, tensor in enumerate(example.tensors):
        if tensor.offset:
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, offset=0)))
    for i, step in enumerate(example.steps):
        if step.offset:
            yield replace(example, steps=_with(example.steps, i, replace(step, offset=0)))


def _gradients(found: Disagreement) -> Iterator[Example]:
    """Without one of the gradients."""
    example = found.example
    for i, step in enumerate(example.steps):
        for k, gradient in enumerate(step.gradients):
            if gradient is not None:
                yield _with_step(example, i, replace(step, gradients=_with(step.gradients, k, None)))


def _elements(found: Disagreement) -> Iterator[Example]:
    """With fewer elements in a tensor: the one that differs alone, the end from it on, one less."""
    d, example = found.difference, found.example
    for i, tensor in enumerate(example.tensors):
        size = tensor.param.size
        if size < 2:
            continue
        if d is not None and d.tensor == tensor.name and d.index is not None:
            at = int(np.ravel_multi_index(d.index, tensor.shape))
            yield _cut(example, i, slice(at, at + 1))
            if at + 1 < size:
                yield _cut(example, i, slice(0, at + 1))
            if at:
                yield _cut(example, i, slice(at, size))
        for part in (size // 2, 1):
            yield _cut(example, i, slice(0, size - part))
            yield _cut(example, i, slice(part, size))
        if len(tensor.shape) > 1:
            yield _cut(example, i, slice(0, size))


def _cut(example: Example, index: int, part: slice) -> Example:
    """``example`` with one tensor cut down to some of its elements, in one dimension."""

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
    tensors = _with(example.tensors, index, replace(tensor, param=cut(tensor.param)))
    return replace(example, tensors=tensors, steps=tuple(steps))


def _zeros(found: Disagreement) -> Iterator[Example]:
    """With zeros for all values of an array but the one that differs; then with zeros altogether."""
    d, example = found.difference, found.example
    for i, tensor in enumerate(example.tensors):
        at = d.index if d is not None and d.tensor == tensor.name else None
        for zeroed in _zeroed(tensor.param, at):
            yield replace(example, tensors=_with(example.tensors, i, replace(tensor, param=zeroed)))
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
    if at is not None and array.size > 1:
        one = zeros.copy()
        one[at] = array[at]
        if one.tobytes() != array.tobytes():
            yield one


def _with(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    """``items`` with one of them replaced."""
    return (*items[:index], item, *items[index + 1 :])


def _with_step(example: Example, index: int, step: Step) -> Example:
    return replace(example, steps=_with(example.steps, index, step))
