"""Our own contenders: an optimizer on one of its backends, and the traffic limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from solvergen.bench.result import LIMIT
from solvergen.bench.timing import Contender
from solvergen.bench.traffic import sweeps, traffic_text
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.spans import Spans

Draw = Callable[[], list[HostArray]]
"""Makes the tensors of one contender: new arrays at each call."""


def ours(optimizer: type[Optimizer], settings: Mapping[str, Any], backend: str, draw: Draw) -> Contender:
    """The optimizer by its public interface: ``step(gradients)`` with a list of new arrays.

    One that evaluates the gradient within a step gets the same each time, so that it is its own work that
    is timed.
    """
    made = optimizer(draw(), backend=backend, **settings)
    if not optimizer.definition.evaluations:
        return Contender(backend, made.step, lambda gradients: gradients)
    return Contender(backend, made.step, lambda gradients: lambda: (None, gradients))


def traffic_limit(optimizer: type[Optimizer], options: Mapping[str, bool], draw: Draw) -> Contender:
    """The loops that move what the rule must move, over arrays that are placed as the backend places them.

    Addresses of gradients are read before the clock starts: the limit is that of memory alone.
    """
    from solvergen.runtime.backends.cpu import CpuBackend, CpuLauncher
    from solvergen.runtime.native.build import load

    definition, backend = optimizer.definition, CpuBackend()
    params = draw()
    dtype = params[0].dtype.name
    texts = [
        traffic_text(definition, options, dtype, dtype, sweep)
        for sweep in range(len(sweeps(definition, options)))
    ]
    active = definition.active_state(**options)
    tensors = tuple(
        TensorPlan(
            str(number),
            param,
            param.shape,
            tuple(
                backend.allocate(param, 0.0, definition.copies.get(state)) if state in active else None
                for state in definition.array_states
            ),
            tuple(backend.allocate(param, 0.0) for _ in definition.carried),
        )
        for number, param in enumerate(params)
    )
    owned = Spans.over(_arrays(tensors), backend.span_of)
    plan = LaunchPlan(definition, options, dtype, dtype, tensors, owned)
    launchers = [CpuLauncher(plan, load({"traffic.c": text})) for text in texts]
    compute = np.float64 if dtype == "float64" else np.float32
    table = np.zeros((1, max(1, len(definition.table))), compute)
    rows = np.zeros(len(params), np.int32)

    def receive(gradients: list[HostArray]) -> None:
        if not all(launcher.bind(gradients) for launcher in launchers):
            raise AssertionError("gradients that were made like the parameters don't fit them")

    def move(_: object) -> None:
        for launcher in launchers:
            launcher.launch(table, rows)

    return Contender(LIMIT, move, receive)


def _arrays(tensors: Sequence[TensorPlan]) -> list[HostArray]:
    return [array for t in tensors for array in (t.param, *t.states, *t.carried) if array is not None]
