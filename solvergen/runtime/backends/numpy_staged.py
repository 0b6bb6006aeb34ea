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
from solvergen.runtime.backends.numpy_tensors import NumpyTensors, to_store
from solvergen.runtime.closures import GradientAt
from solvergen.runtime.definition import Rank
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
        # Of each state that is an array to the reference: its place among the tensor's arrays, or its lines.
        self._places: list[int | tuple[Rank, int]] = [
            definition.array_states.index(state.name)
            if state.rank is None
            else (state.rank, definition.line_states[state.rank].index(state.name))
            for state in definition.reference_arrays
        ]
        self._axes = [(float(len(shape)),) if definition.has_lines else () for shape in self._shapes]

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
                *self._state_arrays(place, states, workspace),
            ]
            work = definition.update(
                *values,
                *(
                    scalars[name] if name in self._active else None
                    for name in (*definition.all_scalar_states, *definition.shared_states)
                ),
                *rows[row][len(self._on_host) :],
                *self._tail,
                *self._axes[place],
            )
            yield Computation(self, place, values, work, definition.yields)

    def _state_arrays(
        self, place: int, states: Sequence[HostArray | None], workspace: HostWorkspace
    ) -> Iterable[HostArray | None]:
        """The arrays of a tensor that the reference gets behind parameter and gradient; copies of what
        belongs to lines."""
        for state, where in zip(self.plan.definition.reference_arrays, self._places, strict=True):
            if isinstance(where, int):
                yield states[where]
            elif state.name in self._active:
                yield self._line_state(place, where, workspace).copy()
            else:
                yield None

    def _line_state(self, place: int, where: tuple[Rank, int], workspace: HostWorkspace) -> HostArray:
        """A state of a tensor's lines, in its table."""
        if workspace.lines is None:
            raise CompilerBug("states of lines without tables of lines")
        return workspace.lines.state(where[0], self.plan.positions[place], where[1])

    def copies(self) -> list[tuple[HostArray, HostArray]]:
        """The parameters, each with a copy."""
        return [(param, param.copy()) for param, _ in self._tensors]

    def move(self, waiting: Computation, param: Any) -> None:
        """Write a parameter in the middle of the step; one number stands for each element's."""
        target = self._tensors[waiting.place][0]
        if getattr(param, "dtype", None) != self._compute or not _fits(param, target):
            raise CompilerBug(f"the NumPy reference asks for the gradient at {param!r:.80}")
        target[...] = param

    def gradient_of(self, waiting: Computation) -> HostArray:
        """A copy of the gradient that is bound now, in the compute type."""
        gradient: HostArray = self._gradients[waiting.place].astype(self._compute)
        return gradient

    def arrays_to_store(self, done: Computation, workspace: HostWorkspace) -> list[tuple[HostArray, Any]]:
        """Where its arrays go."""
        param, states = self._tensors[done.place]
        targets: list[HostArray | None] = [param]
        of_lines: list[tuple[HostArray, Any]] = []
        given = zip(done.values[2:], done.results[1:], self._places, strict=False)
        for value, result, where in given:
            if isinstance(where, int):
                targets.append(states[where])
                continue
            targets.append(None)
            if value is not None:
                if getattr(result, "dtype", np.dtype(np.float64)) != np.float64:
                    raise CompilerBug(f"the NumPy reference returned {result!r:.80} for lines, not float64")
                of_lines.append((self._line_state(done.place, where, workspace), result))
        results = done.results[: len(targets)]
        if self._writes_grad:
            targets.append(self._gradients[done.place])
            results = (*results, done.results[-1])
        return of_lines + to_store(done.values, targets, results, self._compute)

    def scalars_of(self, done: Computation, names: Sequence[str]) -> dict[str, float]:
        """The new values of these scalar or shared states, as far as they exist under the options."""
        definition = self.plan.definition
        order = (*definition.all_scalar_states, *definition.shared_states)
        first = 1 + len(definition.reference_arrays)
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
        arrays = [pair for c in computations for pair in c.launcher.arrays_to_store(c, self)]
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


def _fits(param: Any, target: HostArray) -> bool:
    """Whether it has a value for each element; what is alike in all, or in those of a line, stands once."""
    shape = np.shape(param)
    return len(shape) <= target.ndim and all(
        have in (1, wanted) for have, wanted in zip(shape[::-1], target.shape[::-1], strict=False)
    )


def _put_back(before: Sequence[tuple[HostArray, HostArray]]) -> None:
    for param, copy in before:
        param[...] = copy
