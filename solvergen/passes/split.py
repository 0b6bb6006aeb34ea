"""A program taken apart by where it runs: scalars on the host, scalars on the device, elements.

What hangs on a reduction, on shared state or on scalar state that hangs on these is the device's; every
other scalar is the host's, computed once a step for each distinct set of values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from solvergen.ir.describe import describe
from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Call, Compare, Expression, Extent, Name, Number, Reduce, Round, names_in, walk
from solvergen.ir.program import Assign, Program, Role
from solvergen.ir.types import (
    ELEMENT_BOOL,
    ELEMENT_REAL,
    LINE_RANKS,
    SCALAR_BOOL,
    SCALAR_REAL,
    Kind,
    Rank,
    Type,
)


@dataclass
class Split:
    """The parts of a program.

    ``host``: statements of scalars. ``rest``: those of elements (targets in ``elements``) and of the
    device's scalars, in the order of the program; a reduction is a statement of its own whose arguments are
    names. ``columns`` (rounded, for the passes) and ``wide`` (for the stages) are what the host hands over,
    ``values`` what the device's scalars hand to the passes; each with the settings under which it is read.
    Values of lines are the device's too: ``lines`` has their ranks, ``line_values`` what they hand on.
    """

    host: list[Assign] = field(default_factory=list)
    rest: list[Assign] = field(default_factory=list)
    elements: set[str] = field(default_factory=set)
    columns: dict[str, Guard] = field(default_factory=dict)
    wide: dict[str, Guard] = field(default_factory=dict)
    values: dict[str, Guard] = field(default_factory=dict)
    device: set[str] = field(default_factory=set)
    device_states: tuple[str, ...] = ()
    lines: dict[str, Rank] = field(default_factory=dict)
    line_values: dict[Rank, dict[str, Guard]] = field(default_factory=lambda: {r: {} for r in LINE_RANKS})

    def handed(self, rank: Rank) -> dict[str, Guard]:
        """What the device's values of ``rank`` hand on."""
        return self.values if rank is Rank.SCALAR else self.line_values[rank]

    def rank(self, name: str) -> Rank:
        """Of what the device's ``name`` is a number each."""
        return self.lines.get(name, Rank.SCALAR)


def split(program: Program) -> Split:
    """Take an optimised program apart."""
    device, device_states = _on_the_device(program)
    worker = _Worker(program, device)
    worker.parts.device_states = device_states
    for statement in program.statements:
        worker.statement(statement)
    numbers = (Role.SCALAR_STATE, Role.SHARED_STATE)
    on_device = {s.name for s in program.with_role(*numbers) if s.name in device}
    for result in program.results:
        if result.buffer in on_device and result.name not in device:
            worker.hand_over(result.name, result.guard, worker.parts.wide)
    return worker.parts


def _on_the_device(program: Program) -> tuple[set[str], tuple[str, ...]]:
    """Names of scalars that the device computes, and those of the scalar states among them."""
    elements = {s.name for s in program.symbols if s.type is not None and s.type.is_element}
    numbers = [s.name for s in program.with_role(Role.SCALAR_STATE)]
    begin = {s.name for s in program.with_role(Role.SHARED_STATE)}
    begin |= {s.name for s in program.symbols if s.type is not None and s.type.is_line}
    while True:
        device = set(begin)
        for statement in program.statements:
            if statement.target not in elements and _hangs_on(statement.value, device):
                device.add(statement.target)
        found = {r.buffer for r in program.results if r.buffer in numbers and r.name in device} - begin
        if not found:
            return device, tuple(name for name in numbers if name in begin)
        begin |= found


def _hangs_on(e: Expression, device: set[str]) -> bool:
    return any(
        isinstance(node, (Reduce, Extent)) or (isinstance(node, Name) and node.name in device)
        for node in walk(e)
    )


