"""What tensors of fewer than two axes have no use for.

A rule may ask ``ndim(param) > 1`` and take another way for vectors, of which each element is a line: what it
computes of lines for matrices alone would then cost more than all the rest, and nobody reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from solvergen.ir.evaluate import combine
from solvergen.ir.nodes import Call, Compare, Expression, Extent, Logic, Name, Number, Round, Unary
from solvergen.ir.reductions import NDIM
from solvergen.ir.schedule import Schedule

_FEW = (0.0, 1.0)
"""The numbers of axes that are meant."""

_LARGEST = 2.0**24
"""Whole numbers up to here are the same in every type, so that it needn't be known in which one computes."""

_Definitions = Mapping[str, Sequence[Expression]]
"""The values of each name: one for each place where it is defined, under whatever guard."""


def only_of_matrices(schedule: Schedule) -> frozenset[str]:
    """The names of ``schedule`` that nothing hangs on where a tensor has fewer than two axes."""
    if not schedule.view:
        return frozenset()
    definitions, roots = _definitions(schedule), _roots(schedule)
    needed = {name for axes in _FEW for name in _Tensor(axes, definitions).needed(roots)}
    return frozenset(definitions) - needed


def _definitions(schedule: Schedule) -> _Definitions:
    bodies = [sweep.body for sweep in schedule.passes]
    for stage in schedule.stages:
        bodies += [stage.body, *(own.body for own in stage.lines)]
    found: dict[str, list[Expression]] = defaultdict(list)
    for body in bodies:
        for statement in body:
            found[statement.target].append(statement.value)
    return found


def _roots(schedule: Schedule) -> set[str]:
    """What a step leaves behind, and what the tensor contributes to others."""
    results = [result for sweep in schedule.passes for result in sweep.stores]
    for stage in schedule.stages:
        results += [*stage.results, *(result for own in stage.lines for result in own.results)]
    over_all = [r for sweep in schedule.passes for r in (*sweep.reductions, *sweep.of_lines) if r.over_all]
    return {result.name for result in results} | {arg.name for r in over_all for arg in r.args}


class _Tensor:
    """A tensor of so many axes, and which numbers are known because of them."""

    def __init__(self, axes: float, definitions: _Definitions) -> None:
        self._axes = axes
        self._definitions = definitions
        self._known: dict[str, float] = {}
        while (found := self._found()) != self._known:
            self._known = found

    def needed(self, roots: set[str]) -> set[str]:
        """The names that these hang on, and themselves."""
        needed: set[str] = set()
        waiting = set(roots)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting.update(*(self._names(value) for value in self._definitions.get(name, ())))
        return needed

    def _found(self) -> dict[str, float]:
        """The names that are one known number wherever they are defined."""
        found = {}
        for name, values in self._definitions.items():
            first, *others = {self._value(value) for value in values}
            if first is not None and not others:
                found[name] = first
        return found

    def _value(self, e: Expression) -> float | None:
        """What an expression is, a condition 1.0 or 0.0; None where that is open.

        Only choices are followed, and what they compare: whole numbers, which arithmetic can't round.
        """
        if isinstance(e, Name):
            return self._known.get(e.name)
        if isinstance(e, Number):
            return e.value if e.value.is_integer() and abs(e.value) <= _LARGEST else None
        if isinstance(e, Extent):
            return self._axes if e.of == NDIM else None
        if isinstance(e, Round):
            return self._value(e.operand)
        if isinstance(e, Call) and e.function == "where":
            branch = self._branch(e)
            return None if branch is None else self._value(branch)
        if not (isinstance(e, (Compare, Logic)) or (isinstance(e, Unary) and e.op == "not")):
            return None
        operands = [self._value(operand) for operand in e.operands]
        if isinstance(e, Logic):
            settles = float(e.op == "or")
            if settles in operands:
                return settles
        known = [value for value in operands if value is not None]
        return combine(e, known) if len(known) == len(operands) else None

    def _branch(self, choice: Call) -> Expression | None:
        """The argument that a ``where`` takes, if that is known."""
        condition = self._value(choice.args[0])
        return None if condition is None else choice.args[1 if condition else 2]

    def _names(self, e: Expression) -> set[str]:
        """The names that must be right for a value to come out right, whatever the others hold."""
        if isinstance(e, Name):
            return {e.name}
        operands = e.operands
        if isinstance(e, Call) and e.function == "where" and (branch := self._branch(e)) is not None:
            operands = (e.args[0], branch)
        elif isinstance(e, Logic):
            settles = float(e.op == "or")
            operands = next(((side,) for side in operands if self._value(side) == settles), operands)
        return {name for operand in operands for name in self._names(operand)}
