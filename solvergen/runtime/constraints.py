"""Constraints on parameters, as users say them, and as data that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.groups import as_number
from solvergen.runtime.naming import did_you_mean, quoted

Axis = int | tuple[int, ...] | None
"""Along which axes of a parameter norms are taken: one, several that are neighbours, or (None) all."""


@dataclass(frozen=True)
class Constraint:
    """What becomes of a parameter after each update of it. Checked when it is made, and never changed."""


@dataclass(frozen=True)
class NonNegative(Constraint):
    """Elements below zero become zero."""


@dataclass(frozen=True)
class MinMax(Constraint):
    """Elements stay between ``low`` and ``high``; None is no limit, but for one of the two."""

    low: float | None
    high: float | None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_number(f"{name} of MinMax", value))
        if self.low is None and self.high is None:
            raise HyperparameterError("MinMax without low and high would do nothing")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise HyperparameterError(f"low of MinMax, {self.low!r}, is above high, {self.high!r}")


@dataclass(frozen=True)
class MaxNorm(Constraint):
    """The norm along ``axis`` is at most ``max_value``: where it is larger, elements are scaled down."""

    max_value: float = 2.0
    axis: Axis = 0

    def __post_init__(self) -> None:
        _number(self, "max_value", 0.0)
        _check_axis(self)


@dataclass(frozen=True)
class UnitNorm(Constraint):
    """The norm along ``axis`` is 1."""

    axis: Axis = 0

    def __post_init__(self) -> None:
        _check_axis(self)


@dataclass(frozen=True)
class MinMaxNorm(Constraint):
    """The norm along ``axis`` is between ``min_value`` and ``max_value``, or on its way there: each step it
    goes the share ``rate`` of what is missing."""

    min_value: float = 0.0
    max_value: float = 1.0
    rate: float = 1.0
    axis: Axis = 0

    def __post_init__(self) -> None:
        _number(self, "min_value", 0.0)
        _number(self, "max_value", 0.0)
        _number(self, "rate", 0.0, 1.0)
        if self.min_value > self.max_value:
            raise HyperparameterError(
                f"min_value of MinMaxNorm, {self.min_value!r}, is above max_value, {self.max_value!r}"
            )
        _check_axis(self)


KINDS: Mapping[str, type[Constraint]] = {
    cls.__name__: cls for cls in (MaxNorm, MinMax, MinMaxNorm, NonNegative, UnitNorm)
}
"""All there are, by their names."""


def as_data(constraint: Constraint) -> dict[str, Any]:
    """``constraint`` as data that JSON can hold: its class and its arguments."""
    result: dict[str, Any] = {"constraint": type(constraint).__name__}
    for field in fields(constraint):
        value = getattr(constraint, field.name)
        result[field.name] = list(value) if isinstance(value, tuple) else value
    return result


def from_data(data: Any, what: str) -> Constraint:
    """What ``as_data`` made. ``what`` says where it comes from. Raises OptimizerError for anything else."""
    if not isinstance(data, Mapping) or "constraint" not in data:
        raise OptimizerError(f"{what} is no constraint: {data!r:.60}")
    kind = data["constraint"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise OptimizerError(f"{what} is an unknown constraint, {quoted(kind)}{did_you_mean(kind, KINDS)}")
    names = [field.name for field in fields(KINDS[kind])]
    if set(data) != {"constraint", *names}:
        due = ", ".join(names) or "no arguments"
        raise OptimizerError(f"{what.rstrip(',')}, a {kind}, must have {due}: {data!r:.80}")
    return KINDS[kind](**{name: data[name] for name in names})


def matrices_along(axis: Axis, shape: Sequence[int], what: str) -> tuple[int, int, int]:
    """A tensor as matrices, (before, along, after) these axes: norms are those of their columns.

    ``what`` names the constraint and the parameter. Raises OptimizerError for axes that it doesn't have, and
    for some with others between.
    """
    chosen = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    found = set()
    for one in chosen:
        if not -len(shape) <= one < len(shape):
            has = "one axis" if len(shape) == 1 else f"{len(shape)} axes"
            raise OptimizerError(f"{what} has axis {one}, but the parameter has {has}: it is {tuple(shape)}")
        found.add(one % len(shape))
    if not found:
        return 1, 1, 1  # a parameter without axes
    first, last = min(found), max(found)
    between = [i for i in range(first, last) if i not in found and shape[i] != 1]
    if between:
        raise OptimizerError(
            f"{what} takes norms along axes {sorted(found)} of {tuple(shape)}, and axis {between[0]} "
            "is between them; only neighbours can be taken: a function as opt.constraint can take any"
        )
    return math.prod(shape[:first]), math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])


def _number(constraint: Constraint, name: str, least: float, most: float = math.inf) -> None:
    """Make an argument a float within its range."""
    given = getattr(constraint, name)
    what = f"{name} of {type(constraint).__name__}"
    number = as_number(what, given)
    if not least <= number <= most:
        limit = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise HyperparameterError(f"{what} must be {limit}, not {given!r}")
    object.__setattr__(constraint, name, number)


def _check_axis(constraint: Any) -> None:
    """Make ``axis`` a whole number, a tuple of them, or None."""
    axis = constraint.axis
    several = isinstance(axis, (list, tuple))
    chosen = list(axis) if several else [axis]
    if axis is None:
        return
    if not chosen or not all(_is_whole(one) for one in chosen):
        raise HyperparameterError(
            f"axis of {type(constraint).__name__} must be a whole number, a list of some, or None for all "
            f"axes, not {axis!r:.60}"
        )
    numbers = tuple(int(one) for one in chosen)
    object.__setattr__(constraint, "axis", numbers if several else numbers[0])


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0
