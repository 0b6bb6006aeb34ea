"""Expressions as Python: the NumPy reference (elements) and the host program (scalars).

NumPy 2 treats a Python float beside an array as a value to be rounded once to the array's type,
which is the language's rule; so the reference can be written as the paper is. What Python's own
operators would do otherwise (raise on a division by zero, call libm for a power) goes through
helpers of the runtime, and the printer collects which ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from solvergen.emit.number import float32_number, python_number
from solvergen.emit.shapes import Shapes
from solvergen.errors import CompilerBug
from solvergen.ir.library import library
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    Logic,
    Name,
    Number,
    Reduce,
    Round,
    Stored,
    Unary,
    walk,
)
from solvergen.ir.reductions import REDUCTIONS
from solvergen.ir.types import Rank, Type

_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _BIT_OR, _BIT_AND, _SUM, _PRODUCT, _UNARY, _ATOM = range(11)
_BINARY = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_OPPOSITE = {"==": "!=", "!=": "=="}
_HELPERS = {
    "sqrt": "sqrt",
    "abs": "absolute",
    "sign": "sign",
    "min": "minimum",
    "max": "maximum",
    "floor": "floor",
    "clip": "clip",
    "where": "where",
    "ipow": "power",
}
REDUCTION_HELPERS = {name: "sum_of" if name == "sum" else name for name in REDUCTIONS}
"""What the runtime calls the reductions of one tensor; ``sum`` is Python's."""

OF_THE_LIBRARY = {
    name: "general_power" if name == "pow" else name for name, known in library().items() if known.wide
}
"""Functions that the package's own ``_functions.py`` holds, printed from their one definition."""


