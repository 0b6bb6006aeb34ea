"""Numbers as text that reads back as the same float64."""

from __future__ import annotations

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
