"""Conditions on compile-time options, as truth tables.

A guard says under which settings of the options a statement exists. Options are few (the spec
reader allows ``MAX_OPTIONS``), so a guard is one integer with a bit for each setting; implication,
negation and equality are then exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from solvergen.ir.nodes import Expression, Logic, Name, Unary

MAX_OPTIONS = 10


@dataclass(frozen=True, slots=True)
class Guard:
    """The set of option settings in which something exists.

    Bit ``i`` of ``table`` belongs to the setting in which option ``j`` is bit ``j`` of ``i``.
    """

    options: tuple[str, ...]
    table: int

    @classmethod
    def always(cls, options: tuple[str, ...]) -> Guard:
        """Every setting."""
        return cls(options, (1 << (1 << len(options))) - 1)

    @classmethod
    def never(cls, options: tuple[str, ...]) -> Guard:
        """No setting at all."""
        return cls(options, 0)

    @classmethod
    def option(cls, options: tuple[str, ...], name: str) -> Guard:
        """The settings in which the option ``name`` is on."""
        return cls(options, _column(len(options), options.index(name)))

    @property
    def is_always(self) -> bool:
        """Does it hold in every setting?"""
        return self == Guard.always(self.options)

    @property
    def is_never(self) -> bool:
        """Does it hold in none?"""
        return self.table == 0

    def __and__(self, other: Guard) -> Guard:
        return Guard(self.options, self.table & other.table)

    def __or__(self, other: Guard) -> Guard:
        return Guard(self.options, self.table | other.table)

    def __invert__(self) -> Guard:
        return Guard(self.options, self.table ^ Guard.always(self.options).table)

    def implies(self, other: Guard) -> bool:
        """Does ``other`` hold wherever this does?"""
        return self.table & ~other.table == 0

    def holds(self, setting: Mapping[str, bool]) -> bool:
        """Does it hold in this setting of the options?"""
        index = sum(1 << j for j, name in enumerate(self.options) if setting[name])
        return bool(self.table >> index & 1)

    def settings(self) -> tuple[dict[str, bool], ...]:
        """Every setting of the options in which this guard holds."""
        return tuple(
            {name: bool(i >> j & 1) for j, name in enumerate(self.options)}
            for i in range(1 << len(self.options))
            if self.table >> i & 1
        )

    def cubes(self) -> tuple[tuple[tuple[str, bool], ...], ...]:
        """A short sum of products: each inner tuple is a conjunction of (option, value).

        Each is grown from a setting that no other covers, by leaving out one option after the other
        as long as it stays within the guard.
        """
        remaining, chosen = self, []
        while not remaining.is_never:
            setting = remaining.table.bit_length() - 1
            literals = [(name, bool(setting >> j & 1)) for j, name in enumerate(self.options)]
            for literal in reversed(tuple(literals)):
                shorter = [other for other in literals if other != literal]
                if self._cube(shorter).implies(self):
                    literals = shorter
            chosen.append(tuple(literals))
            remaining = remaining & ~self._cube(literals)
        return tuple(chosen)

    def _cube(self, literals: Sequence[tuple[str, bool]]) -> Guard:
        cube = Guard.always(self.options)
        for name, value in literals:
            option = Guard.option(self.options, name)
            cube = cube & (option if value else ~option)
        return cube

    def text(
        self,
        *,
        conjunction: str = " and ",
        disjunction: str = " or ",
        negation: str = "not ",
        name: str = "{}",
    ) -> str:
        """The guard as a formula, by default in Python's spelling; ``name`` formats an option."""
        if self.is_never:
            return "False"
        if self.is_always:
            return "True"
        products = [
            conjunction.join((("" if value else negation) + name.format(option)) for option, value in cube)
            for cube in self.cubes()
        ]
        if len(products) == 1:
            return products[0]
        return disjunction.join(f"({p})" if conjunction.strip() in p.split() else p for p in products)


@cache
def _column(count: int, bit: int) -> int:
    """The truth table, over ``count`` options, of the option with number ``bit``."""
    return sum(1 << i for i in range(1 << count) if i >> bit & 1)


def guard_of(expression: Expression, options: tuple[str, ...]) -> Guard | None:
    """The settings in which ``expression`` holds; None if it isn't purely of options."""
    if isinstance(expression, Name):
        return Guard.option(options, expression.name) if expression.name in options else None
    if isinstance(expression, Unary) and expression.op == "not":
        inner = guard_of(expression.operand, options)
        return None if inner is None else ~inner
    if isinstance(expression, Logic):
        left, right = guard_of(expression.left, options), guard_of(expression.right, options)
        if left is None or right is None:
            return None
        return left & right if expression.op == "and" else left | right
    return None