@dataclass
class PythonPrinter:
    """Prints typed expressions; ``helpers`` and ``functions`` collect what has to be imported.

    ``aliases`` gives a helper another name where the spec uses its own; ``bare`` says what functions are
    called that nobody needs to import; ``floats``: print every number as a float, since no array is there
    to tell its type; ``narrow``: numbers are of float32; ``shapes``: which values are arrays, for reductions.
    """

    aliases: Mapping[str, str]
    real: str = "real"
    bare: Mapping[str, str] = field(default_factory=dict)
    floats: bool = False
    narrow: bool = False
    shapes: Shapes | None = None
    helpers: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)

    def text(self, e: Expression) -> str:
        """``e`` as Python text whose grouping is exactly that of the tree."""
        return self._print(e)[0]

    def element(self, e: Expression) -> str:
        """``e`` where nothing beside it makes NumPy round a scalar: rounded explicitly."""
        if isinstance(e, Round) and not _is_of_lines(e.operand):
            return f"{self.real}({self.text(e.operand)})"
        return self.text(e)

    def value(self, e: Expression) -> str:
        """``e`` as something to assign: a whole number is a float from here on."""
        return python_number(e, as_float=True) if isinstance(e, Number) else self.element(e)

    def reduced(self, e: Expression) -> str:
        """``e`` as an argument of a reduction, which counts its elements."""
        if _is_of_lines(e):
            return self.of_lines(e, e.type)
        text = self.element(e)
        if self.shapes is None or self.shapes.is_array(e):
            return text
        return f"{self.helper('spread')}({text}, grad)"

    def of_lines(self, e: Expression, type: Type | None) -> str:
        """``e`` as an array with a number for each line of the rank of ``type``, whatever it is made of."""
        assert type is not None
        text = self.value(e)
        if _is_full(e, type.rank):
            return text
        return f'{self.helper("spread")}({text}, grad, "{type.rank.value}")'

    def helper(self, name: str) -> str:
        """The local name of a helper, which is thereby imported."""
        self.helpers.setdefault(name)
        return self.aliases.get(name, name)

    def _print(self, e: Expression) -> tuple[str, int]:
        match e:
            case Number():
                level = _UNARY if e.value < 0 else _ATOM
                if self.narrow and not e.integral:
                    return float32_number(e.value), level
                return python_number(e, as_float=self.floats), level
            case Name():
                return e.name, _ATOM
            case Round():
                # NumPy rounds a number where it meets elements, but not an array.
                if _is_of_lines(e.operand):
                    return f"{self.real}({self.text(e.operand)})", _ATOM
                return self._print(e.operand)
            case Extent():
                return self.aliases.get(e.of, e.of), _ATOM
            case Unary(op="-"):
                return f"-{self._at_least(e.operand, _UNARY)}", _UNARY
            case Unary(op="not"):
                if e.type is not None and e.type.is_element:
                    return f"~{self._at_least(e.operand, _ATOM)}", _UNARY
                if _is_of_lines(e):
                    return f"{self.helper('where')}({self.text(e.operand)}, False, True)", _ATOM
                if isinstance(e.operand, Compare) and e.operand.op in _OPPOSITE:  # exact, also for NaN
                    return self._print(replace(e.operand, op=_OPPOSITE[e.operand.op]))
                return f"not {self._at_least(e.operand, _NOT)}", _NOT
            case Binary():
                return self._binary(e)
            case Compare():
                return f"{self._at_least(e.left, _SUM)} {e.op} {self._at_least(e.right, _SUM)}", _COMPARISON
            case Logic():
                return self._logic(e)
            case Call():
                return self._call(e)
            case Reduce():
                # Over all tensors it is a statement of its own (``reference.py``).
                if e.over_all:
                    raise CompilerBug(f"{e.kind} over all tensors inside an expression")
                helper = self.helper(REDUCTION_HELPERS[e.kind])
                return f"{helper}({', '.join([*(self.reduced(a) for a in e.args), *_over(e)])})", _ATOM
            case Stored():
                return self._print(e.operand)
        raise CompilerBug(f"no Python for {e}")

    def _at_least(self, e: Expression, level: int) -> str:
        text, own = self._print(e)
        return text if own >= level else f"({text})"

    def _binary(self, e: Binary) -> tuple[str, int]:
        if e.op in ("//", "%"):
            helper = self.helper("floor_divide" if e.op == "//" else "remainder")
            return f"{helper}({self._operand(e.left, e)}, {self._operand(e.right, e)})", _ATOM
        scalar = e.type is not None and not e.type.is_element
        if e.op == "/" and scalar and not (isinstance(e.right, Number) and e.right.value):
            return f"{self.helper('divide')}({self._operand(e.left, e)}, {self._operand(e.right, e)})", _ATOM
        level = _BINARY[e.op]
        constant = _is_constant(e)
        sides = []
        for side, least in ((e.left, level), (e.right, level + 1)):
            if constant and isinstance(side, Number):
                text = python_number(side, as_float=True)
                sides.append(f"({text})" if side.value < 0 and least > _UNARY else text)
            else:
                sides.append(self._at_least(side, least))
        return f"{sides[0]} {e.op} {sides[1]}", level

    def _operand(self, e: Expression, parent: Expression) -> str:
        """An argument of a helper; a rounded scalar next to an element needs no more.

        Among scalars whole numbers are floats, so that no result is a Python int, whose arithmetic
        is another.
        """
        if isinstance(e, Number):
            return python_number(e, as_float=True)
        beside = any(o is not e and not isinstance(o, Round) for o in parent.operands)
        return self.text(e) if beside else self.element(e)

    def _logic(self, e: Logic) -> tuple[str, int]:
        if e.type is not None and (e.type.is_element or e.type.is_line):
            op, level = ("&", _BIT_AND) if e.op == "and" else ("|", _BIT_OR)
            return f"{self._at_least(e.left, level + 1)} {op} {self._at_least(e.right, level + 1)}", level
        op, level = ("and", _AND) if e.op == "and" else ("or", _OR)
        return f"{self._at_least(e.left, level + 1)} {op} {self._at_least(e.right, level + 1)}", level

    def _call(self, e: Call) -> tuple[str, int]:
        if e.function == "where":
            condition, yes, no = e.args
            if condition.type is not None and condition.type.rank is Rank.SCALAR:
                return self._choice(e, condition, yes, no)
            values = [self.text(yes), self.text(no)]
            if _is_of_lines(e):
                values = [self.value(yes), self.value(no)]
            if isinstance(yes, Round) and isinstance(no, Round):
                values = [self.element(yes), self.element(no)]
            return f"{self.helper('where')}({self.text(condition)}, {', '.join(values)})", _ATOM
        if e.function in self.bare:
            return f"{self.bare[e.function]}({', '.join(self.text(a) for a in e.args)})", _ATOM
        if e.function in OF_THE_LIBRARY:
            name = OF_THE_LIBRARY[e.function]
            self.functions.setdefault(name)
            return f"{self.aliases.get(name, name)}({', '.join(self.value(a) for a in e.args)})", _ATOM
        arguments = [self._operand(a, e) for a in e.args]
        if e.function == "ipow" and isinstance(e.args[1], Number):
            arguments[1] = self.text(e.args[1])
        return f"{self.helper(_HELPERS[e.function])}({', '.join(arguments)})", _ATOM

    def _choice(self, e: Call, condition: Expression, yes: Expression, no: Expression) -> tuple[str, int]:
        """Python's own choice: the other branch isn't evaluated (it may be a state that isn't there)."""
        first = self.value(yes) if isinstance(yes, (Round, Number)) else self._at_least(yes, _OR)
        second = self.value(no) if isinstance(no, (Round, Number)) else self._at_least(no, _CONDITIONAL)
        return f"{first} if {self._at_least(condition, _OR)} else {second}", _CONDITIONAL


def _is_of_lines(e: Expression) -> bool:
    return e.type is not None and e.type.is_line


def _is_full(e: Expression, rank: Rank) -> bool:
    """Is ``e`` certainly an array with a number for each line of ``rank``?"""
    if isinstance(e, (Name, Reduce)):
        return e.type is not None and e.type.rank is rank
    if isinstance(e, Call) and e.function == "where":
        condition, yes, no = (_is_full(operand, rank) for operand in e.args)
        return condition or (yes and no)
    return any(_is_full(operand, rank) for operand in e.operands)


def _over(e: Reduce) -> list[str]:
    """What a reduction is over and what its terms belong to, as arguments; none for a tensor's elements."""
    assert e.args[0].type is not None
    source = e.args[0].type.rank
    over = [f'"{e.along or "tensor"}"'] if e.along or source is not Rank.ELEMENT else []
    return [*over, f'"{source.value}"'] if source is not Rank.ELEMENT else over


def _is_constant(e: Expression) -> bool:
    return all(not isinstance(node, Name) for node in walk(e))
