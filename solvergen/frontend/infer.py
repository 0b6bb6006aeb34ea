"""Types of expressions: conditions and numbers, scalars and elements; and where a scalar is rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from solvergen.frontend.findings import Findings
from solvergen.ir.evaluate import MAX_WHOLE, constant
from solvergen.ir.functions import FUNCTIONS
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
    Unary,
)
from solvergen.ir.reductions import RANKS
from solvergen.ir.types import ELEMENT_REAL, SCALAR_INT, SCALAR_REAL, Kind, Rank, Type, highest

if TYPE_CHECKING:
    from solvergen.spec.model import Text

MAX_UNROLLED = 64
"""Largest exponent of an element that becomes products; beyond, the general power computes it."""
MAX_EXPONENT = 2.0**31
"""Whole exponents written in a spec stay below this."""

_KEEP_INT = ("abs", "sign", "floor", "min", "max", "clip", "where")


def rounded(expression: Expression) -> Expression:
    """``expression`` as an element: a numeric scalar is rounded once, an element stays."""
    if expression.type is None or expression.type.is_element or expression.type.is_bool:
        return expression
    return Round(expression, type=ELEMENT_REAL, location=expression.location)


class Typer:
    """Types one equation. ``types`` gives each name's type; None (or no entry) where it isn't known.

    What is wrong goes to ``findings``. A node with an operand of unknown type has unknown type itself, so
    that one mistake is reported once.
    """

    def __init__(
        self,
        text: Text,
        types: Mapping[str, Type | None],
        findings: Findings,
        unknown: Callable[[Name, Text], None],
    ) -> None:
        self.text = text
        self.types = types
        self.findings = findings
        self.unknown = unknown

    def visit(self, node: Expression) -> Expression:
        """``node`` with types, roundings and powers in place; ``type`` None if something is wrong."""
        if isinstance(node, Number):
            return replace(node, type=SCALAR_INT if node.integral else SCALAR_REAL)
        if isinstance(node, Name):
            if node.name not in self.types:
                self.unknown(node, self.text)
                return node
            return replace(node, type=self.types[node.name])
        if isinstance(node, Extent):
            return replace(node, type=SCALAR_INT)
        operands = tuple(self.visit(operand) for operand in node.operands)
        typed = node.with_operands(operands)
        if isinstance(node, Logic) or (isinstance(node, Unary) and node.op == "not"):
            return self._logic(typed, operands, node.op)
        if isinstance(node, Compare):
            return self._compare(typed, operands)
        if isinstance(node, Call):
            return self._call(node, operands)
        if isinstance(node, Reduce):
            return self._reduce(node, operands)
        if isinstance(node, GradientAt):
            return replace(typed, type=ELEMENT_REAL)
        assert isinstance(node, (Unary, Binary))
        sound = [self.number(operand, f"`{node.op}`") for operand in operands]
        if not all(sound):
            return typed
        if isinstance(node, Unary):
            return replace(typed, type=operands[0].type)
        if node.op == "**":
            return self._power(node, operands[0], operands[1])
        if _rank(operands) is Rank.ELEMENT:
            return replace(typed.with_operands(tuple(rounded(o) for o in operands)), type=ELEMENT_REAL)
        whole = node.op != "/" and all(_is_whole(o) for o in operands)
        return replace(typed, type=Type(Kind.INT if whole else Kind.REAL, _rank(operands)))

    def number(self, operand: Expression, user: str) -> bool:
        """Whether ``operand`` is a number, as ``user`` needs; a condition is reported."""
        if operand.type is None:
            return False
        if operand.type.is_bool:
            self._report(
                "SG080",
                f"{user} needs a number, but this is a condition",
                operand,
                "where(condition, 1, 0) makes a number of it",
            )
            return False
        return True

    def condition(self, operand: Expression, user: str) -> bool:
        """Whether ``operand`` is a condition, as ``user`` needs; a number is reported."""
        if operand.type is None:
            return False
        if not operand.type.is_bool:
            self._report(
                "SG081", f"{user} needs a condition, but this is a number", operand, "compare it: x != 0, say"
            )
            return False
        return True

    def _logic(self, typed: Expression, operands: tuple[Expression, ...], op: str) -> Expression:
        sound = [self.condition(operand, f"`{op}`") for operand in operands]
        if not all(sound):
            return typed
        return replace(typed, type=Type(Kind.BOOL, _rank(operands)))

    def _compare(self, typed: Expression, operands: tuple[Expression, ...]) -> Expression:
        if any(o.type is None for o in operands):
            return typed
        if any(o.type is not None and o.type.is_bool for o in operands):
            self._report(
                "SG082",
                "conditions can't be compared",
                typed,
                "`a and b`, `a or b`, `not a`; equal is (a and b) or not (a or b)",
            )
            return typed
        rank = _rank(operands)
        if rank is Rank.ELEMENT:
            typed = typed.with_operands(tuple(rounded(o) for o in operands))
        return replace(typed, type=Type(Kind.BOOL, rank))

    def _call(self, node: Call, operands: tuple[Expression, ...]) -> Expression:
        typed = node.with_operands(operands)
        parameters = FUNCTIONS[node.function].parameters
        sound = [
            self.condition(o, node.function) if parameter == "b" else self.number(o, node.function)
            for parameter, o in zip(parameters, operands, strict=True)
        ]
        if not all(sound):
            return typed
        rank = _rank(operands)
        if rank is Rank.ELEMENT:
            return replace(typed.with_operands(tuple(rounded(o) for o in operands)), type=ELEMENT_REAL)
        numbers = [o for parameter, o in zip(parameters, operands, strict=True) if parameter == "r"]
        whole = node.function == "floor" or (
            node.function in _KEEP_INT and all(_is_whole(o) for o in numbers)
        )
        return replace(typed, type=Type(Kind.INT if whole else Kind.REAL, rank))

    def _reduce(self, node: Reduce, operands: tuple[Expression, ...]) -> Expression:
        typed = node.with_operands(operands)
        sound = [self.number(operand, node.kind) for operand in operands]
        if not all(sound):
            return typed
        for operand in operands:
            if operand.type is not None and operand.type.rank is Rank.SCALAR:
                self._report(
                    "SG083",
                    f"{node.kind} reduces the elements of a tensor, but this is one number",
                    operand,
                    "it wants a value for each element: param, grad, array state or what is made of them",
                )
                return typed
        if any(_is_element(operand) for operand in operands):
            typed = typed.with_operands(tuple(rounded(operand) for operand in operands))
        else:
            ranks = {operand.type.rank for operand in operands if operand.type is not None}
            problem = _problem_with_lines(node, ranks)
            if problem is not None:
                self._report("SG094", problem[0], node, problem[1])
                return typed
        if not node.along:
            return replace(typed, type=SCALAR_REAL)
        rank = RANKS[node.along]
        changed = replace(node, args=typed.operands, along=rank.value)
        return replace(changed, type=Type(Kind.REAL, rank))

    def _power(self, node: Binary, base: Expression, exponent: Expression) -> Expression:
        value = constant(node.right)
        if value is not None and abs(value) <= MAX_WHOLE and value == int(value):
            if abs(value) >= MAX_EXPONENT:
                self._report(
                    "SG087", "the exponent is too large", node.right, "whole exponents stay below 2**31"
                )
                return node
            exponent = Number(value, integral=True, type=SCALAR_INT, location=exponent.location)
        rank = _rank((base, exponent))
        unrolled = value is not None and abs(value) <= MAX_UNROLLED
        if exponent.type == SCALAR_INT and (rank is Rank.SCALAR or unrolled):
            whole = _is_whole(base) and value is not None and value >= 0
            type = Type(Kind.INT if whole and rank is not Rank.ELEMENT else Kind.REAL, rank)
            return Call("ipow", (base, exponent), type=type, location=node.location)
        if rank is Rank.ELEMENT:
            args = (rounded(base), rounded(exponent))
            return Call("pow", args, type=ELEMENT_REAL, location=node.location)
        return Call("pow", (base, exponent), type=Type(Kind.REAL, rank), location=node.location)

    def _report(self, code: str, message: str, node: Expression, hint: str | None) -> None:
        assert node.location is not None
        self.findings.at(code, message, node.location, hint=hint, text=self.text)


def _is_element(expression: Expression) -> bool:
    return expression.type is not None and expression.type.is_element


def _is_whole(expression: Expression) -> bool:
    return expression.type is not None and expression.type.kind is Kind.INT


def _rank(operands: Iterable[Expression]) -> Rank:
    return highest(operand.type.rank for operand in operands if operand.type is not None)


def _problem_with_lines(node: Reduce, ranks: set[Rank]) -> tuple[str, str | None] | None:
    """What is wrong with a reduction of values of lines, and what to do; None if nothing is."""
    if len(ranks) > 1:
        return f"{node.kind} of different kinds of lines", "both have a value for each row, say"
    (rank,) = ranks
    if node.over_all:
        hint = "first reduce them to one number a tensor, or reduce elements"
        return f"a reduction of {rank.value} over all tensors", hint
    if not node.along or (node.along == "matrices" and rank is not Rank.MATRICES):
        return None
    return (
        f"this has a value for each of the {rank.value}, which can't be reduced to {node.along}",
        "values of lines are reduced to one number: sum(x), or to one a matrix: sum(x, matrices)",
    )


def join(a: Type | None, b: Type | None) -> Type | None:
    """The type of a name that is assigned an ``a`` here and a ``b`` there; None if that can't be."""
    if a is None or b is None:
        return a or b
    if a.is_bool != b.is_bool:
        return None
    rank = highest((a.rank, b.rank))
    if a.is_bool:
        return Type(Kind.BOOL, rank)
    whole = a.kind is Kind.INT and b.kind is Kind.INT and rank is not Rank.ELEMENT
    return Type(Kind.INT if whole else Kind.REAL, rank)
