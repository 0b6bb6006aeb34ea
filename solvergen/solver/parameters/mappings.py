"""What a mapping among the parameters holds, as plain data and as YAML says it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

_WORD = re.compile(r"[^\W\d][\w./-]*")
_NO_STRINGS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
"""Words that one version of YAML or another takes for something else."""


def plain_entry(value: Any) -> Any:
    """An entry as numbers, strings, True, False, lists and, of a constraint, a mapping."""
    if is_dataclass(value):
        from solvergen.runtime.constraints import as_data

        return as_data(value)  # type: ignore[arg-type]
    return list(value) if isinstance(value, tuple) else value


def mapping_lines(name: str, mapping: Mapping[str, Any]) -> list[str]:
    """``name`` and, indented, a line for each entry."""
    if not mapping:
        return []
    entries = (f"  {_said(key)}: {_said(plain_entry(entry))}" for key, entry in mapping.items())
    return [f"{name}:", *entries]


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_said(key)}: {_said(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_said, value))}]"
    if isinstance(value, str):
        plain = _WORD.fullmatch(value) and value.lower() not in _NO_STRINGS
        return value if plain else json.dumps(value)
    if isinstance(value, float):
        return _number(value)
    return "null" if value is None else str(value).lower()  # True, False or a whole number


def _number(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits, e, exponent = repr(value).partition("e")
    # Without a point it is a string to YAML 1.1.
    return f"{digits if '.' in digits else digits + '.0'}{e}{exponent}"
