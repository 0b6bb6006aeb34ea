"""What a staged rule keeps and computes beside the tensors: totals, scalars of stages, states, shared states.

All of it is float64 and indexed by *position*, a tensor's place in the optimizer. It belongs to the optimizer
and lives where the tensors live. ``KernelWorkspace`` has the order of a step for backends that run kernels;
``HostWorkspace`` the arrays as NumPy's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition, Rank
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.lines import LineTables
from solvergen.runtime.reductions import total_of_terms

if TYPE_CHECKING:
    from solvergen.runtime.backends.base import KernelLauncher, StagedLauncher, Step


class KernelWorkspace(ABC):
    """The order of a step: stages and passes in turn, each over all launches."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    @abstractmethod
    def begin(self, total_size: float, leader: int) -> None:
        """Prepare for a step: all totals become +0.0 if the rule reduces over all tensors (one that doesn't
        take part has nothing to add), and the present shared states are copied to the row of new ones (so
        that what the leader doesn't assign under its options stays)."""

    @abstractmethod
    def combine(self, number: int) -> None:
        """Reduce the totals of a pass over all positions, for the columns that are over all tensors."""

    @abstractmethod
    def commit(self) -> None:
        """Let the rows of shared states change places. Can't fail."""

    def take_back(self) -> None:
        """See ``Workspace``."""
        self.commit()  # once more: the rows change back

    @abstractmethod
    def read(self) -> tuple[HostArray, HostArray]:
        """See ``Workspace``."""

    def read_lines(self) -> Mapping[Rank, HostArray]:
        """See ``Workspace``. Of rules without lines there are none."""
        return {}

    def read_line_state(self, rank: Rank, lines: slice, column: int) -> HostArray:
        """See ``Workspace``."""
        raise CompilerBug(f"{self._definition.name} has no states of lines here")

    def write_lines(self, states: Mapping[Rank, HostArray]) -> None:
        """See ``Workspace``."""
        if states:
            raise CompilerBug(f"{self._definition.name} has no states of lines here")

    @abstractmethod
    def write(self, states: HostArray, shared: HostArray) -> None:
        """See ``Workspace``."""

    def run(
        self,
        launches: Sequence[tuple[StagedLauncher, Step]],
        evaluate: Callable[[], None] | None = None,
    ) -> None:
        """See ``Workspace``."""
        passed: list[KernelLauncher] = []
        try:
            self._step(launches, evaluate, passed)
        except BaseException:
            if self._definition.evaluations:
                uninterrupted(lambda: _put_back(passed))
            raise

    def _step(
        self,
        launches: Sequence[tuple[StagedLauncher, Step]],
        evaluate: Callable[[], None] | None,
        passed: list[KernelLauncher],
    ) -> None:
        """A step. ``passed`` gets the launchers that have begun to change something, and can undo it."""
        launchers = [cast("KernelLauncher", launcher) for launcher, _ in launches]
        steps = [step for _, step in launches]
        passes = self._definition.passes
        self.begin(steps[0].total_size, steps[0].leader)
        for launcher, step in zip(launchers, steps, strict=True):
            launcher.begin(step)
        for number, one in enumerate((*passes, None)):
            for launcher in launchers:
                if number in launcher.plan.stages:
                    launcher.run_stage(number)
            for _ in range(self._definition.evaluations.count(number)):
                if evaluate is None:
                    raise CompilerBug(f"{self._definition.name} evaluates gradients, but has no function to")
                evaluate()
                for launcher, step in zip(launchers, steps, strict=True):
                    launcher.begin(step)
            if one is None:
                break
            running = [launcher for launcher in launchers if number in launcher.plan.passes]
            for launcher in running:
                launcher.run_pass(number)
                if self._definition.evaluations and number == launcher.plan.keeping_pass:
                    passed.append(launcher)
            if running and "all" in one.over:
                self.combine(number)
        self.commit()


def _put_back(launchers: Sequence[KernelLauncher]) -> None:
    for launcher in launchers:
        launcher.put_back()


class HostWorkspace(KernelWorkspace):
    """The arrays in host memory, under the names that they have in ``docs/architecture.md``.

    Tables without columns have one that nothing uses, so that every array has an address.
    """

    def __init__(
        self,
        definition: Definition,
        sizes: Sequence[int],
        shapes: Sequence[tuple[int, ...]] | None = None,
        blocks: Sequence[int] | None = None,
    ) -> None:
        """``sizes``: elements of each tensor, by position; ``shapes`` are wanted for rules with lines, and
        ``blocks`` tell into how many each falls, if not into one."""
        super().__init__(definition)
        if definition.has_lines and shapes is None:
            raise CompilerBug(f"{definition.name} has lines, but its tensors no shapes")
        self.lines: LineTables | None = None
        if definition.has_lines and shapes is not None:
            self.lines = LineTables(definition, shapes, blocks)
        count, reductions = len(sizes), max(1, definition.n_reductions)
        self.totals = np.zeros((count, reductions))
        self.over_all = np.zeros(reductions)
        self.values = np.zeros((count, max(1, definition.n_values)))
        self.states = np.zeros((count, max(1, len(definition.device_states))))
        self.shared = np.zeros((2, max(1, len(definition.shared_states))))
        self.sizes = np.array(sizes, np.float64)
        self.present = 0
        """The row of ``shared`` that holds the present values."""
        self.total_size = 0.0
        self.leader = 0

    @property
    def shared_now(self) -> HostArray:
        """The present shared states."""
        row: HostArray = self.shared[self.present]
        return row

    @property
    def shared_new(self) -> HostArray:
        """The row that takes the new ones."""
        row: HostArray = self.shared[1 - self.present]
        return row

    def begin(self, total_size: float, leader: int) -> None:
        """See ``KernelWorkspace``."""
        self.total_size, self.leader = total_size, leader
        if self._definition.reduces_over_all:
            self.totals[...] = 0.0
        self.shared_new[...] = self.shared_now

    def combine(self, number: int) -> None:
        """See ``KernelWorkspace``. A backend with a faster reduction has its own."""
        one = self._definition.passes[number]
        for column, (kind, over) in enumerate(zip(one.kinds, one.over, strict=True), start=one.first):
            if over == "all":
                self.over_all[column] = total_of_terms(kind, self.totals[:, column])

    def commit(self) -> None:
        """See ``KernelWorkspace``."""
        self.present = 1 - self.present

    def read_lines(self) -> Mapping[Rank, HostArray]:
        """See ``Workspace``."""
        return {} if self.lines is None else self.lines.read()

    def read_line_state(self, rank: Rank, lines: slice, column: int) -> HostArray:
        """See ``Workspace``."""
        if self.lines is None:
            return super().read_line_state(rank, lines, column)
        return self.lines.read_column(rank, lines, column)

    def write_lines(self, states: Mapping[Rank, HostArray]) -> None:
        """See ``Workspace``."""
        if self.lines is None:
            super().write_lines(states)
        else:
            self.lines.write(states)

    def read(self) -> tuple[HostArray, HostArray]:
        """See ``Workspace``."""
        states = self.states[:, : len(self._definition.device_states)]
        shared = self.shared_now[: len(self._definition.shared_states)]
        return states.copy(), shared.copy()

    def write(self, states: HostArray, shared: HostArray) -> None:
        """See ``Workspace``."""
        columns, length = len(self._definition.device_states), len(self._definition.shared_states)
        if states.shape != (len(self.states), columns) or shared.shape != (length,):
            raise CompilerBug(f"states of the shape {states.shape} and shared ones of {shared.shape}")
        self.states[:, :columns] = states
        self.shared_now[:length] = shared
