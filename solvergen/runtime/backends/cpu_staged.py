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
from solvergen.runtime.buffers import KeptParameters, address_of
from solvergen.runtime.definition import Definition, Pass
from solvergen.runtime.kernel_interface import chunk_table
from solvergen.runtime.native.library import Reduction, Stage, StagedJob, StageJob, function_address, library
from solvergen.runtime.ordering import CHUNK_TERMS
from solvergen.runtime.workspace import HostWorkspace

MANY_TERMS = 1 << 16
"""Fewer terms than that are reduced by the caller: waking a thread takes as long."""


class Reducer:
    """Reduces segments of rows of terms to rows of totals: a job for the pool with its tables."""

    def __init__(
        self,
        terms: HostArray,
        offsets: HostArray,
        places: HostArray,
        columns: Sequence[tuple[int, int, bool]],
        out: HostArray,
    ) -> None:
        """``offsets``: where each segment's rows of ``terms`` begin, and their end; ``places``: the row of
        ``out`` for each. ``columns``: column of ``terms``, column of ``out``, whether the larger is taken."""
        n_terms = int(offsets[-1])
        fits = (
            terms.shape[0] >= n_terms
            and out.ndim == 2
            and all(0 <= a < terms.shape[1] and 0 <= b < out.shape[1] for a, b, _ in columns)
            and (places.size == 0 or 0 <= int(places.min()) <= int(places.max()) < len(out))
        )
        if not fits:
            raise CompilerBug(f"reductions {columns} of {terms.shape} to {out.shape}")
        self._run = library().run
        from_ = np.array([column for column, _, _ in columns], np.int32)
        to = np.array([column for _, column, _ in columns], np.int32)
        largest = np.array([larger for _, _, larger in columns], np.uint8)
        self._keeps = (terms, offsets, places, from_, to, largest, out)
        self._job = Reduction(
            address_of(terms),
            terms.shape[1],
            address_of(offsets),
            address_of(places),
            address_of(from_),
            address_of(to),
            address_of(largest),
            len(columns),
            address_of(out),
            out.shape[1],
        )
        self._units, helpers = np.array([0, len(places)], np.int64), 0
        if n_terms * len(columns) >= MANY_TERMS and len(places) > 1:
            self._units = cpu.unit_table(np.diff(offsets), MANY_TERMS // 4)
            helpers = min(library().helpers(), len(self._units) - 2)
        self._arguments = (
            library().reduce,
            ctypes.addressof(self._job),
            address_of(self._units),
            len(self._units) - 1,
            helpers,
        )

    def run(self) -> None:
        """Reduce."""
        self._run(*self._arguments)


class CpuWorkspace(HostWorkspace):
    """A workspace on the host whose reductions over all tensors are native."""

    def __init__(self, definition: Definition, sizes: Sequence[int]) -> None:
        super().__init__(definition, sizes)
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
        self._kept = KeptParameters(plan)
        self._step: Step | None = None
        self._tables: tuple[HostArray, ...] = ()

        sizes = [tensor.param.size for tensor in plan.tensors]
        self._exact = chunk_table(sizes, CHUNK_TERMS)
        self._exact_units = cpu.unit_table(self._exact["count"], cpu.CHUNK_SIZE)
        # Where each tensor's chunks begin.
        self._offsets = np.searchsorted(self._exact["tensor"], np.arange(len(sizes) + 1)).astype(np.int64)
        self._jobs: list[StagedJob] = []
        self._passes = {number: self._prepared(number) for number in plan.passes}

        self._stage = Stage(
            positions=address_of(self._positions),
            totals=address_of(workspace.totals),
            over_all=address_of(workspace.over_all),
            sizes=address_of(workspace.sizes),
            values=address_of(workspace.values),
            states=address_of(workspace.states),
        )
        self._whole = np.array([0, len(plan.tensors)], np.int64)
        self._stage_jobs = {
            number: StageJob(
                function_address(getattr(kernel, f"sg_stage_{number}")), ctypes.addressof(self._stage)
            )
            for number in plan.stages
        }
        self._stages = {
            number: (self._library.run_stage, ctypes.addressof(job), address_of(self._whole), 1, 0)
            for number, job in self._stage_jobs.items()
        }

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
        """Run a stage for all tensors, on this thread."""
        self._library.run(*self._stages[stage])

    def run_pass(self, number: int) -> None:
        """Run a pass over all tensors and reduce what it forms."""
        self._check_bound()
        arguments, reducer = self._passes[number]
        self._library.run(*arguments)
        if reducer is not None:
            reducer.run()

    def put_back(self) -> None:
        """See ``KernelLauncher``."""
        self._kept.put_back()

    def _prepared(self, number: int) -> tuple[tuple[int, int, int, int, int], Reducer | None]:
        """What runs a pass, and what reduces its terms if it forms any."""
        one = self._plan.definition.passes[number]
        chunks, sweep = self._chunks, self._sweep
        reducer, partials = None, 0
        if one.kinds:
            chunks, sweep = self._exact, self._work_of(self._exact_units)
            terms = np.zeros((max(1, len(chunks)), len(one.kinds)))
            columns = [(i, one.first + i, kind == "max_abs") for i, kind in enumerate(one.kinds)]
            reducer = Reducer(terms, self._offsets, self._positions, columns, self._workspace.totals)
            partials = address_of(terms)
        job = StagedJob(
            address_of(self._pointers),
            None,
            None,
            address_of(chunks),
            address_of(self._positions),
            address_of(self._workspace.values),
            partials,
        )
        self._jobs.append(job)
        function = function_address(getattr(self._kernel, f"sg_pass_{number}"))
        return (function, ctypes.addressof(job), *sweep), reducer

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