class _Worker:
    def __init__(self, program: Program, device: set[str]) -> None:
        self.options = frozenset(program.options)
        self.names = FreshNames(s.name for s in program.symbols)
        elements = {s.name for s in program.symbols if s.type is not None and s.type.is_element}
        self.parts = Split(elements=elements, device=device)
        self.parts.lines = {s.name: s.type.rank for s in program.symbols if s.type and s.type.is_line}
        numbers = program.with_role(Role.SCALAR_STATE, Role.SHARED_STATE, Role.LINE_STATE)
        self.states = frozenset(s.name for s in numbers if s.name in device)
        self._host_names: dict[Expression, str] = {}
        self._host_places: dict[str, int] = {}
        self._lifted: dict[Expression, str] = {}
        self._places: dict[str, int] = {}

    def statement(self, statement: Assign) -> None:
        if statement.target in self.parts.elements:
            value = self._element(statement.value, statement.guard)
            self.parts.rest.append(replace(statement, value=value))
        elif statement.target in self.parts.device:
            rank = self.parts.rank(statement.target)
            value = self._device(statement.value, statement.guard, rank, named=True)
            self.parts.rest.append(replace(statement, value=value))
        else:
            self.parts.host.append(statement)

    def hand_over(self, name: str, guard: Guard, to: dict[str, Guard]) -> None:
        """A definition is read, under ``guard``, from the table ``to``."""
        to[name] = to[name] | guard if name in to else guard

    def _element(self, e: Expression, guard: Guard) -> Expression:
        """``e`` with every scalar in it read from a table."""
        if isinstance(e, Round):
            if isinstance(e.operand, Number):
                return e
            return Name(self._column(e.operand, guard), type=ELEMENT_REAL, location=e.location)
        if e.type is not None and not e.type.is_element and e.type.is_bool:
            if self._is_of_options(e):
                return e
            column = Name(self._column(_flag(e), guard, _flag_name(e)), type=ELEMENT_REAL)
            zero = Round(Number(0.0, True, type=SCALAR_REAL), type=ELEMENT_REAL)
            return Compare("!=", column, zero, type=ELEMENT_BOOL, location=e.location)
        return self._over_operands(e, lambda operand: self._element(operand, guard))

    def _device(self, e: Expression, guard: Guard, rank: Rank, *, named: bool = False) -> Expression:
        """``e``, of the device, with what the host knows read from the wide table.

        ``rank``: of the statement that it stands in, whose own state alone is at hand.
        ``named``: it stands alone in a statement, so that a reduction needs no further name.
        """
        if isinstance(e, Reduce):
            reduction = replace(e, args=tuple(self._argument(arg, guard) for arg in e.args))
            return (
                reduction if named else Name(self._lift(reduction, guard, describe(e, e.kind)), type=e.type)
            )
        if isinstance(e, Name) and e.name in self.states and self.parts.rank(e.name) is not rank:
            return Name(self._lift(e, guard, f"{e.name}_before"), type=e.type, location=e.location)
        if _hangs_on(e, self.parts.device):
            return self._over_operands(e, lambda operand: self._device(operand, guard, rank))
        if (
            isinstance(e, Number)
            or (isinstance(e, Name) and e.name in self.options)
            or self._is_of_options(e)
        ):
            return e
        if e.type is not None and e.type.is_bool:
            flag = self._of_host(_flag(e), guard, _flag_name(e))
            self.hand_over(flag, guard, self.parts.wide)
            zero = Number(0.0, True, type=SCALAR_REAL)
            return Compare("!=", Name(flag, type=SCALAR_REAL), zero, type=SCALAR_BOOL, location=e.location)
        name = self._of_host(e, guard)
        self.hand_over(name, guard, self.parts.wide)
        return Name(name, type=e.type, location=e.location)

    def _argument(self, e: Expression, guard: Guard) -> Name:
        """An argument of a reduction, as a name of elements or of a value of lines."""
        assert e.type is not None
        if e.type.is_line:
            if isinstance(e, Name) and e.name not in self.states:
                name = e.name
            elif isinstance(e, Name):
                name = self._lift(e, guard, f"{e.name}_before")
            else:
                value = self._device(e, guard, e.type.rank, named=True)
                name = self._lift(value, guard, describe(e, "term"))
            self.hand_over(name, guard, self.parts.handed(e.type.rank))
            return Name(name, type=e.type, location=e.location)
        value = self._element(e, guard)
        if isinstance(value, Name) and value.name in self.parts.elements:
            return value
        name = self._lift(value, guard, describe(e, "term"))
        self.parts.elements.add(name)
        return Name(name, type=e.type, location=e.location)

    def _column(self, e: Expression, guard: Guard, wish: str | None = None) -> str:
        """The column, of the host's table or of the device's values, that holds ``e``."""
        if not _hangs_on(e, self.parts.device):
            name = self._of_host(e, guard, wish)
            self.hand_over(name, guard, self.parts.columns)
            return name
        if isinstance(e, Name) and e.name in self.states:
            name = self._lift(e, guard, f"{e.name}_before")
        elif isinstance(e, Name):
            name = e.name
        else:
            assert e.type is not None
            value = self._device(e, guard, e.type.rank, named=True)
            name = self._lift(value, guard, wish or describe(e, "value" if e.type.is_line else "scalar"))
        self.hand_over(name, guard, self.parts.handed(self.parts.rank(name)))
        return name

    def _of_host(self, e: Expression, guard: Guard, wish: str | None = None) -> str:
        """The host's definition of ``e``; it gets one if it has no name yet."""
        known = self._host_names.get(e)
        if known is not None:
            if known in self._host_places:
                _widen(self.parts.host, self._host_places[known], guard)
            return known
        if isinstance(e, Name):
            name = e.name
        else:
            name = self.names.take(wish or describe(e, "scalar"))
            self._host_places[name] = len(self.parts.host)
            self.parts.host.append(Assign(name, e, guard, "", e.location))
        self._host_names[e] = name
        return name

    def _lift(self, e: Expression, guard: Guard, wish: str) -> str:
        """A name for ``e``, which is the device's or of elements, defined before what is being split."""
        known = self._lifted.get(e)
        if known is not None:
            self._widen(known, guard)
            return known
        name = self.names.take(wish)
        if e.type is not None and not e.type.is_element:
            self.parts.device.add(name)
            if e.type.is_line:
                self.parts.lines[name] = e.type.rank
        self._places[name] = len(self.parts.rest)
        self.parts.rest.append(Assign(name, e, guard, "", e.location))
        self._lifted[e] = name
        return name

    def _widen(self, name: str, guard: Guard) -> None:
        """``name``, and what was lifted for its sake, is also needed under ``guard``."""
        _widen(self.parts.rest, self._places[name], guard)
        for read in names_in(self.parts.rest[self._places[name]].value):
            if read in self._places:
                self._widen(read, guard)
            for table in (
                self.parts.columns,
                self.parts.wide,
                self.parts.values,
                *self.parts.line_values.values(),
            ):
                if read in table:
                    self.hand_over(read, guard, table)
            if read in self._host_places:
                _widen(self.parts.host, self._host_places[read], guard)

    def _is_of_options(self, e: Expression) -> bool:
        names = names_in(e)
        return e.type is not None and e.type.is_bool and bool(names) and self.options.issuperset(names)

    def _over_operands(self, e: Expression, change: Callable[[Expression], Expression]) -> Expression:
        operands = tuple(change(operand) for operand in e.operands)
        changed = any(new is not old for new, old in zip(operands, e.operands, strict=True))
        return e.with_operands(operands) if changed else e


def _flag(condition: Expression) -> Expression:
    assert condition.type is not None
    one, zero = (Number(v, True, type=SCALAR_REAL) for v in (1.0, 0.0))
    real = Type(Kind.REAL, condition.type.rank)
    return Call("where", (condition, one, zero), type=real, location=condition.location)


def _flag_name(condition: Expression) -> str:
    return f"{condition.name}_holds" if isinstance(condition, Name) else describe(condition, "condition")


def _widen(statements: list[Assign], at: int, guard: Guard) -> None:
    statements[at] = replace(statements[at], guard=statements[at].guard | guard)
