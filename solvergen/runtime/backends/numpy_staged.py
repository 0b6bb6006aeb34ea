"""Staged rules in NumPy: whole tensors, all launches in lock step, and nothing stored before all is computed.

A reduction over all tensors is a yield of the reference: there its tensor waits until all have come so far.
So is an evaluation of the gradient. For that one, parameters are written in the middle of a step; they are
put back if it comes to no end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, cast

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan, StagedLauncher, Step
from solvergen.runtime.backends.numpy_tensors import NumpyTensors
from solvergen.runtime.closures import GradientAt
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.reductions import OverAll, finished, total_of_terms
from solvergen.runtime.workspace import HostWorkspace

Results = tuple[Any, ...]


class Computation:
    """The update of one tensor, under way: ``asks`` is the reduction or the gradient that it waits for, None
    at the end."""

    def __init__(
        self, launcher: StagedNumpyLauncher, place: int, values: Sequence[Any], work: Any, yields: bool
    ) -> None:
        self.launcher = launcher
        self.place = place
        self.position = launcher.plan.positions[place]
        self.values = values
        self.asks: OverAll | GradientAt | None = None
        self.results: Results = ()
        self._work: Generator[OverAll | GradientAt, Any, Results] | None = None
        if yields:
            self._work = work
            self.resume(None)
        else:
            self.results = work

    def resume(self, answer: float | HostArray | None) -> None:
        """Go on until the next reduction over all tensors or evaluation, or to the end."""
        work = cast("Generator[OverAll | GradientAt, Any, Results]", self._work)
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
            # Other gradients may come in the same array, and parameters change on the way to them.
            copied = bool(definition.evaluations)
            values: list[Any] = [
                param.astype(compute, copy=copied),
                gradient.astype(compute, copy=copied),
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

    def copies(self) -> list[tuple[HostArray, HostArray]]:
        """The parameters, flat, each with a copy."""
        return [(param, param.copy()) for param, _ in self._tensors]

    def move(self, waiting: Computation, param: Any) -> None:
        """Write a parameter in the middle of the step."""
        target = self._tensors[waiting.place][0]
        if getattr(param, "dtype", None) != self._compute or np.size(param) != target.size:
            raise CompilerBug(f"the NumPy reference asks for the gradient at {param!r:.80}")
        target[...] = param

    def gradient_of(self, waiting: Computation) -> HostArray:
        """A copy of the gradient that is bound now, in the compute type."""
        gradient: HostArray = self._gradients[waiting.place].astype(self._compute)
        return gradient

    def arrays_to_store(self, done: Computation) -> list[tuple[HostArray, Any]]:
        """Where its arrays go."""
        param, states = self._tensors[done.place]
        return self._to_store(done.values, param, self._gradients[done.place], states, done.results)

    def scalars_of(self, done: Computation, names: Sequence[str]) -> dict[str, float]:
        """The new values of these scalar or shared states, as far as they exist under the options."""
        definition = self.plan.definition
        order = (*definition.all_scalar_states, *definition.shared_states)
        first = 1 + len(definition.array_states)
        found = dict(zip(order, done.results[first : first + len(order)], strict=True))
        for name in names:
            if name in self._active and not isinstance(found[name], (float, int)):
                raise CompilerBug(f"the NumPy reference returned {found[name]!r:.80} for the scalar {name}")
        return {name: float(found[name]) for name in names if name in self._active}


class NumpyWorkspace(HostWorkspace):
    """Runs the reference of all launches together."""

    def run(
        self,
        launches: Sequence[tuple[StagedLauncher, Step]],
        evaluate: Callable[[], None] | None = None,
    ) -> None:
        """See ``Workspace``. Everything is computed before anything is stored but parameters."""
        numpy_launches = [(cast("StagedNumpyLauncher", launcher), step) for launcher, step in launches]
        moved = self._definition.evaluations
        before = [pair for launcher, _ in numpy_launches for pair in launcher.copies()] if moved else []
        try:
            self._run(numpy_launches, evaluate)
        except BaseException:
            uninterrupted(lambda: _put_back(before))
            raise

    def _run(
        self, launches: Sequence[tuple[StagedNumpyLauncher, Step]], evaluate: Callable[[], None] | None
    ) -> None:
        first = launches[0][1]
        with np.errstate(all="ignore"):
            computations = [
                computation
                for launcher, step in launches
                for computation in launcher.computations(step, self)
            ]
        while waiting := [c for c in computations if c.asks is not None]:
            index = min(c.asks.index for c in waiting if c.asks is not None)
            served = [c for c in waiting if c.asks is not None and c.asks.index == index]
            kinds = {type(c.asks) for c in served}
            if kinds == {OverAll}:
                self._reduce(served, first.total_size)
            elif kinds == {GradientAt} and len(served) == len(computations) and evaluate is not None:
                self._evaluate(served, evaluate)
            else:
                raise CompilerBug(
                    f"at {index}, {len(served)} of {len(computations)} tensors wait for {kinds}"
                )
        with np.errstate(all="ignore"):
            self._store(computations, first.leader)

    def _reduce(self, served: Sequence[Computation], total_size: float) -> None:
        """Serve a reduction over all tensors."""
        asked = [(c, c.asks) for c in served if isinstance(c.asks, OverAll)]
        kind = asked[0][1].kind
        if any(ask.kind != kind for _, ask in asked):
            raise CompilerBug(f"reduction {asked[0][1].index} over all tensors is of several kinds")
        totals = np.zeros(len(self.sizes))
        with np.errstate(all="ignore"):
            for computation, ask in asked:
                totals[computation.position] = ask.total
            answer = finished(kind, total_of_terms(kind, totals), total_size)
            for computation in served:
                computation.resume(answer)

    def _evaluate(self, served: Sequence[Computation], evaluate: Callable[[], None]) -> None:
        """Serve an evaluation of the gradient. What is evaluated is under the caller's ``np.errstate``."""
        with np.errstate(all="ignore"):
            for computation in served:
                computation.launcher.move(computation, cast("GradientAt", computation.asks).param)
        evaluate()
        with np.errstate(all="ignore"):
            for computation in served:
                computation.resume(computation.launcher.gradient_of(computation))

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


def _put_back(before: Sequence[tuple[HostArray, HostArray]]) -> None:
    for param, copy in before:
        param[...] = copy
