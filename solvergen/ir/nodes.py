"""The nodes of the intermediate representation: frozen, typed, compared by value.

One set of expression nodes serves all levels; which of them may occur at which level is stated in
``verify.py``. Source locations take no part in comparison, so that renaming a symbol or moving an
equation changes nothing that the passes can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from solvergen.errors import Location
from solvergen.ir.types import Type

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Common to all expressions: the type (None until typed) and where it stands in the spec."""

    type: Type | None = None
    location: Location | None = field(default=None, compare=False, repr=False)

    CHILDREN: ClassVar[tuple[str, ...]] = ()
    """The fields that hold expressions."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions directly below this one, in order."""
        return tuple(getattr(self, child) for child in self.CHILDREN)

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        """The same node over other operands."""
        changes: dict[str, Any] = dict(zip(self.CHILDREN, operands, strict=True))
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A literal or a folded constant, held in float64. ``integral``: written without point or exponent."""

    value: float
    integral: bool = False


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A symbol of the program by its name; in single-assignment form a definition by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """``-`` or ``not``."""

    op: str
    operand: Expression

    CHILDREN = ("operand",)


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """``+ - * / // % **``. After typing ``**`` has become a call of ``ipow`` or ``pow``."""

    op: str
    left: Expression
    right: Expression

    CHILDREN = ("left", "right")


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """One comparison; the parser turns ``a < b < c`` into ``a < b and b < c``."""

    op: str
    left: Expression
    right: Expression

    CHILDREN = ("left", "right")


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    """``and`` or ``or`` of two conditions. Both sides are always evaluated."""

    op: str
    left: Expression
    right: Expression

    CHILDREN = ("left", "right")


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of the language by its name; see ``functions.py`` for the table."""

    function: str
    args: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        """The same call of other arguments."""
        return replace(self, args=operands)


@dataclass(frozen=True, slots=True)
class Reduce(Expression):
    """A reduction by its name: a scalar made of all elements; see ``reductions.py`` for the table.

    ``over_all``: of all tensors of the optimizer, not of this one. ``along``: one value for each line of
    that kind instead, as written; once typed it is "rows", "columns" or "matrices". The arguments may be
    values of lines themselves.
    """

    kind: str
    args: tuple[Expression, ...]
    over_all: bool = False
    along: str = ""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        """The same reduction of other arguments."""
        return replace(self, args=operands)


@dataclass(frozen=True, slots=True)
class Extent(Expression):
    """A number that says how large the tensor is, by its name; see ``reductions.py`` for the table."""

    of: str


@dataclass(frozen=True, slots=True)
class GradientAt(Expression):
    """The gradient, evaluated anew at the parameter ``at``. ``number`` tells evaluations apart: 0, 1, ..."""

    at: Expression
    number: int

    CHILDREN = ("at",)


@dataclass(frozen=True, slots=True)
class Round(Expression):
    """A float64 scalar meets an element: rounded once to the element's compute type."""

    operand: Expression

    CHILDREN = ("operand",)


@dataclass(frozen=True, slots=True)
class Stored(Expression):
    """The value that ``buffer`` holds after ``operand`` is assigned to it: rounded to its storage type."""

    buffer: str
    operand: Expression

    CHILDREN = ("operand",)


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything below it, operands before the node that uses them."""
    for operand in expression.operands:
        yield from walk(operand)
    yield expression


def names_in(expression: Expression) -> tuple[str, ...]:
    """Names read by ``expression``, each once, in order of first use."""
    seen: dict[str, None] = {}
    for node in walk(expression):
        if isinstance(node, Name):
            seen.setdefault(node.name)
    return tuple(seen)
