"""Hyperparameters: one set a group of parameters, checked whenever one changes.

Values are held as floats. A change either passes every check and takes effect, or raises and leaves
everything as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from solvergen.errors import HyperparameterError, UnknownAttribute
from solvergen.runtime.buffers import type_name
from solvergen.runtime.definition import Definition, Hyperparameter
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.naming import did_you_mean, with_article

MULTIPLIERS = {
    "lr_mult": ("lr",),
    "decay_mult": ("weight_decay", "wrap_l2", "wrap_l1", "wrap_weight_decay"),
}
"""A group's multipliers, and the hyperparameters that each multiplies, as far as the rule has them."""


class Group:
    """One group: ``names`` of its tensors, its ``options``, and its hyperparameters as attributes.

    ``lr_mult`` and ``decay_mult`` multiply ``lr`` and ``weight_decay`` (and the decay of wrappers) for this
    group; the product is what the update sees. Assign hyperparameters and multipliers one by one, or several
    at once by ``set``. Options are fixed when the optimizer is made.
    """

    __slots__ = ("_definition", "_given", "_multipliers", "_on_change", "_options", "_values", "names")

    names: tuple[str, ...]
    _definition: Definition
    _given: dict[str, bool | None]
    _multipliers: dict[str, float]
    _on_change: Callable[[], None]
    _options: Mapping[str, bool]
    _values: dict[str, float]

    def __init__(
        self,
        definition: Definition,
        names: tuple[str, ...],
        values: Mapping[str, Any],
        options: Mapping[str, Any],
        multipliers: Mapping[str, Any],
        on_change: Callable[[], None],
    ) -> None:
        put = super().__setattr__
        put("names", names)
        put("_definition", definition)
        put("_on_change", on_change)
        put("_given", _given_options(definition, options))
        put("_values", {h.name: checked_value(h, values[h.name]) for h in definition.hyperparameters})
        put("_multipliers", dict.fromkeys(multipliers_of(self._values), 1.0))
        put("_options", MappingProxyType(dict(self._resolved(self._values))))
        self._check(self._values, self._checked_multipliers(multipliers))
        self._multipliers.update(self._checked_multipliers(multipliers))

    @property
    def options(self) -> Mapping[str, bool]:
        """The options of this group, derived ones resolved. Read-only."""
        return self._options

    @property
    def hyperparameters(self) -> dict[str, float | int]:
        """A copy of all hyperparameters, as they were given (multipliers not applied)."""
        return {h.name: _shown(h, self._values[h.name]) for h in self._definition.hyperparameters}

    @property
    def multipliers(self) -> dict[str, float]:
        """A copy of the multipliers that this rule has."""
        return dict(self._multipliers)

    @property
    def given_options(self) -> dict[str, bool | None]:
        """The options as they were given: None where one is derived."""
        return dict(self._given)

    def effective(self) -> dict[str, float]:
        """The hyperparameters that the update sees: multipliers applied, in float64."""
        return effective(self._values, self._multipliers)

    def set(self, **changes: Any) -> None:
        """Change hyperparameters or multipliers together: all of them, or none if one isn't allowed."""
        uninterrupted(self.check(changes))

    def check(self, changes: Mapping[str, Any]) -> Callable[[], None]:
        """Check ``changes`` and return the function that makes them. Raises HyperparameterError."""
        values, multipliers = dict(self._values), {}
        for name, value in changes.items():
            if name in MULTIPLIERS:
                multipliers[name] = value
            elif name in values:
                values[name] = checked_value(self._hyperparameter(name), value)
            else:
                self._unknown(name)
        changed = self._checked_multipliers(multipliers)
        self._check(values, changed)

        def commit() -> None:
            self._on_change()  # first: should an interrupt come in between, what changed is noticed
            self._values.update(values)
            self._multipliers.update(changed)

        return commit

    def restore(self, values: Mapping[str, float], multipliers: Mapping[str, float]) -> None:
        """Take over values that were checked already, from a snapshot.

        The options stay; one that would be derived otherwise from these values now counts as given.
        """
        self._on_change()
        self._values.update({name: float(value) for name, value in values.items()})
        self._multipliers.update(
            {name: float(multipliers[name]) for name in self._multipliers if name in multipliers}
        )
        derived = self._definition.options_of(**self._values)
        for name, value in self._options.items():
            if self._given[name] is None and derived[name] != value:
                self._given[name] = value

    def _check(self, values: Mapping[str, float], multipliers: Mapping[str, float]) -> None:
        effective(values, {**self._multipliers, **multipliers})
        for name, value in self._resolved(values).items():
            if value != self._options[name]:
                changed = [f"{n}={v!r}" for n, v in values.items() if v != self._values[n]]
                raise HyperparameterError(
                    f"{', '.join(changed)} would turn {name} {'on' if value else 'off'}, which decides what "
                    f"the optimizer keeps and was derived when it was made; pass {name}={value} explicitly "
                    f"when making it (or {name}={self._options[name]} to keep it so), and change it then"
                )
        wrong = self._definition.constraints(**values, **self._options)
        if wrong is not None:
            raise HyperparameterError(wrong)

    def _resolved(self, values: Mapping[str, float]) -> dict[str, bool]:
        """All options under these values."""
        derived = self._definition.options_of(**values)
        return {name: derived[name] if given is None else given for name, given in self._given.items()}

    def _checked_multipliers(self, multipliers: Mapping[str, Any]) -> dict[str, float]:
        result = {}
        for name, value in multipliers.items():
            if name not in self._multipliers:
                raise HyperparameterError(
                    f"{self._definition.class_name} has no {MULTIPLIERS[name][0]}, so {name} would do nothing"
                )
            result[name] = checked_multiplier(name, value)
        return result

    def _hyperparameter(self, name: str) -> Hyperparameter:
        return next(h for h in self._definition.hyperparameters if h.name == name)

    def _unknown(self, name: str) -> NoReturn:
        if name in self._definition.option_names:
            raise UnknownAttribute(
                f"{name} is an option: it is compiled in and can't change; make a new "
                f"{self._definition.class_name} with {name}=... (read it as .options[{name!r}])"
            )
        if name in MULTIPLIERS:
            raise UnknownAttribute(
                f"{self._definition.class_name} has no {MULTIPLIERS[name][0]}, so it has no {name}"
            )
        raise UnknownAttribute(
            f"a group of {self._definition.class_name} has no {name!r}"
            + did_you_mean(name, [*self._values, *self._multipliers])
        )

    def __getattr__(self, name: str) -> Any:
        # Only called for names that aren't attributes otherwise.
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values:
            return _shown(self._hyperparameter(name), self._values[name])
        if name in self._multipliers:
            return self._multipliers[name]
        self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise UnknownAttribute(f"{name} of a group can't be assigned")
        self.set(**{name: value})

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values, *self._multipliers})

    def __repr__(self) -> str:
        shown = {**self.hyperparameters, **self._multipliers, **self._options}
        count = f"{len(self.names)} tensor{'' if len(self.names) == 1 else 's'}"
        return f"<group of {count}: {', '.join(f'{k}={v!r}' for k, v in shown.items())}>"


