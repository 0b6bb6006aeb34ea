"""Expressions as C, for the CPU and CUDA alike. Operators only: statements are ``body.py``'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solvergen.emit.number import c_number
from solvergen.errors import CompilerBug
from solvergen.ir.library import library
from solvergen.ir.nodes import Binary, Call, Compare, Expression, Logic, Name, Number, Round, Stored, Unary
from solvergen.ir.program import Role

_CONDITIONAL, _OR, _AND, _EQUALITY, _RELATION, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)
_BINARY = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_PRIMITIVES = frozenset({"sqrt", "abs", "floor"})


@dataclass
class CPrinter:
    """Prints expressions of elements; collects the library functions that they call.

    ``names``: the C identifier of each name. ``wide``: print arithmetic of float64 itself (bodies
    of library functions) rather than of ``sg_real``.
    """

    names: Mapping[str, str]
    roles: Mapping[str, Role] = field(default_factory=dict)
    wide: bool = False
    functions: dict[str, None] = field(default_factory=dict)

    def text(self, e: Expression) -> str:
        """``e`` as C text whose grouping is exactly that of the tree."""
        return self._print(e)[0]

    def _print(self, e: Expression) -> tuple[str, int]:
        match e:
            case Number():
                text = c_number(e.value)
                return (text, _UNARY if e.value < 0 else _ATOM) if self.wide else (f"(sg_real){text}", _UNARY)
            case Name():
                return self.names.get(e.name, e.name), _ATOM
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
        defined = library().get(e.function)
        widened = defined is not None and defined.wide and not self.wide
        # Each argument is printed once: twice would be two to the depth of the nesting.
        if widened:
            arguments = ", ".join(f"(double){self._at_least(a, _UNARY)}" for a in e.args)
        else:
            arguments = ", ".join(self.text(a) for a in e.args)
        if e.function in _PRIMITIVES:
            return f"sg_{e.function}{'64' if self.wide else ''}({arguments})", _ATOM
        if not self.wide and defined is None:
            raise CompilerBug(f"no C for the function {e.function}")
        self.functions.setdefault(e.function)
        if widened:
            return f"(sg_real)sg_{e.function}({arguments})", _UNARY
        return f"sg_{e.function}({arguments})", _ATOM
