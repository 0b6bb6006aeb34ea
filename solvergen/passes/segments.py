"""A rule that evaluates the gradient again, cut where it does: each piece is planned as a rule of its own.

An evaluation needs the parameter in its buffer, and all other elements in memory: what a later piece reads
of an earlier one is carried in scratch buffers. State is stored in the last piece only, and the parameter as
it was is carried from the first, so that a step that can't be finished can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, GradientAt, Name, Stored, names_in
from solvergen.ir.program import Assign, Result
from solvergen.ir.schedule import Pass
from solvergen.ir.types import ELEMENT_REAL
from solvergen.passes.fusion import Plan, Rule, plan
from solvergen.passes.rewrite import rebuild

PARAM, GRAD = "param", "grad"


@dataclass(frozen=True)
class Segmented:
    """The plan of a whole rule. ``evaluations``: passes before which the gradient is evaluated anew.

    ``carried`` are its scratch buffers, the parameter as it was first; none where nothing is evaluated.
    """

    plan: Plan
    evaluations: tuple[int, ...]
    carried: tuple[str, ...]


def plan_segments(rule: Rule, taken: Iterable[str] = ()) -> Segmented:
    """Plan ``rule`` piece by piece. ``taken`` are names that it doesn't have itself, but can't make up."""
    if not any(isinstance(s.value, GradientAt) for s in rule.statements):
        return Segmented(plan(rule), (), ())
    cutter = _Cutter(rule, taken)
    passes: list[Pass] = []
    levels: dict[str, int] = {}
    evaluations: list[int] = []
    for number, piece in enumerate(cutter.pieces()):
        base = len(passes)
        if number:
            evaluations.append(base)
        if not piece.statements and not piece.results and number + 1 < cutter.count:
            continue  # one evaluation comes right behind another; behind the last, stages may write states
        planned = plan(piece)
        reason = "the gradient is evaluated anew" if number else "what the first gradient says"
        first = replace(planned.passes[0], reason=reason)
        planned = replace(planned, passes=(first, *planned.passes[1:]))
        passes += planned.passes
        levels |= {name: base + level for name, level in planned.levels.items()}
    return Segmented(Plan(tuple(passes), levels), tuple(evaluations), cutter.carried)


class _Cutter:
    def __init__(self, rule: Rule, taken: Iterable[str]) -> None:
        self.rule = rule
        self.names = FreshNames((*taken, *rule.buffers, *(s.target for s in rule.statements)))
        self.before = self.names.take(f"{PARAM}_before")
        self.first_grad = self.names.take(f"{GRAD}_before")
        self.segments: list[list[Assign]] = [[]]
        # Of each evaluation: the parameter that it is at, and the gradient's name.
        self.evaluated: list[tuple[str, str]] = []
        for statement in rule.statements:
            if isinstance(statement.value, GradientAt):
                assert isinstance(statement.value.at, Name)
                self.evaluated.append((statement.value.at.name, statement.target))
                self.segments.append([])
            else:
                self.segments[-1].append(statement)
        self.home = {s.target: number for number, part in enumerate(self.segments) for s in part}
        self.home |= {grad: number for number, (_, grad) in enumerate(self.evaluated, start=1)}
        self.home |= {PARAM: 0, GRAD: 0}
        self.of_param = self._of_param()
        self.crossing = self._crossing()

    @property
    def count(self) -> int:
        """How many segments there are."""
        return len(self.segments)

    @property
    def carried(self) -> tuple[str, ...]:
        """All scratch buffers."""
        return (self.before, *(self.alias(name) for name in self.crossing if name != PARAM))

    def alias(self, name: str) -> str:
        """What carries ``name``."""
        if name == PARAM:
            return self.before
        return self.first_grad if name == GRAD else name

    def pieces(self) -> list[Rule]:
        """The rules of all segments."""
        return [self._piece(number) for number in range(self.count)]

    def _of_param(self) -> dict[str, tuple[Assign, ...]]:
        """What the first segment forms of the parameter and scalars alone, and how. The parameter as it was
        is carried anyway, so that later segments form it again."""
        found: dict[str, tuple[Assign, ...]] = {}
        mixed: set[str] = set()
        for statement in self.segments[0]:
            names = names_in(statement.value)
            read = self.rule.elements.union((GRAD, *self.rule.buffers)).intersection(names)
            if statement.target in self.rule.elements and PARAM in read and len(read) == 1:
                found[statement.target] = (*found.get(statement.target, ()), statement)
            else:
                mixed.add(statement.target)
        return {name: how for name, how in found.items() if name not in mixed}

    def _again(self, number: int) -> list[Assign]:
        """What a segment forms again of the parameter as it was."""
        read = {name for s in self.segments[number] for name in names_in(s.value)}
        if number == self.count - 1:
            read |= {result.name for result in self.rule.results}
        else:
            read.add(self.evaluated[number][0])
        read.discard(self._in_param(number))
        return [s for name, how in self.of_param.items() if number and name in read for s in how]

    def _crossing(self) -> tuple[str, ...]:
        """Names that a later segment than their own reads, in the order of their definitions."""
        found: set[str] = set()
        elements = self.rule.elements | {PARAM, GRAD} | {grad for _, grad in self.evaluated}

        def read(name: str, there: int) -> None:
            own = name in elements and name in self.home and self.home[name] < there
            if own and name != self._in_param(there) and name != self._in_grad(there):
                found.add(PARAM if name in self.of_param else name)

        for number, part in enumerate(self.segments):
            for statement in part:
                for name in names_in(statement.value):
                    read(name, number)
        for result in self.rule.results:
            read(result.name, len(self.segments) - 1)
        for number, (at, _) in enumerate(self.evaluated):
            if at != self._in_param(number):
                read(at, number)
        order = [PARAM, GRAD, *(s.target for part in self.segments for s in part)]
        order += [grad for _, grad in self.evaluated]
        return tuple(dict.fromkeys(name for name in order if name in found))

    def _in_param(self, number: int) -> str:
        """The value that the parameter's buffer holds when a segment begins."""
        return self.evaluated[number - 1][0] if number else PARAM

    def _in_grad(self, number: int) -> str:
        """The gradient of a segment."""
        return self.evaluated[number - 1][1] if number else GRAD

    def _piece(self, number: int) -> Rule:
        rule, always = self.rule, Guard.always(self.rule.options)
        last = number == self.count - 1
        in_param, in_grad = self._in_param(number), self._in_grad(number)

        def read(e: Expression) -> Expression:
            if not isinstance(e, Name):
                return e
            if e.name == in_param:
                return replace(e, name=PARAM)
            if e.name == in_grad:
                return replace(e, name=GRAD)
            earlier = e.name in self.crossing and self.home[e.name] < number
            return replace(e, name=self.alias(e.name)) if earlier else e

        body = (*self._again(number), *self.segments[number])
        statements = [replace(s, value=rebuild(s.value, read)) for s in body]
        results: list[Result] = []
        if number == 0:
            statements.append(_copy(self.before, PARAM, always))
            results.append(Result(self.before, self.before, always))
        if GRAD in self.crossing and number == 0:
            statements.append(_copy(self.alias(GRAD), GRAD, always))
            results.append(Result(self.alias(GRAD), self.alias(GRAD), always))
        if in_grad in self.crossing and number:
            statements.append(_copy(in_grad, GRAD, always))
            results.append(Result(in_grad, in_grad, always))
        for name in self.crossing:
            if name not in (PARAM, GRAD, in_grad) and self.home[name] == number:
                guard = Guard.never(rule.options)
                for statement in statements:
                    guard = guard | statement.guard if statement.target == name else guard
                results.append(Result(name, name, guard))
        if last:
            ends = list(rule.results)
        else:
            at = self.evaluated[number][0]
            ends = [] if at == in_param else [Result(PARAM, at, always)]
        for end in ends:
            if end.buffer == PARAM and end.name == in_param:
                continue  # it is there already
            name = end.name
            if self.home.get(name, number) < number:
                copied = read(Name(name, type=ELEMENT_REAL))
                name = self.names.take(f"{name}_again")
                value = Stored(end.buffer, copied, type=ELEMENT_REAL)
                statements.append(Assign(name, value, end.guard))
            results.append(replace(end, name=name))
        elements = rule.elements | {s.target for s in statements if s.target not in self.home}
        return Rule(
            rule.options,
            (*rule.buffers, *self.carried),
            frozenset(elements | {self.before, self.alias(GRAD)} | {g for _, g in self.evaluated}),
            tuple(statements),
            tuple(results),
            rule.allowed,
            rule.lines,
            rule.knows_lines,
        )


def _copy(target: str, source: str, guard: Guard) -> Assign:
    return Assign(target, Name(source, type=ELEMENT_REAL), guard)
