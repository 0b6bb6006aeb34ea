"""Staged rules on the native backend: passes with reductions, the totals that they leave, scalar stages.

A pass with reductions works on the chunks that the language defines, since its totals depend on them; one
without works on those of elementwise rules, which begin on cache lines. A step is a few calls whatever the
number of tensors: a pass and a reduction for each pass, a call for each stage.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends import cpu
from solvergen.runtime.backends.base import LaunchPlan, Step
from solvergen.runtime.backends.cpu_lines import CpuLines, Tiles
from solvergen.runtime.backends.cpu_reductions import ColumnReducer, Reducer
from solvergen.runtime.buffers import KeptParameters, address_of
from solvergen.runtime.definition import Definition, Pass
from solvergen.runtime.kernel_interface import chunk_table
from solvergen.runtime.native.library import LinesJob, Stage, StageJob, function_address
from solvergen.runtime.ordering import CHUNK_TERMS
from solvergen.runtime.workspace import HostWorkspace


class CpuWorkspace(HostWorkspace):
    """A workspace on the host whose reductions over all tensors are native."""

    def __init__(
        self,
        definition: Definition,
        sizes: Sequence[int],
        shapes: Sequence[tuple[int, ...]] | None = None,
        blocks: Sequence[int] | None = None,
    ) -> None:
        super().__init__(definition, sizes, shapes, blocks)
        self._over_all = {
            number: self._reducer_over_all(one)
            for number, one in enumerate(definition.passes)
            if "all" in one.over
        }

    def combine(self, number: int) -> None:
        """See ``KernelWorkspace``."""
        self._over_all[number].run()

    def _reducer_over_all(self, one: Pass) -> Reducer:
        columns = [
            (column, column, kind == "max_abs")
            for column, (kind, over) in enumerate(zip(one.kinds, one.over, strict=True), start=one.first)
            if over == "all"
        ]
        offsets = np.array([0, len(self.totals)], np.int64)
        return Reducer(self.totals, offsets, np.zeros(1, np.int32), columns, self.over_all[None])


class StagedCpuLauncher(cpu.CpuTensors):
    """The kernels of a staged rule with their tables."""

    def __init__(self, plan: LaunchPlan, kernel: ctypes.CDLL) -> None:
        super().__init__(plan)
        workspace = plan.workspace
        if not isinstance(workspace, HostWorkspace) or len(plan.positions) != len(plan.tensors):
            raise CompilerBug(f"a staged plan with {workspace!r} and {len(plan.positions)} positions")
        self._kernel = kernel  # keeps the code loaded
        self._workspace = workspace
        self._positions = np.array(plan.positions, np.int32)
        self._shared = [address_of(row) for row in workspace.shared]
        self._lines = (
            CpuLines(plan, kernel, workspace.lines, self._positions) if workspace.lines is not None else None
        )
        self._kept = KeptParameters(plan)
        self._step: Step | None = None
        self._tables: tuple[HostArray, ...] = ()

        sizes = [tensor.param.size for tensor in plan.tensors]
        self._exact = chunk_table(sizes, CHUNK_TERMS)
        self._exact_units = cpu.unit_table(self._exact["count"], cpu.CHUNK_SIZE)
        # Where each tensor's chunks begin.
        self._offsets = np.searchsorted(self._exact["tensor"], np.arange(len(sizes) + 1)).astype(np.int64)
        self._jobs: list[LinesJob] = []
        self._passes = {number: self._prepared(number) for number in plan.passes}

        self._stage = Stage(
            positions=address_of(self._positions),
            totals=address_of(workspace.totals),
            over_all=address_of(workspace.over_all),
            sizes=address_of(workspace.sizes),
            values=address_of(workspace.values),
            states=address_of(workspace.states),
            lines=self._lines.address if self._lines is not None else None,
        )
        self._whole = np.array([0, len(plan.tensors)], np.int64)
        self._stage_jobs = {
            number: StageJob(
                function_address(getattr(kernel, f"sg_stage_{number}")), ctypes.addressof(self._stage)
            )
            for number in plan.stages
            if number in plan.definition.stages
        }
        self._stages = {
            number: (self._library.run_stage, ctypes.addressof(job), address_of(self._whole), 1, 0)
            for number, job in self._stage_jobs.items()
        }
        self._line_stages = self._lines.stages(kernel, self._stage) if self._lines is not None else {}

    @property
    def plan(self) -> LaunchPlan:
        """What it was prepared for."""
        return self._plan

    def begin(self, step: Step) -> None:
        """Point the jobs at the step's tables."""
        self._check_bound()
        workspace, stage = self._workspace, self._stage
        last = self._step
        if (
            last is None
            or step.table is not last.table
            or step.rows is not last.rows
            or step.wide is not last.wide
        ):
            self._use(step)
        self._step = step
        stage.total_size, stage.leader = step.total_size, step.leader
        present = workspace.present
        stage.shared, stage.shared_new = self._shared[present], self._shared[1 - present]

    def run_stage(self, stage: int) -> None:
        """Run a stage for all tensors, on this thread, and what it has for lines."""
        if stage in self._stages:
            self._library.run(*self._stages[stage])
        for arguments in self._line_stages.get(stage, ()):
            self._library.run(*arguments)

    def run_pass(self, number: int) -> None:
        """Run a pass over all tensors and reduce what it forms."""
        self._check_bound()
        arguments, reducers = self._passes[number]
        if arguments is not None:
            self._library.run(*arguments)
        for reducer in reducers:
            reducer.run()

    def put_back(self) -> None:
        """See ``KernelLauncher``."""
        self._kept.put_back()

    def _prepared(
        self, number: int
    ) -> tuple[tuple[int, int, int, int, int] | None, list[Reducer | ColumnReducer]]:
        """What runs a pass, and what reduces its terms if it forms any."""
        one = self._plan.definition.passes[number]
        chunks, sweep = self._chunks, self._sweep
        reducers: list[Reducer | ColumnReducer] = []
        partials, tiles = 0, Tiles()
        name = f"sg_pass_{number}"
        if self._lines is not None and hasattr(self._kernel, f"sg_tile_pass_{number}"):
            name = f"sg_tile_pass_{number}"
            tiles = self._lines.tiles(one)
            sweep = self._work_of(self._lines.units)
            reducers += tiles.reducers
        if one.kinds:
            chunks, sweep = self._exact, self._work_of(self._exact_units)
            terms = np.zeros((max(1, len(chunks)), len(one.kinds)))
            columns = [(i, one.first + i, kind == "max_abs") for i, kind in enumerate(one.kinds)]
            reducers.append(Reducer(terms, self._offsets, self._positions, columns, self._workspace.totals))
            partials = address_of(terms)
        if self._lines is not None:
            reducers += self._lines.line_reducers(one, self._workspace.totals)
        if one.walk == "none":
            return None, reducers
        job = LinesJob(
            address_of(self._pointers),
            None,
            None,
            address_of(chunks),
            address_of(self._positions),
            address_of(self._workspace.values),
            partials,
            self._lines.address if self._lines is not None else None,
            *tiles.addresses,
        )
        self._jobs.append(job)
        function = function_address(getattr(self._kernel, name))
        return (function, ctypes.addressof(job), *sweep), reducers

    def _use(self, step: Step) -> None:
        """Point the jobs at these arrays, after checks: kernels index without any."""
        self._check_table(step.table, step.rows)
        wide = step.wide
        fits = (
            wide.dtype == np.float64
            and wide.shape == (len(step.table), max(1, len(self._plan.definition.wide)))
            and wide.flags.c_contiguous
        )
        if not fits:
            raise CompilerBug(f"a wide table of {wide.dtype}{wide.shape}")
        for job in self._jobs:
            job.table, job.rows = address_of(step.table), address_of(step.rows)
        self._stage.wide, self._stage.rows = address_of(wide), address_of(step.rows)
