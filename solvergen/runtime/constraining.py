"""Constraints of parameters held after an update: two small rules of their own, run over the parameters.

One is of elements and of whole tensors, the other of lines; ``solvergen build`` writes both into every
package. They read no gradient: where launches want one, they are given the parameter itself, which says that
it takes part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from solvergen.errors import OptimizerError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend, Skip, TensorPlan
from solvergen.runtime.buffers import writable
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.constraints import (
    Constraint,
    MaxNorm,
    MinMax,
    MinMaxNorm,
    NonNegative,
    UnitNorm,
    matrices_along,
)
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group
from solvergen.runtime.plan import AnyLaunchSet, Launches
from solvergen.runtime.tables import Settings, host_step
from solvergen.runtime.tensors import Tensor, check_parameter, make_workspace
from solvergen.runtime.wrappers import PREFIX

ByPosition = Mapping[int, Constraint]


@dataclass(frozen=True)
class Unchanged(Constraint):
    """The parameter stays as it is, and its copy in another type is made anew. Not for users."""


class Constraints:
    """What holds the constraints of some of an optimizer's ``tensors``, ``chosen`` by position.

    Where there are copies of parameters in another type, those of the new values are written with them.
    """

    def __init__(
        self,
        cls: type[Any],
        backend: Backend,
        tensors: Sequence[Tensor],
        chosen: ByPosition,
        copies: Mapping[int, Array] = MappingProxyType({}),
    ) -> None:
        """``cls`` is the optimizer's class; ``copies`` are by position. Raises OptimizerError for axes that
        don't fit a parameter, ArrayError for a parameter or a copy that has been made read-only."""
        self.chosen = dict(sorted(chosen.items()))
        parts: dict[str, list[tuple[int, _Part]]] = {}
        for i, constraint in self.chosen.items():
            part = _part(constraint, tensors[i].plan)
            parts.setdefault(part.rule, []).append((i, part))
        self._holders = [
            _Holder(_definition(cls, rule), backend, tensors, members, copies)
            for rule, members in parts.items()
        ]

    def bound(
        self, members: Sequence[int] | None, first: Callable[[], None] | None, skip: Skip | None = None
    ) -> Callable[[], None] | None:
        """What comes behind an update of these tensors (None: all): ``first``, then their constraints, which
        ``skip`` may leave out with the update.

        Everything is checked and prepared here. None if there is nothing to do.
        """
        wanted = self.chosen.keys() if members is None else self.chosen.keys() & set(members)
        bound = [holder for holder in self._holders if holder.bind(wanted, skip)]
        if not bound:
            return first

        def behind() -> None:
            if first is not None:
                first()
            for holder in bound:
                holder.launch()

        return behind

    def release(self) -> None:
        """Let go of what was bound, launched or not."""
        for holder in self._holders:
            holder.release()


@dataclass(frozen=True, eq=False)
class _Part:
    """What a constraint is to the rules: which one, the tensor as that reads it, hyperparameters, options."""

    rule: str
    shape: tuple[int, ...]
    values: Mapping[str, float]
    options: Mapping[str, bool]


class _Holder:
    """One of the two rules, over the tensors that it holds: each a group of its own.

    Nothing is counted: the rules have no state.
    """

    def __init__(
        self,
        definition: Definition,
        backend: Backend,
        tensors: Sequence[Tensor],
        parts: Sequence[tuple[int, _Part]],
        copies: Mapping[int, Array],
    ) -> None:
        self._definition = definition
        self._backend = backend
        self._positions = [i for i, _ in parts]
        held, groups = [], []
        for place, (i, part) in enumerate(parts):
            plan = tensors[i].plan
            check_parameter(plan)  # what is made of it below could be written as little as it itself
            array = plan.param.reshape(part.shape)
            options, states = _kept(definition, backend, plan.name, copies.get(i), part)
            held.append(Tensor(TensorPlan(plan.name, array, part.shape, states), tensors[i].dtype, place))
            groups.append(
                Group(definition, (plan.name,), _all_values(definition, part), options, {}, _nothing)
            )
        self._arrays: list[Array] = [tensor.plan.param for tensor in held]
        self._bound: AnyLaunchSet | None = None
        self._settings = Settings(groups)
        self._cohorts = Cohorts([Cohort(i, 0, (), [i]) for i in range(len(held))], len(held))
        workspace = make_workspace(definition, backend, held, groups)
        self._launches = Launches(
            definition, backend, held, [group.options for group in groups], workspace, owners=()
        )

    def bind(self, wanted: Container[int], skip: Skip | None) -> bool:
        """Prepare to hold those of these tensors that it is there for; False if there are none."""
        arrays = [
            array if i in wanted else None for i, array in zip(self._positions, self._arrays, strict=True)
        ]
        if all(array is None for array in arrays):
            return False
        self._bound = bound = self._launches.bind(arrays)
        if skip is not None:
            bound.unless(skip)
        bound.follow(self._cohorts)
        self._settings.refresh()
        with np.errstate(all="ignore"):
            rows, wide, _ = host_step(self._definition, self._settings, bound.cohorts, self._backend.table)
            bound.fill(rows, wide)
        return True

    def launch(self) -> None:
        """Hold what is bound."""
        assert self._bound is not None
        self._bound.launch()

    def release(self) -> None:
        """See ``Constraints``."""
        if self._bound is not None:
            self._bound.release()
            self._bound = None


