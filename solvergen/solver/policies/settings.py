"""What a policy is made of: Caffe's fields, and settings of its own by name, each checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.error import SolverParametersError
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.model import CONVERSIONS, SolverParameters
from solvergen.solver.policies.arithmetic import NetType


@dataclass(frozen=True)
class Given:
    """What a policy may read. ``length``: for how many iterations (max_iter, less a warm-up before it).

    The methods take a setting by its name, and ``finish`` complains about those that nobody took.
    """

    name: str
    params: SolverParameters
    settings: Mapping[str, Any]
    length: int
    type_: NetType = "float32"
    _known: set[str] = field(default_factory=set)

    @property
    def base(self) -> float:
        """Caffe's base_lr."""
        return self.params.base_lr

    @property
    def gamma(self) -> float:
        """Caffe's gamma, which must not be negative."""
        if not self.params.gamma >= 0.0:
            self.refuse_field("gamma", f"must be at least 0 with lr_policy {self.name!r}")
        return self.params.gamma

    @property
    def stepsize(self) -> int:
        """Caffe's stepsize, which must be above 0."""
        if self.params.stepsize <= 0:
            self.refuse_field("stepsize", f"must be above 0 with lr_policy {self.name!r}: give one")
        return self.params.stepsize

    def number(
        self,
        name: str,
        default: float,
        *,
        least: float = -math.inf,
        most: float = math.inf,
        above: float = -math.inf,
    ) -> float:
        """A number within bounds."""
        value = self._take(name, default)
        if isinstance(value, (bool, str, tuple)):
            self._refuse(name, f"must be a number, not {quoted(value)}")
        if not math.isfinite(value) or not least <= value <= most or not value > above:
            self._refuse(name, f"must be {_range(least, most, above)}, not {value!r}")
        return float(value)

    def count(self, name: str, default: int, *, least: int = 0) -> int:
        """A whole number of at least ``least``."""
        value = self.number(name, default, least=least)
        if not value.is_integer():
            self._refuse(name, f"must be a whole number, not {value!r}")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or False."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            self._refuse(name, f"must be true or false, not {quoted(value)}")
        return value

    def word(self, name: str, default: str, words: tuple[str, ...] = ()) -> str:
        """One of ``words``; any if there are none."""
        value = self._take(name, default)
        if not isinstance(value, str):
            self._refuse(name, f"must be a string, not {quoted(value)}")
        if words and value not in words:
            self._refuse(name, f"can't be {quoted(value)}; {meant(value, words)}")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers, which must be there."""
        value = self._take(name, None)
        if value is None:
            self._refuse(name, "is missing: give a list of numbers")
        listed = value if isinstance(value, tuple) else (value,)
        for entry in listed:
            if isinstance(entry, (bool, str)) or not math.isfinite(entry):
                self._refuse(name, f"must be a list of numbers, not of {quoted(entry)}")
        return tuple(map(float, listed))

    def finish(self) -> None:
        """Raises SolverParametersError for a setting that the policy doesn't have."""
        for name in self.settings:
            if name in self._known:
                continue
            if name in CONVERSIONS:
                self._refuse(name, "is a parameter of its own: give it beside the policy")
            self._refuse(name, f"isn't one of its settings; {meant(name, sorted(self._known))}")

    def refuse_field(self, name: str, said: str) -> NoReturn:
        """Raises SolverParametersError about one of Caffe's fields."""
        raise SolverParametersError([self.params.finding(name, f"{name} {said}")])

    def refuse(self, said: str) -> NoReturn:
        """Raises SolverParametersError about the policy."""
        where = "policy" if self.params.has("policy") else "lr_policy"
        raise SolverParametersError([self.params.finding(where, f"lr_policy {self.name!r}: {said}")])

    def _take(self, name: str, default: Any) -> Any:
        self._known.add(name)
        return self.settings.get(name, default)

    def _refuse(self, name: str, said: str) -> NoReturn:
        self.refuse(f"{name} {said}")


def _range(least: float, most: float, above: float) -> str:
    parts = []
    if least > -math.inf:
        parts.append(f"at least {least:g}")
    if above > -math.inf:
        parts.append(f"above {above:g}")
    if most < math.inf:
        parts.append(f"at most {most:g}")
    return " and ".join(parts) or "finite"
