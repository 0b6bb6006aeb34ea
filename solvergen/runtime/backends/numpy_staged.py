"""Staged rules in NumPy: whole tensors, all launches in lock step, and nothing stored before all is computed.

A reduction over all tensors is a yield of the reference: there its tensor waits until all have come so far.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any, cast

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan, StagedLauncher, Step
from solvergen.runtime.backends.numpy_tensors import NumpyTensors, to_store
from solvergen.runtime.reductions import OverAll, finished, total_of_terms
from solvergen.runtime.workspace import HostWorkspace

Results = tuple[Any, ...]


class Computation:
    """The update of one tensor, under way: ``asks`` is the reduction that it waits for, None at the end."""

    def __init__(
        self, launcher: StagedNumpyLauncher, place: int, values: Sequence[Any], work: Any, yields: bool
    ) -> None:
        self.launcher = launcher
        self.place = place
        self.position = launcher.plan.positions[place]
        self.values = values
        self.asks: OverAll | None = None
        self.results: Results = ()
        self._work: Generator[OverAll, float, Results] | None = None
        if yields:
            self._work = work
            self.resume(None)
        else:
            self.results = work

    def resume(self, answer: float | None) -> None:
        """Go on until the next reduction over all tensors, or to the end."""
        work = cast("Generator[OverAll, float | None, Results]", self._work)
        try:
            self.asks = work.send(answer)
        except StopIteration as end:
            self.asks, self.results = None, end.value


class StagedNumpyLauncher(NumpyTensors):
    """The tensors of a plan, whole."""

    def __init__(self, plan: LaunchPlan) -> None:
        super().__init__(plan)
        definition = plan.definition
        self.plan = plan
        self._active = frozenset(definition.active_state(**plan.options))
        # Of each scalar state, in the reference's order: the column of the row, or of the workspace.
        self._on_host = {name: i for i, name in enumerate(definition.scalar_states)}
        self._on_device = {name: i for i, name in enumerate(definition.device_states)}

    def computations(self, step: Step, workspace: HostWorkspace) -> Iterable[Computation]:
        """Begin the update of each tensor. Nothing is stored."""
        definition = self.plan.definition
        rows: list[list[float]] = step.table.tolist()
        shared = dict(zip(definition.shared_states, workspace.shared_now.tolist(), strict=False))
        for place, ((param, states), gradient, row) in enumerate(
            zip(self._tensors, self._gradients, step.rows.tolist(), strict=True)
        ):
            own = workspace.states[self.plan.positions[place]].tolist()
            scalars = {name: rows[row][i] for name, i in self._on_host.items()}
            scalars |= {name: own[i] for name, i in self._on_device.items()}
            scalars |= shared
            compute = self._compute
            values: list[Any] = [
                param.astype(compute, copy=False),
                gradient.astype(compute, copy=False),
                *states,
            ]
            work = definition.update(
                *values,
                *(
                    scalars[name] if name in self._active else None
                    for name in (*definition.all_scalar_states, *definition.shared_states)
                ),
                *rows[row][len(self._on_host) :],
                *self._tail,
            )
            yield Computation(self, place, values, work, definition.yields)

    def arrays_to_store(self, done: Computation) -> list[tuple[HostArray, Any]]:
        """Where its arrays go."""
        param, states = self._tensors[done.place]
        return to_store(done.values, [param, *states], done.results, self._compute)

    def scalars_of(self, done: Computation, names: Sequence[str]) -> dict[str, float]:
        """The new values of these scalar or shared states, as far as they exist under the options."""
        definition = self.plan.definition
        order = (*definition.all_scalar_states, *definition.shared_states)
        first = 1 + len(definition.array_states)
        found = dict(zip(order, done.results[first:], strict=True))
        for name in names:
            if name in self._active and not isinstance(found[name], (float, int)):
                raise CompilerBug(f"the NumPy reference returned {found[name]!r:.80} for the scalar {name}")
        return {name: float(found[name]) for name in names if name in self._active}


class NumpyWorkspace(HostWorkspace):
    """Runs the reference of all launches together."""

    def run(self, launches: Sequence[tuple[StagedLauncher, Step]]) -> None:
        """See ``Workspace``. Everything is computed before anything is stored."""
        first = launches[0][1]
        with np.errstate(all="ignore"):
            computations = [
                computation
                for launcher, step in launches
                for computation in cast("StagedNumpyLauncher", launcher).computations(step, self)
            ]
            self._finish(computations, first.total_size)
            self._store(computations, first.leader)

    def _finish(self, computations: Sequence[Computation], total_size: float) -> None:
        """Serve the reductions over all tensors, in the program's order, until no tensor waits."""
        while waiting := [c for c in computations if c.asks is not None]:
            asked = [(c, c.asks) for c in waiting if c.asks is not None]
            index = min(ask.index for _, ask in asked)
            served = [(c, ask) for c, ask in asked if ask.index == index]
            kind = served[0][1].kind
            if any(ask.kind != kind for _, ask in served):
                raise CompilerBug(f"reduction {index} over all tensors is of several kinds")
            totals = np.zeros(len(self.sizes))
            for computation, ask in served:
                totals[computation.position] = ask.total
            answer = finished(kind, total_of_terms(kind, totals), total_size)
            for computation, _ in served:
                computation.resume(answer)

    def _store(self, computations: Sequence[Computation], leader: int) -> None:
        definition = self._definition
        arrays = [pair for c in computations for pair in c.launcher.arrays_to_store(c)]
        states = self.states.copy()
        shared = self.shared_now.copy()
        for computation in computations:
            found = computation.launcher.scalars_of(computation, definition.device_states)
            for name, value in found.items():
                states[computation.position, definition.device_states.index(name)] = value
            if computation.position == leader:
                found = computation.launcher.scalars_of(computation, definition.shared_states)
                for name, value in found.items():
                    shared[definition.shared_states.index(name)] = value
        for target, result in arrays:
            target[...] = result
        self.states[...] = states
        self.shared_new[...] = shared
        self.commit()
