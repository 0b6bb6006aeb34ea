"""Constraints as they are given: in groups, to ``opt.constraint``, in snapshots. By position from here on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solvergen.errors import OptimizerError, SnapshotMismatch
from solvergen.runtime.buffers import type_name
from solvergen.runtime.constraint_setting import CONSTRAINT
from solvergen.runtime.constraints import KINDS, Constraint, from_data
from solvergen.runtime.naming import as_name, did_you_mean, quoted, with_article
from solvergen.runtime.parameters import ParameterGroup, Parameters
from solvergen.runtime.state import SnapshotData
from solvergen.runtime.tensors import Tensor


def read_constraints(read: Parameters) -> tuple[Parameters, dict[int, Constraint]]:
    """What was handed in without the groups' own ``constraint``, and the constraints by position.

    Raises OptimizerError for what is no constraint and for names that the group doesn't have.
    """
    positions = {name: i for i, name in enumerate(read.names)}
    chosen: dict[int, Constraint] = {}
    groups = []
    for i, group in enumerate(read.groups):
        settings = dict(group.settings)
        given = settings.pop(CONSTRAINT, None)
        if given is not None:
            own = {name: positions[name] for name in group.names}
            chosen |= chosen_by(own, given, f"params[{i}][{CONSTRAINT!r}]", read.layout.by_position)
        groups.append(ParameterGroup(group.names, settings))
    return Parameters(read.names, read.arrays, tuple(groups), read.layout), chosen


def chosen_by(
    positions: Mapping[str, int], given: Any, what: str, by_position: bool = False
) -> dict[int, Constraint]:
    """The constraints of the tensors of these names, or of these numbers where they have no names of the
    user's. ``what`` says where they come from."""
    if type(given) in KINDS.values():
        return dict.fromkeys(positions.values(), given)
    if not isinstance(given, Mapping):
        raise OptimizerError(
            f"{what} must be a constraint of solvergen.constraints or a mapping of parameters' names to "
            f"some, not {_shown(given)}"
        )
    chosen = {}
    for key, constraint in given.items():
        name = as_name(key, by_position)
        if not isinstance(name, str) or name not in positions:
            shown = quoted(name) if isinstance(name, str) else f"{name!r:.60}"
            hint = did_you_mean(name, positions) if isinstance(name, str) else ""
            raise OptimizerError(f"{what} has {shown}, which is not the name of a parameter{hint}")
        if type(constraint) not in KINDS.values():
            raise OptimizerError(
                f"{what} has for {quoted(name)} no constraint of solvergen.constraints, but "
                f"{_shown(constraint)}"
            )
        chosen[positions[name]] = constraint
    return chosen


def constraints_in(
    data: SnapshotData, tensors: Sequence[Tensor], has_function: bool, source: str
) -> dict[int, Constraint]:
    """The constraints of a snapshot for an optimizer of these tensors, by position; of those that aren't as
    there, which the comparison says, none.

    Raises SnapshotMismatch for an optimizer that ``has_function`` in their place.
    """
    if not data.constraints:
        return {}
    if has_function:
        raise SnapshotMismatch(
            f"{source} has constraints, and this optimizer has a function in their place: set opt.constraint "
            "to None before, or load with hyperparameters=False",
            (),
        )
    shapes = {tensor.name: tuple(tensor.shape) for tensor in data.tensors}
    return {
        i: from_data(data.constraints[name], f"the constraint of {name!r} in {source}")
        for i, tensor in enumerate(tensors)
        if (name := tensor.plan.name) in data.constraints and shapes.get(name) == tensor.plan.shape
    }


def is_class_of_constraints(value: Any) -> bool:
    """Whether it is what makes constraints, where one is due: it could be called, but does nothing then."""
    return isinstance(value, type) and issubclass(value, Constraint)


def _shown(value: Any) -> str:
    if is_class_of_constraints(value):
        return f"the class {value.__name__}: make one of it, {value.__name__}(...)"
    if isinstance(value, Constraint):
        kind = with_article(type(value).__name__)
        return f"{kind}, which isn't one of {', '.join(KINDS)}: a function can do anything"
    return f"{value!r:.60} ({with_article(type_name(value))})"
