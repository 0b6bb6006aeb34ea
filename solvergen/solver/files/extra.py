"""Whether a native state's ``extra`` has what the Solver puts there: checksums don't say who wrote a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.naming import quoted
from solvergen.runtime.snapshots.fields import LARGEST_WHOLE_NUMBER


def check(extra: Mapping[str, Any]) -> None:
    """Raise SolverFileError for an entry that a reader would stumble over. Unknown ones pass."""
    for key, value in extra.items():
        if key in _SOUND and not _SOUND[key](value):
            raise SolverFileError(
                f"extra: {quoted(key)} isn't what the Solver writes there: damaged or foreign"
            )
    groups = [name for group in extra.get("groups", ()) for name in group["members"]]
    parameters = sorted(extra.get("parameters", ()))
    if "groups" in extra and sorted(groups) != parameters:
        raise SolverFileError("extra: its groups have other members than its parameters: damaged or foreign")
    if "counts" in extra and sorted(extra["counts"]) != parameters:
        raise SolverFileError("extra: it counts other parameters than it has: damaged or foreign")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_WHOLE_NUMBER


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _all(sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Of a mapping: whether that holds of each of its values."""
    return lambda value: isinstance(value, Mapping) and all(map(sound, value.values()))


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {"members", "hyperparameters", "options", "multipliers"} <= value.keys()
        and _is_names(value["members"])
        and _all(_is_number)(value["hyperparameters"])
        and _all(lambda one: isinstance(one, bool))(value["options"])
        and _all(_is_number)(value["multipliers"])
    )


def _is_policy(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("state"), Mapping)
    )


def _is_window(value: Any) -> bool:
    """Of the smoothed loss: numbers are the text of their bits."""
    if value is None:
        return True
    if not (isinstance(value, Mapping) and {"start", "value", "losses"} <= value.keys()):
        return False
    try:
        numbers = [float.fromhex(text) for text in (value["value"], *value["losses"])]
    except (TypeError, ValueError, OverflowError):
        return False
    return type(value["start"]) is int and bool(numbers)


_SOUND: dict[str, Callable[[Any], bool]] = {
    "solver_type": lambda value: isinstance(value, str),
    "digest": lambda value: isinstance(value, str),
    "states": _is_names,
    "parameters": _is_names,
    "counts": _all(_is_count),
    "scalars": _all(_all(_is_number)),
    "lines": _all(_all(lambda one: isinstance(one, np.ndarray))),
    "shared": _all(_is_number),
    "groups": lambda value: isinstance(value, list | tuple) and all(map(_is_group, value)),
    "blocks": _all(lambda value: type(value) is int and 0 < value < 2**31),
    "policy": _is_policy,
    "smoothed_loss": _is_window,
    "data": lambda value: isinstance(value, list | tuple),
    "random": lambda value: isinstance(value, list | tuple),
}
