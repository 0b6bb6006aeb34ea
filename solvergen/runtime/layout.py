"""How parameters were handed in, which is how gradients come back.

A layout turns the gradients of one step into a flat sequence in the order of the tensors, None for a
tensor that has none. This runs in every step: lists pass through as they are, mappings are read by one
call of ``operator.itemgetter``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from solvergen.errors import ArrayError
from solvergen.runtime.buffers import type_name
from solvergen.runtime.naming import listed, with_article


class Layout(Protocol):
    """The shape in which gradients are expected."""

    count: int
    """Number of tensors."""

    by_position: bool
    """Whether tensors are known by their position (rather than by names of the user's)."""

    def flatten(self, gradients: Any) -> Sequence[object]:
        """The gradients as one list or tuple. Raises ArrayError that says what is missing or too much."""
        ...


class SingleLayout:
    """One array."""

    count = 1
    by_position = True

    def flatten(self, gradients: Any) -> Sequence[object]:
        """A tuple of the one gradient."""
        if isinstance(gradients, (list, tuple, Mapping)):
            raise ArrayError(
                "the parameter is one array, so its gradient is one array, not "
                f"{with_article(type_name(gradients))}"
            )
        return (gradients,)


class SequenceLayout:
    """A list or tuple of arrays."""

    by_position = True

    def __init__(self, count: int) -> None:
        self.count = count

    def flatten(self, gradients: Any) -> Sequence[object]:
        """The list or tuple itself."""
        if type(gradients) is not list and type(gradients) is not tuple:
            if not isinstance(gradients, (list, tuple)):
                raise ArrayError(
                    f"the parameters are a list, so gradients are a list or tuple of as many, not a "
                    f"{type_name(gradients)}"
                )
            gradients = list(gradients)
        if len(gradients) != self.count:
            raise ArrayError(
                f"there are {self.count} parameters, but {len(gradients)} gradients; "
                "give None for a parameter to be left alone"
            )
        result: Sequence[object] = gradients
        return result


class MappingLayout:
    """A mapping of names to arrays."""

    by_position = False

    def __init__(self, names: tuple[str, ...]) -> None:
        self.count = len(names)
        self._names = names
        self._get = picker(names)

    def flatten(self, gradients: Any) -> Sequence[object]:
        """The mapping's values in the order of the parameters."""
        if not isinstance(gradients, Mapping):
            raise ArrayError(
                f"the parameters are a mapping, so gradients are a mapping with the same names, not a "
                f"{type_name(gradients)}"
            )
        if len(gradients) == self.count:
            try:
                return self._get(gradients)
            except KeyError:
                pass
        known = set(self._names)
        missing = [name for name in self._names if name not in gradients]
        extra = [name for name in gradients if name not in known]
        findings = []
        if missing:
            findings.append(f"no gradient for {listed(missing)} (give None for a parameter to be left alone)")
        if extra:
            findings.append(f"a gradient for {listed(extra)}, but no such parameter")
        raise ArrayError("; ".join(findings))


class GroupsLayout:
    """A list of groups. Gradients come group by group, each laid out as the group's parameters, or flat:
    one list over all tensors, or one mapping over all names."""

    def __init__(self, parts: tuple[Layout, ...], names: tuple[str, ...]) -> None:
        self.count = len(names)
        self.by_position = all(part.by_position for part in parts)
        self._parts = parts
        self._flat = SequenceLayout(len(names))
        self._named = MappingLayout(names)

    def flatten(self, gradients: Any) -> Sequence[object]:
        """One list over all tensors."""
        if isinstance(gradients, Mapping):
            return self._named.flatten(gradients)
        if not isinstance(gradients, (list, tuple)):
            raise ArrayError(
                "the parameters are in groups, so gradients are a list with one entry a group, or one list "
                f"or mapping over all tensors, not {with_article(type_name(gradients))}"
            )
        grouped = any(isinstance(entry, (list, tuple, Mapping)) for entry in gradients)
        if not grouped and (len(gradients) == self.count or len(gradients) != len(self._parts)):
            return self._flat.flatten(gradients)
        if len(gradients) != len(self._parts):
            raise ArrayError(
                f"there are {len(self._parts)} groups of parameters, but {len(gradients)} of gradients"
            )
        flat: list[object] = []
        for part, entry in zip(self._parts, gradients, strict=True):
            # None for a whole group leaves all of its tensors alone.
            flat.extend((None,) * part.count if entry is None else part.flatten(entry))
        return flat


def picker(keys: Sequence[Any]) -> Callable[[Any], Sequence[object]]:
    """A function that reads ``keys`` of a mapping or sequence, in this order, at C's speed."""
    if len(keys) > 1:
        return itemgetter(*keys)
    if not keys:
        return lambda container: ()
    key = keys[0]
    return lambda container: (container[key],)
