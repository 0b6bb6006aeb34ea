"""What a spec computes, as terms: drawn by the fuzzer, or read by it from the text of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.verify.fuzzing.reading import read, read_equation
from solvergen.verify.fuzzing.terms import GRADIENT, Term, call, number

if TYPE_CHECKING:
    from solvergen.spec.model import Spec
    from solvergen.spec.source import Text


@dataclass(frozen=True)
class OptionRule:
    """An option; ``default`` is a condition on hyperparameters where it is derived."""

    name: str
    default: bool | Term


@dataclass(frozen=True)
class StateRule:
    """A state; ``init`` is None where it begins as a copy of the parameter. ``shape``: one number an element
    ("param"), one a tensor ("scalar"), one for the whole optimizer ("shared") or one a line (of LINES)."""

    name: str
    init: Term | None
    shape: str = "param"
    when: Term | None = None


@dataclass(frozen=True)
class Assignment:
    """One equation, and the condition on options under which it is there; AGAIN stands for ``gradient``."""

    target: str
    value: Term
    when: Term | None = None


AGAIN = Assignment("grad", Term(GRADIENT))
"""The gradient is evaluated at the parameters as they are."""


@dataclass(frozen=True)
class Requirement:
    """A constraint."""

    that: Term
    when: Term | None = None


@dataclass(frozen=True)
class Rule:
    """A whole update. ``hyperparameters``: each name, and whether it is a whole number."""

    hyperparameters: dict[str, bool]
    options: tuple[OptionRule, ...]
    states: tuple[StateRule, ...]
    constraints: tuple[Requirement, ...]
    update: tuple[Assignment, ...]


def rule_of(spec: Spec) -> Rule:
    """The rule in the texts of ``spec``, read anew. Raises ValueError where they aren't of the language."""

    def term(text: Text) -> Term:
        return read(text.text)

    def perhaps(text: Text | None) -> Term | None:
        return None if text is None else term(text)

    return Rule(
        {h.name: h.integer for h in spec.hyperparameters},
        tuple(
            OptionRule(o.name, o.default if isinstance(o.default, bool) else term(o.default))
            for o in spec.options
        ),
        tuple(
            StateRule(
                s.name,
                _literal(s.init) if isinstance(s.init, float) else None if s.copies_param else term(s.init),
                s.shape,
                perhaps(s.when),
            )
            for s in spec.state
        ),
        tuple(Requirement(term(c.that), perhaps(c.when)) for c in spec.constraints),
        tuple(_assignment(s.equation, perhaps(s.when)) for s in spec.update),
    )


def _assignment(equation: Text, when: Term | None) -> Assignment:
    text = equation.text
    return AGAIN if text.strip() == GRADIENT else Assignment(*read_equation(text), when)


def _literal(value: float) -> Term:
    digits = number(repr(abs(value)))
    return call("neg", digits) if repr(value).startswith("-") else digits
