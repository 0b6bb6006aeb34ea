"""What both launchers of the NumPy backend hold: flat views of a plan's tensors, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.buffers import ARRAY_TYPES, address_of, converted, may_be_written
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype, rounding
from solvergen.runtime.lines import matrix_shape

BLOCK = 1 << 14
"""Elements that are looked at at a time."""


class NumpyTensors:
    """The tensors of a plan, as flat views or (for rules with lines) as matrices, and what the reference is
    given behind the values of a row."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan = plan
        self._grad_dtype = numpy_dtype(plan.grad_dtype)
        self._shapes = [tensor.shape for tensor in plan.tensors]
        view = plan.definition.view
        self._matrices = [
            matrix_shape(view, tensor.shape, tensor.blocks) if view else (-1,) for tensor in plan.tensors
        ]
        """The shape in which the reference gets each tensor."""
        self._tensors = [
            _reshaped(tensor, shape) for tensor, shape in zip(plan.tensors, self._matrices, strict=True)
        ]
        self._gradients: list[HostArray] = []
        self._compute = compute_dtype(plan.param_dtype)
        options = [plan.options[name] for name in plan.definition.option_names]
        self._tail = (*options, self._compute.type, rounding(plan.param_dtype))
        self._owned = plan.owned
        self._writes_grad = plan.writes_grad

    def bind(self, gradients: Sequence[object]) -> bool:
        """Remember the gradients if each is just what the plan expects."""
        if len(gradients) != len(self._shapes) or not may_be_written(self._plan):
            return False
        bound: list[HostArray] = []
        for shape, matrices, gradient in zip(self._shapes, self._matrices, gradients, strict=True):
            if not (
                isinstance(gradient, np.ndarray)
                and type(gradient) in ARRAY_TYPES
                and gradient.dtype == self._grad_dtype
                and gradient.shape == shape
                and gradient.flags.c_contiguous
            ):
                return False
            start = address_of(gradient)
            if gradient.size and (
                start % gradient.itemsize or self._owned.met_by(start, start + gradient.nbytes) is not None
            ):
                return False
            bound.append(gradient.view(np.ndarray).reshape(matrices))
        self._gradients = bound
        return True

    def finite(self) -> bool:
        """Whether all bound gradients are finite."""
        with np.errstate(all="ignore"):  # ml_dtypes warns of some NaNs
            return all(
                bool(np.isfinite(gradient[i : i + BLOCK]).all())
                for gradient in (bound.reshape(-1) for bound in self._gradients)
                for i in range(0, gradient.size, BLOCK)
            )

    def release(self) -> None:
        """Forget the gradients."""
        self._gradients = []

    def _to_store(
        self,
        values: Sequence[Any],
        param: HostArray,
        gradient: HostArray,
        states: Sequence[HostArray | None],
        results: Sequence[Any],
    ) -> list[tuple[HostArray, Any]]:
        """Which results of the reference go where. The gradient's, where there is one, is the last."""
        targets = [param, *states]
        found = [*results[: len(targets)]]
        if self._writes_grad:
            targets.append(gradient)
            found.append(results[-1])
        return to_store(values, targets, found, self._compute)


def to_store(
    values: Sequence[Any], targets: Sequence[HostArray | None], results: Sequence[Any], compute: np.dtype[Any]
) -> list[tuple[HostArray, Any]]:
    """Which results of the reference go where: one for each target, as far as there is something to write.

    ``values`` are the arrays that it was given. Raises CompilerBug for what isn't an array of ``compute``.
    """
    # A rule may hand on one buffer as another's new value: such a result is copied before the
    # buffer that it still is gets overwritten.
    live = {id(value) for value in values}
    pending: list[tuple[HostArray, Any]] = []
    for target, result in zip(targets, results, strict=False):
        if target is None or result is target:
            continue
        if getattr(result, "dtype", None) != compute:
            raise CompilerBug(f"the NumPy reference returned {result!r:.80} where {compute} was due")
        result = converted(result, target.dtype)
        pending.append((target, result.copy() if id(result) in live else result))
    return pending


def _reshaped(tensor: TensorPlan, shape: tuple[int, ...]) -> tuple[HostArray, list[HostArray | None]]:
    states = [None if state is None else state.reshape(shape) for state in tensor.states]
    return tensor.param.view(np.ndarray).reshape(shape), states
