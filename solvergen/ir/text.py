"""Expressions and programs as text: the language's own spelling, with the fewest parentheses.

``expression_text`` of a parsed expression reads back as the same expression. What only typed and later
programs have is written as calls that the parser doesn't know: ``round(x)``, ``ipow(x, n)``,
``stored(buffer, x)``.
"""

from __future__ import annotations

import math

from solvergen.ir.functions import GRADIENT
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
from solvergen.ir.program import Assign, Program, Symbol
from solvergen.ir.reductions import ALL, NDIM

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(1, 10)

_BINDING = {
    "or": _OR,
    "and": _AND,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "//": _PRODUCT,
    "%": _PRODUCT,
    "**": _POWER,
}
_SPACED = ("+", "-", "and", "or")


def number_text(number: Number) -> str:
    """A number so that it reads back as the same double; whole ones without a point."""
    value = number.value
    if number.integral and math.isfinite(value) and (value or math.copysign(1, value) > 0):
        return str(int(value))
    return repr(value)


def expression_text(expression: Expression) -> str:
    """``expression`` in the language, grouped exactly as it is."""
    return _text(expression)[0]


def _text(node: Expression) -> tuple[str, int]:
    """The text of ``node`` and how tightly its outermost operator binds."""
    if isinstance(node, Number):
        text = number_text(node)
        return text, _SIGN if text.startswith("-") else _ATOM
    if isinstance(node, Name):
        return node.name, _ATOM
    if isinstance(node, Unary):
        return _unary(node)
    if isinstance(node, Binary) and node.op == "**":
        # The exponent may carry a sign; the base may carry nothing.
        return f"{_at_least(node.left, _ATOM)}**{_at_least(node.right, _SIGN)}", _POWER
    if isinstance(node, (Binary, Logic)):
        binding = _BINDING[node.op]
        op = f" {node.op} " if node.op in _SPACED else node.op
        return f"{_at_least(node.left, binding)}{op}{_at_least(node.right, binding + 1)}", binding
    if isinstance(node, Compare):
        return f"{_at_least(node.left, _SUM)} {node.op} {_at_least(node.right, _SUM)}", _COMPARE
    if isinstance(node, Call):
        return f"{node.function}({', '.join(expression_text(arg) for arg in node.args)})", _ATOM
    if isinstance(node, Reduce):
        args = [expression_text(arg) for arg in node.args]
        over = [ALL] if node.over_all else [node.along] if node.along else []
        return f"{node.kind}({', '.join([*args, *over])})", _ATOM
    if isinstance(node, Extent):
        return f"{NDIM}(param)" if node.of == NDIM else f"{node.of}_size()", _ATOM
    if isinstance(node, GradientAt):
        return f"{GRADIENT}({expression_text(node.at)})", _ATOM
    if isinstance(node, Round):
        return f"round({expression_text(node.operand)})", _ATOM
    assert isinstance(node, Stored)
    return f"stored({node.buffer}, {expression_text(node.operand)})", _ATOM


def _unary(node: Unary) -> tuple[str, int]:
    if node.op == "not":
        return f"not {_at_least(node.operand, _NOT)}", _NOT
    if isinstance(node.operand, Number):
        return f"-({number_text(node.operand)})", _SIGN
    return f"-{_at_least(node.operand, _SIGN)}", _SIGN


def _at_least(node: Expression, binding: int) -> str:
    text, own = _text(node)
    return text if own >= binding else f"({text})"


def program_text(program: Program) -> str:
    """``program`` for people, the same text whenever the program is the same. Ends with a newline."""
    lines = [f"{program.name}, {program.level.value}", ""]
    lines += [f"tensors are read as {program.view}", ""] if program.view else []
    lines.append("symbols")
    width = max((len(s.name) for s in program.symbols), default=0)
    lines += [f"  {_symbol_text(symbol, width)}".rstrip() for symbol in program.symbols]
    lines += ["", "update"]
    texts = [_statement_text(statement) for statement in program.statements]
    width = min(max((len(text) for text in texts), default=0), 80)
    for statement, text in zip(program.statements, texts, strict=True):
        location = statement.location
        place = f"  # {location.file}:{location.line}" if location is not None else ""
        lines.append(f"  {text:<{width}}{place}".rstrip())
    if program.results:
        lines += ["", "results"]
        for result in program.results:
            lines.append(f"  {result.buffer} = {result.name}" + _when(result.guard.text()))
    return "\n".join(lines) + "\n"


def _symbol_text(symbol: Symbol, width: int) -> str:
    type = "" if symbol.type is None else str(symbol.type)
    return f"{symbol.name:<{width}}  {symbol.role.value:<14}  {type:<12}" + _when(symbol.guard.text())


def _statement_text(statement: Assign) -> str:
    return f"{statement.target} = {expression_text(statement.value)}" + _when(statement.guard.text())


def _when(guard: str) -> str:
    return "" if guard == "True" else f"  when {guard}"
