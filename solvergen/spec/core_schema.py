"""What a plain YAML 1.2 scalar stands for (the core schema), and nothing of YAML 1.1.

So ``1e-8`` is a number, ``1:30`` and ``1_000`` are text, and so are ``on``, ``no`` and ``y``.
"""

from __future__ import annotations

import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_BASED = {"0o": (re.compile(r"0o[0-7]+"), 8), "0x": (re.compile(r"0x[0-9a-fA-F]+"), 16)}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})

_EXACT_DIGITS = 15
"""Longer whole numbers are read as floats: no value of a spec needs more, and ``int`` has a limit."""

Value = str | float | bool | None
"""A scalar's value; whole numbers that float64 holds exactly are ``int``."""


def resolve(text: str) -> Value:
    """The value of the plain scalar ``text``. Numbers too large for float64 become infinite."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _EXACT_DIGITS else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text[:2] in _BASED:
        pattern, base = _BASED[text[:2]]
        if pattern.fullmatch(text):
            return _based(text[2:], base)
    infinity = _INFINITY.fullmatch(text)
    if infinity:
        return float(infinity.group(1) + "inf")
    if text in _NAN:
        return float("nan")
    return text


def vanishes(text: str) -> bool:
    """Is the plain scalar ``text`` a number other than 0 that float64 can only hold as 0?"""
    match = _FLOAT.fullmatch(text)
    return match is not None and float(text) == 0 and any(digit in match.group(1) for digit in "123456789")


def _based(digits: str, base: int) -> float:
    number = int(digits, base)  # linear for these bases, and not limited in digits
    if number < 10**_EXACT_DIGITS:
        return number
    try:
        return float(number)
    except OverflowError:
        return float("inf")
