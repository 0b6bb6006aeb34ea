"""An example as plain data that JSON holds, and back; every bit is kept and nothing is believed.

What comes from a file is checked value by value: kinds, names, counts and shapes that belong together. So
an ``Example`` that comes out of here can be run, if the optimizer accepts its settings
(``replay.accepted``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.groups import MULTIPLIERS
from solvergen.runtime.policies import POLICIES
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.replaying.arrays import array_from, array_text, number_from, number_text

Result = TypeVar("Result")

MAX_DIMENSIONS = 8
MAX_LENGTH = 1 << 40
"""Of one dimension; arrays have as many elements as the file spells out."""
MAX_OFFSET = 1 << 16
"""Elements before an array in its memory."""


def example_data(example: Example) -> dict[str, Any]:
    """``example`` as dicts, lists, strings, whole numbers, booleans and None."""
    return {
        "groups": [
            {"options": dict(group.options), "multipliers": _numbers(group.multipliers)}
            for group in example.groups
        ],
        "tensors": [
            {
                "name": tensor.name,
                "group": tensor.group,
                "offset": tensor.offset,
                "param": _array(tensor.param),
                "arrays": {name: _array(array) for name, array in tensor.arrays.items()},
                "scalars": _numbers(tensor.scalars),
                **({} if tensor.blocks == 1 else {"blocks": tensor.blocks}),
            }
            for tensor in example.tensors
        ],
        "steps": [
            {
                "hyperparameters": [_numbers(values) for values in step.hyperparameters],
                "offset": step.offset,
                "gradients": [None if g is None else _array(g) for g in step.gradients],
            }
            for step in example.steps
        ],
        "start": example.start,
        "nonfinite": example.nonfinite,
        "reuse": example.reuse,
        "shared": _numbers(example.shared),
    }


def example_from(data: object) -> Example:
    """The example that ``data`` describes. Raises ValueError that says where it isn't one."""
    keys = ("groups", "tensors", "steps", "start", "nonfinite", "reuse", "shared")
    # Files of before there were shared states have none.
    whole = mapping("example", {"shared": {}, **data} if isinstance(data, dict) else data, keys)
    groups = tuple(each("groups", whole["groups"], _group))
    tensors = tuple(each("tensors", whole["tensors"], _tensor))
    steps = tuple(each("steps", whole["steps"], _step))
    example = Example(
        groups,
        tensors,
        steps,
        start=whole_number("start", whole["start"], 2**53 - 1),
        nonfinite=text("nonfinite", whole["nonfinite"]),
        reuse=boolean("reuse", whole["reuse"]),
        shared=_floats("shared", whole["shared"]),
    )
    _check_together(example)
    return example


def _check_together(example: Example) -> None:
    """Raise ValueError unless the parts belong to one another."""
    if example.nonfinite not in POLICIES:
        raise ValueError(f"nonfinite: {example.nonfinite!r:.40} is not one of {', '.join(POLICIES)}")
    if not (example.groups and example.tensors and example.steps):
        raise ValueError("there must be a group, a tensor and a step at least")
    if len({tensor.name for tensor in example.tensors}) < len(example.tensors):
        raise ValueError("tensors: a name is given twice")
    if {tensor.group for tensor in example.tensors} != set(range(len(example.groups))):
        raise ValueError("tensors: every group must have one, and none may name another group")
    for number, step in enumerate(example.steps):
        if len(step.hyperparameters) != len(example.groups):
            raise ValueError(f"steps[{number}].hyperparameters: one mapping for each group is needed")
        if len(step.gradients) != len(example.tensors):
            raise ValueError(f"steps[{number}].gradients: one entry for each tensor is needed")
        for tensor, gradient in zip(example.tensors, step.gradients, strict=True):
            if gradient is not None and gradient.shape != tensor.shape:
                raise ValueError(
                    f"steps[{number}].gradients: {tensor.name} has shape {tensor.shape}, "
                    f"its gradient {gradient.shape}"
                )


