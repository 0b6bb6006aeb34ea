"""Faults of a staged rule's step: the order of its stages and passes, and what each step hands to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import KernelLauncher, StagedLauncher, Step
from solvergen.runtime.definition import Definition
from solvergen.runtime.plan import StagedLaunchSet
from solvergen.runtime.workspace import KernelWorkspace
from solvergen.verify.mutations.patching import put
from solvergen.verify.mutations.tables import TableFault, Tell

Operation = tuple[str, int]
"""``stage``, ``pass`` or ``combine`` (over all tensors), and its number."""

Order = Callable[[list[Operation]], list[Operation]]


def _without(kind: str, which: int) -> Order:
    def change(operations: list[Operation]) -> list[Operation]:
        places = [i for i, (name, _) in enumerate(operations) if name == kind]
        if len(places) <= (which if which >= 0 else -which - 1):
            return operations
        return [o for i, o in enumerate(operations) if i != places[which]]

    return change


def _moved(kind: str, by: int) -> Order:
    """Each operation of a kind that many passes later, or earlier if ``by`` is negative."""

    def change(operations: list[Operation]) -> list[Operation]:
        result: list[Operation] = []
        passes = [n for name, n in operations if name == "pass"]
        slots: dict[int, list[Operation]] = {}
        place = 0
        for operation in operations:
            if operation[0] == "pass":
                place += 1
            elif operation[0] == kind:
                slots.setdefault(min(max(place + by, 0), len(passes)), []).append(operation)
        for place, number in enumerate([*passes, None]):
            result += slots.get(place, [])
            result += [o for o in operations if o[0] not in (kind, "pass") and _place(operations, o) == place]
            if number is not None:
                result.append(("pass", number))
        return result

    return change


def _place(operations: Sequence[Operation], operation: Operation) -> int:
    """How many passes stand before an operation."""
    return sum(name == "pass" for name, _ in operations[: operations.index(operation)])


class _WithoutAll:
    """A definition that says it has no reductions over all tensors, so that no total is cleared."""

    reduces_over_all = False

    def __init__(self, definition: Any) -> None:
        self._definition = definition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._definition, name)


def _run(tell: Tell, order: Order = lambda o: o, *, clears: bool = True, commits: bool = True) -> None:
    """Let steps be run in another order."""

    def run(
        self: KernelWorkspace,
        launches: Sequence[tuple[StagedLauncher, Step]],
        evaluate: Callable[[], None] | None = None,
    ) -> None:
        assert evaluate is None, "rules that evaluate the gradient again have other steps"
        launchers = [cast("KernelLauncher", launcher) for launcher, _ in launches]
        definition, first = self._definition, launches[0][1]
        if not clears and definition.reduces_over_all:
            tell()
            self._definition = cast("Any", _WithoutAll(definition))
        self.begin(first.total_size, first.leader)
        self._definition = definition
        for launcher, (_, step) in zip(launchers, launches, strict=True):
            launcher.begin(step)
        operations: list[Operation] = []
        for number in range(len(definition.passes) + 1):
            if any(number in launcher.plan.stages for launcher in launchers):
                operations.append(("stage", number))
            if any(number in launcher.plan.passes for launcher in launchers):
                operations.append(("pass", number))
                if "all" in definition.passes[number].over:
                    operations.append(("combine", number))
        changed = order(operations)
        if changed != operations:
            tell()
        for kind, number in changed:
            if kind == "combine":
                self.combine(number)
            for launcher in launchers:
                if kind == "stage" and number in launcher.plan.stages:
                    launcher.run_stage(number)
                elif kind == "pass" and number in launcher.plan.passes:
                    launcher.run_pass(number)
        if commits:
            self.commit()
        elif definition.shared_states:
            tell()

    put(KernelWorkspace, "run", run)


def _steps(tell: Tell, change: Callable[[Step], Step]) -> None:
    """Let what a step hands over be what ``change`` makes of it."""
    right = StagedLaunchSet.launch

    def launch(self: StagedLaunchSet) -> None:
        steps = self._steps
        changed = [(launcher, change(step)) for launcher, step in steps]
        if any(not _same(a, b) for (_, a), (_, b) in zip(steps, changed, strict=True)):
            tell()
        self._steps = changed
        try:
            right(self)
        finally:
            self._steps = steps

    put(StagedLaunchSet, "launch", launch)


def _same(one: Step, other: Step) -> bool:
    arrays = ((one.table, other.table), (one.rows, other.rows), (one.wide, other.wide))
    numbers = (one.total_size, one.leader) == (other.total_size, other.leader)
    return numbers and all(a.tobytes() == b.tobytes() for a, b in arrays)


def _single(table: HostArray) -> HostArray:
    return np.ascontiguousarray(table.astype(np.float32).astype(table.dtype))


_ORDERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("the first stage is left out", {"order": _without("stage", 0)}),
    ("the last stage is left out", {"order": _without("stage", -1)}),
    ("stages run a pass too early", {"order": _moved("stage", -1)}),
    ("stages run a pass too late", {"order": _moved("stage", 1)}),
    ("totals are combined before their pass", {"order": _moved("combine", -1)}),
    ("totals are combined too late", {"order": _moved("combine", 1)}),
    ("totals are not combined", {"order": _without("combine", 0)}),
    ("the first pass is left out", {"order": _without("pass", 0)}),
    ("the last pass is left out", {"order": _without("pass", -1)}),
    ("totals of the step before count", {"clears": False}),
    ("shared states stay as they were", {"commits": False}),
)
_STEPS: tuple[tuple[str, str, Callable[[Step], Step]], ...] = (
    ("rows", "the first row for all", lambda s: replace(s, rows=np.zeros_like(s.rows))),
    ("rows", "the row of another tensor", lambda s: replace(s, rows=np.roll(s.rows, 1))),
    ("scalars", "rounded to float32", lambda s: replace(s, table=_single(s.table))),
    ("scalars", "one column on", lambda s: replace(s, table=np.roll(s.table, 1, axis=1))),
    ("scalars", "one row on", lambda s: replace(s, table=np.roll(s.table, 1, axis=0))),
    ("wide scalars", "rounded to float32", lambda s: replace(s, wide=_single(s.wide))),
    ("wide scalars", "one column on", lambda s: replace(s, wide=np.roll(s.wide, 1, axis=1))),
    ("wide scalars", "one row on", lambda s: replace(s, wide=np.roll(s.wide, 1, axis=0))),
    ("leader", "the first of all, taking part or not", lambda s: replace(s, leader=0)),
    ("leader", "the one behind", lambda s: replace(s, leader=s.leader + 1)),
    ("size", "one element too many", lambda s: replace(s, total_size=s.total_size + 1)),
)


def _order_fault(what: str, how: dict[str, Any]) -> TableFault:
    return TableFault("order", what, lambda tell: _run(tell, **how))


def _means_over_all(definition: Definition) -> bool:
    return any(
        (kind, over) == ("mean", "all")
        for one in definition.passes
        for kind, over in zip(one.kinds, one.over, strict=True)
    )


_CONCERNS: dict[str, Callable[[Definition], bool]] = {
    "leader": lambda definition: bool(definition.shared_states),
    "size": _means_over_all,
}
"""Of what not every rule looks at: which do."""


def _step_fault(table: str, what: str, change: Callable[[Step], Step]) -> TableFault:
    concerns = _CONCERNS.get(table, lambda definition: True)
    return TableFault(table, what, lambda tell: _steps(tell, change), concerns)


OF_STEPS = (
    *(_order_fault(what, how) for what, how in _ORDERS),
    *(_step_fault(table, what, change) for table, what, change in _STEPS),
)
"""On every backend of kernels."""
