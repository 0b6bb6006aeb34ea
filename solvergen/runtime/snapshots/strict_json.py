"""JSON in and out, with no room for interpretation: what two readers could read differently is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def dump(value: object) -> str:
    """ASCII text of ``value`` on one line. Finite floats keep every bit; others are the caller's business."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def parse(data: bytes) -> object:
    """The value that the UTF-8 text ``data`` stands for.

    Raises:
        ValueError: not UTF-8, not JSON, a key given twice in one object, NaN or Infinity, a number too
            large for its type, or nested too deeply.
    """
    text = data.decode("utf-8")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result


def _integer(digits: str) -> int:
    if len(digits) > 20:  # any 64-bit integer has at most 20 characters
        raise ValueError("an integer is out of range")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > 400:  # repr needs at most 24; nobody writes more than all digits of a double's range
        raise ValueError("a number has too many digits")
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