def _group(where: str, data: object) -> Group:
    group = mapping(where, data, ("options", "multipliers"))
    options = mapping(f"{where}.options", group["options"])
    for name, value in options.items():
        if value is not None:
            boolean(f"{where}.options.{name:.40}", value)
    multipliers = _floats(f"{where}.multipliers", group["multipliers"])
    if not set(multipliers) <= set(MULTIPLIERS):
        raise ValueError(f"{where}.multipliers: there are only {' and '.join(MULTIPLIERS)}")
    return Group(options, multipliers)


def _tensor(where: str, data: object) -> Tensor:
    keys = ("name", "group", "offset", "param", "arrays", "scalars", "blocks")
    tensor = mapping(where, {"blocks": 1, **data} if isinstance(data, dict) else data, keys)
    arrays = mapping(f"{where}.arrays", tensor["arrays"])
    name = text(f"{where}.name", tensor["name"])
    if not (0 < len(name) <= 200 and name.isprintable()):
        raise ValueError(f"{where}.name: {name!r:.40} is not a name")
    return Tensor(
        name,
        _array_from(f"{where}.param", tensor["param"]),
        whole_number(f"{where}.offset", tensor["offset"], MAX_OFFSET),
        whole_number(f"{where}.group", tensor["group"], 1 << 16),
        {name: _array_from(f"{where}.arrays.{name:.40}", array) for name, array in arrays.items()},
        _floats(f"{where}.scalars", tensor["scalars"]),
        whole_number(f"{where}.blocks", tensor["blocks"], MAX_LENGTH),
    )


def _step(where: str, data: object) -> Step:
    step = mapping(where, data, ("gradients", "offset", "hyperparameters"))

    def gradient(place: str, item: object) -> HostArray | None:
        return None if item is None else _array_from(place, item)

    return Step(
        tuple(each(f"{where}.gradients", step["gradients"], gradient)),
        whole_number(f"{where}.offset", step["offset"], MAX_OFFSET),
        tuple(each(f"{where}.hyperparameters", step["hyperparameters"], _floats)),
    )


def _array(array: HostArray) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "elements": array_text(array)}


def _array_from(where: str, data: object) -> HostArray:
    array = mapping(where, data, ("dtype", "shape", "elements"))
    shape = tuple(each(f"{where}.shape", array["shape"], lambda at, n: whole_number(at, n, MAX_LENGTH)))
    if len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"{where}.shape: more than {MAX_DIMENSIONS} dimensions")
    try:
        return array_from(text(f"{where}.dtype", array["dtype"]), shape, text(where, array["elements"]))
    except ValueError as wrong:
        raise ValueError(f"{where}: {wrong}") from None


def _numbers(values: Mapping[str, float]) -> dict[str, str]:
    return {name: number_text(value) for name, value in values.items()}


def _floats(where: str, data: object) -> dict[str, float]:
    values = {}
    for name, word in mapping(where, data).items():
        try:
            values[name] = number_from(text(where, word))
        except ValueError as wrong:
            raise ValueError(f"{where}.{name:.40}: {wrong}") from None
    return values


# Reading plain data: each of these returns the value, or raises ValueError that says where it is wrong.


def mapping(where: str, data: object, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    """A mapping, with exactly these keys if they are given."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: a mapping is needed, not {data!r:.40}")
    if keys is not None and set(data) != set(keys):
        odd = sorted(set(data) ^ set(keys))[0]
        raise ValueError(f"{where}: {odd!r:.40} is {'unknown' if odd in data else 'missing'}")
    return data


def each(where: str, data: object, read: Callable[[str, object], Result]) -> list[Result]:
    """A list, each of its items read."""
    if not isinstance(data, list):
        raise ValueError(f"{where}: a list is needed, not {data!r:.40}")
    return [read(f"{where}[{index}]", item) for index, item in enumerate(data)]


def text(where: str, data: object) -> str:
    """A string."""
    if not isinstance(data, str):
        raise ValueError(f"{where}: a string is needed, not {data!r:.40}")
    return data


def boolean(where: str, data: object) -> bool:
    """True or false."""
    if not isinstance(data, bool):
        raise ValueError(f"{where}: true or false is needed, not {data!r:.40}")
    return data


def whole_number(where: str, data: object, most: int) -> int:
    """A whole number from 0 to ``most``."""
    if type(data) is not int or not 0 <= data <= most:
        raise ValueError(f"{where}: a whole number from 0 to {most} is needed, not {data!r:.40}")
    return data
