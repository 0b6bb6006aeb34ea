"""Whole programs: symbols, guarded statements, and the level that the program has reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from solvergen.errors import Location
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression
from solvergen.ir.types import Type


class Level(Enum):
    """How far a program has come; each level has invariants of its own (``verify.py``)."""

    PARSED = "parsed"
    TYPED = "typed"
    OPTIMISED = "optimised"


class Role(Enum):
    """What a symbol stands for."""

    HYPERPARAMETER = "hyperparameter"
    OPTION = "option"
    T = "t"
    PARAM = "param"
    GRAD = "grad"
    STATE = "state"
    SCALAR_STATE = "scalar state"
    SHARED_STATE = "shared state"
    LINE_STATE = "line state"
    TEMPORARY = "temporary"

    @property
    def is_buffer(self) -> bool:
        """One value an element, in memory."""
        return self in (Role.PARAM, Role.GRAD, Role.STATE)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of the program. ``guard``: the option settings in which it exists."""

    name: str
    role: Role
    guard: Guard
    type: Type | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """``target = value`` under ``guard``. ``source`` is the equation as written, for comments.

    ``part``: of which statement of the typed program this is a branch, once such are split.
    """

    target: str
    value: Expression
    guard: Guard
    source: str = field(default="", compare=False)
    location: Location | None = field(default=None, compare=False, repr=False)
    part: int | None = field(default=None, compare=False, repr=False)


Statement = Assign
"""Statements to come (a repeated evaluation of the gradient) join this union."""


@dataclass(frozen=True, slots=True)
class Result:
    """At the end ``buffer`` (or state of one number) holds the definition ``name``, where ``guard`` holds."""

    buffer: str
    name: str
    guard: Guard


@dataclass(frozen=True, slots=True)
class Program:
    """An update rule.

    ``symbols`` come in this order: param, grad, state, hyperparameters, t, options, then temporaries
    in order of first assignment. ``results`` is empty until the program is in single-assignment form
    (level OPTIMISED): there a buffer's name means its value before the update, every other target is
    assigned once under any setting of the options, and ``results`` says what the buffers become.
    ``allowed``: the settings of the options that the spec's constraints leave (None: all of them). What
    the program says under others is never compiled, so names need not exist there. ``writes_grad``: the
    settings under which what the gradient is at the end goes into its buffer (None: it is only read).
    ``view``: how tensors are read as matrices ("matrices", "leading", "trailing" or "blocks"); empty if
    nothing is made of their lines.
    """

    name: str
    level: Level
    options: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    statements: tuple[Statement, ...]
    results: tuple[Result, ...] = ()
    allowed: Guard | None = None
    writes_grad: Guard | None = None
    view: str = ""

    def symbol(self, name: str) -> Symbol:
        """The symbol of that name; KeyError if there is none."""
        for symbol in self.symbols:
            if symbol.name == name:
                return symbol
        raise KeyError(name)

    def with_role(self, *roles: Role) -> tuple[Symbol, ...]:
        """Symbols of any of these roles, in order."""
        return tuple(s for s in self.symbols if s.role in roles)
