"""Frozen tensors: left as they are, as if they never had a gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from solvergen.errors import OptimizerError
from solvergen.runtime.layout import Layout
from solvergen.runtime.naming import as_name, did_you_mean, quoted
from solvergen.runtime.parameters import ParameterGroup, Parameters

FROZEN = "frozen"
"""The key of a group: True, or names of tensors in it."""


class FrozenLayout:
    """A layout in which some tensors have no gradient, whatever is given for them."""

    def __init__(self, layout: Layout, frozen: Collection[int]) -> None:
        self.count = layout.count
        self.by_position = layout.by_position
        self._layout = layout
        self._frozen = frozenset(frozen)

    def flatten(self, gradients: Any) -> Sequence[object]:
        """See ``Layout``."""
        flat = list(self._layout.flatten(gradients))
        for position in self._frozen:
            flat[position] = None
        return flat


def read_frozen(read: Parameters) -> tuple[Parameters, frozenset[int]]:
    """What was handed in without the groups' own ``frozen``, and the positions of the tensors it is about.

    Raises OptimizerError for names that the group doesn't have.
    """
    if not any(FROZEN in group.settings for group in read.groups):
        return read, frozenset()
    positions = {name: i for i, name in enumerate(read.names)}
    found: set[int] = set()
    groups = []
    for i, group in enumerate(read.groups):
        settings = dict(group.settings)
        given = settings.pop(FROZEN, False)
        names = (group.names if given else ()) if isinstance(given, bool) else given
        found |= positions_of(
            {n: positions[n] for n in group.names},
            names,
            f"params[{i}][{FROZEN!r}]",
            read.layout.by_position,
        )
        groups.append(ParameterGroup(group.names, settings))
    return Parameters(read.names, read.arrays, tuple(groups), read.layout), frozenset(found)


def positions_of(
    positions: Mapping[str, int], names: Any, what: str, by_position: bool = False
) -> frozenset[int]:
    """Where the tensors of these names are, or of these numbers where they have no names of the user's.
    ``what`` is where the names come from. Raises OptimizerError."""
    one = as_name(names, by_position)
    listed = (one,) if isinstance(one, str) else names
    # Bytes would be read as numbers, one for each.
    if not isinstance(listed, Iterable) or isinstance(listed, bytes | bytearray):
        raise OptimizerError(f"{what} must be a name or a list of names, not {names!r:.60}")
    found = []
    for given in listed:
        name = as_name(given, by_position)
        if not isinstance(name, str) or name not in positions:
            hint = did_you_mean(name, positions) if isinstance(name, str) else ""
            shown = quoted(name) if isinstance(name, str) else f"{name!r:.60}"
            raise OptimizerError(f"{what} has {shown}, which is not the name of a parameter{hint}")
        found.append(positions[name])
    return frozenset(found)
