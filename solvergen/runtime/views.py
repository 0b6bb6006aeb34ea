"""Read-only mappings through which users look at an optimizer's tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from solvergen.errors import OptimizerError, UnknownName
from solvergen.runtime.naming import as_name, did_you_mean

T = TypeVar("T")


class _Live(Mapping[str, T]):
    """A mapping that reads an optimizer anew at every access."""

    def __reduce__(self) -> NoReturn:
        raise OptimizerError(
            "what an optimizer shows of its tensors is a view, which can't be pickled or copied: copy what "
            "is in it, {name: array.copy() for name, array in view.items()}, or take opt.state_dict()"
        )


class TensorView(_Live[T]):
    """Something of each tensor, by its name; where parameters have no names of the user's, by its
    position too.

    ``positions`` maps the names shown to positions, ``get`` reads what belongs to a position.
    """

    def __init__(
        self, what: str, positions: Mapping[str, int], get: Callable[[int], T], by_position: bool
    ) -> None:
        self._what = what
        self._positions = positions
        self._get = get
        self._by_position = by_position

    def __getitem__(self, key: str | int) -> T:
        name = as_name(key, self._by_position)
        if isinstance(name, str) and name in self._positions:
            return self._get(self._positions[name])
        raise UnknownName(f"{self._what} has no tensor {key!r:.60}" + did_you_mean(key, self._positions))

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, key: object) -> bool:
        name = as_name(key, self._by_position)
        return isinstance(name, str) and name in self._positions

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self._positions)}>"


class StateView(_Live[TensorView[Any]]):
    """The states by name, and in each the tensors that have it.

    ``absent`` are the states that don't exist under the options, ``shared`` those that no tensor has.
    """

    def __init__(
        self, views: Mapping[str, TensorView[Any]], absent: Sequence[str], shared: Sequence[str] = ()
    ) -> None:
        self._views = views
        self._absent = absent
        self._shared = shared

    def __getitem__(self, name: str) -> TensorView[Any]:
        if isinstance(name, str) and name in self._views:
            return self._views[name]
        if name in self._shared:
            raise UnknownName(
                f"the state {name!r} is one number for the whole optimizer, not one a tensor: "
                f"read opt.shared[{name!r}]"
            )
        if name in self._absent:
            raise UnknownName(f"the state {name!r} doesn't exist under this optimizer's options")
        raise UnknownName(f"no state {name!r:.60}" + did_you_mean(name, self._views))

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<state: {', '.join(self._views)}>"


class SharedView(_Live[float]):
    """The states that are one number for the whole optimizer, by name. ``get`` reads the one at a place.

    ``absent`` are those that don't exist under the options.
    """

    def __init__(self, places: Mapping[str, int], get: Callable[[int], float], absent: Sequence[str]) -> None:
        self._places = places
        self._get = get
        self._absent = absent

    def __getitem__(self, name: str) -> float:
        if isinstance(name, str) and name in self._places:
            return self._get(self._places[name])
        if name in self._absent:
            raise UnknownName(f"the shared state {name!r} doesn't exist under this optimizer's options")
        raise UnknownName(f"no shared state {name!r:.60}" + did_you_mean(name, self._places))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<shared state: {', '.join(self._places)}>"
