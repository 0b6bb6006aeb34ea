"""One step of a whole optimizer, statement by statement: each tensor by its elements, and what they share.

A reduction is evaluated where it stands, before its equation, in the order of docs/language.md and by
bounds of its own: adding is monotone, so the sum of the lower ends, in that order and rounded as it is, lies
below the sum, and that of the upper ends above. Where terms are known to the bit, the total is.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from solvergen.verify import order
from solvergen.verify.fuzzing import spans
from solvergen.verify.fuzzing.kinds import kinds_of, together
from solvergen.verify.fuzzing.meaning import Evaluator, reduction_key
from solvergen.verify.fuzzing.rounding import DOUBLE, FORMATS
from solvergen.verify.fuzzing.rule import AGAIN, Assignment, Rule
from solvergen.verify.fuzzing.spans import Truth, Value, between, exactly
from solvergen.verify.fuzzing.terms import AXES, LINES, OVER_ALL, REDUCTIONS, Term

ZERO = exactly(0.0)


@dataclass(frozen=True)
class TakingPart:
    """A tensor that takes part in a step, before it.

    ``storage`` names the parameter's type. Hyperparameters are those in force, ``t`` this update's number.
    ``elements``: for each one its param, grad, and the array states that exist; ``scalars``: those that do.
    ``matrices``: how many it is seen as, their rows and columns; ``lines``: its states of these, in order.
    ``axes``: how many it has. ``gradient`` names the gradient's type.
    """

    storage: str
    hyperparameters: Mapping[str, float]
    options: Mapping[str, bool]
    t: int
    elements: Sequence[Mapping[str, float]]
    scalars: Mapping[str, float]
    matrices: tuple[int, int, int] = (1, 1, 1)
    lines: Mapping[str, Sequence[float]] = field(default_factory=dict)
    axes: int = 1
    gradient: str = "float32"


@dataclass(frozen=True)
class Outcome:
    """What becomes of a tensor: its elements, scalars and lines, by the names that they had before."""

    elements: list[dict[str, Value]]
    scalars: dict[str, Value]
    lines: dict[str, list[Value]]


def step_together(
    rule: Rule, tensors: Sequence[TakingPart | None], shared: Mapping[str, float]
) -> list[Outcome | None]:
    """One step; ``tensors`` by their places in the optimizer, None for those that don't take part.

    ``shared``: the states of the whole optimizer. They are among the scalars of each outcome that its
    options have; those of the first tensor that takes part are the new ones.
    """
    updates = [None if tensor is None else _Update(rule, tensor, shared) for tensor in tensors]
    present = [update for update in updates if update is not None]
    size = sum(len(update.elements) for update in present)
    for statement in rule.update:
        reached = [update for update in present if update.reaches(statement)]
        for term in _reductions(statement.value):
            asking = [update for update in reached if update.asks(statement, term)]
            if term.text == OVER_ALL:
                terms = [
                    update.total(term) if update is not None and update in asking else ZERO
                    for update in updates
                ]
                value = _finished(term.op, order.total_over_all(terms, _combined(term.op), ZERO), size)
                for update in asking:
                    update.scalars[reduction_key(term)] = value
            else:
                for update in asking:
                    update.reduce(term)
        for update in reached:
            update.assign(statement)
    return [None if update is None else update.outcome() for update in updates]


class _Update:
    """One tensor on its way through a step."""

    def __init__(self, rule: Rule, start: TakingPart, shared: Mapping[str, float]) -> None:
        self.rule = rule
        self.start = start
        self.real = DOUBLE if start.storage == "float64" else FORMATS["float32"]
        self.kinds = kinds_of(rule)
        self.evaluator = Evaluator(self.kinds, self.real)
        self.kept = {**start.scalars, **shared}
        scalars = {**start.hyperparameters, **self.kept, "t": float(start.t)}
        self.scalars: dict[str, Value] = {name: exactly(x) for name, x in scalars.items()}
        self.truths: dict[str, Truth] = dict(start.options)
        self.scalars[AXES] = exactly(float(start.axes))
        matrices, rows, columns = start.matrices
        lines = {"matrices": matrices, "rows": matrices * rows, "columns": matrices * columns}
        own = {line: [_Own() for _ in range(count)] for line, count in lines.items()}
        for name, held in start.lines.items():
            for mine, x in zip(own[self.kinds[name].lines], held, strict=True):
                mine.values[name] = exactly(x)
        # What elements have of their own lies over what is the same for their lines, and for all.
        self.places: dict[str, list[_Place]] = {
            "matrices": [_Place([mine], self) for mine in own["matrices"]],
            "rows": [_Place([mine, own["matrices"][i // rows]], self) for i, mine in enumerate(own["rows"])],
            "columns": [
                _Place([mine, own["matrices"][i // columns]], self) for i, mine in enumerate(own["columns"])
            ],
        }
        layered = bool(start.lines) or _has_lines(rule)
        self.evaluations = 1
        self.elements: list[_Place] = []
        for i, element in enumerate(start.elements):
            mine = _Own({name: exactly(x) for name, x in element.items()})
            around: list[_Own] = []
            if layered:
                matrix = i // (rows * columns)
                around = [
                    own["rows"][i // columns],
                    own["columns"][matrix * columns + i % columns],
                    own["matrices"][matrix],
                ]
            self.elements.append(_Place([mine, *around], self))

    def reaches(self, statement: Assignment) -> bool:
        """Is the equation there under this tensor's options?"""
        return statement.when is None or bool(self.evaluator.truth(statement.when, {}, self.start.options))

    def asks(self, statement: Assignment, reduction: Term) -> bool:
        """Is the reduction there? Options choose between the sides of a ``where``, nothing else does."""
        return any(term is reduction for term in self._there(statement.value))

    def _there(self, term: Term) -> Iterator[Term]:
        args = term.args
        if term.op == "where" and _is_option(term.args[0], self.start.options):
            chosen = self.evaluator.truth(args[0], {}, self.start.options)
            args = (args[1 if chosen else 2],)
        for arg in args:
            yield from self._there(arg)
        yield term

    def total(self, reduction: Term) -> Value:
        """The total of the terms of this tensor's elements."""
        return order.total(self._terms(reduction, self.elements), _combined(reduction.op), ZERO)

    def _terms(self, reduction: Term, places: Sequence[_Place]) -> list[Value]:
        form = _TERMS[reduction.op]
        return [form(*(self._argument(reduction, arg, place) for arg in reduction.args)) for place in places]

    def _argument(self, reduction: Term, arg: Term, place: _Place) -> Value:
        value = self.evaluator.number(arg, place.values, place.truths)
        kind = self.evaluator.kind(arg)
        if kind.lines and self._source(reduction) == "":
            return spans.to_format(value, self.real)  # it meets elements
        return value

    def _source(self, reduction: Term) -> str:
        """Of which lines a reduction is; empty if of elements."""
        return together(self.evaluator.kind(arg) for arg in reduction.args)[1]

    def reduce(self, reduction: Term) -> None:
        """Keep what a reduction of this tensor gives."""
        key, combine = reduction_key(reduction), _combined(reduction.op)
        source, along = self._source(reduction), LINES.get(reduction.text, "")
        matrices, rows, columns = self.start.matrices
        if not along and not source:
            self.scalars[key] = _finished(reduction.op, self.total(reduction), len(self.elements))
            return
        terms = self._terms(reduction, self.places[source] if source else self.elements)
        if not along:
            value = order.total_over_all(terms, combine, ZERO)
            self.scalars[key] = _finished(reduction.op, value, len(terms))
            return
        found: list[Value] = []
        count = {"rows": rows, "columns": columns, "": rows * columns}[source]
        for matrix in range(matrices):
            mine = terms[matrix * count : (matrix + 1) * count]
            if source:
                found.append(order.total_over_all(mine, combine, ZERO))
                continue
            if along == "columns":
                found += [order.column_total(mine[c::columns], combine, ZERO) for c in range(columns)]
                continue
            totals = [order.row_total(mine[r * columns :][:columns], combine, ZERO) for r in range(rows)]
            found += totals if along == "rows" else [order.total_over_all(totals, combine, ZERO)]
        size = {"rows": columns, "columns": rows, "matrices": count}[along]
        for place, value in zip(self.places[along], found, strict=True):
            place.own.values[key] = _finished(reduction.op, value, size)

    def assign(self, statement: Assignment) -> None:
        """What the equation assigns: to each element, to each line, or once."""
        if statement == AGAIN:
            self.evaluate()
            return
        kind, target, value = self.kinds[statement.target], statement.target, statement.value
        if not kind.element and not kind.lines:
            if kind.condition:
                self.truths[target] = self.evaluator.truth(value, self.scalars, self.truths)
            else:
                self.scalars[target] = self.evaluator.number(value, self.scalars, self.truths)
            return
        for place in self.elements if kind.element else self.places[kind.lines]:
            if kind.condition:
                place.own.truths[target] = self.evaluator.truth(value, place.values, place.truths)
                continue
            found = self.evaluator.number(value, place.values, place.truths)
            place.own.values[target] = self._element(target, found, value) if kind.element else found

    def evaluate(self) -> None:
        """The gradient at the parameters as they are: what ``verify.evaluations`` lets it be."""
        self.evaluations += 1
        for place, start in zip(self.elements, self.start.elements, strict=True):
            drawn = spans.multiply(exactly(float(self.evaluations)), exactly(start["grad"]), self.real)
            there = spans.add(place.values["param"], drawn, self.real)
            place.own.values["grad"] = spans.to_format(there, FORMATS[self.start.gradient])

    def _element(self, target: str, value: Value, term: Term) -> Value:
        if not self.evaluator.kind(term).element:
            value = spans.to_format(value, self.real)
        return spans.to_format(value, FORMATS[self.start.storage]) if target == "param" else value

    def outcome(self) -> Outcome:
        names = [[name for name in element if name != "grad"] for element in self.start.elements]
        return Outcome(
            [{n: place.values[n] for n in mine} for place, mine in zip(self.elements, names, strict=True)],
            {name: self.scalars[name] for name in self.kept},
            {
                name: [place.values[name] for place in self.places[self.kinds[name].lines]]
                for name in self.start.lines
            },
        )


