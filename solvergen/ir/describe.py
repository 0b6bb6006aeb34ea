"""Names for subexpressions that say what they are: ``1 - beta1`` is ``one_minus_beta1``."""

from __future__ import annotations

from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    GradientAt,
    Logic,
    Name,
    Number,
    Reduce,
    Round,
    Stored,
    Unary,
)

MAX_LENGTH = 40

_BINARY = {"+": "plus", "-": "minus", "*": "times", "/": "over", "//": "div", "%": "mod"}
_COMPARE = {
    "<": "below",
    "<=": "at_most",
    ">": "above",
    ">=": "at_least",
    "==": "equals",
    "!=": "differs_from",
}
_NUMBERS = {0.0: "zero", 1.0: "one", 2.0: "two", 3.0: "three", 0.5: "half"}


def describe(expression: Expression, otherwise: str = "shared") -> str:
    """An identifier that describes ``expression``, or ``otherwise`` where it would be too long."""
    name = _words(expression)
    if name is None or len(name) > MAX_LENGTH:
        return otherwise
    return f"n{name}" if name[0].isdigit() else name


def _words(e: Expression) -> str | None:
    match e:
        case Name():
            return e.name
        case Number():
            return _number(e) or "constant"
        case Round() | Stored():
            return _words(e.operand)
        case Unary():
            return _join("minus" if e.op == "-" else "not", _words(e.operand))
        case Call(function="ipow" | "pow"):
            base, exponent = e.args
            if isinstance(exponent, Number) and exponent.value == 2.0:
                return _join(_words(base), "squared")
            return _join(_words(base), "pow", _words(exponent))
        case Call(function="where"):
            return _join(_words(e.args[1]), "or", _words(e.args[2]))
        case Call():
            return _join(e.function, *(_words(a) for a in e.args))
        case Extent():
            return e.of
        case GradientAt():
            return "gradient"
        case Reduce():
            over = ["all"] if e.over_all else [e.along] if e.along else []
            return _join(e.kind, *(_words(a) for a in e.args), *over)
        case Binary():
            return _join(_words(e.left), _BINARY.get(e.op, e.op), _words(e.right))
        case Compare():
            return _join(_words(e.left), _COMPARE[e.op], _words(e.right))
        case Logic():
            return _join(_words(e.left), e.op, _words(e.right))
        case _:
            return None


def _number(number: Number) -> str | None:
    if number.value in _NUMBERS:
        return _NUMBERS[number.value]
    if number.integral and 0 <= number.value < 1e6:
        return str(int(number.value))
    return None


def _join(*words: str | None) -> str | None:
    if any(word is None for word in words):
        return None
    return "_".join(word for word in words if word is not None)
