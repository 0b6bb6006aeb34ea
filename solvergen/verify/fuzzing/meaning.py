"""What expressions compute, worked out from docs/language.md apart from the compiler.

The fuzzer's own reading of the equations (``reading``), its own types (``kinds``), exact rational
arithmetic and mpmath. Each value is known to the bit, or to lie between two doubles (``spans``), or not at
all, where a comparison hangs on bits that the stated accuracy leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from solvergen.verify.fuzzing import real_functions, spans
from solvergen.verify.fuzzing.kinds import Kind, kind_of
from solvergen.verify.fuzzing.rounding import DOUBLE, Format
from solvergen.verify.fuzzing.spans import UNKNOWN, Span, Truth, Value, exactly
from solvergen.verify.fuzzing.terms import COMPARISONS, REDUCTIONS, Term, names_in

MAX_UNROLLED = 64
"""Constant whole exponents of elements and values of lines up to here are products; beyond, the general
power."""

_BINARY: dict[str, Callable[[Value, Value, Format], Value]] = {
    "+": spans.add,
    "-": spans.subtract,
    "*": spans.multiply,
    "/": spans.divide,
    "//": spans.floored_quotient,
    "%": spans.remainder,
}
_EXACT: dict[str, Callable[..., Value]] = {
    "neg": spans.negative,
    "abs": spans.absolute,
    "sign": spans.sign,
    "floor": spans.floor,
    "min": spans.least,
    "max": spans.largest,
    "clip": lambda x, low, high: spans.least(spans.largest(x, low), high),
}
_REAL: dict[str, Callable[[Value, Format], Value]] = {
    "exp": real_functions.exponential,
    "log": real_functions.logarithm,
    "tanh": real_functions.hyperbolic_tangent,
    "cbrt": real_functions.cube_root,
}


def literal(text: str) -> Span:
    """A number as it is spelt: the nearest double."""
    return exactly(float(text))


def reduction_key(term: Term) -> str:
    """Under which the value of a reduction is kept beside those of names."""
    return f"@{id(term)}"


def constant_value(term: Term) -> Value:
    """The value of a number that has no names; UNKNOWN of one that has."""
    return UNKNOWN if names_in(term) else Evaluator({}, DOUBLE).number(term, {}, {})


@dataclass
class Evaluator:
    """Evaluates terms. ``kinds``: of the names; ``real``: the format that elements are computed in."""

    kinds: Mapping[str, Kind]
    real: Format
    _kinds_of: dict[int, Kind] = field(default_factory=dict)
    _exponents: dict[int, Value] = field(default_factory=dict)

    def kind(self, term: Term) -> Kind:
        """The kind of ``term``, remembered."""
        found = self._kinds_of.get(id(term))
        if found is None:
            found = self._kinds_of[id(term)] = kind_of(term, self.kinds)
        return found

    def number(self, term: Term, values: Mapping[str, Value], truths: Mapping[str, Truth]) -> Value:
        """The value of a number, in float64 if it is a scalar, else in the elements' format."""
        if term.op == "number":
            return literal(term.text)
        if term.op == "name":
            return values[term.text]
        if term.op in REDUCTIONS:
            return values[reduction_key(term)]
        element = self.kind(term).element
        form = self.real if element else DOUBLE

        def operand(arg: Term) -> Value:
            value = self.number(arg, values, truths)
            meets = element and not self.kind(arg).element
            return spans.to_format(value, form) if meets else value

        if term.op == "where":
            chosen = self.truth(term.args[0], values, truths)
            if chosen is None:
                return spans.either(operand(term.args[1]), operand(term.args[2]))
            return operand(term.args[1 if chosen else 2])
        if term.op == "**":
            return self._power(term, values, truths, operand)
        args = [operand(arg) for arg in term.args]
        if term.op in _BINARY:
            return _BINARY[term.op](args[0], args[1], form)
        if term.op == "sqrt":
            return spans.root(args[0], form)
        if term.op in _REAL:
            return _REAL[term.op](args[0], form)
        return _EXACT[term.op](*args)

    def _power(
        self,
        term: Term,
        values: Mapping[str, Value],
        truths: Mapping[str, Truth],
        operand: Callable[[Term], Value],
    ) -> Value:
        base, exponent = term.args
        element = self.kind(term).element
        form = self.real if element else DOUBLE
        constant = not names_in(exponent)
        if constant and id(exponent) not in self._exponents:
            self._exponents[id(exponent)] = constant_value(exponent)
        count = self._exponents[id(exponent)] if constant else self.number(exponent, values, truths)
        if constant and (count is UNKNOWN or not count.is_exact):
            return UNKNOWN  # whether it comes to a whole number hangs on bits that aren't known
        written = constant and count is not UNKNOWN and _is_whole(count.low)
        if self.kind(base).element or self.kind(base).lines:
            products = written and count is not UNKNOWN and abs(count.low) <= MAX_UNROLLED
        else:
            products = written or self.kind(exponent).whole
        if products:
            if count is UNKNOWN or not count.is_exact:
                return UNKNOWN
            if math.isfinite(count.low):
                return spans.whole_power(operand(base), int(count.low), form)
        return spans.to_format(real_functions.power(operand(base), operand(exponent)), form)

    def truth(self, term: Term, values: Mapping[str, Value], truths: Mapping[str, Truth]) -> Truth:
        """Whether a condition holds; None if that isn't known."""
        if term.op == "name":
            return truths[term.text]
        if term.op == "not":
            inner = self.truth(term.args[0], values, truths)
            return None if inner is None else not inner
        if term.op in ("and", "or"):
            decisive = term.op == "or"
            both = [self.truth(arg, values, truths) for arg in term.args]
            return decisive if decisive in both else None if None in both else not decisive
        assert term.op in COMPARISONS
        numbers = [self.number(arg, values, truths) for arg in term.args]
        if self.kind(term).element:
            # A scalar that meets an element is rounded; an element has the elements' format already.
            numbers = [spans.to_format(value, self.real) for value in numbers]
        return spans.compare(term.op, numbers[0], numbers[1])


def _is_whole(x: float) -> bool:
    return math.isfinite(x) and abs(x) <= 2.0**53 and x == int(x)
