"""An optimizer's configuration as plain data, and an optimizer made from it again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.blocks import BLOCKS, Given
from solvergen.runtime.constraint_setting import CONSTRAINT
from solvergen.runtime.constraints import Constraint, from_data
from solvergen.runtime.definition import Definition, definition_of
from solvergen.runtime.freezing import FROZEN
from solvergen.runtime.groups import MULTIPLIERS
from solvergen.runtime.naming import did_you_mean, listed, quoted
from solvergen.runtime.parameters import ParameterGroup, Parameters, read_parameters

if TYPE_CHECKING:
    from solvergen.runtime.groups import Group
    from solvergen.runtime.optimizer import Optimizer

    O = TypeVar("O", bound=Optimizer)  # noqa: E741

KEYS = ("optimizer", "backend", "nonfinite", "groups")
GROUP_KEYS = ("names", "hyperparameters", "multipliers", "options", FROZEN, BLOCKS, CONSTRAINT)


def describe(
    definition: Definition,
    groups: tuple[Group, ...],
    backend: str,
    nonfinite: str,
    frozen: Collection[str] = (),
    blocks: Mapping[str, Given] | None = None,
    constraints: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The configuration: dicts, lists, strings, numbers, bools and None only, so that JSON can hold it.

    A derived option is None. Names of tensors are given only where there are several groups, and those of
    ``frozen`` ones only where there are some; so are ``blocks`` and ``constraints``, by name.
    """
    given = {} if blocks is None else blocks
    return {
        "optimizer": definition.name,
        "backend": backend,
        "nonfinite": nonfinite,
        "groups": [
            {
                **({"names": list(group.names)} if len(groups) > 1 else {}),
                "hyperparameters": group.hyperparameters,
                "multipliers": group.multipliers,
                "options": group.given_options,
                **({FROZEN: own} if (own := [name for name in group.names if name in frozen]) else {}),
                **({BLOCKS: said} if (said := {n: b for n in group.names if (b := given.get(n))}) else {}),
                **({CONSTRAINT: held} if (held := _of(constraints, group.names)) else {}),
            }
            for group in groups
        ],
    }


def rebuild(cls: type[O], params: Any, config: Mapping[str, Any]) -> O:
    """A new optimizer over ``params``, configured by ``config``. Raises OptimizerError if it doesn't fit."""
    definition = definition_of(cls)
    _check_keys("the configuration", config, KEYS, required=("optimizer", "groups"))
    if config["optimizer"] == f"wrapped_{definition.name}":
        from solvergen.runtime.wrapped_classes import wrapped_class

        return rebuild(cast("type[O]", wrapped_class(cls)), params, config)
    if config["optimizer"] != definition.name:
        raise OptimizerError(
            f"this is a configuration of {config['optimizer']!r:.60}, not of {definition.name!r}"
        )
    read = read_parameters(params)
    for group in read.groups:
        if group.settings:
            raise OptimizerError(
                f"settings come from the configuration, but a group in params has {listed(group.settings)}"
            )
    described = config["groups"]
    if not isinstance(described, (list, tuple)) or not described:
        raise OptimizerError("the configuration's 'groups' must be a list of at least one group")
    groups = []
    for i, entry in enumerate(described):
        _check_keys(f"group {i} of the configuration", entry, GROUP_KEYS, required=("hyperparameters",))
        if len(described) > 1 and "names" not in entry:
            raise OptimizerError(
                f"group {i} of the configuration has no 'names', but there are several groups"
            )
        settings = _settings(definition, entry, i)
        if FROZEN in entry:
            settings[FROZEN] = entry[FROZEN]
        if BLOCKS in entry:
            settings[BLOCKS] = entry[BLOCKS]
        if CONSTRAINT in entry:
            settings[CONSTRAINT] = _constraints(entry[CONSTRAINT], i)
        groups.append(ParameterGroup(_names(entry, i, read.names), settings))
    _check_names(read.names, groups)
    shared = {key: config[key] for key in ("backend", "nonfinite") if key in config}
    return cls(Parameters(read.names, read.arrays, tuple(groups), read.layout), **shared)


def _of(constraints: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    return {name: dict(constraints[name]) for name in names if name in constraints}


def _constraints(described: Any, i: int) -> dict[str, Constraint]:
    """The constraints of a group, by name."""
    what = f"{CONSTRAINT!r} in group {i} of the configuration"
    if not isinstance(described, Mapping):
        raise OptimizerError(f"{what} must be a mapping of names, not {described!r:.60}")
    return {name: from_data(one, f"{what}, that of {quoted(name)},") for name, one in described.items()}


def _names(entry: Mapping[str, Any], i: int, all_names: tuple[str, ...]) -> tuple[str, ...]:
    names = entry.get("names", all_names)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise OptimizerError(
            f"'names' in group {i} of the configuration must be a list of strings, not {names!r:.60}"
        )
    return tuple(names)


def _settings(definition: Definition, entry: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Hyperparameters, multipliers and options of a group, each found where it belongs."""
    known: dict[str, Iterable[str]] = {
        "hyperparameters": definition.hyperparameter_names,
        "multipliers": MULTIPLIERS,
        "options": definition.option_names,
    }
    result: dict[str, Any] = {}
    for part, names in known.items():
        what = f"{part!r} in group {i} of the configuration"
        values = entry.get(part, {})
        if not isinstance(values, Mapping):
            raise OptimizerError(f"{what} must be a mapping, not {values!r:.60}")
        for name in values:
            if name not in names:
                home = next((other for other, theirs in known.items() if name in theirs), None)
                raise HyperparameterError(
                    f"{what} has {quoted(name)}, which "
                    + (f"belongs in {home!r}" if home else f"{definition.class_name} doesn't have")
                    + ("" if home else did_you_mean(name, names))
                )
        result.update(values)
    return result


def _check_keys(what: str, mapping: Any, known: tuple[str, ...], required: tuple[str, ...]) -> None:
    if not isinstance(mapping, Mapping):
        raise OptimizerError(f"{what} must be a mapping, not {mapping!r:.60}")
    for key in mapping:
        if key not in known:
            raise OptimizerError(f"{what} has the unknown key {key!r}" + did_you_mean(key, known))
    for key in required:
        if key not in mapping:
            raise OptimizerError(f"{what} has no {key!r}")


def _check_names(names: tuple[str, ...], groups: list[ParameterGroup]) -> None:
    described = [name for group in groups for name in group.names]
    missing = [name for name in names if name not in set(described)]
    extra = [name for name in described if name not in set(names)]
    if missing or extra or len(described) != len(set(described)):
        findings = []
        if missing:
            findings.append(f"it has no group for {listed(missing)}")
        if extra:
            findings.append(f"it names {listed(extra)}, but there is no such parameter")
        raise OptimizerError(
            "the configuration's groups don't fit the parameters: "
            + ("; ".join(findings) or "a name is in two groups")
        )
