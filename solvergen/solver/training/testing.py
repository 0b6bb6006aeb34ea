"""A test: the means of a net's outputs over some batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from solvergen.runtime.naming import with_article
from solvergen.solver.net.error import NetError
from solvergen.solver.net.protocol import Net, Output, is_real, loss_of
from solvergen.solver.training.events import OutputValue


def checked_outputs(net: Net, outputs: Any) -> tuple[Output, ...]:
    """The outputs of a pass with arrays in them. Raises NetError where that isn't what they are."""
    if not isinstance(outputs, Iterable):
        raise NetError(f"the net {net.name!r} put out {with_article(type(outputs).__name__)}, not Outputs")
    found = []
    for output in outputs:
        if not (hasattr(output, "name") and hasattr(output, "values") and hasattr(output, "loss_weight")):
            raise NetError(
                f"the net {net.name!r} put out {with_article(type(output).__name__)} among its Outputs"
            )
        values = output.values
        if type(values) is not np.ndarray or not is_real(values.dtype):
            values = _array(values, f"output {output.name!r} of the net {net.name!r}")
        found.append(Output(output.name, values, output.loss_weight))
    return tuple(found)


def output_values(outputs: tuple[Output, ...]) -> tuple[OutputValue, ...]:
    """Every number of every output, counted through."""
    found: list[OutputValue] = []
    for output in outputs:
        for value in np.ravel(output.values).tolist():
            found.append(OutputValue(len(found), output.name, float(value), output.loss_weight))
    return tuple(found)


def tested(
    net: Net, iterations: int, interrupted: Callable[[], bool], forward: Callable[[], Any]
) -> tuple[tuple[OutputValue, ...], float] | None:
    """The means over these batches and the mean loss; None if ``interrupted``, which is asked before each.

    ``forward`` makes a pass of ``net``.

    Sums have the outputs' type, as in Caffe; those of whole numbers are float64.

    Raises NetError for outputs that aren't the same ones for each batch.
    """
    sums: list[np.ndarray] = []
    first: tuple[Output, ...] = ()
    loss = 0.0
    for batch in range(iterations):
        if interrupted():
            return None
        outputs = checked_outputs(net, forward())
        loss += loss_of(outputs)
        if not batch:
            first = outputs
            sums = [np.array(output.values, _floating(output.values)) for output in outputs]
            continue
        check_same(net, first, outputs)
        for total, output in zip(sums, outputs, strict=True):
            total += output.values
    means = tuple(
        Output(output.name, total / np.asarray(iterations, total.dtype), output.loss_weight)
        for output, total in zip(first, sums, strict=True)
    )
    return output_values(means), loss / max(iterations, 1)


def check_same(net: Net, first: tuple[Output, ...], outputs: tuple[Output, ...]) -> None:
    """Raises NetError where outputs of another batch can't be added to those of the first."""
    before = [(output.name, output.values.shape) for output in first]
    now = [(output.name, output.values.shape) for output in outputs]
    if before != now:
        raise NetError(
            f"the net {net.name!r} put out {_told(before)} for the first batch, and {_told(now)} for a later "
            "one: a mean over batches needs the same outputs of each (batches of one size, or one number a "
            "batch)"
        )


def _told(outputs: list[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in outputs) or "nothing"


def _array(values: Any, what: str) -> np.ndarray:
    if hasattr(values, "mask"):
        raise NetError(f"{what} is a masked array, and a mean is of all its numbers: fill it")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise NetError(f"{what} can't be made an array: {error}") from error
    if not is_real(array.dtype):
        raise NetError(f"{what} must be numbers, not {values!r}")
    return array


def _floating(array: np.ndarray) -> np.dtype:
    return np.dtype(np.float64) if array.dtype.kind in "biu" else array.dtype
