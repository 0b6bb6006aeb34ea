"""The fields of a document: what each kind of value must be in JSON. Nothing is trusted.

``where`` names a field in messages. All raise SnapshotError for what solvergen doesn't write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from solvergen.errors import SnapshotError
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import listed, quoted

T = TypeVar("T")

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,255}")
"""What states are called."""

LARGEST_WHOLE_NUMBER = 2**63 - 1
"""That a document holds: no tensor's count of updates is larger."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def numbers_out(values: Mapping[str, float]) -> dict[str, float | str]:
    """As the document has them: the infinities and NaN, which JSON lacks, as text; others to the bit."""
    result: dict[str, float | str] = {}
    for name, value in values.items():
        number = float(value)
        if math.isfinite(number):
            result[name] = number
        else:
            result[name] = "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
    return result


def number(value: object, where: str) -> float:
    """A number, as ``numbers_out`` writes them."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
        return float(value)  # other programs may write 1 for 1.0
    raise malformed(where, value)


def switch(value: object, where: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise malformed(where, value)
    return value


def whole(value: object, where: str) -> int:
    """A count or a size: a whole number of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_WHOLE_NUMBER:
        raise malformed(where, value)
    return value


def text(value: object, where: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise malformed(where, value)
    return value


def dtype(value: object, where: str) -> str:
    """A type that arrays are stored in."""
    if not isinstance(value, str) or value not in STORAGE_TYPES:
        raise malformed(where, value)
    return value


def sha256(value: object, where: str) -> str:
    """A checksum, in hexadecimal digits."""
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise malformed(where, value)
    return value


def sequence(value: object, where: str) -> list[Any]:
    """A list, of anything."""
    if not isinstance(value, list):
        raise malformed(where, value)
    return value


def mapping(value: object, where: str, item: Callable[[object, str], T]) -> dict[str, T]:
    """A mapping, each entry read by ``item``."""
    if not isinstance(value, dict):
        raise malformed(where, value)
    return {name: item(entry, where) for name, entry in value.items()}


def record(value: object, where: str, keys: set[str]) -> dict[str, Any]:
    """A mapping with these keys and no others."""
    if not isinstance(value, dict):
        raise malformed(where, value)
    if set(value) != keys:
        raise SnapshotError(
            f"the document is not what solvergen writes: {where} has {listed(sorted(value))}, "
            f"not {listed(sorted(keys))}"
        )
    return value


def malformed(where: str, value: object) -> SnapshotError:
    """The error for a ``value`` that the document can't have ``where`` it is."""
    shown = f"of the type {type(value).__name__}" if isinstance(value, list | dict) else quoted(value)
    return SnapshotError(f"the document is not what solvergen writes: {where} is {shown}")
