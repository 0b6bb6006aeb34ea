"""What a worker says of its rows, as plain data that JSON holds, and back; every bit is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.agreement import equation_behind
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.replaying.arrays import array_from, array_text, number_from, number_text
from solvergen.verify.replaying.data import example_data, example_from
from solvergen.verify.report import Row
from solvergen.verify.trace import Difference


def row_data(row: Row) -> dict[str, Any]:
    """A row that has no replay file yet."""
    found = row.disagreement
    return {
        "backend": row.backend,
        "outcome": row.outcome,
        "examples": row.examples,
        "seconds": row.seconds,
        "detail": row.detail,
        "disagreement": None
        if found is None
        else {
            "example": example_data(found.example),
            "difference": None if found.difference is None else _difference_data(found.difference),
            "error": found.error,
        },
    }


def row_from(name: str, optimizer: type[Optimizer], data: Mapping[str, Any]) -> Row:
    """The row of ``optimizer`` that a worker made of it."""
    found = data["disagreement"]
    return Row(
        name,
        data["backend"],
        data["outcome"],
        data["examples"],
        data["seconds"],
        data["detail"],
        None if found is None else _disagreement(optimizer, data["backend"], found),
    )


def _disagreement(optimizer: type[Optimizer], backend: str, data: Mapping[str, Any]) -> Disagreement:
    definition, example = optimizer.definition, example_from(data["example"])
    difference = None if data["difference"] is None else _difference(data["difference"])
    equation = None if difference is None else equation_behind(definition, example, difference)
    return Disagreement(
        definition, optimizer.__module__, backend, example, difference, data["error"], equation
    )


def _difference_data(difference: Difference) -> dict[str, Any]:
    d = difference
    return {
        "step": d.step,
        "tensor": d.tensor,
        "buffer": d.buffer,
        "index": d.index,
        "expected": _value_data(d.expected),
        "found": _value_data(d.found),
        "ulps": d.ulps,
        "count": d.count,
        "size": d.size,
    }


def _difference(data: Mapping[str, Any]) -> Difference:
    index = data["index"]
    return Difference(
        **{
            **data,
            "index": None if index is None else tuple(index),
            "expected": _value(data["expected"]),
            "found": _value(data["found"]),
        }
    )


def _value_data(value: Any) -> Any:
    """A word, a count, a float, or a number of an array's type."""
    if isinstance(value, float) and not isinstance(value, np.generic):
        return {"float": number_text(value)}
    if isinstance(value, np.generic):
        array = np.asarray(value)
        return {"dtype": array.dtype.name, "number": array_text(array)}
    return value


def _value(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    if "float" in data:
        return number_from(data["float"])
    return array_from(data["dtype"], (), data["number"])[()]
