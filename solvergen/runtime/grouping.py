"""From what a constructor is given to an optimizer's groups, and the cohorts that they begin as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from solvergen.errors import HyperparameterError
from solvergen.runtime.cohorts import Cohort
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import MULTIPLIERS, Group
from solvergen.runtime.naming import did_you_mean
from solvergen.runtime.parameters import Parameters


def make_groups(
    definition: Definition,
    read: Parameters,
    hyperparameters: Mapping[str, Any],
    options: Mapping[str, Any],
    on_change: Callable[[], None],
) -> tuple[Group, ...]:
    """The groups: what the constructor was given, overridden by each group's own settings.

    Raises HyperparameterError for names that the rule doesn't have and for values that aren't allowed.
    """
    allowed = [*definition.hyperparameter_names, *definition.option_names, *MULTIPLIERS]
    for name in (*hyperparameters, *options):
        if name not in allowed:
            raise HyperparameterError(
                f"{definition.class_name} has no {name!r}" + did_you_mean(name, allowed)
            )
    defaults = {h.name: h.default for h in definition.hyperparameters} | dict(hyperparameters)
    groups = []
    for i, group in enumerate(read.groups):
        for name in group.settings:
            if name not in allowed:
                raise HyperparameterError(
                    f"params[{i}] has the unknown setting {name!r}" + did_you_mean(name, ["params", *allowed])
                )
        groups.append(
            Group(
                definition,
                group.names,
                {name: group.settings.get(name, value) for name, value in defaults.items()},
                {
                    name: group.settings.get(name, options.get(name))
                    for name in definition.option_names
                    if name in group.settings or name in options
                },
                {name: group.settings[name] for name in MULTIPLIERS if name in group.settings},
                on_change,
            )
        )
    return tuple(groups)


def first_cohorts(
    definition: Definition, groups: tuple[Group, ...], positions: Mapping[str, int]
) -> list[Cohort]:
    """One cohort a group, with no updates counted. ``positions`` has the tensors by name."""
    cohorts = []
    for g, group in enumerate(groups):
        initial = definition.initial_state(**group.effective(), **group.options)
        scalars = tuple(float(initial[name]) for name in definition.scalar_states)
        cohorts.append(Cohort(g, 0, scalars, [positions[name] for name in group.names]))
    return cohorts
