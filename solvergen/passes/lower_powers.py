"""Whole powers of elements become products; ``//`` and ``%`` become ``floor``.

``x**5`` is ``x*(x*x)*(x*x)`` in the order of binary powering, each square under a name of its own, so
that the tree cannot grow exponentially. Powers of scalars stay: the host has binary powering.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.ir.describe import describe
from solvergen.ir.fresh import FreshNames
from solvergen.ir.nodes import Binary, Call, Expression, Name, Number, Round
from solvergen.ir.program import Assign, Program, Role, Symbol
from solvergen.ir.types import ELEMENT_REAL, SCALAR_REAL, Kind, Type
from solvergen.passes.rewrite import is_atomic


def lower_powers(program: Program) -> Program:
    """Rewrite ``ipow`` of elements, ``//`` and ``%`` into the operations that define them."""
    worker = _Worker(program)
    for statement in program.statements:
        worker.current = statement
        value = worker.lower(statement.value)
        worker.statements.append(replace(statement, value=value))
    return replace(program, statements=tuple(worker.statements), symbols=(*program.symbols, *worker.symbols))


class _Worker:
    current: Assign

    def __init__(self, program: Program) -> None:
        self.names = FreshNames(s.name for s in program.symbols)
        self.statements: list[Assign] = []
        self.symbols: list[Symbol] = []

    def lower(self, e: Expression) -> Expression:
        operands = tuple(self.lower(operand) for operand in e.operands)
        if any(new is not old for new, old in zip(operands, e.operands, strict=True)):
            e = e.with_operands(operands)
        if isinstance(e, Call) and e.function == "ipow" and e.type is not None and e.type.is_element:
            return self._power(e)
        if isinstance(e, Binary) and e.op == "//":
            return self._floored(e)
        if isinstance(e, Binary) and e.op == "%":
            dividend, divisor = self._named(e.left), self._named(e.right)
            floored = self._floored(Binary("//", dividend, divisor, type=e.type, location=e.location))
            multiple = Binary("*", floored, divisor, type=e.type, location=e.location)
            return Binary("-", dividend, multiple, type=e.type, location=e.location)
        return e

    def _floored(self, e: Binary) -> Expression:
        assert e.type is not None
        real = Type(Kind.REAL, e.type.rank)
        quotient = Binary("/", e.left, e.right, type=real, location=e.location)
        return Call("floor", (quotient,), type=e.type, location=e.location)

    def _power(self, e: Call) -> Expression:
        base, exponent = e.args
        if isinstance(exponent, Round):
            exponent = exponent.operand
        assert isinstance(exponent, Number), "the exponent of an element's ipow is a constant"
        n = int(exponent.value)
        one = Round(Number(1.0, True, type=SCALAR_REAL), type=ELEMENT_REAL)
        if n == 0:
            return one
        product = self._product(self._named(base), abs(n), e)
        return product if n > 0 else Binary("/", one, product, type=e.type, location=e.location)

    def _product(self, base: Expression, n: int, e: Call) -> Expression:
        result: Expression | None = None
        while True:
            if n & 1:
                result = (
                    base if result is None else Binary("*", result, base, type=e.type, location=e.location)
                )
            n >>= 1
            if not n:
                assert result is not None
                return result
            square = Binary("*", base, base, type=e.type, location=e.location)
            base = (
                square
                if n == 1 and result is None
                else self._named(square, f"{describe(base, 'power')}_squared")
            )

    def _named(self, e: Expression, wish: str | None = None) -> Expression:
        """``e`` itself if it may be repeated freely, else a name for it."""
        if is_atomic(e):
            return e
        name = self.names.take(wish or describe(e, f"{self.current.target}_part"))
        self.statements.append(Assign(name, e, self.current.guard, "", e.location))
        self.symbols.append(Symbol(name, Role.TEMPORARY, self.current.guard, e.type, e.location))
        return Name(name, type=e.type, location=e.location)