def _nothing() -> None:
    """Hyperparameters of constraints never change."""


def _kept(
    definition: Definition, backend: Backend, name: str, copy: Array | None, part: _Part
) -> tuple[dict[str, bool], tuple[Array | None, ...]]:
    """The options and the states of the rule for the tensor ``name``, which has this copy."""
    if copy is not None:
        writable(copy, f"the copy of {name!r}")
    kept = None if copy is None else backend.dtype_of(copy)
    states = tuple(
        copy.reshape(part.shape) if copy is not None and definition.copies[name] == kept else None
        for name in definition.array_states
    )
    return {**part.options, **({} if kept is None else {f"{PREFIX}keep_{kept}": True})}, states


def _all_values(definition: Definition, part: _Part) -> dict[str, float]:
    return {h.name: part.values.get(h.name, h.default) for h in definition.hyperparameters}


def _part(constraint: Constraint, plan: TensorPlan) -> _Part:
    what = f"the constraint {type(constraint).__name__} of {plan.name!r}"
    if isinstance(constraint, NonNegative):
        return _bounded(plan, 0.0, None)
    if isinstance(constraint, MinMax):
        return _bounded(plan, constraint.low, constraint.high)
    if isinstance(constraint, Unchanged):
        return _Part("_constrain", (math.prod(plan.shape),), {}, {"unchanged": True})
    assert isinstance(constraint, (MaxNorm, MinMaxNorm, UnitNorm))
    unit = isinstance(constraint, UnitNorm)
    values = {}
    if isinstance(constraint, MaxNorm):
        values = {"low": 0.0, "high": constraint.max_value}
    elif isinstance(constraint, MinMaxNorm):
        values = {"low": constraint.min_value, "high": constraint.max_value, "rate": constraint.rate}
    before, along, after = matrices_along(constraint.axis, plan.shape, what)
    if before == after == 1:
        return _Part("_constrain", (along,), values, {"unit": unit})
    if after == 1:  # rows of one matrix, rather than many matrices of one column
        return _Part("_constrain_lines", (before, along), values, {"unit": unit, "along_rows": True})
    return _Part("_constrain_lines", (before, along, after), values, {"unit": unit})


def _bounded(plan: TensorPlan, low: float | None, high: float | None) -> _Part:
    values = {"from_below": float(low is not None), "from_above": float(high is not None)}
    values |= {"low": 0.0 if low is None else low, "high": 0.0 if high is None else high}
    return _Part("_constrain", (math.prod(plan.shape),), values, {"bounded": True})


def _definition(cls: type[Any], rule: str) -> Definition:
    """The rule of the package that ``cls`` comes from."""
    owner = [one for one in cls.__mro__ if "definition" in one.__dict__][-1]
    package = owner.__module__.rpartition(".")[0]
    name = f"{package}.{rule}"
    try:
        found: Definition = import_module(f"{name}.schema").DEFINITION
    except ModuleNotFoundError as missing:
        if missing.name not in (name, f"{name}.schema", package):
            raise
        raise OptimizerError(
            f"{owner.__name__} was built without support for constraints: run solvergen build again, or give "
            "opt.constraint a function"
        ) from None
    return found