@dataclass
class _Own:
    """What one element or line has of its own."""

    values: dict[str, Value] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)


class _Place:
    """An element or a line: what it has of its own lies over what is the same for more."""

    def __init__(self, layers: Sequence[_Own], update: _Update) -> None:
        self.own = layers[0]
        self.values: ChainMap[str, Value] = ChainMap(*(one.values for one in layers), update.scalars)
        self.truths: ChainMap[str, Truth] = ChainMap(*(one.truths for one in layers), update.truths)


def _has_lines(rule: Rule) -> bool:
    """Does it reduce along lines?"""
    return any(term.text in LINES for statement in rule.update for term in _reductions(statement.value))


def _reductions(term: Term) -> Iterator[Term]:
    """The reductions in an expression, the inner ones first."""
    for arg in term.args:
        yield from _reductions(arg)
    if term.op in REDUCTIONS:
        yield term


def _is_option(condition: Term, options: Mapping[str, bool]) -> bool:
    """Is it a condition of options and nothing else?"""
    if condition.op == "name":
        return condition.text in options
    return condition.op in ("and", "or", "not") and all(_is_option(arg, options) for arg in condition.args)


def _add(a: Value, b: Value) -> Value:
    return ZERO if a is ZERO and b is ZERO else spans.add(a, b, DOUBLE)


def _larger(a: Value, b: Value) -> Value:
    return ZERO if a is ZERO and b is ZERO else spans.largest(a, b)


def _combined(kind: str) -> Callable[[Value, Value], Value]:
    return _larger if kind == "max_abs" else _add


def _square(x: Value) -> Value:
    size = spans.absolute(x)  # so that the ends of a square are the squares of its ends
    return spans.multiply(size, size, DOUBLE)


def _is_nonzero(x: Value) -> Value:
    differs = spans.compare("!=", x, ZERO)
    return between(0.0, 1.0) if differs is None else exactly(float(differs))


_TERMS: dict[str, Callable[..., Value]] = {
    "sum": lambda x: x,
    "mean": lambda x: x,
    "dot": lambda x, y: spans.multiply(x, y, DOUBLE),
    "norm1": spans.absolute,
    "norm2": _square,
    "max_abs": spans.absolute,
    "count_nonzero": _is_nonzero,
}
"""What each reduction forms of elements, in float64."""


def _finished(kind: str, total: Value, size: int) -> Value:
    if kind == "norm2":
        return spans.root(total, DOUBLE)
    return spans.divide(total, exactly(float(size)), DOUBLE) if kind == "mean" else total
