"""What JSON lacks, said in JSON: ``extra`` of a state in the native form.

Tuples, bytes, NumPy arrays and numbers, floats that aren't finite and integers of any size become an object
with one key that begins with ``$``; everything comes back with the same type and bits.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import quoted, with_article

_SAFE = 2**53
_KINDS = "biuf"
_MOST_DEPTH = 100


def encode(value: Any, where: str = "extra", depth: int = 0) -> Any:
    """``value`` in JSON's types. Raises ``SolverFileError`` for what there are no words for."""
    if depth > _MOST_DEPTH:
        raise SolverFileError(f"{where}: nested too deeply")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _SAFE else {"$int": str(value)}
    if isinstance(value, np.ndarray):
        return _array(value, where)
    if isinstance(value, np.generic):
        return {"$scalar": _array(np.asarray(value), where)["$array"]}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": _float_text(value)}
    if isinstance(value, bytes | bytearray):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]}
    if isinstance(value, list):
        return [encode(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        if other := [key for key in value if not isinstance(key, str)]:
            raise SolverFileError(f"{where}: a key {other[0]!r} that isn't text")
        pairs = {key: encode(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
        return {"$dict": pairs} if len(pairs) == 1 and next(iter(pairs)).startswith("$") else pairs
    raise SolverFileError(
        f"{where}: {with_article(type(value).__name__)} can't be kept; numbers, text, lists, dicts "
        "and arrays can"
    )


def decode(value: Any) -> Any:
    """The inverse of ``encode``. Raises ``SolverFileError``."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not next(iter(value)).startswith("$"):
        return {key: decode(item) for key, item in value.items()}
    kind, content = next(iter(value.items()))
    try:
        if kind == "$int":
            return int(_short(content))
        if kind == "$float":
            return float.fromhex(content) if content in ("inf", "-inf") else _nan(content)
        if kind == "$bytes":
            return base64.b64decode(content, validate=True)
        if kind == "$tuple":
            return tuple(decode(item) for item in content)
        if kind == "$dict":
            return {key: decode(item) for key, item in content.items()}
        if kind == "$array":
            return _array_of(content)
        if kind == "$scalar":
            return _array_of(content)[()]
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error) as error:
        raise SolverFileError(f"extra: {quoted(kind)} is malformed: {error}") from error
    raise SolverFileError(f"extra: {quoted(kind)} isn't known here: written by a newer solvergen?")


def _array(value: HostArray, where: str) -> dict[str, Any]:
    if value.dtype.kind not in _KINDS or hasattr(value, "mask"):
        masked = "a masked array" if hasattr(value, "mask") else f"an array of {value.dtype}"
        raise SolverFileError(f"{where}: {masked} can't be kept")
    stored = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    data = base64.b64encode(stored.tobytes()).decode("ascii")
    return {"$array": {"dtype": stored.dtype.str, "shape": list(value.shape), "data": data}}


def _array_of(content: Any) -> HostArray:
    dtype = np.dtype(_short(content["dtype"]))
    if dtype.kind not in _KINDS:
        raise ValueError(f"an array of {dtype}")
    shape = tuple(content["shape"])
    array = np.frombuffer(base64.b64decode(content["data"], validate=True), dtype).reshape(shape)
    if array.shape != shape:  # a size of -1
        raise ValueError(f"the shape {shape}")
    return array.astype(dtype.newbyteorder("="))


def _float_text(value: float) -> str:
    """``inf``, ``-inf``, or a NaN's bits."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return np.array(value, "<f8").tobytes().hex()


def _nan(content: str) -> float:
    value = np.frombuffer(bytes.fromhex(content), "<f8")
    return float(value.reshape(()))


def _short(content: Any) -> str:
    if not isinstance(content, str) or len(content) > 4000:
        raise ValueError("no short text")
    return content
