"""Hypothesis strategies for whole examples: shapes, dtypes, values, settings and several steps.

Everything drawn is valid: what an optimizer doesn't accept isn't drawn and then thrown away, it isn't
drawn. Each strategy shrinks towards one tensor of one element, float32, zeros, defaults, one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.limits import Limits
from solvergen.verify.settings import Space, hyperparameters_near
from solvergen.verify.values import arrays

Array = np.ndarray[Any, np.dtype[Any]]

VECTOR_WIDTHS = (4, 8, 16, 32, 64)
"""Elements that processors and GPUs handle at once, in one type or another."""

CHUNKS = (1024, 2048, 4096, 16384, 32768)
"""Sizes at which backends are likely to divide their work."""

MULTIPLIERS = (1.0, 0.0, 0.5, 2.0, 0.1, 10.0)
STARTS = (0, 1, 9, 2**24 - 1, 2**24, 2**31 - 1, 2**53 - 8)
"""Counts of updates before the first step, with those at which a float32 or an int32 would lose count."""


def sizes(most: int) -> st.SearchStrategy[int]:
    """Numbers of elements: few, about the vector widths, any below 200, and about the chunk sizes."""
    near_widths = tuple(w + d for w in VECTOR_WIDTHS for d in (0, -1, 1) if w + d <= most)
    near_chunks = tuple(c + d for c in CHUNKS for d in (0, -1, 1) if c + d <= most)
    few = st.sampled_from(tuple(n for n in (1, 0, 2, 3, 5) if n <= most))
    some = st.integers(0, min(200, most))
    # Large ones are one draw in twenty: they cost time, and what they show, one of them shows.
    kinds = [few] * 7 + [st.sampled_from(near_widths or (1,))] * 8 + [some] * 4
    if near_chunks:
        kinds.append(st.sampled_from(near_chunks))
    return st.integers(0, len(kinds) - 1).flatmap(lambda kind: kinds[kind])


@st.composite
def shapes(draw: st.DrawFn, most: int) -> tuple[int, ...]:
    """Shapes of at most ``most`` elements: without dimensions, empty, and up to three dimensions."""
    size = draw(sizes(most))
    if size == 0:
        return draw(st.sampled_from(((0,), (0, 3), (2, 0, 2))))
    divisor = next((d for d in (2, 3, 5) if size % d == 0), None)
    forms: list[tuple[int, ...]] = [(size,)]
    if size == 1:
        forms.append(())
    if divisor is not None:
        forms += [(divisor, size // divisor), (size // divisor, divisor)]
    forms.append((1, size, 1))
    return draw(st.sampled_from(forms))


@st.composite
def _groups(draw: st.DrawFn, space: Space) -> tuple[tuple[Group, ...], list[dict[str, float]]]:
    """The groups, and the hyperparameters that each begins with."""
    factors = {
        factor: st.sampled_from(MULTIPLIERS)
        for factor, name in (("lr_mult", "lr"), ("decay_mult", "weight_decay"))
        if name in space.definition.hyperparameter_names
    }
    groups: list[Group] = []
    hyperparameters: list[dict[str, float]] = []
    setting, base = draw(st.sampled_from(space.bases))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        if groups and draw(st.integers(0, 2)) == 2:
            # Options of its own for this group: one more launch in every step.
            setting, base = draw(st.sampled_from(space.bases))
        groups.append(Group(setting, draw(st.fixed_dictionaries({}, optional=factors))))
        hyperparameters.append(draw(hyperparameters_near(space, setting, base)))
    return tuple(groups), hyperparameters


@st.composite
def _tensors(
    draw: st.DrawFn, limits: Limits, groups: int, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """The parameters, and the storage type of each one's gradient."""
    count = draw(st.integers(groups, max(groups, limits.tensors)))
    # Mostly one mix of types for all: each further one is a kernel more to compile.
    mixes = [draw(st.sampled_from(pairs))]
    if draw(st.integers(0, 4)) == 4:
        mixes.append(draw(st.sampled_from(pairs)))
    left, tensors, types = limits.elements, [], []
    for index in range(count):
        param, grad = mixes[draw(st.integers(0, len(mixes) - 1))] if len(mixes) > 1 else mixes[0]
        shape = draw(shapes(left))
        left -= int(np.prod(shape, dtype=np.int64))
        # The first tensors fill the groups, so that none is empty.
        group = index if index < groups else draw(st.integers(0, groups - 1))
        offset = draw(st.sampled_from((0, 0, 1, 2, 3, 5, 8)))
        tensors.append(Tensor(f"w{index}", draw(arrays(param, shape)), offset, group))
        types.append(grad)
    return tuple(tensors), tuple(types)


@st.composite
def examples(
    draw: st.DrawFn,
    space: Space,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    pairs: Sequence[tuple[str, str]] = PAIRS,
) -> Example:
    """Whole runs of the optimizer that ``space`` belongs to."""
    groups, current = draw(_groups(space))
    tensors, types = draw(_tensors(limits, len(groups), pairs))
    options = [
        space.resolved(group.options, hyperparameters)
        for group, hyperparameters in zip(groups, current, strict=True)
    ]
    steps = []
    lengths = [n for n in (1, 2, 2, 3, 3, 4, *range(5, limits.steps + 1)) if n <= limits.steps]
    for number in range(draw(st.sampled_from(lengths))):
        if number and draw(st.integers(0, 2)) == 2:
            current = [
                draw(hyperparameters_near(space, group.options, now, fixed))
                for group, now, fixed in zip(groups, current, options, strict=True)
            ]
        gradients: list[Array | None] = []
        for tensor, dtype in zip(tensors, types, strict=True):
            if draw(st.integers(0, 5)) == 5:
                gradients.append(None)
                continue
            if draw(st.integers(0, 19)) == 19 and tensor.param.dtype != np.float64:
                dtype = draw(st.sampled_from(("float32", "bfloat16", "float16")))
            gradients.append(draw(arrays(dtype, tensor.shape)))
        steps.append(Step(tuple(gradients), draw(st.sampled_from((0, 0, 1, 3))), tuple(current)))
    return Example(
        groups=groups,
        tensors=tensors,
        steps=tuple(steps),
        start=draw(st.sampled_from((0, 0, 0, 0, *STARTS[1:]))),
        nonfinite=draw(st.sampled_from(("propagate",) * 6 + ("skip", "raise"))),
        reuse=draw(st.booleans()),
    )
