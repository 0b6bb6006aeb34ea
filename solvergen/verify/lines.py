"""Shapes of tensors seen as matrices, and of states that belong to their lines.

They are said again here, apart from the runtime's tables, which are what is verified.
"""

from __future__ import annotations

import math

from solvergen.runtime.definition import Rank, View

_ALONG: dict[Rank, tuple[bool, bool]] = {
    "rows": (True, False),
    "columns": (False, True),
    "matrices": (False, False),
}


def counts_of_blocks(shape: tuple[int, ...], most: int = 64) -> tuple[int, ...]:
    """Into how many blocks a tensor may fall: its leading axes, and of the next one what divides it, ``most``
    at most. One is always among them, and the first axis."""
    counts, before = {1: None}, 1
    for length in shape:
        counts |= {
            before * n: None for n in (*range(1, min(length, most) + 1), length) if n and length % n == 0
        }
        before *= length
        if not before:
            break
    return (*counts, *((0,) if shape and shape[0] == 0 else ()))


def matrices_of(view: View, shape: tuple[int, ...], blocks: int = 1) -> tuple[int, int, int]:
    """Matrices, their rows, their columns."""
    if view == "blocks":
        return 1, blocks, math.prod(shape) // blocks if blocks else 0
    if not shape:
        return 1, 1, 1
    if view == "leading":
        return 1, shape[0], math.prod(shape[1:])
    if view == "trailing":
        return 1, math.prod(shape[:-1]), shape[-1]
    *batch, rows, columns = shape if len(shape) > 1 else (*shape, 1)
    return math.prod(batch), rows, columns


def lines_of(rank: Rank, elements: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape in which a rule sees what belongs to lines of such matrices."""
    matrices, rows, columns = elements
    has_rows, has_columns = _ALONG[rank]
    return matrices, rows if has_rows else 1, columns if has_columns else 1


def axes_of(view: View, rank: Rank, ndim: int) -> tuple[int, ...]:
    """The axes of a tensor that a state of its lines has, of tensors of two axes or more; of blocks, none."""
    if view == "blocks":
        return ()
    axes = tuple(range(ndim))
    rows, columns = {
        "matrices": (axes[-2:-1], axes[-1:]),
        "leading": (axes[:1], axes[1:]),
        "trailing": (axes[:-1], axes[-1:]),
    }[view or "matrices"]
    batch = tuple(axis for axis in axes if axis not in (*rows, *columns))
    has_rows, has_columns = _ALONG[rank]
    return (*batch, *(rows if has_rows else ()), *(columns if has_columns else ()))


def state_shape(view: View, rank: Rank, shape: tuple[int, ...], blocks: int = 1) -> tuple[int, ...]:
    """The shape that users see of a state of lines."""
    if view == "blocks":
        return (blocks,)
    if len(shape) > 1:
        return tuple(shape[axis] for axis in axes_of(view, rank, len(shape)))
    if rank == "matrices":
        return ()
    return shape if (rank == "columns") == (view == "trailing") else (1,) * len(shape)
