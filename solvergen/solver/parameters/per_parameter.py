"""What is said of single parameters of the net, by their names: blocks and constraints."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.hints import meant

if TYPE_CHECKING:
    from solvergen.runtime.constraints import Constraint

T = TypeVar("T")


class WrongEntry(ValueError):
    """What is said of one parameter is wrong: that which ``key`` names."""

    def __init__(self, key: Any, message: str) -> None:
        self.key = key
        super().__init__(message)


def blocks(value: Any) -> Mapping[str, int | str]:
    """A mapping of names to whole numbers, or "rows"."""
    return _by_name(value, _count)


def constraints(value: Any) -> Mapping[str, Constraint]:
    """A mapping of names to constraints: one of ``solvergen.constraints``, its name, or a mapping with the
    name under ``constraint`` and its arguments."""
    return _by_name(value, _constraint)


def _by_name(value: Any, convert: Callable[[Any], T]) -> Mapping[str, T]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of parameters' names to values, not {quoted(value)}")
    result: dict[str, T] = {}
    for name, entry in value.items():
        if not isinstance(name, str):
            raise WrongEntry(name, f"has the key {quoted(name)}, which isn't a name")
        try:
            result[str(name)] = convert(entry)
        except ValueError as error:
            raise WrongEntry(name, f"has {quoted(name)}: {error}") from error
    return MappingProxyType(result)


def _count(value: Any) -> int | str:
    from solvergen.runtime.blocks import ROWS

    if isinstance(value, str) and value == ROWS:
        return ROWS
    try:
        count = 0 if isinstance(value, (bool, str)) else operator.index(value)
    except TypeError:
        count = 0
    if not 1 <= count < 2**31:
        raise ValueError(
            f'a number of blocks is a whole number of at least 1, or "{ROWS}", not {quoted(value)}'
        )
    return int(count)


def _constraint(value: Any) -> Constraint:
    from solvergen.runtime.constraints import KINDS

    if type(value) in KINDS.values():
        made: Constraint = value
        return made
    given: Mapping[Any, Any] = value if isinstance(value, Mapping) else {"constraint": value}
    kind = given.get("constraint")
    if not isinstance(kind, str) or kind not in KINDS:
        what = f"no constraint {quoted(kind)}" if isinstance(kind, str) else "it names no constraint"
        raise ValueError(f"{what}; {meant(kind, KINDS)}")
    known = {field.name: field for field in fields(KINDS[kind])}
    for name in given:
        if name != "constraint" and name not in known:
            near = meant(name, known) if known else "it takes none"
            raise ValueError(f"{kind} has no {quoted(name)}; {near}")
    # What has no default is a limit, and None is no limit.
    unsaid = {name: None for name, field in known.items() if field.default is MISSING}
    return KINDS[kind](**{**unsaid, **{str(n): v for n, v in given.items() if n != "constraint"}})
