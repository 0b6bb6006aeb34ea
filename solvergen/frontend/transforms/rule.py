"""A rule as transforms see it: declarations, and equations in IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from solvergen.ir.fresh import FreshNames
from solvergen.ir.nodes import Binary, Call, Expression, Name, Number, Unary, names_in, walk
from solvergen.spec.model import Hyperparameter, Option, State, Text


class Illegal(Exception):
    """The transform can't be applied to this rule: why, and perhaps what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Step:
    """``target = value`` under ``when``. ``text``: as it was written; None if it was made or changed.

    The statement ``gradient`` has neither target nor value.
    """

    target: str
    value: Expression | None
    when: Text | None = None
    text: Text | None = None


@dataclass(frozen=True)
class Rule:
    """What a transform takes and gives.

    ``own``: names that the spec declares itself, in place of what a transform would declare.
    """

    hyperparameters: tuple[Hyperparameter, ...]
    options: tuple[Option, ...]
    state: tuple[State, ...]
    steps: tuple[Step, ...]
    own: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """All names that mean something."""
        declared = {x.name for group in (self.hyperparameters, self.options, self.state) for x in group}
        read = {n for step in self.steps if step.value is not None for n in names_in(step.value)}
        return frozenset({*declared, *read, *(step.target for step in self.steps), "param", "grad", "t"})

    def fresh(self) -> FreshNames:
        """Names for temporaries."""
        return FreshNames(self.names)

    def hyperparameter(self, name: str) -> Hyperparameter | None:
        """The hyperparameter of that name."""
        return next((h for h in self.hyperparameters if h.name == name), None)

    def with_hyperparameters(self, *new: Hyperparameter) -> Rule:
        """The rule with more of them; those that the spec declares itself are as it says. Raises Illegal."""
        self._free(h.name for h in new)
        known = {h.name for h in self.hyperparameters}
        added = tuple(h for h in new if h.name not in known)
        return replace(self, hyperparameters=(*self.hyperparameters, *added))

    def with_state(self, *new: State) -> Rule:
        """The rule with more state. Raises Illegal."""
        self._free(s.name for s in new)
        known = {s.name for s in self.state}
        return replace(self, state=(*self.state, *(s for s in new if s.name not in known)))

    def _free(self, names: Iterable[str]) -> None:
        taken = [name for name in names if name in self.names - self.own]
        if taken:
            raise Illegal(
                f"'{taken[0]}' means something in this rule already", "derive a spec that calls it otherwise"
            )

    def evaluates_once(self) -> None:
        """Raises Illegal if the gradient is evaluated again within a step."""
        if any(step.value is None for step in self.steps):
            raise Illegal("the rule evaluates the gradient several times in a step")

    def step_of_param(self) -> tuple[int, Expression]:
        """Where ``param = param - U`` stands, the only assignment of param, and U. Raises Illegal."""
        found = [i for i, step in enumerate(self.steps) if step.target == "param"]
        value = self.steps[found[0]].value if found else None
        simple = (
            len(found) == 1
            and self.steps[found[0]].when is None
            and isinstance(value, Binary)
            and value.op == "-"
            and value.left == Name("param")
        )
        if not simple:
            message = "the rule has no single equation 'param = param - ...', whatever the options are"
            raise Illegal(message, "derive a spec whose last equation is of this form")
        assert isinstance(value, Binary)
        return found[0], value.right


def name(text: str) -> Name:
    """The symbol of that name."""
    return Name(text)


def number(value: float) -> Number:
    """A whole number or another."""
    return Number(float(value), float(value).is_integer())


def add(a: Expression, b: Expression) -> Expression:
    """a + b"""
    return Binary("+", a, b)


def sub(a: Expression, b: Expression) -> Expression:
    """a - b"""
    return Binary("-", a, b)


def mul(a: Expression, b: Expression) -> Expression:
    """a*b"""
    return Binary("*", a, b)


def div(a: Expression, b: Expression) -> Expression:
    """a/b"""
    return Binary("/", a, b)


def call(function: str, *args: Expression) -> Expression:
    """A function of the language."""
    return Call(function, args)


def replaced(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """``expression`` with what ``change`` gives for a node in its place, from the root down."""
    new = change(expression)
    if new is not None:
        return new
    operands = expression.operands
    return expression.with_operands(tuple(replaced(o, change) for o in operands)) if operands else expression


def renamed(expression: Expression, old: str, new: str) -> Expression:
    """``expression`` that reads ``new`` where it read ``old``."""
    return replaced(expression, lambda e: Name(new) if e == Name(old) else None)


def reads(expression: Expression, what: str) -> bool:
    """Does it read a name?"""
    return any(node == Name(what) for node in walk(expression))


def gradient_of(rule: Rule) -> Expression:
    """The gradient of what is minimised: ``grad``, or its negative where an option asks for ascent."""
    for step in rule.steps:
        value = step.value
        if isinstance(value, Call) and value.function == "where" and step.when is None:
            _, yes, no = value.args
            if yes == Unary("-", Name("grad")) and no == Name("grad"):
                return value
    return Name("grad")
