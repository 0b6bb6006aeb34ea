"""Blocks: the equal stretches that the user divides tensors into, for rules that keep a number for each.

A block is a stretch of one axis with all that lies behind it, for each index of the axes before: heads of a
projection, rows of a table, or the whole tensor. So blocks are contiguous, and all of one size.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from solvergen.errors import OptimizerError
from solvergen.runtime.definition import Definition
from solvergen.runtime.naming import as_name, did_you_mean, listed
from solvergen.runtime.parameters import ParameterGroup, Parameters

BLOCKS = "blocks"
"""The key of a group and the argument of a constructor; also the view of the rules that have it."""

ROWS = "rows"
"""Given for a count: as many blocks as the first axis is long."""

Given = int | str
"""What is said of a tensor: a count, or ROWS."""


def read_blocks(definition: Definition, read: Parameters, given: Any) -> tuple[Parameters, dict[str, Given]]:
    """What was handed in without the groups' own ``blocks``, and what is said of each tensor that anything
    is said of. ``given`` is the constructor's; what a group says goes before it.

    Raises OptimizerError for a rule without blocks, for unknown names, and for what is no count.
    """
    if given is None and not any(BLOCKS in group.settings for group in read.groups):
        return read, {}
    if definition.view != BLOCKS:
        raise OptimizerError(f"{definition.class_name} doesn't use blocks: leave the argument out")
    said = _said(given, read.names, read.layout.by_position, BLOCKS)
    groups = []
    for i, group in enumerate(read.groups):
        settings = dict(group.settings)
        what = f"params[{i}][{BLOCKS!r}]"
        said |= _said(settings.pop(BLOCKS, None), group.names, read.layout.by_position, what)
        groups.append(ParameterGroup(group.names, settings))
    return Parameters(read.names, read.arrays, tuple(groups), read.layout), said


def block_counts(
    names: Sequence[str], shapes: Sequence[Sequence[int]], given: Mapping[str, Given]
) -> list[int]:
    """Into how many blocks each tensor falls; 1 where nothing is said. Raises OptimizerError where a count
    doesn't divide the tensor."""
    return [_count(name, tuple(shape), given.get(name, 1)) for name, shape in zip(names, shapes, strict=True)]


def fits(shape: Sequence[int], count: int) -> bool:
    """Whether a tensor of this shape falls into ``count`` equal blocks."""
    for length in shape:
        if length % count == 0:
            return True
        if count % length:
            return False
        count //= length
    return count == 1


def _count(name: str, shape: tuple[int, ...], given: Given) -> int:
    if isinstance(given, str):
        return shape[0] if shape else 1
    if not fits(shape, given):
        raise OptimizerError(
            f"parameter {name!r} of shape {shape} can't be divided into {given} equal blocks: their number "
            "must divide the first axis, or be its length times a number that divides the second, and so on"
        )
    return given


def _said(given: Any, names: Sequence[str], by_position: bool, what: str) -> dict[str, Given]:
    """``given`` by name: a mapping is, anything else is said of all."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, _checked(given, what))
    said: dict[str, Given] = {}
    for key, value in given.items():
        name = as_name(key, by_position)
        if not isinstance(name, str) or name not in names:
            hint = did_you_mean(name, names) if isinstance(name, str) else f"; there are {listed(names)}"
            raise OptimizerError(f"{what} has {key!r:.60}, which is not the name of a parameter there{hint}")
        said[name] = _checked(value, f"{what}[{key!r}]")
    return said


def _checked(value: Any, what: str) -> Given:
    if isinstance(value, str) and value == ROWS:
        return ROWS
    try:
        count = None if isinstance(value, (bool, str)) else operator.index(value)
    except TypeError:
        count = None
    if count is None or not 1 <= count < 2**31:
        raise OptimizerError(
            f"{what} must be a whole number from 1 to {2**31 - 1}, or {ROWS!r} (one for each index of the "
            f"first axis), not {value!r:.60}"
        )
    return count
