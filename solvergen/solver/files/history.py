"""The order of a state's history: which of an optimizer's states, and of which parameter, each array is.

Caffe keeps the arrays of all parameters for the first state, then those for the second: n arrays for SGD,
Nesterov, AdaGrad and RMSProp, 2n for AdaDelta (squared gradients, squared steps) and Adam (first, second
moments). The file doesn't say of which solver it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.solver.files.data import SolverStateData

OF_CAFFE: dict[str, tuple[str, ...]] = {
    "caffe_sgd": ("history",),
    "caffe_nesterov": ("history",),
    "caffe_adagrad": ("history",),
    "caffe_rmsprop": ("history",),
    "caffe_adadelta": ("history", "history2"),
    "caffe_adam": ("history", "history2"),
}
"""States in Caffe's order, by the spec's name."""

SPEC_OF_TYPE = {
    "SGD": "caffe_sgd",
    "Nesterov": "caffe_nesterov",
    "AdaGrad": "caffe_adagrad",
    "RMSProp": "caffe_rmsprop",
    "AdaDelta": "caffe_adadelta",
    "Adam": "caffe_adam",
}
"""The spec of each of Caffe's solver types."""

_NEVER_NEGATIVE = {
    ("caffe_adagrad", "history"),
    ("caffe_rmsprop", "history"),
    ("caffe_adadelta", "history"),
    ("caffe_adadelta", "history2"),
    ("caffe_adam", "history2"),
}
_SIGNED = {("caffe_sgd", "history"), ("caffe_nesterov", "history"), ("caffe_adam", "history")}
_ENOUGH = 64
"""So many numbers of one sign are no accident."""


def history_names(optimizer_class: Any, options: Mapping[str, bool] | None = None) -> tuple[str, ...]:
    """The states that make up the history of a generated optimizer, in the order of a file.

    Of the six caffe_* rules it is Caffe's order; of any other, its states shaped as the parameter, in the
    order of the spec, as far as they exist under ``options``.
    """
    definition = optimizer_class.definition
    if definition.name in OF_CAFFE:
        return OF_CAFFE[definition.name]
    active = None if options is None else set(definition.active_state(**options))
    return tuple(
        state.name
        for state in definition.state
        if state.shape == "param" and (active is None or state.name in active)
    )


def arranged(
    state: SolverStateData,
    shapes: Sequence[tuple[int, ...]],
    names: Sequence[str],
    *,
    spec: str,
    source: str,
) -> dict[str, tuple[HostArray, ...]]:
    """The history by state, each with an array for every parameter, in the parameters' shapes.

    ``shapes`` are those of the parameters, ``names`` what ``history_names`` says, ``spec`` the rule's name.
    Warns, as Caffe doesn't, where the numbers look like another solver's.

    Raises:
        SolverFileError: the history has another length, or shapes that don't fit.
    """
    count, length = len(shapes), len(state.history)
    if length != count * len(names):
        raise SolverFileError(f"{source}: {_length(length, count, names, spec)}")
    found: dict[str, tuple[HostArray, ...]] = {}
    for place, name in enumerate(names):
        arrays = state.history[place * count : (place + 1) * count]
        found[name] = tuple(
            fitted(array, shape, f"{source}: history {place * count + index}")
            for index, (array, shape) in enumerate(zip(arrays, shapes, strict=True))
        )
        if doubt := _doubt(spec, name, found[name]):
            warnings.warn(f"{source}: {doubt}", SnapshotWarning, stacklevel=2)
    return found


def flattened(states: Mapping[str, Sequence[HostArray]], names: Sequence[str]) -> tuple[HostArray, ...]:
    """The inverse of ``arranged``: all arrays of the first state, then of the second, and so on."""
    return tuple(array for name in names for array in states[name])


def fitted(array: HostArray, shape: tuple[int, ...], what: str) -> HostArray:
    """``array`` in the shape ``shape``: they are equal, or it has four axes as all had before 2015.

    Raises:
        SolverFileError: it doesn't fit.
    """
    if array.shape == shape:
        return array
    if array.ndim == 4 and len(shape) < 4 and array.shape == (1,) * (4 - len(shape)) + shape:
        return array.reshape(shape)
    raise SolverFileError(f"{what} has the shape {array.shape}, its parameter {shape}")


def _length(length: int, count: int, names: Sequence[str], spec: str) -> str:
    text = (
        f"incorrect length of history: it has {length} arrays; {spec} with {count} parameters needs "
        f"{count * len(names)} ({len(names)} for each)"
    )
    if count and length == 2 * count:
        return f"{text}. It looks like a state of Adam or AdaDelta with these parameters"
    if count and length == count:
        return f"{text}. It looks like a state of SGD, Nesterov, AdaGrad or RMSProp with these parameters"
    return f"{text}. It is of another net, or of another solver type"


def _doubt(spec: str, name: str, arrays: Sequence[HostArray]) -> str | None:
    """What is odd about these numbers as this state."""
    if (spec, name) in _NEVER_NEGATIVE:
        if any(array.size and bool((array < 0).any()) for array in arrays):
            return (
                f"{name} of {spec} is a mean or sum of squares, but partly negative in the file: it "
                "is probably of another solver type (Caffe would go on silently, into NaN)"
            )
    elif (spec, name) in _SIGNED:
        nonzero = sum(int(np.count_nonzero(array)) for array in arrays)
        if nonzero >= _ENOUGH and not any(array.size and bool((array < 0).any()) for array in arrays):
            return (
                f"{name} of {spec} follows the gradient, but nothing in the file is negative: it is probably "
                "a state of AdaGrad, RMSProp or AdaDelta (Caffe would go on silently)"
            )
    return None
