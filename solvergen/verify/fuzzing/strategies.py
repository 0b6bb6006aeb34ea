"""The strategy for whole valid specs. Nothing is drawn and thrown away: what is built is valid.

Which names exist where is followed with a bit for each setting of the options, apart from the compiler's
own guards; what is left unused at the end goes into the last equations.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from solvergen.verify.fuzzing import names as drawn_names
from solvergen.verify.fuzzing.expressions import (
    Surroundings,
    Symbol,
    conditions,
    numbers,
    option_conditions,
    settings_of,
)
from solvergen.verify.fuzzing.kinds import kinds_of
from solvergen.verify.fuzzing.meaning import Evaluator
from solvergen.verify.fuzzing.pools import PROSE, RANGES, WHOLE_RANGES
from solvergen.verify.fuzzing.rounding import DOUBLE
from solvergen.verify.fuzzing.rule import AGAIN, Assignment, OptionRule, Requirement, Rule, StateRule
from solvergen.verify.fuzzing.spans import exactly
from solvergen.verify.fuzzing.spec import DrawnSpec, Range
from solvergen.verify.fuzzing.terms import LINES, VIEWS, WIDER, Term, call, name, names_in, number

_prose = st.sampled_from(PROSE)


@st.composite
def specs(draw: st.DrawFn) -> DrawnSpec:
    """Any valid spec, with every feature of the language. Shrinks towards few short equations."""
    return _Drawing(draw).spec()


class _Drawing:
    """One spec being drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.taken = {"param", "grad", "t"}
        self.fresh = itertools.count(1)

    def count(self, most: int, least: int = 0) -> int:
        return self.draw(st.integers(least, most))

    def chance(self, n: int) -> bool:
        """True in one of ``n``; shrinks to False."""
        return self.draw(st.integers(0, n - 1)) == n - 1

    def new(self, strategy: st.SearchStrategy[str]) -> str:
        """A name that nothing has yet."""
        found = self.draw(strategy)
        if found in self.taken:
            found = next(n for i in self.fresh if (n := f"{found[:50]}_{i}") not in self.taken)
        self.taken.add(found)
        return found

    def spec(self) -> DrawnSpec:
        self.hyperparameters = {
            self.new(drawn_names.arguments): self.chance(5) for _ in range(self.count(4, 1))
        }
        self.ranges = {
            name: self.draw(st.sampled_from(WHOLE_RANGES if whole else RANGES))
            for name, whole in self.hyperparameters.items()
        }
        self.defaults = {name: exactly(_float(r.default)) for name, r in self.ranges.items()}
        self.options = tuple(self.option() for _ in range(self.count(3)))
        self.columns = _columns([option.name for option in self.options])
        self.allowed = (1 << (1 << len(self.options))) - 1
        constraints = tuple(self.constraint() for _ in range(self.draw(st.sampled_from((0, 0, 0, 1, 2)))))
        # Most specs have none: an update of many passes is a long kernel.
        self.reduces = self.chance(3)
        self.words = self.draw(st.sampled_from(((), *VIEWS))) if self.reduces else ()
        self.evaluates = self.chance(6)
        self.states = tuple(self.state() for _ in range(self.count(4)))
        update = self.update()
        rule = Rule(dict(self.hyperparameters), self.options, self.states, constraints, update)
        declared = [*self.hyperparameters, *(o.name for o in self.options), *(s.name for s in self.states)]
        return DrawnSpec(
            self.draw(drawn_names.specs),
            self.draw(st.sampled_from((None, None, None, "Rule", "A", "Adam2", "Numpy", "List", "X_y"))),
            rule,
            self.ranges,
            tuple(self.draw(_prose) or "no" for _ in constraints),
            {name: self.draw(_prose) or "A doc." for name in declared if self.chance(4)},
            self.prose(),
        )

    def prose(self) -> dict[str, str | tuple[str, ...] | dict[str, str]]:
        found: dict[str, str | tuple[str, ...] | dict[str, str]] = {"summary": self.draw(_prose) or "A rule."}
        if self.chance(4):
            found["description"] = self.draw(_prose) or "More."
        if self.chance(4):
            found["conventions"] = tuple(self.draw(_prose) or "One." for _ in range(self.count(2, 1)))
        if self.chance(4):
            found["reference"] = {"title": self.draw(_prose) or "T", "authors": self.draw(_prose) or "N. N."}
        return found

    def settings(self, *, elements: bool = False) -> Surroundings:
        """Where only hyperparameters are known, and options once there are any."""
        symbols = [Symbol(name, -1) for name in self.hyperparameters]
        symbols += [Symbol(name, -1, condition=True) for name in self.columns]
        return Surroundings(tuple(symbols), self.allowed, elements, self.columns)

    def option(self) -> OptionRule:
        found = self.new(drawn_names.arguments)
        if not self.chance(4):
            return OptionRule(found, self.draw(st.booleans()))
        return OptionRule(found, self.derived())

    def derived(self) -> Term:
        """A condition on hyperparameters that their ranges don't decide."""
        hyperparameter = self.draw(st.sampled_from(sorted(self.hyperparameters)))
        inner = _interior(self.ranges[hyperparameter], self.hyperparameters[hyperparameter])
        simple = call(self.draw(st.sampled_from(("!=", "==", ">", "<="))), name(hyperparameter), inner)
        bare = Surroundings(tuple(Symbol(n, -1) for n in self.hyperparameters), 1, False, {})
        if self.chance(3):
            drawn = self.draw(conditions(bare))
            if (
                names_in(drawn)
                and len({self.holds(drawn, changed) for changed in self.nearby()} & {True, False}) == 2
            ):
                return drawn
        return simple

    def nearby(self) -> list[dict[str, float]]:
        """Choices of hyperparameters in their ranges: the defaults, and some others."""
        defaults = {n: v.low for n, v in self.defaults.items()}
        found = [defaults]
        for hyperparameter, r in self.ranges.items():
            for text in ("0", "1", "2", "0.25", "-1", "0.35", "-1.5", "15"):
                whole = self.hyperparameters[hyperparameter]
                if _inside(_float(text), r) and (not whole or _float(text) == int(_float(text))):
                    found.append({**defaults, hyperparameter: _float(text)})
        return found

    def holds(self, term: Term, hyperparameters: Mapping[str, float]) -> bool | None:
        """Whether a condition on hyperparameters and options holds; derived options are decided by them."""
        kinds = kinds_of(Rule(dict(self.hyperparameters), getattr(self, "options", ()), (), (), ()))
        evaluator = Evaluator(kinds, DOUBLE)
        values = {n: exactly(x) for n, x in hyperparameters.items()}
        options: dict[str, bool | None] = {}
        for option in getattr(self, "options", ()):
            default = option.default
            options[option.name] = (
                default if isinstance(default, bool) else evaluator.truth(default, values, {})
            )
        return evaluator.truth(term, values, options)

    def constraint(self) -> Requirement:
        """One that the defaults satisfy; one purely of options leaves fewer settings."""
        pure = bool(self.options) and self.chance(2)
        that = self.draw(option_conditions(self.columns) if pure else conditions(self.settings()))
        defaults = {n: v.low for n, v in self.defaults.items()}
        if names_in(that) and self.holds(that, defaults) is False:
            that = call("not", that)
        if not names_in(that) or self.holds(that, defaults) is not True:
            hyperparameter = self.draw(st.sampled_from(sorted(self.hyperparameters)))
            that = call("==", name(hyperparameter), name(hyperparameter))
        when = self.draw(option_conditions(self.columns)) if self.options and self.chance(3) else None
        holds = settings_of(that, self.columns)
        applies = -1 if when is None else settings_of(when, self.columns)
        if holds is not None and applies is not None:
            self.allowed &= ~applies | holds
        return Requirement(that, when)

    def when(self, among: int) -> tuple[Term | None, int]:
        """A condition on options and the settings under which it holds; none, or some of ``among``."""
        if not self.options or not self.chance(3):
            return None, among
        condition = self.draw(option_conditions(self.columns))
        table = settings_of(condition, self.columns)
        assert table is not None
        if not table & among:
            condition, table = call("not", condition), ~table
        return condition, table & among

    def state(self) -> StateRule:
        found = self.new(drawn_names.symbols)
        when, _ = self.when(self.allowed)
        shape = "scalar" if self.chance(4) else "param"
        if self.reduces and self.chance(4):
            shape = "shared"
        if self.words and self.chance(2):
            shape = self.draw(st.sampled_from(self.words))
        init: Term | None = number("0")
        kind = self.count(5)
        if kind == 3:
            init = self.draw(st.sampled_from((number("1"), call("neg", number("0.5")), number("1e-3"))))
        elif kind == 4:
            init = self.draw(numbers(self.settings(), 2))
        elif kind == 5 and shape == "param":
            init = None
        return StateRule(found, init, shape, when)

    def exists(self, state: StateRule) -> int:
        """The settings in which ``state`` exists."""
        table = -1 if state.when is None else settings_of(state.when, self.columns)
        assert table is not None
        return table

    def update(self) -> tuple[Assignment, ...]:
        self.symbols: dict[str, Symbol] = {s.name: s for s in self.settings().symbols}
        self.symbols["t"] = Symbol("t", -1)
        self.symbols |= {n: Symbol(n, -1, element=True, certain=True) for n in ("param", "grad")}
        for state in self.states:
            element, lines = state.shape == "param", LINES.get(state.shape, "")
            self.symbols[state.name] = Symbol(
                state.name, self.exists(state), element=element, certain=element or bool(lines), lines=lines
            )
        self.temporaries: list[str] = []
        self.statements: list[Assignment] = []
        for _ in range(self.count(6)):
            self.statement()
            if self.evaluates and self.chance(2):
                self.statements.append(AGAIN)
        for state in self.states:
            if all(s.target != state.name for s in self.statements):
                self.assign(state.name, state.when, self.exists(state) & self.allowed)
        self.assign("param", None, self.allowed, self.leftover())
        return tuple(self.statements)

    def statement(self) -> None:
        """One more equation, for whatever target."""
        when, settings = self.when(self.allowed)
        kind = self.count(4)
        targets = [s.name for s in self.states if settings & ~self.exists(s) == 0]
        if kind == 1 and targets:
            self.assign(self.draw(st.sampled_from(targets)), when, settings)
        elif kind == 2 and self.temporaries:
            self.assign(self.draw(st.sampled_from(self.temporaries)), when, settings)
        elif kind == 3:
            self.assign("param", when, settings)
        else:
            target = self.new(drawn_names.symbols)
            element, condition = not self.chance(3), self.chance(5)
            self.temporaries.append(target)
            of_lines = bool(self.words) and not element
            lines = LINES[self.draw(st.sampled_from(self.words))] if of_lines and self.chance(2) else ""
            self.symbols[target] = Symbol(target, 0, element, condition, lines=lines)
            self.assign(target, when, settings)

    def assign(self, target: str, when: Term | None, settings: int, also: tuple[Term, ...] = ()) -> None:
        """``target = ...``, of the kind that ``target`` has, with ``also`` added."""
        symbol = self.symbols[target]
        here = Surroundings(
            tuple(self.symbols.values()),
            settings,
            symbol.element,
            self.columns,
            self.reduces,
            WIDER[symbol.lines],
            self.words,
        )
        value = self.draw(conditions(here) if symbol.condition else numbers(here))
        for term in also:
            value = call("+", value, term)
        self.statements.append(Assignment(target, value, when))
        if target in self.temporaries:
            table = symbol.exists | settings | ~self.allowed
            self.symbols[target] = replace(symbol, exists=table)

    def leftover(self) -> tuple[Term, ...]:
        """Hyperparameters, options and gradient that nothing has used, as terms of a sum."""
        used: set[str] = set()
        for statement in self.statements:
            used |= names_in(statement.value) | (names_in(statement.when) if statement.when else set())
        for option in self.options:
            used |= set() if isinstance(option.default, bool) else names_in(option.default)
        for state in self.states:
            used |= (names_in(state.when) if state.when else set()) | (
                names_in(state.init) if state.init else set()
            )
        found = [call("*", name(h), name("grad")) for h in self.hyperparameters if h not in used]
        found += [
            call("where", name(o.name), name("grad"), name("param"))
            for o in self.options
            if o.name not in used
        ]
        return tuple(found)


def _columns(options: list[str]) -> dict[str, int]:
    """For each option the settings in which it is on."""
    count = 1 << len(options)
    return {o: sum(1 << i for i in range(count) if i >> j & 1) for j, o in enumerate(options)}


def _float(text: str) -> float:
    """A number as YAML 1.2 reads it."""
    return float(int(text, 16)) if text.startswith("0x") else float(text)


def _inside(x: float, r: Range) -> bool:
    tests = {"min": x.__ge__, "max": x.__le__, "above": x.__gt__, "below": x.__lt__}
    return all(tests[bound](_float(text)) is True for bound, text in r.bounds.items())


def _interior(r: Range, whole: bool) -> Term:
    """A number that the hyperparameter can lie on either side of, and be itself."""
    candidates = ("0", "0.5", "1", "0.35", "2", "0.25", "-2.5", "-0.25", "3", "12", "-1")
    for text in candidates:
        x = _float(text)
        step = 1.0 if whole else 2.0**-10
        if (not whole or x == int(x)) and all(_inside(y, r) for y in (x - step, x, x + step)):
            return number(text) if x >= 0 else call("neg", number(text[1:]))
    raise AssertionError(f"nothing lies inside {r}")
