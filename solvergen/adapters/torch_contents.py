"""What torch's own files hold, for people to look at and to compare: ``snapshot inspect`` and ``diff``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvergen.adapters.torch_files import (
    array_of,
    check_plain,
    given_names,
    is_optimizer,
    model_from,
    parts_of,
    read,
)
from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.solver.files.contents import Contents, of_model

# isort: split
# After torch_files, which says what to do where there is no torch.
import torch

_MOST_VALUES = 1 << 20
"""How many values are read from one file. Lists in it may hold one another many times over, or themselves, so
that a small file has any number of values."""


def contents(path: str) -> Contents:
    """A module's ``state_dict`` is a model as the Solver's are, with whole numbers besides; an optimizer's is
    one of torch's, in torch's own names. Raises SolverFileError."""
    found = read(path)
    try:
        return _of_optimizer(path, found) if is_optimizer(found) else _of_module(path, found)
    except RecursionError:
        raise SolverFileError(f"{path}: what it holds is nested too deeply") from None


def _of_module(path: str, found: Mapping[str, Any]) -> Contents:
    made = of_model(path, "TORCH", model_from(found, path))
    besides = {
        name: _numbers(value, f"{path}: {name!r}")
        for name, value in found.items()
        if not value.is_floating_point()
    }
    return Contents(path, "TORCH", "model", made.facts, {**made.arrays, **besides}, made.silent)


def _of_optimizer(path: str, found: Mapping[str, Any]) -> Contents:
    groups, entries, indices = parts_of(found, path)
    held = _Held(path)
    names = dict(zip(indices, given_names(groups, path) or map(str, indices), strict=True))
    for number, group in enumerate(groups):
        owner = f"group {number}"
        held.facts[owner] = [names[index] for index in group["params"]]
        for name, value in group.items():
            if name not in ("params", "param_names"):
                held.put(owner, str(name), value)
    for index, entry in entries.items():
        for name, value in entry.items():
            held.put(names.get(index, str(index)), str(name), value)
    return Contents(path, "TORCH", "optimizer of torch", held.facts, held.arrays)


class _Held:
    """What an optimizer's file holds, plain values and arrays."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = _MOST_VALUES
        self._known: dict[Any, HostArray] = {}
        self.facts: dict[str, Any] = {}
        self.arrays: dict[str, HostArray] = {}

    def put(self, owner: str, name: str, value: Any) -> None:
        """Add a value to the facts or the arrays. Raises SolverFileError.

        A mapping, or a list of more than plain values, is added item by item, each under its own name.
        """
        self._left -= len(value) if isinstance(value, Mapping | list | tuple) else 1
        if self._left < 0:
            raise SolverFileError(
                f"{self._path}: it holds more than {_MOST_VALUES} values: damaged or foreign"
            )
        if isinstance(value, Mapping):
            for key, entry in value.items():
                self.put(owner, f"{name}.{key}", entry)
            return
        if isinstance(value, list | tuple) and not all(map(_is_plain, value)):
            for index, entry in enumerate(value):
                self.put(owner, f"{name}.{index}", entry)
            return
        if isinstance(value, torch.Tensor):
            array = self._array(value, f"{self._path}: {name} of {owner!r}")
            if array.ndim:
                self.arrays[f"{owner} {name}"] = array
                return
            value = array.item()
        plain = list(value) if isinstance(value, list | tuple) else value if _is_plain(value) else str(value)
        self.facts[f"{owner}.{name}"] = plain

    def _array(self, tensor: torch.Tensor, what: str) -> HostArray:
        """Its numbers, one array for what is one in the file."""
        check_plain(tensor, what)
        place = (
            tensor.data_ptr() or id(tensor),
            tensor.dtype,
            tensor.shape,
            tensor.stride(),
            tensor.is_neg(),
        )
        if place not in self._known:
            self._known[place] = _numbers(tensor, what)
        return self._known[place]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _numbers(tensor: torch.Tensor, what: str) -> HostArray:
    """The numbers of a tensor, whole ones and truth values too. Raises SolverFileError."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized:
        return array_of(tensor, what)  # which refuses the latter two
    check_plain(tensor, what)
    return np.array(tensor.detach().contiguous().numpy())
