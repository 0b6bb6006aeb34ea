"""Numbers as PTX writes them (PTX ISA, "Constants")."""

from __future__ import annotations

import re
import struct

from solvergen.runtime.ptx.module import Float, Integer

_INTEGER = re.compile(
    r"(?P<sign>-?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|(?P<oct>0[0-7]+)|(?P<dec>0|[1-9]\d*))U?"
)
_BITS = re.compile(r"(?P<sign>-?)0(?:[fF](?P<single>[0-9a-fA-F]{8})|[dD](?P<double>[0-9a-fA-F]{16}))")
_DECIMAL = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}


def number(text: str) -> Integer | Float | None:
    """The constant that ``text`` is; None if it is none, or an integer that 64 bits can't hold."""
    match = _INTEGER.fullmatch(text)
    if match:
        digits = match.lastgroup or ""
        if len(match[digits]) > 64:
            return None
        value = int(match[digits], _BASES[digits])
        if match["sign"]:
            value = -value
        return Integer(value) if -(2**63) <= value < 2**64 else None
    match = _BITS.fullmatch(text)
    if match:
        digits = match.lastgroup or ""
        width = 32 if digits == "single" else 64
        bits = int(match[digits], 16)
        return Float(bits ^ (1 << (width - 1)) if match["sign"] else bits, width)
    if _DECIMAL.fullmatch(text):
        return Float(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    return None
