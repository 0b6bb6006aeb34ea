"""Wrappers as they are given: to the constructor, in groups, to ``opt.wrappers``. Hyperparameters and options
from here on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.buffers import type_name
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group
from solvergen.runtime.naming import with_article
from solvergen.runtime.parameters import ParameterGroup, Parameters
from solvergen.runtime.wrappers import (
    SAID_BY,
    Wrappers,
    wrapper_hyperparameters,
    wrapper_options,
    wrappers_of,
)

_AGREE = (
    ("accumulate", "wrap_every"),
    ("accumulation", "wrap_mean"),
    ("order", "wrap_clip_sum"),
    ("accumulate", "wrap_accumulate"),
    ("clip_grad_norm (or None)", "wrap_clip_global"),
    ("average (or None)", "wrap_keep_average"),
    ("write_update", "wrap_write_update"),
)
"""What is one matter of all groups: how it is called, and the hyperparameter or option that says it."""


def read_wrappers(
    definition: Definition,
    read: Parameters,
    hyperparameters: Mapping[str, Any],
    options: Mapping[str, Any],
    wrappers: Any,
) -> tuple[Parameters, Mapping[str, Any], Mapping[str, Any]]:
    """What the constructor was given, with wrappers as hyperparameters and options. Raises
    HyperparameterError, OptimizerError."""
    base = _checked(Wrappers() if wrappers is None else wrappers, "wrappers")
    groups = []
    for i, group in enumerate(read.groups):
        settings = dict(group.settings)
        own = base
        if "wrappers" in settings:
            own = _checked(settings.pop("wrappers"), f"'wrappers' in params[{i}]")
            settings = {
                **wrapper_hyperparameters(own, definition),
                **_options(own, definition),
                **settings,
            }
        if own.maximize and settings.get("maximize", options.get("maximize")):
            raise HyperparameterError(
                f"maximize is given twice, to {definition.class_name.removeprefix('Wrapped')} and to its "
                "wrappers, which would descend"
            )
        groups.append(ParameterGroup(group.names, settings))
    return (
        Parameters(read.names, read.arrays, tuple(groups), read.layout),
        {**hyperparameters, **wrapper_hyperparameters(base, definition)},
        {**options, **_options(base, definition)},
    )


def check_agreement(groups: Sequence[Group]) -> None:
    """Raise OptimizerError where groups differ in what is one matter of all."""
    first = {**groups[0].hyperparameters, **groups[0].options}
    for i, group in enumerate(groups):
        own = {**group.hyperparameters, **group.options}
        for what, name in _AGREE:
            if own.get(name) != first.get(name):
                raise OptimizerError(
                    f"params[0] and params[{i}] differ in their wrappers' {what}, which is one for all "
                    "groups: begin a group's wrappers with those of the optimizer, "
                    "dataclasses.replace(wrappers, l2=0)"
                )


def common_wrappers(groups: Sequence[Group]) -> Wrappers:
    """The wrappers that all groups have. Raises OptimizerError where they differ."""
    every = [wrappers_of(group.hyperparameters, group.options) for group in groups]
    if any(one != every[0] for one in every):
        raise OptimizerError("groups have different wrappers; read the wrap_ values of opt.groups[i]")
    return every[0]


def assigned_hyperparameters(
    definition: Definition, groups: Sequence[Group], wrappers: Any, accumulates: bool
) -> dict[str, float]:
    """What ``opt.wrappers = wrappers`` comes to, for an optimizer that ``accumulates`` gradients or doesn't.

    Raises HyperparameterError for what is compiled in otherwise, OptimizerError for what the rule can't have.
    """
    checked = _checked(wrappers, "wrappers")
    wanted = _options(checked, definition)
    if checked.accumulate == 1 and accumulates:
        wanted["wrap_accumulate"] = True  # a sum that is there may be left unused
    for group in groups:
        for name, value in wanted.items():
            if group.options[name] != value:
                raise HyperparameterError(
                    f"these wrappers differ in {SAID_BY[name]} from those that are compiled in; make "
                    "a new optimizer with them"
                )
    return wrapper_hyperparameters(checked, definition)


def _options(wrappers: Wrappers, definition: Definition) -> dict[str, bool]:
    """The options that say what costs memory or a pass. Raises OptimizerError if the rule can't have it."""
    options = wrapper_options(wrappers)
    if definition.evaluations and options.pop("wrap_accumulate"):
        raise OptimizerError(
            f"{definition.class_name.removeprefix('Wrapped')} evaluates the gradient several times in a "
            f"step, so accumulate={wrappers.accumulate} has no gradients to sum up; have the function that "
            f"it calls evaluate {wrappers.accumulate} batches and return the mean of their gradients"
        )
    return options


def _checked(wrappers: Any, what: str) -> Wrappers:
    if not isinstance(wrappers, Wrappers):
        raise HyperparameterError(
            f"{what} must be solvergen.Wrappers(...), not {with_article(type_name(wrappers))}"
        )
    return wrappers
