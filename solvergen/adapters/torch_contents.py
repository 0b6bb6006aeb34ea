"""What torch's own files hold, for people to look at and to compare: ``snapshot inspect`` and ``diff``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solvergen.adapters.torch_files import given_names, is_optimizer, model_from, parts_of, read
from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.solver.files.contents import Contents, of_model, with_whole_numbers

# isort: split
# After torch_files, which says what to do where there is no torch.
import torch

from solvergen.adapters.torch_tensors import Tensors, is_whole
from solvergen.solver.files.texts import LONGEST, shown

_MOST_VALUES = 1 << 20
"""How many values are read from one file. Lists in it may hold one another many times over, or themselves, so
that a small file has any number of values."""

_MOST_TEXT = 1 << 26
"""How many characters all names and texts of one file may have together."""


def contents(path: str) -> Contents:
    """A module's ``state_dict`` is a model as the Solver's are, with whole numbers besides; an optimizer's is
    one of torch's, in torch's own names. Raises SolverFileError."""
    found = read(path)
    try:
        return _of_optimizer(path, found) if is_optimizer(found) else _of_module(path, found)
    except RecursionError:
        raise SolverFileError(f"{path}: what it holds is nested too deeply") from None


def _of_module(path: str, found: Mapping[str, Any]) -> Contents:
    tensors = Tensors()
    made = of_model(path, "TORCH", model_from(found, path, tensors))
    besides = {
        name: tensors.numbers(value, f"{path}: {name!r}") for name, value in found.items() if is_whole(value)
    }
    return with_whole_numbers(made, besides)


def _of_optimizer(path: str, found: Mapping[str, Any]) -> Contents:
    groups, entries, indices = parts_of(found, path)
    held = _Held(path)
    names = dict(zip(indices, given_names(groups, path) or map(shown, indices), strict=True))
    for number, group in enumerate(groups):
        owner = f"group {number}"
        held.facts[owner] = [names[index] for index in group["params"]]
        for name, value in group.items():
            if name not in ("params", "param_names"):
                held.put(owner, shown(name), value)
    for index, entry in entries.items():
        for name, value in entry.items():
            held.put(names.get(index, shown(index)), shown(name), value)
    return Contents(path, "TORCH", "optimizer of torch", held.facts, held.arrays)


class _Held:
    """What an optimizer's file holds, plain values and arrays."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = _MOST_VALUES
        self._text_left = _MOST_TEXT
        self._texts: dict[int, str] = {}
        self._tensors = Tensors()
        self.facts: dict[str, Any] = {}
        self.arrays: dict[str, HostArray] = {}

    def put(self, owner: str, name: str, value: Any) -> None:
        """Add a value to the facts or the arrays. Raises SolverFileError.

        A mapping, or a list of more than plain values, is added item by item, each under its own name.
        """
        if isinstance(value, set | frozenset):
            value = list(value)
        self._left -= len(value) if isinstance(value, Mapping | list | tuple) else 1
        if self._left < 0:
            raise SolverFileError(
                f"{self._path}: it holds more than {_MOST_VALUES} values: damaged or foreign"
            )
        if isinstance(value, Mapping):
            for key, entry in value.items():
                self.put(owner, f"{name}.{self._shown(key)}", entry)
            return
        if isinstance(value, list | tuple) and not all(map(_is_plain, value)):
            for index, entry in enumerate(value):
                self.put(owner, f"{name}.{index}", entry)
            return
        if isinstance(value, torch.Tensor):
            array = self._tensors.numbers(value, f"{self._path}: {name} of {owner!r}")
            # What is one number may be a plain one in another file, and has that one's name.
            self.arrays[self._counted(f"{owner} {name}" if array.ndim else f"{owner}.{name}")] = array
            return
        plain = list(map(self._plain, value)) if isinstance(value, list | tuple) else self._plain(value)
        self.facts[self._counted(f"{owner}.{name}")] = plain

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        return self._counted(self._shown(value))

    def _shown(self, value: Any) -> str:
        """Its text; that of something long, which a file may have in many places, is made once."""
        if not isinstance(value, str | bytes | bytearray) or len(value) <= LONGEST:
            return shown(value)
        if id(value) not in self._texts:
            self._texts[id(value)] = shown(value)
        return self._texts[id(value)]

    def _counted(self, text: str) -> str:
        self._text_left -= len(text)
        if self._text_left < 0:
            raise SolverFileError(
                f"{self._path}: its names and texts are more than {_MOST_TEXT} characters: damaged or foreign"
            )
        return text


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
