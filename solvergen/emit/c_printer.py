"""Expressions as C, for the CPU and CUDA alike. Operators only: statements are ``body.py``'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from solvergen.emit.number import c_number, float32_number
from solvergen.errors import CompilerBug
from solvergen.ir.library import BIT_FUNCTIONS, library
from solvergen.ir.narrow import NARROW_BIT_FUNCTIONS
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    Logic,
    Name,
    Number,
    Round,
    Stored,
    Unary,
)
from solvergen.ir.program import Role
from solvergen.ir.reductions import EXTENTS

_CONDITIONAL, _OR, _AND, _EQUALITY, _RELATION, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)
_BINARY = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_PRIMITIVES = frozenset({"sqrt", "abs", "floor"})
_ON_BITS = frozenset((*BIT_FUNCTIONS, *NARROW_BIT_FUNCTIONS))


@dataclass
class CPrinter:
    """Prints expressions of elements; collects the library functions that they call.

    ``names``: the C identifier of each name. ``real``: the type that is computed in, ``double`` or
    ``float`` in bodies of library functions. Functions of ``double`` have names that end in 64.
    ``stage``: scalars of the device are printed, in ``double``; every function is the one of ``double``.
    """

    names: Mapping[str, str]
    roles: Mapping[str, Role] = field(default_factory=dict)
    real: Literal["sg_real", "double", "float"] = "sg_real"
    stage: bool = False
    functions: dict[str, None] = field(default_factory=dict)

    def text(self, e: Expression) -> str:
        """``e`` as C text whose grouping is exactly that of the tree."""
        return self._print(e)[0]

    def _print(self, e: Expression) -> tuple[str, int]:
        match e:
            case Number():
                if self.real == "sg_real":
                    return f"(sg_real){c_number(e.value)}", _UNARY
                text = c_number(e.value) if self.real == "double" else f"{float32_number(e.value)}f"
                return text, _UNARY if e.value < 0 else _ATOM
            case Name():
                return self.names.get(e.name, e.name), _ATOM
            case Extent():
                return f"(double){EXTENTS[e.of]}", _UNARY
            case Round():
                return self._print(e.operand)
            case Stored():
                text = self.text(e.operand)
                if self.roles.get(e.buffer) is Role.PARAM:
                    return f"sg_round_param({text})", _ATOM
                return text, self._print(e.operand)[1]
            case Unary(op="-"):
                return f"-{self._at_least(e.operand, _ATOM)}", _UNARY
            case Unary(op="not"):
                return f"!{self._at_least(e.operand, _ATOM)}", _UNARY
            case Binary() if e.op in _BINARY:
                level = _BINARY[e.op]
                return f"{self._at_least(e.left, level)} {e.op} {self._at_least(e.right, level + 1)}", level
            case Compare():
                level = _EQUALITY if e.op in ("==", "!=") else _RELATION
                return f"{self._at_least(e.left, _SUM)} {e.op} {self._at_least(e.right, _SUM)}", level
            case Logic():
                op = "&&" if e.op == "and" else "||"
                return f"{self._at_least(e.left, _EQUALITY)} {op} {self._at_least(e.right, _EQUALITY)}", (
                    _AND if e.op == "and" else _OR
                )
            case Call(function="where"):
                condition, yes, no = (self._at_least(a, _EQUALITY) for a in e.args)
                return f"{condition} ? {yes} : {no}", _CONDITIONAL
            case Call():
                return self._call(e)
        raise CompilerBug(f"no C for {e}")

    def _at_least(self, e: Expression, level: int) -> str:
        text, own = self._print(e)
        return text if own >= level else f"({text})"

    def _call(self, e: Call) -> tuple[str, int]:
        definition = library().get(e.function)
        widened = (
            definition is not None and definition.wide and self.real != "double" and definition.narrow is None
        )
        # Each argument is printed once: twice would be two to the depth of the nesting.
        if widened:
            arguments = ", ".join(f"(double){self._at_least(a, _UNARY)}" for a in e.args)
        else:
            arguments = ", ".join(self.text(a) for a in e.args)
        if self.stage and e.function == "ipow":
            self.functions.setdefault(e.function)
            return f"{c_name(e.function, wide=True)}({arguments})", _ATOM
        if e.function in _PRIMITIVES or (self.real != "sg_real" and e.function in _ON_BITS):
            return f"{c_name(e.function, wide=self.real == 'double')}({arguments})", _ATOM
        if definition is None:
            raise CompilerBug(f"no C for the function {e.function}")
        self.functions.setdefault(e.function)
        if widened:
            return f"({self.real}){c_name(e.function, wide=True)}({arguments})", _UNARY
        wide = self.stage or (definition.wide and self.real == "double")
        return f"{c_name(e.function, wide=wide)}({arguments})", _ATOM


def c_name(function: str, *, wide: bool) -> str:
    """The C function for ``function``, of ``sg_real`` or of double."""
    return f"sg_{function}{'64' if wide else ''}"
