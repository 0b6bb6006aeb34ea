"""What values the fields of a solver's parameters take, and how they are made into Python's own.

Numbers that Caffe holds as float are rounded to float32 here, whatever they come from, so that parameters
from a file, from YAML and from Python are the same and compute the same.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.hints import meant

Convert = Callable[[Any], Any]
"""Makes a value what the field holds. Raises ValueError that says what the field takes."""


def float32(value: Any) -> float:
    """A number, rounded to float32."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"must be a number, not {quoted(value)}")
    number = _float(value)
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise ValueError(f"{number!r} is beyond the range of float") from None
    return rounded


def integer(bits: int) -> Convert:
    """A whole number of so many bits, with its sign."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ValueError(f"must be a whole number, not {quoted(value)}")
        whole = int(value) if isinstance(value, numbers.Integral) else _whole(_float(value))
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            raise ValueError(f"{whole} is beyond the range of int{bits}")
        return whole

    return convert


def _float(value: numbers.Real) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and value != number:
        raise ValueError(f"can't be {quoted(value)}: it is too large for a float")
    return number


def _float_of(name: Any, value: numbers.Real) -> float:
    try:
        return _float(value)
    except ValueError as error:
        raise ValueError(f"has {quoted(name)}, which {error}") from None


def _whole(value: float) -> int:
    if not math.isfinite(value) or not value.is_integer():
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def boolean(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {quoted(value)}")
    return value


def text(value: Any) -> str:
    """A string; a path will do."""
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {quoted(value)}")
    try:
        value.encode("utf-8", "surrogateescape")  # as a path may have bytes that are no text
    except UnicodeEncodeError as error:
        half = ord(value[error.start])
        raise ValueError(f"can't be {quoted(value)}: U+{half:04X} is half of a character") from None
    return str(value)


def one_of(values: Mapping[str, int]) -> Convert:
    """The name of a value of an enum; its number will do."""

    def convert(value: Any) -> str:
        if isinstance(value, str) and value in values:
            return str(value)
        if isinstance(value, int) and not isinstance(value, bool):
            for name, number in values.items():
                if number == value:
                    return name
        raise ValueError(f"can't be {quoted(value)}; {meant(value, values)}")

    return convert


def each(convert: Convert) -> Convert:
    """A tuple; one value alone is a tuple of one."""

    def all_of(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
            return (convert(value),)
        return tuple(map(convert, value))

    return all_of


def hyperparameters(value: Any) -> Mapping[str, float | bool]:
    """A mapping of names to numbers, True or False."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of names to values, not {quoted(value)}")
    result: dict[str, float | bool] = {}
    for name, entry in value.items():
        if not isinstance(name, str):
            raise ValueError(f"has the key {quoted(name)}, which isn't a name")
        if not isinstance(entry, (bool, numbers.Real)):
            raise ValueError(
                f"has {quoted(name)}, which must be a number, true or false, not {quoted(entry)}"
            )
        result[str(name)] = entry if isinstance(entry, bool) else _float_of(name, entry)
    return MappingProxyType(result)


def settings(value: Any) -> Mapping[str, Any]:
    """A mapping of names to numbers, strings, True, False, or lists of numbers."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of names to values, not {quoted(value)}")
    return MappingProxyType({text(name): _setting(name, entry) for name, entry in value.items()})


def shortest(value: Any) -> str:
    """A value as Python writes it; a float32 with no more digits than it needs, as ``0.1``."""
    if isinstance(value, float):
        return shortest_float(value)
    return repr(dict(value) if isinstance(value, Mapping) else value)


def shortest_float(value: float) -> str:
    """The shortest decimal number that is this one once it is rounded to float32, if it is a float32."""
    if math.isfinite(value):
        for digits in range(1, 10):
            short = float(f"{value:.{digits}g}")
            with contextlib.suppress(ValueError):  # beyond float32, if only because it is rounded up
                if float32(short) == value:
                    return repr(short)
    return repr(value)


def _setting(name: Any, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _float_of(name, value)
    if isinstance(value, (list, tuple)):
        return tuple(_setting(name, entry) for entry in value)
    raise ValueError(f"has {quoted(name)}, which can't be {quoted(value)}")
