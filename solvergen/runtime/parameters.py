"""What a user hands in as parameters, as named tensors in groups.

Accepted are one array, a list or tuple of arrays, a mapping of names to arrays, and a list of groups:
mappings that have any of these under ``"params"`` and settings of their own beside it. Tensors of a
mapping go by its keys; others by their position, counted over all groups, as a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from solvergen.errors import ArrayError
from solvergen.runtime.buffers import type_name
from solvergen.runtime.layout import GroupsLayout, Layout, MappingLayout, SequenceLayout, SingleLayout
from solvergen.runtime.naming import with_article


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Names of the tensors of a group, and its own settings (hyperparameters, options, multipliers)."""

    names: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Parameters:
    """All parameters: ``arrays`` as handed in and unchecked, under unique ``names``."""

    names: tuple[str, ...]
    arrays: tuple[object, ...]
    groups: tuple[ParameterGroup, ...]
    layout: Layout


def read_parameters(params: Any) -> Parameters:
    """Name the tensors in ``params``. Raises ArrayError where the structure is none of those above.

    ``[]`` and ``{}`` are refused, since nothing could ever be updated; a group may be empty.
    """
    if isinstance(params, Parameters):
        return params
    if isinstance(params, (list, tuple)) and any(isinstance(entry, Mapping) for entry in params):
        return _read_groups(params)
    names, arrays, layout = _read_plain(params, 0, "params")
    if not names:
        raise ArrayError(f"params is an empty {type_name(params)}: there is nothing to optimise")
    return Parameters(names, arrays, (ParameterGroup(names),), layout)


def has_wrappers(params: Any) -> bool:
    """Whether a group among ``params`` has wrappers of its own. Of what it can't read it has none."""
    if isinstance(params, Parameters):
        return any("wrappers" in group.settings for group in params.groups)
    return isinstance(params, (list, tuple)) and any(
        isinstance(entry, Mapping) and "params" in entry and "wrappers" in entry for entry in params
    )


def _read_groups(groups: list[Any] | tuple[Any, ...]) -> Parameters:
    names: list[str] = []
    arrays: list[object] = []
    parts: list[Layout] = []
    result: list[ParameterGroup] = []
    for i, group in enumerate(groups):
        if not isinstance(group, Mapping):
            raise ArrayError(
                f"params[{i}] is {with_article(type_name(group))} among groups; "
                "either all entries are groups, "
                "{'params': ..., 'lr': ...}, or all are arrays"
            )
        if "params" not in group:
            raise ArrayError(
                f"params[{i}] has no 'params' (it has {', '.join(map(repr, group)) or 'nothing'}); "
                "a group is {'params': ..., 'lr': ...}"
            )
        new_names, new_arrays, layout = _read_plain(group["params"], len(names), f"params[{i}]['params']")
        result.append(ParameterGroup(new_names, {k: v for k, v in group.items() if k != "params"}))
        names.extend(new_names)
        arrays.extend(new_arrays)
        parts.append(layout)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ArrayError(f"two parameters have the name {twice[0]!r}; names are unique over all groups")
    return Parameters(tuple(names), tuple(arrays), tuple(result), GroupsLayout(tuple(parts), tuple(names)))


def _read_plain(params: Any, position: int, what: str) -> tuple[tuple[str, ...], tuple[object, ...], Layout]:
    if isinstance(params, Mapping):
        for name, array in params.items():
            if not isinstance(name, str) or not name:
                raise ArrayError(f"{what} has the key {name!r}; names of parameters are strings, not empty")
            _check_flat(f"{what}[{name!r}]", array)
        names = tuple(params)
        return names, tuple(params.values()), MappingLayout(names)
    if isinstance(params, (list, tuple)):
        for i, array in enumerate(params):
            _check_flat(f"{what}[{i}]", array)
        names = tuple(str(position + i) for i in range(len(params)))
        return names, tuple(params), SequenceLayout(len(params))
    if params is None:
        raise ArrayError(f"{what} is None: there is nothing to optimise")
    if isinstance(params, Iterator) or hasattr(params, "__next__"):
        raise ArrayError(
            f"{what} is {with_article(type_name(params))}, which can be read once only; pass list(...) of it"
        )
    return (str(position),), (params,), SingleLayout()


def _check_flat(what: str, array: object) -> None:
    if isinstance(array, (list, tuple, Mapping)):
        raise ArrayError(
            f"{what} is {with_article(type_name(array))}: parameters don't nest; make them one flat "
            "list or mapping"
        )
