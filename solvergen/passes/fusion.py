"""The fusion planner: elements into the fewest sweeps over memory, and when each buffer is stored.

A reduction is complete only when a sweep is over, so what hangs on it belongs to a later one. That fixes the
number of sweeps. What is free is in which of them a result is stored: early, and later sweeps read the new
value; or late, and they compute it again from the old ones. The planner tries every choice and takes the one
that moves the least. Values that no buffer holds are always computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Name, Reduce, names_in
from solvergen.ir.program import Assign, Result
from solvergen.ir.schedule import Load, Pass, Reduction
from solvergen.ir.types import ELEMENT_REAL, Rank

MAX_CHOICES = 4096
"""Of stores to try; beyond, all are stored in the last sweep."""


@dataclass(frozen=True)
class Rule:
    """What there is to plan: statements of elements and of the device's scalars, and what they become.

    ``lines``: ranks of those that are values of lines. Where a rule knows lines (``knows_lines``), sweeps of
    even numbers go by tiles and may reduce along lines, those of odd numbers go by chunks and may reduce to
    tensors; values of lines are reduced after either. Sweeps with nothing to do are left out in the end.
    """

    options: tuple[str, ...]
    buffers: tuple[str, ...]
    elements: frozenset[str]
    statements: tuple[Assign, ...]
    results: tuple[Result, ...]
    allowed: Guard
    lines: Mapping[str, Rank] = field(default_factory=dict)
    knows_lines: bool = False

    @property
    def reductions(self) -> tuple[int, ...]:
        """Places of the statements that reduce, in order."""
        return tuple(i for i, s in enumerate(self.statements) if isinstance(s.value, Reduce))


@dataclass(frozen=True)
class Plan:
    """The sweeps, and when each name is known: elements in a sweep, scalars in a stage.

    Stage n comes before sweep n; names that no statement defines are known from the beginning.
    """

    passes: tuple[Pass, ...]
    levels: dict[str, int]


Placing = dict[int, int]
"""The sweep in which the reduction at a place of the rule is formed."""


def plan(rule: Rule) -> Plan:
    """The sweeps of ``rule``, with reductions and stores where they cost least."""
    placing, known = _placed(rule, {})
    movable = [place for place in rule.reductions if not _of_lines(rule.statements[place])]
    last = _last(rule, known, placing)
    # What is wanted later only waits for the sweep that reads its buffers anyway.
    for place in reversed(movable):
        for later in range(last, placing[place], -1):
            moved = {**placing, place: later}
            if _possible(rule, moved, last):
                placing = moved
                break
    best = _best_stores(rule, placing, last)
    for place in movable:
        for other in range(last + 1):
            moved = {**placing, place: other}
            if other != placing[place] and _possible(rule, moved, last):
                found = _best_stores(rule, moved, last)
                if found[0] < best[0]:
                    placing, best = moved, found
    planned = Plan(tuple(best[1]), _levels(rule, placing))
    return _dense(planned) if rule.knows_lines else planned


def _dense(planned: Plan) -> Plan:
    """Without sweeps that have nothing to do, but for one if there are no others."""
    kept = [i for i, sweep in enumerate(planned.passes) if sweep.stores or sweep.reductions or sweep.of_lines]
    kept = kept or [len(planned.passes) - 1]
    levels = {name: sum(number < level for number in kept) for name, level in planned.levels.items()}
    passes: list[Pass] = []
    for number in kept:
        sweep = planned.passes[number]
        read = {name for s in sweep.body for name in names_in(s.value)}
        read |= {arg.name for r in sweep.of_lines for arg in r.args}
        waits = max((levels.get(name, 0) for name in read), default=0) == len(passes)
        reason = "tiles and chunks are walked apart"
        if waits:
            alone = len(kept) == 1 and not sweep.reductions
            reason = _reason(passes, 0 if alone else len(kept))
        passes.append(replace(sweep, reason=reason))
    return Plan(tuple(passes), levels)


def _of_lines(statement: Assign) -> bool:
    """Is it a reduction of values of lines?"""
    value = statement.value
    return isinstance(value, Reduce) and not (
        value.args[0].type is not None and value.args[0].type.is_element
    )


def _fitting(rule: Rule, statement: Assign, sweep: int) -> int:
    """The first sweep from this one on that can form the reduction."""
    assert isinstance(statement.value, Reduce)
    if not rule.knows_lines or _of_lines(statement):
        return sweep
    return sweep + (sweep + (0 if statement.value.along else 1)) % 2


def _placed(rule: Rule, wanted: Placing) -> tuple[Placing, dict[str, int]]:
    """Where each reduction is formed and when each name is known, with no reduction earlier than wanted.

    A name may have several statements, under different guards: it is known when the last of them is, but each
    of its reductions has a sweep of its own.
    """
    known: dict[str, int] = {}
    placing: Placing = {}
    for place, statement in enumerate(rule.statements):
        level = max((known.get(name, 0) for name in names_in(statement.value)), default=0)
        if isinstance(statement.value, Reduce):
            placing[place] = _fitting(rule, statement, max(level, wanted.get(place, level)))
            level = placing[place] + 1
        known[statement.target] = max(level, known.get(statement.target, 0))
    return placing, known


def _levels(rule: Rule, placing: Placing) -> dict[str, int]:
    return _placed(rule, placing)[1]


def _last(rule: Rule, known: dict[str, int], placing: Placing) -> int:
    """The number of the last sweep."""
    return max([known[result.name] for result in rule.results] + list(placing.values()), default=0)


def _possible(rule: Rule, placing: Placing, last: int) -> bool:
    """Is every reduction formed when its arguments are known, without a further sweep?"""
    known = _levels(rule, placing)
    for place, sweep in placing.items():
        statement = rule.statements[place]
        if sweep < max((known.get(name, 0) for name in names_in(statement.value)), default=0):
            return False
        if _fitting(rule, statement, sweep) != sweep:
            return False
    return _last(rule, known, placing) == last


_Cost = tuple[int, int, tuple[int, ...]]


def _best_stores(rule: Rule, placing: Placing, last: int) -> tuple[_Cost, list[Pass]]:
    """Of all choices of where results are stored, the cheapest and the sweeps that it makes."""
    known = _levels(rule, placing)
    choices = [range(known[result.name], last + 1) for result in rule.results]
    several = math.prod(len(choice) for choice in choices)
    candidates = product(*choices) if several <= MAX_CHOICES else iter([(last,) * len(choices)])
    best: tuple[_Cost, list[Pass]] | None = None
    for stored in candidates:
        planned = _sweeps(rule, placing, stored, last)
        if planned is not None:
            cost = (*_cost(rule, planned), stored)
            if best is None or cost < best[0]:
                best = cost, planned
    assert best is not None, "storing everything in the last sweep is always possible"
    return best


def _cost(rule: Rule, planned: Sequence[Pass]) -> tuple[int, int]:
    """Buffers read or written, and sweeps that have anything to do, over all settings of the options."""
    moved = 0
    active = 0
    for sweep in planned:
        guards = [load.guard for load in sweep.loads] + [store.guard for store in sweep.stores]
        moved += sum(_settings(guard & rule.allowed) for guard in guards)
        active += _settings(sweep.activity(rule.options) & rule.allowed)
    return moved, active


def _settings(guard: Guard) -> int:
    return guard.table.bit_count()


def _sweeps(rule: Rule, placing: Placing, stored: tuple[int, ...], last: int) -> list[Pass] | None:
    """The sweeps if result ``i`` is stored in sweep ``stored[i]``; None if one needs what is overwritten.

    Under settings in which that sweep has nothing else to do, the result is stored in the last one.
    """
    result: list[Pass] = []
    earlier: list[Result] = []
    for number in range(last + 1):
        formed = [rule.statements[i] for i, at in placing.items() if at == number]
        reductions = tuple(_reduction(rule, s) for s in formed if not _of_lines(s))
        of_lines = tuple(_reduction(rule, s) for s in formed if _of_lines(s))
        busy = Guard.always(rule.options) if number == last else Guard.never(rule.options)
        for reduction in reductions:
            busy = busy | reduction.guard
        stores = []
        for whole, at in zip(rule.results, stored, strict=True):
            guard = whole.guard & busy if at == number else Guard.never(rule.options)
            if number == last:
                guard = whole.guard
                for done in earlier:
                    guard = guard & ~done.guard if done.buffer == whole.buffer else guard
            if not (guard & rule.allowed).is_never:
                stores.append(replace(whole, guard=guard))
        sweep = _slice(rule, tuple(stores), reductions, earlier, _reason(result, last))
        if sweep is None:
            return None
        result.append(replace(sweep, of_lines=of_lines))
        earlier += stores
    return result


def _reduction(rule: Rule, statement: Assign) -> Reduction:
    value = statement.value
    assert isinstance(value, Reduce)
    args = tuple(arg for arg in value.args if isinstance(arg, Name))
    source = rule.lines[args[0].name] if _of_lines(statement) else Rank.ELEMENT
    along = Rank(value.along) if value.along else Rank.SCALAR
    return Reduction(statement.target, value.kind, args, value.over_all, statement.guard, along, source)


def _reason(before: Sequence[Pass], last: int) -> str:
    if not before:
        return "the whole update is elementwise: one pass" if last == 0 else "what hangs on no reduction"
    waited = ", ".join(r.name for r in (*before[-1].reductions, *before[-1].of_lines))
    return f"{waited} must be complete first"


def _slice(
    rule: Rule,
    stores: tuple[Result, ...],
    reductions: tuple[Reduction, ...],
    earlier: Sequence[Result],
    reason: str,
) -> Pass | None:
    """What one sweep needs to form ``reductions`` and store ``stores``.

    Results of ``earlier`` sweeps are read where they are stored.
    """
    never = Guard.never(rule.options)
    needed: dict[str, Guard] = {}

    def need(name: str, guard: Guard) -> None:
        needed[name] = needed.get(name, never) | guard

    for store in stores:
        need(store.name, store.guard)
    for reduction in reductions:
        for arg in reduction.args:
            need(arg.name, reduction.guard)
    body: list[Assign] = []
    read_new: dict[str, Guard] = {}
    for statement in reversed(rule.statements):
        if statement.target not in rule.elements:
            continue
        live = needed.get(statement.target, never) & statement.guard
        for result in earlier:
            if result.name == statement.target and not (live & result.guard & rule.allowed).is_never:
                there = live & result.guard
                read_new[result.buffer] = read_new.get(result.buffer, never) | there
                if result.name != result.buffer:
                    value = Name(result.buffer, type=ELEMENT_REAL)
                    body.append(Assign(result.name, value, there, "", statement.location))
                live = live & ~there
        if (live & rule.allowed).is_never:
            continue
        for name in names_in(statement.value):
            need(name, live)
        body.append(replace(statement, guard=live))
    # A scratch buffer is called as the value that it carries: where that is defined here, nothing is read.
    defined = {statement.target for statement in rule.statements}
    old = {name: guard for name, guard in needed.items() if name not in defined}
    overwritten = {r.buffer: r.guard for r in earlier}
    for buffer, guard in overwritten.items():
        if not (old.get(buffer, never) & guard & rule.allowed).is_never:
            return None
    loads = []
    for buffer in rule.buffers:
        guard = old.get(buffer, never) | read_new.get(buffer, never)
        if not (guard & rule.allowed).is_never:
            loads.append(Load(buffer, guard))
    body.reverse()
    ordered = sorted(stores, key=lambda store: rule.buffers.index(store.buffer))
    return Pass(tuple(loads), tuple(body), tuple(ordered), reason, reductions)
