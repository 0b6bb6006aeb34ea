"""The functions of the language: one literal table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function that an equation may call.

    ``parameters``: one letter an argument, ``r`` a number, ``b`` a condition.
    ``doc`` is what the language reference prints.
    """

    name: str
    parameters: str
    doc: str

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return len(self.parameters)


FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        Function("sqrt", "r", "square root, correctly rounded; NaN below zero"),
        Function("abs", "r", "the sign bit cleared"),
        Function("sign", "r", "1 above zero, -1 below zero, the argument itself at +-0 and NaN"),
        Function("min", "rr", "the first if it is smaller or NaN, else the second"),
        Function("max", "rr", "the first if it is larger or NaN, else the second"),
        Function("exp", "r", "exponential"),
        Function("log", "r", "natural logarithm"),
        Function("tanh", "r", "hyperbolic tangent"),
        Function("cbrt", "r", "cube root, negative below zero"),
        Function("floor", "r", "largest whole number not above the argument"),
        Function("where", "brr", "the second where the condition holds, else the third"),
        Function("clip", "rrr", "min(max(x, low), high)"),
    )
}

GRADIENT = "gradient"
"""The statement that evaluates the gradient at the parameters as they are."""

INTERNAL_FUNCTIONS = ("ipow", "pow")
"""What ``**`` becomes: ``ipow`` is binary powering by a whole number, ``pow`` the general power."""