def as_float(value: Any) -> float:
    """A real number as a float. Raises OverflowError where it is finite, but too large for one."""
    number = float(value)
    if math.isinf(number) and value != number:  # NumPy's longer floats just become infinite
        raise OverflowError
    return number


def as_number(name: str, value: Any) -> float:
    """``value`` as a float. Raises HyperparameterError for what isn't a real number, NaN and infinities."""
    if isinstance(value, (bool, np.bool_)):
        raise HyperparameterError(f"{name} must be a number, not {value!r}")
    if not isinstance(value, Real):
        hint = "; pass float(x)" if hasattr(value, "__float__") else ""
        raise HyperparameterError(
            f"{name} must be a number, not {value!r:.60} ({with_article(type_name(value))}){hint}"
        )
    try:
        number = as_float(value)
    except OverflowError:
        raise HyperparameterError(f"{name} is too large for a float: {value!r:.60}") from None
    if number != number:
        raise HyperparameterError(f"{name} is NaN")
    if math.isinf(number):
        raise HyperparameterError(f"{name} must be a finite number, not {value!r}")
    return number


def checked_value(hyperparameter: Hyperparameter, value: Any) -> float:
    """``value`` as a float within the range of ``hyperparameter``. Raises HyperparameterError."""
    h = hyperparameter
    number = as_number(h.name, value)
    if h.integer and not (number.is_integer() and abs(number) <= 2.0**53):
        raise HyperparameterError(f"{h.name} must be a whole number (of at most 2**53), not {value!r}")
    inside = (
        (h.min is None or number >= h.min)
        and (h.max is None or number <= h.max)
        and (h.above is None or number > h.above)
        and (h.below is None or number < h.below)
    )
    if not inside:
        raise HyperparameterError(f"{h.name} must be {range_text(h)}, not {value!r}")
    return number


def is_allowed(hyperparameter: Hyperparameter, value: float) -> bool:
    """Whether ``checked_value`` takes it."""
    try:
        checked_value(hyperparameter, value)
    except HyperparameterError:
        return False
    return True


def checked_multiplier(name: str, value: Any) -> float:
    """``value`` as a float, finite and not negative. Raises HyperparameterError."""
    number = as_number(name, value)
    if number < 0.0:
        raise HyperparameterError(f"{name} must be a finite number of at least 0, not {value!r}")
    return number


def effective(values: Mapping[str, float], multipliers: Mapping[str, float]) -> dict[str, float]:
    """The hyperparameters that the update sees: multipliers applied, in float64.

    Raises HyperparameterError where a product is too large for a float.
    """
    result = dict(values)
    for name, factor in multipliers.items():
        if factor == 1.0:
            continue
        for multiplied in MULTIPLIERS[name]:
            if multiplied in result:
                result[multiplied] *= factor
                if math.isinf(result[multiplied]):
                    raise HyperparameterError(f"{multiplied} times {name} is too large for a float")
    return result


def multipliers_of(hyperparameters: Container[str]) -> list[str]:
    """The multipliers that a rule with these hyperparameters has."""
    return [name for name, of in MULTIPLIERS.items() if any(one in hyperparameters for one in of)]


def range_text(h: Hyperparameter) -> str:
    """The allowed range in words: ``at least 0 and below 1``."""
    limits = (("at least", h.min), ("above", h.above), ("at most", h.max), ("below", h.below))
    return " and ".join(f"{word} {limit:.17g}" for word, limit in limits if limit is not None)


def _given_options(definition: Definition, options: Mapping[str, Any]) -> dict[str, bool | None]:
    given: dict[str, bool | None] = {}
    for option in definition.options:
        value = options.get(option.name, option.default)
        if value is None and option.default is None:
            given[option.name] = None
        elif isinstance(value, (bool, np.bool_)):
            given[option.name] = bool(value)
        else:
            derived = ", or None to derive it" if option.default is None else ""
            raise HyperparameterError(f"{option.name} must be True or False{derived}, not {value!r:.60}")
    return given


def _shown(hyperparameter: Hyperparameter, value: float) -> float | int:
    return int(value) if hyperparameter.integer else value
