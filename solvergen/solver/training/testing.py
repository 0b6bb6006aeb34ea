"""A test: the means of a net's outputs over some batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvergen.solver.net.protocol import Net, Output, loss_of
from solvergen.solver.training.events import OutputValue


def output_values(outputs: tuple[Output, ...]) -> tuple[OutputValue, ...]:
    """Every number of every output, counted through."""
    found: list[OutputValue] = []
    for output in outputs:
        for value in np.ravel(output.values).tolist():
            found.append(OutputValue(len(found), output.name, float(value), output.loss_weight))
    return tuple(found)


def tested(
    net: Net, iterations: int, interrupted: Callable[[], bool]
) -> tuple[tuple[OutputValue, ...], float] | None:
    """The means over these batches and the mean loss; None if ``interrupted``, which is asked before each.

    Sums have the outputs' type, as in Caffe.
    """
    sums: list[np.ndarray] = []
    first: tuple[Output, ...] = ()
    loss = 0.0
    for _ in range(iterations):
        if interrupted():
            return None
        outputs = tuple(net.forward())
        loss += loss_of(outputs)
        if not sums:
            first = outputs
            sums = [np.array(output.values) for output in outputs]
        else:
            for total, output in zip(sums, outputs, strict=True):
                total += output.values
    means = tuple(
        Output(output.name, total / np.asarray(iterations, _floating(total)), output.loss_weight)
        for output, total in zip(first, sums, strict=True)
    )
    return output_values(means), loss / max(iterations, 1)


def _floating(array: np.ndarray) -> np.dtype:
    return array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
