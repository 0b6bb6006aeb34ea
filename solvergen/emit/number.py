"""Numbers as text that reads back as the same float64, or float32."""

from __future__ import annotations

from solvergen.errors import CompilerBug
from solvergen.ir.narrow import to_float32
from solvergen.ir.nodes import Number

EXACT = 2.0**53


def python_number(number: Number, *, as_float: bool = False) -> str:
    """Shortest text for Python. Whole numbers keep their look unless they must be floats."""
    if number.integral and abs(number.value) < EXACT and not as_float:
        return str(int(number.value))
    return repr(number.value)


def c_number(value: float) -> str:
    """A double literal of C."""
    text = repr(value)
    return text if any(c in text for c in ".e") else f"{text}.0"


def float32_number(value: float) -> str:
    """Shortest text of a float32, for Python and, with an ``f`` behind it, C.

    It reads back as ``value`` whether the reader rounds once to float32 or to float64 in between.
    """
    for digits in range(1, 10):
        text = repr(float(f"{value:.{digits}g}"))
        if to_float32(float(text)) == value:
            return text
    raise CompilerBug(f"{value!r} is no float32")
